"""Tables of counts as files: JSON, and Parquet with one row per arm and bucket that holds readings."""

import json
from importlib import import_module
from pathlib import Path
from typing import Any

from truearm.errors import InvalidArgument
from truearm.evidence.counts import VERSION, Counts

_KEY = b"truearm.counts"
_PARQUET = (".parquet", ".pq")


def write(counts: Counts, path: str | Path) -> None:
    """Write a table of counts; the ending says how.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(Counts.of({"A": [1.0, 2.0]}), Path(folder, "counts.parquet"))
    ...     read(Path(folder, "counts.parquet")).n
    {'A': 2}
    """
    data = counts.to_dict()
    if Path(path).suffix not in _PARQUET:
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


def read(path: str | Path) -> Counts | None:
    """Return the table of counts in a file, None if the file is something else.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(Counts.of({"A": [1.0, 2.0]}), Path(folder, "counts.json"))
    ...     read(Path(folder, "counts.json")).n, read(Path(folder, "other.json"))
    ({'A': 2}, None)
    """
    file = Path(path)
    if not file.is_file():
        return None
    if file.suffix == ".json":
        with file.open("rb") as opened:
            if not opened.read(64).lstrip().startswith(b'{"counts"'):
                return None
        try:
            return Counts.from_dict(json.loads(file.read_text(encoding="utf-8")))
        except ValueError as error:
            if isinstance(error, InvalidArgument):
                raise
            msg = f"{file} is not JSON: {error}"
            raise InvalidArgument(msg) from None
    return _from_parquet(file) if file.suffix in _PARQUET else None


def _from_parquet(file: Path) -> Counts | None:
    with file.open("rb") as opened:  # the footer is at the end, and whoever has no Arrow has no such table
        opened.seek(max(0, file.stat().st_size - (1 << 22)))
        if _KEY not in opened.read():
            return None
    _, pq = _arrow()
    table = pq.read_table(file)
    rest: dict[str, Any] = json.loads(table.schema.metadata[_KEY])
    names = table["arm"].to_pylist()
    parts = {key: table[key].to_pylist() for key in ("bucket", "count", "low", "high")}
    for name, arm in rest["arms"].items():
        arm.update(
            {key: [x for x, owner in zip(parts[key], names, strict=True) if owner == name] for key in parts}
        )
    return Counts.from_dict({**rest, "counts": rest.get("counts", VERSION)})


def _arrow() -> tuple[Any, Any]:
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ModuleNotFoundError:
        msg = "counts are written as Parquet by Arrow; install it with: pip install 'truearm[data]', or use JSON"
        raise InvalidArgument(msg) from None
