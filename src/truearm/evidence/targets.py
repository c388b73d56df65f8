"""What is compared: the interface between the judge and a target (a quantile, a share, wins in rounds)."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from truearm.bounds.search import last_true
from truearm.evidence.levels import Trust, divergence
from truearm.evidence.sample import Floats, Sample, Shift, shift_sample
from truearm.evidence.search import Evidence, Portfolio, Product, Stake
from truearm.problem import UNBOUNDED, Adversary, Contamination, Design, Interval, Problem

_FEW = 0.1  # share of an arm's readings that may be zero or negative if ratios are used: twice the default eps


class Margin(NamedTuple):
    """How much better the leader is than another arm: on which scale, as observed, and as certified."""

    scale: Literal["ratio", "difference"]
    observed: float
    at_least: float | None


class Query(NamedTuple):
    """The options of a search for evidence."""

    design: Design = "sequential"
    shift: Shift | None = None
    """By how much the judged arm is made worse."""
    near: float = math.nan
    """A place near the minimum on the scale of `Evidence.at`: saves time, never changes the value."""
    enough: float | None = None
    """For callers that only ask whether the evidence reaches this, as in `search.least`."""
    times: float = 1.0
    """As if every reading had come this many times: a forecast, not evidence, unless it is 1."""
    rough: bool = False
    """Whether two digits are enough, to choose what to pull next."""


PLAIN = Query()


@dataclass(frozen=True, slots=True)
class Target(ABC):
    """A target of a problem; samples are oriented so that bigger is better."""

    problem: Problem

    @abstractmethod
    def evidence(self, judged: Sample, bets: Portfolio, trust: Trust, query: Query = PLAIN) -> Evidence:
        """Return the evidence that an arm, made worse by a shift, is behind those that bet against it."""

    def product(self, judged: Sample, bets: Portfolio, trust: Trust) -> Product | None:  # noqa: ARG002
        """Return the evidence as a function of any place on the scale of `Evidence.at`; None without an axis."""
        return None

    def evidence_at(self, judged: Sample, bets: Portfolio, trust: Trust, at: float) -> float:
        """Return the evidence at one place, an upper bound of the least."""
        product = self.product(judged, bets, trust)
        return self.evidence(judged, bets, trust).log_value if product is None else product.value(at)

    def common_terms(
        self, samples: Sequence[Sample], trust: Trust, design: Design
    ) -> tuple[Floats, Floats] | None:
        """Return the evidence of arms against themselves and others at a few common places, by arm and place.

        The evidence of one arm against another is at most their sum at any place; None if it is cheap anyway.
        """
        del samples, trust, design
        return None

    def gains(self, judged: Sample, stake: Stake, trust: Trust, at: float) -> tuple[float, float]:
        """Return the evidence in the readings of a rival and the judged arm at a place, by divergence."""
        product, places = self.product(judged, Portfolio(stake), trust), np.array([at])
        if product is None:
            return 0.0, 0.0  # arms in rounds are pulled alike
        counts, sizes = product.counts(places)[:, 0], product.sizes[:, 0]
        own, rival = (
            float(n) * divergence(float(c / n), float(np.ravel(level)[0]))
            for c, n, level in zip(counts, sizes, product.levels(places), strict=True)
        )
        return rival, own

    @abstractmethod
    def ceiling(self, judged: Sample, rival: Sample, trust: Trust, design: Design) -> float:
        """Return the most log-evidence that any values of this many readings could give."""

    @abstractmethod
    def eps_limit(self, adversary: Adversary) -> float:
        """Return the contamination at which there is no evidence left."""

    def is_hopeless(self, trust: Trust) -> bool:
        """Return True if no number of readings can decide, whatever they are."""
        return trust.eps >= self.eps_limit(trust.adversary)

    @property
    def is_symmetric(self) -> bool:
        """Whether a malicious adversary with half of eps is as bad as a prescient one with all of it."""
        return True

    @abstractmethod
    def looks(self, sample: Sample) -> float:
        """Return how good an arm looks: what is compared, as observed."""

    def rank(self, samples: Sequence[Sample], among: Sequence[int]) -> list[int]:
        """Return those arms that have a value, the best-looking first."""
        return sorted((i for i in among if samples[i].size), key=lambda i: -self.looks(samples[i]))

    def optimism(self, sample: Sample, pulls: int) -> float:
        """Return how good an arm may be after this many pulls of all arms, to choose the next pull."""
        slack = 0.5 * math.sqrt(0.5 * math.log(4 * pulls) / max(1, sample.n))  # extensions D1
        return self.looks(sample) + slack

    def is_same(self, one: Sample, other: Sample) -> bool:  # noqa: ARG002 - for targets that compare reading by reading
        """Return True if two arms measured the same in every round."""
        return False

    def intervals(
        self, sample: Sample, contamination: Contamination, error: float, design: Design
    ) -> tuple[Interval, Interval]:
        """Return where an arm's true value lies, in the user's units, and what contamination leaves of it."""
        del sample, contamination, error, design  # nothing is claimed about one arm by default
        return UNBOUNDED, UNBOUNDED

    def spread(self, sample: Sample, error: float | None, design: Design) -> tuple[float, float, float]:  # noqa: ARG002
        """Return the observed median absolute deviation and an interval of the true one."""
        return math.nan, -math.inf, math.inf

    def quality(self, sample: Sample, error: float, design: Design) -> tuple[tuple[float, float], ...]:  # noqa: ARG002
        """Return values and shares of an arm's readings that are certainly as good, in the user's units."""
        return ()

    @abstractmethod
    def breakdown_estimate(self, better: Sample, worse: Sample, adversary: Adversary) -> float:
        """Return the plug-in estimate of the breakdown point with unlimited readings like these."""

    def is_decidable(self, better: Sample, worse: Sample, trust: Trust) -> bool:
        """Return True if unlimited readings like these would put one arm behind the other, up to the tolerance."""
        moved = shift_sample(worse, self.problem.tolerance, self.problem.sign)
        # else the plug-in laws allow the opposite order: evidence section 8, extensions E1
        return self.breakdown_estimate(better, moved, trust.adversary) > trust.eps

    @abstractmethod
    def is_futile(self, samples: Sequence[Sample], alive: Sequence[int], trust: Trust, error: float) -> bool:
        """Return True if unlimited pulls like these could not certify any arm that is alive.

        If some arm could be certified and the readings are stationary, this happens with at most the error
        probability.
        """

    def least_tolerance(self, better: Sample, worse: Sample, log_bar: float, trust: Trust, query: Query) -> float:
        """Return the least tolerance within which one arm is certainly not worse, above the query's shift."""
        most, accuracy = self.margin_range(better, worse, relative=False)

        def holds(amount: float) -> bool:
            asked = query._replace(shift=Shift(amount))
            return self.evidence(worse, Portfolio(Stake(better)), trust, asked).log_value >= log_bar

        return last_true(holds, most, query.shift.amount if query.shift else 0.0, accuracy=accuracy)

    def is_ratio(self, one: Sample, other: Sample) -> bool:
        """Return True if the two arms are compared by a ratio: few readings are zero or negative."""
        rising = self.problem.sign > 0
        low = (s.count(0.0, closed=True) if rising else s.size - s.count(0.0) for s in (one, other))
        return all(int(n) <= _FEW * s.size for n, s in zip(low, (one, other), strict=True))

    def lead(self, one: Sample, other: Sample, *, relative: bool) -> float:  # noqa: ARG002
        """Return how much better one arm looks than another, in the user's units."""
        return self.looks(one) - self.looks(other)

    def margin_range(self, one: Sample, other: Sample, *, relative: bool) -> tuple[float, float]:  # noqa: ARG002
        """Return an upper end and an accuracy for the search of a margin: a difference, or the log of a factor."""
        return 1.0, 1e-6

    def exact_margin(self, better: Sample, worse: Sample, error: float, query: Query) -> float | None:  # noqa: ARG002
        """Return the largest margin on the scale of the query's shift; None if it must be searched for."""
        return None


def target_of(problem: Problem) -> Target:
    """Return the target of a problem."""
    from truearm.evidence.quantiles import Quantile
    from truearm.evidence.scores import Scores
    from truearm.evidence.shares import Share
    from truearm.evidence.wins import Wins

    kinds: dict[str, type[Target]] = {"quantile": Quantile, "share": Share, "wins": Wins, "mean": Scores}
    return kinds[problem.target](problem)
