"""Results in words: a paragraph, a table for notebooks, and the promises a result rests on.

Nothing is computed here. Numbers that bound something are rounded to the safe side.
"""

import math
from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from html import escape
from typing import TYPE_CHECKING

from truearm.claims.certificate import Status, Verdict
from truearm.evidence import Levels
from truearm.problem import Adversary, Contamination, Problem, Tolerance

if TYPE_CHECKING:
    from truearm.claims.result import Arm, Result

_LISTED = 5  # arms named one by one in a sentence; more are counted
_TOLD = 2  # alarms told in the paragraph; the others are in `result.alarms`


def count(n: int) -> str:
    """Return a count with thousands separators.

    Examples
    --------
    >>> count(1234567)
    '1,234,567'
    """
    return f"{n:,}"


def number(x: float, quantum: float | None = None, rounding: str = ROUND_HALF_EVEN) -> str:
    """Return a reading in digits a person can use: four that count, or as many as the quantum asks for.

    Examples
    --------
    >>> number(12.3456), number(1234567.8), number(0.00012345), number(-math.inf)
    ('12.35', '1,234,568', '0.0001234', 'minus infinity')
    >>> number(11.847, 0.1, ROUND_FLOOR), number(2e-9), number(6.02e23)
    ('11.8', '2e-09', '6.02e+23')
    """
    if math.isnan(x):
        return "unknown"
    if math.isinf(x):
        return "infinity" if x > 0 else "minus infinity"
    exact = Decimal(repr(float(x) + 0.0))  # no minus zero
    if x and not 1e-6 <= abs(x) < 1e12:
        return f"{float(exact.quantize(_step(exact, 4), rounding)):.4g}"
    step = _step(exact, 4) if quantum is None else _step(Decimal(repr(float(quantum))), 1)
    text = f"{exact.quantize(min(step, Decimal(1)), rounding):,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _step(x: Decimal, digits: int) -> Decimal:
    """Return the unit of the last of so many digits of x that count."""
    return Decimal(1).scaleb(x.adjusted() - digits + 1)


def percent(share: float, rounding: str = ROUND_HALF_EVEN, digits: int = 3) -> str:
    """Return a share in percent, with so many digits that count.

    Examples
    --------
    >>> percent(0.05), percent(0.0619876, ROUND_FLOOR), percent(1e-5), percent(0.0)
    ('5 %', '6.19 %', '0.001 %', '0 %')
    """
    hundred = 100 * Decimal(repr(float(share)))
    if not hundred:
        return "0 %"
    text = f"{hundred.quantize(_step(hundred, digits), rounding):f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) + " %"


def quantile_name(quantile: float) -> str:
    """Return what people call a quantile.

    Examples
    --------
    >>> quantile_name(0.5), quantile_name(0.95), quantile_name(0.01), quantile_name(0.999)
    ('median', '95th percentile', '1st percentile', '99.9th percentile')
    """
    if quantile == 0.5:
        return "median"
    text = percent(quantile).removesuffix(" %")
    teen = text[-2:] in ("11", "12", "13")
    ending = "th" if teen or "." in text else {"1": "st", "2": "nd", "3": "rd"}.get(text[-1], "th")
    return f"{text}{ending} percentile"


def name_of(arm: str) -> str:
    """Return an arm's name with everything that does not print replaced, so that it stays on its line.

    Examples
    --------
    >>> name_of("two" + chr(10) + "lines") == "two" + chr(0xFFFD) + "lines"
    True
    """
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in arm)


def _names(arms: Sequence[str]) -> str:
    shown = [name_of(arm) for arm in arms[:_LISTED]]
    if len(arms) > _LISTED:
        shown.append(f"{count(len(arms) - _LISTED)} others")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _goal(problem: Problem) -> str:
    return f"{'highest' if problem.goal == 'max' else 'lowest'} {quantile_name(problem.quantile)}"


def summary(result: "Result") -> str:
    """Return a paragraph a manager can read: what was found, how sure it is, and what it rests on.

    Examples
    --------
    >>> import numpy as np
    >>> from truearm.claims.result import certify
    >>> problem = Problem(arms=("A", "B"), contamination=0.1)
    >>> spread_out = np.arange(1000) * 0.618 % 1
    >>> tapes = {"A": 10 + spread_out, "B": 9.5 + spread_out}
    >>> verdict = Verdict(status=Status.CERTIFIED, best="A", candidates=("A",))
    >>> print(summary(certify(problem, tapes, verdict)))
    A has the highest median: 10.5, true median between 10.39 and 10.61. This is certified with error
    probability 5 % as long as at most 10 % of the readings are bad; by the readings at hand it holds up to
    43.4 % (prescient 42.2 %, malicious 21.1 %). 2,000 pulls of 2 arms.
    """
    told = _no_readings(result) if not result.total else _found(result)
    sentences = [*told, _effort(result), *_alarmed(result)]
    return " ".join(sentence for sentence in sentences if sentence)


def _found(result: "Result") -> list[str]:
    if len(result.problem.arms) == 1:
        return _only_arm(result)
    match result.status:
        case Status.CERTIFIED:
            return _certified(result)
        case Status.TOLERABLE:
            return _tolerable(result)
        case Status.SEPARATED:
            return _separated(result)
        case Status.INDISTINGUISHABLE:
            return _indistinguishable(result)
    return _exhausted(result)


def _no_readings(result: "Result") -> list[str]:
    problem = result.problem
    if len(problem.arms) == 1:
        return [f"{name_of(problem.arms[0])} is the only arm; it has no readings yet."]
    if result.status is Status.INDISTINGUISHABLE:
        return [f"{_names(result.candidates)} cannot be told apart: {_hopeless(problem)}."]
    return [f"No readings yet: nothing is known about which of {_names(problem.arms)} has the {_goal(problem)}."]


def _hopeless(problem: Problem) -> str:
    eps = percent(problem.contamination.eps) if problem.contamination else "this much"
    return (
        f"when {eps} of the readings may be bad, and which of them is up to an adversary, no number of readings "
        f"decides about the {quantile_name(problem.quantile)}; declare less contamination"
    )


def _effort(result: "Result") -> str:
    arms = len(result.problem.arms)
    return f"{count(result.total)} pull{'' if result.total == 1 else 's'} of {count(arms)} arm{'s' * (arms > 1)}."


def _alarmed(result: "Result") -> list[str]:
    told = [f"Alarm: {alarm.message}" for alarm in result.alarms[:_TOLD]]
    more = len(result.alarms) - _TOLD
    return [*told, f"{count(more)} more alarm{'s' * (more > 1)}."] if more > 0 else told


def _only_arm(result: "Result") -> list[str]:
    arm, problem = result.arms[0], result.problem
    name = quantile_name(problem.quantile)
    bound = arm.low <= arm.high and arm.high - arm.low < math.inf
    sure = f" (error probability {percent(problem.delta)})" if bound else ""
    return [f"{name_of(arm.name)} is the only arm: its observed {name} is {_standing(result, arm)}{sure}."]


def _standing(result: "Result", arm: "Arm") -> str:
    """Return the observed quantile and where the true one lies."""
    if arm.low > arm.high:
        return f"{number(arm.median)}, but the readings contradict the declared contamination"
    low, high = interval_ends(arm.low, arm.high)
    match math.isinf(arm.low), math.isinf(arm.high):
        case True, True:
            return f"{number(arm.median)}, too few readings to bound the true one"
        case True, False:
            where = f"at most {high}"
        case False, True:
            where = f"at least {low}"
        case _:
            where = f"between {low} and {high}"
    clean = " if no reading is bad" if result.problem.contamination is None else ""
    return f"{number(arm.median)}, true {quantile_name(result.problem.quantile)} {where}{clean}"


def interval_ends(low: float, high: float) -> tuple[str, str]:
    """Return both ends in words, rounded outward to the digits the width deserves.

    Examples
    --------
    >>> interval_ends(11.8264, 12.8731)
    ('11.8', '12.9')
    >>> interval_ends(870.0, 1129.0), interval_ends(-math.inf, 2.0)
    (('870', '1,129'), ('minus infinity', '2'))
    """
    width = high - low
    quantum = width / 10 if 0 < width < math.inf else None  # two digits of the width
    return number(low, quantum, ROUND_FLOOR), number(high, quantum, ROUND_CEILING)


def _leader_arm(result: "Result") -> "Arm | None":
    return next((arm for arm in result.arms if arm.name == result.leader), None)


def _bad(contamination: Contamination) -> str:
    """Return the promise about bad readings: how many, and whose."""
    if contamination.eps == 0:
        return "as long as no reading is bad"
    worst = {
        Adversary.OBLIVIOUS: "",
        Adversary.PRESCIENT: ", even if whoever makes them sees the true readings",
        Adversary.MALICIOUS: ", even if an adversary chooses which",
    }
    share = percent(contamination.eps)
    return f"as long as at most {share} of the readings are bad{worst[contamination.adversary]}"


def _certified(result: "Result") -> list[str]:
    problem, arm = result.problem, _leader_arm(result)
    head = f"{name_of(result.best or '')} has the {_goal(problem)}"
    standing = f": {_standing(result, arm)}." if arm else "."
    declared = problem.contamination or Contamination(0.0)
    sure = f"This is certified with error probability {percent(problem.delta)} {_bad(declared)}"
    return [head + standing, f"{sure}{_up_to(result, declared)}."]


def _up_to(result: "Result", declared: Contamination) -> str:
    """Return how much contamination the readings at hand bear; what was certified at eps stands at eps."""
    point = getattr(result.breakdown, declared.adversary.value)
    if point is None:
        return ""
    point = max(point, declared.eps) if result.status is Status.CERTIFIED else point
    return f"; by the readings at hand it holds up to {percent(point, ROUND_FLOOR)}{_others(result, declared)}"


def _others(result: "Result", declared: Contamination) -> str:
    """Return the breakdown points of the adversaries that were not declared."""
    others = [a for a in Adversary if a is not declared.adversary]
    points = {a: getattr(result.breakdown, a.value) for a in others}
    if not any(points.values()):
        return f" ({' and '.join(others)}: not certified)"
    known = (f"{a} {'not certified' if p is None else percent(p, ROUND_FLOOR)}" for a, p in points.items())
    return f" ({', '.join(known)})"


def _amount(amount: float, *, relative: bool) -> str:
    return percent(amount, ROUND_CEILING) if relative else number(amount, amount / 10, ROUND_CEILING)


def _distance(result: "Result") -> str:
    """Return how far the leader may be from the best, certified."""
    relative = result.problem.tolerance.relative
    if math.isinf(result.tolerance):
        return "nothing yet bounds how far it may be from the best"
    if result.tolerance == 0:
        return "no arm is better"
    return f"it is at most {_amount(result.tolerance, relative=relative)} from the best"


def _tolerable(result: "Result") -> list[str]:
    problem, arm = result.problem, _leader_arm(result)
    tolerance, declared = problem.tolerance, problem.contamination or Contamination(0.0)
    within = _amount(result.tolerance, relative=tolerance.relative) if result.tolerance < math.inf else ""
    asked = _amount(tolerance.amount, relative=tolerance.relative)
    head = f"{name_of(result.best or '')} is within {within} of the {_goal(problem)} of all arms"
    asked_for = "" if within == asked or not tolerance else f" ({asked} was asked for)"
    if not within:  # bounds on effective gaps alone (E3): what contamination hides comes on top
        near = (
            f"has an effective gap of at most {asked} to"
            if tolerance
            else "is up to a slack in quantile levels at"
        )
        head, asked_for = f"{name_of(result.best or '')} {near} the {_goal(problem)} of all arms", ""
    standing = f"; its own is {_standing(result, arm)}" if arm else ""
    sure = f"This is certified with error probability {percent(problem.delta)} {_bad(declared)}."
    return [f"{head}{asked_for}{standing}.", sure, _best_itself(result)]


def _best_itself(result: "Result") -> str:
    others = [arm for arm in result.candidates if arm != result.best]
    return f"{_names(others)} may be better by that much." if others else ""


def _separated(result: "Result") -> list[str]:
    problem, arm = result.problem, _leader_arm(result)
    standing = f": {_standing(result, arm)}." if arm else "."
    return [
        f"{name_of(result.best or '')} has the {_goal(problem).replace(' ', ' observed ', 1)}{standing}",
        f"It is the best arm with error probability {percent(problem.delta)} if bad readings do not hide the true "
        "order (all effective gaps are positive), however many there are.",
        _certified_besides(result),
    ]


def _certified_besides(result: "Result") -> str:
    point, estimate = result.breakdown.oblivious, result.breakdown_estimate.oblivious
    near = percent(estimate, digits=2) if estimate else ""
    tail = f"; with endless readings like these it would end near {near} (an estimate)" if near else ""
    if not point:
        return f"Without that promise it is not certified for any share of bad readings{tail}."
    others = _others(result, Contamination(0.0))
    return f"Without that promise it holds up to {percent(point, ROUND_FLOOR)} bad readings{others}{tail}."


def _indistinguishable(result: "Result") -> list[str]:
    problem = result.problem
    declared = problem.contamination or Contamination(0.0)
    if min(Levels.of(problem.level, problem.contamination)) <= 0:
        return [f"{_names(result.candidates)} cannot be told apart: {_hopeless(problem)}."]
    return [
        f"{_names(result.candidates)} cannot be told apart while {percent(declared.eps)} of the readings may be "
        "bad: more pulls of this kind would not decide which has the "
        f"{_goal(problem)}{_within(problem.tolerance)}.",
        f"That has its own error probability of {percent(problem.delta)}, and supposes that the readings go on "
        "as they were.",
        _best_looking(result),
        _decided_at(result, declared),
    ]


def _within(tolerance: Tolerance) -> str:
    return f" within {_amount(tolerance.amount, relative=tolerance.relative)}" if tolerance else ""


def _best_looking(result: "Result") -> str:
    arm = _leader_arm(result)
    if arm is None:
        return ""
    sure = "" if math.isinf(result.tolerance) else f", with error probability {percent(result.problem.delta)}"
    observed = f"{quantile_name(result.problem.quantile)} {_standing(result, arm)}"
    return f"{name_of(arm.name)} looks best ({observed}): {_distance(result)}{sure}."


def _decided_at(result: "Result", declared: Contamination) -> str:
    """Return at which contamination the leader would be certified, now or with endless readings."""
    point = getattr(result.breakdown, declared.adversary.value)
    estimate = getattr(result.breakdown_estimate, declared.adversary.value)
    who = name_of(result.leader or "")
    if point:
        return (
            f"{who} would be certified as best if at most {percent(point, ROUND_FLOOR)} of the readings were bad."
        )
    if estimate and estimate < declared.eps:
        return f"Endless readings like these would decide below about {percent(estimate, digits=2)} (an estimate)."
    return ""


def _exhausted(result: "Result") -> list[str]:
    problem = result.problem
    remaining = len(result.candidates)
    out = len(problem.arms) - remaining
    excluded = f"; {count(out)} other{'s' * (out > 1)} excluded" if out else ""
    if not remaining:
        return ["The readings ended before a decision."]
    return [
        f"The readings ended before a decision: {_names(result.candidates)} may have the "
        f"{_goal(problem)}{excluded}.",
        _best_looking(result),
        _decided_at(result, problem.contamination or Contamination(0.0)),
    ]


def assumptions(problem: Problem, verdict: Verdict, design: str) -> tuple[str, ...]:
    """Return the promises a result rests on, one sentence each.

    Examples
    --------
    >>> problem = Problem(arms=("A", "B"))
    >>> verdict = Verdict(status=Status.CERTIFIED, best="A", candidates=("A",))
    >>> for sentence in assumptions(problem, verdict, "sequential")[:2]:
    ...     print(sentence)
    Each reading is bad with probability at most 5 %; bad readings may be anything.
    Which readings are bad does not depend on the true readings, nor what they say (oblivious).
    """
    return (
        *_on_contamination(problem),
        "The n-th pull of an arm is the n-th draw of that arm, whenever it is made: draws of an arm are "
        "independent and follow one law.",
        _on_dependence(problem),
        "A NaN is a bad reading and counts against the declared contamination; infinities are ordinary readings.",
        *_on_sizes(design),
        *_on_status(problem, verdict),
        f"Four statements are each wrong with probability at most {percent(problem.delta)}: the decision, all "
        "intervals of quantiles together, all intervals of MADs together, and the quality curve of the best arm.",
    )


def _on_contamination(problem: Problem) -> Iterable[str]:
    c = problem.contamination
    if c is None:
        yield (
            "Bad readings do not hide the true order: all effective gaps are positive. Their share is not "
            "bounded, and intervals are those of the observed readings."
        )
        return
    if c.eps == 0:
        yield "No reading is bad."
        return
    yield f"Each reading is bad with probability at most {percent(c.eps)}; bad readings may be anything."
    yield {
        Adversary.OBLIVIOUS: "Which readings are bad does not depend on the true readings, nor what they say "
        "(oblivious).",
        Adversary.PRESCIENT: "Which readings are bad does not depend on the true readings; what they say may "
        "(prescient).",
        Adversary.MALICIOUS: "Which readings are bad, and what they say, may depend on the true readings "
        "(malicious).",
    }[c.adversary]
    if c.adversary is not Adversary.OBLIVIOUS:
        yield (
            "They may depend on readings not yet taken (clairvoyant)."
            if c.clairvoyant
            else "They do not depend on readings not yet taken (causal)."
        )


def _on_dependence(problem: Problem) -> str:
    if problem.dependent_arms:
        return "Arms may move together: nothing is supposed about how draws of different arms hang together."
    return "Draws of different arms are independent of each other."


def _on_sizes(design: str) -> Iterable[str]:
    if design == "fixed":
        yield "The number of readings of each arm was fixed before the first of them."


def _on_status(problem: Problem, verdict: Verdict) -> Iterable[str]:
    if problem.regularity is not None:
        r = problem.regularity
        yield (
            f"Within {percent(r.reach)} of the median in quantile levels the distribution function of each "
            f"arm rises with slope at least 1/(B m2), B = {number(r.B)}, m2 = {number(r.m2)}."
        )
    if verdict.status is Status.INDISTINGUISHABLE:
        yield (
            "That more pulls would not decide supposes stationary readings, contamination included, and has "
            f"its own error probability of {percent(problem.delta)}."
        )
    if verdict.best is not None and len(problem.arms) > 1:
        name = quantile_name(problem.quantile)
        yield f"Of arms with exactly the same {name} the first listed counts as the best."


_STYLE = """<style>
.truearm{font:14px/1.45 system-ui,sans-serif;color:inherit;max-width:62em}
.truearm table{border-collapse:collapse;margin:.6em 0;font:inherit}
.truearm th,.truearm td{padding:.2em .7em;text-align:right;border-bottom:1px solid rgba(128,128,128,.35);
white-space:nowrap;background:none;color:inherit}
.truearm th:first-child,.truearm td:first-child{text-align:left;white-space:normal;overflow-wrap:anywhere;
min-width:7em}
.truearm .best td:first-child{font-weight:600}
.truearm .out{opacity:.6}
.truearm svg{vertical-align:middle;color:#4a90d9}
.truearm .alarm{border-left:3px solid #d08000;padding-left:.6em}
.truearm .note{opacity:.75;font-size:12px}
</style>"""
_HUGE = math.nextafter(math.inf, 0.0)
_WIDTH, _HEIGHT = 260, 18  # pixels of one arm's picture


def html(result: "Result") -> str:
    """Return a self-contained HTML fragment for notebooks: no scripts, nothing from elsewhere.

    Examples
    --------
    >>> from truearm.claims.result import certify
    >>> problem = Problem(arms=("<A>", "B"))
    >>> result = certify(problem, {}, Verdict(status=Status.EXHAUSTED, candidates=problem.arms))
    >>> "<A>" in html(result), "&lt;A&gt;" in html(result)
    (False, True)
    """
    span = _span(result)
    rows = "".join(_row(result, arm, span) for arm in result.arms)
    alarms = "".join(f'<p class="alarm">{escape(alarm.message)}</p>' for alarm in result.alarms)
    promises = "".join(f"<li>{escape(sentence)}</li>" for sentence in result.assumptions)
    head = "".join(f"<th>{escape(title)}</th>" for title in _titles(result.problem))
    return (
        f'<div class="truearm">{_STYLE}<p>{escape(without_alarms(result))}</p>{alarms}'
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        f'<p class="note">{_LEGEND}</p>'
        f"<details><summary>What this rests on</summary><ul>{promises}</ul></details></div>"
    )


_LEGEND = (
    "Tick: observed. Thick bar: what contamination alone leaves open, whatever the number of readings (an "
    "estimate). Thin line: what more readings would remove. Grayed: excluded."
)


def without_alarms(result: "Result") -> str:
    """Return the summary without the alarms, for pages that show those apart.

    Examples
    --------
    >>> from truearm.claims.result import certify
    >>> problem = Problem(arms=("A", "B"))
    >>> print(without_alarms(certify(problem, {}, Verdict(status=Status.EXHAUSTED, candidates=problem.arms))))
    No readings yet: nothing is known about which of A and B has the highest median. 0 pulls of 2 arms.
    """
    told = summary(result)
    first = told.find(" Alarm: ") if result.alarms else -1
    return told if first < 0 else told[:first]


def _titles(problem: Problem) -> tuple[str, ...]:
    name = quantile_name(problem.quantile)
    where = "if none is bad" if problem.contamination is None else f"true {name}"
    return ("arm", "pulls", f"observed {name}", where, "MAD", "")


def _row(result: "Result", arm: "Arm", span: tuple[float, float]) -> str:
    kind = "best" if arm.name == result.best else "" if arm.name in result.candidates else "out"
    where = "contradictory"
    if arm.low <= arm.high:
        where = " to ".join(map(_short, interval_ends(arm.low, arm.high)))
    texts = (name_of(arm.name), count(arm.n), _short(number(arm.median)), where, _short(number(arm.mad)))
    cells = "".join(f"<td>{escape(text)}</td>" for text in texts)
    return f'<tr class="{kind}">{cells}<td>{_picture(arm, span)}</td></tr>'


def _short(text: str) -> str:
    return {"minus infinity": "−∞", "infinity": "∞", "unknown": "–"}.get(text, text)


def _span(result: "Result") -> tuple[float, float]:
    """Return the stretch the pictures show: all observed quantiles, and the intervals of arms still in play."""
    shown = [
        x
        for arm in result.arms
        for x in (arm.median, *((arm.low, arm.high) if arm.name in result.candidates else ()))
        if math.isfinite(x)
    ]
    if not shown:
        return 0.0, 1.0
    low, high = min(shown), max(shown)
    room = (high / 2 - low / 2) / 10 or abs(low) / 10 or 1.0  # halves, so that huge readings do not overflow
    return max(low - room, -_HUGE), min(high + room, _HUGE)


def _picture(arm: "Arm", span: tuple[float, float]) -> str:
    """Return the interval of one arm: a thin line, the contamination part thick, the observed value a tick."""
    if math.isnan(arm.median) or arm.low > arm.high:
        return ""
    half = _HEIGHT / 2
    left, right = _at(arm.low, span), _at(arm.high, span)
    inner = sorted(min(max(_at(x, span), left), right) for x in (arm.contamination_low, arm.contamination_high))
    tick = (
        f'<line x1="{_at(arm.median, span):.1f}" x2="{_at(arm.median, span):.1f}" y1="1" y2="{_HEIGHT - 1}" '
        'stroke="currentColor" stroke-width="2"/>'
        if math.isfinite(arm.median)
        else ""
    )
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="interval from {" to ".join(interval_ends(arm.low, arm.high))}">'
        f'<line x1="{left:.1f}" x2="{right:.1f}" y1="{half}" y2="{half}" stroke="currentColor" '
        'stroke-width="1.5"/>'
        f'<rect x="{inner[0]:.1f}" y="{half - 4}" width="{inner[1] - inner[0]:.1f}" height="8" rx="2" '
        f'fill="currentColor" fill-opacity=".5"/>{tick}</svg>'
    )


def _at(x: float, span: tuple[float, float]) -> float:
    low, high = span
    if math.isinf(x):
        return 0.0 if x < 0 else float(_WIDTH)
    place = (x / 2 - low / 2) / (high / 2 - low / 2)
    return _WIDTH * min(max(place, 0.0), 1.0)
