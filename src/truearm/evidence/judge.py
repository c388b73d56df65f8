"""Evidence for and against an order of arms: who bets against whom, when it is enough, and how much it withstands.

The minimum over cuts itself is computed in `cuts`, whose names are also found here. Inside, bigger is better;
`is_better` and `breakdown` take a goal and are the doors for users.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import lambertw

from truearm.bounds import sequential_rank
from truearm.errors import InvalidArgument, OutOfReach
from truearm.evidence.cuts import (
    Evidence,
    Levels,
    Stake,
    fixed_pair,
    fixed_term,
    mixture_term,
    pair,
    pooled,
    pooled_at,
    portfolio,
)
from truearm.evidence.sample import Design, Sample, as_readings, check_design
from truearm.problem import Adversary, Contamination, Tolerance, check_count, check_delta, check_quantile

__all__ = [
    "Breakdown",
    "Comparison",
    "Entry",
    "Evidence",
    "Levels",
    "Rule",
    "Stake",
    "against",
    "best_looking",
    "breakdown",
    "breakdown_estimate",
    "breakdown_point",
    "certified_tolerance",
    "fixed_against",
    "fixed_pair",
    "fixed_term",
    "indistinguishable",
    "is_better",
    "mixture_term",
    "p_value_of",
    "pair",
    "pair_rule",
    "pooled",
    "pooled_at",
    "portfolio",
    "positive",
    "shifted",
    "stakes_against",
    "threshold",
    "within_tolerance",
]

Floats = NDArray[np.float64]
Rule = Literal["pooled", "causal", "clairvoyant", "dependent"]


def threshold(k: int, delta: float, rule: Rule) -> float:
    """Return how much evidence rejects an arm, so that the best of k arms is ever lost with chance <= delta.

    Parameters
    ----------
    rule
        "pooled": one e-process per arm, causal adversary. "causal", "clairvoyant", "dependent": pairs of
        arms, under an adversary blind to the future, one that sees it, and arms that move together besides.

    Examples
    --------
    >>> [round(threshold(10, 0.05, rule), 2) for rule in ("pooled", "causal", "clairvoyant", "dependent")]
    [20.0, 180.0, 1033.9, 14400.0]
    """
    check_delta(delta)
    rivals = max(1, check_count("k", k) - 1)
    match rule:
        case "pooled":
            return 1 / delta  # evidence T5
        case "causal":
            return rivals / delta  # evidence T3
        case "clairvoyant":
            return rivals * _clairvoyant_constant(delta)  # evidence T4b
        case "dependent":
            return 4 * rivals / delta**2  # evidence T4c
    msg = f"rule must be 'pooled', 'causal', 'clairvoyant' or 'dependent', but got {rule!r}"
    raise InvalidArgument(msg)


def _clairvoyant_constant(delta: float) -> float:
    """Return c0 with (1 + ln c0)/c0 = delta: the product of two Pareto(1) variables exceeds it so often."""
    return math.exp(-float(lambertw(-delta / math.e, -1).real) - 1)  # 1+ln c0 = -W_{-1}(-delta/e)


def best_looking(samples: Sequence[Sample], among: Sequence[int], level: float) -> int | None:
    """Return the arm with the best empirical quantile, ties by fewest readings below it, then by order.

    Examples
    --------
    >>> best_looking([Sample.of([1.0, 2.0]), Sample.of([3.0])], [0, 1], 0.5)
    1
    """
    quantiles = [(samples[i].quantile(level), i) for i in among if samples[i].size]
    if not quantiles:
        return None
    top = max(q for q, _ in quantiles)
    tied = [i for q, i in quantiles if q == top]
    if len(tied) == 1:
        return tied[0]
    return min(tied, key=lambda i: _mid_rank(samples[i], top))  # evidence section 11, ties


def _mid_rank(sample: Sample, x: float) -> float:
    both = int(sample.below(x)) + int(sample.below(x, closed=True)) - 2 * sample.pending
    return both / sample.size


class Entry(NamedTuple):
    """An arm that has been leader, and its readings from before it became so (evidence T5).

    Examples
    --------
    >>> Entry(0, Sample.of([1.0, 2.0])).before.n
    2
    """

    arm: int
    before: Sample


def stakes_against(
    judged: int, samples: Sequence[Sample], rule: Rule, *, leader: int, entries: Sequence[Entry]
) -> tuple[list[Stake], float]:
    """Return who bets against an arm, and the log of the cash: past leaders, or in pairs the leader alone.

    Of arms with the same quantile the first listed is the best: readings of a rival listed after the judged
    arm count as below the cut when they are at it (T3, lexicographic ties).

    Examples
    --------
    >>> arms = [Sample.of([float(i)]) for i in range(3)]
    >>> stakes, cash = stakes_against(1, arms, "causal", leader=2, entries=())
    >>> len(stakes), stakes[0].closed, cash
    (1, True, -inf)
    """
    if rule != "pooled":
        return [Stake(samples[leader], closed=leader > judged)], -math.inf
    entered = [Stake(samples[e.arm], before=e.before, closed=e.arm > judged) for e in entries if e.arm != judged]
    return portfolio(len(samples), entered)


def against(
    judged: int,
    samples: Sequence[Sample],
    rule: Rule,
    *,
    leader: int,
    entries: Sequence[Entry],
    levels: Levels,
    guess: int | None = None,
    enough: float | None = None,
) -> Evidence:
    """Return the evidence that an arm is not the best, by whichever rule applies; parameters as in `pair`.

    Examples
    --------
    >>> arms = [Sample.of(np.arange(20.0, 60.0)), Sample.of(np.arange(0.0, 40.0))]
    >>> found = against(1, arms, "causal", leader=0, entries=(), levels=Levels(0.5, 0.5))
    >>> round(found.log_value, 3)
    6.591
    """
    stakes, cash = stakes_against(judged, samples, rule, leader=leader, entries=entries)
    return pooled(samples[judged], stakes, cash, levels, guess=guess, enough=enough)


def within_tolerance(
    judged: int,
    samples: Sequence[Sample],
    rule: Rule,
    *,
    leader: int,
    entries: Sequence[Entry],
    levels: Levels,
    tolerance: Tolerance,
    sign: float,
) -> Evidence:
    """Return the evidence that an arm is not better than the leader by more than the tolerance.

    Of a portfolio only the leader's own stakes count (evidence T5, alpha > 0).

    Examples
    --------
    >>> arms = [Sample.of(np.arange(0.0, 40.0)), Sample.of(np.arange(20.0, 60.0))]
    >>> context = {"leader": 0, "entries": (), "levels": Levels(0.5, 0.5), "sign": 1.0}
    >>> found = [within_tolerance(1, arms, "causal", tolerance=Tolerance(a), **context) for a in (0, 40)]
    >>> [round(evidence.log_value) for evidence in found]
    [-2, 7]
    """

    def valued(sample: Sample) -> Sample:
        return positive(sample, sign) if tolerance.relative else sample

    head = valued(samples[leader])
    if rule == "pooled":
        entered = [Stake(samples[e.arm], before=e.before) for e in entries if e.arm != judged]
        shares = portfolio(len(samples), entered)[0]
        stakes = [s._replace(sample=head, before=valued(s.before)) for s in shares if s.sample is samples[leader]]
    else:
        stakes = [Stake(head)]
    return pooled(shifted(samples[judged], tolerance, sign), stakes, -math.inf, levels)


def fixed_against(
    judged: int,
    samples: Sequence[Sample],
    *,
    leader: int,
    levels: Levels,
    tolerance: Tolerance | None = None,
    sign: float = 1.0,
    enough: float | None = None,
) -> Evidence:
    """Return -log of the p-value that an arm is not the best, or not by more than a tolerance, for fixed sizes.

    Compare with log((k - 1)/delta), the "causal" threshold. Ties are broken as in `stakes_against`.

    Examples
    --------
    >>> arms = [Sample.of(np.arange(20.0, 60.0)), Sample.of(np.arange(0.0, 40.0))]
    >>> round(fixed_against(1, arms, leader=0, levels=Levels(0.5, 0.5)).log_value, 3)
    10.924
    """
    if tolerance is None:
        return fixed_pair(samples[leader], samples[judged], levels, closed=leader > judged, enough=enough)
    head = positive(samples[leader], sign) if tolerance.relative else samples[leader]
    return fixed_pair(head, shifted(samples[judged], tolerance, sign), levels, enough=enough)


def indistinguishable(
    samples: Sequence[Sample],
    levels: Levels,
    delta: float,
    *,
    alive: Sequence[int],
    tolerance: Tolerance,
    sign: float,
) -> bool:
    """Tell whether endless pulls of this kind could not certify any arm that is alive (evidence T9).

    Each arm in `alive` must be overlapped by another: an upper confidence bound of what its readings could at
    best guarantee lies below a lower bound of what the other's could at worst reach. Saying so although an
    arm could be certified happens with probability at most delta, if the readings are stationary.

    Examples
    --------
    >>> twins = [Sample.of(np.arange(4000.0)), Sample.of(np.arange(4000.0))]
    >>> promise = {"alive": (0, 1), "tolerance": Tolerance(), "sign": 1.0}
    >>> indistinguishable(twins, Levels(0.45, 0.45), 0.05, **promise)
    True
    >>> indistinguishable(twins, Levels(0.5, 0.5), 0.05, **promise)
    False
    """
    if min(levels) <= 0:
        return True  # evidence section 11: no level, no evidence, ever
    counts = np.array([s.n for s in samples])
    top = counts + 1 - np.asarray(sequential_rank(counts, 1 - levels.low, delta / counts.size))
    bottom = np.asarray(sequential_rank(counts, 1 - levels.high, delta / counts.size))
    # a reading without a value is in neither set of a cut: high for the upper bound, low for the lower one
    upper = [s.at(int(r)) for s, r in zip(samples, top, strict=True)]
    moved = [shifted(s, tolerance, sign) for s in samples]
    lower = [s.at(int(r) - s.missing - s.pending) for s, r in zip(moved, bottom, strict=True)]
    return all(any(upper[i] < low for j, low in enumerate(lower) if j != i) for i in alive)


class Breakdown(NamedTuple):
    """The largest contamination under which a decision holds, per adversary; None where none is certified.

    Examples
    --------
    >>> Breakdown(0.08, 0.06, 0.03).malicious
    0.03
    """

    oblivious: float | None
    prescient: float | None
    malicious: float | None


def breakdown_point(
    evidences: Sequence[Callable[[Levels], float]],
    log_threshold: float,
    *,
    quantile: float,
    adversary: Adversary,
    accuracy: float = 1e-13,
) -> float | None:
    """Return eps*: up to it, every one of these evidences reaches the threshold (evidence T6).

    It is valid without knowing the true eps, and for all eps at once: only the true one can be in error.
    None when the threshold is not reached even without contamination.

    Examples
    --------
    >>> a, b = Sample.of(np.arange(50.0, 150.0)), Sample.of(np.arange(0.0, 100.0))
    >>> point = breakdown_point(
    ...     [lambda levels: pair(a, b, levels).log_value], 3.0, quantile=0.5, adversary=Adversary.OBLIVIOUS
    ... )
    >>> round(point, 4)
    0.2946
    """
    limit = min(quantile, 1 - quantile) if adversary is Adversary.MALICIOUS else 1.0  # levels vanish there
    certified = limit

    def reached(evidence: Callable[[Levels], float], eps: float) -> bool:
        return evidence(Levels.at(quantile, eps, adversary)) >= log_threshold

    for evidence in evidences:
        if certified < limit and reached(evidence, certified):
            continue
        if not reached(evidence, 0.0):
            return None
        certified = _last_true(lambda eps, e=evidence: reached(e, eps), certified, accuracy)  # type: ignore[misc]
    return certified


def _last_true(holds: Callable[[float], bool], high: float, accuracy: float) -> float:
    """Return, from the safe side, where a monotone condition that holds at 0 ends."""
    low = 0.0
    while high - low > accuracy * max(high, 1e-3):
        middle = (low + high) / 2
        if holds(middle):
            low = middle
        else:
            high = middle
    return low


def breakdown_estimate(better: Sample, worse: Sample, quantile: float, adversary: Adversary) -> float:
    """Return where the breakdown point would end with endless readings like these: a plug-in estimate.

    At a cut, contamination e can hide the order once 1-e <= min(F(L)/q, G(U)/(1-q)) (malicious:
    e >= max(q-F(L), 1-q-G(U))); F(L) rises and G(U) falls with the cut, so the best cut is where they cross.

    Examples
    --------
    >>> a, b = Sample.of(np.arange(50.0, 150.0)), Sample.of(np.arange(0.0, 100.0))
    >>> round(breakdown_estimate(a, b, 0.5, Adversary.OBLIVIOUS), 3)
    0.5
    >>> round(breakdown_estimate(a, b, 0.5, Adversary.MALICIOUS), 3)
    0.25
    """
    size = worse.values.size
    if not size or not better.values.size:
        return 0.0

    def room(rank: int) -> tuple[float, float]:
        at = worse.values[rank] if rank < size else np.inf
        lower = better.values.size if rank == size else int(np.searchsorted(better.values, at))
        below, above = lower / better.n, (size - rank) / worse.n
        if adversary is Adversary.MALICIOUS:
            return quantile - below, 1 - quantile - above
        return 1 - below / quantile, 1 - above / (1 - quantile)

    low, high = 0, size  # the first falls and the second rises with the rank
    while low < high:
        middle = (low + high) // 2
        own, other = room(middle)
        low, high = (low, middle) if own <= other else (middle + 1, high)
    return max(0.0, min(max(room(rank)) for rank in (max(low - 1, 0), low)))


def shifted(rival: Sample, tolerance: Tolerance, sign: float = 1.0) -> Sample:
    """Return a rival made worse by the tolerance: evidence against it then means "within the tolerance".

    A relative tolerance compares positive readings by ratio; sign is -1 where readings were negated because
    small ones are good. For it, readings that are not positive count as contaminated (evidence section 11).

    Examples
    --------
    >>> shifted(Sample.of([1.0, 2.0]), Tolerance(0.5)).values
    array([0.5, 1.5])
    >>> shifted(Sample.of([-1.0, 1.0, 2.0]), Tolerance.of("100%")).values
    array([0.5, 1. ])
    """
    with np.errstate(over="ignore"):
        if not tolerance.relative:
            return rival.mapped(lambda values: values - tolerance.amount) if tolerance else rival
        ratio = 1 + tolerance.amount
        return positive(rival, sign).mapped(lambda values: values / ratio if sign > 0 else values * ratio)


def positive(sample: Sample, sign: float = 1.0) -> Sample:
    """Return the sample with readings that are not positive turned into contaminated ones.

    Examples
    --------
    >>> positive(Sample.of([-1.0, 0.0, 2.0]))
    Sample(body=array([2.]), missing=2, pending=0)
    """
    kept = sample.values[sample.values * sign > 0]
    return Sample(kept, sample.missing + sample.values.size - kept.size, sample.pending)


def certified_tolerance(
    better: Sample,
    worse: Sample,
    log_threshold: float,
    *,
    levels: Levels,
    relative: bool = False,
    sign: float = 1.0,
    evidence: Callable[..., Evidence] = pair,
) -> float:
    """Return alpha*, the least tolerance within which one arm is certified not to be worse (evidence T7).

    A cut that fails at one tolerance tells at which it no longer does: a lower bound of the answer, which is
    raised until no cut fails.

    Examples
    --------
    >>> a, b = Sample.of(np.arange(0.0, 40.0)), Sample.of(np.arange(20.0, 60.0))
    >>> certified_tolerance(b, a, 3.0, levels=Levels(0.5, 0.5))
    0.0
    >>> certified_tolerance(a, b, 3.0, levels=Levels(0.5, 0.5))
    35.0
    """
    if relative:
        better, worse = positive(better, sign), positive(worse, sign)
    amount = step = 0.0
    while amount < math.inf:
        rival = shifted(worse, Tolerance(amount, relative=relative), sign)
        found = evidence(better, rival, levels, enough=log_threshold)
        if found.log_value >= log_threshold:
            break
        own = _counted(worse.values.size - found.rank + worse.pending, worse.n)

        def holds(below: int, own: Sample = own) -> bool:
            head = _counted(below + better.pending, better.n)
            return evidence(head, own, levels).log_value >= log_threshold

        needed = _mended(better.values, worse.values[found.rank :], holds, relative=relative, sign=sign)
        if needed > amount:
            amount, step = needed, math.ulp(needed + relative)
        else:  # the tolerance is right, and the shift by it was rounded to the wrong side
            amount, step = amount + step, 2 * step
    return amount


def _counted(count: int, n: int) -> Sample:
    """Return a sample without values, of which `count` of n readings favor the null at the only cut it has."""
    return Sample(np.empty(0), n - count, count)


def _mended(better: Floats, above: Floats, holds: Callable[[int], bool], *, relative: bool, sign: float) -> float:
    """Return the least tolerance at which a failing cut holds, infinity if there is none.

    The cut is just below the first of the values `above` it; it holds if few enough of `better` are below it.
    """
    if not above.size or not holds(0):
        return math.inf
    low, high = 0, better.size
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    worse, reached = float(above[0]), float(better[low])  # the shift must bring one down to the other
    if not relative:
        return worse - reached
    return (worse / reached if sign > 0 else reached / worse) - 1


@dataclass(frozen=True, slots=True)
class Comparison:
    """Whether one arm is better than another, and how sure that is; true in an `if` when it is.

    Examples
    --------
    >>> comparison = is_better(np.arange(50.0, 150.0), np.arange(0.0, 100.0))
    >>> bool(comparison), round(comparison.p_value, 9)
    (True, 1.18e-07)
    """

    better: bool
    log_evidence: float
    p_value: float
    """Valid at any time in the sequential design, for the fixed sizes in the fixed one."""
    breakdown: Breakdown
    delta: float
    contamination: Contamination | None
    design: Design

    def __bool__(self) -> bool:
        return self.better


def is_better(
    x: ArrayLike,
    y: ArrayLike,
    *,
    contamination: float | Contamination | None = 0.05,
    delta: float = 0.05,
    quantile: float = 0.5,
    goal: Literal["max", "min"] = "max",
    tolerance: float | str | Tolerance = 0.0,
    design: Design = "sequential",
    dependent_arms: bool = False,
) -> Comparison:
    """Tell whether the true quantile of x is better than that of y, under contamination.

    A two-sample test without assumptions on the laws. It errs with probability at most delta: in the
    sequential design however often it is repeated while readings arrive, in the fixed design once.

    Parameters
    ----------
    x, y
        Readings of the two arms.
    tolerance
        Ask only whether x is at most this much worse than y.
    dependent_arms
        Set when readings of the two arms move together; sequential design only.

    Examples
    --------
    >>> x, y = np.arange(50.0, 150.0), np.arange(0.0, 100.0)
    >>> bool(is_better(x, y)), bool(is_better(y, x)), bool(is_better(x, y, contamination=0.4))
    (True, False, False)
    >>> is_better(x, y, goal="min", tolerance=90).better
    True
    """
    declared, allowed = Contamination.of(contamination), Tolerance.of(tolerance)
    sign, level = _orientation(quantile, goal)
    check_delta(delta)
    better, worse = _oriented(x, "x", sign), _oriented(y, "y", sign)
    if allowed:
        better = positive(better, sign) if allowed.relative else better
        worse = shifted(worse, allowed, sign)
    rule = pair_rule(declared, dependent_arms=dependent_arms)
    measure = _measure(design, rule)
    log_evidence = measure(better, worse, Levels.of(level, declared)).log_value
    p_value = p_value_of(log_evidence, "causal" if design == "fixed" else rule)
    points = _breakdown(
        better,
        worse,
        level,
        delta=delta,
        design=design,
        causal=declared.causal if declared else None,
        dependent_arms=dependent_arms,
    )
    return Comparison(
        better=p_value <= delta,
        log_evidence=log_evidence,
        p_value=p_value,
        breakdown=points,
        delta=delta,
        contamination=declared,
        design=design,
    )


def breakdown(
    x: ArrayLike,
    y: ArrayLike,
    *,
    delta: float = 0.05,
    quantile: float = 0.5,
    goal: Literal["max", "min"] = "max",
    causal: bool | None = None,
    design: Design = "sequential",
    dependent_arms: bool = False,
) -> Breakdown:
    """Return up to which contamination x is certified to be better than y, for each adversary.

    With probability at least 1 - delta none of the numbers is too large, whatever the true contamination.

    Parameters
    ----------
    causal
        True for prescient and malicious adversaries that do not see the future.
    dependent_arms
        Set when readings of the two arms move together; sequential design only.

    Examples
    --------
    >>> points = breakdown(np.arange(50.0, 150.0), np.arange(0.0, 100.0))
    >>> [round(p, 3) for p in points]
    [0.284, 0.238, 0.119]
    >>> breakdown([1.0], [0.0])
    Breakdown(oblivious=None, prescient=None, malicious=None)
    """
    sign, level = _orientation(quantile, goal)
    check_delta(delta)
    better, worse = _oriented(x, "x", sign), _oriented(y, "y", sign)
    return _breakdown(
        better, worse, level, delta=delta, design=design, causal=causal, dependent_arms=dependent_arms
    )


def pair_rule(contamination: Contamination | None, *, dependent_arms: bool = False) -> Rule:
    """Return which threshold pairs of arms need under these promises (evidence section 11).

    Examples
    --------
    >>> pair_rule(Contamination(0.1, "prescient"))
    'clairvoyant'
    """
    if dependent_arms:
        return "dependent"
    return "clairvoyant" if contamination is not None and contamination.clairvoyant else "causal"


def _orientation(quantile: float, goal: str) -> tuple[float, float]:
    check_quantile(quantile)
    if goal not in ("max", "min"):
        msg = f"goal must be 'max' or 'min', but got {goal!r}"
        raise InvalidArgument(msg)
    return (1.0, quantile) if goal == "max" else (-1.0, 1 - quantile)


def _oriented(readings: ArrayLike, name: str, sign: float) -> Sample:
    return Sample.of(sign * as_readings(readings, name), name)


def _measure(design: Design, rule: Rule) -> Callable[[Sample, Sample, Levels], Evidence]:
    # closed cuts: two equal arms are no better than each other
    if check_design(design) == "sequential":
        return lambda better, worse, levels: _uncontradicted(pair, better, worse, levels)
    if rule == "dependent":
        msg = "design='fixed' needs independent arms; use design='sequential' for dependent_arms=True"
        raise OutOfReach(msg)
    return lambda better, worse, levels: _uncontradicted(fixed_pair, better, worse, levels)


def _uncontradicted(measure: Callable[..., Evidence], better: Sample, worse: Sample, levels: Levels) -> Evidence:
    """Return the evidence less that for the opposite order.

    More missing readings than eps allows contradict the promise, and then support both orders: without this
    an arm that always fails would be called better. Less evidence than measured is always valid.
    """
    least = measure(better, worse, levels, closed=True)
    if least.log_value <= 0 or not (better.missing or worse.missing):
        return least
    against = measure(worse, better, levels, closed=True).log_value
    return Evidence(least.log_value - max(0.0, against), least.rank)


def p_value_of(log_evidence: float, rule: Rule) -> float:
    """Return the p-value that log-evidence between two arms amounts to, valid at any time.

    Of k arms, subtract log(k - 1) first: "this arm is the best" then has k - 1 accusers.

    Examples
    --------
    >>> [round(p_value_of(5.0, rule), 4) for rule in ("causal", "clairvoyant", "dependent")]
    [0.0067, 0.0404, 0.1642]
    """
    value = math.exp(-max(0.0, log_evidence))
    if rule == "clairvoyant":
        value *= 1 + max(0.0, log_evidence)  # evidence T4b, k = 2
    elif rule == "dependent":
        value = 2 * math.sqrt(value)  # evidence T4c, k = 2
    return min(1.0, value)


def _breakdown(
    better: Sample,
    worse: Sample,
    level: float,
    *,
    delta: float,
    design: Design,
    causal: bool | None,
    dependent_arms: bool,
) -> Breakdown:
    points = []
    for adversary in Adversary:
        promise = Contamination(0.0, adversary, None if adversary is Adversary.OBLIVIOUS else causal)
        rule = pair_rule(promise, dependent_arms=dependent_arms)
        measure = _measure(design, rule)
        rule = "causal" if design == "fixed" else rule
        points.append(
            breakdown_point(
                [lambda levels, m=measure: m(better, worse, levels).log_value],  # type: ignore[misc]
                math.log(threshold(2, delta, rule)),
                quantile=level,
                adversary=adversary,
            )
        )
    return Breakdown(*points)
