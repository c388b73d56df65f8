"""A race of many metrics: watch it while it runs, show it when it has ended."""

import math
from collections.abc import Iterator

import click

from truearm.claims.suite import Progress, Run, Runs, Suite, SuiteResult, judge_suite
from truearm.cli.answer import DOUBTFUL, FAILED, GOOD, UNDECIDED, Answer, Screen
from truearm.cli.asked import Asked
from truearm.cli.outcome import describe_losses, describe_race
from truearm.cli.saved import Race
from truearm.commands.measure import machine, runs_of
from truearm.report import export, tables, words
from truearm.report.export import json_text
from truearm.report.numbers import count, number
from truearm.study import Study


class Follower:
    """Watches the metrics after every round and stops the race when all are settled."""

    def __init__(self, suite: Suite, study: Study) -> None:
        self.suite = suite
        self._study = study
        self._runs = runs_of(suite.problem.arms, study.events())
        self._progress = Progress(suite).after(self._runs)

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


def answer(race: Race, asked: Asked | None = None, *, late: bool = False) -> Answer:
    """Return all forms of a suite that has ended, and its exit code; without options, that of a log."""
    assert race.suite is not None
    suite, runs = race.suite, runs_of(race.suite.problem.arms, race.study.events())
    result = race.setting.mark(judge_suite(suite, runs))
    lines, rows = words.suite_summary(result, "command"), tables.suite_rows(result)
    notes = [] if asked is None or asked.quiet else list(_notes(race, result, asked, late=late))
    verdict = {"verdict": words.suite_verdict(result)} if suite.gate else {}

    def text(screen: Screen) -> str:
        table = screen.table(rows) if result.compared else ""
        return screen.arrange(map(screen.wrap, lines.split("\n")), [table, screen.wrap(" ".join(notes), dim=True)])

    forms = {
        "json": lambda: json_text(
            {**export.suite_document(result, runs), **describe_race(race), "machine": machine(), **verdict}
        ),
        "csv": lambda: export.suite_csv(result),
        "markdown": lambda: tables.markdown(rows, lines),
        "html": lambda: _page(result, runs),
    }
    code = FAILED if result.failed else GOOD if result.status == "decided" else UNDECIDED
    if result.status == "doubtful" or (asked is not None and asked.strict and result.is_incomplete):
        code = DOUBTFUL
    return Answer(text, code, forms, words.suite_headline(result))


def _page(result: SuiteResult, runs: Runs) -> str:
    from truearm.report.pages import suite_page  # a race that writes no page starts without it

    return suite_page(result, runs)


def _notes(race: Race, result: SuiteResult, asked: Asked, *, late: bool) -> Iterator[str]:
    undecided = result.status == "undecided"
    if undecided and late and asked.max_time is None and asked.limit is not None:
        yield f"--max-time allows more than {number(asked.limit / 60)} minutes."
    elif undecided and not late and result.rounds + result.uncounted < (asked.most or math.inf):
        yield "Interrupted."
    yield from describe_losses(race, "all metrics of it are missing")
    if asked.verbose and race.study.seed is not None:
        yield f"Order of runs inside each round shuffled with seed {race.study.seed}."
    if race.store is not None:
        yield words.where_saved(race.store.path.name, "" if undecided else None)
