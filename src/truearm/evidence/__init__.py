"""What readings say about an order of arms: samples, targets, one search, one judge."""

from truearm.evidence.comparison import Comparison, breakdown, is_better
from truearm.evidence.judge import Breakdown, Entry, Judge
from truearm.evidence.levels import Levels, Rule, Trust, p_value_of, pair_rule, rule_for, threshold
from truearm.evidence.quantiles import (
    best_looking,
    breakdown_estimate,
    breakdown_point,
    certified_tolerance,
    fixed_pair,
    pair,
    pooled,
)
from truearm.evidence.sample import Sample
from truearm.evidence.search import Evidence, Leg, Portfolio, Stake, portfolio
from truearm.evidence.shifts import shifted
from truearm.evidence.targets import Margin, Target

__all__ = [
    "Breakdown",
    "Comparison",
    "Entry",
    "Evidence",
    "Judge",
    "Leg",
    "Levels",
    "Margin",
    "Portfolio",
    "Rule",
    "Sample",
    "Stake",
    "Target",
    "Trust",
    "best_looking",
    "breakdown",
    "breakdown_estimate",
    "breakdown_point",
    "certified_tolerance",
    "fixed_pair",
    "is_better",
    "p_value_of",
    "pair",
    "pair_rule",
    "pooled",
    "portfolio",
    "rule_for",
    "shifted",
    "threshold",
]
