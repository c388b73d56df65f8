"""Lay out a result for a terminal: colors by meaning, lines that fit; in a pipe it is plain text."""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from textwrap import fill
from typing import NamedTuple

import click

from truearm.claims.certificate import DECIDED, Status
from truearm.claims.gates import Gate
from truearm.claims.result import Ratio, Result
from truearm.report import tables
from truearm.report.numbers import PLAIN_UNIT, Unit

_MAX_WIDTH = 100  # columns of a paragraph
_MIN_CHART, _MAX_CHART = 16, 40  # columns
_MAX_CHART_ROWS = 25
_STYLES: Mapping[str, Mapping[str, object]] = {
    "best": {"fg": "green", "bold": True},
    "good enough": {"fg": "green"},
    "tied": {"fg": "yellow"},
    "may tie": {"fg": "yellow"},
    "candidate": {"fg": "yellow"},
    "excluded": {"dim": True},
}


class Screen(NamedTuple):
    """The size of the output, and whether it is a terminal and has colors."""

    width: int
    terminal: bool = False
    colors: bool = False
    height: int = 24

    @classmethod
    def here(cls, *, err: bool = False) -> "Screen":
        """Return the screen of standard output, or of standard error."""
        stream = sys.stderr if err else sys.stdout
        terminal = stream is not None and stream.isatty()
        colors = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        size = shutil.get_terminal_size((_MAX_WIDTH, 24))
        return cls(size.columns, terminal, colors, size.lines)

    def arrange(self, answer: Sequence[str], rest: Sequence[str]) -> str:
        """Return the answer first; on a terminal where it would scroll away, last."""
        parts = [part for part in (*answer, *rest) if part]
        if self.terminal and "\n\n".join(parts).count("\n") >= self.height - 1:
            parts = [part for part in (*rest, *answer) if part]
        return "\n\n".join(parts)

    def paint(self, text: str, **style: object) -> str:
        """Return text in a style, if there are colors."""
        return click.style(text, **style) if self.colors and text else text  # type: ignore[arg-type]

    def wrap(self, text: str, **style: object) -> str:
        """Return text as a paragraph that fits."""
        return self.paint(fill(text, min(_MAX_WIDTH, self.width), break_on_hyphens=False), **style)

    def bullets(self, lines: Sequence[str]) -> str:
        """Return sentences as a list."""
        width = min(_MAX_WIDTH, self.width)
        item = partial(fill, width=width, break_on_hyphens=False, initial_indent="- ", subsequent_indent="  ")
        return "\n".join(map(item, lines))

    def answer(self, lines: Sequence[str], result: Result, gate: Gate | None = None) -> str:
        """Return the lines of an answer, the first of which stands out."""
        color = "red" if result.status is Status.DOUBTFUL else "green" if result.status in DECIDED else "yellow"
        if gate is not None:
            color = {"PASS": "green", "FAIL": "red"}.get(gate.verdict, "yellow")
        style = {"fg": color, "bold": True} if self.terminal else {}
        return "\n".join((self.wrap(lines[0], **style), *map(self.wrap, lines[1:])))

    def table(self, rows: tables.Rows, result: Result, ratios: Sequence[Ratio], unit: Unit = PLAIN_UNIT) -> str:
        """Return the table of a race; on a terminal it fits, and intervals are drawn where there is room."""
        words = len(rows) > 2  # one command alone has no standing
        if not self.terminal:
            return tables.table(rows, words=words)
        lines = self._add_chart(tables.table(rows, self.width, words=words).split("\n"), result, ratios, unit)
        body = [
            self.paint(line, **_STYLES.get(row[-1], {})) for line, row in zip(lines[1:], rows[1:], strict=True)
        ]
        return "\n".join((self.paint(lines[0], dim=True), *body))

    def _add_chart(self, lines: Sequence[str], result: Result, ratios: Sequence[Ratio], unit: Unit) -> list[str]:
        taken = max(map(len, lines)) + 2
        room = min(_MAX_CHART, self.width - taken)
        if room < _MIN_CHART or not 2 < len(lines) <= _MAX_CHART_ROWS:
            return list(lines)
        plain = "utf" not in (sys.stdout.encoding or "").lower()
        mark = 1.0 if result.problem.rounds else None
        chart = tables.draw_spans(tables.spans(result, ratios, unit), room, mark=mark, plain=plain)
        if not chart:
            return list(lines)
        return [f"{line.ljust(taken)}{drawn}".rstrip() for line, drawn in zip(lines, chart, strict=True)]
