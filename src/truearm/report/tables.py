"""Results as rows of text, and rows as a table for the terminal (by rich) or in Markdown."""

import io
import math
import re
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR
from statistics import fmean, median_high, stdev
from typing import Any

from truearm.claims.gates import Account
from truearm.claims.result import Analysis, Arm, Place, Ratio, Result
from truearm.claims.suite import Compared, SuiteResult
from truearm.problem import Adversary
from truearm.report.numbers import (
    PLAIN_UNIT,
    Unit,
    breakdown_percent,
    column_name,
    count,
    evidence,
    factor,
    factor_step,
    interval,
    name_of,
    number,
    unit_for,
    value,
)
from truearm.report.summaries import SUITE_ORDER, metric_apart
from truearm.report.svg import Span
from truearm.report.words import Terms, standing

_MIN_NAME = 12  # letters of a name that are always shown
_WORDS = ("standing", "command", "base", "verdict", "better than", "worse", "holds")  # not numbers
_SPARE = ("MAD", "readings", "runs", "pulls")  # columns that a narrow table drops, in this order
_LOG_SPAN = 10.0  # a chart whose ends differ by a larger factor has a logarithmic scale


Rows = list[tuple[str, ...]]  # the titles of columns, then a row of cells each


def _drop_untitled(rows: Sequence[Sequence[str]]) -> Rows:
    """Return rows without the columns that have no title."""
    return [tuple(cell for cell, title in zip(row, rows[0], strict=True) if title) for row in rows]


def display_order(result: Result) -> tuple[str, ...]:
    """Return the arms in the order of tables: those of an analysis the best first."""
    return result.ranking if isinstance(result, Analysis) else result.problem.arms


def arm_rows(result: Result, terms: Terms, found: Sequence[Ratio] = ()) -> Rows:
    """Return a row for each arm, with its ratio if there is one, and for an analysis with its MAD."""
    problem, several, unit = result.problem, len(result.arms) > 1, terms.unit
    name, ratio = column_name(problem), "ratio per round" if problem.rounds else "ratio"
    titles = (
        terms.arm,
        f"{terms.reading}s",
        unit.title(name),
        "" if problem.rounds else unit.title(f"true {name}"),  # rounds claim nothing about one arm
        unit.title("MAD") * (isinstance(result, Analysis) and problem.target not in ("mean", "share")),
        ratio * (several and bool(found) and problem.target != "mean"),
        "standing" * several,
    )
    arms, by_arm = {arm.name: arm for arm in result.arms}, _ratios_by_arm(found)

    def row(arm: Arm) -> tuple[str, ...]:
        own = by_arm.get(arm.name)
        return (
            name_of(arm.name),
            count(arm.n),
            "time-out" if arm.observed == problem.time_out else value(arm.observed, problem, unit),
            interval(arm.low, arm.high, problem, unit),
            number(arm.mad / unit.size),
            "-" if own is None else factor_cell(own.observed, *_limits(result, own)),
            standing(result, arm.name, by=True),
        )

    return _drop_untitled([titles, *(row(arms[name]) for name in display_order(result))])


def _ratios_by_arm(found: Sequence[Ratio]) -> dict[str, Ratio]:
    """Return the ratio of each arm, that of the reference too."""
    references = {ratio.reference: Ratio(ratio.reference, ratio.reference, 1.0, 0.0, math.inf) for ratio in found}
    return references | {ratio.arm: ratio for ratio in found}


def factor_cell(seen: float, low: float, high: float) -> str:
    """Return a factor and its limits, rounded outward: both, or the one there is."""
    low, high = (float(f"{x:.12g}") for x in (low, high))  # 0.5 comes back from its logarithm as more
    if not 0 < seen < math.inf or (low <= 0 and high == math.inf):
        return factor(seen) if 0 < seen < math.inf else "-"
    step = factor_step(seen)  # of the limits too: more digits would say nothing
    least = number(low, min(step, factor_step(low)) if 0 < low < 1 else step, ROUND_FLOOR)
    most = number(high, step, ROUND_CEILING)
    limits = f"at most {most}" if low <= 0 else f"at least {least}" if math.isinf(high) else f"{least} to {most}"
    return f"{factor(seen)} ({limits})"


def _limits(result: Result, ratio: Ratio) -> tuple[float, float]:
    """Return the limits of a ratio, none if they would contradict the standing.

    An arm may be excluded by others than the best, by evidence that an interval for all pairs does not reach.
    """
    places = {standing(result, ratio.arm), standing(result, ratio.reference)}
    is_odd = places == {"best", "excluded"} and ratio.low <= 1 <= ratio.high
    return (0.0, math.inf) if is_odd else (ratio.low, ratio.high)


def statistics_rows(result: Result, unit: Unit, times: Sequence[Mapping[str, Any]] = ()) -> Rows:
    """Return mean, deviation, MAD and range of each arm, and user and system time where measured.

    They describe the readings and claim nothing; a mean that includes a time-out is omitted. Times are those that
    hyperfine would write.
    """
    clock = unit_for("wall", [], unit.name or None)
    known = {row["command"]: row for row in times if row.get("user") is not None}
    clocks = (clock.title("user"), "system") if known else ()
    heading = ("command", unit.title("mean"), "deviation", "MAD", "min", "max", *clocks)  # fits 80 columns

    def row(arm: Arm) -> tuple[str, ...]:
        readings = (result.readings or {}).get(arm.name, ())
        found = hyperfine_statistics([x for x in readings if x is not None and not math.isnan(x)])
        shown = [found["mean"], found["stddev"], arm.mad, found["min"], found["max"]]
        numbers = [math.nan if x is None else x / unit.size for x in shown]
        if known:
            numbers += [known.get(arm.name, {}).get(name, math.nan) / clock.size for name in ("user", "system")]
        return (name_of(arm.name), *map(number, numbers))

    return [heading, *map(row, result.arms)]


def hyperfine_statistics(times: Sequence[float]) -> dict[str, float | None]:
    """Return the statistics that hyperfine shows, None where a time-out leaves one open.

    The median is the order statistic that arms are compared by: of two middle times the slower one.
    """
    whole = times if all(map(math.isfinite, times)) else []
    found = {
        "mean": fmean(whole) if whole else math.inf,
        "stddev": stdev(whole) if len(whole) > 1 else math.inf,
        "median": median_high(times) if times else math.inf,
        "min": min(times, default=math.inf),
        "max": max(times, default=math.inf),
    }
    return {name: x if math.isfinite(x) else None for name, x in found.items()}


def control_rows(result: Result) -> Rows:
    """Return how every arm compares with the control; empty without a control."""
    if result.control is None:
        return []
    control = name_of(result.control.arm)
    phrases = {"better": "better than", "not better": "not better than", "open": "open against"}
    rows: Rows = [("arm", "standing", "evidence", *("up to: " * (i == 0) + a for i, a in enumerate(Adversary)))]
    for variant in result.control.variants:
        place = f"{phrases[variant.standing]} {control}"
        points = map(point_cell, variant.breakdown)
        rows.append((name_of(variant.arm), place, evidence(variant.log_evidence), *points))
    return rows


def tier_rows(found: Result) -> Rows:
    """Return every arm with its tier and place, and the nearest arm it is better than; empty without tiers."""
    if not isinstance(found, Analysis) or found.tiers is None:
        return []
    tier = {arm: f"{i}" for i, arms in enumerate(found.tiers.tiers, 1) for arm in arms}
    below = {claim.better: claim for claim in reversed(found.tiers.nearest)}
    adversary = found.problem.declared.adversary.value

    def row(place: Place) -> tuple[str, ...]:
        claim = below.get(place.arm)
        worse = "-" if claim is None else name_of(claim.worse)
        up_to = None if claim is None or claim.breakdown is None else getattr(claim.breakdown, adversary)
        places = f"{place.best}" if place.best == place.worst else f"{place.best} to {place.worst}"
        return name_of(place.arm), tier[place.arm], places, worse, point_cell(up_to)

    return [("arm", "tier", "place", "better than", "up to bad readings"), *map(row, found.tiers.places)]


def contest_rows(found: Result) -> Rows:
    """Return every comparison of two arms, the most certain first; empty without `pairs`."""
    contests = [one for one in getattr(found, "contests", ()) if one.breakdown is not None]
    rows: Rows = [("better", "worse", "evidence", "p-value", *(a.value for a in Adversary), "holds")]
    for c in sorted(contests, key=lambda c: -c.log_evidence):
        sure = evidence(c.log_evidence), f"{c.p_value:.3g}", *map(point_cell, c.breakdown)
        rows.append((name_of(c.better), name_of(c.worse), *sure, "yes" if c.excluded else "no"))
    return rows if contests else []


def ledger_rows(account: Account) -> Rows:
    """Return every gate of a ledger."""
    rows: Rows = [("candidate", "gate", "base", "needs", "evidence", "readings", "verdict")]
    for gate in account.gates:
        reached = "" if gate.verdict == "open" else evidence(gate.log_evidence)
        pulls = count(gate.details["pulls"]) if "pulls" in gate.details else ""
        name, base = name_of(gate.name), name_of(gate.base)
        rows.append((name, count(gate.number), base, evidence(gate.log_bar), reached, pulls, gate.verdict))
    return rows


def point_cell(point: float | None) -> str:
    """Return a breakdown point, rounded down."""
    return "-" if point is None else breakdown_percent(point)


def suite_rows(result: SuiteResult) -> Rows:
    """Return the heading and a row for each metric and arm, the most important first."""
    single, reference = len(result.suite.others) == 1, name_of(result.suite.reference)
    other = name_of(result.suite.others[0]) if single else "median"
    heading = ("metric", "" if single else "command", reference, other, "ratio per round", "standing", "up to")

    def row(one: Compared) -> tuple[str, ...]:
        medians = (number(x) for x in (one.reference_median, one.median))
        point = point_cell(suite_point(result, one))
        return (name_of(one.metric), name_of(one.arm), *medians, apart_cell(one), one.standing, point)

    return _drop_untitled([heading, *map(row, suite_order(result))])


def suite_order(result: SuiteResult) -> list[Compared]:
    """Return the comparisons, the worst standing first."""
    return sorted(result.compared, key=lambda one: SUITE_ORDER.index(one.standing))


def suite_point(result: SuiteResult, one: Compared) -> float | None:
    """Return the largest share of bad runs, by the declared adversary, under which a comparison holds."""
    point: float | None = getattr(one.breakdown, result.suite.problem.declared.adversary.value)
    return point


def apart_cell(one: Compared) -> str:
    """Return how far an arm is from the reference, with limits rounded outward."""
    if one.scale == "ratio":
        return factor_cell(one.observed, one.low, one.high)
    is_open = math.isnan(one.observed) or math.isinf(one.high - one.low)
    return metric_apart(one) + ("" if is_open else f" ({interval(one.low, one.high)})")


# Tables


def table(lines: Rows, width: int | None = None) -> str:
    """Return rows as aligned text: names and words to the left, numbers to the right.

    Names are shortened and spare columns dropped so that a row fits the width, if there is one.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    lines = drop_spare(lines, width)
    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    widths = column_widths(lines, width)
    for i, (title, own) in enumerate(zip(lines[0], widths, strict=True)):
        is_left = i == 0 or title in _WORDS
        drawn.add_column(justify="left" if is_left else "right", no_wrap=True, overflow="ellipsis", width=own)
    for line in lines:
        drawn.add_row(*map(Text, line))
    text = io.StringIO()
    Console(file=text, width=_total(widths) + 2, color_system=None, legacy_windows=False).print(drawn)
    return "\n".join(line.rstrip() for line in text.getvalue().rstrip("\n").split("\n"))


def drop_spare(lines: Rows, width: int | None, spare: Sequence[str] = _SPARE) -> Rows:
    """Return rows without the spare columns that do not fit the width; the first of them goes first."""
    for one in spare:
        titles = [title.split(" [")[0] for title in lines[0]]
        if width is not None and one in titles and _total(column_widths(lines, width)) > width:
            place = titles.index(one)
            lines = [(*line[:place], *line[place + 1 :]) for line in lines]
    return lines


def column_widths(lines: Rows, width: int | None) -> list[int]:
    """Return the widths of columns: words in the last one and then names give way to fit, numbers never do."""
    from rich.cells import cell_len

    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    for place, least in ((-1, 2 * _MIN_NAME if lines[0][-1] in _WORDS else widths[-1]), (0, _MIN_NAME)):
        excess = 0 if width is None else max(0, _total(widths) - width)
        widths[place] = max(widths[place] - excess, min(widths[place], least))
    return widths


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + 2 * len(widths) - 2


def markdown(lines: Rows, text: str = "") -> str:
    r"""Return rows as a Markdown table, after a paragraph if there is one."""
    titles, *body = (f"| {' | '.join(cells)} |" for cells in lines[:1] + [(_code(x), *y) for x, *y in lines[1:]])
    rule = f"|:---|{'---:|' * (len(lines[0]) - 2)}:---|"
    above = ["  \n".join(map(escape_markdown, text.split("\n"))), ""] if text else []
    return "\n".join([*above, titles, rule, *body])


def _code(name: str) -> str:
    """Return a name as code in a table; one that could leave the code span is written as character references."""
    if "`" in name or name != name.strip() or ("\\" in name and "|" in name):
        return f"<code>{''.join(c if c.isalnum() else f'&#{ord(c)};' for c in name)}</code>"
    piped = name.replace("|", "\\|")
    return f"`{piped}`"


def escape_markdown(text: str) -> str:
    """Return text without Markdown markup: arm names are not trusted."""
    inside = "".join(f"\\{c}" if c in "\\`*_{}[]<>#|~&$!@" else c for c in text.strip())
    return re.sub(r"^(\d*)([-+.)=])", r"\1\\\2", inside)  # at the start of a line: a list, or a heading above


# Intervals as lines of letters


def spans(result: Result, found: Sequence[Ratio] = (), unit: Unit = PLAIN_UNIT) -> list[Span]:
    """Return what is drawn for each row of a table: in rounds an arm's ratio, else its own interval."""
    if not result.problem.rounds:
        own = {arm.name: Span(*(x / unit.size for x in (arm.low, arm.observed, arm.high))) for arm in result.arms}
        return [own[name] for name in display_order(result)]
    by_arm = _ratios_by_arm(found)

    def of(ratio: Ratio | None) -> Span:
        if ratio is None:
            return Span(math.nan, math.nan, math.nan)
        low, high = _limits(result, ratio)
        is_known = low > 0 or high < math.inf
        return Span(low, ratio.observed, high) if is_known else Span(*(ratio.observed,) * 3)

    return [of(by_arm.get(name)) for name in display_order(result)]


def draw_spans(arms: Sequence[Span], width: int, *, mark: float | None = None, plain: bool = False) -> list[str]:
    """Return a scale and a line for each arm, with a mark on all lines; nothing if all values are equal."""
    known = [x for arm in arms for x in arm if math.isfinite(x)]
    low, high = min(known, default=0.0), max(known, default=0.0)
    if not low < high:
        return []
    by_log = low > 0 and high / low > _LOG_SPAN
    line, left, right, dot, rule = ("-", "|", "|", "o", ":") if plain else ("─", "├", "┤", "●", "│")

    def place(x: float) -> int:
        x = min(max(x, low), high)
        share = math.log(x / low) / math.log(high / low) if by_log else (x - low) / (high - low)
        return round(share * (width - 1))

    def row(arm: Span) -> str:
        letters = [" "] * width
        if mark is not None and low <= mark <= high:
            letters[place(mark)] = rule
        if math.isnan(arm.observed):
            return "".join(letters).rstrip()
        first, last = place(arm.low), place(arm.high)
        letters[first : last + 1] = line * (last + 1 - first)
        if first < last:
            letters[first] = left if arm.low >= low else line
            letters[last] = right if arm.high <= high else line
        letters[place(arm.observed)] = dot
        return "".join(letters).rstrip()

    def end(x: float, rounding: str) -> str:
        return number(x, abs(high) / 100 if abs(high) >= 10 else factor_step(x), rounding)

    first, last = end(low, ROUND_FLOOR), end(high, ROUND_CEILING)
    return [f"{first}{' ' * max(1, width - len(first) - len(last))}{last}", *map(row, arms)]
