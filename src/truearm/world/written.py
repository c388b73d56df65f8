"""How numbers are written in text files: decimal commas, thousands, signs of money, yes and no, durations.

Nothing is guessed: a cell that is no plain number is an error that names the argument which would read it. Cells
are read here in Python, and by an expression of SQL that reads the same cells the same way.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from truearm.errors import InvalidArgument, given
from truearm.world.cells import not_a_number

ABSENT = ("", "na", "n/a", "nan", "null", "none", "<na>")  # what programs write for a missing number
DIGITS_FIRST = r"^[-+]?[^A-Za-z0-9]?\s*[0-9]"  # a number, however written, and no name
_DIGITS = "[0-9](?:_?[0-9])*"  # as in 1_000, which Python and DuckDB both read
_NUMBER = re.compile(
    rf"[-+]?(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:e[-+]?{_DIGITS})?|[-+]?inf(?:inity)?", re.IGNORECASE
)
_DURATION = re.compile(  # pandas writes 0 days 00:02:12, Python 1 day, 0:02:12
    r"(?:([-+]?)|([0-9]+) days?,? )(?:([0-9]+):)?([0-9]+):([0-9]{1,2}(?:\.[0-9]+)?)"
)
_AROUND = (  # what `str.strip` takes away; a bare `trim` of DuckDB leaves tabs
    "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \x85\xa0\u1680"
    "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
_BLANKS = "\u00a0\u202f\u2009"  # kinds of blanks that stand between thousands, too
_BOOLEANS = {"true": 1.0, "false": 0.0}
_TWO_WAYS = re.compile(r"[-+]?[0-9]{1,3},[0-9]{3}")  # a thousand, or a decimal
_WORDS = ("yes", "y", "t", "pass", "passed", "ok", "success", "won", "converted")  # that stand for a success
_OPPOSITES = {
    "no": "yes",
    "n": "y",
    "f": "t",
    "fail": "pass",
    "failed": "passed",
    "failure": "success",
    "lost": "won",
}


class Written(NamedTuple):
    """How a text file is written, where that is not plain."""

    sep: str | None = None
    """What stands between cells; None: found out, of comma, semicolon, tab and bar."""
    encoding: str | None = None
    """As Python names it; None: UTF-8, or UTF-16 if the file begins with its mark."""
    decimal: str = "."
    thousands: str | None = None
    strip: str | None = None
    """What stands beside a number and is no part of it, such as $, % or ms."""
    true: str | None = None
    """The word that counts as 1; every other one counts as 0."""
    durations: bool = False
    """Whether 00:10:13 is a number of seconds."""

    def checked(self) -> "Written":
        """Return what is written, or say what cannot be."""
        for name, mark in (("sep", self.sep), ("decimal", self.decimal), ("thousands", self.thousands)):
            if mark is not None and (not isinstance(mark, str) or len(mark) != 1):
                msg = f"{name} must be one character, such as ',', but got {mark!r}"
                raise InvalidArgument(msg)
        if self.decimal not in (".", ","):
            msg = f"decimal must be '.' or ',', but got {self.decimal!r}; for another mark change the file"
            raise InvalidArgument(msg)
        if self.thousands is not None and (self.thousands == self.decimal or self.thousands in "0123456789+-eE"):
            msg = f"{given(thousands=self.thousands)} cannot be told from the rest of a number; name another mark"
            raise InvalidArgument(msg)
        if self.encoding is not None:
            try:
                "".encode(self.encoding)
            except (LookupError, TypeError):
                msg = (
                    f"{given(encoding=self.encoding)} is unknown; name one such as 'latin-1', 'cp1252' or 'utf-16'"
                )
                raise InvalidArgument(msg) from None
        return self

    @property
    def plain(self) -> bool:
        """Whether numbers are written as everywhere."""
        return self[2:] == _PLAIN[2:]

    def number(self, text: str) -> float | None:
        """Return the number in a cell, NaN if it is empty, None if there is none."""
        bare = (
            text.translate(dict.fromkeys(map(ord, _BLANKS), " ")).strip()
            if self.thousands == " "
            else text.strip()
        )
        if bare.lower() in ABSENT:
            return math.nan
        if self.true is not None:
            return float(bare.lower() == self.true.strip().lower())
        if self.strip:
            bare = bare.replace(self.strip, "").strip()
        if self.durations and (found := _DURATION.fullmatch(bare)):
            sign, days, hours, minutes, seconds = found.groups()
            whole = 86400.0 * int(days or 0) + 3600.0 * int(hours or 0) + 60.0 * int(minutes) + float(seconds)
            return -whole if sign == "-" else whole
        if bare.lower() in _BOOLEANS:
            return _BOOLEANS[bare.lower()]
        if self.thousands and self.thousands in bare:
            if not re.fullmatch(self._grouped(), bare):
                return None
            bare = bare.replace(self.thousands, "")
        if self.decimal != ".":
            bare = bare.replace(".", "?").replace(self.decimal, ".")
        return float(bare) if _NUMBER.fullmatch(bare) else None

    def _grouped(self) -> str:
        """Return what a number with marks between its thousands looks like; lakhs have groups of two before."""
        mark, point = re.escape(str(self.thousands)), re.escape(self.decimal)
        return rf"[-+]?[0-9]{{1,3}}(?:{mark}[0-9]{{2,3}})*{mark}[0-9]{{3}}(?:{point}[0-9]*)?"

    def sql(self, cell: str) -> str:
        """Return `number` as an SQL expression for a text column; NULL for empty and for invalid cells."""
        if self.thousands == " ":
            cell = f"translate({cell}, '{_BLANKS}', '{' ' * len(_BLANKS)}')"
        bare = trimmed(cell)
        if self.true is not None:
            word = _literal(self.true.strip().lower())
            absent = ", ".join(map(_literal, ABSENT))
            return f"CASE WHEN lower({bare}) IN ({absent}) THEN NULL ELSE (lower({bare}) = {word})::DOUBLE END"
        if self.strip:
            bare = trimmed(f"replace({bare}, {_literal(self.strip)}, '')")
        number = cell if self.plain else bare
        if self.thousands:
            grouped = f"regexp_full_match({number}, {_literal(self._grouped())})"
            without = f"replace({number}, {_literal(self.thousands)}, '')"
            number = (
                f"CASE WHEN {grouped} OR NOT contains({number}, {_literal(self.thousands)}) THEN {without} END"
            )
        if self.decimal != ".":
            number = f"replace(replace({number}, '.', '?'), {_literal(self.decimal)}, '.')"
        read = [f"TRY_CAST(nullif({number}, '') AS DOUBLE)"]  # nullif: duckdb#23818, a bare TRY_CAST raises
        read.append(f"list_position(['false', 'true'], lower({bare})) - 1")  # CASE would be computed for all cells
        if self.plain:
            read.append(f"TRY_CAST(nullif({bare}, '') AS DOUBLE)")
        if self.durations:
            matched = f"regexp_full_match({bare}, {_literal(_DURATION.pattern)})"
            read.append(f"CASE WHEN {matched} THEN {_seconds(bare)} END")
        number, *words = read
        # one `coalesce` of them all would look for words in every cell: a third of the time
        return f"CASE WHEN {number} IS NULL THEN coalesce({', '.join(words)}) ELSE {number} END"


_PLAIN = Written()


def trimmed(cell: str) -> str:
    """Return a cell without what stands around it, as an expression of SQL: what `str.strip` takes away."""
    plain = (
        f"unicode({cell}) BETWEEN 33 AND 126 AND unicode(({cell})[-1]) BETWEEN 33 AND 126"  # a tenth of the time
    )
    return f"CASE WHEN {plain} THEN {cell} ELSE trim({cell}, '{_AROUND}') END"


def _seconds(bare: str) -> str:
    part = [f"regexp_extract({bare}, {_literal(_DURATION.pattern)}, {i})" for i in range(1, 6)]
    days, hours = (f"coalesce(TRY_CAST(nullif({cell}, '') AS DOUBLE), 0)" for cell in part[1:3])
    whole = f"86400 * {days} + 3600 * {hours} + 60 * CAST({part[3]} AS DOUBLE) + CAST({part[4]} AS DOUBLE)"
    return f"(CASE WHEN {part[0]} = '-' THEN -1 ELSE 1 END) * ({whole})"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


_BESIDE = re.compile(r"[-+]?\s*([^\s0-9.,+-]+)?\s*([-+]?[0-9][0-9., '_]*?)\s*([^\s0-9.,'_-]+)?")


def beside(cell: str) -> str:
    """Return what stands beside the number of a cell."""
    sign = _BESIDE.fullmatch(cell.strip())
    return (sign[1] or sign[3] or "") if sign else ""


def remedy(cell: str) -> str | None:
    """Return which argument would read a cell that is no plain number, None if none would."""
    bare = cell.strip().translate(dict.fromkeys(map(ord, _BLANKS), " "))
    if bare.lower() in (*_WORDS, *_OPPOSITES):
        return given(true=_OPPOSITES.get(bare.lower(), bare))
    if _DURATION.fullmatch(bare):
        return given(durations=True)
    sign = _BESIDE.fullmatch(bare)
    if not sign or (sign[1] and sign[3]):
        return None
    found = {"strip": beside(bare)} if beside(bare) else {}
    marks = _marks(sign[2])
    if marks is None or not (found or marks):
        return None
    if _TWO_WAYS.fullmatch(sign[2]):
        bare = sign[2]
        whole, parted = given(**found, thousands=","), given(**found, decimal=",")
        return f"{whole} if it is {bare.replace(',', '')}, {parted} if it is {bare.replace(',', '.')}"
    return given(**found, **marks)


def _marks(digits: str) -> dict[str, str] | None:
    """Return how the marks in a number are to be named, None if they make no sense."""
    if re.fullmatch(r"[-+]?[0-9]+(\.[0-9]+)?", digits):
        return {}
    for decimal, thousands in ((".", "[,' _]"), (",", "[.' _]")):
        point = re.escape(decimal)
        if found := re.fullmatch(
            rf"[-+]?[0-9]{{1,3}}(?:({thousands})[0-9]{{3}})(?:\1[0-9]{{3}})*({point}[0-9]+)?", digits
        ):
            if decimal == "," and not found[2] and found[1] != ".":
                continue
            named = {"decimal": decimal} if decimal == "," else {}
            return {**named, "thousands": found[1]}
    return {"decimal": ","} if re.fullmatch(r"[-+]?[0-9]*,[0-9]+", digits) else None


def no_number(cell: object, row: int, column: str, written: Written) -> str:
    """Return what to say of a cell that holds no plain number, and what would read it."""
    known = remedy(cell) if isinstance(cell, str) else None
    if known is not None and written.strip and beside(str(cell)) not in ("", written.strip):
        return (
            f"row {row} of column {column!r} is {cell!r}, but other cells have {written.strip!r} beside their "
            "number; write all of them in one unit"
        )
    if known is None and isinstance(cell, str) and re.fullmatch(r"\(.*[0-9].*\)", cell.strip()):
        return f"row {row} of column {column!r} is {cell!r}; write a number below zero with a minus before it"
    if known is None:
        return not_a_number(cell, row, column)
    return (
        f"row {row} of column {column!r} is {cell!r}, which is not a plain number; to read such cells, say {known}"
    )


def check_true(words: Sequence[str], true: str, columns: Sequence[str]) -> None:
    """Raise if the word that counts as 1 is none of several that stand there: then all would count as 0."""
    if len(words) > 1 and true.strip().lower() not in map(str.lower, words):
        shown = ", ".join(map(repr, words[:5])) + (", ..." if len(words) > 5 else "")
        where = f"column {columns[0]!r}" if len(columns) == 1 else "the file"
        msg = f"{given(true=true)} is in no cell of {where}, so that all would count as 0; its words are {shown}"
        raise InvalidArgument(msg)


class Form(NamedTuple):
    """How files are written, where that is not plain, and what of them is left out."""

    written: Written = Written()
    kind: str | None = None
    drop_unnamed: bool = False

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> "Form":
        """Return what somebody said by name, None where they said nothing."""
        told = {name: value for name, value in said.items() if value is not None}
        rest = {name: told.pop(name) for name in ("kind", "drop_unnamed") if name in told}
        return cls(Written(**told).checked(), **rest)

    @property
    def said(self) -> dict[str, Any]:
        """What is said about text, by name."""
        changed = {name: x for name, x in self.written._asdict().items() if x != Written._field_defaults[name]}
        return {**changed, **({"kind": self.kind} if self.kind else {})}


PLAIN = Form()
