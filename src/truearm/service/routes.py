"""What can be asked for: each route with its role, its types and what answers it. No transport."""

import hashlib
import logging
import math
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec
from starlette.responses import Response, StreamingResponse

from truearm import __version__
from truearm.errors import TruearmError
from truearm.report.export import document
from truearm.service import tables, views, wire
from truearm.service.database import DatabaseError
from truearm.service.hosting import Host
from truearm.service.problems import Problem, Refused
from truearm.service.tokens import Grant

LOG = logging.getLogger("truearm.service")
_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
_PAGE = 50  # studies in one answer
_EVENTS = 5000  # events in one answer


class Call(NamedTuple):
    """One request, read and checked."""

    host: Host
    grant: Grant
    study: str
    body: Any
    query: dict[str, str]
    headers: Mapping[str, str]
    wait: bool = True


class Route(NamedTuple):
    """What answers a path, who may ask, and the types in between."""

    method: str
    path: str
    role: str | None
    answer: Callable[[Call], Response]
    takes: type | None
    gives: type | str
    """A type, or the media type of what is no JSON."""
    status: int = 200
    query: tuple[tuple[str, str, str], ...] = ()
    """Name, JSON type and meaning."""
    at_once: bool = False
    """Whether it can be answered without waiting: else it raises `Busy`, and is called again where it may wait."""
    tagged: bool = False
    """Whether it has an ETag, and is not sent again to who knows it."""
    or_json: bool = False
    """Whether there is JSON too, for who accepts that."""
    shared: bool = False
    """Whether all who ask for it while it is made get the same one."""


def _json(value: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(value), status, headers=headers, media_type="application/json")


def _create(call: Call) -> Response:
    """Begin a study, or find the same one; another under its name is refused."""
    if call.grant.study not in (None, call.body.id):
        detail = f"the token is for study {call.grant.study!r} alone; begin that one, or use another token"
        raise Refused(Problem(403, "Not allowed", detail, field="id", value=call.body.id))
    made = call.host.create(call.body)
    return _json(made, 201 if made.created else 200, {"Location": f"/studies/{made.id}"})


def _list(call: Call) -> Response:
    """List studies, the newest first, 50 to a page."""
    if call.grant.study is not None:
        began = call.host.database.at(call.grant.study, 0)
        found = [] if began is None else [_summary(call.host, call.grant.study, began.at)]
        return _json(wire.Page(found, None))
    rows = call.host.database.studies(_PAGE + 1, _cursor(call.query.get("before")))
    more = f"/studies?before={rows[_PAGE - 1][1]!r}_{quote(rows[_PAGE - 1][0])}" if len(rows) > _PAGE else None
    return _json(wire.Page([_summary(call.host, *row) for row in rows[:_PAGE]], more))


def _cursor(text: str | None) -> tuple[float, str]:
    if text is None:
        return math.inf, ""
    at, _, name = text.partition("_")
    try:
        return float(at), name.replace("\0", "")
    except ValueError:
        raise _wrong("before", text, "take it from `next` of the page before") from None


def _wrong(field: str, value: str, remedy: str) -> Refused:
    detail = f"{field} cannot be {value!r:.80}; {remedy}"
    return Refused(Problem(422, "Invalid value", detail, field=field, value=value[:200]))


def _summary(host: Host, name: str, began: float) -> wire.Summary:
    try:
        with host.looking(name) as hosted:
            return views.summary(hosted)
    except DatabaseError:
        raise
    except Exception as error:  # whatever is wrong with one study hides no other
        if not isinstance(error, TruearmError):
            LOG.exception("study %r cannot be read", name)
        said = (
            str(error) if isinstance(error, TruearmError) else "it cannot be read; the log of the server has more"
        )
        return wire.Summary(name, name, began, 0, 0, 0, False, "broken", None, None, said)


def _show(call: Call) -> Response:
    """Tell where a study stands, with the result once it is done; a browser is led to its page. Has an ETag."""
    with call.host.looking(call.study) as hosted:
        tag = f'"{hosted.position}-{hosted.digest.hex()[:16]}"'
        if call.headers.get("if-none-match", "").removeprefix("W/") == tag:  # a proxy that packs answers says W/
            return Response(status_code=304, headers={"ETag": tag})
        return _json(views.state(hosted), headers={"ETag": tag})


def _ask(call: Call) -> Response:
    """Hand out pulls, first those that the worker has; in rounds, whole rounds."""
    return _json(call.host.ask(call.study, call.body.worker, call.body.n, wait=call.wait))


def _tell(call: Call) -> Response:
    """Record what pulls gave. Each reading has an outcome: `told`, `known` (the same again) or `refused`."""
    return _json(call.host.tell(call.study, call.body.readings, call.body.worker, wait=call.wait))


def _release(call: Call) -> Response:
    """Take back pulls of this worker that never began; an admin that names none takes back those of others too."""
    of_others = call.body.worker is None and call.grant.allows("admin", call.study)
    return _json(call.host.release(call.study, call.body.tickets, call.body.worker, of_others=of_others))


def _give(call: Call) -> Response:
    """Add readings to a passive study, once for each key; the key with other readings is refused."""
    return _json(call.host.give(call.study, call.body.key, call.body.readings))


def _stop(call: Call) -> Response:
    """End a study with what is known so far."""
    return _json(call.host.stop(call.study))


def _log(call: Call) -> Response:
    """Return the log in pages of 5,000 events: all that a stranger needs to replay the study."""
    text = call.query.get("since", "0")
    if not re.fullmatch(r"[0-9]{1,15}", text):
        raise _wrong("since", text, "give the last position you know, or 0")
    with call.host.looking(call.study) as hosted:
        definition = hosted.definition_text
    rows = call.host.database.after(call.study, int(text), _EVENTS)
    more = rows[-1].position if len(rows) == _EVENTS else None
    return _json(wire.Log(definition, [views.logged(row) for row in rows], more))


class Streamed(StreamingResponse):
    """A body that is made in parts while it is sent; the application has each made in a thread."""

    def __init__(self, parts: Iterator[bytes], kind: str, headers: dict[str, str]) -> None:
        first = next(parts)  # what fails at once is still told
        self.parts = chain([first], parts)
        super().__init__(self.parts, media_type=kind, headers=headers)


def _csv(call: Call) -> Response:
    """Return the readings as a table."""
    return _table(call, "csv", "text/csv", tables.as_csv)


def _parquet(call: Call) -> Response:
    """Return the readings as a table; needs pyarrow on the server."""
    return _table(call, "parquet", "application/vnd.apache.parquet", tables.as_parquet)


def _table(
    call: Call, suffix: str, kind: str, written: Callable[[Iterable[list[tables.Reading]]], Iterator[bytes]]
) -> Response:
    with call.host.looking(call.study) as hosted:
        upto, passive = hosted.position, hosted.passive
    parts = written(tables.readings(call.host.database, call.study, upto, passive=passive))
    return Streamed(parts, kind, {"Content-Disposition": f'attachment; filename="{call.study}.{suffix}"'})


def _report(call: Call) -> Response:
    """Return the self-contained page; as JSON, which `truearm verify` checks, if `Accept` says so."""
    with call.host.looking(call.study) as hosted:
        if hosted.passive and not all(hosted.given.values()):
            msg = f"study {call.study!r} has arms without a reading; there is nothing to report yet"
            raise Refused(Problem(409, "Conflict", msg, field="study", value=call.study))
        found = hosted.copied()  # for other requests go on
    result, tapes = found.result(), found.given if found.passive else found.study.readings
    if "application/json" in call.headers.get("accept", ""):
        return _json(document(result, tapes))
    from truearm.report.pages import page

    text = page(result, tapes, title=found.title if found.title != found.name else None)
    return Response(text, media_type="text/html", headers={"Content-Security-Policy": _policy(text)})


def _live(call: Call) -> Response:
    """Return what the page of a study shows."""
    with call.host.looking(call.study) as hosted:
        known = hosted.picture is not None and hosted.picture.position == hosted.position
        found = None if known else hosted.copied()
    if found is not None:  # it may take a second, for which others go on
        hosted.picture = views.live(found)
    return _json(hosted.picture)


def _estimate(call: Call) -> Response:
    """Estimate how many readings a study may take."""
    from truearm.planning import clean_outlook

    asked: wire.Estimating = call.body
    found = clean_outlook(
        arms=asked.arms, gap=asked.gap, share=asked.share, eps=asked.contamination, delta=asked.delta
    )
    pulls = math.ceil(found.expected) if math.isfinite(found.expected) else None
    return _json(wire.Estimate(pulls, found.largest_eps))


def _policy(page: str) -> str:
    digests = [hashlib.sha256(found.encode()).digest() for found in _SCRIPT.findall(page)]
    scripts = " ".join(f"'sha256-{b64encode(digest).decode()}'" for digest in digests)
    sources = f"script-src {scripts}; style-src 'unsafe-inline'; img-src data:"
    return f"default-src 'none'; {sources}; sandbox allow-scripts"


def _health(call: Call) -> Response:
    """Tell whether the server and its database answer."""
    call.host.database.tokens()
    return _json(wire.Health("ok", __version__))


_ONE = "/studies/{study}"
ROUTES = (
    Route("POST", "/studies", "admin", _create, wire.NewStudy, wire.Made, 201),
    Route("GET", "/studies", "viewer", _list, None, wire.Page, query=(("before", "string", "`next` of a page"),)),
    Route("GET", _ONE, "viewer", _show, None, wire.State, tagged=True),
    Route("POST", f"{_ONE}/ask", "worker", _ask, wire.Asking, wire.Asked, at_once=True),
    Route("POST", f"{_ONE}/tell", "worker", _tell, wire.Telling, wire.Outcomes, at_once=True),
    Route("POST", f"{_ONE}/release", "worker", _release, wire.Releasing, wire.Outcomes),
    Route("POST", f"{_ONE}/readings", "worker", _give, wire.Giving, wire.Taken),
    Route("POST", f"{_ONE}/stop", "admin", _stop, None, wire.Asked),
    Route(
        "GET",
        f"{_ONE}/log",
        "viewer",
        _log,
        None,
        wire.Log,
        query=(("since", "integer", "the last position you know"),),
    ),
    Route("GET", f"{_ONE}/readings.csv", "viewer", _csv, None, "text/csv"),
    Route("GET", f"{_ONE}/readings.parquet", "viewer", _parquet, None, "application/vnd.apache.parquet"),
    Route("GET", f"{_ONE}/report", "viewer", _report, None, "text/html", or_json=True),
    Route("GET", f"{_ONE}/live", "viewer", _live, None, wire.Live, shared=True),
    Route("POST", "/estimate", "viewer", _estimate, wire.Estimating, wire.Estimate),
    Route("GET", "/healthz", None, _health, None, wire.Health),
)
_BY_PATH = {(route.method, route.path): route for route in ROUTES}


def found(method: str, path: str) -> tuple[Route | None, str]:
    """Return the route of a request, None if there is none, and the study it names."""
    if not path.startswith("/studies/"):
        return _BY_PATH.get((method, path)), ""
    study, slash, rest = path.removeprefix("/studies/").partition("/")
    return _BY_PATH.get((method, f"{_ONE}{slash}{rest}")) if study else None, study
