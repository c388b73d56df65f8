"""Kinds of files, by their endings or first bytes, and encodings of text, by theirs."""

import codecs
import io
import json
import zlib
from contextlib import suppress
from pathlib import Path

from truearm.errors import InvalidArgument
from truearm.world.dialect import raw

FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".xlsx": "excel",
    ".xlsm": "excel",
}
TEXT = {"csv": "CSV", "tsv": "TSV", "jsonl": "JSON lines"}
_PACKED = (".gz", ".zst")  # DuckDB unpacks these by itself, if there is text in them
GZIP = b"\x1f\x8b"
_BEGINNINGS = {b"PAR1": "parquet", b"ARROW1": "arrow", b"PK\x03\x04": "excel"}
_MARKS = {  # of byte order; those of UTF-32 begin with one of UTF-16
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def form_of(file: Path, kind: str | None) -> str:
    """Return what kind of file one is, as somebody said or by its ending."""
    known = sorted(set(FORMATS.values()))
    if kind is not None:
        if kind not in known:
            msg = f"kind must be one of {', '.join(known)}, but got {kind!r}"
            raise InvalidArgument(msg)
        return kind
    bare = file.with_suffix("") if file.suffix.lower() in _PACKED else file
    form = FORMATS.get(bare.suffix.lower())
    if file.suffix.lower() in (".bz2", ".xz", ".zip"):
        msg = f"{file.name!r} is packed in a way that is not unpacked here; unpack it, or pack it as .gz"
        raise InvalidArgument(msg)
    if file.suffix.lower() in (".duckdb", ".db", ".sqlite"):
        say = "query='select variant, ms from visits'"
        msg = f"{file.name!r} is a database; use duckdb://{file} with {say}"
        raise InvalidArgument(msg)
    if form is None:
        others = ", ".join(known)
        say = "kind='csv'"
        msg = f"the ending {file.suffix!r} of {file.name!r} is unknown; say {say} or another of {others}"
        raise InvalidArgument(msg)
    if bare != file and form not in TEXT:
        msg = f"{file.name!r} is packed, and only text is unpacked here; unpack it first"
        raise InvalidArgument(msg)
    return form


def kind_by_bytes(file: Path) -> str:
    r"""Return what a file without an ending is, by its beginning: CSV unless it says otherwise."""
    with file.open("rb") as opened:
        first = opened.readline(1 << 20)
        more = bool(opened.readline(1 << 20).strip())
    for mark, kind in _BEGINNINGS.items():
        if first.startswith(mark):
            return kind
    if first.lstrip()[:1] not in (b"{", b"["):
        return "csv"
    with suppress(ValueError):
        return "jsonl" if more and isinstance(json.loads(first), dict) else "json"
    return "json"


def encoding_in(start: bytes) -> str | None:
    """Return the encoding that the first four bytes of a text show, None if that is UTF-8, as far as they tell."""
    marked = next((name for mark, name in _MARKS.items() if start.startswith(mark)), None)
    if marked is not None or len(start) < 4:
        return marked
    even, odd = start[::2], start[1::2]
    if even == b"\0\0" and 0 not in odd:  # two letters of UTF-16 without a mark
        return "utf-16-be"
    return "utf-16-le" if odd == b"\0\0" and 0 not in even else None


def begins(file: Path) -> bytes:
    """Return the first bytes of a file, unpacked if they can be."""
    with suppress(OSError, EOFError, zlib.error), raw(file) as opened:
        return opened.read(4)
    return b""


def is_marked(file: Path) -> bool:
    """Tell whether a file begins with the mark of an encoding that is not UTF-8."""
    return encoding_in(begins(file)) is not None


def opened_text(file: Path, encoding: str = "utf-8-sig", errors: str = "strict") -> io.TextIOWrapper:
    r"""Open a file of text, unpacked, with its ends of lines as they are."""
    return io.TextIOWrapper(raw(file), encoding=encoding, errors=errors, newline="")
