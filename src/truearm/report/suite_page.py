"""A suite as one self-contained page: every metric beside the reference, drawn and in a table."""

import math
from decimal import ROUND_CEILING
from os import PathLike
from pathlib import Path

from truearm.claims.suites import Compared, Runs, SuiteResult
from truearm.problem import Interval
from truearm.report import charts
from truearm.report.charts import axis
from truearm.report.export import suite_document
from truearm.report.html import assembled
from truearm.report.markup import note, section, table, text
from truearm.report.numbers import amount, count, name_of, percent
from truearm.report.tables import apart_cell, suite_order, suite_rows
from truearm.report.words import suite_headline, suite_summary

_DRAWN = 200  # metrics: more are not read, and all are in the machine-readable part


def page(result: SuiteResult, runs: Runs) -> str:
    """Return a suite as one self-contained page."""
    titles, *body = suite_rows(result)
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
    return assembled(suite_headline(result), suite_summary(result, "command"), parts, suite_document(result, runs))


def save(result: SuiteResult, path: "str | PathLike[str]") -> None:
    """Write a suite as a page."""
    Path(path).write_text(page(result, result.runs), encoding="utf-8")


def _doubts(result: SuiteResult) -> str:
    named = [text(name_of(one.metric)) for one in result.named("doubtful")]
    told = f'<p class="alarm">Nothing is claimed of {", ".join(named[:_DRAWN])}.</p>'
    return section("doubts", "Doubts", told) if named else ""


def _told(result: SuiteResult) -> str:
    suite = result.suite
    delta, reference = percent(suite.problem.error, ROUND_CEILING), name_of(suite.reference)
    return (
        "Medians are shown; of an arm by itself nothing is claimed. Relative is the median over rounds of an "
        f"arm's reading over that of {reference} in the same round (a signed difference where readings are not "
        f"positive), with limits that hold for all metrics at once, error probability {delta}. Up to is the "
        "largest share of bad runs under which what is said of a metric is certified, for all metrics at once."
    )


def _picture(result: SuiteResult) -> str:
    drawn = [one for one in suite_order(result) if one.scale == "ratio" and 0 < one.observed < math.inf][:_DRAWN]
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
        f'<span class="where">{text(apart_cell(one))}</span><span class="state">{one.standing}</span></li>'
    )
