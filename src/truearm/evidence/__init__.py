"""What readings say about an order of arms: samples, targets, one search, one judge."""

from truearm.evidence.comparison import Comparison, breakdown, is_better
from truearm.evidence.judge import Breakdown, Entry, Judge
from truearm.evidence.levels import Levels, Rule, Trust, p_value_of, threshold
from truearm.evidence.quantiles import by_looks, least_evidence
from truearm.evidence.sample import Sample, shift_sample
from truearm.evidence.search import Evidence, Leg, Portfolio, Stake, portfolio
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
    "breakdown",
    "by_looks",
    "is_better",
    "least_evidence",
    "p_value_of",
    "portfolio",
    "shift_sample",
    "threshold",
]
