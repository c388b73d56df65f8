"""A race of many metrics: followed while it runs, told when it has ended."""

import math
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from textwrap import fill
from typing import TYPE_CHECKING

import click

from truearm.claims.suites import Progress, Run, Runs, Suite, SuiteResult, judged
from truearm.cli import gates
from truearm.cli.asked import Asked
from truearm.cli.setting import Setting
from truearm.cli.telling import lost, plain_commands, write_each
from truearm.commands.measure import machine
from truearm.commands.metrics import runs_of
from truearm.errors import InvalidArgument
from truearm.events import Reading
from truearm.report import export, tables, words
from truearm.report.export import json_text
from truearm.report.numbers import count, name_of, number
from truearm.study import Study

if TYPE_CHECKING:
    from truearm.cli.racing import Race


class Follower:
    """Who looks at the metrics after every round and says when it is enough."""

    def __init__(self, suite: Suite, study: Study) -> None:
        self.suite = suite
        self._study = study
        self._runs = runs_of(suite.problem.arms, study.events())
        self._progress = Progress(suite).after(self._runs)

    def guard(self, gate: str) -> None:
        """Let the suite fail if a metric is worse than that of this command, which it has to compare with."""
        if gate != self.suite.reference:
            reference = name_of(self.suite.reference)
            msg = (
                f"the suite compares with {reference}, and a gate must be named before it; race anew for {gate!r}"
            )
            raise InvalidArgument(msg)
        self.suite = replace(self.suite, gate=True)

    def took(self, arm: str, run: Run) -> None:
        """Take what one more run printed."""
        self._runs[arm].append(run)

    def done(self, first: int = 1) -> bool:
        """Whether nothing is left to find out, once there were so many rounds."""
        if self._study.in_round:
            return False
        self._progress = self._progress.after(self._runs)
        return self._progress.done and min(map(len, self._runs.values())) >= first

    @property
    def words(self) -> str:
        """Where it stands, on one line."""
        rounds, seen = min(map(len, self._runs.values())), self._progress
        return f"{count(rounds)} rounds: {count(seen.settled)} of {count(seen.pairs)} comparisons settled"

    def draw(self) -> None:
        """Show that line on a terminal."""
        if not self._study.in_round:
            click.echo(f"\r{self.words}", err=True, nl=False)

    def result(self) -> tuple[SuiteResult, dict[str, list[Run]]]:
        """Return what is known by all that was logged, and the runs."""
        runs = runs_of(self.suite.problem.arms, self._study.events())
        return judged(self.suite, runs), runs

    def makers(self, setting: Setting) -> tuple[SuiteResult, dict[str, Callable[[], str]]]:
        """Return what is known, and by format how it is told."""
        result, runs = self.result()
        beside = {"seed": self._study.seed, "commands": plain_commands(setting), "machine": machine()}
        return result, {
            "text": lambda: _shown(result),
            "json": lambda: json_text({**export.suite_document(result, runs), **beside}),
            "csv": lambda: export.suite_csv(result),
            "markdown": lambda: tables.markdown(tables.suite_rows(result), words.suite_summary(result, "command")),
            "html": lambda: _page(result, runs),
        }


def told(race: "Race", follower: Follower, asked: Asked, *, late: bool) -> int:
    """Tell a suite that has ended, write its files, and return the exit code."""
    result, makers = follower.makers(race.setting)
    click.echo(makers["json" if asked.as_json else "text"]())
    if not (asked.as_json or asked.quiet):
        click.echo(f"\n{_filled(' '.join(_notes(race, result, asked, late=late)))}")
    return write_each(makers, asked).code(gates.suite_code(result, strict=asked.strict))


def _page(result: SuiteResult, runs: Runs) -> str:
    from truearm.report.pages import suite_page  # a race that writes no page starts without it

    return suite_page(result, runs)


def _columns() -> int:
    return shutil.get_terminal_size((100, 24)).columns


def _filled(words: str) -> str:
    return fill(words, min(100, _columns()), break_on_hyphens=False)


def _shown(result: SuiteResult) -> str:
    said = words.suite_summary(result, "command").split("\n")
    if result.suite.gate:
        said.insert(0, words.suite_headline(result) + ".")
    table = tables.table(tables.suite_rows(result), _columns() if sys.stdout.isatty() else None)
    return "\n\n".join(("\n".join(map(_filled, said)), *([table] if result.compared else [])))


def _notes(race: "Race", result: SuiteResult, asked: Asked, *, late: bool) -> Iterator[str]:
    if late and asked.max_time is None and result.status == "undecided" and asked.limit is not None:
        yield f"Stopped after {number(asked.limit / 60)} minutes; --max-time allows more."
    elif not late and result.status == "undecided" and result.rounds + result.uncounted < (asked.most or math.inf):
        yield "Interrupted."
    readings = [event for event in race.study.events() if isinstance(event, Reading)]
    for arm in race.setting.arms:
        own = [reading for reading in readings if reading.arm == arm]
        yield from lost(arm, own, late="all metrics of it are missing")
    if asked.verbose:
        yield f"Order of runs inside each round shuffled with seed {race.study.seed}."
    if race.store is not None:
        name = name_of(race.store.path.name)
        more = f"; go on with: truearm race --resume {name}" if result.status == "undecided" else "."
        yield f"All runs are in {name}{more}"
