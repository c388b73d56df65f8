"""Errors as answers (RFC 9457): which field and value is wrong, why, and what to do."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec
import msgspec.inspect
from msgspec import UNSET

from truearm.errors import ARGUMENT, InvalidArgument, ProtocolError, TruearmError, VerificationError
from truearm.service.models import Problem
from truearm.service.studies import Conflict, NotFound
from truearm.store import StoreError

_MAX_VALUE_CHARS = 200  # of a value that an answer repeats


class Refused(TruearmError):
    """A request is refused: a problem, and headers of the answer."""

    def __init__(self, status: int, title: str, detail: str, **more: Any) -> None:  # noqa: ANN401
        super().__init__(detail)
        self.headers: dict[str, str] = more.pop("headers", {})
        self.problem = Problem(status, title, detail, **{name: _short(value) for name, value in more.items()})


_STATUS: tuple[tuple[type[TruearmError], int, str], ...] = (
    (NotFound, 404, "Not found"),
    (Conflict, 409, "Conflict"),
    (VerificationError, 500, "The log was changed"),
    (StoreError, 503, "The database failed"),
    (InvalidArgument, 422, "Invalid value"),
    (ProtocolError, 409, "Conflict"),
)


def from_error(error: TruearmError) -> Problem:
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


def malformed(error: Exception, body: bytes, model: type) -> Refused:
    """Return which field of a body is wrong, and its value, as far as they are known."""
    if not isinstance(error, msgspec.ValidationError):
        detail = f"the body must be JSON in UTF-8, but: {_unreadable(error, body)}; see /openapi.json"
        return Refused(400, "Not JSON", detail)
    words, _, place = str(error).partition(" - at `$")
    field = place.rstrip("`").lstrip(".")
    if found := re.fullmatch(r"Object (missing required|contains unknown) field `(.*)`", words, re.DOTALL):
        structs = (one for one in _parts(model, field) if isinstance(one, msgspec.inspect.StructType))
        fields = ", ".join(each.encode_name for each in next(structs).fields)
        field = f"{field}.{found[2]}".lstrip(".")
        said = "is missing" if found[1].startswith("missing") else f"is not a field; the fields are {fields}"
        return _invalid(f"{field} {said}", field, _value_at(body, field))
    value, name = _value_at(body, field), field or "the body"
    if words.startswith("Expected"):
        kinds, rest = re.match(r"Expected `([^`]*)`(.*?)(?:, got `[^`]*`)?$", words, re.DOTALL).groups()  # type: ignore[union-attr]
        said = f"{name} must be {_join_words([_WORDS.get(kind, kind) for kind in kinds.split(' | ')])}{rest}"
    elif words.startswith("Invalid enum value"):
        said = f"{name} must be {_choices(_parts(model, field))}"
    else:
        said = f"{name} must be at most 1.8e308 in size" if words == "Number out of range" else f"{name}: {words}"
    kind = re.search("got `([a-z]+)`$", words)
    if value is not UNSET and "[...]" not in field:
        said = f"{said}, but got {json.dumps(value, ensure_ascii=False):.80}"
    elif kind:
        said = f"{said}, but got {_WORDS.get(kind[1], kind[1])}"
    return _invalid(said, field or None, value)


def _unreadable(error: Exception, body: bytes) -> str:
    """Return why a body cannot be parsed."""
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    with suppress(ValueError, KeyError, RecursionError):
        json.loads(body.decode(), parse_constant=dict[str, Any]().__getitem__)  # accepts lone surrogates, not NaN
        if re.search(rb"\\u[dD][89a-fA-F]", body):
            return r"it contains invalid Unicode, such as a lone \ud800"
    return str(error)


def _invalid(said: str, field: str | None, value: Any) -> Refused:  # noqa: ANN401
    shown = None if value is UNSET else value
    return Refused(422, "Invalid value", f"{said}; see /openapi.json", field=field, value=shown)


_WORDS = {
    "int": "an integer",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "null": "null",
    "array": "a list",
    "object": "an object",
}


def _parts(model: type, field: str) -> list[Any]:
    """Return the types of msgspec at a place in a body, outer ones first."""
    kinds = list(_walk_types(msgspec.inspect.type_info(model)))
    for name in re.findall(r"[A-Za-z_]+", field):
        found = [one for one in kinds if isinstance(one, msgspec.inspect.Field) and one.encode_name == name]
        kinds = [part for one in found for part in _walk_types(one.type)]
    return kinds


def _walk_types(kind: Any) -> Iterator[Any]:  # noqa: ANN401 - of msgspec.inspect
    yield kind
    inside = [getattr(kind, name, None) for name in ("type", "item_type")]
    for part in filter(None, (*inside, *getattr(kind, "types", ()), *getattr(kind, "fields", ()))):
        yield from _walk_types(part)


def _choices(kinds: list[Any]) -> str:
    words = ["a number"] * any(isinstance(one, msgspec.inspect.FloatType) for one in kinds)
    words += [f'"{value}"' for one in kinds for value in getattr(one, "values", ())]
    words += ["null"] * any(isinstance(one, msgspec.inspect.NoneType) for one in kinds)
    return _join_words(words)


def _join_words(words: list[str]) -> str:
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _value_at(body: bytes, field: str) -> Any:  # noqa: ANN401 - whatever was sent
    """Return the value at a place in a body, UNSET if there is none; numbers that are too large as text."""
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
    return value if len(text) <= _MAX_VALUE_CHARS else f"{text[:_MAX_VALUE_CHARS]}..."
