"""Results in words: the answer first, then what it rests on. Values become sentences here and nowhere below.

Nothing is computed. Numbers that bound something are rounded to the safe side.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import NamedTuple

from truearm.claims.certificate import DECIDED, SIDE_BY_SIDE, Alarm, Status
from truearm.claims.result import Arm, Lead, Result
from truearm.evidence import Judge
from truearm.evidence.judge import UNDECLARED
from truearm.evidence.units import Units
from truearm.problem import Adversary, Contamination, Handicap, Interval, Problem, Tolerance

_LISTED = 5  # arms named one by one in a sentence; more are counted
_COMPARED = 3  # rivals whose distance is told in the headline, the nearest
_SHOWN = 1 + 1e-6  # factors nearer to 1 than this are 1 to a person
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
    ('5%', '6.19%', '0.001%', '0%')
    """
    hundred = 100 * Decimal(repr(float(share)))
    if not hundred:
        return "0%"
    text = f"{hundred.quantize(_step(hundred, digits), rounding):f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) + "%"


def quantile_name(quantile: float) -> str:
    """Return what people call a quantile.

    Examples
    --------
    >>> quantile_name(0.5), quantile_name(0.95), quantile_name(0.01), quantile_name(0.999)
    ('median', '95th percentile', '1st percentile', '99.9th percentile')
    """
    if quantile == 0.5:
        return "median"
    text = percent(quantile).removesuffix("%")
    teen = text[-2:] in ("11", "12", "13")
    ending = "th" if teen or "." in text else {"1": "st", "2": "nd", "3": "rd"}.get(text[-1], "th")
    return f"{text}{ending} percentile"


def target_name(problem: Problem) -> str:
    """Return what people call what arms are compared by.

    Examples
    --------
    >>> target_name(Problem(arms=("A",), quantile=0.95)), target_name(Problem(arms=("A",), at_most=200))
    ('95th percentile', 'share of readings at most 200')
    """
    return _TARGETS[problem.target](problem)


def _share_name(problem: Problem) -> str:
    if problem.at_most is not None:
        return f"share of readings at most {number(problem.at_most)}"
    return f"share of readings at least {number(problem.at_least or 0.0)}"


_TARGETS: Mapping[str, Callable[[Problem], str]] = {
    "quantile": lambda problem: quantile_name(problem.quantile),
    "share": _share_name,
    "wins": lambda _: "median",  # what is shown of an arm by itself
}


def column_name(problem: Problem) -> str:
    """Return the same in a word or two, for the head of a column.

    Examples
    --------
    >>> column_name(Problem(arms=("A",))), column_name(Problem(arms=("A",), at_least=4))
    ('median', 'share >= 4')
    """
    name = target_name(problem)
    return name.replace("of readings at most", "<=").replace("of readings at least", ">=")


def value(x: float, problem: Problem) -> str:
    """Return an observed value of what arms are compared by: a share in percent.

    Examples
    --------
    >>> value(0.625, Problem(arms=("A",))), value(0.625, Problem(arms=("A",), at_least=4))
    ('0.625', '62.5%')
    """
    return percent(x) if problem.target == "share" and not math.isnan(x) else number(x)


def value_ends(low: float, high: float, problem: Problem) -> tuple[str, str]:
    """Return both ends of an interval of it, rounded outward.

    Examples
    --------
    >>> value_ends(0.6014, 0.6582, Problem(arms=("A",), at_least=4))
    ('60.1%', '65.9%')
    """
    if problem.target != "share" or math.isinf(high - low):
        return interval_ends(low, high)
    first, last = interval_ends(100 * low, 100 * high)
    return f"{first}%", f"{last}%"


def name_of(arm: str) -> str:
    """Return an arm's name with everything that does not print replaced, so that it stays on its line.

    Examples
    --------
    >>> name_of("two" + chr(10) + "lines") == "two" + chr(0xFFFD) + "lines"
    True
    """
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in arm)


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


def span(between: Interval) -> str:
    """Return the plausible range in words.

    Examples
    --------
    >>> span(Interval(0.0, 1000.0)), span(Interval(0.0, math.inf)), span(Interval(-math.inf, 7.5))
    ('0 to 1,000', '0 or more', '7.5 or less')
    """
    if math.isinf(between.high):
        return f"{number(between.low)} or more"
    return (
        f"{number(between.low)} to {number(between.high)}"
        if math.isfinite(between.low)
        else (f"{number(between.high)} or less")
    )


class Voice(NamedTuple):
    """What a reading is called, and a better and the best arm, where people have words for it.

    Examples
    --------
    >>> Voice("run", "run", "fastest", "faster").best
    'fastest'
    """

    reading: str = "reading"
    pull: str = "pull"
    best: str = ""
    better: str = ""


PLAIN = Voice()
TIMED = Voice("run", "run", "fastest", "faster")


def names(arms: Sequence[str], word: str = "and") -> str:
    """Return several arms in a sentence; beyond five the rest is counted.

    Examples
    --------
    >>> names(["A"]), names(["A", "B"], "or"), names(list("ABCDEFG"))
    ('A', 'A or B', 'A, B, C, D, E and 2 others')
    """
    shown = [name_of(arm) for arm in arms[:_LISTED]]
    if (more := len(arms) - _LISTED) > 0:
        shown.append(f"{count(more)} other{'s' * (more > 1)}")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} {word} {shown[-1]}"


def _is_best(result: Result, seen: str, voice: Voice) -> tuple[str, str]:
    """Return what the best arm is or has, and what arms tie for."""
    if not voice.best or result.problem.target != "quantile":
        return f"has the {_goal(result, seen)}", f"the {_goal(result, seen)}"
    level = "" if result.problem.quantile == 0.5 else f" at the {target_name(result.problem)}"
    return f"is {voice.best}{level}", f"{voice.best}{level}"


def _goal(result: Result, seen: str = "") -> str:
    """Return what the best arm has; `seen` is "observed " where the readings are taken as they are."""
    problem = result.problem
    if problem.target == "wins":
        return "most wins side by side"
    name = "estimate" if result.certificate.estimated else f"{seen}{target_name(problem)}"
    return f"{'highest' if problem.goal == 'max' else 'lowest'} {name}"


def summary(result: Result, *, alarms: bool = True, voice: Voice = PLAIN) -> str:
    """Return a paragraph a manager can read: what was found, how sure it is, and what it rests on.

    Parameters
    ----------
    alarms
        Whether the alarms are told too; pages show them apart.
    voice
        What readings and better arms are called.

    Examples
    --------
    >>> import numpy as np
    >>> from truearm.claims.certificate import Verdict
    >>> from truearm.claims.certify import certify
    >>> problem = Problem(arms=("A", "B"), contamination=0.1)
    >>> spread_out = np.arange(1000) * 0.618 % 1
    >>> tapes = {"A": 10 + spread_out, "B": 9.5 + spread_out}
    >>> verdict = Verdict(status=Status.CERTIFIED, best="A", candidates=("A",))
    >>> print(summary(certify(problem, tapes, verdict)))
    A has the highest median: 1.05x B's (at least 1.03x). 95% sure, as long as each reading is bad with a chance of
    at most 10%, whatever its true value. These readings support it for up to 43.4% bad readings. 2,000 pulls of 2
    arms.
    """
    return " ".join(sentences(result, alarms=alarms, voice=voice))


def sentences(result: Result, *, alarms: bool = True, voice: Voice = PLAIN) -> list[str]:
    """Return the same piece by piece, the answer first.

    Examples
    --------
    >>> from truearm.claims.certificate import Verdict
    >>> from truearm.claims.certify import certify
    >>> sentences(certify(Problem(arms=("A",)), {}, Verdict(status=Status.EXHAUSTED, candidates=("A",))))
    ['A is the only arm; it has no readings yet.', '0 pulls of 1 arm.']
    """
    beside = _alarmed(result) if alarms else ()
    told = [*_answer(result, voice), _effort(result, voice), *beside]
    return [sentence for sentence in told if sentence]


def _answer(result: Result, voice: Voice) -> list[str]:
    if not result.total:
        return _no_readings(result)
    if len(result.problem.arms) == 1:
        return _only_arm(result, voice)
    if result.status is Status.DOUBTFUL:
        return _doubtful(result)
    if result.control is not None:
        from truearm.claims import answers  # a friend: it says the rest in the words that are here

        asked = answers.control(result, voice)
        return [*asked, *(_decided(result, voice) if result.status in DECIDED else ())]
    return _decided(result, voice)


def _decided(result: Result, voice: Voice) -> list[str]:
    if result.best is None and result.ties:
        return _all_the_same(result, voice)
    said = {
        Status.CERTIFIED: _certified,
        Status.TOLERABLE: _tolerable,
        Status.SEPARATED: _separated,
        Status.INDISTINGUISHABLE: _indistinguishable,
    }
    return said.get(result.status, _exhausted)(result, voice)


def _no_readings(result: Result) -> list[str]:
    problem = result.problem
    if len(problem.arms) == 1:
        return [f"{name_of(problem.arms[0])} is the only arm; it has no readings yet."]
    if result.status is Status.INDISTINGUISHABLE:
        return [_hopeless(result)]
    return [f"No readings yet: nothing is known about which of {names(problem.arms)} has the {_goal(result)}."]


def _hopeless(result: Result) -> str:
    problem = result.problem
    eps = percent(problem.contamination.eps) if problem.contamination else "this many"
    return (
        f"Not decided: when an adversary may pick {eps} of the readings and change them, no number of readings "
        f"tells which of {names(result.candidates)} has the {_goal(result)}. Allow for fewer bad readings."
    )


def _effort(result: Result, voice: Voice) -> str:
    """Return how much was measured, and what the way in which code was timed leaves open."""
    told = _pulled(result, voice)
    if (result.conditions or {}).get("process") != "shared":
        return told
    return (
        f"{told} All was timed in one process, because a function could not be imported by another: its hash seed "
        "and its place in memory are part of the answer."
    )


def _pulled(result: Result, voice: Voice) -> str:
    arms, what = len(result.problem.arms), getattr(result, "counted", voice.pull)
    total = f"{count(result.total)} {what}{'' if result.total == 1 else 's'}"
    units = getattr(result, "units", None)
    each = "" if units is None else f", one per {name_of(units.name)}"
    if result.problem.target == "wins" and result.total:
        rounds = max(result.pulls.values())
        return f"{count(rounds)} round{'s' * (rounds > 1)} of {count(arms)} arm{'s' * (arms > 1)}, {total}."
    return f"{total} of {count(arms)} arm{'s' * (arms > 1)}{each}." if arms > 1 or voice == PLAIN else f"{total}."


def _alarmed(result: Result) -> list[str]:
    told = [f"Alarm: {alarm(one, result.problem)}" for one in result.alarms[:_TOLD]]
    more = len(result.alarms) - _TOLD
    return [*told, f"{count(more)} more alarm{'s' * (more > 1)}."] if more > 0 else told


def _doubtful(result: Result) -> list[str]:
    told = [alarm(doubt, result.problem) for doubt in result.doubts[:_TOLD]]
    more = len(result.doubts) - _TOLD
    return [
        "Doubtful, so nothing is certified.",
        *told,
        f"{count(more)} more doubt{'s' * (more > 1)}." if more > 0 else "",
        f"{name_of(result.leader)} looks best." if result.leader is not None else "",
    ]


def _only_arm(result: Result, voice: Voice) -> list[str]:
    arm, problem = result.arms[0], result.problem
    name, what = target_name(problem), f"{voice.reading}s"
    alone = " is the only arm: its observed" if voice == PLAIN else ": observed"
    if arm.n and _is_lost(arm, problem):
        return [
            f"{name_of(arm.name)}: half or more of {count(arm.n)} {what} timed out or failed, so it has no {name}."
        ]
    head = f"{name_of(arm.name)}{alone} {name} {'is ' * (voice == PLAIN)}{_standing(result, arm)}"
    if result.status is Status.DOUBTFUL:
        return [
            f"{head}. Doubtful, so nothing is certified of the true one.",
            *(alarm(doubt, problem) for doubt in result.doubts[:_TOLD]),
        ]
    if not (arm.low <= arm.high and (math.isfinite(arm.low) or math.isfinite(arm.high))):
        return [f"{head}; {count(arm.n)} {what if arm.n != 1 else voice.reading} do not bound the true one."]
    declared = problem.contamination or Contamination(0.0)
    how = f"the number of {what} was fixed in advance" if result.design == "fixed" else "whenever one stops"
    spread = (
        f"The median absolute deviation is {number(arm.mad)}, the true one "
        f"between {' and '.join(interval_ends(arm.mad_low, arm.mad_high))}."
        if math.isfinite(arm.mad_high)
        else ""
    )
    return [f"{head}.", f"{_sure(problem)} sure, {bad(declared, voice.reading)}; {how}.", spread]


def _sure(problem: Problem) -> str:
    return percent(1 - problem.error, ROUND_FLOOR, 4)


def _standing(result: Result, arm: Arm) -> str:
    """Return the observed quantile and where the true one lies."""
    low, high = value_ends(arm.low, arm.high, result.problem)
    match math.isinf(arm.low), math.isinf(arm.high):
        case True, True:
            return value(arm.observed, result.problem)
        case True, False:
            where = f"at most {high}"
        case False, True:
            where = f"at least {low}"
        case _:
            where = f"between {low} and {high}"
    clean = " if no reading is bad" if result.problem.contamination is None else ""
    return f"{value(arm.observed, result.problem)}, true {target_name(result.problem)} {where}{clean}"


def bad(contamination: Contamination, what: str = "reading") -> str:
    """Return the promise about bad readings: how many, and whose.

    Examples
    --------
    >>> bad(Contamination(0.05), "run")
    'as long as each run is bad with a chance of at most 5%, whatever its true value'
    """
    if contamination.eps == 0:
        return f"as long as no {what} is bad"
    share = percent(contamination.eps)
    if contamination.adversary is Adversary.MALICIOUS:
        return f"as long as at most {share} of the {what}s are bad, even if an adversary picks which"
    sees = ", even if whoever makes them sees the true ones" * (contamination.adversary is Adversary.PRESCIENT)
    return f"as long as each {what} is bad with a chance of at most {share}, whatever its true value{sees}"


def amount(tolerance: Tolerance) -> str:
    """Return a tolerance in words.

    Examples
    --------
    >>> amount(Tolerance.of("3%")), amount(Tolerance(0.25))
    ('3%', '0.25')
    """
    return _amount(tolerance.amount, relative=tolerance.relative)


def _against_baseline(result: Result, given: Handicap) -> str:
    """Return how arms stand to one that is judged as worse than it is; ratios are to positive readings only."""
    others, base = [arm for arm in result.problem.arms if arm != given.arm], name_of(given.arm)
    seen = next(arm.observed for arm in result.arms if arm.name == given.arm)
    much = amount(given.tolerance) if seen > 0 or not given.tolerance.relative else "0%"
    if result.best == given.arm:
        behind = [arm for arm in others if arm not in result.ties]
        told = (
            f"{names(behind)} {'is' if len(behind) == 1 else 'are'} worse than {base} by {much} or more"
            if behind
            else ""
        )
        tied = f"{names(result.ties)} may be worse than {base} by exactly {much}" if result.ties else ""
        return f"{'; '.join(part for part in (told, tied) if part)}."
    if len(others) == 1:
        return f"{name_of(others[0])} is not worse than {base} by more than {much}."
    winners = [arm for arm in (result.best or "", *result.ties) if arm != given.arm]
    verb = "is" if len(winners) == 1 else "are"
    return f"{names(winners)} {verb} best when {base} counts as {much} worse than it is."


def _head(result: Result, voice: Voice, seen: str = "") -> str:
    """Return who is best and by how much; arms that tie with it are named with it (evidence T11)."""
    if result.problem.handicap is not None:
        return _against_baseline(result, result.problem.handicap)
    tied = result.ties
    best, tie = _is_best(result, seen, voice)
    who = names([result.best or "", *tied])
    head = f"{who} tie for {tie}" if tied else f"{who} {best}"
    near = [lead for lead in result.better_by if lead.than not in tied and math.isfinite(lead.observed)]
    told = _leads(result, near, voice)
    lost = [a.name for a in result.arms if a.name != result.best and _is_lost(a, result.problem)]
    late = f"; {names(lost)} timed out or failed too often" if lost else ""
    if result.problem.target == "wins":
        each = "" if len(result.arms) == 2 else " against every other arm"
        told = f"{' and is' if voice.better else ';'} {told}" if told else ""
        return (
            f"{who} is {voice.best or 'best'}: measured side by side, it wins more than half of the rounds{each}"
            f"{told}{late}."
        )
    return f"{head}: {told}{late}." if told else f"{head}{late}."


def _leads(result: Result, leads: Sequence[Lead], voice: Voice) -> str:
    """Return the distances to the nearest rivals."""
    nearest = sorted(leads, key=lambda lead: lead.observed)[:_COMPARED]
    points = result.problem.target == "share"
    told = [lead(one, result.problem.goal, voice, points=points) for one in nearest]
    more = len(leads) - len(nearest)
    text = told[0] if len(told) == 1 else f"{', '.join(told[:-1])} and {told[-1]}" if told else ""
    rest = f"; {count(more)} other{'s are' if more > 1 else ' is'} further behind"
    return text + rest if more else text


def lead(one: Lead, goal: str, voice: Voice = PLAIN, *, points: bool = False) -> str:
    """Return how far the best arm is from another one, rounded to the safe side; of two shares in points.

    Examples
    --------
    >>> lead(Lead("B", "ratio", 1.414, 1.0666), "max"), lead(Lead("B", "difference", 5.12, None), "min")
    ("1.41x B's (at least 1.06x)", "5.12 below B's")
    >>> lead(Lead("B", "ratio", 1.414, 1.0666), "min")
    "B's is 1.41x as high (at least 1.06x)"
    >>> lead(Lead("B", "ratio", 1.414, 1.0666), "min", Voice("run", "run", "fastest", "faster"))
    '1.41x faster than B (at least 1.06x)'
    >>> lead(Lead("B", "difference", 0.1234, 0.0567), "max", points=True)
    "12.3 points above B's (at least 5.6)"
    """
    rival = name_of(one.than)
    if points:
        least = 100 * (one.at_least or 0.0)
        sure = f" (at least {number(least, least / 10, ROUND_FLOOR)})" if least else ""
        return f"{_points(one.observed, digits=3)} above {rival}'s{sure}"
    if one.scale == "difference":
        sure = (
            "" if one.at_least is None else f" (at least {number(one.at_least, one.at_least / 10, ROUND_FLOOR)})"
        )
        side = "above" if goal == "max" else "below"
        return f"{number(one.observed, abs(one.observed) / 100)} {side} {rival}'s{sure}"
    sure = "" if one.at_least is None else least_factor(one.at_least)
    times = factor(one.observed)
    if voice.better:
        return f"{times} {voice.better} than {rival}{sure}"
    return f"{times} {rival}'s{sure}" if goal == "max" else f"{rival}'s is {times} as high{sure}"


def factor(x: float, rounding: str = ROUND_HALF_EVEN) -> str:
    """Return how many times, in three digits, or as many as tell it from 1.

    Examples
    --------
    >>> factor(1.4142), factor(1.06999, ROUND_FLOOR), factor(250.0), factor(1.00042)
    ('1.41x', '1.06x', '250x', '1.0004x')
    """
    return f"{number(x, factor_step(x), rounding)}x"


def factor_step(x: float) -> float:
    """Return the last digit of a factor that is worth showing.

    Examples
    --------
    >>> factor_step(1.41), factor_step(250.0), factor_step(1.00042)
    (0.01, 2.5, 0.0001)
    """
    if abs(x - 1) <= _SHOWN - 1:
        return 0.01
    return x / 100 if x >= 10 else min(0.01, 10.0 ** math.floor(math.log10(abs(x - 1))))


def least_factor(x: float) -> str:
    """Return a certain factor in brackets, in as many digits as tell it from 1; nothing where it is no more.

    Examples
    --------
    >>> least_factor(1.0666), least_factor(1.00042), least_factor(1.0)
    (' (at least 1.06x)', ' (at least 1.0004x)', '')
    """
    return f" (at least {factor(x, ROUND_FLOOR)})" if x > _SHOWN else ""


def _certified(result: Result, voice: Voice) -> list[str]:
    declared = result.problem.contamination or Contamination(0.0)
    sure = f"{_sure(result.problem)} sure{_in_rounds(result, voice)}, {bad(declared, voice.reading)}."
    return [_head(result, voice), sure, _up_to(result, declared, voice)]


def _in_rounds(result: Result, voice: Voice) -> str:
    """Return what rounds side by side do not depend on."""
    if result.problem.target != "wins":
        return ""
    return " under any load" if voice.better else " whatever a round does to all arms alike"


def _up_to(result: Result, declared: Contamination, voice: Voice) -> str:
    """Return how much contamination the readings at hand bear; what was certified at eps stands at eps."""
    point = getattr(result.breakdown, declared.adversary.value)
    if point is None:
        return ""
    point = max(point, declared.eps) if result.status is Status.CERTIFIED else point
    what = f"{voice.reading}s"
    return f"These {what} support it for up to {percent(min(point, 0.5), ROUND_FLOOR)} bad {what}."


def breakdowns(result: Result) -> str:
    """Return up to which share of bad readings the leader is certified, by what whoever makes them may know.

    Examples
    --------
    >>> from truearm.claims.certificate import Verdict
    >>> from truearm.claims.certify import certify
    >>> verdict = Verdict(status=Status.CERTIFIED, best="A", candidates=("A",))
    >>> breakdowns(certify(Problem(arms=("A", "B")), {"A": range(60, 160), "B": range(100)}, verdict))
    'These readings put A first for up to 40.5% bad readings (36.1% if an adversary sees the true readings; 18% if
    it also picks which to spoil).'
    """
    found = [0.0 if point is None else point for point in result.breakdown]
    if not found[0] or result.leader is None or len(result.arms) == 1:
        return ""
    first, second, third = (percent(min(point, 0.5), ROUND_FLOOR) for point in found)
    return (
        f"These readings put {name_of(result.leader)} first for up to {first} bad readings ({second} if an "
        f"adversary sees the true readings; {third} if it also picks which to spoil)."
    )


def _points(share: float, rounding: str = ROUND_HALF_EVEN, digits: int = 2) -> str:
    """Return a difference of two shares in points of a hundred."""
    text = percent(share, rounding, digits).removesuffix("%")
    return f"{text} point{'' if text == '1' else 's'}"


def _distance(amount: float, problem: Problem) -> str:
    """Return a tolerance of a problem in words."""
    if problem.target == "share":
        return _points(amount, ROUND_CEILING)
    return _amount(amount, relative=problem.tolerance.relative)


def _amount(amount: float, *, relative: bool) -> str:
    return percent(amount, ROUND_CEILING) if relative else number(amount, amount / 10, ROUND_CEILING)


def _tolerable(result: Result, voice: Voice) -> list[str]:
    problem = result.problem
    tolerance, declared = problem.tolerance, problem.contamination or Contamination(0.0)
    if problem.handicap is not None:
        sure = f"{_sure(problem)} sure, {bad(declared, voice.reading)}."
        return [_against_baseline(result, problem.handicap), sure, _up_to(result, declared, voice)]
    best, asked = name_of(result.best or ""), _distance(tolerance.amount, problem)
    if result.tolerance < math.inf:
        within = _distance(result.tolerance, problem)
        asked_for = "" if within == asked or not tolerance else f" ({asked} was asked for)"
        if problem.target == "wins":
            rest = f"{_sure(problem)} sure{_in_rounds(result, voice)}, {bad(declared, voice.reading)}."
            head = f"{best} is within {within} of every other arm in more than half of the rounds{asked_for}."
            return [head, rest, _best_itself(result)]
        head = f"{best} is within {within} of the {_goal(result)}{asked_for}."
    elif tolerance:  # bounds on effective gaps alone (E3): what contamination hides comes on top
        head = f"{best} is within {asked} of the {_goal(result)}, beside what bad readings hide."
    else:
        head = f"{best} is best up to the allowed quantile slack."
    return [head, f"{_sure(problem)} sure, {_kept(result)}{bad(declared, voice.reading)}.", _best_itself(result)]


def _best_itself(result: Result) -> str:
    others = [arm for arm in result.candidates if arm != result.best]
    return f"{names(others)} may be better by that much." if others else ""


def _kept(result: Result) -> str:
    """Return the promise about the user's own estimator, where there is one."""
    return "as long as the estimator errs by no more than its radius and bias, and " * result.certificate.estimated


def _separated(result: Result, voice: Voice) -> list[str]:
    future = "" if result.certificate.estimated else " and whoever makes them does not see the future"
    if result.problem.target == "wins":
        return [
            _head(result, voice),
            f"{_sure(result.problem)} sure{_in_rounds(result, voice)}, as long as bad {voice.reading}s do not "
            "reverse who wins more rounds.",
            _certified_besides(result),
        ]
    return [
        _head(result, voice, "observed "),
        f"{_sure(result.problem)} sure that no arm is better, {_kept(result)}as long as bad readings do not "
        f"reverse the true order{future}.",
        _certified_besides(result),
    ]


def _certified_besides(result: Result) -> str:
    if result.certificate.estimated:
        return ""
    point = result.breakdown.oblivious
    if not point:
        return "Without that promise it is not certified for any share of bad readings."
    share = percent(min(point, 0.5), ROUND_FLOOR)
    return f"Without that promise these readings support it for up to {share} bad readings."


def _indistinguishable(result: Result, voice: Voice) -> list[str]:
    problem = result.problem
    declared = problem.contamination or Contamination(0.0)
    if Judge.of(problem, ()).hopeless:
        return [_hopeless(result)]
    within = f" within {_distance(problem.tolerance.amount, problem)}"
    hidden = f": {percent(declared.eps)} bad {voice.reading}s could hide the difference" if declared.eps else ""
    failing = {alarm.arm for alarm in result.alarms if alarm.kind == "missing"}
    left = [arm for arm in result.arms if arm.name in result.candidates]
    lost = [arm.name for arm in left if arm.name in failing or _is_lost(arm, problem)]
    why = f": {names(lost)} timed out or failed too often" if lost else hidden
    best = f"which {_is_best(result, '', voice)[0]}{within if problem.tolerance else ''}"
    return [
        f"Not decided: {names(result.candidates)} are too close to tell {best}{why}."
        if not lost
        else f"Not decided {best}{why}.",
        f"More {voice.reading}s would not help ({_sure(problem)} sure, if they keep behaving the same).",
        _best_looking(result),
        _decided_at(result, declared, voice),
    ]


def _all_the_same(result: Result, voice: Voice) -> list[str]:
    """Return that arms measured the same in every round, which is a tie in words, and decides nothing."""
    rounds, out = max(result.pulls[arm] for arm in result.ties), len(result.problem.arms) - len(result.candidates)
    every = f"each of {count(rounds)} rounds" if rounds > 1 else "the only round"
    ruled_out = f"; {count(out)} other{'s' * (out > 1)} ruled out" if out else ""
    left = [arm for arm in result.candidates if arm not in result.ties]
    ruled_out += f"; {names(left)} {'is' if len(left) == 1 else 'are'} not ruled out yet" if left else ""
    futile = result.status is Status.INDISTINGUISHABLE
    if all(_is_lost(arm, result.problem) for arm in result.arms if arm.name in result.ties):
        return [f"Not decided: {names(result.ties)} timed out in {every}{ruled_out}. Allow them more time."]
    return [
        f"{names(result.ties)} tie: they measured the same in {every}{ruled_out}.",
        f"More {voice.reading}s would not help ({_sure(result.problem)} sure, if they keep behaving the same)."
        if futile
        else "",
    ]


def _is_lost(arm: Arm, problem: Problem) -> bool:
    """Tell whether an arm has no value at its quantile: it timed out there, or all its readings are missing."""
    return math.isnan(arm.observed) or arm.observed == problem.censored


def _best_looking(result: Result) -> str:
    arm = next((arm for arm in result.arms if arm.name == result.leader), None)
    if arm is None or _is_lost(arm, result.problem):
        return ""
    head = f"{name_of(arm.name)} looks best ({value(arm.observed, result.problem)})"
    if math.isinf(result.tolerance):
        return f"{head}."
    if result.tolerance == 0:
        return f"{head}; no arm is better ({_sure(result.problem)} sure)."
    far = _distance(result.tolerance, result.problem)
    return f"{head} and is at most {far} from the best ({_sure(result.problem)} sure)."


def _decided_at(result: Result, declared: Contamination, voice: Voice) -> str:
    """Return at which contamination the leader would be certified, now or with endless readings."""
    point = getattr(result.breakdown, declared.adversary.value)
    estimate = getattr(result.breakdown_estimate, declared.adversary.value)
    what = f"{voice.reading}s"
    near = _too_near(result, declared, what) if estimate and estimate < declared.eps else ""
    if point:
        held = f"These {what} support it for up to {percent(min(point, 0.5), ROUND_FLOOR)} bad {what}."
        return f"{held} {near}" if near else held
    if near:
        return near
    if estimate and estimate < declared.eps:
        share = percent(estimate, digits=2)
        return f"Endless {what} like these would decide only below about {share} bad {what} (an estimate)."
    return ""


def _too_near(result: Result, declared: Contamination, what: str) -> str:
    """Return that two shares are nearer than what bad readings can move them, where shares are compared."""
    if result.problem.target != "share":
        return ""
    gap = getattr(result.breakdown_estimate, declared.adversary.value)
    apart = 2 * gap if declared.adversary is Adversary.MALICIOUS else gap  # extensions 1.2
    bears = f"cannot survive {percent(declared.eps)} bad {what}, however many there are (an estimate)"
    return f"Two arms {_points(apart)} apart {bears}."


def _exhausted(result: Result, voice: Voice) -> list[str]:
    problem, left = result.problem, len(result.candidates)
    out = len(problem.arms) - left
    if not left:
        return ["Not decided yet."]
    excluded = f"; {count(out)} other{'s' * (out > 1)} ruled out" if out else ""
    return [
        f"Not decided yet: {names(result.candidates, 'or')} may {_may_be(result, voice)}{excluded}.",
        _best_looking(result),
        _decided_at(result, problem.contamination or Contamination(0.0), voice),
    ]


def _may_be(result: Result, voice: Voice) -> str:
    return f"be {voice.best}" if voice.best else f"have the {_goal(result)}"


_ALONE = "Keep conditions the same, or measure it side by side with what it is to be compared with."
_REMEDIES = {
    False: "Measure the arms side by side (`truearm race`, or rounds=True), keep conditions "
    "the same, or give one reading per independent unit.",
    True: "All arms were measured side by side, so what conditions do to all of them does little harm; still, "
    "keep them the same.",
}


def alarm(one: Alarm, problem: Problem) -> str:
    """Return what in the readings does not fit the promises, and what to do about it.

    Examples
    --------
    >>> print(alarm(Alarm("units", "A", 7, 400, detail="1,000 times"), Problem(arms=("A", "B"))))
    7 readings of A (1.75%) lie near 1,000 times its median and hardly any beside them: if this is a mistake of
    units, correct it at the source; nothing was changed here.
    """
    arm, name = name_of(one.arm), target_name(problem)
    some = f"{count(one.found)} of {count(one.n)} readings of {arm} ({percent(one.found / max(1, one.n))})"
    declared = _declaration(problem)
    said = {
        "dependence": "How far arms are apart depends on when they were measured: what one of them does by itself "
        "lasts for several rounds. Leave more time between rounds, or start every arm anew in each."
        if problem.rounds
        else f"{f'The readings of {arm} depend' if one.arm else 'Readings depend'} on when they were "
        "taken: conditions drift, come and go, or readings repeat. "
        + (_REMEDIES[one.detail == SIDE_BY_SIDE] if len(problem.arms) > 1 else _ALONE),
        "missing": f"{some} are missing, more than chance explains when {declared}: "
        + (
            'find out why they fail, count them at their worst (missing="worst"), or raise eps.'
            if problem.missing == "independent"
            else "they count at their worst, so find out why they fail."
        ),
        "outside": f"{some} are outside the plausible range{_range(problem)}"
        f"{' or missing' * (problem.missing == 'independent')}, more than chance explains when {declared}: find "
        "out why, name a wider range (between), or raise eps.",
        "contradiction": f"No true {name} of {arm} fits its readings when {declared}, because {count(one.found)} "
        f"of {count(one.n)} are "
        + (
            'missing: count them at their worst (missing="worst"), or raise eps.'
            if problem.between is None
            else f"missing or outside the plausible range{_range(problem)}: widen it (between), or raise eps."
        ),
        "outliers": f"{some} lie more than ten robust standard deviations from its median, and {declared}: look "
        "at them, and raise eps unless they are true readings with very heavy tails.",
        "units": f"{count(one.found)} readings of {arm} ({percent(one.found / max(1, one.n))}) lie near "
        f"{one.detail} its median and hardly any beside them: if this is a mistake of units, correct it at the "
        "source; nothing was changed here.",
        "clusters": f"Rows with the same {name_of(one.detail)!r} are alike, so they are not independent readings: "
        f"name that column as the unit (unit={one.detail!r}, --unit) and they count as one.",
        "confounded": f"Each arm has a single {name_of(one.detail)!r} of its own, so nothing tells a difference "
        f"of arms from one of {name_of(one.detail)!r}: measure every arm in several.",
        "unsupported": f"The readings of {arm} changed while they were taken: {count(one.found)} or more of "
        f"{count(one.n)} are bad, or it did not stay what it was; but the decision holds only for a share of up "
        f"to {one.detail} bad readings, so it is not supported. Find out what changed.",
        "ties": f"{some} equal its {name}{''.join(f' {number(x)}' for x in one.values)}: arms that share this "
        f"value cannot be told apart{_by_share(one.detail)}.",
    }
    return said[one.kind]


def _range(problem: Problem) -> str:
    return "" if problem.between is None else f" {span(problem.between)}"


def _by_share(decides: str) -> str:
    """Return what to do about a tie: compare shares if that decides, else measure more finely."""
    if not decides:
        return ", so record more digits if the instrument has them"
    name, _, limit = decides.partition("=")
    words, option = name.replace("_", " "), name.replace("_", "-")
    return f" by it, but the share of readings {words} {limit} decides: {decides} (--{option} {limit})"


def _declaration(problem: Problem) -> str:
    if problem.contamination is None:
        return f"no share of bad readings is declared (judged by {percent(UNDECLARED.eps)})"
    if problem.contamination.eps == 0:
        return "no reading is bad"
    share = percent(problem.contamination.eps)
    if problem.contamination.adversary is Adversary.MALICIOUS:
        return f"at most {share} of the readings are bad"
    return f"each reading is bad with a chance of at most {share}"


def assumptions(result: Result) -> tuple[str, ...]:
    """Return the promises a result rests on, one sentence each.

    Examples
    --------
    >>> from truearm.claims.certificate import Verdict
    >>> from truearm.claims.certify import certify
    >>> problem = Problem(arms=("A", "B"))
    >>> for sentence in assumptions(certify(problem, {}, Verdict(status=Status.EXHAUSTED, candidates=("A",))))[:2]:
    ...     print(sentence)
    Each reading is bad with a chance of at most 5%, independently of its true value; bad readings may be anything.
    Which readings are bad, and what they say, does not depend on the true readings (oblivious).
    """
    problem = result.problem
    if problem.target == "wins":
        return (*_on_rounds(result), *_on_status(result), _on_delta(result))
    return (
        *_on_contamination(problem),
        "The n-th pull of an arm is the n-th draw of that arm, whenever it is made: draws of an arm are "
        "independent and follow one law.",
        _on_dependence(problem),
        _on_missing(problem),
        *_on_range(problem),
        "A time-out is a reading worse than every value; all arms have the same time limit.",
        *_on_sizes(result),
        *_on_status(result),
        _on_delta(result),
    )


def _on_rounds(result: Result) -> Iterable[str]:
    """Return what a comparison in rounds rests on (extensions E1)."""
    problem = result.problem
    if problem.contamination is None:
        yield "Bad readings do not reverse who wins more rounds; their share is not bounded."
    else:
        yield from _on_contamination(problem)
    yield (
        "A round measures all arms that are left once each, side by side: what it does to one of them (load, "
        "person, item, day) it does to all alike."
    )
    yield "Which of two arms wins more often does not change from round to round; how well they do may."
    if problem.contamination is not None and problem.contamination.clairvoyant:
        yield "What arms would truly read does not react to what was read before."
    if any(claim.leader != result.best and not claim.tolerant for claim in result.certificate.claims):
        yield "One of the arms wins at least half of the rounds against each other one."
    yield (
        "Whether a reading is missing has nothing to do with what it would have said, and the bad and the missing "
        "readings together are within the declared contamination."
        if problem.missing == "independent"
        else "A round with a missing reading counts against whichever arm is to be shown to win."
    )
    yield (
        "A reading that timed out loses to one that did not; all arms have the same time limit, and a round in "
        "which both time out is won by neither."
    )
    yield from _on_sizes(result)


def _on_contamination(problem: Problem) -> Iterable[str]:
    c = problem.contamination
    if c is None:
        yield (
            "Bad readings do not reverse the true order: all effective gaps are positive. Their share is not "
            "bounded, and intervals are those of the observed readings."
        )
        yield "Whoever makes bad readings does not see readings not yet taken (causal)."
        return
    if c.eps == 0:
        yield "No reading is bad."
        return
    if c.adversary is Adversary.MALICIOUS:
        yield f"At most {percent(c.eps)} of the readings are bad on average; bad readings may be anything."
        yield "Which readings are bad, and what they say, may depend on the true readings (malicious)."
    else:
        yield (
            f"Each reading is bad with a chance of at most {percent(c.eps)}, independently of its true value; bad "
            "readings may be anything."
        )
        yield (
            "Which readings are bad, and what they say, does not depend on the true readings (oblivious)."
            if c.adversary is Adversary.OBLIVIOUS
            else "Which readings are bad does not depend on the true readings; what they say may (prescient)."
        )
    if c.error:
        yield (
            "That bound comes from an audit and is wrong with probability at most "
            f"{percent(c.error, ROUND_CEILING)}, which adds to every error probability; readings to check were "
            "drawn at random after they were recorded."
        )
    if c.adversary is not Adversary.OBLIVIOUS:
        yield (
            "They may depend on readings not yet taken (clairvoyant)."
            if c.clairvoyant
            else "They do not depend on readings not yet taken (causal)."
        )


def _on_dependence(problem: Problem) -> str:
    if problem.dependent_arms:
        return "Arms may move together: nothing is assumed about how draws of different arms depend on each other."
    return "Draws of different arms are independent of each other."


def _on_missing(problem: Problem) -> str:
    if problem.missing == "independent":
        return (
            "Whether a reading is missing has nothing to do with what it would have said, and the bad and the "
            "missing readings together are within the declared contamination."
        )
    return "A missing reading counts at its worst: it may be missing because of what it would have said."


def _on_range(problem: Problem) -> Iterable[str]:
    if problem.between is None or problem.contamination is None:
        return
    where = f"True readings lie in {span(problem.between)}, so that one outside is bad"
    if problem.contamination.adversary is Adversary.MALICIOUS:
        yield f"{where}; such readings are within the declared contamination."
    else:
        yield (
            f"{where}; that it left the range has nothing to do with its true value, and such readings are within "
            "the declared contamination."
        )


def _on_sizes(result: Result) -> Iterable[str]:
    if result.design == "fixed":
        yield "The number of readings of each arm was fixed before the first of them."


def _on_status(result: Result) -> Iterable[str]:
    problem = result.problem
    if problem.handicap is not None:
        given = problem.handicap
        yield f"{name_of(given.arm)} is judged as if it were worse by {amount(given.tolerance)} than it is."
    if problem.regularity is not None:
        r = problem.regularity
        yield (
            f"Within {percent(r.reach)} of the median in quantile levels the distribution function of each "
            f"arm rises with slope at least 1/(B m2), B = {number(r.B)}, m2 = {number(r.m2)}."
        )
    if result.certificate.estimated:
        yield "For every arm the estimator errs by no more than its bias and its radius."
    if result.status is Status.INDISTINGUISHABLE:
        yield (
            "That more readings would not help assumes that future readings behave the same, bad ones included, "
            f"and has its own error probability of {percent(problem.delta)}."
        )
    if result.status in DECIDED and len(problem.arms) > 1 and problem.target != "wins":
        yield "The best arm is one that no other arm beats; arms that tie with it are listed as ties."


def _on_delta(result: Result) -> str:
    problem, asked = result.problem, result.control
    parts = []
    if asked is not None and asked.method != "fdr":  # there the mean share of errors is bounded
        parts.append("all arms said to beat the control")
    if asked is not None:
        parts.append("all arms said not to")
    if result.certificate.places:
        parts.append("all places and tiers")
    return (
        f"Each of these is wrong with probability at most {percent(problem.error)}, each on its own: "
        f"{', '.join([*parts, _STATEMENTS[problem.target]])}."
    )


_STATEMENTS = {
    "quantile": "the decision, the margins over the other arms, the certified tolerance, all intervals of "
    "quantiles together, all intervals of MADs together, and the quality curve of the best arm",
    "share": "the decision, the margins over the other arms, the certified tolerance, and all intervals of shares "
    "together",
    "wins": "the decision with the margins over the other arms, the certified tolerance, and all intervals of how "
    "far arms are apart together",
}


def notes(
    missing: Mapping[str, int],
    few: Mapping[str, int],
    needed: Mapping[str, int] | None,
    result: Result,
    units: Units | None = None,
) -> tuple[str, ...]:
    """Return what a reader of an analysis should know besides the answer.

    Parameters
    ----------
    missing
        Cells without a value, per arm.
    few
        Arms with too few readings to be ruled out, and how many they have.
    needed
        More readings per arm that would decide; None: no number would.
    units
        What the rows were reduced to.

    Examples
    --------
    >>> from truearm.claims.certificate import Verdict
    >>> from truearm.claims.certify import certify
    >>> result = certify(Problem(arms=("A", "B")), {}, Verdict(status=Status.EXHAUSTED, candidates=("A", "B")))
    >>> notes({"A": 0, "B": 2}, {}, {"A": 60, "B": 45}, result)[1]
    'About 105 more readings like these would decide (an estimate).'
    """
    told = []
    if units is not None:
        rows, name = sum(units.rows.values()), name_of(units.name)
        is_share, paired = result.problem.target == "share", result.problem.rounds
        half = f"A {name} succeeds if at least half of its readings do" if is_share else ""
        half = f"A round is one {name}, and a reading the median of an arm's rows in it" if paired else half
        told.append(f"{half or f'A reading is the median of one {name}'}; there were {count(rows)} rows.")
        if units.shared and not result.problem.dependent_arms and not paired:
            told.append(
                f"Several arms share values of {name} ({count(units.shared)} in all), which count as different "
                f"ones; if they are the same person or item, compare arms inside them (round={units.name!r}, "
                "--round)."
            )
    if total := sum(missing.values()):
        told.append(_cells(missing, total, worst=result.problem.missing == "worst"))
    for name, n in list(few.items())[:3]:
        told.append(
            f"{name_of(name)} has {count(n)} reading{'s' * (n != 1)}: too few to rule it out, whatever they say."
        )
    if result.best is None and result.status is not Status.DOUBTFUL:
        told.append(
            "Readings like these would not decide, however many there are (an estimate)."
            if needed is None
            else f"About {count(sum(needed.values()))} more readings like these would decide (an estimate)."
        )
    told.append(
        "Valid if the number of readings of every arm was chosen in advance (fixed design)."
        if result.design == "fixed"
        else "Valid however often the data were looked at (sequential design)."
    )
    return tuple(told)


def _cells(missing: Mapping[str, int], total: int, *, worst: bool) -> str:
    lost = [(name, n) for name, n in missing.items() if n]
    where = [f"{name_of(name)} {count(n)}" for name, n in lost[:_LISTED]]
    if (more := len(lost) - _LISTED) > 0:
        where.append(f"{count(more)} other arm{'s' * (more > 1)}")
    fate = "at their worst" if worst else "as bad readings, as if failing had nothing to do with the value"
    return (
        f"{count(total)} missing value{'s' * (total > 1)} count{'s' * (total == 1)} {fate} ({', '.join(where)})."
    )
