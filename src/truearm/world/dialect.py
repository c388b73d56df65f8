r"""How a CSV or TSV file is written, by its first lines: said to DuckDB and to Python's reader, which read alike.

Nothing is left to a guess by a sample: what first stands further down (a quote, a mark) would be read as another
thing, or not at all. Cells are quoted by ", in which "" is a quote, or \" if the first lines have that. Above the
names of the columns lines may be blank or begin with #, and the first may be sep= and a mark; below them # is a
letter like any other.
"""

import csv
import gzip
import io
import re
import zlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from truearm.errors import InvalidArgument

NO_ROWS = "the file has no rows of data; check that its first line names the columns"
_HEADS = (1 << 16, 1 << 22)  # bytes that are looked at, and if names do not end there: ten thousand of them do
_SEPARATORS = ",;\t|"
_ESCAPED = re.compile(r'\\"(?!\s*(?:[,;\t|\r\n]|$))')  # at the end of a cell \" may be a path and a quote
_BODIES = (re.compile(r'(?:""|[^"])*'), re.compile(r'(?:\\.|[^"\\])*', re.DOTALL))  # of a cell between quotes
_SAID = re.compile(r'"?sep=(.)"?')  # Excel writes so what separates cells
_NUMBER = re.compile(r"\s*[-+]?[0-9.][0-9.eE+-]*\s*")


class Dialect(NamedTuple):
    """What has to be known of a file to read its cells."""

    sep: str | None = None
    """None: nobody can look into the file, so that DuckDB has to find out."""
    escape: str = '"'
    above: int = 0
    """Lines before the names of the columns."""
    names: tuple[str, ...] = ()
    """Of the columns, as they stand there; empty if that cannot be seen."""

    @classmethod
    def of(cls, file: Path, form: str, sep: str | None = None, wanted: Collection[str] = ()) -> "Dialect":
        """Return how a file is written.

        Parameters
        ----------
        form
            "csv" or "tsv".
        sep
            What stands between cells, if somebody said it.
        wanted
            Columns that are asked for: a line that names them holds the names, even if it begins with #.
        """
        for size in _HEADS:
            text = head(file, size)
            known = cls._in(text, file.name, sep or ("\t" if form == "tsv" else None), wanted)
            if known.names or len(text) < size // 4:
                break
        return known

    @classmethod
    def _in(cls, text: str, file: str, sep: str | None, wanted: Collection[str]) -> "Dialect":
        above, first = 0, ""
        marked = ""
        for line in io.StringIO(text, newline=""):
            if not above and (said := _SAID.fullmatch(line.rstrip("\r\n"))):
                sep, above = sep or said[1], 1
                continue
            first = line.strip()
            if first and (not first.startswith("#") or (wanted and _names(line, sep) >= set(wanted))):
                break
            marked, above, first = marked or first, above + 1, ""
        if text and not first:
            raise InvalidArgument(NO_ROWS)
        rest = "".join(islice(io.StringIO(text, newline=""), above, None))
        found = sep or (_separator(rest) if text else None)
        if marked and first and all(map(_NUMBER.fullmatch, first.split(found))):
            msg = (
                f"the first line of {file!r} without a # holds numbers, {first[:60]!r}; if columns are named "
                f"in {marked[:60]!r}, take the # away, and else name them in a line of their own"
            )
            raise InvalidArgument(msg)
        named, names_at = set(wanted), _names(marked.lstrip("# "), sep)
        if marked and named and names_at >= named and not _names(first, found) >= named:
            msg = f"the columns of {file!r} are named in {marked[:60]!r}, which begins with a #; take the # away"
            raise InvalidArgument(msg)
        known = cls(found, "\\" if _ESCAPED.search(text) else '"', above)
        with suppress(csv.Error):
            whole = len(text) < _HEADS[0] // 4 or "\n" in rest or "\r" in rest
            names: list[str] = next(known.rows(io.StringIO(text, newline="")), []) if whole else []
            return known._replace(names=tuple(name.strip() for name in names))
        return known

    def sql(self) -> str:
        """Return the same as options of DuckDB."""
        options = f"quote = '\"', escape = '{self.escape}', comment = '', skip = {self.above}"
        separator = (self.sep or "").replace("'", "''")
        return f"{options}, delim = '{separator}'" if self.sep else options

    def columns(self, *, named: bool = False) -> list[str]:
        """Return names that can be told apart, made as DuckDB makes them.

        Parameters
        ----------
        named
            Only of columns that have a name: programs write the number of a row into one without.
        """
        found: dict[str, str] = {}
        for i, name in enumerate(self.names):
            distinct, n = name or f"column{i}", 0
            while distinct.casefold() in found:
                n += 1
                distinct = f"{name}_{n}"
            found[distinct.casefold()] = distinct
        return [name for name, told in zip(found.values(), self.names, strict=True) if told or not named]

    def rows(self, text: Iterable[str]) -> Any:  # noqa: ANN401 - of csv, which does not name it
        """Return a reader of the lines of a file, which gives the names first."""
        lines = _plainly_quoted(islice(text, self.above, None), self.sep or ",", escaped=self.escape == "\\")
        return csv.reader(lines, delimiter=self.sep or ",", strict=True)


def raw(file: Path) -> gzip.GzipFile | io.BufferedReader:
    r"""Open a file for its bytes, unpacked."""
    return gzip.open(file) if file.suffix.lower() == ".gz" else file.open("rb")


def head(file: Path, size: int = _HEADS[0]) -> str:
    """Return the beginning of a file of text; nothing if it is packed in a way that only DuckDB unpacks."""
    if file.suffix.lower() == ".zst":
        return ""
    with suppress(OSError, EOFError, zlib.error), raw(file) as opened:
        return opened.read(size).decode("utf-8-sig", errors="replace")
    return ""


def _separator(text: str) -> str:
    """Return what separates the names of columns: what is between quotes does not count."""
    bare = re.sub(r'"[^"]*"', "", text).lstrip("\r\n")
    top = re.split(r"[\r\n]", bare, maxsplit=1)[0]
    return max(_SEPARATORS, key=top.count)


def _names(line: str, sep: str | None) -> set[str]:
    with suppress(csv.Error):
        return {cell.strip() for cell in next(csv.reader([line], delimiter=sep or _separator(line)), [])}
    return set()


def _plainly_quoted(lines: Iterable[str], sep: str, *, escaped: bool) -> Iterator[str]:
    """Give lines of which Python's reader makes what DuckDB makes of them as they are.

    One blank before a quote is skipped, and all behind one; only between quotes a letter may be escaped.
    """
    within, quote = False, ('"',) if sep == " " else ('"', ' "')
    behind = re.compile(rf'^" +(?={re.escape(sep)}|\n|$)')
    for line in lines:
        if not within and '"' not in line:
            yield line
            continue
        told, at = list[str](), 0
        while at < len(line):
            if within:
                body = _BODIES[escaped].match(line, at)
                assert body is not None
                told.append(re.sub(r"\\(.)", _unescaped, body[0], flags=re.DOTALL) if escaped else body[0])
                at = body.end()
                within = not line.startswith('"', at)
            elif line.startswith(quote, at):
                told.append('"')
                at, within = line.index('"', at) + 1, True
                continue
            if escaped and line.startswith('""', at):
                msg = 'quotes inside quotes are written both \\" and ""'
                raise csv.Error(msg)
            end = line.find(sep, at) + len(sep)
            end = len(line) if within or end < at + len(sep) else end
            told.append(behind.sub('"', line[at:end]) if line.startswith('" ', at) else line[at:end])
            at = end
        yield "".join(told)


def _unescaped(found: re.Match[str]) -> str:
    return '""' if found[1] == '"' else found[1]
