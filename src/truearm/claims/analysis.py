"""A result of data already there, with what else can be asked of such data."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from truearm.claims.plain import to_plain
from truearm.claims.result import Result
from truearm.claims.tiers import Tiers
from truearm.claims.views import show
from truearm.evidence import Breakdown
from truearm.evidence.counts import Counts, Made
from truearm.evidence.units import Units


@dataclass(frozen=True, slots=True)
class Contest:
    """How much the readings say that one arm is better than another."""

    better: str
    worse: str
    log_evidence: float
    p_value: float
    """Of "the worse one is the best arm, or ties", adjusted for the number of arms, for this pair by itself."""
    breakdown: Breakdown | None
    """Largest contamination under which the worse one is excluded by the better one; with `pairs=True` only."""
    excluded: bool
    """Whether it is certainly worse, for all pairs at once (evidence T10a)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis(Result):
    """A result from data already there, with all that can be asked of such data."""

    ranking: tuple[str, ...] = ()
    """All arms by their observed quantiles, the best first."""
    excluded: Mapping[str, str]
    """For each arm that is certainly worse than another one, that other one (evidence T10a)."""
    contests: tuple[Contest, ...] = ()
    """The leader against every other arm, or with `pairs=True` every arm against every other."""
    needed: Mapping[str, int] | None
    """More readings per arm that would decide, if they look like these: an estimate. None: no number would."""
    missing: Mapping[str, int]
    """Cells without a value, per arm."""
    outside: Mapping[str, int]
    """Readings outside the plausible range, per arm."""
    few: Mapping[str, int]
    """Arms left that have so few readings that no values of theirs could decide, and how many they have."""
    coarse: Mapping[str, float] = field(default_factory=dict)
    """Arms left whose quantile may be anywhere in a bucket of a table of counts, and what share of their readings
    it holds. Who looks best, and at what value, is not known then."""
    units: Units | None = None
    """What was drawn independently, if rows were reduced to one reading per unit."""
    tiers: Tiers | None = None
    """All arms in order, as far as it is certain, if that was asked."""
    made: Made | None = None
    """By what engine and queries readings were counted, if they were not read one by one."""
    counts: Counts | None = field(default=None, compare=False, repr=False)
    """The table that everything here was computed from, if readings were counted."""
    about_data: tuple[str, ...] = field(default=(), compare=False, repr=False)
    """What a reader should know about the data, one sentence each."""

    @property
    def counted(self) -> str:
        """What a reading of the analysis is called."""
        measured = self.units is not None or self.problem.rounds or self.conditions is not None
        return "reading" if measured else "row"

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know besides the answer, one sentence each."""
        sentences: tuple[str, ...] = show("notes", self)
        return (*self.about_data, *sentences)

    def to_dict(self, *, readings: bool = False) -> dict[str, Any]:
        """Return plain values for JSON: those of a `Result`, and the rest of the analysis."""
        own = {field.name for field in fields(Analysis) if field.compare} - {
            field.name for field in fields(Result)
        }
        plain = {key: to_plain(getattr(self, key), null=True) for key in sorted(own)}
        return {**Result.to_dict(self, readings=readings), **plain, "notes": list(self.notes)}

    @classmethod
    def around(cls, result: Result, **rest: Any) -> "Analysis":  # noqa: ANN401 - the fields above
        """Return an analysis with the fields of a result and those of its own."""
        return cls(**{field.name: getattr(result, field.name) for field in fields(Result)}, **rest)
