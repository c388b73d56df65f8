"""A suite: every run prints many numbers, and every number is compared (extensions D4)."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from truearm.claims import alarms, show
from truearm.claims.certify import NOTHING, check_control
from truearm.claims.plain import to_plain
from truearm.errors import OutOfReach
from truearm.evidence import Breakdown, Judge
from truearm.evidence.metrics import (
    BETTER,
    KINDS,
    WITHIN,
    WORSE,
    Bools,
    MetricEvidence,
    breakdown_of_rounds,
    rounds_won,
)
from truearm.evidence.sample import Floats, Sample, worsen
from truearm.evidence.wins import apart, win_level_of
from truearm.problem import Problem, refuse

if TYPE_CHECKING:
    from _typeshed import StrPath

SCHEMA = 1
"""Version of the dictionary that a suite becomes."""

Run = Mapping[str, float | None] | None
"""What one run printed, by metric, None for a reading without a number; None if it printed nothing."""
Runs = Mapping[str, Sequence[Run]]
"""Per arm its runs in order of round."""
Status = Literal["decided", "undecided", "doubtful"]
Standing = Literal["worse", "better", "not worse", "indistinguishable", "open", "doubtful"]
_KIND_OF: Mapping[Standing, int] = {"worse": WORSE, "not worse": WITHIN, "better": BETTER}


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """The question about a suite: what is compared, and how."""

    problem: Problem
    """Arms, in rounds; delta, contamination and tolerance of all metrics; the goal of those not in `higher`."""
    reference: str
    """The arm that the others are compared with."""
    higher: tuple[str, ...] = ()
    """The metrics where higher is better."""
    fdr: bool = False
    """Whether the expected share of false claims is bounded (FDR), not the chance of any."""
    gate: bool = False
    """Whether the suite fails if a metric is worse."""

    def __post_init__(self) -> None:
        check_control(self.reference, self.problem.arms, "reference")
        refuse(not self.problem.rounds, "a suite compares runs side by side; use a problem with rounds=True")
        if self.fdr and self.problem.declared.clairvoyant:
            what = "adversaries that see readings not yet taken"
            raise OutOfReach(f"the false discovery rate is not bounded for {what}; remove fdr", "fdr")

    def goal(self, metric: str) -> str:
        """Return which readings of a metric are better."""
        return "max" if metric in self.higher else self.problem.goal

    @property
    def others(self) -> tuple[str, ...]:
        """The arms that are compared with the reference."""
        return tuple(arm for arm in self.problem.arms if arm != self.reference)


@dataclass(frozen=True, slots=True)
class Seen:
    """A metric that was not compared, and the arms that printed it."""

    metric: str
    arms: tuple[str, ...]


class Progress(NamedTuple):
    """Which metrics there are, and the evidence about them after some rounds.

    The metrics are those of the first round in which every arm printed some; counting starts with the next round.
    """

    suite: Suite
    rounds: int = 0
    """How many rounds there were up to that one, which do not count; 0 before it."""
    metrics: Mapping[str, tuple[str, ...]] = {}
    """By arm."""
    compared: Sequence[tuple[str, str]] = ()
    """Every metric and arm that is compared with the reference."""
    evidence: MetricEvidence = MetricEvidence.begin(0, 0.0)

    def after(self, runs: Runs) -> "Progress":
        """Return the progress after all of these runs; only those that are new are judged."""
        known = self if self.rounds else self._list_metrics(runs)
        if not known.rounds:
            return known
        new = known.readings(runs, known.rounds + known.evidence.rounds)
        return known._replace(evidence=known.evidence.after(known.rounds_won(*new)))

    def _list_metrics(self, runs: Runs) -> "Progress":
        suite, arms = self.suite, self.suite.problem.arms
        together = enumerate(zip(*(runs[arm] for arm in arms), strict=False), 1)
        rounds, row = next(((place, row) for place, row in together if None not in row), (0, ()))
        if not rounds:
            return self
        metrics = {arm: tuple(run or ()) for arm, run in zip(arms, row, strict=True)}
        known = {metric for own in metrics.values() for metric in own}
        for name in suite.higher:
            there = f"there are {', '.join(sorted(known)):.200}"
            refuse(name not in known, f"higher names {name!r}, which is not a metric; {there}", "higher", name)
        pairs = [(m, arm) for m in metrics[suite.reference] for arm in suite.others if m in metrics[arm]]
        own = "; ".join(f"{arm}: {', '.join(found) or 'none'}" for arm, found in metrics.items())
        msg = f"{suite.reference!r} has no metric in common with another arm ({own:.300}); use the same names"
        refuse(not pairs, msg)
        start = MetricEvidence.begin(len(pairs), win_level_of(suite.problem.contamination))
        return Progress(suite, rounds, metrics, pairs, start)

    @property
    def pairs(self) -> int:
        """The number of comparisons, 0 before it is known."""
        return len(self.compared)

    @property
    def done(self) -> bool:
        """Whether no comparison needs more rounds."""
        return 0 < self.pairs == self.pairs_done

    @property
    def pairs_done(self) -> int:
        """The number of comparisons that need no more rounds."""
        delta = self.suite.problem.delta
        claims = self.evidence.claims(delta, fdr=self.suite.fdr)
        return int(np.count_nonzero(claims.any(axis=0) | self.evidence.is_futile(delta)))

    @property
    def only(self) -> tuple[Seen, ...]:
        """The metrics that not every arm has."""
        return tuple(one for one in _group_metrics(self.metrics) if len(one.arms) < len(self.metrics))

    def late(self, runs: Runs) -> tuple[Seen, ...]:
        """Return the metrics that an arm printed later, and that are not compared."""
        new = {arm: {m for run in runs[arm] for m in run or ()} - {*own} for arm, own in self.metrics.items()}
        return tuple(sorted(_group_metrics(new), key=lambda one: one.metric))

    def readings(self, runs: Runs, first: int) -> tuple[Floats, Floats]:
        """Return the readings of the reference and of the arm, a row for each pair, from a round on."""
        stop = max(first, min(map(len, runs.values())))

        def rows(arms: Iterable[str]) -> Floats:
            found = [
                [(run or {}).get(metric) for run in runs[arm][first:stop]]
                for arm, (metric, _) in zip(arms, self.compared, strict=True)
            ]
            return np.array(found, dtype=np.float64).reshape(self.pairs, stop - first)  # None is NaN

        return rows([self.suite.reference] * self.pairs), rows(arm for _, arm in self.compared)

    def rounds_won(self, reference: Floats, arm: Floats) -> Bools:
        """Return which rounds speak for which claim."""
        goals = (self.suite.goal(metric) for metric, _ in self.compared)
        signs = np.array([1.0 if goal == "max" else -1.0 for goal in goals])[:, None]
        tolerance, oriented = self.suite.problem.tolerance, signs * reference
        if tolerance.relative:
            oriented = np.where(reference < 0, np.nan, oriented)  # no percent of a negative number
        bar = np.where(signs > 0, worsen(oriented, tolerance), worsen(oriented, tolerance, -1.0))
        return rounds_won(oriented, bar, signs * arm)


def _group_metrics(metrics: Mapping[str, Iterable[str]]) -> list[Seen]:
    """Return every metric with the arms that printed it."""
    names = dict.fromkeys(metric for own in metrics.values() for metric in own)
    return [Seen(metric, tuple(arm for arm, own in metrics.items() if metric in own)) for metric in names]


@dataclass(frozen=True, slots=True)
class Compared:
    """A metric of one arm compared with that of the reference."""

    metric: str
    arm: str
    goal: str
    standing: Standing
    reference_median: float
    median: float
    scale: Literal["ratio", "difference"]
    """Whether readings of one round are compared by ratio or by difference."""
    observed: float
    low: float
    high: float
    """Limits of the true median of that, for all metrics at once."""
    missing: int
    """Rounds in which the reading of either is missing."""
    log_evidence: tuple[float, ...]
    """That it is worse by more than the tolerance, that it is not, and that it is better."""
    breakdown: Breakdown = NOTHING
    """Largest contamination under which the standing is certified, for all metrics at once (extensions D4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteResult:
    """What is known about a suite."""

    suite: Suite
    rounds: int
    """Those that count."""
    uncounted: int
    """Rounds that were spent on learning which metrics there are."""
    compared: tuple[Compared, ...] = ()
    only: tuple[Seen, ...] = ()
    late: tuple[Seen, ...] = ()
    runs: Runs = field(default_factory=dict, compare=False, repr=False)
    """What everything here was computed from."""
    conditions: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)
    """How the runs were made, as in `Result`."""

    def __str__(self) -> str:
        return str(show("suite_text", self))

    def save_html(self, path: "StrPath") -> None:
        """Write a self-contained page."""
        show("save_suite_page", self, path)

    def named(self, standing: Standing) -> list[Compared]:
        """Return the comparisons with this standing."""
        return [one for one in self.compared if one.standing == standing]

    @property
    def status(self) -> Status:
        """Whether every comparison has an answer, or readings contradict an assumption."""
        if self.named("doubtful"):
            return "doubtful"
        left = self.named("open") or self.named("indistinguishable")
        return "decided" if self.compared and not left else "undecided"

    @property
    def failed(self) -> bool:
        """Whether a metric that a gate guards is worse."""
        return self.suite.gate and bool(self.named("worse"))

    @property
    def is_incomplete(self) -> bool:
        """Whether a metric was not printed by every arm in every run."""
        return bool(self.only or self.late) or any(one.missing for one in self.compared)

    def to_dict(self, *, runs: bool = False) -> dict[str, Any]:
        """Return plain values for JSON, optionally with the runs; None where a number is not finite."""
        return {
            "schema": SCHEMA,
            "status": self.status,
            "failed": self.failed,
            "suite": to_plain(self.suite),
            "rounds": self.rounds,
            "uncounted": self.uncounted,
            "metrics": [
                {**to_plain(one, null=True), "log_evidence": dict(zip(KINDS, one.log_evidence, strict=True))}
                for one in self.compared
            ],
            "only": to_plain(self.only),
            "late": to_plain(self.late),
            **({"runs": to_plain(self.runs)} if runs else {}),
        }


def judge_suite(suite: Suite, runs: Runs) -> SuiteResult:
    """Return what is known about a suite from its runs."""
    progress = Progress(suite).after(runs)
    if not progress.rounds:
        return SuiteResult(suite=suite, rounds=0, uncounted=min(map(len, runs.values())), runs=runs)
    known = progress.evidence
    count, delta = progress.pairs, suite.problem.delta
    reference, arm = progress.readings(runs, progress.rounds)
    # one arm depends on its time in ways that the other does not share
    drifts = [bool(alarms.find_unshared_drift(both, tests=count)) for both in zip(reference, arm, strict=True)]
    claims, futile = known.claims(delta, fdr=suite.fdr, doubted=np.array(drifts)), known.is_futile(delta)
    wins, bar = progress.rounds_won(reference, arm), math.log(2 * count / delta)

    def compare(i: int) -> Compared:
        metric, name = progress.compared[i]
        goal = suite.goal(metric)
        problem = replace(suite.problem, arms=(suite.reference, name), goal=goal, delta=delta / count)
        judge = Judge.of(problem, [Sample.in_order(problem.sign * row) for row in (reference[i], arm[i])])
        standing = "doubtful" if drifts[i] else _standing(claims[:, i], futile=bool(futile[i]))
        kind = _KIND_OF.get(standing)
        return Compared(
            metric,
            name,
            goal,
            standing,
            problem.sign * judge.looks(0),
            problem.sign * judge.looks(1),
            *apart(judge, *((0, 1) if goal == "min" else (1, 0))),  # as measured: the arm over the reference
            missing=int(np.count_nonzero(np.isnan(reference[i]) | np.isnan(arm[i]))),
            log_evidence=tuple(known.highest[:, i].tolist()),
            breakdown=NOTHING if kind is None else breakdown_of_rounds(wins[kind, i], bar),
        )

    return SuiteResult(
        suite=suite,
        rounds=known.rounds,
        uncounted=progress.rounds,
        compared=tuple(map(compare, range(count))),
        only=progress.only,
        late=progress.late(runs),
        runs=runs,
    )


def _standing(claims: Bools, *, futile: bool) -> Standing:
    if claims[WORSE]:
        # worse in some rounds and not in others: neither is true of the arm
        return "doubtful" if claims[WITHIN] or claims[BETTER] else "worse"
    if claims[BETTER]:
        return "better"
    return "not worse" if claims[WITHIN] else "indistinguishable" if futile else "open"
