"""Show a race while it runs, on a terminal's standard error: drawn between runs, never during one."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import ROUND_CEILING
from typing import TYPE_CHECKING

from truearm.claims.certificate import samples_of
from truearm.claims.certify import describe
from truearm.claims.suite import Progress
from truearm.cli.race_log import Race
from truearm.commands.terminal import ECHO_COLUMNS, complete, hold_signals, load
from truearm.evidence import Judge
from truearm.policies import Standing
from truearm.report.numbers import column_name, count, name_of, names, number, percent, plural, seconds, unit_for
from truearm.report.tables import drop_spare, table

if TYPE_CHECKING:
    from rich.console import RenderableType

_REDRAW_S = 0.2
_DRAWING_SHARE = 20  # drawing may take one twentieth of the time
_MIN_ROUNDS_NEAR = 20  # before that, commands look equal that are not
_BAR_COLUMNS = 12
_MAX_NEAR = 0.5  # a larger tolerance is not "nearly"
_STYLES = {"leads": "bold green", "dropped": "dim"}


@contextmanager
def board(
    race: Race, *, unit: str | None, limit: float, suite: Callable[[], Progress | None]
) -> Iterator[Callable[[], None]]:
    """Yield a function that shows, when due, where a race of at most `limit` seconds stands."""
    load("rich.console", "rich.live", "rich.table", "rich.text")
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True)
    console.width -= ECHO_COLUMNS
    # no refresh thread: it would draw while a command is being measured
    live = Live("first run; Ctrl-C to stop", console=console, auto_refresh=False, transient=True)
    started, pulls, due = time.monotonic(), race.study.pulls, 0.0

    def draw() -> None:
        nonlocal due
        load("scipy.special")  # after the first run: loading it takes as long as starting a race
        if (now := time.monotonic()) < due:
            return
        progress = _progress(race, now - started, limit, race.study.pulls - pulls)
        picture = _picture(race, unit, suite(), progress, console.width)
        with hold_signals():  # half a drawing could not be erased
            live.update(picture, refresh=True)
        due = time.monotonic() + max(_REDRAW_S, _DRAWING_SHARE * (time.monotonic() - now))

    try:
        with hold_signals():
            live.start(refresh=True)
        yield draw
    finally:
        complete(live.stop)  # half a stop would leave the cursor hidden


def _picture(
    race: Race, unit_name: str | None, suite: Progress | None, progress: str, columns: int
) -> "RenderableType":
    """Return where the race stands: a line or two, and a table whose last rows a small terminal cuts off."""
    from rich.console import Group
    from rich.text import Text

    problem, standing, readings = race.study.problem, race.study.standing, race.study.readings
    if suite is not None:
        rounds = plural(min(map(len, readings.values())), "round")
        settled = f"{count(suite.pairs_done)} of {count(suite.pairs)} comparisons settled"
        return Text(f"{rounds}: {settled}; Ctrl-C to stop", style="dim")
    plain = replace(problem, handicap=None)
    judge = Judge.of(plain, samples_of(plain, readings))
    arms = [describe(judge, i) for i in range(len(problem.arms))]
    unit = unit_for(race.setting.metric, arms, unit_name, target=problem.target)
    baseline = None if problem.handicap is None else problem.handicap.arm
    titles = ("standing", "evidence") if len(arms) > 1 else ()
    rows = [("command", "runs", unit.title(column_name(problem)), *titles)]
    for arm in sorted(arms, key=lambda arm: arm.name not in (standing.leader, *standing.alive)):
        place = _place(standing, arm.name, baseline)
        evidence = "" if arm.name == standing.leader else _bar(standing.share(arm.name))
        is_late = race.setting.conditions.timeout is not None and arm.observed == problem.time_out
        seen = "time-out" if is_late else number(arm.observed / unit.size)
        cells = (count(arm.n), seen if arm.n else "", place, evidence)[: 2 + len(titles)]
        rows.append((name_of(arm.name), *cells))
    styles = ["dim", *(_STYLES.get(row[-2], "") for row in rows[1:])]
    drawn = table(drop_spare(rows, columns, ("evidence", "runs")), columns).split("\n")
    near = "" if baseline is not None else near_words(standing, max(arm.n for arm in arms))
    heading = [Text(progress, style="dim"), Text(near, style="yellow")]
    lines = [Text(line, style=style) for line, style in zip(drawn, styles, strict=True)]
    return Group(*filter(None, heading), *lines)


def _progress(race: Race, elapsed: float, limit: float, done: int) -> str:
    """Return what was run and how long it may still take, by the pace of the pulls of this session."""
    study, setting, pulls = race.study, race.setting, race.study.pulls
    runs = {arm: len(tape) for arm, tape in study.readings.items()}
    left, limit = math.inf, max(0.0, limit - elapsed)
    if done and len(runs) > 1:
        left = study.standing.pulls_left(runs, race.first) * elapsed / done
    elif done and (fixed := getattr(study.policy, "runs", None)):
        left = (fixed - pulls) * elapsed / done
    rounds = f"{plural(max(runs.values()), 'round')}, " if study.problem.rounds else ""
    builds = f"{plural(pulls, 'build')}, " if setting.random_builds else ""
    parts = [f"{rounds}{builds}{plural(pulls * setting.runs_per_reading, 'run')}, {seconds(elapsed)}"]
    if left < math.inf:
        parts.append(f"about {seconds(left)} {'left' if left <= limit else 'needed'} (an estimate)")
    if limit < left:
        parts.append(f"at most {seconds(limit)} left")
    return "; ".join([*parts, "Ctrl-C to stop"])


def near_words(standing: Standing, rounds: int) -> str:
    """Return that commands are nearly equal and which tolerance would settle it; "" if they are not."""
    if not standing.close or rounds < _MIN_ROUNDS_NEAR or standing.leader is None:
        return ""
    near = f"{names([standing.leader, *standing.close])} are nearly equal"
    if not 0 < standing.within < _MAX_NEAR:
        return f"{near} so far."
    much = percent(standing.within, ROUND_CEILING, 2)
    return f"{near}: {name_of(standing.leader)} is within {much} of the best. --tolerance {much} would accept it."


def _bar(share: float) -> str:
    """Return a bar that also reads without color."""
    full = math.floor(share * _BAR_COLUMNS)
    return f"{'█' * full}{'░' * (_BAR_COLUMNS - full)} {math.floor(100 * share):3d}%"


def _place(standing: Standing, arm: str, baseline: str | None) -> str:
    if arm == baseline:
        return "baseline"
    if arm == standing.leader and baseline is None:  # with a handicap it may lead over a worse baseline only
        return "leads"
    return "candidate" if arm in standing.alive else "dropped"
