"""A result as one page: a file that needs no network, no server and, to be read, no script.

What the templates show is gathered here; the markup and the notes are in `templates/`. The script only moves what
Python computed (`truearm.report.slider`).
"""

import base64
import hashlib
import json
import math
import re
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR
from functools import cache
from importlib import resources
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jinja2 import Environment, PackageLoader
from markupsafe import Markup

from truearm import __version__
from truearm.claims.certificate import Bound, Tapes
from truearm.claims.certify import ratios
from truearm.claims.gates import Account, Gate
from truearm.claims.result import Analysis, Ratio, Result
from truearm.claims.suite import Runs, SuiteResult
from truearm.errors import InvalidArgument
from truearm.problem import Adversary, Interval
from truearm.report import svg, words
from truearm.report.export import ledger_document, suite_document
from truearm.report.numbers import (
    ON_PAGES,
    PLAIN_UNIT,
    Unit,
    amount,
    count,
    name_of,
    names,
    number,
    percent,
    plural,
)
from truearm.report.slider import Slider
from truearm.report.tables import (
    Rows,
    Span,
    apart_cell,
    arm_rows,
    control_rows,
    display_order,
    ledger_rows,
    point_cell,
    spans,
    suite_order,
    suite_rows,
    tier_rows,
)

_EMBEDDED = re.compile(r'<script type="application/json" id="result">(.*?)</script>', re.DOTALL)
_MAX_ROWS = 200  # of a table or a chart: the machine-readable part has all
_MAX_DRAWN = 240  # readings drawn per arm, evenly spaced in order of pull
_MAX_MARKS = 6000  # readings drawn in all, so that a page of fifty arms stays small
_SHARES = (0.95, 0.9, 0.75, 0.5, 0.25)  # of the quality curve
_RULES = {
    "pooled": "one portfolio of bets against each arm, for adversaries blind to the future",
    "causal": "pairs of arms, for adversaries blind to the future",
    "clairvoyant": "pairs of arms, for adversaries that see the future",
    "dependent": "pairs of arms that may move together",
    "paired": "wins side by side, round by round",
}


class Parts(NamedTuple):
    """What a page shows of a result: words, sections as HTML, and what its script moves."""

    title: str
    summary: str
    sections: str
    picture: dict[str, Any]


@cache
def _templates() -> Environment:
    loader = PackageLoader("truearm.report")
    found = Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    found.filters.update(name=name_of, names=names, percent=percent, thousands=count)
    found.filters["ceiling"] = lambda share: percent(share, ROUND_CEILING)
    return found


def _render(template: str, **data: object) -> str:
    return _templates().get_template(template).render(**data)


def asset(name: str) -> str:
    """Return a file of the page: its style or its script."""
    return resources.files("truearm.report").joinpath("templates", name).read_text(encoding="utf-8")


def page(result: Result, readings: Tapes | None, **options: Any) -> str:  # noqa: ANN401 - those of `parts`
    """Return a report as one self-contained HTML page, with a slider of the contamination."""
    return _assemble(parts(result, readings, **options), result.to_dict())


def parts(
    result: Result,
    readings: Tapes | None,
    *,
    title: str | None = None,
    unit: Unit = PLAIN_UNIT,
    metric: str | None = None,
    certificate: bool = True,
    voice: words.Voice | None = None,
    gate: Gate | None = None,
) -> Parts:
    """Return the parts of a result's page, for embedding in another page.

    Parameters
    ----------
    readings
        Those the result was found from, per arm in order of pull, in the user's units; None for a pull never
        told. Without readings, as after an analysis of counts, there is no slider.
    title
        Heading of the page; the answer in a few words by default.
    metric
        What was measured, if it was a command: "wall", "cpu", "memory" or "stdout".
    gate
        The verdict of a gate, which is then the answer.
    """
    unit = PLAIN_UNIT if result.problem.target == "share" else unit
    voice = voice or (words.voice_for(result, metric, unit) if metric else words.PLAIN._replace(unit=unit))
    slider = None if readings is None else Slider(result, readings, voice)
    found = ratios(result, readings=readings) if result.problem.rounds else ()
    arms = arm_rows(result, voice, found)
    sections = _render(
        "result.html",
        result=result,
        voice=voice,
        alarms=[(a.kind, words.alarm(a, result.problem, voice)) for a in (*result.doubts, *result.alarms)],
        control=control_rows(result)[: _MAX_ROWS + 1],
        compare=slider and _ratio_chart(result, found, arms),
        candidates=slider and slider.section(),
        arms=arms,
        pairs=_pairs(result) if isinstance(result, Analysis) else None,
        tiers=_tiers(result) if isinstance(result, Analysis) else None,
        quality=_quality(result, voice),
        readings=None if readings is None else _strips(result, readings, voice),
        certificate=_certificate(result, voice) if certificate else None,
    )
    answer = words.headline(result, voice, gate) if title is None else title
    said = words.lines(result, alarms=False, voice=voice if metric or voice.ended else None, gate=gate)
    summary = "\n".join(said[gate is not None and title is None :])
    return Parts(answer, summary, sections, {} if slider is None else slider.script_data())


def _assemble(found: Parts, result: object) -> str:
    script = asset("script.js")
    mark = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return _render(
        "page.html",
        title=name_of(found.title),
        summary=found.summary,
        sections=Markup(found.sections),
        version=__version__,
        style=Markup(asset("style.css")),
        script=Markup(script),
        script_hash=Markup(f"sha256-{mark}"),
        result=_embed(result),
        picture=_embed(found.picture),
    )


def _embed(data: object) -> Markup:
    """Return JSON that cannot end the element it is in."""
    plain = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return Markup(plain.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


def save(result: Result, path: "str | PathLike[str]") -> None:
    """Write a result that contains its readings as a page."""
    counted = isinstance(result, Analysis) and result.counts is not None
    if result.readings is None and not counted:
        raise InvalidArgument("the result does not contain its readings; write page(result, readings) yourself")
    Path(path).write_text(page(result, None if counted else result.readings), encoding="utf-8")


def result_in(text: str) -> Result:
    """Return the result that a page contains in machine-readable form."""
    found = _EMBEDDED.search(text)
    if found is None:
        raise InvalidArgument("the text contains no result of truearm; pass a whole page that `page` wrote")
    return Result.from_dict(json.loads(found[1]))


def fragment(result: Result) -> str:
    """Return a self-contained HTML fragment for notebooks, without scripts."""
    found = ratios(result)
    titles, *rows = arm_rows(result, words.PLAIN, found)
    shown = dict(zip(result.problem.arms, spans(result, found), strict=True))
    window = svg.window_of([x for one in shown.values() for x in one])

    def row(cells: Sequence[str], name: str) -> dict[str, Any]:
        kind = words.standing(result, name).partition(" ")[0]
        return {"name": name, "cells": cells, "kind": kind, "bar": _span_bar(shown[name], window)}

    return _render(
        "fragment.html",
        lines=words.lines(result, alarms=False),
        alarms=[words.alarm(a, result.problem) for a in (*result.doubts, *result.alarms)],
        titles=titles,
        rows=[row(cells, name) for cells, name in zip(rows, display_order(result), strict=True)],
        assumptions=result.assumptions,
    )


def _span_bar(one: Span, window: Interval, shade: tuple[float, float] | None = None) -> svg.Bar | None:
    """Return the picture of an interval; nothing without an observed value."""
    if math.isnan(one.observed) or one.low > one.high:
        return None
    return svg.bar((svg.at(one.low, window), svg.at(one.high, window)), svg.at(one.observed, window), shade=shade)


# Sections


def _ratio_chart(result: Result, found: Sequence[Ratio], rows: Rows) -> dict[str, Any] | None:
    """Return the ratios in rounds, in the order of the table, whose last columns are ratio and standing."""
    if result.leader is None or len(result.arms) == 1:
        return None
    by_arm = zip(result.problem.arms, spans(result, found), strict=True)
    shown = {arm: one._replace(low=max(one.low, 0.0)) for arm, one in by_arm}
    if not found or all(math.isnan(one.observed) for one in shown.values()):
        return None
    window = _ratio_window(list(shown.values()))
    equal = svg.at(1.0, window)

    def row(arm: str, where: str, state: str) -> dict[str, Any]:
        one, kinds = shown[arm], [state.partition(" ")[0]]
        kinds += ["open-low"] * (one.low < window.low) + ["open-high"] * (one.high > window.high)
        drawn = _span_bar(one, window, (equal, equal))
        return _chart_row(arm, drawn, where, state, " ".join(kinds))

    chart = [row(arm, *cells[-2:]) for arm, cells in zip(display_order(result), rows[1:], strict=True)]
    return {"rows": chart, "ticks": svg.ticks(window, sign="x")}


def _ratio_window(shown: Sequence[Span]) -> Interval:
    """Return the ratios that a chart shows: all observed ones, with room for their limits."""
    known = [x for one in shown for x in one if 0 < x < math.inf]
    far = max((max(one.observed, 1 / one.observed) for one in shown if 0 < one.observed < math.inf), default=1.0)
    low, high = max(min([*known, 0.98]), 0.7 / far), min(max([*known, 1.02]), 1.4 * far)
    room = (high - low) / 30
    return Interval(max(0.9 * low, low - room), high + room)


def _chart_row(name: str, drawn: svg.Bar | None, where: str, state: str, kind: str = "") -> dict[str, Any]:
    said = name_of(name)
    return {"name": said, "bar": drawn, "label": said, "where": where, "state": state, "kind": kind, "place": None}


def _pairs(found: Analysis) -> dict[str, Any]:
    contests = [contest for contest in found.contests if contest.breakdown is not None]
    rows = [
        (
            name_of(c.better),
            name_of(c.worse),
            _evidence_factor(c.log_evidence),
            f"{c.p_value:.3g}",
            *(point_cell(p) for p in c.breakdown or ()),
            "yes" if c.excluded else "no",
        )
        for c in sorted(contests, key=lambda contest: -contest.log_evidence)[:_MAX_ROWS]
    ]
    titles = (
        "arm",
        "is better than",
        "evidence",
        "p-value",
        *(f"up to ({a.value})" for a in Adversary),
        "excluded",
    )
    return {"rows": [titles, *rows] if rows else [], "all": len(contests)}


def _tiers(found: Analysis) -> dict[str, Any] | None:
    if found.tiers is None:
        return None
    said = words.tiers(found.tiers, found.problem.error)
    return {"words": said, "rows": tier_rows(found)[: _MAX_ROWS + 1]}


def _quality(result: Result, voice: words.Voice) -> Rows:
    side = "at least" if result.problem.goal == "max" else "at most"
    found = {point.share: point.x for point in result.quality}
    rows = [(percent(share), f"{side} {voice.measure(found[share])}") for share in _SHARES if share in found]
    return [("at least this share of true readings", "is"), *rows] if rows and result.leader is not None else []


def _strips(result: Result, readings: Tapes, voice: words.Voice) -> dict[str, Any] | None:
    """Return a few hundred readings of each arm, which show all of them."""
    if not result.total:
        return None
    strips = {arm: svg.Strip.of(readings.get(arm, ())) for arm in result.problem.arms}
    window = svg.window_of([end for strip in strips.values() for end in strip.view])
    most = max(20, min(_MAX_DRAWN, _MAX_MARKS // len(strips)))
    rows = [
        {"arm": arm, "paths": svg.strip_paths(strip, window, most), "about": _about(strip, window, voice)}
        for arm, strip in strips.items()
    ]
    wide = 1 - 2 * svg.MARGIN / svg.WIDTH
    ticks = [t._replace(place=(1 - wide) / 2 + wide * t.place) for t in svg.ticks(window, voice.unit.size)]
    return {"rows": rows, "ticks": ticks, "margin": svg.MARGIN}


def _about(strip: svg.Strip, window: Interval, voice: words.Voice) -> str:
    n, far, off = strip.values.size, int(strip.far.sum()), strip.off_chart(window)
    missing = int(np.isnan(strip.values).sum()) - strip.pending
    told = (
        plural(n, voice.reading),
        f"{count(far)} far ({percent(far / max(1, n), digits=2)})" * bool(far),
        f"{count(off)} off the chart" * bool(off),
        f"{count(missing)} missing" * bool(missing),
        f"{count(strip.pending)} pending" * bool(strip.pending),
    )
    return "; ".join(filter(None, told))


def _certificate(result: Result, voice: words.Voice) -> dict[str, Any]:
    certificate, needed = result.certificate, result.certificate.log_threshold
    facts = {
        "status": result.status.value,
        "digest of the readings": certificate.digest,
        "design": "sizes fixed in advance" if result.design == "fixed" else "sequential: valid at any time",
        "rule": _RULES.get(certificate.rule or "", certificate.rule) or "confidence bounds",
        "threshold": "none" if needed is None else f"{_evidence_factor(needed)} (logarithm {number(needed)})",
        "error probability": percent(result.problem.error, ROUND_CEILING),
    }
    claims = [
        (
            name_of(claim.arm),
            name_of(claim.leader),
            "not better by more than the tolerance" if claim.tolerant else "not the best",
            count(result.total if claim.counts is None else sum(claim.counts)),
            f"{_evidence_factor(claim.log_evidence)} (logarithm {number(claim.log_evidence, None, ROUND_FLOOR)})",
        )
        for claim in certificate.claims
    ]
    exclusions = [(name_of(e.arm), _bound(e.upper), _bound(e.lower)) for e in certificate.exclusions]
    heading = ("arm", "leader", "claim", f"after {voice.reading}s of all arms", "evidence")
    bounds = ("excluded arm", "its upper bound", "is below a lower bound")
    tables = [[heading, *claims]] * bool(claims) + [[bounds, *exclusions]] * bool(exclusions)
    return {"facts": facts, "tables": tables}


def _bound(bound: Bound) -> str:
    return f"{number(bound.value, signs=ON_PAGES)} ({name_of(bound.arm)}, {count(bound.n)} readings)"


def _evidence_factor(log_evidence: float) -> str:
    """Return evidence as a factor, by its power of ten when it is large."""
    tens = log_evidence / math.log(10)
    return number(math.exp(log_evidence)) if abs(tens) < 4 else svg.power(math.floor(tens))


# Suites and ledgers


def suite_page(result: SuiteResult, runs: Runs) -> str:
    """Return a suite as one self-contained page: every metric against the reference, drawn and in a table."""
    sections = _render(
        "suite.html",
        doubtful=[one.metric for one in result.named("doubtful")],
        compare=_suite_chart(result),
        rows=suite_rows(result),
        reference=name_of(result.suite.reference),
        error=result.suite.problem.error,
    )
    found = Parts(words.suite_headline(result), words.suite_summary(result, "command"), sections, {})
    return _assemble(found, suite_document(result, runs))


def _suite_chart(result: SuiteResult) -> dict[str, Any] | None:
    shown = [one for one in suite_order(result) if one.scale == "ratio" and 0 < one.observed < math.inf]
    drawn = {one: Span(one.low, one.observed, one.high) for one in shown[:_MAX_ROWS]}
    if not drawn:
        return None
    window, tolerance = _ratio_window(list(drawn.values())), result.suite.problem.tolerance
    much = tolerance.amount if tolerance.relative else 0.0
    rows = []
    for one, ends in drawn.items():
        low, high = (1.0, 1 + much) if one.goal == "min" else (1 / (1 + much), 1.0)
        bar = _span_bar(ends, window, (svg.at(low, window), svg.at(high, window)))
        rows.append(_chart_row(words.metric_name(result, one), bar, apart_cell(one), one.standing))
    return {
        "rows": rows,
        "ticks": svg.ticks(window, sign="x"),
        "tolerated": amount(tolerance) if much else "",
        "left": len(result.compared) - len(drawn),
        "most": _MAX_ROWS,
    }


def save_suite(result: SuiteResult, path: "str | PathLike[str]") -> None:
    """Write a suite as a page."""
    Path(path).write_text(suite_page(result, result.runs), encoding="utf-8")


def ledger_page(account: Account, name: str) -> str:
    """Return a ledger as one self-contained page: levels and evidence over gates, drawn and in a table."""
    closed = [None if gate.verdict == "open" else gate.log_evidence for gate in account.gates]
    graph = svg.gates([gate.log_bar for gate in account.gates], closed) if closed else None
    sections = _render("ledger.html", graph=graph, rows=ledger_rows(account))
    summary = "\n".join(words.ledger(account)[1:])  # the first line is the title
    found = Parts(f"{name}: {words.ledger_headline(account)}", summary, sections, {})
    return _assemble(found, ledger_document(account))
