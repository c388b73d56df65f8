"""What travels: the bodies of requests and answers, as types. The published schema is made from these.

A reading is a number, or "nan", "inf" or "-inf", or null for one that is missing.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, Raw, Struct

Name = Annotated[str, Meta(min_length=1, max_length=200)]
ID = "^[a-z0-9][a-z0-9-]*$"
Id = Annotated[str, Meta(pattern=ID, min_length=1, max_length=64)]
Count = Annotated[int, Meta(ge=1, le=1_000_000_000)]
Ticket = Annotated[int, Meta(ge=0, le=9_007_199_254_740_991)]
Delta = Annotated[float, Meta(ge=1e-30, lt=1)]  # shares of less would be 0
Value = float | Literal["nan", "inf", "-inf"] | None


class Spoiled(Struct, frozen=True, forbid_unknown_fields=True):
    """A bound on bad readings: their share, and what their maker can see."""

    eps: float
    adversary: Literal["oblivious", "prescient", "malicious"] = "oblivious"
    causal: bool | None = None
    """Whether it is blind to the future; null follows the adversary."""
    error: Annotated[float, Meta(ge=0, lt=1)] = 0.0
    """How likely the bound is wrong, if it comes from an audit."""


class NewStudy(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is to be found out; the words are those of `truearm.Study`."""

    arms: Annotated[list[Name], Meta(min_length=1)]
    """Their names, all different."""
    id: Id | None = None
    """Its name in addresses; one is made up if none is given."""
    title: Annotated[str, Meta(max_length=200)] = ""
    """What people call it."""
    delta: Delta = 0.05
    """Error probability."""
    contamination: float | Spoiled | None = 0.05
    """How large a share of the readings may be bad; null if nobody knows."""
    tolerance: float | Annotated[str, Meta(max_length=40)] = 0.0
    """How much worse than the best an answer may be: in units of the readings, or relative, such as "2%"."""
    quantile: float = 0.5
    """Compare arms by this quantile."""
    goal: Literal["max", "min"] | None = None
    """Which readings are better; the larger ones if it is left out."""
    at_least: float | None = None
    """Compare arms by the share of readings that are at least this."""
    at_most: float | None = None
    """Compare arms by the share of readings that are at most this."""
    between: Annotated[list[float | Literal["inf", "-inf"]], Meta(min_length=2, max_length=2)] | None = None
    """Where readings may lie; others are bad. An end may be "inf" or "-inf"."""
    dependent_arms: bool = False
    """Whether what one arm gives may depend on another."""
    rounds: bool = False
    """Compare arms by which one wins more than half of the rounds, in which they are measured side by side."""
    policy: Literal["toptwo", "lucb"] = "toptwo"
    """What decides which arm is next."""
    max_pulls: Annotated[int, Meta(ge=0, le=100_000_000)] = 1_000_000
    """Pulls after which the study ends undecided."""
    seed: Annotated[int, Meta(ge=0, le=9_007_199_254_740_991)] | None = None
    """Shuffles the order within a batch."""
    passive: bool = False
    """Readings come as they come (`readings`); none are asked for."""
    lease: Annotated[float, Meta(gt=0, le=31_536_000)] = 3600.0
    """Seconds for which a worker that asks again gets the pulls it has."""


class Asking(Struct, frozen=True, forbid_unknown_fields=True):
    """Who asks, and for how many pulls; in rounds, whole rounds are handed out."""

    worker: Name
    n: Count = 1


class Out(Struct, frozen=True):
    """A pull that is out; `until` is when its worker is free of it, in seconds since 1970."""

    ticket: int
    arm: str
    worker: str | None = None
    until: float | None = None


class Asked(Struct, frozen=True):
    """Pulls to be made; none if the study is done or has spent its budget."""

    done: bool
    pulls: list[Out]


class Told(Struct, frozen=True, forbid_unknown_fields=True):
    """What a pull gave."""

    ticket: Ticket
    value: Value
    notes: dict[str, Any] | None = None
    arm: Name | None = None
    """Of which arm it is, so that a ticket of another one is refused: a restored log may hand it out anew."""


class Telling(Struct, frozen=True, forbid_unknown_fields=True):
    """Readings of pulls that were asked for."""

    readings: Annotated[list[Told], Meta(min_length=1)]
    worker: Name | None = None


class Releasing(Struct, frozen=True, forbid_unknown_fields=True):
    """Pulls that never began, and so may go out again."""

    tickets: Annotated[list[Ticket], Meta(min_length=1)]
    worker: Name | None = None


class Outcome(Struct, frozen=True, omit_defaults=True):
    """What became of one item; `detail` says why it was refused and what to do."""

    ticket: int
    outcome: Literal["told", "known", "released", "refused"]
    detail: str = ""


class Outcomes(Struct, frozen=True):
    """What became of each item, in the order they were sent."""

    done: bool
    outcomes: list[Outcome]


class Given(Struct, frozen=True, forbid_unknown_fields=True):
    """A reading that nobody asked for."""

    arm: Name
    value: Value
    notes: dict[str, Any] | None = None


class Giving(Struct, frozen=True, forbid_unknown_fields=True):
    """Readings of a passive study, in order; the same key again adds nothing."""

    key: Name
    readings: Annotated[list[Given], Meta(min_length=1)]


class Taken(Struct, frozen=True):
    """How many readings were added: none if the key was known."""

    added: int
    position: int


class Summary(Struct, frozen=True):
    """A study in a list."""

    id: str
    title: str
    began: float
    arms: int
    pulls: int
    out: int
    done: bool
    status: str | None
    best: str | None
    leader: str | None
    problem: str | None = None
    """Why it cannot be read, and what to do; its status is then "broken"."""


class Page(Struct, frozen=True):
    """Studies, the newest first; `next` is the address of more."""

    studies: list[Summary]
    next: str | None


class Standing(Struct, frozen=True):
    """An arm while the study goes on; evidence against it as natural logarithms."""

    name: str
    pulls: int
    told: int
    candidate: bool
    log_evidence: float | None
    share: float | None
    """Part of the evidence that excludes it which there is."""


class State(Struct, frozen=True):
    """Where a study stands. `result` is there once it is done, as `truearm ... --json` gives it."""

    id: str
    title: str
    began: float
    position: int
    head: str
    passive: bool
    definition: dict[str, Any]
    done: bool
    leader: str | None
    candidates: list[str]
    pulls: int
    arms: list[Standing]
    log_threshold: float | None
    out: list[Out]
    result: dict[str, Any] | None


class Made(Struct, frozen=True):
    """Where a new study is."""

    id: str
    created: bool


class Logged(Struct, frozen=True):
    """One event of a log: docs/log.md says what its columns hold."""

    position: int
    kind: str
    ticket: int | None
    arm: str | None
    draw: int | None
    value: str | None
    notes: Raw | None
    digest: str
    worker: str | None
    at: float


class Log(Struct, frozen=True):
    """A log, or the next part of it: all that a stranger needs to replay the study."""

    definition: str
    events: list[Logged]
    next: int | None


class Live(Struct, frozen=True):
    """A study as its page shows it: words, sections as HTML without a script or a style of their own."""

    position: int
    done: bool
    passive: bool
    status: str | None
    """Null while it goes on."""
    title: str
    answer: str
    """What is known now, in a few words."""
    summary: str
    pulls: int
    out: list[Out]
    sections: str
    picture: dict[str, Any]


class Estimating(Struct, frozen=True, forbid_unknown_fields=True):
    """A study that is thought of: how far apart its arms may be, in units of their spread or in shares."""

    arms: Annotated[int, Meta(ge=2, le=500)]
    gap: Annotated[float, Meta(ge=1e-6, le=1e6)]
    share: Annotated[float, Meta(gt=0, lt=1)] | None = None
    """Share of the best arm, if arms are compared by shares; the gap is then in shares too."""
    contamination: Annotated[float, Meta(ge=0, lt=0.5)] = 0.05
    delta: Delta = 0.05


class Estimate(Struct, frozen=True):
    """How many readings it may take; none if no number is enough."""

    pulls: int | None
    largest_eps: float
    """Share of bad readings from which on no number of them decides."""


class Health(Struct, frozen=True):
    """That the server answers and its database too."""

    status: Literal["ok"]
    version: str
