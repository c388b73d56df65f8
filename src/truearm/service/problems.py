"""Errors as they travel (RFC 9457): what is wrong with which field and value, and what to do."""

import re
from typing import Any

import msgspec
from starlette.responses import Response

from truearm.errors import InvalidArgument, ProtocolError, TruearmError, VerificationError
from truearm.service.database import DatabaseError
from truearm.service.hosting import Conflict, NotFound


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """What went wrong: `detail` says it with the remedy, `field` and `value` where in the request."""

    status: int
    title: str
    detail: str
    type: str = "about:blank"
    field: str | None = None
    value: Any = None


class Refused(TruearmError):
    """A request that is answered by a problem."""

    def __init__(self, problem: Problem, headers: dict[str, str] | None = None) -> None:
        super().__init__(problem.detail)
        self.problem, self.headers = problem, headers or {}


_STATUS: tuple[tuple[type[TruearmError], int, str], ...] = (
    (NotFound, 404, "Not found"),
    (Conflict, 409, "Conflict"),
    (VerificationError, 500, "The log was changed"),
    (DatabaseError, 503, "The database failed"),
    (InvalidArgument, 422, "Invalid value"),
    (ProtocolError, 409, "Conflict"),
)


def of(error: TruearmError) -> Problem:
    """Return an error of truearm as a problem.

    Examples
    --------
    >>> of(InvalidArgument("delta must be below 1, but got 2")).status
    422
    """
    for kind, status, title in _STATUS:
        if isinstance(error, kind):
            return Problem(status, title, str(error))
    return Problem(500, "Error", str(error))


def malformed(error: Exception, body: bytes) -> Problem:
    """Return what is wrong with a body: the field and its value, as far as they can be told.

    Examples
    --------
    >>> problem = malformed(msgspec.ValidationError("Expected `int`, got `str` - at `$.n`"), b'{"n": "x"}')
    >>> problem.detail, problem.field, problem.value
    ("n: Expected `int`, got `str`, but got 'x'; see /openapi.json", 'n', 'x')
    """
    if not isinstance(error, msgspec.ValidationError):
        return Problem(400, "Not JSON", f"the body must be JSON in UTF-8, but: {error}; see /openapi.json")
    words, _, place = str(error).partition(" - at `$")
    field = place.rstrip("`").lstrip(".")
    value = _found(body, field)
    shown = f", but got {value!r:.80}" if field and "key in" not in field else ""
    named = f"{field}: " if field else ""
    return Problem(
        422, "Invalid value", f"{named}{words}{shown}; see /openapi.json", field=field or None, value=value
    )


def _found(body: bytes, field: str) -> Any:  # noqa: ANN401 - whatever was sent
    try:
        value = msgspec.json.decode(body)
        for step in re.findall(r"\[(\d+)\]|([^.\[\]]+)", field):
            value = value[int(step[0])] if step[0] else value[step[1]]
    except (msgspec.MsgspecError, KeyError, IndexError, TypeError, ValueError, RecursionError):
        return None
    text = msgspec.json.encode(value)
    return value if len(text) <= 200 else None


def response(problem: Problem, headers: dict[str, str] | None = None) -> Response:
    """Return a problem as an answer.

    Examples
    --------
    >>> response(Problem(404, "Not found", "there is no study 'x'")).media_type
    'application/problem+json'
    """
    return Response(
        msgspec.json.encode(problem), problem.status, headers=headers, media_type="application/problem+json"
    )
