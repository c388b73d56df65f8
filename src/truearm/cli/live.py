"""Show a race while it runs, on a terminal's standard error: drawn between runs, never during one."""

import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from truearm.claims.certificate import sample_of
from truearm.claims.certify import describe
from truearm.claims.result import Arm
from truearm.claims.suite import Progress, Run, Suite
from truearm.cli.edge import load
from truearm.cli.saved import Race
from truearm.commands.measure import runs_of
from truearm.commands.terminal import ECHO_COLUMNS, hold_signals
from truearm.policies import Standing
from truearm.report import words
from truearm.report.numbers import Unit, column_name, count, name_of, number, plural, unit_for
from truearm.study import Study

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live
    from rich.table import Table

_REDRAW_S = 0.2
_DRAWING_SHARE = 20  # a drawing may take one part in twenty of the time
_MIN_ROUNDS_NEAR = 20  # before that, commands look equal that are not
_BAR_COLUMNS = 12
_OTHER_LINES = 5  # of the screen, besides the rows of the table


class Board:
    """Shows where a race stands, of at most `limit` seconds."""

    def __init__(self, race: Race, *, unit: str | None, limit: float) -> None:
        self.study, self.metric, self.first = race.study, race.setting.metric, race.first
        self.unit, self.limit = unit, limit
        self._censored = None if race.setting.conditions.timeout is None else self.study.problem.censored
        self._started, self._pulls = time.monotonic(), self.study.pulls
        self.spent: Callable[[], str] = lambda: plural(self.study.pulls, "run")
        """Returns how much was measured."""
        self._next = 0.0
        self._live: Live | None = None

    def __enter__(self) -> "Board":
        _show_line("first run; Ctrl-C to stop")  # rich takes as long to load as a race needs to start
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._stop()
        except KeyboardInterrupt:  # one more, before it could be held
            self._stop()
            raise

    def _stop(self) -> None:
        with hold_signals():  # half a stop would leave the cursor hidden
            if self._live is None:
                _show_line("")
            else:
                self._live.stop()

    def draw(self) -> None:
        """Draw if it is time to."""
        now = time.monotonic()
        if now < self._next:
            return
        live = self._live or self._start()
        from rich.constrain import Constrain

        picture = self.picture(now - self._started, live.console.height - _OTHER_LINES)
        picture = Constrain(picture, live.console.width - ECHO_COLUMNS)
        with hold_signals():  # half a drawing could not be taken back
            live.update(picture, refresh=True)
        took = time.monotonic() - now if self._next else 0.0  # the first drawing pays for imports
        self._next = time.monotonic() + max(_REDRAW_S, _DRAWING_SHARE * took)

    def _start(self) -> "Live":
        load("scipy.special", "rich.console", "rich.constrain", "rich.live", "rich.table", "rich.text")
        from rich.console import Console
        from rich.live import Live

        # no refresh thread: it would draw while a command is being measured
        live = Live(console=Console(stderr=True), auto_refresh=False, transient=True)
        with hold_signals():
            _show_line("")
            self._live = live
            live.start()
        return live

    def picture(self, elapsed: float, rows: int) -> "RenderableType":
        """Return the table, of at most this many commands, and the lines below it."""
        from rich.console import Group
        from rich.text import Text

        problem, standing, readings = self.study.problem, self.study.standing, self.study.readings
        plain = replace(problem, handicap=None)
        arms = [
            describe(arm, sample_of(readings[arm], len(readings[arm]), plain, arm), plain, design="sequential")
            for arm in problem.arms
        ]
        unit = unit_for(self.metric, arms, self.unit, target=problem.target)
        baseline = None if problem.handicap is None else problem.handicap.arm
        runs = {arm.name: arm.n for arm in arms}
        hidden = max(0, len(arms) - max(rows, 2))
        if hidden:  # those that may still win come first
            arms = sorted(arms, key=lambda arm: arm.name not in (standing.leader, *standing.alive))[:-hidden]
        lines = [Text(f"and {plural(hidden, 'other command')}", style="dim")] if hidden else []
        lines.append(Text(self._progress(standing, runs, elapsed), style="dim"))
        if baseline is None and (near := near_words(standing, max(runs.values()))):
            lines.append(Text(near, style="yellow"))
        return Group(self._table(arms, standing, unit, baseline), *lines)

    def _table(self, arms: Sequence[Arm], standing: Standing, unit: Unit, baseline: str | None) -> "Table":
        from rich.table import Table
        from rich.text import Text

        problem, alone = self.study.problem, len(self.study.problem.arms) == 1
        table = Table(box=None, pad_edge=False, header_style="dim")
        table.add_column("command", overflow="ellipsis", no_wrap=True)
        for title in ("runs", unit.title(column_name(problem))):
            table.add_column(Text(title), justify="right", no_wrap=True)
        for title in () if alone else ("standing", "evidence"):
            table.add_column(title, no_wrap=True)
        for arm in arms:
            place = _place(standing, arm.name, baseline)
            evidence = "" if arm.name == standing.leader else _bar(standing.share(arm.name))
            late = arm.observed == self._censored
            seen = "time-out" if late else number(arm.observed / unit.size)
            cells = [count(arm.n), seen if arm.n else "", *([] if alone else [place, evidence])]
            style = {"leads": "bold green", "excluded": "dim"}.get(place, "")
            table.add_row(Text(name_of(arm.name)), *cells, style=style)
        return table

    def _progress(self, standing: Standing, runs: Mapping[str, int], elapsed: float) -> str:
        done = self.study.pulls - self._pulls
        left, limit = math.inf, max(0.0, self.limit - elapsed)
        if done and len(runs) > 1:
            left = standing.pulls_left(runs, self.first) * elapsed / done
        elif done and (fixed := getattr(self.study.policy, "runs", None)):
            left = (fixed - self.study.pulls) * elapsed / done
        rounds = f"{plural(max(runs.values()), 'round')}, " if self.study.problem.rounds else ""
        parts = [f"{rounds}{self.spent()}, {words.seconds(elapsed)}"]
        if left < math.inf:
            parts.append(f"about {words.seconds(left)} {'left' if left <= limit else 'needed'} (an estimate)")
        if limit < left:
            parts.append(f"at most {words.seconds(limit)} left")
        return "; ".join([*parts, "Ctrl-C to stop"])


class Follower:
    """Watches the metrics after every round and stops the race when all are settled."""

    def __init__(self, suite: Suite, study: Study) -> None:
        self.suite = suite
        self._study = study
        self._runs = runs_of(study.log)
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


def _show_line(text: str) -> None:
    """Show a line in place of the last one."""
    sys.stderr.write(f"\r\x1b[2K{text}")
    sys.stderr.flush()


def near_words(standing: Standing, rounds: int) -> str:
    """Return that commands are nearly equal and which tolerance would settle it; "" if they are not."""
    if not standing.close or rounds < _MIN_ROUNDS_NEAR or standing.leader is None:
        return ""
    return words.nearly_equal([standing.leader, *standing.close], standing.within)


def _bar(share: float) -> str:
    """Return a bar that also reads without color."""
    full = math.floor(share * _BAR_COLUMNS)
    return f"{'█' * full}{'░' * (_BAR_COLUMNS - full)} {math.floor(100 * share):3d}%"


def _place(standing: Standing, arm: str, baseline: str | None) -> str:
    if arm == baseline:
        return "baseline"
    if arm == standing.leader and baseline is None:  # with a handicap it may lead over a worse baseline only
        return "leads"
    return "candidate" if arm in standing.alive else "excluded"
