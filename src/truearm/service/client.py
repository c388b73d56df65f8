"""A study that is served elsewhere, with the ask and tell of `truearm.Study`. Standard library only.

Every request may be sent twice without harm: a worker that asks again gets the pulls it has, the same reading told
again changes nothing, and the same study begun again is found. So a request that failed on the way is sent again.
"""

import json
import math
import os
import secrets
import socket
import time
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any
from urllib.parse import SplitResult, quote, urlsplit

from truearm.claims.result import Result
from truearm.errors import InvalidArgument, ProtocolError, TruearmError
from truearm.events import Noted
from truearm.problem import Pull, as_number, check_count, check_positive
from truearm.service.defining import Defined, defined
from truearm.service.exchange import Exchange
from truearm.store import first_digest, from_text, next_digest
from truearm.study import Study

BATCH = 1000  # pulls or readings in one request, as many as a server takes
_AGAIN = (408, 429, 500, 502, 503, 504)  # the server, or what stands before it, may answer the next time


class ServiceError(TruearmError, RuntimeError):
    """A server refused a request, or could not be reached; `status` is 0 if there was no answer."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class Client:
    """A served study: ask which arms to pull, tell what they said, like `Study` but for many machines.

    Each thread needs a client of its own. Of one that they share each gets its own answers, but all are the same
    worker, and so get the same pulls.

    Parameters
    ----------
    url
        Where `truearm serve` listens.
    study
        The name of the study.
    arms, options
        Begin the study with these if it is not there; `options` are those of `Study` (not `regularity`, and of
        policies "toptwo" and "lucb"), and `title`, `lease` and `passive`. Without arms the study must be there.
    token
        What `truearm serve --new-token` printed; that in the environment (`TRUEARM_TOKEN`) if none is given.
    worker
        Who asks. One that asks again gets the pulls it has, so the name of a process that began anew must be new:
        what it had begun is lost, and not measured twice. One is made up by default.
    timeout
        Seconds to wait for an answer.
    patience
        Seconds for which a request that failed on the way is sent again.

    Examples
    --------
    >>> study = Client("http://127.0.0.1:1", "taste", patience=0.01)
    >>> study.ask()
    Traceback (most recent call last):
        ...
    truearm.service.client.ServiceError: http://127.0.0.1:1 cannot be reached: ...
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
            if not isinstance(text, str):
                msg = f"{name} must be text, but got {text!r:.80}"
                raise InvalidArgument(msg, name, text)
        if not study:
            msg = "study must be the name of one, but got ''"
            raise InvalidArgument(msg, "study", study)
        parts = urlsplit(url if isinstance(url, str) else "")
        if parts.scheme not in ("http", "https") or not _is_address(parts):
            meant = isinstance(url, str) and "://" not in url and _is_address(urlsplit(f"http://{url}"))
            hint = f"; did you mean http://{url}?" if meant else ""
            msg = f"url must be such as http://127.0.0.1:8000, but got {url!r}{hint}"
            raise InvalidArgument(msg, "url", url)
        self.url, self.name = url.rstrip("/"), study
        self.worker = worker or f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
        all_studies = f"{quote(parts.path.rstrip('/'), safe='/%~!$&+,;=:@()*')}/studies"
        self._place = f"{all_studies}/{quote(study, safe='')}"
        self._patience = check_positive("patience", patience)
        headers = _headers(token if token is not None else os.environ.get("TRUEARM_TOKEN"))
        self._exchange = Exchange(parts, check_positive("timeout", timeout), headers)
        self._done = False
        self._parts, self._held = 1, dict[int, str]()  # names beside the worker's, and what those have
        if arms is not None:
            self._begin(all_studies, defined(arms, options))
        elif options:
            msg = f"{', '.join(options)} define a new study; give its arms too, or leave them out"
            raise InvalidArgument(msg)

    def _begin(self, all_studies: str, wanted: Defined) -> None:
        """Begin the study or find it; who may not begin one joins the same one that is there."""
        try:
            self._call("POST", all_studies, {"id": self.name, **wanted.sent})
        except ServiceError as error:
            if error.status != 403:
                raise
            self._join(wanted, error)

    def _join(self, wanted: Defined, refused: ServiceError) -> None:
        try:
            there = self.state["definition"]
        except ServiceError as error:
            if error.status == 404:
                msg = f"there is no study {self.name!r} yet, and {refused}"
                raise ServiceError(msg, refused.status) from None
            raise refused from None
        if difference := wanted.difference(there):
            msg = (
                f"study {self.name!r} is there with another definition: {difference}; leave arms and options out "
                "to join it, or choose another name"
            )
            raise ServiceError(msg, 409)

    def __repr__(self) -> str:
        return f"Client({self.url!r}, {self.name!r})"

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()  # a `Study` need not be closed either

    def close(self) -> None:
        """Let go of the connection; the next request opens one again."""
        exchange: Exchange | None = getattr(self, "_exchange", None)
        if exchange is not None:
            exchange.close()

    def ask(self, n: int | None = None) -> list[Pull]:
        """Return pulls for this worker, one without n (in rounds, one round); none if the study is done."""
        wanted, pulls = 1 if n is None else check_count("n", n), list[Pull]()
        for part in count(1):  # a worker that asks again gets what it has, so each further batch goes to another
            worker, asked = self.worker if part == 1 else f"{self.worker}/{part}", min(BATCH, wanted - len(pulls))
            found = self._post("ask", {"worker": worker, "n": asked})
            self._done = found["done"]
            new = [Pull(pull["ticket"], pull["arm"]) for pull in found["pulls"]]
            pulls += new
            if part > 1:
                self._parts = max(self._parts, part)
                self._held |= dict.fromkeys((pull.ticket for pull in new), worker)
            if len(pulls) >= wanted or (len(new) < asked and part >= self._parts):
                break
        return pulls

    def tell(self, pull: Pull | int, value: float) -> None:
        """Record what a pull said; it is on the server's disk when this returns."""
        self.tell_many([(pull, value)])

    def tell_many(self, readings: Sequence[tuple[Pull | int, float]]) -> None:
        """Record several readings, a thousand in one request; what is refused is told after all are sent."""
        self._outcomes("tell", "readings", [_item(pull, value) for pull, value in readings])

    def release(self, pull: Pull | int) -> None:
        """Take back a pull that never began."""
        ticket = _ticket(pull)
        self._outcomes("release", "tickets", [ticket], self._held.get(ticket))

    def stop(self) -> None:
        """End the study with what is known so far, for everybody."""
        self._done = self._post("stop", None)["done"]

    @property
    def state(self) -> dict[str, Any]:
        """Where the study stands, as the server tells it."""
        found: dict[str, Any] = self._call("GET", self._place)
        return found

    @property
    def done(self) -> bool:
        """Whether it is decided."""
        self._done = self._done or bool(self.state["done"])
        return self._done

    @property
    def result(self) -> Result | None:
        """The result once done, None before: found here anew, by replaying the log that the server gives."""
        return self.replayed().result if self.done else None

    @property
    def readings(self) -> dict[str, list[float | None]]:
        """Per arm the readings in order of pull, None for a pull not told."""
        return self.replayed().readings

    def replayed(self) -> Study:
        """Return the study as it is now, replayed here from its log, whose chain of digests is checked."""
        pages = list(self._pages())
        digest, events = first_digest(pages[0]["definition"]), []
        if json.loads(pages[0]["definition"])["service"]["passive"]:
            msg = f"study {self.name!r} is passive and has no pulls to replay; its report has result and readings"
            raise ProtocolError(msg, "study", self.name)
        for event in (event for page in pages for event in page["events"]):
            notes = None if event["notes"] is None else json.dumps(event["notes"], ensure_ascii=False)
            row = [event["kind"], event["ticket"], event["arm"], event["draw"], event["value"], notes]
            digest = next_digest(digest, (event["position"], *row))
            if digest.hex() != event["digest"]:
                msg = f"event {event['position']} of {self.name!r} does not fit its digest; the log was changed"
                raise ProtocolError(msg)
            events.append(from_text(row))
        return Study.replay(json.loads(pages[0]["definition"]), events)

    def _pages(self) -> Iterator[dict[str, Any]]:
        since: int | None = 0
        while since is not None:
            page = self._call("GET", f"{self._place}/log?since={since}")
            yield page
            since = page["next"]

    def _post(self, what: str, body: dict[str, Any] | None) -> dict[str, Any]:
        found: dict[str, Any] = self._call("POST", f"{self._place}/{what}", body)
        return found

    def _outcomes(self, what: str, field: str, items: list[Any], worker: str | None = None) -> None:
        refused = []
        for first in range(0, len(items), BATCH):
            found = self._post(what, {field: items[first : first + BATCH], "worker": worker or self.worker})
            self._done = found["done"]
            refused += [item["detail"] for item in found["outcomes"] if item["outcome"] == "refused"]
        if refused:
            raise ProtocolError("\n".join(refused))

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:  # noqa: ANN401 - JSON
        """Send a request until it is answered, and return the answer."""
        deadline, pause = time.monotonic() + self._patience, 0.05
        while True:
            try:
                return self._once(method, path, body)
            except ServiceError as error:
                if error.status not in (0, *_AGAIN) or time.monotonic() + pause > deadline:
                    raise
            time.sleep(pause * (0.5 + secrets.randbelow(1000) / 1000))  # so that many do not come back at once
            pause = min(2 * pause, 5.0)

    def _once(self, method: str, path: str, body: dict[str, Any] | None) -> Any:  # noqa: ANN401
        data = b"" if body is None else _json(body)
        try:
            status, text = self._exchange.send(method, path, data)
        except OSError as error:
            msg = f"{self.url} cannot be reached: {error}; check the address and whether the server runs"
            raise ServiceError(msg) from error
        if status >= 400:
            raise ServiceError(_said(text, status), status)
        try:
            return json.loads(text)
        except ValueError:
            msg = f"{self.url} did not answer as truearm serve does; check the address"
            raise ServiceError(msg, 400) from None


def _is_address(parts: SplitResult) -> bool:
    try:
        return bool((parts.hostname or "").encode("idna")) and parts.port != 0
    except ValueError:  # no name, or no number
        return False


def _headers(token: str | None) -> dict[str, str]:
    headers = {"Accept": "application/json", "Content-Type": "application/json"}
    if token and not (token.isascii() and token.isprintable()):
        msg = "token must be what `truearm serve --new-token` printed, but has other characters; copy it again"
        raise InvalidArgument(msg)
    return {**headers, "Authorization": f"Bearer {token}"} if token else headers


def _said(text: bytes, status: int) -> str:
    try:
        return str(json.loads(text)["detail"])
    except (ValueError, KeyError, TypeError):
        return f"the server answered with status {status}; check the address and the server's log"


def _json(body: dict[str, Any]) -> bytes:
    try:
        return json.dumps(body, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:  # all but notes is checked
        msg = f"notes must be a dict of plain JSON values, but: {error}"
        raise InvalidArgument(msg, "notes") from None


def _ticket(pull: Pull | int) -> int:
    ticket = pull.ticket if isinstance(pull, Pull) else pull
    if type(ticket) is int and ticket >= 0:  # the usual case, at the least cost
        return ticket
    if isinstance(ticket, bool) or not hasattr(ticket, "__index__") or ticket.__index__() < 0:
        msg = f"ticket {ticket!r:.80} was never handed out; tell one that was"
        raise ProtocolError(msg)
    return ticket.__index__()


def _item(pull: Pull | int, value: float) -> dict[str, Any]:
    ticket, number = _ticket(pull), value
    if type(value) is not float:
        number = as_number(
            f"value of ticket {ticket}", value, "tell nan for a reading that went wrong", boolean=True
        )
    item: dict[str, Any] = {"ticket": ticket, "value": number if math.isfinite(number) else str(number)}
    if isinstance(pull, Pull):
        item["arm"] = pull.arm
    if isinstance(value, Noted):
        item["notes"] = dict(value.notes)
    return item
