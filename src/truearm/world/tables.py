"""Tables of counts as files: JSON, and Parquet with one row per arm and bucket that holds readings."""

import json
import math
import re
from importlib import import_module
from pathlib import Path
from typing import Any

from truearm.errors import InvalidArgument
from truearm.evidence.counts import Counts

_KEY = b"truearm.counts"
_PARQUET = (".parquet", ".pq")
_COLUMNS = ("bucket", "count", "low", "high")
_BEGINNING = re.compile(rb'\s*\{\s*"counts"\s*:\s*\d')  # data may have a column of that name


def write_counts(counts: Counts, path: str | Path) -> None:
    """Write a table of counts; the ending says how: .parquet or .json.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_counts(Counts.of({"A": [1.0, 2.0]}), Path(folder, "counts.parquet"))
    ...     read_counts(Path(folder, "counts.parquet")).n
    {'A': 2}
    """
    if not isinstance(counts, Counts):
        msg = f"counts must be a table of counts, such as `count` makes, but got {type(counts).__name__}"
        raise InvalidArgument(msg)
    data = counts.to_dict()
    ending = Path(path).suffix.lower()
    if ending not in (*_PARQUET, ".json"):
        msg = (
            f"path must end in .parquet or .json, but got {str(path)!r}; nobody would find a table of counts there"
        )
        raise InvalidArgument(msg)
    if ending == ".json":
        Path(path).write_text(json.dumps(data), encoding="utf-8")
        return
    pa, pq = _arrow()
    arms: dict[str, dict[str, Any]] = data["arms"]
    columns = {key: [x for arm in arms.values() for x in arm[key]] for key in ("bucket", "count")}
    columns |= {key: [float(x) for arm in arms.values() for x in arm[key]] for key in ("low", "high")}
    columns["arm"] = [name for name, arm in arms.items() for _ in arm["count"]]
    rest = {**data, "arms": {name: {"missing": arm["missing"]} for name, arm in arms.items()}}
    types = (
        ("arm", pa.string()),
        ("bucket", pa.int64()),
        ("count", pa.int64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
    )
    table = pa.table({name: pa.array(columns[name], kind) for name, kind in types})
    pq.write_table(table.replace_schema_metadata({_KEY: json.dumps(rest).encode()}), path)


def read_counts(path: str | Path) -> Counts:
    """Return the table of counts that a file holds.

    Examples
    --------
    >>> read_counts("nowhere.json")
    Traceback (most recent call last):
        ...
    truearm.errors.InvalidArgument: 'nowhere.json' is not a table of counts; give a file that write_counts made
    """
    found = read(path)
    if found is None:
        msg = f"{str(path)!r} is not a table of counts; give a file that write_counts made"
        raise InvalidArgument(msg)
    return found


def read(path: str | Path) -> Counts | None:
    """Return the table of counts in a file, None if the file is something else."""
    file = Path(path)
    if not file.is_file():
        return None
    if file.suffix.lower() in _PARQUET:
        return _from_parquet(file)
    if file.suffix.lower() != ".json":
        return None
    with file.open("rb") as opened:
        if not _BEGINNING.match(opened.read(64)):
            return None
    return Counts.from_dict(_parsed(file.read_bytes(), file))


def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; a repeated key is refused."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            msg = f"the key {key!r} is there twice in one object; give what truearm wrote"
            raise InvalidArgument(msg)
        found[key] = value
    return found


def _parsed(text: bytes, file: Path) -> Any:  # noqa: ANN401 - whatever the file holds
    try:
        return json.loads(text, object_pairs_hook=distinct)
    except (ValueError, RecursionError) as error:
        if isinstance(error, InvalidArgument):
            raise
        msg = f"{file} is not JSON: {error}; write the table again"
        raise InvalidArgument(msg) from None


def _from_parquet(file: Path) -> Counts | None:
    with file.open("rb") as opened:  # the footer is at the end, and whoever has no Arrow has no such table
        opened.seek(max(0, file.stat().st_size - (1 << 22)))
        if _KEY not in opened.read():
            return None
    pa, pq = _arrow()
    try:
        kept = (pq.read_schema(file).metadata or {}).get(_KEY)
        if kept is None:
            return None
        rest = _parsed(kept, file)
        return Counts.from_dict(
            {**rest, "counts": rest.get("counts"), "arms": _arms(rest["arms"], pq.read_table(file))}
        )
    except InvalidArgument:
        raise
    except (pa.ArrowException, OSError, AttributeError, LookupError, TypeError, ValueError) as error:
        msg = f"{file} is not a table of counts, or is damaged: {error}; write the table again"
        raise InvalidArgument(msg) from None


def _arms(told: dict[str, dict[str, Any]], table: Any) -> dict[str, Any]:  # noqa: ANN401 - an Arrow table
    """Return what each arm has, bucket by bucket, in the order of the rows."""
    found = {arm: {**rest, **{key: [] for key in _COLUMNS}} for arm, rest in told.items()}
    for arm, *row in zip(*(table[key].to_pylist() for key in ("arm", *_COLUMNS)), strict=True):
        for key, value in zip(_COLUMNS, row, strict=True):
            found[arm][key].append(repr(value) if value in (math.inf, -math.inf) else value)
    return found


def _arrow() -> tuple[Any, Any]:
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ModuleNotFoundError:
        msg = "counts are written as Parquet by Arrow; install it with: pip install 'truearm[data]', or use JSON"
        raise InvalidArgument(msg) from None
