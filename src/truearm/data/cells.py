"""Cells of text as names and numbers, in the SQL of DuckDB: the one grammar of numbers in text.

A cell that is not a number is never read as another one: `1e400` is not infinity, and marks between thousands must
stand before three digits.
"""

import datetime
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from truearm.errors import InvalidArgument
from truearm.problem import as_number, check_choice, require

_ENDINGS = {
    "csv": ".csv",
    "tsv": ".tsv .tab",
    "parquet": ".parquet .pq",
    "jsonl": ".jsonl .ndjson",
    "json": ".json",
    "arrow": ".arrow .feather .ipc",
    "excel": ".xlsx .xlsm",
}
KINDS = {ending: kind for kind, endings in _ENDINGS.items() for ending in endings.split()}
_ABSENT = ("", "na", "n/a", "nan", "null", "none", "<na>")  # what programs write for a missing number
_BLANKS = "".join(filter(str.isspace, map(chr, range(0x3001))))  # `trim` of DuckDB leaves tabs and wide blanks
_NARROW = "\u00a0\u202f\u2009"  # blanks that stand between thousands, too
_NUMERIC = re.compile(r"BOOLEAN|U?(TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT)|FLOAT|DOUBLE|DECIMAL\(.*\)")
_DATES = (datetime.date, datetime.time, np.datetime64)


class Form(NamedTuple):
    """The format of a file, where its ending does not show it."""

    sep: str | None = None
    encoding: str | None = None
    decimal: str = "."
    thousands: str | None = None
    unreadable: Literal["error", "missing"] = "error"
    kind: str | None = None

    @classmethod
    def of(cls, **given: Any) -> "Form":  # noqa: ANN401 - the fields above
        """Return the form with these fields, None where one is not given."""
        form = cls(**{name: value for name, value in given.items() if value is not None})
        for name in ("sep", "decimal", "thousands"):
            mark = getattr(form, name)
            is_one = isinstance(mark, str) and re.fullmatch("[^\ud800-\udfff]", mark, re.DOTALL)
            require(mark is None or is_one, name, mark, "be one character, such as ','")
        require(form.decimal in ".,", "decimal", form.decimal, "be '.' or ','", "for another mark change the file")
        taken = f"{form.decimal}0123456789+-eE"
        is_free = form.thousands is None or form.thousands not in taken
        require(is_free, "thousands", form.thousands, f"not be any of {taken}, which numbers contain")
        check_choice("unreadable", form.unreadable, ("error", "missing"))
        check_choice("kind", form.kind, (*_ENDINGS, None))
        try:
            "".encode("utf-8" if form.encoding is None else form.encoding)
        except (LookupError, TypeError, ValueError):
            msg = f"encoding={form.encoding!r:.80} is unknown; name one such as 'latin-1', 'cp1252' or 'utf-16'"
            raise InvalidArgument(msg, "encoding", form.encoding) from None
        return form


PLAIN = Form()


def quote(column: str) -> str:
    """Return the name of a column as SQL."""
    return '"' + column.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def addresses(files: Iterable[Path]) -> str:
    """Return paths as SQL; no character in them is a wildcard."""
    names = (re.sub(r"([*?\[])", r"[\1]", file.absolute().as_posix()) for file in files)
    return f"[{', '.join(map(literal, names))}]"


def is_numeric(kind: str) -> bool:
    """Return True if a type of DuckDB holds numbers."""
    return _NUMERIC.fullmatch(kind) is not None


def trim(cell: str) -> str:
    """Return the SQL of a cell without surrounding blanks."""
    # the usual cell has none: this takes a tenth of the time of `trim`
    plain = f"unicode({cell}) BETWEEN 33 AND 126 AND unicode(({cell})[-1]) BETWEEN 33 AND 126"
    return f"CASE WHEN {plain} THEN {cell} ELSE trim({cell}, '{_BLANKS}') END"


def select_numbers(others: Mapping[str, str], cell: str, source: str, form: Form) -> str:
    """Return the query for the numbers in cells of text, whether a cell is not one, and other columns.

    A number is NULL where a cell is missing or not a number. Inner queries compute what outer ones use twice.
    """
    names = "".join(f"{name}, " for name in others)
    query = "".join(f"{other} AS {name}, " for name, other in others.items())
    query = f"SELECT {query}{cell} AS cell FROM {source}"
    # without nullif DuckDB raises (duckdb#23818)
    cast = f"TRY_CAST(nullif({_digits('cell', form)}, '') AS DOUBLE)"
    query = f"SELECT {names}cell, {cast} AS number FROM ({query})"
    query = f"SELECT {names}cell, {_check_cast('cell', form, 'number')} AS value FROM ({query})"
    # a pattern, because IN becomes a join, and a join does not keep the order of rows
    absent = f"(cell IS NULL OR regexp_full_match(lower({trim('cell')}), {literal('|'.join(_ABSENT))}))"
    bad = f"CASE WHEN value IS NULL THEN NOT {absent} ELSE false END"
    return f"SELECT {names}value, {bad} AS bad FROM ({query})"


def _digits(cell: str, form: Form) -> str:
    """Return the SQL of a cell with its marks as in 1234.5."""
    text = trim(cell)
    if form.thousands == " ":
        text = trim(f"translate({cell}, '{_NARROW}', '{' ' * len(_NARROW)}')")
    if form.thousands is not None:
        mark, point = re.escape(form.thousands), re.escape(form.decimal)
        pattern = rf"[-+]?[0-9]{{1,3}}(?:{mark}[0-9]{{2,3}})*{mark}[0-9]{{3}}(?:{point}[0-9]*)?"  # lakhs too
        grouped = f"regexp_full_match({text}, {literal(pattern)})"
        mark = literal(form.thousands)
        text = f"CASE WHEN {grouped} OR NOT contains({text}, {mark}) THEN replace({text}, {mark}, '') END"
    if form.decimal == ",":
        text = f"replace(replace({text}, '.', '?'), ',', '.')"
    elif form.thousands is None:
        return cell  # casting ignores blanks
    return text


def _check_cast(cell: str, form: Form, cast: str) -> str:
    """Return the SQL of a cast where it read what is written."""
    text = _digits(cell, form)
    false = f"isnan({cast}) OR contains({text}, '_') OR (isinf({cast}) AND NOT contains(lower({text}), 'inf'))"
    word = f"CASE lower({trim(cell)}) WHEN 'true' THEN 1.0::DOUBLE WHEN 'false' THEN 0.0::DOUBLE END"
    if text == cell:
        bare = f"TRY_CAST(nullif({trim(cell)}, '') AS DOUBLE)"
        word = f"coalesce({word}, CASE WHEN NOT contains({cell}, '_') AND isfinite({bare}) THEN {bare} END)"
    return f"CASE WHEN {cast} IS NULL THEN {word} WHEN {false} THEN NULL ELSE {cast} END"


def as_float(cell: object) -> float | None:
    """Return the number in a cell that is not text, NaN if it is missing, None if it is not a number."""
    if cell is None or type(cell).__name__ == "NAType":  # pandas.NA
        return math.nan
    if isinstance(cell, _DATES) or np.ndim(cell):  # type: ignore[arg-type]
        return None
    try:
        return as_number("cell", cell, "", boolean=True)
    except InvalidArgument:
        return None


def bad_cell(cell: object, row: int, column: str) -> InvalidArgument:
    """Return the error for a cell that is not a number; no remedy in it changes what other cells say."""
    shown = " ".join(repr(cell).split())
    msg = f"row {row} of column {column!r} must be a number, but got {shown:.60}; correct it; for a file, "
    msg += "name its marks (decimal=',' or thousands=','), use unreadable='missing', or convert it in a query"
    return InvalidArgument(msg, "value")
