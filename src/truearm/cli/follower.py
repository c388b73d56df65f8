"""A race of many metrics: watch it while it runs, show it when it has ended."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from truearm.claims.suite import Progress, Run, Runs, Suite, SuiteResult, judge_suite
from truearm.cli import gates
from truearm.cli.asked import Asked
from truearm.cli.outcome import describe_losses, plain_builds, plain_commands, where_saved, write_exports
from truearm.cli.screen import Screen
from truearm.cli.setting import Setting
from truearm.commands.measure import machine, runs_of
from truearm.errors import InvalidArgument
from truearm.events import Reading
from truearm.report import export, tables, words
from truearm.report.export import json_text
from truearm.report.numbers import count, name_of, number
from truearm.study import Study

if TYPE_CHECKING:
    from truearm.cli.racing import Race


class Follower:
    """Watches the metrics after every round and stops the race when all are settled."""

    def __init__(self, suite: Suite, study: Study) -> None:
        self.suite = suite
        self._study = study
        self._runs = runs_of(suite.problem.arms, study.events())
        self._progress = Progress(suite).after(self._runs)

    def guard(self, gate: str) -> None:
        """Let the suite fail if a metric is worse than that of this command, its reference."""
        if gate != self.suite.reference:
            reference = name_of(self.suite.reference)
            msg = f"the suite compares with {reference}; a gate is fixed at the start, so race again for {gate!r}"
            raise InvalidArgument(msg)
        self.suite = replace(self.suite, gate=True)

    def add(self, arm: str, run: Run) -> None:
        """Add the metrics of one more run."""
        self._runs[arm].append(run)

    def done(self, first: int = 1) -> bool:
        """Return True if all comparisons are settled after at least `first` rounds."""
        if self._study.in_round:
            return False
        self._progress = self._progress.after(self._runs)
        return self._progress.done and min(map(len, self._runs.values())) >= first

    def draw(self) -> None:
        """Show the progress on one line of a terminal."""
        if not self._study.in_round:
            rounds, seen = min(map(len, self._runs.values())), self._progress
            words = f"{count(rounds)} rounds: {count(seen.pairs_done)} of {count(seen.pairs)} comparisons settled"
            click.echo(f"\r{words}", err=True, nl=False)

    def makers(self, setting: Setting) -> tuple[SuiteResult, dict[str, Callable[[], str]]]:
        """Return the result of all runs in the log, and what makes each format."""
        runs = runs_of(self.suite.problem.arms, self._study.events())
        result = setting.mark(judge_suite(self.suite, runs))
        readings = [event for event in self._study.events() if isinstance(event, Reading)]
        beside = {"seed": self._study.seed, "commands": plain_commands(setting), "machine": machine()}
        beside.update(plain_builds(setting, readings))
        verdict = {"verdict": words.suite_verdict(result)} if self.suite.gate else {}
        return result, {
            "text": lambda: _text(result),
            "json": lambda: json_text({**export.suite_document(result, runs), **beside, **verdict}),
            "csv": lambda: export.suite_csv(result),
            "markdown": lambda: tables.markdown(tables.suite_rows(result), words.suite_summary(result, "command")),
            "html": lambda: _page(result, runs),
        }


def show(race: "Race", follower: Follower, asked: Asked, *, late: bool) -> int:
    """Print a suite that has ended, write its files, and return the exit code."""
    result, makers = follower.makers(race.setting)
    click.echo(makers["json" if asked.as_json else "text"]())
    if not (asked.as_json or asked.quiet) and (notes := list(_notes(race, result, asked, late=late))):
        click.echo(f"\n{Screen.here().wrap(' '.join(notes))}")
    code = gates.suite_code(result, strict=asked.strict)
    if asked.github_summary and (line := gates.annotation(code, words.suite_headline(result), notice=False)):
        click.echo(line, err=True)
    return write_exports(makers, asked).code(code)


def _page(result: SuiteResult, runs: Runs) -> str:
    from truearm.report.pages import suite_page  # a race that writes no page starts without it

    return suite_page(result, runs)


def _text(result: SuiteResult) -> str:
    screen = Screen.here()
    lines = words.suite_summary(result, "command").split("\n")
    table = tables.table(tables.suite_rows(result), screen.width if screen.terminal else None)
    return screen.arrange(["\n".join(map(screen.wrap, lines))], [table] if result.compared else [])


def _notes(race: "Race", result: SuiteResult, asked: Asked, *, late: bool) -> Iterator[str]:
    undecided = result.status == "undecided"
    if undecided and late and asked.max_time is None and asked.limit is not None:
        yield f"--max-time allows more than {number(asked.limit / 60)} minutes."
    elif undecided and not late and result.rounds + result.uncounted < (asked.most or math.inf):
        yield "Interrupted."
    readings = [event for event in race.study.events() if isinstance(event, Reading)]
    for arm in race.setting.arms:
        own = [reading for reading in readings if reading.arm == arm]
        yield from describe_losses(arm, own, late="all metrics of it are missing")
    if asked.verbose and race.study.seed is not None:
        yield f"Order of runs inside each round shuffled with seed {race.study.seed}."
    if race.store is not None:
        yield where_saved(race.store.path.name, "" if undecided else None)
