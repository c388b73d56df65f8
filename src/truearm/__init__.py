"""Find the best of several arms from readings some of which are wrong, and say how sure you are."""

from importlib import import_module

import truearm.report  # noqa: F401 - registers how results show themselves
from truearm.claims import views

TYPE_CHECKING = False  # but true to type checkers; importing `typing` would take longer than all else here
if TYPE_CHECKING:
    from truearm import bounds, evidence, families, lab
    from truearm.analysis import analyze
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
    from truearm.planning import plan
    from truearm.policies.control import AgainstControl
    from truearm.policies.paper import PartialIdentification
    from truearm.policies.toptwo import TopTwo
    from truearm.problem import Adversary, Contamination, Interval, Pull, Regularity, Tolerance
    from truearm.run import find_best
    from truearm.service.client import Client
    from truearm.study import Study
    from truearm.suites import suite
    from truearm.timing import time
    from truearm.verification import verify
    from truearm.world.lazy import count
    from truearm.world.tables import read_counts, write_counts

__version__ = "0.1.0"

# Where each name lives: a room is entered when it is first called for, so that the first answer comes quickly.
_ROOMS = {
    "analysis": "analyze",
    "bounds": "bounds",
    "bounds.lower": "lower_bounds",
    "claims.audit": "Audit audit",
    "claims.certificate": "Certificate Status",
    "claims.result": "Result",
    "errors": "errors ArmFailed InvalidArgument OutOfReach ProtocolError TruearmError VerificationError",
    "evidence": "evidence breakdown is_better",
    "evidence.audit": "least_eps",
    "evidence.counts": "Counts",
    "evidence.intervals": "identification mad_interval median_interval quality_curve quantile_interval",
    "evidence.moments": "moments",
    "families": "families",
    "lab": "lab",
    "planning": "plan",
    "policies.control": "AgainstControl",
    "policies.paper": "PartialIdentification",
    "policies.toptwo": "TopTwo",
    "problem": "problem Adversary Contamination Interval Pull Regularity Tolerance",
    "run": "find_best",
    "service.client": "Client",
    "study": "Study",
    "suites": "suite",
    "timing": "time",
    "verification": "verify",
    "world.lazy": "count",
    "world.tables": "read_counts write_counts",
}
_HOMES = {name: room for room, names in _ROOMS.items() for name in names.split()}


if not TYPE_CHECKING:  # a checker knows the names above, and that there are no others

    def __getattr__(name: str) -> object:
        """Fetch a name from its room, and keep it here."""
        if name not in _HOMES:
            msg = f"module 'truearm' has no attribute {name!r}"
            raise AttributeError(msg)
        room = import_module(f"truearm.{_HOMES[name]}")
        globals()[name] = found = getattr(room, name, room)
        return found


views.register(verify_certificate=lambda *case: import_module("truearm.verification").verify_certificate(*case))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "Adversary",
    "AgainstControl",
    "ArmFailed",
    "Audit",
    "Certificate",
    "Client",
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
    "read_counts",
    "suite",
    "time",
    "verify",
    "write_counts",
]
