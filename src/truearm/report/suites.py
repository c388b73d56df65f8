"""A suite as a table, JSON and CSV: values of `SuiteResult` in rows, the most important first."""

import csv
import io
import math
from decimal import ROUND_CEILING, ROUND_FLOOR
from typing import Any

from truearm.claims.suites import Compared, Runs, SuiteResult
from truearm.report.export import cell
from truearm.report.suite_wording import ORDER, paragraph
from truearm.report.wording import ON_PAGES, interval_ends, name_of, number, percent

_COLUMNS = (
    "metric",
    "arm",
    "goal",
    "standing",
    "reference_median",
    "median",
    "scale",
    "observed",
    "low",
    "high",
    "up_to",
)


def ordered(result: SuiteResult) -> list[Compared]:
    """Return what was compared, the worst standing first and otherwise as it was printed."""
    return sorted(result.compared, key=lambda one: ORDER.index(one.standing))


def rows(result: SuiteResult) -> list[tuple[str, ...]]:
    """Return the heading and one row per metric and arm, every cell as text."""
    one = len(result.suite.others) == 1
    reference = name_of(result.suite.reference)
    heading = ("metric", "" if one else "command", reference, name_of(result.suite.others[0]) if one else "median")
    return [(*heading, "relative", "standing", "up to"), *(_row(result, one) for one in ordered(result))]


def _row(result: SuiteResult, one: Compared) -> tuple[str, ...]:
    medians = (number(x, signs=ON_PAGES) for x in (one.reference_median, one.median))
    point = up_to(result, one)
    bad = "-" if point is None else percent(point, ROUND_FLOOR)
    return (name_of(one.metric), name_of(one.arm), *medians, relative(one), one.standing, bad)


def up_to(result: SuiteResult, one: Compared) -> float | None:
    """Return the largest share of bad runs, of the kind declared, under which what is said of a metric holds."""
    declared = result.suite.problem.declared
    point: float | None = getattr(one.breakdown, declared.adversary.value)
    return point


def relative(one: Compared) -> str:
    """Return how far an arm is from the reference, limits rounded outward: a factor, or a signed difference."""
    if math.isnan(one.observed):
        return ON_PAGES.none
    if one.scale == "ratio":
        low, high = (float(f"{x:.12g}") for x in (one.low, one.high))  # 0.5 came back from its logarithm as more
        ends = number(low, 0.01, ROUND_FLOOR), number(high, 0.01, ROUND_CEILING, signs=ON_PAGES)
        observed, open_ends = number(one.observed, 0.01), one.low <= 0 and math.isinf(one.high)
    else:
        ends, observed = (
            interval_ends(one.low, one.high, ON_PAGES),
            f"{'+' * (one.observed > 0)}{number(one.observed)}",
        )
        open_ends = math.isinf(one.low) and math.isinf(one.high)
    return observed if open_ends else f"{observed} ({' to '.join(ends)})"


def document(result: SuiteResult, runs: Runs) -> dict[str, Any]:
    """Return a suite and its runs for JSON: all that a stranger needs to recompute it."""
    told = {arm: [None if run is None else dict(run) for run in tape] for arm, tape in runs.items()}
    return {**result.to_dict(), "summary": paragraph(result, "command"), "runs": told}


def csv_text(result: SuiteResult) -> str:
    """Return one line per metric and arm."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for one in ordered(result):
        values = (*(getattr(one, name) for name in _COLUMNS[:-1]), up_to(result, one))
        writer.writerow([cell(x) if not isinstance(x, float) or math.isfinite(x) else "" for x in values])
    return written.getvalue()


def example() -> SuiteResult:
    """Return a small suite, for examples."""
    from truearm.claims.suites import Suite, judged
    from truearm.problem import Problem

    suite = Suite(problem=Problem(arms=("old", "new"), goal="min", rounds=True), reference="old")
    old, new = {"mb": 1.0, "ms": 2.0}, {"mb": 1.0, "ms": 4.0}
    return judged(suite, {"old": [old] * 30, "new": [new] * 30})
