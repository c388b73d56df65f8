"""What readings say about an order of arms: one judge, and what it is made of."""

from truearm.evidence.comparison import Comparison, breakdown, is_better
from truearm.evidence.cuts import (
    Evidence,
    Leg,
    Portfolio,
    Stake,
    fixed_pair,
    fixed_term,
    mixture_term,
    pair,
    pooled,
    portfolio,
)
from truearm.evidence.judge import Entry, Judge, Least, Margin
from truearm.evidence.levels import Levels, Rule, Strength, Trust, p_value_of, pair_rule, rule_for, threshold
from truearm.evidence.points import Breakdown, breakdown_estimate, breakdown_point
from truearm.evidence.quantiles import QuantileJudge, best_looking, by_looks
from truearm.evidence.shifts import certified_tolerance, shifted

__all__ = [
    "Breakdown",
    "Comparison",
    "Entry",
    "Evidence",
    "Judge",
    "Least",
    "Leg",
    "Levels",
    "Margin",
    "Portfolio",
    "QuantileJudge",
    "Rule",
    "Stake",
    "Strength",
    "Trust",
    "best_looking",
    "breakdown",
    "breakdown_estimate",
    "breakdown_point",
    "by_looks",
    "certified_tolerance",
    "fixed_pair",
    "fixed_term",
    "is_better",
    "mixture_term",
    "p_value_of",
    "pair",
    "pair_rule",
    "pooled",
    "portfolio",
    "rule_for",
    "shifted",
    "threshold",
]
