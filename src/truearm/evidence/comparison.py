"""Several comparisons at once: two arms in both directions, all arms with a control, all pairs.

A variant is an arm other than the control. `step_down` and `false_discovery` claim "better than the control" by
strict evidence of pairs (extensions D1, D2). `order` claims one arm over another by strict pair evidence that
allows for all pairs in both directions: with probability 1 - delta no claim is ever false, nor is anything that
follows from claims (extensions D3).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truearm.errors import OutOfReach
from truearm.evidence.judge import Breakdown, Judge
from truearm.evidence.levels import p_value_of, rule_for
from truearm.evidence.sample import as_readings, shift_sample, start_sample
from truearm.problem import Adversary, Contamination, Design, Problem, Tolerance, check_design

Method = Literal["holm", "fdr"]
"""Which error is bounded: the chance of any false claim (step-down), or the expected share of false claims."""
Relation = NDArray[np.bool_]
"""Whether the row's arm is better than the column's."""

MAX_SEARCHES = 100_000  # pairs in half a minute; the rest count as not claimed


@dataclass(frozen=True, slots=True)
class Comparison:
    """Whether one arm is better than another, and how sure that is; true if it is better."""

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
    between: tuple[float, float] | None = None,
) -> Comparison:
    """Return whether the true quantile of x is better than that of y, under contamination.

    A two-sample test without assumptions on the laws. It errs with probability at most delta: in the
    sequential design no matter how often it is repeated while readings arrive, in the fixed design once.

    Parameters
    ----------
    x, y
        Readings of the two arms.
    tolerance
        Ask only whether x is at most this much worse than y.
    dependent_arms
        Set when readings of the two arms move together; sequential design only.
    between
        The lowest and the highest plausible reading. Readings outside count as bad and are covered by eps; this
        assumes that they left the range for reasons unrelated to their true value (extensions E2).

    Examples
    --------
    >>> import numpy as np
    >>> x, y = np.arange(50.0, 150.0), np.arange(0.0, 100.0)
    >>> bool(is_better(x, y)), bool(is_better(y, x)), bool(is_better(x, y, contamination=0.4))
    (True, False, False)
    """
    options = {"delta": delta, "quantile": quantile, "goal": goal, "dependent_arms": dependent_arms}
    judge = _judge(x, y, design, contamination=contamination, tolerance=tolerance, between=between, **options)
    log_evidence, points = 0.0, Breakdown(None, None, None)
    if not judge.implausible_arms:  # closed, as equal arms are no better than each other
        log_evidence = judge.against(1, closed=True).log_value
        points = judge.pair_breakdown(0, 1, accuracy=1e-13)
    p_value = p_value_of(log_evidence, judge.rule)
    return Comparison(p_value <= delta, log_evidence, p_value, points, delta, judge.problem.contamination, design)


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
    between: tuple[float, float] | None = None,
) -> Breakdown:
    """Return the largest contamination at which x is certified to be better than y, for each adversary.

    With probability at least 1 - delta none of the numbers is too large, whatever the true contamination.

    Parameters
    ----------
    causal
        True for prescient and malicious adversaries that do not see the future.
    dependent_arms
        Set when readings of the two arms move together; sequential design only.
    between
        As in `is_better`.

    Examples
    --------
    >>> import numpy as np
    >>> points = breakdown(np.arange(50.0, 150.0), np.arange(0.0, 100.0))
    >>> [round(p, 3) for p in points]
    [0.284, 0.238, 0.119]
    """
    options = {"delta": delta, "quantile": quantile, "goal": goal, "dependent_arms": dependent_arms}
    allowed = Contamination(0.0, Adversary.PRESCIENT, causal)
    judge = _judge(x, y, design, contamination=allowed, between=between, **options)
    return judge.pair_breakdown(0, 1, accuracy=1e-13)


def _judge(x: ArrayLike, y: ArrayLike, design: Design, **options: Any) -> Judge:  # noqa: ANN401 - of the problem
    """Return the judge of x and of y made worse by the tolerance."""
    problem = Problem(arms=("x", "y"), **options)
    if check_design(design) == "fixed" and problem.dependent_arms:
        raise OutOfReach("design='fixed' needs independent arms; use design='sequential' for dependent_arms=True")
    one, other = (
        start_sample(problem, name).extend(problem.sign * as_readings(readings, name))
        for readings, name in ((x, "x"), (y, "y"))
    )
    return Judge.of(problem, [one, shift_sample(other, problem.tolerance, problem.sign)], design=design)


def step_down(log_evidence: Mapping[int, float], log_bar: Callable[[int], float]) -> tuple[int, ...]:
    """Return the variants that are claimed one after the other, the most evidence first (extensions D1).

    `log_bar` maps the number of variants not yet claimed to the evidence that the next claim needs.
    """
    claimed: list[int] = []
    for variant in sorted(log_evidence, key=lambda i: -log_evidence[i]):
        if log_evidence[variant] < log_bar(len(log_evidence) - len(claimed)):
            break
        claimed.append(variant)
    return tuple(claimed)


def false_discovery(log_evidence: Mapping[int, float], log_bar: float) -> tuple[int, ...]:
    """Return the variants claimed together; r claims need 1/r of the bar each (extensions D2)."""
    order = sorted(log_evidence, key=lambda i: -log_evidence[i])
    enough = [r for r, i in enumerate(order, 1) if log_evidence[i] >= log_bar - np.log(r)]
    return tuple(order[: max(enough, default=0)])


def check_method(problem: Problem, method: Method, design: Design = "sequential") -> None:
    """Raise if the method is "fdr" and the mean of the evidence is not bounded."""
    if method == "fdr" and (rule := rule_for(problem, design=design)) != "causal":
        # extensions D2: the mean of the product is then not at most 1
        why = {
            "fixed": "design='fixed', only for design='sequential'",
            "dependent": "dependent arms",
            "paired": "rounds",
        }
        where = why.get(rule, "adversaries that see readings not yet taken")
        msg = f"the false discovery rate is not bounded for {where}; remove fdr to bound any false claim"
        raise OutOfReach(msg)


def not_better(judge: Judge, control: int, variants: list[int]) -> dict[int, float]:
    """Return the log-evidence that variants are not better than the control by more than the tolerance.

    It is a statement with a separate error probability (extensions D1).
    """
    bar, reference = judge.log_bar(), judge.after(leader=control)
    found = {i: reference.within(i).log_value for i in variants}
    return {i: value for i, value in found.items() if value >= bar}


class Order(NamedTuple):
    """A certified partial order."""

    better: Relation
    """Claims, and what follows from them."""
    listed: tuple[int, ...]
    """All arms, better tiers first, best-looking first within a tier."""
    skipped: int
    """Pairs that were not searched because there were too many; they count as not claimed."""

    @property
    def places(self) -> tuple[tuple[int, int], ...]:
        """The best and the worst possible place of each arm, for all arms at once (extensions D3)."""
        ahead, behind = self.better.sum(axis=0).tolist(), self.better.sum(axis=1).tolist()
        return tuple((1 + a, len(self.listed) - b) for a, b in zip(ahead, behind, strict=True))

    @property
    def tiers(self) -> tuple[tuple[int, ...], ...]:
        """The arms in groups; each arm is better than every arm of a later group."""
        arms = np.array(self.listed, dtype=np.intp)
        ahead = self.better[np.ix_(arms, arms)].cumsum(axis=0)
        ends = [r for r in range(1, arms.size) if (ahead[r - 1, r:] == r).all()]
        starts = [0, *ends]
        return tuple(self.listed[a:b] for a, b in zip(starts, [*ends, arms.size], strict=True))

    @property
    def nearest(self) -> tuple[tuple[int, int], ...]:
        """The strongest claims about each arm: against the first arm listed below it, and by the last above."""
        place = {arm: r for r, arm in enumerate(self.listed)}
        found = set()
        for arm in self.listed:
            worse, better = np.flatnonzero(self.better[arm]), np.flatnonzero(self.better[:, arm])
            if worse.size:
                found.add((arm, min(worse.tolist(), key=place.__getitem__)))
            if better.size:
                found.add((max(better.tolist(), key=place.__getitem__), arm))
        return tuple(sorted(found, key=lambda pair: (place[pair[0]], place[pair[1]])))


def order(judge: Judge, ranking: tuple[int, ...]) -> Order:
    """Return what is certain about the order of all arms; `ranking` lists them, the best-looking first."""
    k, bar = len(judge.samples), judge.log_strict
    better, searches, skipped, may_claim = np.zeros((k, k), dtype=bool), 0, 0, judge.screen(bar)
    for place in range(k - 2, -1, -1) if not judge.is_hopeless else ():
        arm = ranking[place]
        for other in ranking[place + 1 :]:  # an arm that looks better is never shown to be worse
            if better[arm, other] or not may_claim(arm, other):  # follows from claims before, or is ruled out
                continue
            if searches == MAX_SEARCHES:
                skipped += 1
                continue
            searches += 1
            if judge.better(arm, other, enough=bar).log_value >= bar:
                better[arm] |= better[other]  # complete by now: transitive
                better[arm, other] = True
    ahead = better.sum(axis=0)
    seen = {arm: r for r, arm in enumerate(ranking)}
    by_claims = sorted(range(k), key=lambda arm: (int(ahead[arm]), seen[arm]))
    tiers = Order(better, tuple(by_claims), 0).tiers
    return Order(better, tuple(arm for tier in tiers for arm in sorted(tier, key=seen.__getitem__)), skipped)
