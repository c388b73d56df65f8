"""What a race looks like on a terminal: the answer first, colors by meaning, intervals beside the table.

What is said comes from elsewhere; in a pipe it is plain text.
"""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from textwrap import fill
from typing import NamedTuple

import click

from truearm.claims.certificate import DECIDED, Status
from truearm.claims.ratios import Ratio
from truearm.claims.result import Result
from truearm.report import tables

_WIDEST = 100  # columns of a paragraph: longer lines are hard to read
_LEAST_CHART, _MOST_CHART = 16, 40  # columns: less shows nothing, more nothing new
_MEANING: Mapping[str, Mapping[str, object]] = {
    "best": {"fg": "green", "bold": True},
    "good enough": {"fg": "green"},
    "tied": {"fg": "yellow"},
    "may tie": {"fg": "yellow"},
    "candidate": {"fg": "yellow"},
    "excluded": {"dim": True},
}


class Screen(NamedTuple):
    """What text is made for: how wide it may be, whether it is a terminal, and whether that has colors."""

    width: int
    terminal: bool = False
    colors: bool = False
    height: int = 24

    @classmethod
    def here(cls, *, err: bool = False) -> "Screen":
        """Return what standard output is, or standard error."""
        stream = sys.stderr if err else sys.stdout
        terminal = stream is not None and stream.isatty()
        colors = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        size = shutil.get_terminal_size((_WIDEST, 24))
        return cls(size.columns, terminal, colors, size.lines)

    def arrange(self, answer: Sequence[str], rest: Sequence[str]) -> str:
        """Return the answer first; on a terminal where it would scroll away, last."""
        parts = [part for part in (*answer, *rest) if part]
        if self.terminal and "\n\n".join(parts).count("\n") >= self.height - 1:
            parts = [part for part in (*rest, *answer) if part]
        return "\n\n".join(parts)

    def painted(self, words: str, **style: object) -> str:
        """Return words in a style, if there are colors."""
        return click.style(words, **style) if self.colors and words else words  # type: ignore[arg-type]

    def filled(self, words: str, **style: object) -> str:
        """Return words as a paragraph that fits."""
        return self.painted(fill(words, min(_WIDEST, self.width), break_on_hyphens=False), **style)

    def listed(self, lines: Sequence[str]) -> str:
        """Return sentences below each other, each as one item."""
        width = min(_WIDEST, self.width)
        item = partial(fill, width=width, break_on_hyphens=False, initial_indent="- ", subsequent_indent="  ")
        return "\n".join(map(item, lines))

    def answer(self, pieces: Sequence[str], result: Result) -> str:
        """Return the answer, which stands out, and below it what it rests on."""
        color = "red" if result.status is Status.DOUBTFUL else "green" if result.status in DECIDED else "yellow"
        first = self.filled(pieces[0], fg=color, bold=True) if self.terminal else self.filled(pieces[0])
        return "\n".join((first, *map(self.filled, pieces[1:])))

    def table(self, rows: Sequence[tables.Row], result: Result, ratios: Sequence[Ratio]) -> str:
        """Return the table of a race; on a terminal it fits, and intervals are drawn where there is room."""
        words = len(rows) > 2  # of one command alone there is no standing
        if not self.terminal:
            return tables.table(rows, words=words)
        lines = tables.table(rows, self.width, words=words).split("\n")
        lines = self._with_chart(lines, result, ratios)
        painted = [self.painted(lines[0], dim=True)]
        for line, row in zip(lines[1:], rows[1:], strict=True):
            painted.append(self.painted(line, **_MEANING.get(row.standing, {})))
        return "\n".join(painted)

    def _with_chart(self, lines: Sequence[str], result: Result, ratios: Sequence[Ratio]) -> list[str]:
        taken = max(map(len, lines)) + 2
        room = min(_MOST_CHART, self.width - taken)
        if room < _LEAST_CHART or len(lines) > 25:
            return list(lines)
        plain = "utf" not in (sys.stdout.encoding or "").lower()
        mark = 1.0 if result.problem.rounds else None
        chart = tables.draw_spans(tables.spans(result, ratios), room, mark=mark, plain=plain)
        return (
            [f"{a.ljust(taken)}{b}".rstrip() for a, b in zip(lines, chart, strict=True)] if chart else list(lines)
        )
