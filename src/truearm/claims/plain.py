"""Records as plain values for JSON, and back, by msgspec; and as frames."""

import math
from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from typing import Any, Literal, get_args

import msgspec

from truearm.errors import InvalidArgument, OutOfReach
from truearm.problem import check_choice

Backend = Literal["pandas", "polars", "pyarrow"]
"""The libraries whose frames are made."""


def to_plain(value: Any, *, null: bool = False) -> Any:  # noqa: ANN401 - any record
    """Return a value as what JSON can hold: a number that is not finite as "inf", "-inf" or "nan", or as None."""
    return _finite(msgspec.to_builtins(value, enc_hook=lambda number: number.item()), null=null)  # those of numpy


def _finite(value: Any, *, null: bool) -> Any:  # noqa: ANN401
    if isinstance(value, float):
        return value if math.isfinite(value) else None if null else str(value)
    if isinstance(value, dict):
        return {key: _finite(part, null=null) for key, part in value.items()}
    return [_finite(part, null=null) for part in value] if isinstance(value, list | tuple) else value


def from_plain(kind: Any, data: Any, name: str = "value") -> Any:  # noqa: ANN401 - any type that msgspec knows
    """Return the value of a type that `to_plain` described, or raise an error that shows where it is wrong."""
    try:
        return msgspec.convert(data, kind, strict=False)
    except (msgspec.ValidationError, RecursionError, UnicodeEncodeError) as error:  # half of a surrogate pair
        problem, _, path = str(error).partition(" - at `$")
        raise InvalidArgument(f"{name}{path.rstrip('`')}: {problem[:1].lower()}{problem[1:]}") from None


def fields_of(record: Any) -> dict[str, Any]:  # noqa: ANN401 - any dataclass
    """Return the fields of a record, to build one of a class that has more."""
    return {field.name: getattr(record, field.name) for field in fields(record)}


def make_frame(columns: Mapping[str, Any], backend: Backend) -> Any:  # noqa: ANN401 - whichever library the caller has
    """Return columns as a frame of a library that the caller has."""
    import narwhals

    check_choice("backend", backend, get_args(Backend))
    try:
        import_module(backend)
    except ImportError as missing:
        others = " or ".join(f'to_frame("{other}")' for other in get_args(Backend) if other != backend)
        msg = f'to_frame("{backend}") needs {backend}; install it with: pip install {backend}, or call {others}'
        raise OutOfReach(msg) from missing
    return narwhals.from_dict(columns, backend=backend).to_native()
