"""The client of a served study: the same ask and tell, over HTTP.

A request that failed is sent again, because all are idempotent: a worker that asks again gets the pulls it has, a
reading sent again changes nothing, and the same study created again is found.
"""

import json
import math
import os
import secrets
import socket
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from http import HTTPStatus
from operator import index
from typing import Any
from urllib.parse import quote

import msgspec
import urllib3

from truearm.claims.result import Result
from truearm.errors import InvalidArgument, ProtocolError, TruearmError
from truearm.events import Noted
from truearm.problem import Pull, as_number, check_count, check_names, check_positive, refuse
from truearm.service import models
from truearm.service.studies import define
from truearm.store import Row, check_chain, first_digest, from_text
from truearm.study import Study

POLICIES = ("toptwo", "lucb")  # supported by a server
BATCH = 1000  # pulls or readings in one request, the most that a server accepts
_RETRY_STATUSES = (408, 429, 500, 502, 503, 504)
_FIRST_PAUSE_S, _MAX_PAUSE_S = 0.05, 5.0  # between tries
_MAX_UNREADABLE = 5  # answers that are not JSON


class ServiceError(TruearmError, RuntimeError):
    """A server refused a request or could not be reached; `status` is 0 if there was no answer."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class Client(AbstractContextManager["Client"]):
    """A served study: ask which arms to pull and tell the readings, like `Study` but for many machines.

    Each thread needs its own client: threads that share one are the same worker and get the same pulls.

    Parameters
    ----------
    url
        Where `truearm serve` listens.
    study
        The name of the study.
    arms, options
        Create the study with these if it does not exist; `options` are those of `Study` (without `regularity`,
        `score_range` and `items`, and with the policies "toptwo" and "lucb"), and `title`, `lease` and `passive`.
        Without arms it must exist.
    token
        What `truearm serve --new-token` printed; by default the environment variable `TRUEARM_TOKEN`.
    worker
        The name of this worker. A worker that asks again gets the pulls it has, so a process that was restarted
        needs a new name: what it had started is lost, and is not measured twice. A unique one by default.
    timeout
        Seconds to wait for an answer.
    patience
        Seconds for which a request that failed on the way is sent again.

    Raises
    ------
    ServiceError
        If the server refuses a request or cannot be reached.
    """

    def __init__(
        self,
        url: str,
        study: str,
        arms: Sequence[str] | None = None,
        *,
        token: str | None = None,
        worker: str | None = None,
        timeout: float = 30.0,
        patience: float = 60.0,
        **options: Any,  # noqa: ANN401 - of `Study`
    ) -> None:
        for name, text in (("study", study), ("worker", worker or ""), ("token", token or "")):
            refuse(not isinstance(text, str), f"{name} must be text, but got {text!r:.80}", name, text)
        refuse(not study, "study must be the name of one, but got ''", "study", study)
        try:
            place = urllib3.util.parse_url(url)
            is_address = place.scheme in ("http", "https") and place.host is not None
        except (urllib3.exceptions.LocationParseError, TypeError):
            is_address = False
        msg = f"url must be such as http://127.0.0.1:8000, but got {url!r}; write http:// or https:// and the host"
        refuse(not is_address, msg, "url", url)
        self.url, self.name = url.rstrip("/"), study
        self.worker = worker or f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
        self._studies = f"{place.scheme}://{place.netloc}{(place.path or '').rstrip('/')}/studies"
        self._study = f"{self._studies}/{quote(study, safe='')}"
        self._pool = urllib3.PoolManager(
            headers=_headers(token if token is not None else os.environ.get("TRUEARM_TOKEN")),
            timeout=check_positive("timeout", timeout),
            retries=_retries(check_positive("patience", patience)),
        )
        if arms is not None:
            self._begin(_new_study(study, arms, options))
        elif options:
            raise InvalidArgument(f"{', '.join(options)} define a new study; give its arms too, or remove them")

    def _begin(self, new: models.NewStudy) -> None:
        """Create the study or find it; a token that may not create one joins the same one that exists."""
        try:
            self._call("POST", self._studies, msgspec.to_builtins(new))
        except ServiceError as refused:
            if refused.status != HTTPStatus.FORBIDDEN:
                raise
            try:
                known = self.state["definition"]
            except ServiceError as error:
                is_missing = error.status == HTTPStatus.NOT_FOUND
                msg = f"there is no study {self.name!r} yet, and {refused}" if is_missing else str(refused)
                raise ServiceError(msg, refused.status) from None
            both = json.loads(json.dumps(define(new))), known
            here, there = (one.pop("problem") | one.pop("service") | one for one in both)
            if other := [key for key, value in here.items() if value != there.get(key)]:
                msg = f"study {self.name!r} exists with another definition: it differs in {', '.join(other)}"
                remedy = "remove arms and options to join it, or choose another name"
                raise ServiceError(f"{msg}; {remedy}", HTTPStatus.CONFLICT) from None

    def __repr__(self) -> str:
        return f"Client({self.url!r}, {self.name!r})"

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; the next request opens one again."""
        self._pool.clear()

    def ask(self, n: int | None = None) -> list[Pull]:
        """Return up to 1,000 pulls for this worker, one without n (in rounds, one round); none if it is done."""
        wanted = 1 if n is None else min(BATCH, check_count("n", n))
        found = self._call("POST", f"{self._study}/ask", {"worker": self.worker, "n": wanted})
        return [Pull(pull["ticket"], pull["arm"]) for pull in found["pulls"]]

    def tell(self, pull: Pull | int, value: float) -> None:
        """Record the reading of a pull; it is on the server's disk when this returns."""
        self.tell_many([(pull, value)])

    def tell_many(self, readings: Sequence[tuple[Pull | int, float]]) -> None:
        """Record several readings, a thousand per request; refused ones are reported after all are sent."""
        try:
            pairs = [(pull, value) for pull, value in readings]
        except (TypeError, ValueError):
            msg = f"readings must be pairs of a pull and its value, but got {readings!r:.80}"
            raise InvalidArgument(msg, "readings", readings) from None
        self._outcomes("tell", "readings", [_item(pull, value) for pull, value in pairs])

    def release(self, pull: Pull | int) -> None:
        """Take back a pull that was never started."""
        self._outcomes("release", "tickets", [_ticket(pull)])

    def stop(self) -> None:
        """End the study for all workers, with what is known so far."""
        self._call("POST", f"{self._study}/stop")

    @property
    def state(self) -> dict[str, Any]:
        """The state of the study, as the server returns it."""
        return self._call("GET", self._study)

    @property
    def done(self) -> bool:
        """Whether it is decided."""
        return bool(self.state["done"])

    @property
    def result(self) -> Result | None:
        """The result once done, None before: computed here, by replaying the log of the server."""
        return self.replayed().result if self.done else None

    @property
    def readings(self) -> dict[str, list[float | None]]:
        """Per arm the readings in order of pull, None for a pull not told."""
        return self.replayed().readings

    def replayed(self) -> Study:
        """Return the study as it is now, replayed here from its log, whose chain of digests is checked."""
        rows, since = list[Row](), 0
        while since is not None:
            page = self._call("GET", f"{self._study}/log?since={since}")
            rows += map(_row, page["events"])
            text, since = page["definition"], page["next"]
        definition = json.loads(text)
        if definition["service"]["passive"]:
            msg = f"study {self.name!r} is passive and has no pulls to replay; its report has result and readings"
            raise ProtocolError(msg, "study", self.name)
        check_chain(rows, 0, first_digest(text), f"study {self.name!r}")
        study = Study.replay(definition)
        study.follow(from_text(rows))
        return study

    def _outcomes(self, what: str, field: str, items: list[Any]) -> None:
        refused = []
        for first in range(0, len(items), BATCH):
            body = {field: items[first : first + BATCH], "worker": self.worker}
            found = self._call("POST", f"{self._study}/{what}", body)
            refused += [item["detail"] for item in found["outcomes"] if item["outcome"] == "refused"]
        if refused:
            raise ProtocolError("\n".join(refused))

    def _call(self, method: str, url: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a request until it is answered, and return the answer."""
        try:
            data = b"" if body is None else json.dumps(body, allow_nan=False).encode()
        except (TypeError, ValueError, RecursionError) as error:  # all but notes is checked
            raise InvalidArgument(f"notes must be a dict of plain JSON values, but: {error}", "notes") from None
        for _ in range(_MAX_UNREADABLE):
            try:
                answer = self._pool.request(method, url, body=data, redirect=False)
            except urllib3.exceptions.HTTPError as error:
                reason = getattr(error, "reason", None) or error
                msg = f"{self.url} cannot be reached: {reason}; check the address and whether the server runs"
                raise ServiceError(msg) from error
            if answer.status >= 400:
                raise ServiceError(_detail(answer.data, answer.status), answer.status)
            with suppress(ValueError):  # a truncated head has no length, and the body looks complete
                found: dict[str, Any] = json.loads(answer.data)
                return found
        raise ServiceError(f"{self.url} did not answer as truearm serve does; check the address", 400)


def _new_study(name: str, arms: Sequence[str], options: Mapping[str, Any]) -> models.NewStudy:
    """Return a study as it is sent, after the checks of `Study`."""
    known = models.NewStudy.__struct_fields__
    check_names(options, [field for field in known if field not in ("id", "arms")])
    policy = options.get("policy", "toptwo")
    msg = f"policy must be 'toptwo' or 'lucb' on a server, but got {policy!r:.80}; remove it, or use a Study"
    refuse(policy not in POLICIES, msg, "policy", policy)
    hosting = {key: value for key, value in options.items() if key in ("title", "passive", "lease")}
    study = Study(arms, **{key: value for key, value in options.items() if key not in hosting})
    problem: dict[str, Any] = study.definition["problem"]
    bound, tolerance = problem["contamination"], problem["tolerance"]
    if bound is not None and bound.pop("blind"):
        bound = "blind"
    sent = {
        **problem,
        **hosting,
        "id": name,
        "contamination": bound,
        "tolerance": f"{100 * tolerance['amount']:.15g}%" if tolerance["relative"] else tolerance["amount"],
        "goal": problem["goal"] if {problem["at_least"], problem["at_most"]} == {None} else None,
        "policy": policy,
        "max_pulls": study.max_pulls,
        "seed": study.seed,
    }
    fields = {key: value for key, value in sent.items() if key in known}
    try:
        return msgspec.convert(fields, models.NewStudy)
    except msgspec.ValidationError as error:
        wrong = models.explain_invalid(error, msgspec.json.encode(fields, enc_hook=repr)).problem
        raise InvalidArgument(wrong.detail, wrong.field, wrong.value) from None


def _row(event: dict[str, Any]) -> Row:
    """Return an event of the log as the row that its digest covers."""
    notes = None if event["notes"] is None else json.dumps(event["notes"], ensure_ascii=False)
    return Row(**event | {"notes": notes, "digest": bytes.fromhex(event["digest"])})


def _retries(patience: float) -> urllib3.Retry:
    """Return retries with doubling pauses, random to a half, whose sum is about the patience."""
    count, pause, total = 0, _FIRST_PAUSE_S, _FIRST_PAUSE_S
    while total <= patience:
        count, pause = count + 1, min(2 * pause, _MAX_PAUSE_S)
        total += pause
    return urllib3.Retry(
        count,
        status_forcelist=_RETRY_STATUSES,
        allowed_methods=None,
        backoff_factor=_FIRST_PAUSE_S,
        backoff_max=_MAX_PAUSE_S,
        backoff_jitter=_FIRST_PAUSE_S,
        raise_on_status=False,
    )


def _headers(token: str | None) -> dict[str, str]:
    headers = {"Accept": "application/json", "Content-Type": "application/json"}
    msg = "token must be what `truearm serve --new-token` printed, but has other characters; copy it again"
    refuse(token and not (token.isascii() and token.isprintable()), msg)
    return {**headers, "Authorization": f"Bearer {token}"} if token else headers


def _detail(text: bytes, status: int) -> str:
    try:
        return str(json.loads(text)["detail"])
    except (ValueError, KeyError, TypeError):
        return f"the server answered with status {status}; check the address and the server's log"


def _ticket(pull: Pull | int) -> int:
    ticket, number = pull.ticket if isinstance(pull, Pull) else pull, -1
    with suppress(TypeError):
        number = -1 if isinstance(ticket, bool) else index(ticket)
    if number < 0:
        raise ProtocolError(f"ticket {ticket!r:.80} was never handed out; tell one that was")
    return number


def _item(pull: Pull | int, value: float) -> dict[str, Any]:
    ticket, remedy = _ticket(pull), "tell nan for a reading that went wrong"
    number = as_number(f"value of ticket {ticket}", value, remedy, boolean=True)
    item: dict[str, Any] = {"ticket": ticket, "value": number if math.isfinite(number) else str(number)}
    if isinstance(pull, Pull):
        item["arm"] = pull.arm
    if isinstance(value, Noted):
        item["notes"] = dict(value.notes)
    return item
