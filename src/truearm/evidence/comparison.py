"""Two arms: is one better than the other, and up to which contamination? Public functions."""

from dataclasses import dataclass
from typing import Literal

from numpy.typing import ArrayLike

from truearm.bounds.search import last_true
from truearm.errors import OutOfReach
from truearm.evidence.judge import Breakdown, Judge
from truearm.evidence.levels import Trust, p_value_of
from truearm.evidence.sample import as_readings
from truearm.evidence.search import Portfolio, Stake
from truearm.evidence.shifts import Shift, start_sample
from truearm.evidence.targets import Query
from truearm.problem import (
    Adversary,
    Contamination,
    Design,
    Problem,
    Tolerance,
    check_between,
    check_design,
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Whether one arm is better than another, and how sure that is; true in an `if` when it is."""

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
    sequential design however often it is repeated while readings arrive, in the fixed design once.

    Parameters
    ----------
    x, y
        Readings of the two arms.
    tolerance
        Ask only whether x is at most this much worse than y.
    dependent_arms
        Set when readings of the two arms move together; sequential design only.
    between
        The lowest and the highest plausible reading: those outside are bad ones that eps covers, by your promise
        that they left the range for reasons that have nothing to do with their true value (extensions E2).

    Examples
    --------
    >>> import numpy as np
    >>> x, y = np.arange(50.0, 150.0), np.arange(0.0, 100.0)
    >>> bool(is_better(x, y)), bool(is_better(y, x)), bool(is_better(x, y, contamination=0.4))
    (True, False, False)
    >>> is_better(x, y, goal="min", tolerance=90).better
    True
    >>> wrong = np.append(y, [999.0] * 12)
    >>> [is_better(x, wrong, contamination=0.2, between=b).better for b in (None, (0, 200))]
    [False, True]
    """
    problem = Problem(
        arms=("x", "y"),
        delta=delta,
        contamination=Contamination.of(contamination),
        tolerance=Tolerance.of(tolerance),
        quantile=quantile,
        goal=goal,
        dependent_arms=dependent_arms,
        between=check_between(between),
    )
    judge = _judge(problem, x, y, design)
    log_evidence = 0.0 if judge.implausible_arms else _log_evidence(judge, judge.trust)
    p_value = p_value_of(log_evidence, judge.rule)
    return Comparison(
        better=p_value <= delta,
        log_evidence=log_evidence,
        p_value=p_value,
        breakdown=Breakdown(None, None, None) if judge.implausible_arms else _breakdown(judge),
        delta=delta,
        contamination=problem.contamination,
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
    between: tuple[float, float] | None = None,
) -> Breakdown:
    """Return up to which contamination x is certified to be better than y, for each adversary.

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
    >>> breakdown([1.0], [0.0])
    Breakdown(oblivious=None, prescient=None, malicious=None)
    """
    problem = Problem(
        arms=("x", "y"),
        delta=delta,
        contamination=Contamination(0.0, Adversary.PRESCIENT, causal),
        quantile=quantile,
        goal=goal,
        dependent_arms=dependent_arms,
        between=check_between(between),
    )
    return _breakdown(_judge(problem, x, y, design))


def _judge(problem: Problem, x: ArrayLike, y: ArrayLike, design: Design) -> Judge:
    if check_design(design) == "fixed" and problem.dependent_arms:
        instead = "use design='sequential' for dependent_arms=True"
        msg = f"design='fixed' needs independent arms; {instead}"
        raise OutOfReach(msg)
    samples = [
        start_sample(problem, name).extend(problem.sign * as_readings(readings, name))
        for readings, name in ((x, "x"), (y, "y"))
    ]
    return Judge.of(problem, samples, design=design)


def _log_evidence(judge: Judge, trust: Trust, enough: float | None = None) -> float:
    """Return the evidence of x over y up to the tolerance; closed, as equal arms are no better than each other."""
    better, worse = judge.samples
    query = Query(judge.design, Shift.of(judge.problem.tolerance), enough=enough)
    return judge.target.evidence(worse, Portfolio(Stake(better, closed=True)), trust, query).log_value


def _breakdown(judge: Judge) -> Breakdown:
    points = []
    for adversary in Adversary:
        bar = judge.under(adversary, both=False).log_threshold

        def holds(eps: float, adversary: Adversary = adversary, bar: float = bar) -> bool:
            return _log_evidence(judge, Trust(eps, adversary), bar) >= bar

        limit = judge.target.eps_limit(adversary)
        points.append(last_true(holds, 0.0, limit, accuracy=1e-16, relative=1e-13) if holds(0.0) else None)
    return Breakdown(*points)
