"""A suite as a table, a page, JSON and CSV: values of `SuiteResult` in rows, the most important first."""

import csv
import io
import math
from decimal import ROUND_CEILING, ROUND_FLOOR
from typing import Any

from truearm.claims.suite_wording import ORDER, headline, paragraph
from truearm.claims.suites import Compared, Runs, SuiteResult
from truearm.claims.wording import amount, count, interval_ends, name_of, number, percent
from truearm.problem import Interval
from truearm.report import charts
from truearm.report.charts import axis
from truearm.report.export import cell
from truearm.report.html import assembled
from truearm.report.markup import note, section, short, table, text

_DRAWN = 200  # metrics: more are not read, and all are in the machine-readable part
_COLUMNS = ("metric", "arm", "goal", "standing", "reference_median", "median", "scale", "observed", "low", "high")


def ordered(result: SuiteResult) -> list[Compared]:
    """Return what was compared, the worst standing first and otherwise as it was printed.

    Examples
    --------
    >>> [one.metric for one in ordered(_example())]
    ['ms', 'mb']
    """
    return sorted(result.compared, key=lambda one: ORDER.index(one.standing))


def rows(result: SuiteResult) -> list[tuple[str, ...]]:
    """Return the heading and one row per metric and arm, every cell as text.

    Examples
    --------
    >>> rows(_example())
    [('metric', '', 'old', 'new', 'relative', 'standing'), ('ms', 'new', '2', '4', '2 (2 to 2)', 'worse'),
     ('mb', 'new', '1', '1', '1 (1 to 1)', 'not worse')]
    """
    one = len(result.suite.others) == 1
    reference = name_of(result.suite.reference)
    heading = ("metric", "" if one else "command", reference, name_of(result.suite.others[0]) if one else "median")
    return [(*heading, "relative", "standing"), *map(_row, ordered(result))]


def _row(one: Compared) -> tuple[str, ...]:
    medians = (short(number(x)) for x in (one.reference_median, one.median))
    return (name_of(one.metric), name_of(one.arm), *medians, _relative(one), one.standing)


def _relative(one: Compared) -> str:
    """Return how far an arm is from the reference, limits rounded outward: a factor, or a signed difference."""
    if math.isnan(one.observed):
        return "–"
    if one.scale == "ratio":
        low, high = (float(f"{x:.12g}") for x in (one.low, one.high))  # 0.5 came back from its logarithm as more
        ends = number(low, 0.01, ROUND_FLOOR), number(high, 0.01, ROUND_CEILING)
        observed, open_ends = number(one.observed, 0.01), one.low <= 0 and math.isinf(one.high)
    else:
        ends, observed = interval_ends(one.low, one.high), f"{'+' * (one.observed > 0)}{number(one.observed)}"
        open_ends = math.isinf(one.low) and math.isinf(one.high)
    return observed if open_ends else f"{observed} ({' to '.join(map(short, ends))})"


def document(result: SuiteResult, runs: Runs) -> dict[str, Any]:
    """Return a suite and its runs for JSON: all that a stranger needs to recompute it.

    Examples
    --------
    >>> sorted(document(_example(), {}))
    ['failed', 'late', 'metrics', 'only', 'rounds', 'runs', 'schema', 'status', 'suite', 'summary', 'uncounted']
    """
    told = {arm: [None if run is None else dict(run) for run in tape] for arm, tape in runs.items()}
    return {**result.to_dict(), "summary": paragraph(result), "runs": told}


def csv_text(result: SuiteResult) -> str:
    """Return one line per metric and arm.

    Examples
    --------
    >>> print(csv_text(_example()).splitlines()[1])
    ms,new,min,worse,2.0,4.0,ratio,2.0,2.0,2.0
    """
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for one in ordered(result):
        values = (getattr(one, name) for name in _COLUMNS)
        writer.writerow([cell(x) if not isinstance(x, float) or math.isfinite(x) else "" for x in values])
    return written.getvalue()


def page(result: SuiteResult, runs: Runs) -> str:
    """Return a suite as one self-contained page.

    Examples
    --------
    >>> written = page(_example(), {})
    >>> written[:15], written.count('class="bar"')
    ('<!DOCTYPE html>', 2)
    """
    titles, *body = rows(result)
    shown = [i for i, title in enumerate(titles) if title]
    parts = [
        _doubts(result),
        _picture(result),
        section(
            "metrics",
            "All metrics",
            table([titles[i] for i in shown], ([row[i] for i in shown] for row in body)),
            note(_told(result)),
        )
        if body
        else "",
    ]
    return assembled(headline(result), paragraph(result), parts, document(result, runs))


def _doubts(result: SuiteResult) -> str:
    named = [text(name_of(one.metric)) for one in result.named("doubtful")]
    told = f'<p class="alarm">Nothing is claimed of {", ".join(named[:_DRAWN])}.</p>'
    return section("doubts", "Doubts", told) if named else ""


def _told(result: SuiteResult) -> str:
    suite = result.suite
    delta, reference = percent(suite.problem.delta), name_of(suite.reference)
    return (
        "Medians are shown; of an arm by itself nothing is claimed. Relative is the median over rounds of an "
        f"arm's reading over that of {reference} in the same round (a signed difference where readings are not "
        f"positive), with limits that hold for all metrics at once, error probability {delta}."
    )


def _picture(result: SuiteResult) -> str:
    drawn = [one for one in ordered(result) if one.scale == "ratio" and 0 < one.observed < math.inf][:_DRAWN]
    if not drawn:
        return ""
    window = _window(drawn)
    tolerance = result.suite.problem.tolerance
    much = tolerance.amount if tolerance.relative else 0.0
    items = "".join(_item(one, window, much, several=len(result.suite.others) > 1) for one in drawn)
    ends = axis([tick._replace(label=f"{tick.label}x") for tick in charts.ticks(window)])
    left = len(result.compared) - len(drawn)
    some = f" {count(left)} without a ratio, or beyond the first {_DRAWN}, are in the table." if left else ""
    band = f"Shaded: worse by no more than {amount(tolerance)}." if much else "Shaded: equal."
    return section(
        "picture",
        f"Beside {name_of(result.suite.reference)}",
        f'<ol class="arms">{items}<li class="row axis"><span></span><span class="picture">{ends}</span></li></ol>',
        note(f"How many times the reading of {name_of(result.suite.reference)}, with limits. {band}{some}"),
    )


def _window(drawn: list[Compared]) -> Interval:
    """Return the ratios that the picture shows: all observed ones, with room for their limits."""
    known = [x for one in drawn for x in (one.low, one.observed, one.high) if 0 < x < math.inf]
    far = max(max(one.observed, 1 / one.observed) for one in drawn)
    low, high = max(min(*known, 0.98), 0.7 / far), min(max(*known, 1.02), 1.4 * far)
    room = (high - low) / 30
    return Interval(max(0.0, low - room), high + room)


def _item(one: Compared, window: Interval, much: float, *, several: bool) -> str:
    ends = (1.0, 1 + much) if one.goal == "min" else (1 / (1 + much), 1.0)
    shade = tuple(min(max(charts.at(x, window), 0.0), charts.WIDTH) for x in ends)
    name = f"{one.metric} of {one.arm}" if several else one.metric
    drawn = charts.beside(
        (charts.at(one.low, window), charts.at(one.high, window)), charts.at(one.observed, window), shade, name
    )
    return (
        f'<li class="row"><span class="name">{text(name_of(name))}</span><span class="picture">{drawn}</span>'
        f'<span class="where">{text(_relative(one))}</span><span class="state">{one.standing}</span></li>'
    )


def _example() -> SuiteResult:
    """Return a small suite for the examples above."""
    from truearm.claims.suites import Suite, judged
    from truearm.problem import Problem

    suite = Suite(problem=Problem(arms=("old", "new"), goal="min", rounds=True), reference="old")
    old, new = {"mb": 1.0, "ms": 2.0}, {"mb": 1.0, "ms": 4.0}
    return judged(suite, {"old": [old] * 30, "new": [new] * 30})
