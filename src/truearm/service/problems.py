"""Errors as they travel (RFC 9457): what is wrong with which field and value, and what to do."""

import json
import re
from contextlib import suppress
from typing import Any

import msgspec
import msgspec.inspect
from msgspec import UNSET
from starlette.responses import Response

from truearm.errors import ARGUMENT, InvalidArgument, ProtocolError, TruearmError, VerificationError
from truearm.service.database import DatabaseError
from truearm.service.hosting import Conflict, NotFound

_LONG = 200  # characters of a value that an answer repeats


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
    """Return an error of truearm as a problem."""
    if isinstance(error, Refused):
        return error.problem
    for kind, status, title in _STATUS:
        if isinstance(error, kind):
            return Problem(status, title, as_fields(str(error)), field=error.argument, value=_short(error.value))
    return Problem(500, "Error", str(error))


def as_fields(text: str) -> str:
    """Return a message with Python arguments (`name=value`) written as JSON fields."""

    def write(found: re.Match[str]) -> str:
        plain = {"True": "true", "False": "false", "None": "null"}.get(found[2], found[2])
        return f'"{found[1]}": ' + plain.replace("'", '"').replace("(", "[").replace(")", "]")

    return ARGUMENT.sub(write, text)


def malformed(error: Exception, body: bytes, takes: type) -> Problem:
    """Return what is wrong with a body: the field and its value, as far as they can be told."""
    if not isinstance(error, msgspec.ValidationError):
        said = _unreadable(error, body)
        return Problem(400, "Not JSON", f"the body must be JSON in UTF-8, but: {said}; see /openapi.json")
    words, _, place = str(error).partition(" - at `$")
    field = place.rstrip("`").lstrip(".")
    if found := re.fullmatch(r"Object (missing required|contains unknown) field `(.*)`", words, re.DOTALL):
        named = f"{field}.{found[2]}".lstrip(".")
        known = isinstance(kind := _kind(takes, field), msgspec.inspect.StructType)
        fields = ", ".join(one.encode_name for one in kind.fields) if known else ""
        what = "is missing" if found[1].startswith("missing") else f"is not a field; the fields are {fields}"
        return _invalid(f"{named} {what}", named, _found(body, named))
    value, name = _found(body, field), field or "the body"
    if words.startswith("Expected"):
        said = f"{name} must be {_expected(words)}"
    elif words.startswith("Invalid enum value"):
        said = f"{name} must be {_choices(_kind(takes, field))}"
    elif words == "Number out of range":
        said = f"{name} must be at most 1.8e308 in size"
    else:
        said = f"{name}: {words}"
    kind = re.search("got `([a-z]+)`$", words)
    if value is not UNSET and "[...]" not in field:
        said = f"{said}, but got {json.dumps(value, ensure_ascii=False):.80}"
    elif kind:
        said = f"{said}, but got {_WORDS.get(kind[1], kind[1])}"
    return _invalid(said, field or None, value)


def _unreadable(error: Exception, body: bytes) -> str:
    """Return why a body is no JSON for us."""
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    with suppress(ValueError, KeyError, RecursionError):
        none: dict[str, Any] = {}
        json.loads(body.decode(), parse_constant=none.__getitem__)  # takes halves of characters, and no NaN
        if re.search(rb"\\u[dD][89a-fA-F]", body):
            return r"it holds half of a character, such as \ud800 without the other half"
    return str(error)


def _invalid(said: str, field: str | None, value: Any) -> Problem:  # noqa: ANN401
    shown = None if value is UNSET else value
    return Problem(422, "Invalid value", f"{said}; see /openapi.json", field=field, value=shown)


_WORDS = {
    "int": "an integer",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "null": "null",
    "array": "a list",
    "object": "an object",
}


def _expected(words: str) -> str:
    """Return what msgspec expected, in the words of JSON."""
    kinds, rest = re.match(r"Expected `([^`]*)`(.*?)(?:, got `[^`]*`)?$", words, re.DOTALL).groups()  # type: ignore[union-attr]
    said = [_WORDS.get(kind, kind) for kind in kinds.split(" | ")]
    return " or ".join(filter(None, (", ".join(said[:-1]), said[-1]))) + rest


def _kind(takes: type, field: str) -> Any:  # noqa: ANN401 - of msgspec.inspect
    """Return the type at a place of a body, None where it cannot be told."""
    kind: Any = msgspec.inspect.type_info(takes)
    for step in re.findall(r"\[\d+\]|[^.\[\]]+", field):
        kinds = kind.types if isinstance(kind, msgspec.inspect.UnionType) else (kind,)
        if step.startswith("["):
            kind = next((one.item_type for one in kinds if isinstance(one, msgspec.inspect.ListType)), None)
        else:
            structs = (one for one in kinds if isinstance(one, msgspec.inspect.StructType))
            fields = (each for one in structs for each in one.fields)
            kind = next((each.type for each in fields if each.encode_name == step), None)
    return kind


def _choices(kind: Any) -> str:  # noqa: ANN401
    kinds = kind.types if isinstance(kind, msgspec.inspect.UnionType) else (kind,)
    said = ["a number"] if any(isinstance(one, msgspec.inspect.FloatType) for one in kinds) else []
    for one in kinds:
        said += [f'"{value}"' for value in getattr(one, "values", ())]
    said += ["null"] if any(isinstance(one, msgspec.inspect.NoneType) for one in kinds) else []
    return (
        " or ".join(filter(None, (", ".join(said[:-1]), said[-1]))) if said else "one of the words of the schema"
    )


def _found(body: bytes, field: str) -> Any:  # noqa: ANN401 - whatever was sent
    """Return what was sent at a place, UNSET if that cannot be told; numbers too large as they were written."""
    try:
        try:
            value = msgspec.json.decode(body)
        except msgspec.MsgspecError:
            value = json.loads(body, parse_float=str, parse_int=str)
        for step in re.findall(r"\[(\d+)\]|([^.\[\]]+)", field):
            value = value[int(step[0])] if step[0] else value[step[1]]
    except (KeyError, IndexError, TypeError, ValueError, RecursionError):
        return UNSET
    return _short(value)


def _short(value: Any) -> Any:  # noqa: ANN401
    """Return a value if it is short, else the beginning of it as text."""
    text = value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=str).decode()
    return value if len(text) <= _LONG else f"{text[:_LONG]}..."


def response(problem: Problem, headers: dict[str, str] | None = None) -> Response:
    """Return a problem as an answer."""
    return Response(
        msgspec.json.encode(problem), problem.status, headers=headers, media_type="application/problem+json"
    )
