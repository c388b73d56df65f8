"""A result as one page: a file that needs no network, no server and, to be read, no script.

The script only moves what Python computed (`truearm.report.picture`). Template, style and script are in
`page/`; every word of a user goes through `charts.text`.
"""

import base64
import hashlib
import json
import math
import re
from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR
from importlib import resources
from os import PathLike
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

from truearm import __version__
from truearm.claims.analysis import Analysis, Contest
from truearm.claims.certificate import Bound, Claim, Exclusion, Tapes
from truearm.claims.result import Arm, Result
from truearm.errors import InvalidArgument
from truearm.evidence.wins import apart, score
from truearm.problem import Adversary, Interval
from truearm.report import charts, slider, standings
from truearm.report.charts import Scale, Tick, axis
from truearm.report.markup import note, section, table, text
from truearm.report.numbers import (
    ON_PAGES,
    PLAIN_UNIT,
    Unit,
    count,
    interval,
    name_of,
    number,
    percent,
    target_name,
    value,
)
from truearm.report.picture import VIEW, Picture, Strip, Timeline, span
from truearm.report.words import Voice, alarm, headline, standing, summarize, voice_for

_EMBEDDED = re.compile(r'<script type="application/json" id="result">(.*?)</script>', re.DOTALL)
_PAIRS = 200  # rows of a table: more are not read, and all are in the machine-readable part
_SHARES = (0.95, 0.9, 0.75, 0.5, 0.25)  # of the quality curve, told in words
_READING = "reading"  # of data that were there already; others are pulls, or runs of commands


def page(
    result: Result,
    readings: Tapes,
    *,
    title: str | None = None,
    unit: Unit = PLAIN_UNIT,
    metric: str | None = None,
) -> str:
    """Return a report as one self-contained HTML page, with a slider of the contamination.

    Parameters
    ----------
    readings
        Those the result was found from, per arm in order of pull, in the user's units; None for a pull never
        told.
    title
        Heading of the page; what was found, in a few words, by default.
    unit
        What readings are shown in.
    metric
        What was measured, if it was a command: "wall", "cpu", "memory" or "stdout".
    """
    found = parts(result, readings, title=title, unit=unit, metric=metric)
    return assembled(found.title, found.summary, [found.sections], result.to_dict(), found.picture)


def counted_page(result: Analysis) -> str:
    """Return the page of an analysis of counts: no slider and no curves without single readings."""
    sections = [
        _alarms(result),
        standings.control(result),
        _arms_table(result, _READING),
        _analysis(result),
        standings.tiers(result),
        _quality(result),
        _assumptions(result),
        _certificate(result, _READING),
        note("Readings were counted where they are and not kept, so that none is drawn here."),
    ]
    return assembled(headline(result), summarize(result, alarms=False), sections, result.to_dict())


class Parts(NamedTuple):
    """What a page shows of a result: words, sections as HTML, and what its script moves."""

    title: str
    summary: str
    sections: str
    picture: dict[str, Any]


def parts(
    result: Result,
    readings: Tapes,
    *,
    title: str | None = None,
    unit: Unit = PLAIN_UNIT,
    metric: str | None = None,
    certificate: bool = True,
    voice: Voice | None = None,
) -> Parts:
    """Return the parts of a result's page, for embedding in another page."""
    picture = Picture.of(result, readings, unit)
    unit = picture.unit
    what = _READING if isinstance(result, Analysis) else "pull" if metric is None else "run"
    sections = [
        _alarms(result),
        standings.control(result),
        slider.candidates(picture),
        _arms(picture, what),
        _analysis(result) if isinstance(result, Analysis) else "",
        standings.tiers(result) if isinstance(result, Analysis) else "",
        _evidence(picture, what),
        _quality(result, unit),
        _readings(picture, what),
        _assumptions(result),
        _certificate(result, what) if certificate else "",
    ]
    return Parts(
        headline(result) if title is None else title,
        summarize(result, alarms=False, voice=voice or (voice_for(result, metric, unit) if metric else None)),
        "\n".join(filter(None, sections)),
        slider.view(picture),
    )


def assembled(title: str, summary: str, sections: Iterable[str], result: object, picture: object = None) -> str:
    """Return a page with these sections, the result as JSON, and the data of its script."""
    script = asset("script.js")
    return Template(asset("template.html")).substitute(
        title=text(title),
        summary=text(summary),
        sections="\n".join(filter(None, sections)),
        version=text(__version__),
        style=asset("style.css"),
        script=script,
        script_hash=f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}",
        result=_embedded(result),
        picture=_embedded(picture),
    )


def save(result: Result, path: "str | PathLike[str]") -> None:
    """Write a result that holds its readings as a page."""
    if isinstance(result, Analysis) and result.counts is not None:
        Path(path).write_text(counted_page(result), encoding="utf-8")
        return
    if result.readings is None:
        msg = "the result does not hold its readings; write page(result, readings) yourself"
        raise InvalidArgument(msg)
    Path(path).write_text(page(result, result.readings), encoding="utf-8")


def result_in(written: str) -> Result:
    """Return the result that a page holds in machine-readable form."""
    found = _EMBEDDED.search(written)
    if found is None:
        msg = "the text holds no result of truearm; pass a whole page that `page` wrote"
        raise InvalidArgument(msg)
    return Result.from_dict(json.loads(found[1]))


def asset(name: str) -> str:
    """Return a file of the page: its style or its script."""
    return resources.files("truearm.report").joinpath("page", name).read_text(encoding="utf-8")


def _embedded(value: object) -> str:
    """Return JSON that cannot end the element it stands in."""
    plain = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return plain.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _alarms(result: Result) -> str:
    told_of = (*result.doubts, *result.alarms)
    if not told_of:
        return ""
    told = (
        f'<p class="alarm"><strong>{text(a.kind)}</strong>: {text(alarm(a, result.problem))}</p>' for a in told_of
    )
    return section("alarms", "Alarms", note("Signs that the promises do not hold. Nothing was changed."), *told)


# Numbers


def _arms(picture: Picture, what: str) -> str:
    result = picture.result
    more = _met(picture) if result.problem.rounds else ""
    return _arms_table(result, what, more, _breakdown_table(picture), unit=picture.unit)


def _arms_table(result: Result, what: str, *below: str, unit: Unit = PLAIN_UNIT) -> str:
    name = target_name(result.problem)
    where = f"true {name}" if result.problem.contamination else f"true {name} if none is bad"
    sign = f" [{unit.sign}]" if unit.sign else ""
    spread = (f"MAD{sign}", f"true MAD{sign}")
    titles: tuple[str, ...] = (
        "arm",
        f"{what}s",
        f"observed {name}{sign}",
        f"{where}{sign}",
        "due to contamination",
        *spread,
    )
    analyzed = result if isinstance(result, Analysis) else None
    titles += ("standing",) * (analyzed is not None)
    rows = [
        (
            arm.name,
            count(arm.n),
            value(arm.observed, result.problem, ON_PAGES, unit),
            interval(arm.low, arm.high, result.problem, ON_PAGES, unit),
            _contamination_part(arm),
            number(arm.mad / unit.size, signs=ON_PAGES),
            interval(arm.mad_low, arm.mad_high, None, ON_PAGES, unit),
            *(() if analyzed is None else (standing(analyzed, arm.name),)),
        )
        for arm in _shown(result)
    ]
    if result.problem.rounds:
        brief = [(*row[:3], row[5], *row[7:]) for row in (titles, *rows)]
        return section("arms", "The arms", table(brief[0], brief[1:]), *below)
    return section(
        "arms",
        "The arms",
        table(titles, rows),
        note(
            f"Intervals {_promised(result)}, for all arms at once, with error probability "
            f"{percent(result.problem.error, ROUND_CEILING)}. Due to contamination is the share of the width that "
            "no number of readings removes: an estimate. MAD: median absolute deviation."
        ),
        *below,
    )


def _shown(result: Result) -> list[Arm]:
    """Return the arms, of an analysis the best first."""
    arms = {arm.name: arm for arm in result.arms}
    return [arms[name] for name in (result.ranking if isinstance(result, Analysis) else arms)]


def _met(picture: Picture) -> str:
    """Return how the leader did against each other arm, side by side."""
    judge, leader = picture.measured, picture.leader
    if leader is None or not judge.problem.rounds:
        return ""
    arms = picture.result.problem.arms
    head = arms.index(leader)
    rows = []
    for i, arm in enumerate(arms):
        if i != head:
            met, ahead = score(judge.samples[head], judge.samples[i]), apart(judge, head, i)
            shown_in = PLAIN_UNIT if ahead.scale == "ratio" else picture.unit
            observed = number(ahead.observed / shown_in.size, signs=ON_PAGES)
            limits = interval(ahead.low, ahead.high, None, ON_PAGES, shown_in)
            rows.append((arm, count(met.rounds), count(met.wins), ahead.scale, observed, limits))
    titles = ("against", "rounds", f"won by {name_of(leader)}", "better by", "observed median", "true median")
    delta = percent(picture.result.problem.error, ROUND_CEILING)
    told = (
        f"Intervals hold for all pairs at once, error probability {delta}. Of an arm by itself nothing is claimed."
    )
    return table(titles, rows, "Side by side") + note(told)


def _promised(result: Result) -> str:
    if result.problem.contamination is None:
        return "as if no reading were bad"
    return f"at the declared contamination of {percent(result.problem.contamination.eps)}"


def _contamination_part(arm: Arm) -> str:
    width = arm.high - arm.low
    if not 0 < width < math.inf:
        return "–"
    return percent(min(1.0, max(0.0, arm.contamination_high - arm.contamination_low) / width), digits=2)


def _breakdown_table(picture: Picture) -> str:
    result = picture.result
    if picture.leader is None or len(result.arms) == 1:
        return ""
    rows = [
        (arm, *(_point(picture.points[a].get(arm)) for a in Adversary))
        for arm in result.problem.arms
        if arm != picture.leader
    ]
    estimate = ("all, with endless readings", *(f"about {percent(e, digits=2)}" for e in _estimates(result)))
    return (
        f"<p>No arm below is better than {text(name_of(picture.leader))}, up to this share of bad readings:</p>"
        + table(("arm", *Adversary), [*rows, estimate])
        + note("The last line is an estimate, not certified.")
    )


def _estimates(result: Result) -> list[float]:
    return [0.0 if e is None else e for e in result.breakdown_estimate]


def _point(point: float | None) -> str:
    return "not certified" if point is None else percent(point, ROUND_FLOOR)


# What data already there can be asked


def _analysis(found: Analysis) -> str:
    notes = "".join(f"<li>{text(sentence)}</li>" for sentence in found.notes)
    return section("analysis", "Notes", f"<ul>{notes}</ul>", _pairs(found))


def _pairs(found: Analysis) -> str:
    """Return every arm against every other, if that was asked for."""
    contests = [contest for contest in found.contests if contest.breakdown is not None]
    if not contests:
        return ""
    shown = sorted(contests, key=lambda contest: -contest.log_evidence)[:_PAIRS]
    some = f": the {count(_PAIRS)} of {count(len(contests))} pairs with the most evidence" * (
        len(contests) > _PAIRS
    )
    titles = (
        "arm",
        "is better than",
        "evidence",
        "p-value",
        *(f"up to, {a.value}" for a in Adversary),
        "excluded",
    )
    return table(titles, map(_pair, shown), f"Every arm against every other{some}") + note(
        "The p-value is that of the second arm being best, adjusted for the number of arms. 'Up to' is the "
        "largest share of bad readings, by adversary, under which the first arm excludes the second."
    )


def _pair(contest: Contest) -> tuple[str, ...]:
    return (
        contest.better,
        contest.worse,
        _factor(contest.log_evidence),
        f"{contest.p_value:.3g}",
        *map(_point, contest.breakdown or ()),
        "yes" if contest.excluded else "no",
    )


# Graphs


def _evidence(picture: Picture, what: str) -> str:
    time = picture.evidence_over_time()
    if not time.lines:
        return ""
    result, scale = picture.result, Scale.of(time)
    drawn = charts.graph(
        charts.evidence(time, scale),
        charts.pull_ticks(scale, time.pulls[-1]),
        charts.power_ticks(scale.up),
        label=f"Evidence against {count(len(time.lines))} rivals of {name_of(result.leader or '')}; the table "
        "below has its last values",
        titles=("evidence that the arm is not the best", f"{what}s of all arms, logarithmic"),
    )
    samples = "".join(f"<li>{charts.pen_sample(i)}{i + 1}. {text(arm)}</li>" for i, arm in enumerate(time.lines))
    threshold = (
        '<svg viewBox="0 0 40 16" aria-hidden="true"><line class="threshold" x1="0" x2="40" y1="8" y2="8"/></svg>'
    )
    legend = f'<ul class="legend">{samples}<li>{threshold}threshold {_factor(time.log_threshold)}</li></ul>'
    told = text(_plotted(picture, len(time.lines), what))
    return section(
        "evidence",
        "Evidence over time" if _in_order(result) else f"Evidence by number of {what}s",
        f"<figure>{drawn}{legend}<figcaption>{told}</figcaption></figure>",
        _evidence_table(time, what, looked_on=not isinstance(result, Analysis)),
    )


def _in_order(result: Result) -> bool:
    """Tell whether readings are in order of measurement; the rows of a file may be in any."""
    origin = result.certificate.origin
    return not isinstance(result, Analysis) or (origin is not None and bool(origin.options.get("ordered")))


def _evidence_table(time: Timeline, what: str, *, looked_on: bool) -> str:
    """Return what the lines say, and when a study, which looked on as readings came, rejected each rival."""
    titles = ("arm", "evidence by all readings", "line first reaches the threshold", "rejected by the study")
    rows = (
        (f"{i + 1}. {name_of(arm)}", _factor(line[-1]), _reached(time, line, what), _rejected(time, arm, what))
        for i, (arm, line) in enumerate(time.lines.items())
    )
    return table(titles, rows) if looked_on else table(titles[:-1], (row[:-1] for row in rows))


def _plotted(picture: Picture, drawn: int, what: str) -> str:
    result = picture.result
    others = len(result.arms) - 1
    some = f" The {drawn} of {others} rivals with the least evidence are drawn." if drawn < others else ""
    kind = (
        "For readings whose number was fixed in advance this is 1/p, and only its last value counts: crossing "
        "the threshold earlier means nothing."
        if result.design == "fixed"
        else "It may be looked at any time."
    )
    return (
        f"Computed from the readings in {'their order' if _in_order(result) else 'the order of the rows'}, "
        f"{_promised(result)}, knowing that {name_of(result.leader or '')} leads in the end. At each point every "
        f"arm has the same share of its {what}s{_dotted(result)} {kind} Lines may leave the picture.{some}"
    )


def _dotted(result: Result) -> str:
    if isinstance(result, Analysis):
        return ". Dots: what excluded a rival, which is all readings, perhaps compared with another arm."
    return (
        "; a study that pulled in other proportions looked at other moments. Dots: where the study itself "
        "rejected a rival; that stands, also if the evidence falls again."
    )


def _factor(log_evidence: float) -> str:
    """Return evidence as a factor, by its power of ten when it is large."""
    tens = log_evidence / math.log(10)
    return number(math.exp(log_evidence)) if abs(tens) < 4 else charts.power(math.floor(tens))


def _rejected(time: Timeline, arm: str, what: str) -> str:
    return f"after {count(time.rejected[arm][0])} {what}s" if arm in time.rejected else "not rejected"


def _reached(time: Timeline, line: Sequence[float], what: str) -> str:
    """Return between which of its points a drawn line first reaches the threshold."""
    before = 0
    for n, log_evidence in zip(time.pulls, line, strict=True):
        if log_evidence >= time.log_threshold:
            return f"between {count(before)} and {count(n)} {what}s" if before else f"by {count(n)} {what}s"
        before = n
    return "not reached"


def _quality(result: Result, unit: Unit = PLAIN_UNIT) -> str:
    if not result.quality or result.leader is None:
        return ""
    falling = result.problem.goal == "max"
    window = _middle(result)
    percents = [Tick(share, percent(share)) for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
    side = "at least" if falling else "at most"
    drawn = charts.graph(
        charts.quality(result.quality, window, falling=falling),
        charts.ticks(window, unit.size),
        percents,
        label=f"Quality curve of {name_of(result.leader)}; the table below has some of its values",
        titles=(
            f"guaranteed share of true readings that are {side} x",
            f"x, in {unit.name or 'units of the readings'}",
        ),
    )
    found = {point.share: point.x for point in result.quality}
    rows = [
        (percent(share), f"{side} {unit.attach(number(found[share] / unit.size))}")
        for share in _SHARES
        if share in found
    ]
    return section(
        "quality",
        f"What {name_of(result.leader)} delivers",
        f"<figure>{drawn}<figcaption>A lower bound for all x at once, with error probability "
        f"{percent(result.problem.error, ROUND_CEILING)}, whichever arm was chosen.</figcaption></figure>",
        table(("at least this share of true readings", "is"), rows) if rows else "",
    )


def _middle(result: Result) -> Interval:
    """Return the part of the quality curve where most true readings lie; bad ones may stretch it beyond use."""
    arm = next(arm for arm in result.arms if arm.name == result.leader)
    reach = VIEW * arm.mad if 0 < arm.mad < math.inf else math.inf
    near = [point.x for point in result.quality if abs(point.x - arm.observed) <= reach]
    return span(near or [point.x for point in result.quality])


# Readings


def _readings(picture: Picture, what: str) -> str:
    if not picture.result.total:
        return ""
    strips = picture.strips()
    window = span([end for strip in strips for end in strip.view])
    rows = "".join(
        f'<li class="row"><span class="name">{text(arm)}</span>'
        f'<span class="picture">{charts.strip(strip, window, f"readings of {name_of(arm)}")}</span>'
        f'<span class="about">{text(_about(strip, window, what))}</span></li>'
        for arm, strip in zip(picture.result.problem.arms, strips, strict=True)
    )
    inner = [Tick(0.03 + 0.94 * tick.place, tick.label) for tick in charts.ticks(window, picture.unit.size)]
    return section(
        "readings",
        "The readings",
        f'<ol class="arms strips">{rows}<li class="row axis"><span></span>'
        f'<span class="picture">{axis(inner)}</span></li></ol>',
        note(
            f"Above, the density of all readings; below, single ones, the first {what} on top and the last at the "
            "bottom: a few hundred, evenly spaced. Upright marks are readings more than ten "
            "robust standard deviations from their arm's median; the shaded margins hold what lies beyond the "
            "picture. Which single readings are bad cannot be told: contamination that hides among the true "
            "readings does not show here."
        ),
    )


def _about(strip: Strip, window: Interval, what: str) -> str:
    below = int(strip.sorted.searchsorted(window.low))
    above = strip.sorted.size - int(strip.sorted.searchsorted(window.high, "right"))
    share = f" ({percent(strip.distant / strip.n, digits=2)})" if strip.distant else ""
    parts = [
        f"{count(strip.n)} {what}{'s' * (strip.n != 1)}",
        f"{count(strip.distant)} far{share}" if strip.distant else "",
        f"{count(below)} left of the picture" if below else "",
        f"{count(above)} right of it" if above else "",
        f"{count(strip.missing)} missing" if strip.missing else "",
        f"{count(strip.pending)} not told" if strip.pending else "",
    ]
    return "; ".join(filter(None, parts))


# What it rests on


def _assumptions(result: Result) -> str:
    items = "".join(f"<li>{text(sentence)}</li>" for sentence in result.assumptions)
    return section("assumptions", "What this rests on", f"<ul>{items}</ul>")


_RULES = {
    "pooled": "one portfolio of bets against each arm, for adversaries blind to the future",
    "causal": "pairs of arms, for adversaries blind to the future",
    "fixed": "pairs of arms, for numbers of readings chosen in advance",
    "clairvoyant": "pairs of arms, for adversaries that see the future",
    "dependent": "pairs of arms that may move together",
    "paired": "who wins side by side, round by round",
}

_VERIFY = """\
import pathlib
from truearm.report.html import result_in

result = result_in(pathlib.Path("report.html").read_text(encoding="utf-8"))
result.certificate.verify(readings)  # {arm: its readings in order}; raises if a claim fails"""


def _certificate(result: Result, what: str) -> str:
    certificate = result.certificate
    needed = certificate.log_threshold
    facts = {
        "status": result.status.value,
        "digest of the readings": certificate.digest,
        "design": "sizes fixed in advance" if result.design == "fixed" else "sequential: valid at any time",
        "rule": _RULES[certificate.rule] if certificate.rule else "confidence bounds",
        "threshold": "none" if needed is None else f"{_factor(needed)} (logarithm {number(needed)})",
        "error probability": percent(result.problem.error, ROUND_CEILING),
    }
    listed = "".join(f"<dt>{text(key)}</dt><dd>{text(fact)}</dd>" for key, fact in facts.items())
    return section(
        "certificate",
        "The certificate",
        f"<dl>{listed}</dl>",
        _claims(certificate.claims, result.total, what),
        _exclusions(certificate.exclusions),
        "<p>To check it, recompute every claim from the readings, which this page holds only in part:</p>",
        f"<pre><code>{_code(_VERIFY)}</code></pre>",
    )


def _code(lines: str) -> str:
    return "\n".join(text(line) for line in lines.splitlines())


def _claims(claims: Sequence[Claim], total: int, what: str) -> str:
    if not claims:
        return ""
    rows = (
        (
            claim.arm,
            claim.leader,
            "not better by more than the tolerance" if claim.tolerant else "not the best",
            count(total if claim.counts is None else sum(claim.counts)),
            f"{_factor(claim.log_evidence)} (logarithm {number(claim.log_evidence, None, ROUND_FLOOR)})",
        )
        for claim in claims
    )
    return table(("arm", "leader", "claim", f"after {what}s of all arms", "evidence"), rows)


def _exclusions(exclusions: Sequence[Exclusion]) -> str:
    if not exclusions:
        return ""
    rows = ((e.arm, _bound(e.upper), _bound(e.lower)) for e in exclusions)
    return table(("excluded arm", "its upper bound", "is below a lower bound"), rows)


def _bound(bound: Bound) -> str:
    return f"{number(bound.value, signs=ON_PAGES)} ({name_of(bound.arm)}, {count(bound.n)} readings)"
