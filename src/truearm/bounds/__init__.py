"""Every inequality of the paper about estimating and choosing, printed and sharp. Numbers in, numbers out.

One file for each thing that is bounded: what contamination alone can do, the median, the median absolute
deviation, ranks, curves, the algorithms and the quality of their answer. `lower` says what no algorithm can do,
`limits` what any must pull; docs/bounds.md maps theorems to functions. Only names are passed on here.
"""

from truearm.bounds import lower as lower_bounds  # noqa: F401 - truearm.lower_bounds
from truearm.bounds.algorithms import (
    Schedule,
    counted_elimination_radius,
    early_stop_round,
    effective_gaps,
    elimination_constant,
    elimination_radius,
    elimination_sample_size,
    elimination_schedule,
    round_delta,
    selection_gap,
    uniform_sample_size,
)
from truearm.bounds.arguments import (
    Constants,
    Counts,
    Floats,
    Numbers,
)
from truearm.bounds.contamination import (
    HasQuantiles,
    bias,
    extreme_medians,
    identified_interval,
    max_contamination,
    rank_shift,
    shift,
    trusted_mass,
)
from truearm.bounds.curves import (
    dkw_radius,
    sequential_dkw_radius,
    survival_ceiling,
    survival_floor,
)
from truearm.bounds.mad import (
    mad_error,
    mad_sample_size,
)
from truearm.bounds.median import (
    malicious_attained_radius,
    median_error,
    median_radius,
    median_sample_size,
)
from truearm.bounds.quality import (
    Quality,
    median_quantile_floor,
    quality_bound,
    quality_threshold,
)
from truearm.bounds.ranks import (
    Ranks,
    contaminated_order_bounds,
    elimination_ranks,
    lower_rank,
    quantile_ranks,
    sequential_elimination_ranks,
    sequential_quantile_ranks,
    sequential_rank,
)

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
