"""The lab: instances whose truth is known, attacks on them, and limits for all methods.

Only the lab knows the truth; nothing below it and no policy may import it.
"""

# ruff: noqa: F403, F405 - `__all__` is the one list of public names

from truearm.bounds.limits import Limit
from truearm.lab.adversaries import *
from truearm.lab.arms import *
from truearm.lab.limits import *
from truearm.lab.simulate import *

__all__ = [
    "INSTANCES",
    "Attack",
    "Drifting",
    "Instance",
    "Limit",
    "Mixture",
    "Observed",
    "Prescient",
    "Run",
    "Runner",
    "Simulation",
    "Stationary",
    "Steering",
    "Summary",
    "Tape",
    "Tapes",
    "amplified",
    "benign",
    "bernoulli_limit",
    "characteristic_time",
    "coins",
    "confounded",
    "empirical",
    "extreme_shift",
    "howard_ramdas",
    "inner_levels",
    "instance",
    "known_shape_limit",
    "least_favorable_kl",
    "lifted",
    "limit",
    "malicious",
    "malicious_extreme",
    "minimax_pulls",
    "oblivious",
    "observed",
    "play",
    "schreuder",
    "simulate",
    "steered_by_parity",
    "translations",
    "worst",
]
