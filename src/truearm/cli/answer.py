"""Show the result of a verb: as text, as JSON, in files, and as an exit code.

0  decided: certified, separated or good enough, or it is known which arms beat the control; no gate failed
1  a gate failed: the named command lost, or another one is worse than the baseline
2  wrong usage, or a command failed
3  not decided: indistinguishable, a gate that is UNSURE, or the budget ended first
4  doubtful: the readings contradict an assumption; with --strict also after an alarm
"""

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from textwrap import fill
from types import ModuleType
from typing import Any, NamedTuple

import click

from truearm.claims.certificate import DECIDED, Status
from truearm.claims.gates import Gate
from truearm.claims.result import Analysis, Ratio, Result
from truearm.cli.errors import ERROR, Failure, show_error
from truearm.commands.terminal import is_terminal
from truearm.errors import printable
from truearm.report import tables, words
from truearm.report.export import csv_text, json_text
from truearm.report.svg import Span

GOOD, FAILED, _, UNDECIDED, DOUBTFUL = range(5)
FORMS = ("json", "csv", "markdown", "html")
_TITLES = {FAILED: "A gate failed", UNDECIDED: "Not decided", DOUBTFUL: "Doubtful"}
_MAX_WIDTH = 100  # columns of a paragraph
_MIN_CHART, _MAX_CHART = 16, 40  # columns
_MAX_CHART_ROWS = 25
_STYLES: Mapping[str, Mapping[str, Any]] = {
    "best": {"fg": "green", "bold": True},
    "good enough": {"fg": "green"},
    "tied": {"fg": "yellow"},
    "may tie": {"fg": "yellow"},
    "candidate": {"fg": "yellow"},
    "excluded": {"dim": True},
}


class Screen(NamedTuple):
    """The size of the output, and whether it is a terminal and has colors; in a pipe it is plain text."""

    width: int = _MAX_WIDTH
    terminal: bool = False
    colors: bool = False
    height: int = 24

    @classmethod
    def here(cls, *, err: bool = False) -> "Screen":
        """Return the screen of standard output, or of standard error."""
        stream = sys.stderr if err else sys.stdout
        terminal = is_terminal(stream)
        colors = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        size = shutil.get_terminal_size((_MAX_WIDTH, 24))
        return cls(size.columns, terminal, colors, size.lines)

    def arrange(self, answer: Iterable[str], rest: Sequence[str] = ()) -> str:
        """Return paragraphs, the answer first; on a terminal where it would scroll away, last."""
        first, parts = "\n".join(answer), [part for part in rest if part]
        if self.terminal and "\n\n".join([first, *parts]).count("\n") >= self.height - 1:
            return "\n\n".join([*parts, first])
        return "\n\n".join([first, *parts])

    def lay_out(self, lines: Iterable[str], rows: tables.Rows, notes: Iterable[str] = ()) -> str:
        """Return sentences, a table and notes."""
        rest = [self.table(rows), *(self.wrap(note, dim=True) for note in notes)]
        return self.arrange(map(self.wrap, lines), rest)

    def paint(self, text: str, **style: Any) -> str:  # noqa: ANN401 - of click
        """Return text in a style, if there are colors."""
        return click.style(text, **style) if self.colors and text and style else text

    def wrap(self, text: str, *, indent: str = "", **style: Any) -> str:  # noqa: ANN401
        """Return text as a paragraph that fits, its first line after `indent`."""
        width, rest = min(_MAX_WIDTH, self.width), " " * len(indent)
        wrapped = fill(text, width, initial_indent=indent, subsequent_indent=rest, break_on_hyphens=False)
        return self.paint(wrapped, **style)

    def table(self, rows: tables.Rows) -> str:
        """Return rows as a table, which fits on a terminal."""
        return tables.table(rows, self.width if self.terminal else None) if rows else ""

    def arm_table(self, rows: tables.Rows, chart: Sequence[Span], *, mark: float | None) -> str:
        """Return the table of arms, colored by standing, with intervals drawn where there is room."""
        lines = self.table(rows).split("\n")
        if not self.terminal:
            return "\n".join(lines)
        taken = max(map(len, lines)) + 2
        room = min(_MAX_CHART, self.width - taken)
        if room >= _MIN_CHART and len(lines) == len(chart) + 1 and 2 < len(lines) <= _MAX_CHART_ROWS:
            plain = "utf" not in (sys.stdout.encoding or "").lower()
            drawn = tables.draw_spans(chart, room, mark=mark, plain=plain) or [""] * len(lines)
            lines = [f"{line.ljust(taken)}{part}".rstrip() for line, part in zip(lines, drawn, strict=True)]
        styles = [_STYLES.get(row[-1].partition(" by ")[0], {}) for row in rows[1:]]
        painted = zip(lines, [{"dim": True}, *styles], strict=True)
        return "\n".join(self.paint(line, **style) for line, style in painted)


class Answer(NamedTuple):
    """The result of a verb, and functions that make each form of it."""

    text: Callable[[Screen], str]
    code: int
    forms: Mapping[str, Callable[[], str]]  # those of `FORMS` that the verb offers
    headline: str = ""


def pages() -> ModuleType:
    """Import and return the module that makes pages, which most verbs start without."""
    from truearm.report import pages

    return pages


def show(ctx: click.Context, answer: Answer, *, silent: bool = False) -> int:
    """Print an answer unless it is `silent`, write the files that options name, and return the exit code.

    It is 2 if a file cannot be written.
    """
    options = ctx.params
    files = {form: path for form in FORMS if (path := options.get(f"export_{form}")) is not None}
    aside = "-" in files.values()  # nothing else may be printed next to a document
    if not silent:
        form = next((answer.forms[form] for form in FORMS if options.get(form)), None)
        click.echo(form().rstrip("\n") if form else answer.text(Screen.here(err=aside)), err=aside)
    done = True
    for name, path in files.items():
        made = answer.forms[name]().rstrip("\n")
        if path == "-":
            click.echo(made)
        else:
            done &= export(path, partial(write, path, f"{made}\n"))
    if options.get("github_summary"):
        path = os.environ["GITHUB_STEP_SUMMARY"]
        done &= export(path, partial(write, path, f"{answer.forms['markdown']()}\n\n", append=True))
        if answer.code != GOOD and not silent:
            level = "error" if answer.code == FAILED else "warning"
            message = printable(answer.headline, lines=True).replace("%", "%25").replace("\n", "%0A")
            click.echo(f"::{level} title={_TITLES[answer.code]}::{message}", err=True)
    return answer.code if done else ERROR


def write(path: str | Path, text: str, *, append: bool = False) -> None:
    """Write a text file; a pipe without a reader is an error instead of a wait."""
    at_once = getattr(os, "O_NONBLOCK", 0)  # not on Windows, which has no named pipes in folders
    with open(
        path, "ab" if append else "wb", opener=lambda name, flags: os.open(name, flags | at_once, 0o666)
    ) as file:
        if at_once:
            os.set_blocking(file.fileno(), True)
        file.write(text.encode(errors="backslashreplace"))


def export(path: str | Path, make: Callable[[], object]) -> bool:
    """Write a file in addition to what is printed; show the error and return False if that fails."""
    try:
        make()
    except OSError as error:
        show_error(Failure(f"{path} cannot be written: {error.strerror or error}; choose another file"))
        return False
    return True


def answer_with(
    result: Result,
    terms: words.Terms,
    *,
    ratios: Sequence[Ratio] = (),
    gate: Gate | None = None,
    first: Sequence[str] = (),
    verbose: bool = False,
    times: Sequence[Mapping[str, Any]] = (),
    notes: Sequence[str] = (),
    document: Callable[[], Mapping[str, Any]] | None = None,
) -> Answer:
    """Return all forms of a result, and its exit code.

    `first` are sentences before the answer; `verbose` adds statistics, also of `times`, and all that is known and
    assumed; `document` makes the JSON.
    """
    rows = tables.arm_rows(result, terms, ratios)
    summary = "\n".join([*first, *words.lines(result, terms=terms, gate=gate)])

    def text(screen: Screen) -> str:
        lines = [*first, *words.lines(result, terms=terms, verbose=verbose, gate=gate)]
        color = "red" if result.status is Status.DOUBTFUL else "green" if result.status in DECIDED else "yellow"
        if gate is not None:
            color = {"PASS": "green", "FAIL": "red"}.get(gate.verdict, "yellow")
        chart = () if isinstance(result, Analysis) else tables.spans(result, ratios, terms.unit)
        rest = [screen.arm_table(rows, chart, mark=1.0 if result.problem.rounds else None)]
        more = (tables.control_rows(result), tables.tier_rows(result), tables.contest_rows(result))
        rest += map(screen.table, more)
        if verbose:
            rest.append(screen.table(tables.statistics_rows(result, terms.unit, times) if times else []))
            rest += map(screen.wrap, (words.quality(result, terms), words.breakdowns(result, terms)))
            rest.append("\n".join(screen.wrap(line, indent="- ") for line in result.assumptions))
        rest += [screen.wrap(note, dim=True) for note in notes]
        return screen.arrange([screen.wrap(lines[0], fg=color, bold=True), *map(screen.wrap, lines[1:])], rest)

    forms = {
        "json": lambda: json_text((document or result.to_dict)()),
        "csv": lambda: csv_text(result, times),
        "markdown": lambda: tables.markdown(rows, summary),
        "html": lambda: pages().page(result, result.readings, terms=terms, gate=gate),
    }
    return Answer(text, exit_code(result, gate=gate), forms, summary)


def exit_code(
    result: Result, *, unless_best: str | None = None, gate: Gate | None = None, strict: bool = False
) -> int:
    """Return the exit code of a result; `unless_best` names the arm that must be best, `strict` counts alarms."""
    if result.status is Status.DOUBTFUL or (strict and result.alarms):
        return DOUBTFUL
    passed = result.answered if gate is None else gate.verdict == "PASS"
    failed = gate is not None and gate.verdict == "FAIL"
    if failed or (unless_best is not None and words.standing(result, unless_best) == "excluded"):
        return FAILED
    return GOOD if passed and unless_best in (None, result.best) else UNDECIDED
