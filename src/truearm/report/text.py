"""Results as plain text and Markdown, in units a person uses. Nothing is measured or decided here."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR
from statistics import fmean, stdev
from typing import Any, NamedTuple

from truearm.claims.analysis import Analysis
from truearm.claims.certificate import Place, Status, Tapes
from truearm.claims.ratios import Ratio
from truearm.claims.result import Arm, Lead, Reach, Result
from truearm.problem import Adversary, Handicap, Tolerance
from truearm.report.summary import is_made_equal, sentences
from truearm.report.wording import (
    ON_TERMINALS,
    TIMED,
    Voice,
    column_name,
    count,
    factor_step,
    name_of,
    number,
    percent,
    value,
    value_ends,
)


class Unit(NamedTuple):
    """What readings are shown in: its sign, its name in a sentence, and its size in the unit of the readings."""

    sign: str
    name: str
    size: float


PLAIN = Unit("", "", 1.0)
TIMES = (
    Unit("us", "microseconds", 1e-6),
    Unit("ms", "milliseconds", 1e-3),
    Unit("s", "seconds", 1.0),
)
SIZES = (
    Unit("B", "bytes", 1.0),
    Unit("KiB", "kibibytes", 1024.0),
    Unit("MiB", "mebibytes", 1024.0**2),
    Unit("GiB", "gibibytes", 1024.0**3),
)
UNITS = {"wall": TIMES, "cpu": TIMES, "memory": SIZES, "stdout": (PLAIN,)}
_LEAST_NAME = 12  # letters of a name that are always shown
_SPARE = ("MAD", "readings", "runs", "pulls")  # columns that a narrow table is the first to go without
_VOICES = {"wall": TIMED, "cpu": TIMED, "memory": Voice("run", "run", "smallest", "smaller")}


def unit_for(metric: str, arms: Sequence[Arm], asked: str | None = None, *, target: str = "quantile") -> Unit:
    """Return the largest unit that the largest observed quantile still fills, or the one asked for.

    Parameters
    ----------
    metric
        "wall", "cpu", "memory" or "stdout".
    asked
        The name of a unit of that metric.
    """
    units = UNITS.get(metric, (PLAIN,)) if target != "share" else (PLAIN,)  # a share has no unit
    for unit in units:
        if asked is not None and asked.removesuffix("s") == unit.name.removesuffix("s"):
            return unit
    largest = max((abs(arm.observed) for arm in arms if math.isfinite(arm.observed)), default=math.nan)
    fitting = [unit for unit in units if largest >= unit.size]
    if math.isnan(largest):
        return units[len(units) // 2]
    return fitting[-1] if fitting else units[0]


def in_unit(result: Result, unit: Unit) -> Result:
    """Return the result with every reading divided by the size of a unit, for showing only."""
    if unit.size == 1.0:
        return result
    relative = result.problem.tolerance.relative
    factor = 1.0 if relative else 1 / unit.size
    tolerance = Tolerance(result.problem.tolerance.amount * factor, relative)
    given = result.problem.handicap
    if given is not None:
        own = given.tolerance if given.tolerance.relative else Tolerance(given.tolerance.amount / unit.size)
        given = Handicap(given.arm, own, _divided(given.limit, unit))
    problem = replace(result.problem, tolerance=tolerance, handicap=given)
    return replace(
        result,
        problem=problem,
        tolerance=result.tolerance * factor,
        arms=tuple(Arm(arm.name, arm.n, *(x / unit.size for x in arm[2:])) for arm in result.arms),
        quality=tuple(Reach(point.x / unit.size, point.share) for point in result.quality),
        better_by=tuple(
            x if x.scale == "ratio" else Lead(x.than, x.scale, x.observed / unit.size, _divided(x.at_least, unit))
            for x in result.better_by
        ),
        alarms=tuple(a._replace(values=tuple(x / unit.size for x in a.values)) for a in result.alarms),
    )


def _divided(x: float | None, unit: Unit) -> float | None:
    return None if x is None else x / unit.size


def standing_of(result: Result, arm: str) -> str:
    """Return in a word or two where an arm stands."""
    given = result.problem.handicap
    if given is not None and arm == given.arm:
        return "baseline"
    if arm == result.best:
        return "good enough" if result.status is Status.TOLERABLE else "best"
    if arm in result.ties and not is_made_equal(result):
        return "tied"
    if arm in result.may_tie:
        return "may tie"
    certificate = result.certificate
    excluded = {claim.arm for claim in certificate.claims if not claim.tolerant}
    if result.status is not Status.TOLERABLE:  # those of a tolerable end are up to the tolerance
        excluded |= {exclusion.arm for exclusion in certificate.exclusions}
    if arm in result.candidates or (result.status is Status.TOLERABLE and arm not in excluded):
        return "candidate"  # also who is behind by the order of listing only (evidence T11)
    return "excluded"


def standing_in(found: Analysis, arm: str) -> str:
    """Return where an arm of an analysis stands, and who excludes it."""
    return f"excluded by {name_of(found.excluded[arm])}" if arm in found.excluded else standing_of(found, arm)


def control_rows(result: Result) -> list[tuple[str, ...]]:
    """Return how every arm stands to the control, for a table; nothing if that was not asked."""
    asked = result.control
    if asked is None:
        return []
    standing = {"better": "better than", "not better": "not better than", "open": "open against"}
    heading = ("arm", "standing", "evidence", *(f"up to, {a.value}" for a in Adversary))
    return [
        heading,
        *(
            (
                name_of(v.arm),
                f"{standing[v.standing]} {name_of(asked.arm)}",
                f"{math.exp(min(v.log_evidence, 700.0)):.2g}",
                *map(_point, v.breakdown),
            )
            for v in asked.variants
        ),
    ]


def tier_rows(found: Analysis) -> list[tuple[str, ...]]:
    """Return every arm with its tier and place, and the nearest arm it is better than; nothing if not asked."""
    if found.tiers is None:
        return []
    tier = {arm: f"{i}" for i, arms in enumerate(found.tiers.tiers, 1) for arm in arms}
    below = {claim.better: claim for claim in reversed(found.tiers.nearest)}
    adversary = found.problem.declared.adversary.value

    def row(place: Place) -> tuple[str, ...]:
        claim = below.get(place.arm)
        up_to = None if claim is None or claim.breakdown is None else getattr(claim.breakdown, adversary)
        return (
            name_of(place.arm),
            tier[place.arm],
            f"{place.best}" if place.best == place.worst else f"{place.best} to {place.worst}",
            "-" if claim is None else name_of(claim.worse),
            _point(up_to),
        )

    heading = ("arm", "tier", "place", "better than", "up to bad readings")
    return [heading, *map(row, found.tiers.places)]


def _point(point: float | None) -> str:
    return "-" if point is None else percent(point, ROUND_FLOOR)


class Row(NamedTuple):
    """One arm in a table, every cell as text."""

    arm: str
    runs: str
    quantile: str
    interval: str
    relative: str
    standing: str


def rows(result: Result, unit: Unit, found: Sequence[Ratio] = (), *, censored: float | None = None) -> list[Row]:
    """Return the heading and one row per arm of a result whose readings are in that unit.

    Parameters
    ----------
    found
        Ratios to one of the arms.
    censored
        What a pull that timed out counts as; None if none could.
    """
    name = column_name(result.problem)
    sign = f" [{unit.sign}]" if unit.sign else ""
    true = "" if result.problem.rounds else f"true {name}{sign}"  # of an arm by itself rounds claim nothing
    several = len(result.arms) > 1  # of one arm alone there is nothing to compare
    heading = Row("command", "runs", name + sign, true, "relative" * several, "standing" * several)
    by_arm = {ratio.arm: ratio for ratio in found}
    return [heading, *(_row(result, arm, by_arm, censored) for arm in result.arms)]


def statistics_rows(
    result: Result, tapes: Tapes, unit: Unit, times: Sequence[Mapping[str, Any]] = ()
) -> list[tuple[str, ...]]:
    """Return mean, deviation, MAD and range of each arm for a table, beside user and system time where measured.

    They describe the readings and claim nothing; where one timed out, a mean means nothing.

    Parameters
    ----------
    result, tapes
        In the units of the readings.
    unit
        What they are shown in.
    times
        What hyperfine would write of each arm.
    """
    sign = f" [{unit.sign}]" if unit.sign else ""
    clock = unit_for("wall", [], unit.name or None) if unit in TIMES else TIMES[1]
    known = {row["command"]: row for row in times if row.get("user") is not None}
    heading = ("command", *(f"{name}{sign}" for name in ("mean", "deviation", "MAD", "least", "most")))
    heading += (f"user [{clock.sign}]", f"system [{clock.sign}]") if known else ()

    def row(arm: Arm) -> tuple[str, ...]:
        values = [x / unit.size for x in tapes.get(arm.name, ()) if x is not None and not math.isnan(x)]
        whole = values if all(map(math.isfinite, values)) else []
        found = (
            fmean(whole) if whole else math.nan,
            stdev(whole) if len(whole) > 1 else math.nan,
            arm.mad / unit.size,
            min(values, default=math.nan),
            max(values, default=math.nan),
        )
        spent = [known.get(arm.name, {}).get(name, math.nan) / clock.size for name in ("user", "system")]
        return (name_of(arm.name), *(number(x, signs=ON_TERMINALS) for x in (*found, *(spent if known else ()))))

    return [heading, *map(row, result.arms)]


def quantile_cell(x: float, censored: float | None = None) -> str:
    """Return an observed quantile for a table; one at which pulls timed out is called so."""
    return "time-out" if x == censored else number(x, signs=ON_TERMINALS)


def _row(result: Result, arm: Arm, found: dict[str, Ratio], censored: float | None) -> Row:
    ratio = found.get(arm.name)
    relative = "1" if arm.name in {r.reference for r in found.values()} else ""
    if ratio is not None:
        relative = _relative(result, ratio)
    interval = "-" if math.isinf(arm.low) and math.isinf(arm.high) else "contradictory"
    if arm.low <= arm.high and interval != "-":
        interval = " to ".join(value_ends(arm.low, arm.high, result.problem, ON_TERMINALS))
    return Row(
        name_of(arm.name),
        count(arm.n),
        "time-out" if arm.observed == censored else value(arm.observed, result.problem, ON_TERMINALS),
        interval,
        relative,
        standing_of(result, arm.name),
    )


def _relative(result: Result, ratio: Ratio) -> str:
    """Return a ratio and what is certain of it: both ends, or the one there is."""
    if not 0 < ratio.observed < math.inf:
        return "-"
    told = number(ratio.observed, factor_step(ratio.observed))
    low, high = number(ratio.low, factor_step(ratio.low), ROUND_FLOOR), _above(ratio.high)
    if not is_bounded(result, ratio):
        return told
    if ratio.low <= 0:
        return f"{told} (at most {high})"
    return f"{told} (at least {low})" if math.isinf(ratio.high) else f"{told} ({low} to {high})"


def _above(x: float) -> str:
    return "" if math.isinf(x) else number(x, factor_step(x), ROUND_CEILING)


def is_bounded(result: Result, ratio: Ratio) -> bool:
    """Tell whether an interval of a ratio says something that does not sound like the contrary of the standing.

    An arm may be excluded by others than the best, by evidence that an interval for all pairs does not reach.
    """
    apart = {standing_of(result, ratio.arm), standing_of(result, ratio.reference)} == {"best", "excluded"}
    known = ratio.low > 0 or ratio.high < math.inf
    return known and not (apart and ratio.low <= 1 <= ratio.high)


def table(lines: Sequence[Sequence[str]], width: int | None = None, *, words: bool = True) -> str:
    """Return rows as aligned text: names to the left, numbers to the right.

    Parameters
    ----------
    width
        Shorten long names, and leave out what is missed least, so that a row fits into so many columns; None
        leaves all whole.
    words
        Whether the last column holds words and not numbers.
    """
    lines = _filled(lines)
    widths = _widths(lines, width, words=words)
    for spare in _SPARE:
        if width is not None and sum(widths) + 2 * len(widths) - 2 > width and spare in lines[0]:
            place = lines[0].index(spare)
            lines = [(*line[:place], *line[place + 1 :]) for line in lines]
            widths = _widths(lines, width, words=words)
    last = len(widths) - 1
    lines = [(_cut(line[0], widths[0]), *line[1:-1], _cut(line[-1], widths[last])) for line in lines]
    return "\n".join(
        "  ".join(
            cell.ljust(room) if i == 0 or (i == last and words) else cell.rjust(room)
            for i, (cell, room) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def _widths(lines: Sequence[Sequence[str]], width: int | None, *, words: bool) -> list[int]:
    """Return how wide columns are; of those that hold names the first gives way before the last."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    last = len(widths) - 1
    for place, least in ((0, _LEAST_NAME), (last, 2 * _LEAST_NAME)) if words else ((0, _LEAST_NAME),):
        if width is not None:
            others = sum(widths) - widths[place] + 2 * last
            widths[place] = min(widths[place], max(least, width - others))
    return widths


def _filled(lines: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Return rows without the columns that have no title."""
    titled = [i for i, title in enumerate(lines[0]) if title]
    return [tuple(line[i] for i in titled) for line in lines]


def _cut(name: str, width: int) -> str:
    return name if len(name) <= width else f"{name[: width - 3]}..."


def paragraph(result: Result, unit: Unit, metric: str = "stdout", *, alarms: bool = True) -> str:
    """Return the summary of a result whose readings are in that unit, in words for what was measured."""
    return " ".join(answer(result, unit, metric, alarms=alarms))


def answer(result: Result, unit: Unit, metric: str = "stdout", *, alarms: bool = True) -> list[str]:
    """Return the same piece by piece, the answer first."""
    plain = Voice("run", "run")
    voice = _VOICES.get(metric, plain) if result.problem.goal == "min" else plain
    arm = "statement" if "statements" in (result.conditions or {}) else "command"
    return sentences(result, alarms=alarms, voice=voice._replace(arm=arm, unit=unit.sign))


def markdown(lines: Sequence[Sequence[str]], text: str = "") -> str:
    r"""Return rows as a Markdown table, after a paragraph if there is one."""
    heading, *body = _filled([lines[0], *((_code(line[0]), *line[1:]) for line in lines[1:])])
    rule = f"|:---|{'---:|' * (len(heading) - 2)}:---|"
    table_lines = [_piped(heading), rule, *map(_piped, body)]
    return "\n".join([*([_escaped(text), ""] if text else []), *table_lines])


def _piped(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _code(name: str) -> str:
    """Return a name as code in a table; one that could leave the span of code is written letter by letter."""
    if "`" in name or name != name.strip() or ("\\" in name and "|" in name):
        return f"<code>{''.join(c if c.isalnum() else f'&#{ord(c)};' for c in name)}</code>"
    piped = name.replace("|", "\\|")
    return f"`{piped}`"


def _escaped(text: str) -> str:
    """Return text in which Markdown finds no markup: names come from elsewhere."""
    inside = "".join(f"\\{c}" if c in "\\`*_{}[]<>#|~&$!@" else c for c in text.strip())
    return re.sub(r"^(\d*)([-+.)=])", r"\1\\\2", inside)  # at its beginning a list, or a line under a heading
