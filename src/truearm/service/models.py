"""Bodies of requests and answers as msgspec types, from which the published schema is made, and errors as answers.

A reading is a number, or "nan", "inf" or "-inf", or null if it is missing. An error (RFC 9457) says which field
and value is wrong, why, and what to do.
"""

import json
import re
from typing import Annotated, Any, Literal, get_type_hints

import msgspec
from msgspec import Meta, Raw, Struct

from truearm.data.importers import parse_float
from truearm.errors import ARGUMENT, InvalidArgument, ProtocolError, TruearmError, VerificationError
from truearm.store import StoreError


def says(description: str, **limits: Any) -> Meta:  # noqa: ANN401 - of `Meta`
    """Return what the published schema says about a field."""
    return Meta(description=description, **limits)


Name = Annotated[str, Meta(min_length=1, max_length=200)]
ID = "^[a-z0-9][a-z0-9-]*$"
Id = Annotated[str, Meta(pattern=ID, min_length=1, max_length=64)]
Count = Annotated[int, Meta(ge=1, le=1_000_000_000)]
Ticket = Annotated[int, Meta(ge=0, le=9_007_199_254_740_991)]
Delta = Annotated[float, Meta(ge=1e-30, lt=1)]  # smaller shares of it would be 0
Value = float | Literal["nan", "inf", "-inf"] | None
Ends = Annotated[list[float | Literal["inf", "-inf"]], Meta(min_length=2, max_length=2)]


class Problem(Struct, frozen=True, omit_defaults=True):
    """An error (RFC 9457): `detail` has reason and remedy, `field` and `value` the place in the request."""

    status: int
    title: str
    detail: str
    type: str = "about:blank"
    field: str | None = None
    value: Any = None


class Bound(Struct, frozen=True, forbid_unknown_fields=True):
    """A bound on bad readings: their share, and what their maker can see."""

    eps: float
    adversary: Literal["oblivious", "prescient", "malicious"] = "oblivious"
    causal: Annotated[bool | None, says("Bad values cannot depend on later readings; null: by adversary.")] = None
    error: Annotated[float, says("Probability that the bound is wrong, if an audit found it.", ge=0, lt=1)] = 0.0


class NewStudy(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A study to create; the fields are the arguments of `truearm.Study`."""

    arms: Annotated[list[Name], says("Their names, all different.", min_length=1)]
    id: Annotated[Id | None, says("Its name in addresses; a random one by default.")] = None
    title: Annotated[str, says("What people call it.", max_length=200)] = ""
    delta: Annotated[Delta, says("Error probability.")] = 0.05
    contamination: Annotated[
        float | Bound | Literal["auto", "blind"] | None,
        says(
            'Largest share of bad readings; null: unknown. "auto": "blind" (docs/rounds.md) in rounds, else 0.05.'
        ),
    ] = "auto"
    tolerance: Annotated[
        float | Annotated[str, Meta(max_length=40)],
        says('Also accept an arm that is this much worse: in units of the readings, or as "2%".'),
    ] = 0.0
    quantile: Annotated[float, says("Compare arms by this quantile.")] = 0.5
    goal: Annotated[Literal["max", "min"] | None, says("Which readings are better; large ones by default.")] = None
    at_least: Annotated[float | None, says("Compare arms by the share of readings that are at least this.")] = None
    at_most: Annotated[float | None, says("Compare arms by the share of readings that are at most this.")] = None
    between: Annotated[Ends | None, says("Lowest and highest plausible reading; others are bad.")] = None
    dependent_arms: Annotated[bool, says("Whether readings of different arms move together.")] = False
    rounds: Annotated[bool, says("Measure arms side by side; the best wins more than half of the rounds.")] = False
    policy: Annotated[Literal["toptwo", "lucb"], says("What chooses the next arm.")] = "toptwo"
    max_pulls: Annotated[int, says("Pulls after which it ends undecided.", ge=0, le=100_000_000)] = 1_000_000
    seed: Annotated[Ticket | None, says("Shuffles the order within a batch.")] = None
    passive: Annotated[bool, says("Readings arrive on their own (`readings`); no pulls are handed out.")] = False
    lease: Annotated[
        float, says("Seconds for which a worker that asks again gets its pulls.", gt=0, le=31_536_000)
    ] = 3600.0


class Ask(Struct, frozen=True, forbid_unknown_fields=True):
    """A worker, and how many pulls it wants; in rounds, whole rounds are handed out."""

    worker: Name
    n: Count = 1


class Out(Struct, frozen=True):
    """A pending pull; `until` is when its lease ends, in seconds since 1970."""

    ticket: int
    arm: str
    worker: str | None = None
    until: float | None = None


class Pulls(Struct, frozen=True):
    """Pulls to make; none if the study is done or its budget is spent."""

    done: bool
    pulls: list[Out]


class PullReading(Struct, frozen=True, forbid_unknown_fields=True):
    """The reading of a pull."""

    ticket: Ticket
    value: Value
    notes: dict[str, Any] | None = None
    arm: Annotated[Name | None, says("The arm of the ticket; refused if it is another one.")] = None


class Tell(Struct, frozen=True, forbid_unknown_fields=True):
    """Readings of pulls that were asked for."""

    readings: Annotated[list[PullReading], Meta(min_length=1)]
    worker: Name | None = None


class Release(Struct, frozen=True, forbid_unknown_fields=True):
    """Pulls that were never started, and so may be handed out again."""

    tickets: Annotated[list[Ticket], Meta(min_length=1)]
    worker: Name | None = None


class Outcome(Struct, frozen=True, omit_defaults=True):
    """The outcome of one item; `detail` says why it was refused and what to do."""

    ticket: int
    outcome: Literal["told", "known", "released", "refused"]
    detail: str = ""


class Outcomes(Struct, frozen=True):
    """The outcome of each item, in the order of the request."""

    done: bool
    outcomes: list[Outcome]


class ArmReading(Struct, frozen=True, forbid_unknown_fields=True):
    """A reading of a passive study."""

    arm: Name
    value: Value
    notes: dict[str, Any] | None = None


class Give(Struct, frozen=True, forbid_unknown_fields=True):
    """Readings of a passive study, in order; the same key again adds nothing."""

    key: Name
    readings: Annotated[list[ArmReading], Meta(min_length=1)]


class Added(Struct, frozen=True):
    """How many readings were added: 0 if the key was known."""

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
    problem: Annotated[str | None, says('Why its status is "broken", and what to do.')] = None


class Page(Struct, frozen=True):
    """Studies, the newest first; `next` is the address of the next page."""

    studies: list[Summary]
    next: str | None


class Standing(Struct, frozen=True):
    """An arm while the study runs; the evidence against it is a natural logarithm."""

    name: str
    pulls: int
    told: int
    candidate: bool
    log_evidence: float | None
    share: Annotated[float | None, says("The part of the evidence needed to exclude it.")]


class State(Struct, frozen=True):
    """The state of a study. `result` is set once it is done, as `truearm ... --json` prints it."""

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


class Created(Struct, frozen=True):
    """The name of a study, and whether it is new."""

    id: str
    created: bool


class Logged(Struct, frozen=True):
    """One event of a log; docs/certificate.md explains its columns."""

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
    """A page of a log; all pages are enough to replay the study."""

    definition: str
    events: list[Logged]
    next: int | None


class Live(Struct, frozen=True):
    """A study as its page shows it: text, and sections as HTML without scripts or styles."""

    position: int
    done: bool
    passive: bool
    status: Annotated[str | None, says("Null while it runs.")]
    title: str
    answer: Annotated[str, says("What is known now, in a few words.")]
    summary: str
    pulls: int
    out: list[Out]
    sections: str
    picture: dict[str, Any]


class Plan(Struct, frozen=True, forbid_unknown_fields=True):
    """A planned study: the smallest difference of interest, in units of the spread or as a share."""

    arms: Annotated[int, Meta(ge=2, le=500)]
    gap: Annotated[float, Meta(ge=1e-6, le=1e6)]
    share: Annotated[
        Annotated[float, Meta(gt=0, lt=1)] | None, says("Share of the best arm; the gap is then a share too.")
    ] = None
    contamination: Annotated[float, Meta(ge=0, lt=0.5)] = 0.05
    delta: Delta = 0.05


class Estimate(Struct, frozen=True):
    """The number of readings it may take; null if no number is enough."""

    pulls: int | None
    largest_eps: Annotated[float, says("Share of bad readings at which no number decides.")]


class Health(Struct, frozen=True):
    """The server answers, and its database accepts writes."""

    status: Literal["ok"]
    version: str


_MAX_VALUE_CHARS = 200  # of a value that an answer repeats


class Refused(TruearmError):
    """A request is refused: a problem, and headers of the answer."""

    def __init__(self, status: int, title: str, detail: str, **more: Any) -> None:  # noqa: ANN401
        super().__init__(detail)
        self.headers: dict[str, str] = more.pop("headers", {})
        self.problem = Problem(status, title, detail, **{name: _short(value) for name, value in more.items()})


_STATUS: tuple[tuple[type[TruearmError], int, str], ...] = (
    (VerificationError, 500, "The log was changed"),
    (StoreError, 503, "The database failed"),
    (InvalidArgument, 422, "Invalid value"),
    (ProtocolError, 409, "Conflict"),
    (TruearmError, 500, "Error"),
)


def as_refused(error: TruearmError) -> Refused:
    """Return an error of truearm as a refused request."""
    if isinstance(error, Refused):
        return error
    status, title = next((status, title) for kind, status, title in _STATUS if isinstance(error, kind))
    headers = {"Retry-After": "1"} if status == 503 else {}
    detail = as_fields(str(error))
    return Refused(status, title, detail, field=error.argument, value=error.value, headers=headers)


def as_fields(text: str) -> str:
    """Return a message with Python arguments (`name=value`) written as JSON fields."""

    def write(found: re.Match[str]) -> str:
        plain = {"True": "true", "False": "false", "None": "null"}.get(found[2], found[2])
        return f'"{found[1]}": ' + plain.translate(str.maketrans("'()", '"[]'))

    return ARGUMENT.sub(write, text)


_WORDS = {
    "int": "an integer",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    f" matching regex '{ID}'": " of lower-case letters, digits and hyphens",
    " | ": " or ",
}


def explain_invalid(error: Exception, body: bytes) -> Refused:
    """Return which field of a body is wrong, and its value, from what msgspec says."""
    if not isinstance(error, msgspec.ValidationError):
        why = "it is nested too deep" if isinstance(error, RecursionError) else error
        detail = rf"the body must be JSON in UTF-8 without lone surrogates (\ud800), but: {why}; see /openapi.json"
        return Refused(400, "Not JSON", detail)
    words, _, field = str(error).rstrip("`").partition(" - at `$")
    about_field = r"Object (missing required|contains unknown) field `(.*)"
    if found := re.fullmatch(about_field, words.rstrip("`"), re.DOTALL):
        field = f"{field}.{found[2]}"
        words = "is missing" if found[1].startswith("missing") else "is not a field"
    elif words.startswith("Expected"):
        kinds, _, rest = words.removeprefix("Expected `").partition(", got")[0].partition("`")
        words = f"must be {re.sub('[a-z]+| [|] ', lambda kind: _WORDS.get(kind[0], kind[0]), kinds)}"
        words += _WORDS.get(rest, rest)
    elif words.startswith("Invalid enum"):
        hints = get_type_hints(NewStudy) | get_type_hints(Bound) | get_type_hints(PullReading)
        [texts] = re.findall(r"Literal\[(.*?)\]", str(hints[re.findall("[a-z_]+", field)[-1]]))
        words = "as text must be one of " + texts.replace("'", '"')
    elif words == "Number out of range":
        words = "must be at most 1.8e308 in size"
    field, value = field.lstrip("."), _value_at(body, field)
    got = "" if value is None or "[...]" in field else f", but got {json.dumps(value, ensure_ascii=False):.80}"
    detail = f"{field or 'the body'} {words}{got}; see /openapi.json"
    return Refused(422, "Invalid value", detail, field=field or None, value=value)


def _value_at(body: bytes, field: str) -> Any:  # noqa: ANN401 - whatever was sent
    """Return the value at a place in a body, or None."""
    try:
        value = json.loads(body, parse_float=parse_float)
        for number, name in re.findall(r"\[(\d+)\]|([^.\[\]]+)", field):
            value = value[int(number) if number else name]
    except (LookupError, TypeError, ValueError, RecursionError):
        return None
    return _short(value)


def _short(value: Any) -> Any:  # noqa: ANN401
    """Return a value if it is short, else the beginning of it as text."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return value if len(text) <= _MAX_VALUE_CHARS else f"{text[:_MAX_VALUE_CHARS]}..."
