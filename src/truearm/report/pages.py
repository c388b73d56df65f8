"""A result as one page: a file that needs no network, no server and, to be read, no script.

Data for the templates are made here, the markup is in `templates/`, the pictures in `svg`. The script only moves
what Python computed (`truearm.report.picture`).
"""

import base64
import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR
from functools import cache
from importlib import resources
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader
from markupsafe import Markup

from truearm import __version__
from truearm.claims.certificate import Bound, Status, Tapes
from truearm.claims.certify import ratios
from truearm.claims.gates import Gate
from truearm.claims.ledger import Account
from truearm.claims.result import Analysis, Result
from truearm.claims.suites import Runs, SuiteResult
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
    interval,
    name_of,
    names,
    number,
    percent,
    plural,
    target_name,
    value,
)
from truearm.report.picture import Picture, Strip, span
from truearm.report.tables import (
    Row,
    Span,
    apart_cell,
    arm_rows,
    control_rows,
    ledger_rows,
    point_cell,
    spans,
    suite_order,
    suite_rows,
    tier_rows,
)

_EMBEDDED = re.compile(r'<script type="application/json" id="result">(.*?)</script>', re.DOTALL)
_MAX_ROWS = 200  # of a table or a chart: the machine-readable part has all
_SHARES = (0.95, 0.9, 0.75, 0.5, 0.25)  # of the quality curve
_RULES = {
    "pooled": "one portfolio of bets against each arm, for adversaries blind to the future",
    "causal": "pairs of arms, for adversaries blind to the future",
    "clairvoyant": "pairs of arms, for adversaries that see the future",
    "dependent": "pairs of arms that may move together",
    "paired": "wins side by side, round by round",
}
_SNIPPET = """\
import pathlib
from truearm.report.pages import result_in

result = result_in(pathlib.Path("report.html").read_text(encoding="utf-8"))
result.certificate.verify(readings)  # {arm: its readings in order}; raises if a claim fails"""


class Parts(NamedTuple):
    """What a page shows of a result: words, sections as HTML, and what its script moves."""

    title: str
    summary: str
    sections: str
    picture: dict[str, Any]


class _ChartRow(NamedTuple):
    name: str
    drawn: Markup
    where: str
    state: str
    kind: str = ""
    place: int = 0
    """Of the arm in the order of the problem; rows come in the order of the table."""


@cache
def _templates() -> Environment:
    return Environment(
        loader=PackageLoader("truearm.report"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )


def _render(template: str, **data: object) -> str:
    return _templates().get_template(template).render(**data)


def asset(name: str) -> str:
    """Return a file of the page: its style or its script."""
    return resources.files("truearm.report").joinpath("templates", name).read_text(encoding="utf-8")


def page(
    result: Result,
    readings: Tapes | None,
    *,
    title: str | None = None,
    unit: Unit = PLAIN_UNIT,
    metric: str | None = None,
    gate: Gate | None = None,
) -> str:
    """Return a report as one self-contained HTML page, with a slider of the contamination.

    Parameters
    ----------
    readings
        Those the result was found from, per arm in order of pull, in the user's units; None for a pull never
        told. Without readings, as after an analysis of counts, there is no slider.
    title
        Heading of the page; the answer in a few words by default.
    unit
        What readings are shown in.
    metric
        What was measured, if it was a command: "wall", "cpu", "memory" or "stdout".
    gate
        The verdict of a gate, which is then the answer.
    """
    found = parts(result, readings, title=title, unit=unit, metric=metric, gate=gate)
    return _assemble(found, result.to_dict())


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
    """Return the parts of a result's page, for embedding in another page."""
    unit = PLAIN_UNIT if result.problem.target == "share" else unit
    voice = voice or (words.voice_for(result, metric, unit) if metric else words.PLAIN._replace(unit=unit))
    picture = None if readings is None else Picture.of(result, readings, unit)
    analysis = result if isinstance(result, Analysis) else None
    sections = _render(
        "sections.html",
        alarms=[(a.kind, words.alarm(a, result.problem, voice)) for a in (*result.doubts, *result.alarms)],
        control=_control(result),
        compare=picture and _compare(picture, voice),
        candidates=picture and _candidates(picture, voice),
        arms=_arms(result, voice, readings),
        analysis=analysis and _analysis(analysis),
        tiers=analysis and _tiers(analysis),
        quality=_quality(result, voice),
        readings=picture and _readings(picture, voice),
        assumptions=result.assumptions,
        certificate=_certificate(result, voice) if certificate else None,
        remark="" if picture else "Readings were counted where they are and not kept, so that none is drawn here.",
    )
    answer = words.headline(result, voice, gate) if title is None else title
    said = words.lines(result, alarms=False, voice=voice if metric or voice.ended else None, gate=gate)
    summary = "\n".join(said[gate is not None and title is None :])
    return Parts(answer, summary, sections, {} if picture is None else _view(picture, voice.reading))


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
        msg = "the result does not contain its readings; write page(result, readings) yourself"
        raise InvalidArgument(msg)
    Path(path).write_text(page(result, None if counted else result.readings), encoding="utf-8")


def result_in(text: str) -> Result:
    """Return the result that a page contains in machine-readable form."""
    found = _EMBEDDED.search(text)
    if found is None:
        msg = "the text contains no result of truearm; pass a whole page that `page` wrote"
        raise InvalidArgument(msg)
    return Result.from_dict(json.loads(found[1]))


def fragment(result: Result) -> str:
    """Return a self-contained HTML fragment for notebooks, without scripts."""
    titles, *rows = [_nonempty(row) for row in arm_rows(result, words.PLAIN, ratios(result))]
    intervals = spans(result, ratios(result))
    order = {arm.name: i for i, arm in enumerate(result.arms)}
    window = span([x for s in intervals for x in (s.observed, s.low, s.high)])

    def row(cells: Sequence[str], name: str) -> dict[str, Any]:
        state = words.standing(result, name).split(" ")[0]
        return {"cells": cells, "kind": state, "drawn": _span_bar(intervals[order[name]], window, name)}

    shown = result.ranking if isinstance(result, Analysis) else result.problem.arms
    return _render(
        "fragment.html",
        lines=words.lines(result, alarms=False),
        alarms=[words.alarm(a, result.problem) for a in (*result.doubts, *result.alarms)],
        titles=titles,
        rows=[row(cells, name) for cells, name in zip(rows, shown, strict=True)],
        assumptions=result.assumptions,
    )


def _nonempty(row: Row) -> tuple[str, ...]:
    return tuple(cell for cell in row if cell)


def _span_bar(one: Span, window: Interval, label: str, shade: tuple[float, float] | None = None) -> Markup:
    """Return the picture of an interval; nothing without an observed value."""
    if math.isnan(one.observed) or one.low > one.high:
        return Markup("")
    ends = svg.at(one.low, window), svg.at(one.high, window)
    drawn = svg.bar(ends, svg.at(one.observed, window), label, shade=shade)
    return Markup(drawn)


# Sections


def _control(result: Result) -> dict[str, Any] | None:
    rows = control_rows(result)
    if result.control is None:
        return None
    return {"arm": name_of(result.control.arm), "rows": rows[: _MAX_ROWS + 1]}


def _ratio_window(shown: Sequence[Span]) -> Interval:
    """Return the ratios that a chart shows: all observed ones, with room for their limits."""
    known = [x for one in shown for x in one if 0 < x < math.inf]
    far = max((max(one.observed, 1 / one.observed) for one in shown if 0 < one.observed < math.inf), default=1.0)
    low, high = max(min([*known, 0.98]), 0.7 / far), min(max([*known, 1.02]), 1.4 * far)
    room = (high - low) / 30
    return Interval(max(0.9 * low, low - room), high + room)


def _rank(result: Result) -> list[int]:
    """Return the places of arms in the order in which tables list them."""
    shown = result.ranking if isinstance(result, Analysis) else result.problem.arms
    return [result.problem.arms.index(arm) for arm in shown]


def _compare(picture: Picture, voice: words.Voice) -> dict[str, Any] | None:
    """Return the chart of ratios in rounds, in the order of the table."""
    result = picture.result
    if not result.problem.rounds or result.leader is None or len(result.arms) == 1:
        return None
    found = ratios(result, readings=picture.tapes)
    shown = [s._replace(low=max(s.low, 0.0)) for s in spans(result, found)]
    if not found or all(math.isnan(s.observed) for s in shown):
        return None
    window, leader = _ratio_window(shown), name_of(result.leader)
    equal = svg.at(1.0, window)
    cells = {row.arm: row for row in arm_rows(result, voice, found)}
    rows = [
        _chart_row(arm.name, _span_bar(one, window, arm.name, (equal, equal)), cells, one, window)
        for arm, one in ((result.arms[i], shown[i]) for i in _rank(result))
    ]
    sure = percent(result.problem.error, ROUND_CEILING)
    return {
        "title": f"{voice.reading.capitalize()}s compared with {leader}",
        "rows": rows,
        "ruler": _ruler(svg.ticks(window, sign="x")),
        "note": f"Each {voice.reading} divided by that of {leader} in its round: the median over rounds, with "
        f"limits that hold for all pairs at once, error probability {sure}.",
    }


def _chart_row(name: str, drawn: Markup, cells: Mapping[str, Row], one: Span, window: Interval) -> _ChartRow:
    row = cells[name_of(name)]
    kinds = [row.standing.split(" ")[0]]
    kinds += ["open-low"] * (one.low < window.low) + ["open-high"] * (one.high > window.high)
    return _ChartRow(row.arm, drawn, row.ratio, row.standing, " ".join(kinds))


def _ruler(marks: Sequence[svg.Tick]) -> Markup:
    return Markup(svg.axis(marks))


def _arms(result: Result, voice: words.Voice, readings: Tapes | None) -> dict[str, Any]:
    found = ratios(result, readings=readings) if result.problem.rounds else ()
    titles, *rows = arm_rows(result, voice, found)
    shown = [i for i, title in enumerate(titles) if title]
    problem = result.problem
    if problem.rounds:
        note = f"Nothing is claimed about one {voice.arm} alone: medians are those of the {voice.reading}s."
    else:
        declared = problem.contamination
        how = "as if no reading were bad" if declared is None else f"at {percent(declared.eps)} contamination"
        note = (
            f"Intervals {how}, for all arms at once, error probability {percent(problem.error, ROUND_CEILING)}. "
            "MAD: median absolute deviation."
        )
    return {
        "title": f"The {voice.arm}s",
        "rows": [[row[i] for i in shown] for row in (titles, *rows)],
        "note": note,
    }


def _analysis(found: Analysis) -> dict[str, Any]:
    contests = [contest for contest in found.contests if contest.breakdown is not None]
    shown = sorted(contests, key=lambda contest: -contest.log_evidence)[:_MAX_ROWS]
    some = f": the {count(_MAX_ROWS)} of {count(len(contests))} pairs with the most evidence"
    up_to = (f"up to ({a.value})" for a in Adversary)
    heading = ("arm", "is better than", "evidence", "p-value", *up_to, "excluded")
    rows = [
        (
            name_of(c.better),
            name_of(c.worse),
            _evidence_factor(c.log_evidence),
            f"{c.p_value:.3g}",
            *(point_cell(p) for p in c.breakdown or ()),
            "yes" if c.excluded else "no",
        )
        for c in shown
    ]
    caption = f"Every arm against every other{some * (len(contests) > _MAX_ROWS)}"
    return {"notes": found.notes, "pairs": [heading, *rows] if rows else [], "caption": caption}


def _tiers(found: Analysis) -> dict[str, Any] | None:
    if found.tiers is None:
        return None
    said = words.tiers(found.tiers, found.problem.error)
    return {"words": said, "rows": tier_rows(found)[: _MAX_ROWS + 1]}


def _evidence_factor(log_evidence: float) -> str:
    """Return evidence as a factor, by its power of ten when it is large."""
    tens = log_evidence / math.log(10)
    return number(math.exp(log_evidence)) if abs(tens) < 4 else svg.power(math.floor(tens))


def _quality(result: Result, voice: words.Voice) -> dict[str, Any] | None:
    if not result.quality or result.leader is None:
        return None
    side = "at least" if result.problem.goal == "max" else "at most"
    found = {point.share: point.x for point in result.quality}
    rows = [(percent(share), f"{side} {voice.measure(found[share])}") for share in _SHARES if share in found]
    sure = percent(result.problem.error, ROUND_CEILING)
    return (
        {
            "title": f"What {name_of(result.leader)} delivers",
            "rows": [("at least this share of true readings", "is"), *rows],
            "note": f"All lines hold at once, with error probability {sure}, whichever arm was chosen.",
        }
        if rows
        else None
    )


def _readings(picture: Picture, voice: words.Voice) -> dict[str, Any] | None:
    if not picture.result.total:
        return None
    strips = picture.strips()
    window = span([end for strip in strips for end in strip.view])

    def row(arm: str, strip: Strip) -> _ChartRow:
        drawn = Markup(svg.strip(strip, window, f"readings of {arm}"))
        return _ChartRow(name_of(arm), drawn, _about(strip, window, voice), "")

    inner = [svg.Tick(0.03 + 0.94 * t.place, t.label) for t in svg.ticks(window, picture.unit.size)]
    unit = f" in {picture.unit.name}" * bool(picture.unit.name)
    return {
        "rows": [row(arm, strip) for arm, strip in zip(picture.result.problem.arms, strips, strict=True)],
        "ruler": _ruler(inner),
        "note": f"Single readings{unit}, the first on top, the last at the bottom: a few hundred, evenly spaced. "
        "Upright marks are more than ten robust standard deviations from their arm's median; the shaded margins "
        "show what is off the chart. Which readings are bad cannot be seen: bad ones may look like true ones.",
    }


def _about(strip: Strip, window: Interval, voice: words.Voice) -> str:
    off = int(strip.sorted.searchsorted(window.low))
    off += strip.sorted.size - int(strip.sorted.searchsorted(window.high, "right"))
    share = f" ({percent(strip.distant / max(1, strip.n), digits=2)})"
    told = (
        plural(strip.n, voice.reading),
        f"{count(strip.distant)} far{share}" * bool(strip.distant),
        f"{count(off)} off the chart" * bool(off),
        f"{count(strip.missing)} missing" * bool(strip.missing),
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
    return {"facts": facts, "tables": tables, "snippet": _SNIPPET}


def _bound(bound: Bound) -> str:
    return f"{number(bound.value, signs=ON_PAGES)} ({name_of(bound.arm)}, {count(bound.n)} readings)"


# What if more readings were bad? The markup is at the declared contamination; `_view` has every slider position.


def _candidates(picture: Picture, voice: words.Voice) -> dict[str, Any]:
    result, declared, noun = picture.result, picture.contamination, voice.reading
    found: dict[str, Any] = {"title": f"What if more {noun}s were bad?", "leader": name_of(picture.leader or "")}
    if picture.leader is None:
        return {**found, "nothing": _nothing(picture)}
    said, decided = _sentence(picture, declared.eps, declared.adversary)
    ends = picture.intervals(declared.eps, declared.adversary)
    rows = [_slider_row(picture, i, _cell(picture, ends[i]), decided=decided) for i in _rank(result)]
    return {
        **found,
        "adversaries": [a.value for a in Adversary],
        "adversary": declared.adversary.value,
        "noun": noun,
        "declared": percent(declared.eps),
        "last": len(picture.eps) - 1,
        "start": picture.eps.index(declared.eps),
        "arm": voice.arm,
        "sentence": _opening(declared.eps, declared.adversary, noun) + said,
        "rows": rows,
        "ruler": _ruler(svg.ticks(picture.window, picture.unit.size, f" {picture.unit.sign}".rstrip())),
        "legend": not result.problem.rounds,
        "explanation": _explanation(picture),
        "points": _points(picture),
    }


def _nothing(picture: Picture) -> str:
    """Return why there is nothing to compare."""
    if picture.result.status is Status.DOUBTFUL:
        return "The readings contradict an assumption, so every arm could be best, however few readings are bad."
    if picture.result.certificate.estimated:
        return "Arms were compared by your own estimator, about which this picture says nothing."
    return "There are no readings yet."


def _opening(eps: float, adversary: Adversary, noun: str) -> str:
    chance = f"If each {noun} has at most a {percent(eps)} chance of being bad ({adversary}): "
    return chance if eps else f"If no {noun} is bad: "


def _sentence(picture: Picture, eps: float, adversary: Adversary) -> tuple[str, bool]:
    """Return which arms could be best at a contamination, and True if that is one arm, or arms that tie."""
    result, left = picture.result, picture.candidates(eps, adversary)
    ties = [] if words.is_tie_by_handicap(result) else [arm for arm in result.ties if arm != picture.leader]
    may_tie = [arm for arm in result.may_tie if picture.is_settled(arm, eps, adversary)]
    alike = {picture.leader, *ties, *may_tie}
    out = [arm for arm in result.problem.arms if arm not in left]
    excluded = f"Excluded: {names(out)}." if out else "No arm is excluded."
    if set(left) <= alike:
        best = [picture.leader or "", *ties]
        head = f"{names(best)} {'tie for best' if ties else 'is the best arm'}."
        them = "them" if ties else name_of(best[0])
        tie = f" {names(may_tie)} may tie with {them}." if may_tie else ""
        return f"{head}{tie} {excluded}", True
    return f"{plural(len(left), 'arm')} could be best: {names(left)}. {excluded}", False


def _explanation(picture: Picture) -> str:
    problem = picture.result.problem
    unit = f" in {picture.unit.name}" * bool(picture.unit.name)
    better = "larger" if problem.goal == "max" else "smaller"
    error = percent(problem.delta)
    tolerant = " The study asked for an arm within a tolerance; this picture asks which arm is the best itself."
    tolerant *= picture.result.status is Status.TOLERABLE
    if problem.rounds:
        return (
            f"The observed median{unit}; {better} is better. Whatever the true contamination is, the best arm is "
            f"not among those excluded at it, with error probability {error}.{tolerant}"
        )
    return (
        f"The true {target_name(problem)}{unit}; {better} is better. Whatever the true contamination is, two "
        f"statements hold at it, each with error probability {error}: all true values are in their intervals, and "
        f"the best arm is not among the excluded. An arrow means that an interval continues.{tolerant}"
    )


def _points(picture: Picture) -> list[tuple[str, ...]]:
    """Return up to which share of bad readings each rival is excluded, by adversary."""
    result = picture.result
    if len(result.arms) == 1 or len(result.arms) > _MAX_ROWS:
        return []
    rows = [
        (name_of(arm), *("not certified" if p is None else point_cell(p) for p in points))
        for arm in result.problem.arms
        if arm != picture.leader
        for points in [[picture.points[a].get(arm) for a in Adversary]]
    ]
    estimates = (f"about {percent(e or 0.0, digits=2)}" for e in result.breakdown_estimate)
    return [("arm", *(a.value for a in Adversary)), *rows, ("all, with unlimited readings", *estimates)]


def _cell(picture: Picture, ends: tuple[Interval, Interval]) -> list[Any]:
    """Return an arm's interval in words and as places on the board: all of it, then contamination's part."""
    (whole, core), problem, window = ends, picture.result.problem, picture.window
    if math.isnan(whole.low):  # in rounds an arm that only failed, or was not measured yet, has no place
        return [value(whole.low, problem, ON_PAGES), 0, 0, 0, 0]
    if whole.low > whole.high:
        return [interval(*whole, problem, ON_PAGES, picture.unit), 0, 0, 0, 0]
    if whole.low == whole.high:
        seen = picture.unit.attach(value(whole.low, problem, ON_PAGES, picture.unit))
        return [seen, *(svg.at(whole.low, window),) * 4]
    inner = sorted(min(max(end, whole.low), whole.high) for end in core)
    said = interval(*whole, problem, ON_PAGES, picture.unit)
    said = said if said == ON_PAGES.none else picture.unit.attach(said)
    return [said, *(svg.at(end, window) for end in (*whole, *inner))]


def _states(picture: Picture, arm: str, adversary: Adversary) -> tuple[str, str]:
    """Return the state of an arm while it could be best, and once that is settled."""
    result = picture.result
    if arm in result.ties and not words.is_tie_by_handicap(result):
        return "tied", ""
    if arm == result.leader:
        return "looks best", "the best arm"
    point = picture.points[adversary].get(arm)
    if point is None:
        return "could be best", ""
    up_to = point_cell(point)
    may_tie = arm in result.may_tie
    settled = f"{'not better' if may_tie else 'excluded'} up to {up_to}{', may tie' * may_tie}"
    return f"could be best beyond {up_to}", settled


def _slider_row(picture: Picture, i: int, cell: list[Any], *, decided: bool) -> _ChartRow:
    arm, declared = picture.result.arms[i], picture.contamination
    is_out = picture.is_excluded(arm.name, declared.eps, declared.adversary)
    is_settled = picture.is_settled(arm.name, declared.eps, declared.adversary)
    where, low, high, *core = cell
    is_best = decided and arm.name == picture.result.leader
    kinds = {"excluded": is_out, "best": is_best, "open-low": low < 0, "open-high": high > svg.WIDTH}
    observed = svg.at(arm.observed, picture.window) if arm.n else -1.0
    drawn = svg.bar((low, high), observed, f"{_what(picture)}: {where}", core=(core[0], core[1]))
    state = _states(picture, arm.name, declared.adversary)[is_settled or is_best]
    kind = " ".join(kind for kind, holds in kinds.items() if holds)
    return _ChartRow(name_of(arm.name), Markup(drawn), where, state, kind, i)


def _what(picture: Picture) -> str:
    problem = picture.result.problem
    return "observed median" if problem.rounds else f"true {target_name(problem)}"


def _view(picture: Picture, noun: str) -> dict[str, Any]:
    """Return what the script draws: for each contamination every arm's interval, and which arms could be best."""
    if picture.leader is None:
        return {}
    declared = None
    if picture.result.problem.contamination is not None and not picture.result.problem.is_blind:
        eps = picture.contamination.eps
        declared = {"at": picture.eps.index(eps), "text": f"declared {percent(eps)}"}
    return {
        "eps": picture.eps,
        "percent": [percent(eps) for eps in picture.eps],
        "what": _what(picture),
        "leader": picture.result.problem.arms.index(picture.leader),
        "may_tie": [arm in picture.result.may_tie for arm in picture.result.problem.arms],
        "declared": declared,
        "intervals": {  # the oblivious and the prescient adversary leave the same interval (audit 2.A)
            a.value: [[_cell(picture, ends) for ends in picture.intervals(eps, a)] for eps in picture.eps]
            for a in (Adversary.OBLIVIOUS, Adversary.MALICIOUS)
        },
        "adversaries": {a.value: _view_under(picture, a, noun) for a in Adversary},
    }


def _view_under(picture: Picture, adversary: Adversary, noun: str) -> dict[str, Any]:
    arms, points = picture.result.problem.arms, picture.points[adversary]
    sentences: dict[tuple[str, bool], int] = {}
    chosen = [sentences.setdefault(_sentence(picture, eps, adversary), len(sentences)) for eps in picture.eps]
    return {
        "intervals": "malicious" if adversary is Adversary.MALICIOUS else "oblivious",
        "points": [points.get(arm) for arm in arms],
        "states": [_states(picture, arm, adversary) for arm in arms],
        "sentences": [{"text": said, "decided": decided} for said, decided in sentences],
        "sentence": chosen,
        "openings": [_opening(eps, adversary, noun) for eps in picture.eps],
        "breakdown": _breakdown_mark(picture, list(points.values())),
    }


def _breakdown_mark(picture: Picture, points: Sequence[float | None]) -> dict[str, Any] | None:
    known = [point for point in points if point is not None]
    if not points or len(known) < len(points):
        return {"at": 0, "text": "not certified at any share"} if points else None
    least = min(known)
    label = f"breakdown point {point_cell(least)}"
    if least > picture.eps[-1]:
        return {"at": len(picture.eps) - 1, "text": f"{label}, beyond this scale"}
    return {"at": max(i for i, eps in enumerate(picture.eps) if eps <= least), "text": label}


# Suites


def suite_page(result: SuiteResult, runs: Runs) -> str:
    """Return a suite as one self-contained page: every metric against the reference, drawn and in a table."""
    titles, *rows = suite_rows(result)
    shown = [i for i, title in enumerate(titles) if title]
    reference = name_of(result.suite.reference)
    sure = percent(result.suite.problem.error, ROUND_CEILING)
    doubtful = [name_of(one.metric) for one in result.named("doubtful")]
    sections = _render(
        "sections.html",
        alarms=[("doubtful", f"Nothing is claimed about {names(doubtful)}.")] if doubtful else [],
        compare=_suite_chart(result),
        arms={
            "title": "All metrics",
            "rows": [[row[i] for i in shown] for row in (titles, *rows)],
            "note": "Medians are shown; nothing is claimed about one arm alone. The ratio is the median over "
            f"rounds of an arm's reading divided by that of {reference} in its round (a signed difference where "
            "readings are not positive), with limits that hold for all metrics at once, error probability "
            f"{sure}. Up to is the largest share of bad runs under which the standing is certified, for all "
            "metrics at once.",
        }
        if rows
        else None,
    )
    found = Parts(words.suite_headline(result), words.suite_summary(result, "command"), sections, {})
    return _assemble(found, suite_document(result, runs))


def save_suite(result: SuiteResult, path: "str | PathLike[str]") -> None:
    """Write a suite as a page."""
    Path(path).write_text(suite_page(result, result.runs), encoding="utf-8")


def ledger_page(account: Account, name: str) -> str:
    """Return a ledger as one self-contained page: levels and evidence over gates, drawn and in a table."""
    chart = None
    if account.gates:
        closed = [None if gate.verdict == "open" else gate.log_evidence for gate in account.gates]
        graph = svg.gates([gate.log_bar for gate in account.gates], closed, "Evidence of each gate, and its bar")
        rows = ledger_rows(account)
        chart = {"graph": graph, "drawn": Markup(graph.drawn), "ruler": _ruler(graph.across), "rows": rows}
    sections = _render("sections.html", ledger=chart)
    summary = "\n".join(words.ledger(account)[1:])  # the first line is the title
    found = Parts(f"{name}: {words.ledger_headline(account)}", summary, sections, {})
    return _assemble(found, ledger_document(account))


def _suite_chart(result: SuiteResult) -> dict[str, Any] | None:
    drawn = [one for one in suite_order(result) if one.scale == "ratio" and 0 < one.observed < math.inf][
        :_MAX_ROWS
    ]
    if not drawn:
        return None
    shown = [Span(one.low, one.observed, one.high) for one in drawn]
    window, tolerance = _ratio_window(shown), result.suite.problem.tolerance
    much = tolerance.amount if tolerance.relative else 0.0
    rows = []
    for one, ends in zip(drawn, shown, strict=True):
        shade = (1.0, 1 + much) if one.goal == "min" else (1 / (1 + much), 1.0)
        name = words.metric_name(result, one)
        picture = _span_bar(ends, window, name, (svg.at(shade[0], window), svg.at(shade[1], window)))
        rows.append(_ChartRow(name_of(name), picture, apart_cell(one), one.standing))
    left = len(result.compared) - len(drawn)
    some = f" {count(left)} without a ratio, or after the first {_MAX_ROWS}, are in the table." if left else ""
    band = f"Shaded: worse by no more than {amount(tolerance)}." if much else "Shaded: equal."
    reference = name_of(result.suite.reference)
    return {
        "title": f"Runs compared with {reference}",
        "rows": rows,
        "ruler": _ruler(svg.ticks(window, sign="x")),
        "note": f"The reading divided by that of {reference} in the same round, with limits. {band}{some}",
    }
