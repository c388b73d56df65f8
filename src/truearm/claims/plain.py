"""Values of the house as plain values for JSON, and back: one rule for all of them, read off their types.

Records become dictionaries of their fields, tuples lists, enumerations their values, and floats that JSON does not
know the strings "inf", "-inf" and "nan".
"""

import math
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from importlib import import_module
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from truearm.errors import InvalidArgument, OutOfReach

Backend = Literal["pandas", "polars", "pyarrow"]
"""The libraries whose frames are made."""

_SCALARS = frozenset((int, str, bool, type(None)))


def to_plain(value: Any) -> Any:  # noqa: ANN401 - whatever the house is made of
    """Return a value as what JSON can hold."""
    if type(value) in _SCALARS:  # most are: a claim holds one number for each arm
        return value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else repr(float(value))
    if isinstance(value, Mapping):
        return {str(key): to_plain(part) for key, part in value.items()}
    if names := _fields(value):
        return {name: to_plain(getattr(value, name)) for name in names}
    return [to_plain(part) for part in value] if isinstance(value, list | tuple) else value


def _fields(kind: Any) -> list[str]:  # noqa: ANN401 - a record or its type
    return [field.name for field in fields(kind)] if is_dataclass(kind) else list(getattr(kind, "_fields", ()))


def from_plain(kind: Any, data: Any, name: str = "value") -> Any:  # noqa: ANN401 - kind is any type hint
    """Return the value of a type that `to_plain` described, or say where the description is wrong."""
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _from_union(kind, data, name)
    if origin is Literal:
        return _checked(data, data in get_args(kind), name, f"one of {', '.join(map(repr, get_args(kind)))}")
    if origin is tuple:
        _checked(data, isinstance(data, list | tuple), name, "a list")
        return tuple(from_plain(get_args(kind)[0], part, f"{name}[{i}]") for i, part in enumerate(data))
    if origin is not None and issubclass(origin, Mapping):
        _checked(data, isinstance(data, Mapping), name, "an object")
        return {key: from_plain(get_args(kind)[1], part, f"{name}[{key!r}]") for key, part in data.items()}
    if _fields(kind):
        return _from_record(kind, data, name)
    return _from_scalar(kind, data, name)


def _from_union(kind: Any, data: Any, name: str) -> Any:  # noqa: ANN401
    kinds = [part for part in get_args(kind) if part is not type(None)]
    if data is None and len(kinds) < len(get_args(kind)):
        return None
    return from_plain(kinds[0], data, name)


def _from_record(kind: Any, data: Any, name: str) -> Any:  # noqa: ANN401
    names = _fields(kind)
    _checked(data, isinstance(data, Mapping), name, "an object")
    for key in names:
        if key not in data:
            msg = f"{name} must have the keys {', '.join(names)}, but lacks {key!r}"
            raise InvalidArgument(msg)
    hints = get_type_hints(kind)
    return kind(**{key: from_plain(hints[key], data[key], f"{name}.{key}") for key in names})


def _from_scalar(kind: Any, data: Any, name: str) -> Any:  # noqa: ANN401
    if kind is float:
        is_number = isinstance(data, float | int) and not isinstance(data, bool)
        _checked(data, is_number or data in ("inf", "-inf", "nan"), name, "a number")
        try:
            return float(data)
        except OverflowError:
            return _checked(data, False, name, "a number that fits")
    if isinstance(kind, type) and issubclass(kind, Enum):
        known = [member.value for member in kind]
        return kind(_checked(data, data in known, name, f"one of {', '.join(map(repr, known))}"))
    if kind in (int, str, bool):
        right = isinstance(data, kind) and not (kind is int and isinstance(data, bool))
        return _checked(data, right, name, {int: "a whole number", str: "a string", bool: "true or false"}[kind])
    return data


def _checked(data: Any, right: bool, name: str, what: str) -> Any:  # noqa: ANN401
    if not right:
        msg = f"{name} must be {what}, but got {data!r:.80}"
        raise InvalidArgument(msg)
    return data


def framed(columns: Mapping[str, Any], backend: Backend) -> Any:  # noqa: ANN401 - whichever library the caller has
    """Return columns as a frame of a library that the caller has."""
    import narwhals

    if backend not in get_args(Backend):
        msg = f"backend must be one of {', '.join(get_args(Backend))}, but got {backend!r}"
        raise InvalidArgument(msg, "backend", backend)
    try:
        import_module(backend)
    except ImportError as missing:
        others = " or ".join(f'to_frame("{other}")' for other in get_args(Backend) if other != backend)
        msg = f'to_frame("{backend}") needs {backend}; install it with: pip install {backend}, or call {others}'
        raise OutOfReach(msg) from missing
    return narwhals.from_dict(columns, backend=backend).to_native()
