"""Every inequality of the paper about estimating and choosing, printed and sharp. Numbers in, numbers out.

`contamination` has what contamination alone can do, `median` the errors of median and median absolute deviation,
`ranks` order statistics and distribution functions, `algorithms` the pulls of the paper's algorithms and how good
their answers are, `lower` what no algorithm can do, `limits` how much any must pull. docs/bounds.md maps theorems
to functions.
"""

# ruff: noqa: F403, F405 - `__all__` is the one list of public names

from truearm.bounds import lower as lower_bounds  # noqa: F401 - truearm.lower_bounds
from truearm.bounds.algorithms import *
from truearm.bounds.contamination import *
from truearm.bounds.median import *
from truearm.bounds.ranks import *

__all__ = [
    "Constants",
    "Counts",
    "Floats",
    "HasQuantiles",
    "Numbers",
    "Quality",
    "Ranks",
    "Schedule",
    "bias",
    "contaminated_order_bounds",
    "counted_elimination_radius",
    "dkw_radius",
    "early_stop_round",
    "effective_gaps",
    "elimination_constant",
    "elimination_radius",
    "elimination_ranks",
    "elimination_sample_size",
    "elimination_schedule",
    "extreme_medians",
    "identified_interval",
    "lower_rank",
    "mad_error",
    "mad_sample_size",
    "malicious_attained_radius",
    "max_contamination",
    "median_error",
    "median_quantile_floor",
    "median_radius",
    "median_sample_size",
    "quality_bound",
    "quality_threshold",
    "quantile_ranks",
    "rank_shift",
    "round_delta",
    "selection_gap",
    "sequential_dkw_radius",
    "sequential_elimination_ranks",
    "sequential_quantile_ranks",
    "sequential_rank",
    "shift",
    "survival_ceiling",
    "survival_floor",
    "trusted_mass",
    "uniform_sample_size",
]
