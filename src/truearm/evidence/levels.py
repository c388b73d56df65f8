"""How likely a reading must be on each side of a cut, and how much evidence is enough: levels and thresholds."""

import math
from typing import Literal, NamedTuple

import numpy as np

from truearm.bounds import special
from truearm.bounds.contamination import remaining_mass
from truearm.errors import InvalidArgument
from truearm.evidence.sample import Floats
from truearm.problem import Adversary, Contamination, Problem, check_count, check_delta

Rule = Literal["pooled", "causal", "clairvoyant", "dependent", "fixed", "paired"]


class Levels(NamedTuple):
    """Least chances that a reading falls in L (an arm at or below the cut) and in U (at or above it)."""

    low: float
    high: float

    @classmethod
    def of(cls, quantile: float, contamination: Contamination | None) -> "Levels":
        """Return the levels of a quantile under a contamination, where None is the paper's assumption."""
        return Trust.of(contamination).levels(quantile)  # evidence section 1: identified


class Trust(NamedTuple):
    """The assumed share of bad readings and the adversary; levels of every quantile follow."""

    eps: float
    adversary: Adversary

    def levels(self, quantile: float) -> Levels:
        """Return the levels of a quantile, at any eps in [0, 1] as the search for a breakdown point needs them."""
        if self.adversary is Adversary.MALICIOUS:
            return Levels(remaining_mass(quantile, self.eps), remaining_mass(1 - quantile, self.eps))  # audit 2.A
        return Levels((1 - self.eps) * quantile, (1 - self.eps) * (1 - quantile))  # audit 2.A

    @classmethod
    def of(cls, contamination: Contamination | None) -> "Trust":
        """Return the trust under a declared contamination; None declares eps = 0."""
        declared = contamination or Contamination(0.0)
        return cls(declared.eps, declared.adversary)

    def mass(self, share: Floats) -> Floats:
        """Return g: the least chance that a reading is clean and in a set with this share of clean readings."""
        if self.adversary is Adversary.MALICIOUS:
            return np.maximum(0.0, share - self.eps)  # audit 2.A
        return np.maximum(0.0, (1 - self.eps) * share)  # audit 2.A

    def clean_share(self, mass: float) -> float:
        """Return the share of clean readings at which the trusted mass reaches a level."""
        if self.adversary is Adversary.MALICIOUS:
            return mass + self.eps
        return mass / (1 - self.eps) if self.eps < 1 else math.inf


def divergence(share: float, level: float) -> float:
    """Return kl^-(share, level): what one pull adds to the evidence that the share is below the level."""
    if share >= level:
        return 0.0
    first = share * math.log(share / level) if share > 0 else 0.0
    return first + (1 - share) * math.log((1 - share) / (1 - level))


def threshold(k: int, delta: float, rule: Rule) -> float:
    """Return the evidence that rejects an arm, so that the best of k arms is ever lost with chance <= delta.

    "pooled": one e-process per arm, causal adversary. "causal", "clairvoyant", "dependent": pairs of arms, under
    an adversary blind to the future, one that sees it, and arms that move together too. "fixed": pairs of arms
    whose numbers of readings were chosen in advance. "paired": wins side by side.
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
            return 4 * rivals / delta / delta  # evidence T4c; the square of a tiny delta would be 0
        case "fixed" | "paired":
            return 2 * rivals / delta  # evidence section 11, extensions E1
    msg = f"rule must be 'pooled', 'causal', 'clairvoyant', 'dependent', 'fixed' or 'paired', but got {rule!r}"
    raise InvalidArgument(msg)


def one_sided(rule: Rule) -> Rule:
    """Return the rule of statements that name the direction: decisions of fixed designs and rounds test both."""
    return "causal" if rule in {"fixed", "paired"} else rule  # evidence section 11, extensions E1


def log_threshold(problem: Problem, rule: Rule, share: float = 1.0) -> float:
    """Return the log of the threshold of a problem, at all of its error probability or at a share of it."""
    return math.log(threshold(len(problem.arms), share * problem.delta, rule))


def _clairvoyant_constant(delta: float) -> float:
    """Return c0 with (1 + ln c0)/c0 = delta: a product of two Pareto(1) variables exceeds c0 with chance delta."""
    log = -float(special.lambertw(-delta / math.e, -1).real) - 1  # 1+ln c0 = -W_{-1}(-delta/e)
    try:
        return math.exp(log)
    except OverflowError:
        return math.inf  # more than any evidence


def rule_for(
    problem: Problem, adversary: Adversary | None = None, *, design: str = "sequential", ordered: bool = False
) -> Rule:
    """Return the rule that rejects arms: in pairs, or pooled if the order of pulls is known (evidence T5)."""
    if problem.rounds:
        return "paired"  # extensions E1: one stream per pair, whatever the adversary sees
    if design == "fixed":
        return "fixed"  # evidence section 11: valid for clairvoyant adversaries too
    declared = problem.contamination
    if adversary is not None:
        causal = declared.causal if declared is not None and adversary is not Adversary.OBLIVIOUS else None
        declared = Contamination(0.0, adversary, causal)
    if problem.dependent_arms:
        return "dependent"  # evidence section 11
    if declared is not None and declared.clairvoyant:
        return "clairvoyant"
    return "pooled" if ordered else "causal"


def p_value_of(log_evidence: float, rule: Rule) -> float:
    """Return the p-value that log-evidence between two arms amounts to, valid at any time.

    For k arms, subtract log(k - 1) first: any of k - 1 others may reject "this arm is the best".
    """
    value = math.exp(-max(0.0, log_evidence))
    if rule == "clairvoyant":
        value *= 1 + max(0.0, log_evidence)  # evidence T4b, k = 2
    elif rule == "dependent":
        value = 2 * math.sqrt(value)  # evidence T4c, k = 2
    return min(1.0, value)
