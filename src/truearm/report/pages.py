"""A result as one page: a file that needs no network, no server and, to be read, no script.

The markup and the notes are in `templates/`. The script only moves what Python computed (`truearm.report.slider`).
"""

import base64
import hashlib
import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import ROUND_CEILING
from functools import cache
from importlib import resources
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jinja2 import Environment, PackageLoader
from markupsafe import Markup

from truearm import __version__
from truearm.claims.certificate import Tapes, digest
from truearm.claims.certify import ratios
from truearm.claims.gates import Account, Gate, judge_gate
from truearm.claims.result import Analysis, Result
from truearm.claims.suite import SuiteResult
from truearm.errors import InvalidArgument
from truearm.problem import Interval, refuse
from truearm.report import summaries, svg, tables, words
from truearm.report.export import ledger_document, suite_document
from truearm.report.numbers import amount, count, evidence, name_of, names, percent, plural
from truearm.report.slider import Slider
from truearm.report.svg import Span

_EMBEDDED = re.compile(r'<script type="application/json" id="result">(.*?)</script>', re.DOTALL)
_MAX_ROWS = 200  # of a table or a chart; the machine-readable part has all rows
_MAX_DRAWN = 240  # readings drawn per arm, evenly spaced in order of pull
_MAX_MARKS = 6000  # readings drawn in all, so that a page of fifty arms stays small


class Parts(NamedTuple):
    """The parts of a page: its text, sections as HTML, and what its script moves."""

    title: str
    summary: str
    sections: str
    picture: dict[str, Any]


@cache
def _templates() -> Environment:
    loader = PackageLoader("truearm.report")
    environment = Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(name=name_of, names=names, percent=percent, thousands=count)
    environment.filters["ceiling"] = lambda share: percent(share, ROUND_CEILING)
    return environment


def _render(template: str, **data: object) -> str:
    return _templates().get_template(template).render(**data)


def asset(name: str) -> str:
    """Return a file of the page: its style or its script."""
    return resources.files("truearm.report").joinpath("static", name).read_text(encoding="utf-8")


def page(result: Result, readings: Tapes | None, **options: Any) -> str:  # noqa: ANN401 - those of `parts`
    """Return a report as one self-contained HTML page, with a slider of the contamination."""
    return _assemble(parts(result, readings, **options), result.to_dict())


def parts(
    result: Result,
    readings: Tapes | None,
    *,
    title: str | None = None,
    certificate: bool = True,
    terms: words.Terms | None = None,
    gate: Gate | None = None,
) -> Parts:
    """Return the parts of a result's page, for embedding in another page.

    Readings are those of the result, per arm in order of pull, in the user's units, None for a pending pull;
    without them, as after an analysis of counts, there is no slider. The default title is the answer in a few
    words, or the verdict of a gate.
    """
    if readings is not None:
        result = replace(result, readings=readings)
    terms = words.default_terms(result) if terms is None else terms
    gate = gate or judge_gate(result)
    answer = words.headline(result, terms, gate) if title is None else title
    said = words.lines(result, alarms=False, terms=terms, gate=gate)
    differs = readings is not None and digest(result.problem, readings) != result.certificate.digest
    why = "readings must be those the result was found from, but their digest differs from that in its certificate"
    refuse(differs, f"{why}; pass them per arm in order of pull, in the same units, None for a pending pull")
    is_gate = result.problem.handicap is not None
    slider = None if readings is None or is_gate else Slider(result, readings, terms)
    found = ratios(result) if result.problem.rounds else ()
    arms, drawn = tables.arm_rows(result, terms, found), tables.spans(result, found)
    # the last columns of the table are ratio and standing
    rows = zip(tables.display_order(result), drawn, (cells[-2:] for cells in arms[1:]), strict=True)
    sections = _render(
        "result.html",
        result=result,
        terms=terms,
        alarms=[(a.kind, words.alarm(a, result.problem, terms)) for a in (*result.doubts, *result.alarms)],
        control=tables.control_rows(result)[: _MAX_ROWS + 1],
        compare=_ratio_chart([(name, span, *cells, (1.0, 1.0)) for name, span, cells in rows]) if found else None,
        candidates=slider,
        arms=arms,
        notes=[note for note in getattr(result, "notes", ()) if not any(note in line for line in said)],
        pairs=tables.contest_rows(result)[: _MAX_ROWS + 1],
        tiers=tables.tier_rows(result)[: _MAX_ROWS + 1],
        quality=words.quality(result, terms),
        breakdowns=words.breakdowns(result, terms),
        readings=None if readings is None else _strips(result, readings, terms),
        certificate=_certificate(result) if certificate else None,
    )
    summary = "\n".join(said[gate is not None and title is None :])
    return Parts(answer, summary, sections, {} if slider is None else slider.script_data())


@cache
def script_hash() -> str:
    """Return the only script of a page, as a Content-Security-Policy names it."""
    return f"sha256-{base64.b64encode(hashlib.sha256(asset('script.js').encode()).digest()).decode()}"


def _assemble(found: Parts, result: object) -> str:
    return _render(
        "page.html",
        title=name_of(found.title),
        summary=found.summary,
        sections=Markup(found.sections),
        version=__version__,
        style=Markup(asset("style.css")),
        script=Markup(asset("script.js")),
        script_hash=Markup(script_hash()),
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
    msg = "the result does not contain its readings; call page(result, readings) with them"
    refuse(result.readings is None and not counted, msg)
    Path(path).write_text(page(result, None if counted else result.readings), encoding="utf-8")


def result_in(text: str) -> Result:
    """Return the result that a page contains in machine-readable form."""
    match = _EMBEDDED.search(text)
    if match is None:
        raise InvalidArgument("the text contains no result of truearm; pass a whole page that `page` wrote")
    return Result.from_dict(json.loads(match[1]))


def fragment(result: Result) -> str:
    """Return a self-contained HTML fragment for notebooks, without scripts."""
    terms, found = words.default_terms(result), ratios(result)
    rows, drawn = tables.arm_rows(result, terms, found), tables.spans(result, found)
    window = svg.window_of([x for span in drawn for x in span])
    return _render(
        "fragment.html",
        lines=words.lines(result, alarms=False),
        alarms=[words.alarm(a, result.problem, terms) for a in (*result.doubts, *result.alarms)],
        titles=rows[0],
        rows=[
            (cells, svg.row(cells[0], span, window, "", words.standing(result, name)))
            for name, cells, span in zip(tables.display_order(result), rows[1:], drawn, strict=True)
        ],
        assumptions=result.assumptions,
    )


# Sections


def _ratio_chart(rows: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
    """Return a chart of ratios: for each name the span, its text, its standing and what is shaded."""
    window = _ratio_window([span for _, span, *_ in rows])
    return {
        "rows": [svg.row(name, span, window, *said, shade=shade) for name, span, *said, shade in rows],
        "ticks": svg.ticks(window, sign="x"),
    }


def _ratio_window(shown: Sequence[Span]) -> Interval:
    """Return the ratios that a chart shows: all observed ones, with room for their limits."""
    known = [x for one in shown for x in one if 0 < x < math.inf]
    far = max((max(one.observed, 1 / one.observed) for one in shown if 0 < one.observed < math.inf), default=1.0)
    low, high = max(min([*known, 0.98]), 0.7 / far), min(max([*known, 1.02]), 1.4 * far)
    room = (high - low) / 30
    return Interval(max(0.9 * low, low - room), high + room)


def _strips(result: Result, readings: Tapes, terms: words.Terms) -> dict[str, Any] | None:
    """Return a few hundred readings of each arm, evenly spaced, as a picture of all of them."""
    if not result.total:
        return None
    tapes = {arm: np.array(readings.get(arm, ()), dtype=np.float64) for arm in result.problem.arms}
    window = svg.window_of([end for tape in tapes.values() for end in svg.view_of(tape)])
    most = max(20, min(_MAX_DRAWN, _MAX_MARKS // len(tapes)))

    def about(tape: svg.Floats) -> str:
        off = int(np.count_nonzero((tape < window.low) | (tape > window.high)))
        lost = int(np.isnan(tape).sum())
        said = (f"{count(off)} off the chart" * bool(off), f"{count(lost)} without a value" * bool(lost))
        return "; ".join(filter(None, (plural(tape.size, terms.reading), *said)))

    wide = 1 - 2 * svg.MARGIN / svg.WIDTH
    ticks = [t._replace(place=(1 - wide) / 2 + wide * t.place) for t in svg.ticks(window, terms.unit.size)]
    rows = [
        {"arm": arm, "path": svg.strip(tape, window, most), "about": about(tape)} for arm, tape in tapes.items()
    ]
    return {"rows": rows, "ticks": ticks, "margin": svg.MARGIN}


def _certificate(result: Result) -> dict[str, str]:
    certificate, needed = result.certificate, result.certificate.log_threshold
    return {
        "status": result.status.value,
        "digest of the readings": certificate.digest,
        "claims": count(len(certificate.claims)),
        "threshold": "none" if needed is None else evidence(needed),
        "error probability": percent(result.problem.error, ROUND_CEILING),
    }


# Suites and ledgers


def suite_page(result: SuiteResult) -> str:
    """Return a suite as one self-contained page: every metric against the reference, drawn and in a table."""
    sections = _render(
        "suite.html",
        compare=_suite_chart(result),
        rows=tables.suite_rows(result),
        reference=name_of(result.suite.reference),
        error=result.suite.problem.error,
    )
    found = Parts(summaries.suite_headline(result), summaries.suite_summary(result, "command"), sections, {})
    return _assemble(found, suite_document(result))


def _suite_chart(result: SuiteResult) -> dict[str, Any] | None:
    shown = [one for one in tables.suite_order(result) if one.scale == "ratio" and 0 < one.observed < math.inf]
    if not shown:
        return None
    tolerance = result.suite.problem.tolerance
    much = tolerance.amount if tolerance.relative else 0.0
    tolerated = {"min": (1.0, 1 + much), "max": (1 / (1 + much), 1.0)}
    rows = []
    for one in shown[:_MAX_ROWS]:
        said = tables.apart_cell(one), one.standing, tolerated[one.goal]
        rows.append((summaries.metric_name(result, one), Span(one.low, one.observed, one.high), *said))
    return {
        **_ratio_chart(rows),
        "tolerated": amount(tolerance) if much else "",
        "left": len(result.compared) - len(rows),
        "most": _MAX_ROWS,
    }


def save_suite(result: SuiteResult, path: "str | PathLike[str]") -> None:
    """Write a suite as a page."""
    Path(path).write_text(suite_page(result), encoding="utf-8")


def ledger_page(account: Account, name: str) -> str:
    """Return a ledger as one self-contained page: what each gate needed and reached, drawn and in a table."""
    tens, gates = math.log(10), account.gates[-_MAX_ROWS:]
    window = svg.window_of([0.0, *(x / tens for gate in gates for x in (gate.log_bar, gate.log_evidence))])
    rows = [
        svg.row(
            f"{count(gate.number)}: {gate.name}",
            Span(0.0, gate.log_evidence / tens, max(gate.log_evidence / tens, 0.0)),
            window,
            f"{evidence(gate.log_evidence)} of {evidence(gate.log_bar)}",
            gate.verdict,
            shade=(gate.log_bar / tens,) * 2,
        )
        for gate in gates
    ]
    ticks = [t._replace(label=f"10^{t.label}") for t in svg.ticks(window) if "." not in t.label]
    sections = _render("ledger.html", picture={"rows": rows, "ticks": ticks}, rows=tables.ledger_rows(account))
    summary = "\n".join(summaries.ledger(account)[1:])  # the first line is the title
    found = Parts(f"{name}: {summaries.ledger_headline(account)}", summary, sections, {})
    return _assemble(found, ledger_document(account))
