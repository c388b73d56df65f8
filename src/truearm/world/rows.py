"""Events as the text a table keeps, and back, for every database a log may lie in; no database is touched here.

Values are text because SQLite has no NaN and no negative zero. Text has no NUL, because PostgreSQL has no place
for it, and no half characters, because no file has.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from truearm.errors import InvalidArgument, ProtocolError
from truearm.events import ISSUED, TOLD, Event, Issued, Reading, from_row, padded, to_row
from truearm.world import chain

_DEEPEST = 64  # lists and objects in each other: a reader in Python has a stack of 1,000, and other code is on it


def to_text(event: Event) -> list[Any]:
    """Return the columns of an event: kind, ticket, arm, draw, value and notes."""
    if type(event) is Issued and not event.counted:  # the usual two, at the least cost
        return [ISSUED, event.ticket, check_text("arm", event.arm), event.draw, None, None]
    if type(event) is Reading and event.notes is None:
        return [TOLD, event.ticket, check_text("arm", event.arm), None, repr(float(event.value)), None]
    kind, ticket, arm, draw, value, notes = padded(to_row(event))
    return [
        kind,
        ticket,
        None if arm is None else check_text("arm", arm),
        draw,
        repr(value) if isinstance(value, float) else value,  # repr comes back as the same float
        None if notes is None else as_json("notes", notes),
    ]


def from_text(row: Sequence[Any]) -> Event:
    """Return the event of its columns."""
    *plain, notes = row
    return from_row([*plain, None if notes is None else parsed(notes)])


def linked(rows: Iterable[Sequence[Any]], last: int, digest: bytes) -> Iterator[list[Any]]:
    """Iterate over rows that follow position `last`, each with its position before and its digest after it."""
    for position, row in enumerate(rows, start=last + 1):
        digest = chain.linked(digest, (position, *row))
        yield [position, *row, digest]


def parsed(text: str) -> Any:  # noqa: ANN401 - whatever JSON holds
    """Return what a text of the log holds."""
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        msg = f"the log has text that is not JSON: {error}"
        raise ProtocolError(msg) from None


def check_text(name: str, text: str) -> str:
    r"""Return text that every database and file can hold, or say that it is none."""
    if "\0" in text or not (text.isascii() or _is_encodable(text)):
        msg = f"{name} must be text without NUL characters and stray bytes, but got {text!r}; remove them"
        raise InvalidArgument(msg, name, text)
    return text


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def as_json(name: str, value: Mapping[str, Any]) -> str:
    """Return plain values as the text a log keeps."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        _check_parts(name, json.loads(text))
    except InvalidArgument:
        raise
    except (TypeError, ValueError, RecursionError) as error:
        msg = f"{name} must be a dict of plain JSON values, but: {error}"
        raise InvalidArgument(msg, name) from None
    return text


def _check_parts(name: str, value: object, depth: int = 0) -> None:
    if depth > _DEEPEST:
        msg = f"{name} may be nested {_DEEPEST} deep at most; what is deeper not everybody could read back"
        raise InvalidArgument(msg, name)
    if isinstance(value, str):
        check_text(name, value)
    elif isinstance(value, list):
        for item in value:
            _check_parts(name, item, depth + 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            check_text(name, key)
            _check_parts(name, item, depth + 1)
