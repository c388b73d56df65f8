"""A study as bytes and back, quickly: its own fields, numbers as they lie in memory.

Whoever reads it back runs no code of the writer's: only records of truearm are made, and only with the fields they
have. A snapshot is a cache. It is used if it was taken at a digest that the log still has, by a version whose
studies have the same fields, and else forgotten.
"""

from array import array
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass
from enum import Enum
from hashlib import sha256
from importlib import import_module
from typing import Any

import msgspec
import numpy as np

from truearm import __version__
from truearm.errors import ProtocolError
from truearm.events import Log
from truearm.study import Study

_PLAIN = (bool, int, float, str, type(None))
_ROOMS = tuple(
    f"truearm.{room}" for room in ("problem", "events", "batch", "study", "policies.", "claims.", "evidence.")
)
_LEFT_OUT = {"_append", "_unwritten", "_result"}  # a file is no part of the study; a result is found again


def to_bytes(study: Study) -> bytes:
    """Return a study as bytes."""
    return msgspec.msgpack.encode(_packed(study))


def from_bytes(body: bytes) -> Study:
    """Return the study that `to_bytes` wrote."""
    try:
        study = _unpacked(msgspec.msgpack.decode(body))
    except (msgspec.MsgspecError, ValueError, TypeError, KeyError, AttributeError, ImportError) as error:
        msg = f"the snapshot cannot be read: {error}"
        raise ProtocolError(msg) from None
    if not isinstance(study, Study):
        msg = "the snapshot cannot be read: it holds no study"
        raise ProtocolError(msg)
    return study


def shape(study: Study) -> bytes:
    """Return a digest of this version, and of the fields that a new study and its records have in it."""
    return sha256(repr((__version__, sorted(set(_fields(study))))).encode()).digest()


def _fields(value: Any) -> Iterator[tuple[str, ...]]:  # noqa: ANN401
    """Iterate over the records of a value: the name of each, and those of its fields."""
    inside: Any = ()
    if type(value).__module__.startswith(_ROOMS) and not isinstance(value, Enum):
        parts = _parts(value)
        yield _name(type(value)), *(key for key, _ in parts)
        inside = [part for _, part in parts]
    elif isinstance(value, dict | list | tuple):
        inside = value.values() if isinstance(value, dict) else value
    for part in inside:
        yield from _fields(part)


def sealed(parts: list[Any]) -> bytes:
    """Return plain parts as bytes that begin with their digest."""
    body = msgspec.msgpack.encode(parts)
    return sha256(body).digest() + body


def opened(body: bytes) -> list[Any]:
    """Return the parts of what `sealed` made, if no byte of it was changed."""
    if sha256(body[32:]).digest() != body[:32]:
        msg = "the snapshot cannot be read: it was damaged"
        raise ProtocolError(msg)
    parts: list[Any] = msgspec.msgpack.decode(memoryview(body)[32:])
    return parts


def _packed(value: Any) -> Any:  # noqa: ANN401, PLR0911 - one line for each kind
    """Return a value as itself if msgpack knows it, else as a list that begins with its kind."""
    if isinstance(value, Enum):
        return ["enum", _name(type(value)), value.value]
    if type(value) is int and not -(2**63) <= value < 2**64:
        return ["int", str(value)]  # msgpack has no such numbers
    if type(value) in _PLAIN:
        return value
    if isinstance(value, np.ndarray):
        return ["numpy", value.dtype.str, list(value.shape), value.flags.writeable, value.tobytes()]
    if isinstance(value, np.generic):
        return ["scalar", value.dtype.str, value.tobytes()]
    if isinstance(value, array):
        return ["array", value.typecode, value.tobytes()]
    if isinstance(value, np.random.Generator):
        return ["random", _packed(value.bit_generator.state)]
    if isinstance(value, dict):
        return ["dict", [[_packed(key), _packed(part)] for key, part in value.items()]]
    if type(value) in (list, tuple, set, frozenset):
        return [type(value).__name__, [_packed(part) for part in value]]
    if type(value).__module__.partition(".")[0] == "truearm":
        whole = _noted if isinstance(value, Log) else _part
        return ["record", _name(type(value)), [[key, whole(key, part)] for key, part in _parts(value)]]
    msg = f"a study holds {type(value).__name__}, which no snapshot can"
    raise ProtocolError(msg)


def _part(_: str, value: Any) -> Any:  # noqa: ANN401
    return _packed(value)


def _noted(key: str, value: Any) -> Any:  # noqa: ANN401
    """Return a part of a log; its notes, which may be a million small dictionaries, in one go."""
    if key == "notes":
        with suppress(TypeError, OverflowError, ValueError):
            return ["notes", msgspec.msgpack.encode(value)]
    return _packed(value)


def _parts(value: Any) -> list[tuple[str, Any]]:  # noqa: ANN401 - a record of truearm
    if isinstance(value, tuple):
        return list(zip(value._fields, value, strict=True))  # type: ignore[attr-defined]
    if is_dataclass(value):
        return [(field.name, getattr(value, field.name)) for field in fields(value)]
    return [(key, part) for key, part in vars(value).items() if key not in _LEFT_OUT]


def _unpacked(packed: Any) -> Any:  # noqa: ANN401, PLR0911
    if type(packed) in _PLAIN:
        return packed
    kind, *rest = packed
    match kind:
        case "enum":
            return _kind(rest[0], Enum)(rest[1])
        case "int":
            return int(rest[0])
        case "numpy":
            dtype, shape, writeable, body = rest
            found = np.frombuffer(body, dtype=_dtype(dtype)).reshape(shape).copy()
            found.flags.writeable = writeable
            return found
        case "notes":
            return msgspec.msgpack.decode(rest[0], type=dict[int, dict[str, Any]])
        case "scalar":
            return np.frombuffer(rest[1], dtype=_dtype(rest[0]))[0]
        case "array":
            return array(rest[0], rest[1])
        case "random":
            generator = np.random.default_rng(0)
            generator.bit_generator.state = _unpacked(rest[0])
            return generator
        case "dict":
            return {_unpacked(key): _unpacked(part) for key, part in rest[0]}
        case "list" | "tuple" | "set" | "frozenset":
            made = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}[kind]
            return made(map(_unpacked, rest[0]))
        case "record":
            return _record(rest[0], {key: _unpacked(part) for key, part in rest[1]})
    msg = f"unknown kind {kind!r}"
    raise ValueError(msg)


def _record(name: str, parts: dict[str, Any]) -> Any:  # noqa: ANN401
    kind = _kind(name, object)
    known = getattr(kind, "_fields", parts)
    if is_dataclass(kind):
        known = [field.name for field in fields(kind)]
    if parts.keys() != set(known):
        msg = f"{name} has other fields"
        raise ValueError(msg)
    if issubclass(kind, tuple):
        return kind(**parts)
    made = object.__new__(kind)
    for key, part in parts.items():
        object.__setattr__(made, key, part)
    if kind is Study:
        made._append, made._unwritten, made._result = None, [], None
    return made


def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _kind(name: str, base: type) -> Any:  # noqa: ANN401 - a class of truearm
    module, _, path = name.partition(":")
    if not module.startswith(_ROOMS) or "." in path:
        msg = f"{name} is not a record of truearm"
        raise ValueError(msg)
    kind = getattr(import_module(module), path)
    if not (isinstance(kind, type) and issubclass(kind, base) and kind.__module__ == module):
        msg = f"{name} is not a record of truearm"
        raise ValueError(msg)
    return kind


def _dtype(name: str) -> np.dtype[Any]:
    dtype = np.dtype(name)
    if dtype.hasobject:
        msg = f"numbers cannot be of type {name}"
        raise ValueError(msg)
    return dtype
