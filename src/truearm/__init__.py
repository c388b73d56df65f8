"""Find the best of several arms from readings some of which are wrong, and say how sure you are."""

from importlib import import_module
from typing import Any

from truearm import bounds, evidence, families
from truearm.bounds import lower as lower_bounds
from truearm.claims.audit import Audit, audit
from truearm.claims.certificate import Certificate, Status
from truearm.claims.result import Result
from truearm.errors import (
    ArmFailed,
    InvalidArgument,
    OutOfReach,
    ProtocolError,
    TruearmError,
    VerificationError,
)
from truearm.evidence import breakdown, is_better
from truearm.evidence.audit import least_eps
from truearm.evidence.counts import Counts
from truearm.evidence.intervals import (
    identification,
    mad_interval,
    median_interval,
    quality_curve,
    quantile_interval,
)
from truearm.evidence.moments import moments
from truearm.policies.control import AgainstControl
from truearm.policies.partial import PartialIdentification
from truearm.policies.toptwo import TopTwo
from truearm.problem import Adversary, Contamination, Interval, Pull, Regularity, Tolerance
from truearm.run import find_best
from truearm.study import Study

__version__ = "0.1.0"

_LATER = {
    "lab": "truearm.lab",
    "analyze": "truearm.analysis",
    "count": "truearm.world.lazy",
    "plan": "truearm.planning",
    "time": "truearm.timing",
    "verify": "truearm.verification",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module or a function
    """Import the heavier rooms when they are first entered."""
    if name not in _LATER:
        msg = f"module 'truearm' has no attribute {name!r}"
        raise AttributeError(msg)
    module = import_module(_LATER[name])
    return module if name == "lab" else getattr(module, name)


__all__ = [
    "Adversary",
    "AgainstControl",
    "ArmFailed",
    "Audit",
    "Certificate",
    "Contamination",
    "Counts",
    "Interval",
    "InvalidArgument",
    "OutOfReach",
    "PartialIdentification",
    "ProtocolError",
    "Pull",
    "Regularity",
    "Result",
    "Status",
    "Study",
    "Tolerance",
    "TopTwo",
    "TruearmError",
    "VerificationError",
    "analyze",
    "audit",
    "bounds",
    "breakdown",
    "count",
    "evidence",
    "families",
    "find_best",
    "identification",
    "is_better",
    "lab",
    "least_eps",
    "lower_bounds",
    "mad_interval",
    "median_interval",
    "moments",
    "plan",
    "quality_curve",
    "quantile_interval",
    "time",
    "verify",
]
