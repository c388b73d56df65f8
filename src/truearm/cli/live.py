"""The table of a race while it runs, on a terminal's standard error. Drawn between runs, never during one.

Before the first reading there is a line only: what draws a table takes as long to load as all that a race needs to
begin.
"""

import math
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import ROUND_CEILING
from typing import TYPE_CHECKING

from truearm.claims.certificate import sample_of
from truearm.claims.certify import describe
from truearm.claims.result import Arm
from truearm.cli.edge import load
from truearm.commands.progress import ECHO_COLUMNS
from truearm.commands.signals import uninterrupted
from truearm.policies import Standing
from truearm.report.numbers import (
    ON_TERMINALS,
    Signs,
    Unit,
    column_name,
    count,
    ends,
    name_of,
    names,
    number,
    percent,
    unit_for,
)
from truearm.study import Study

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live
    from rich.table import Table

_PATIENCE = 0.2  # seconds between drawings: quick enough for an eye
_EARLY = 20  # rounds: before that commands look equal that are not
_NEAR = 0.5  # a limit beyond it is no word for "nearly"
_OTHERS = 74  # columns that all but the names take
_SHARE = 20  # a drawing may take one part in twenty of the time


def _show(words: str) -> None:
    """Show a line in the place of the one before."""
    sys.stderr.write(f"\r\x1b[2K{words}")
    sys.stderr.flush()


class Board:
    """Shows where a race stands, at most five times a second and at most a twentieth of the time.

    Parameters
    ----------
    metric, unit
        What the readings are, and the unit to show them in if one was asked for.
    first
        Runs of every command before the first decision.
    limit
        Seconds the race may take; infinite if it has no such limit.
    timed
        Whether a run may time out.
    """

    def __init__(
        self, study: Study, *, metric: str, unit: str | None, first: int, limit: float, timed: bool = False
    ) -> None:
        self.study, self.metric, self.unit, self.first, self.limit = study, metric, unit, first, limit
        self._censored = study.problem.censored if timed else None
        self._began, self._pulls = time.monotonic(), study.pulls
        self._next = 0.0
        self._live: Live | None = None

    def __enter__(self) -> "Board":
        _show("first run; Ctrl-C to stop")
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._stop()
        except KeyboardInterrupt:  # one more, before it could be kept waiting
            self._stop()
            raise

    def _stop(self) -> None:
        with uninterrupted():  # half a stop would leave the cursor hidden
            if self._live is None:
                _show("")
            else:
                self._live.stop()

    def draw(self) -> None:
        """Draw if it is time to."""
        now = time.monotonic()
        if now < self._next:
            return
        live = self._live or self._started()
        from rich.constrain import Constrain

        width = live.console.width - ECHO_COLUMNS
        picture = Constrain(self.picture(now - self._began, width), width)
        with uninterrupted():  # half a drawing could not be taken back
            live.update(picture, refresh=True)
        took = time.monotonic() - now if self._next else 0.0  # the first drawing pays for imports
        self._next = time.monotonic() + max(_PATIENCE, _SHARE * took)

    def _started(self) -> "Live":
        load("scipy.special", "rich.console", "rich.constrain", "rich.live", "rich.table", "rich.text")
        from rich.console import Console
        from rich.live import Live

        # no thread of its own: it would draw while a command is being measured
        live = Live(console=Console(stderr=True), auto_refresh=False, transient=True)
        with uninterrupted():
            _show("")
            self._live = live
            live.start()
        return live

    def picture(self, elapsed: float, width: int) -> "RenderableType":
        """Return the table and the line below it."""
        from rich.console import Group
        from rich.text import Text

        study, problem = self.study, self.study.problem
        tapes, plain = study.readings, replace(problem, handicap=None)
        arms = [
            describe(arm, sample_of(tapes[arm], len(tapes[arm]), plain, arm), plain, design="sequential")
            for arm in problem.arms
        ]
        standing = study.standing
        unit = unit_for(self.metric, arms, self.unit, target=problem.target)
        name = column_name(problem)
        columns = (name,) if problem.rounds else (name, f"true {name}")  # rounds claim nothing of an arm by itself
        given = problem.handicap
        table = _table(
            arms,
            standing,
            unit,
            columns=columns,
            width=width,
            censored=self._censored,
            baseline=None if given is None else given.arm,
        )
        line = Text(self._line(standing, {arm.name: arm.n for arm in arms}, elapsed), style="dim")
        near = nearly_equal(standing, max(arm.n for arm in arms)) if given is None else ""
        return Group(table, line, *([Text(near, style="yellow")] if near else []))

    def _line(self, standing: Standing, runs: Mapping[str, int], elapsed: float) -> str:
        done = self.study.pulls - self._pulls
        left, room = math.inf, max(0.0, self.limit - elapsed)
        if done and len(runs) > 1:
            left = standing.pulls_left(runs, self.first) * elapsed / done
        elif done and (fixed := getattr(self.study.policy, "runs", None)):
            left = (fixed - self.study.pulls) * elapsed / done
        rounds = f"{count(max(runs.values()))} rounds, " if self.study.problem.rounds else ""
        words = [f"{rounds}{count(self.study.pulls)} runs, {duration(elapsed)}"]
        if left < math.inf:
            needed = left <= room
            words.append(f"about {duration(left)} {'left' if needed else 'needed'} (an estimate)")
        if room < left:
            words.append(f"at most {duration(room)} left")
        return "; ".join([*words, "Ctrl-C to stop"])


def nearly_equal(standing: Standing, rounds: int) -> str:
    """Return an early word that commands are nearly equal, and what would settle it; nothing if they are not."""
    if not standing.close or rounds < _EARLY or standing.leader is None:
        return ""
    head = f"{names([standing.leader, *standing.close])} are nearly equal"
    if not 0 < standing.within < _NEAR:
        return f"{head} so far."
    within = percent(standing.within, ROUND_CEILING, 2)
    return (
        f"{head}: {name_of(standing.leader)} is within {within} of the best. --tolerance {within} would take it."
    )


def _table(
    arms: Sequence[Arm],
    standing: Standing,
    unit: Unit,
    *,
    columns: Sequence[str],
    width: int,
    censored: float | None,
    baseline: str | None = None,
) -> "Table":
    from rich.table import Table
    from rich.text import Text

    sign = f" [{unit.sign}]" if unit.sign else ""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("command", overflow="ellipsis", no_wrap=True, max_width=max(12, width - _OTHERS))
    for title in ("runs", *(title + sign for title in columns)):
        table.add_column(Text(title), justify="right", no_wrap=True)
    for title in ("standing", "evidence") if len(arms) > 1 else ():
        table.add_column(title, no_wrap=True)
    for arm in arms:
        place = _place(standing, arm.name, baseline)
        weight = "" if arm.name == standing.leader else bar(standing.share(arm.name))
        style = {"leads": "bold green", "excluded": "dim"}.get(place, "")
        table.add_row(
            Text(name_of(arm.name)),
            count(arm.n),
            _observed(arm, unit, censored) if arm.n else "",
            *((_interval(arm, unit),) if len(columns) > 1 else ()),
            *((place, weight) if len(arms) > 1 else ()),
            style=style,
        )
    return table


def bar(share: float, width: int = 12) -> str:
    """Return a bar that also reads without color."""
    full = math.floor(share * width)
    return f"{'█' * full}{'░' * (width - full)} {math.floor(100 * share):3d}%"


def _interval(arm: Arm, unit: Unit) -> str:
    if math.isinf(arm.low) and math.isinf(arm.high):
        return ""
    return " to ".join(ends(arm.low, arm.high, None, Signs("", "", ""), unit)).strip()


def _observed(arm: Arm, unit: Unit, censored: float | None) -> str:
    return "time-out" if arm.observed == censored else number(arm.observed / unit.size, signs=ON_TERMINALS)


def _place(standing: Standing, arm: str, baseline: str | None) -> str:
    if arm == baseline:
        return "baseline"
    if arm == standing.leader and baseline is None:  # else it may lead only over what is judged as worse
        return "leads"
    return "candidate" if arm in standing.alive else "excluded"


def duration(seconds: float) -> str:
    """Return a length of time in words short enough for a table."""
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
