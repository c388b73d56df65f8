"""Before the first pull: whether a study can be decided at all, and how many pulls it will take.

The laws of the readings are supposed (a family and gaps) or taken from pilot data. Two cases stand side by side:
the readings turn out clean although a share eps of them might not be, and the bad readings do their worst, pulling
the best arm down and its rivals up. Lower bounds hold for every method (evidence section 3); what `toptwo` needs
is a formula in the characteristic time whose constants were fitted to simulations.
"""

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from truearm import bounds, families
from truearm.bounds import Constants
from truearm.bounds.limits import FIRST, Limit, cost, share_limit, solved
from truearm.bounds.search import last_true
from truearm.errors import InvalidArgument, OutOfReach
from truearm.evidence import Judge, Levels, best_looking
from truearm.evidence.sample import Sample
from truearm.evidence.shares import count_successes
from truearm.families import Law, Piecewise
from truearm.policies.elimination import GROWTH
from truearm.policies.toptwo import START
from truearm.problem import (
    Adversary,
    Contamination,
    Problem,
    ProblemOptions,
    Tolerance,
    as_number,
    check_count,
    check_delta,
    check_positive,
    check_reach,
    fix_options,
)
from truearm.report import numbers
from truearm.world.frames import tapes_of

Floats = NDArray[np.float64]

FAMILIES: Mapping[str, Callable[[], Law]] = {
    "gaussian": families.gaussian,
    "laplace": families.laplace,
    "logistic": families.logistic,
    "cauchy": families.cauchy,
    "uniform": families.uniform,
    "lognormal": families.lognormal,
}
NATS = (1.051, 1.319, 1.559, 0.59, 0.379)
"""What `toptwo` needs in nats, by `terms`: fitted to runs, and written here, by benchmarks/plan.py."""
_USUAL = 60.0  # size of a problem at which least is lost: smaller and larger ones need more nats
SHARE_RATIO = (
    2.5  # mean pulls over the limit for shares, at delta = .05: 2.38 clean, 2.60 certified (benchmarks/shares)
)
_BY_DELTA = {0.1: 3.26, 0.05: 2.65, 0.001: 1.74}  # how that ratio falls with delta: evidence section 5.2
_REACHES = tuple(step / 100 for step in range(2, 50, 2))
_EPS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)
_GAPS = (0.5, 0.75, 1.0, 1.5, 2.0)  # times the gap asked for
_PILOT_DATA, _SHARES = "pilot data", "shares"  # in place of a family
_PILOT = 100  # readings of an arm below which a share near one half has a standard error above 5 %
_TAIL = 1e-12  # cuts beyond these quantiles are not searched


class Outlook(NamedTuple):
    """What is to be expected in one case: a lower bound for all methods, and what `toptwo` needs."""

    lower_bound: float
    """Least expected pulls, of all arms together, of any method with this error probability."""
    expected: float
    """Pulls that `toptwo` needs on average: an estimate from simulations."""
    largest_eps: float
    """Contamination from which on no method can decide."""

    @property
    def decidable(self) -> bool:
        """Whether endless pulls would decide."""
        return math.isfinite(self.lower_bound)


class Size(NamedTuple):
    """Pulls of all arms together that one of the paper's algorithms makes, None where it cannot decide."""

    paper: int | None
    sharp: int | None


class Forecast(NamedTuple):
    """Expected pulls of `toptwo` at one gap and contamination, the readings being clean; None: undecidable."""

    gap: float
    eps: float
    pulls: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a study would take, before it begins."""

    arms: int
    gaps: tuple[float, ...]
    family: str
    delta: float
    contamination: Contamination
    quantile: float
    tolerance: Tolerance
    clean: Outlook
    """Readings turn out clean, and decisions must hold against the contamination all the same: `certified`."""
    worst: Outlook
    """A share eps of the readings is bad and does its worst; decisions as before."""
    promised: Outlook
    """The same readings, under the paper's promise that they do not hide the order: `separated`."""
    algorithm1: Size
    algorithm3: Size
    table: tuple[Forecast, ...]
    notes: tuple[str, ...] = ()
    shares: tuple[float, ...] | None = None
    """The shares planned for, the largest first; None for quantiles."""

    @property
    def identifiable(self) -> bool:
        """Whether endless pulls would decide, the readings being clean."""
        return self.clean.decidable

    @property
    def applicable(self) -> bool:
        """Whether the paper's algorithms can be asked at all: for medians, of laws whose regularity is known."""
        return self.family not in (_PILOT_DATA, _SHARES) and self.quantile == 0.5

    def __str__(self) -> str:
        return " ".join(filter(None, (*_told(self), *self.notes)))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; what is infinite becomes None."""
        c = self.contamination
        outlooks = {name: getattr(self, name) for name in ("clean", "worst", "promised")}
        return {
            "arms": self.arms,
            "gaps": list(self.gaps),
            "family": self.family,
            "delta": self.delta,
            "contamination": {"eps": c.eps, "adversary": c.adversary.value, "causal": c.causal},
            "quantile": self.quantile,
            "tolerance": {"amount": self.tolerance.amount, "relative": self.tolerance.relative},
            "identifiable": self.identifiable,
            **{
                name: {key: x if math.isfinite(x) else None for key, x in outlook._asdict().items()}
                for name, outlook in outlooks.items()
            },
            "algorithm1": self.algorithm1._asdict(),
            "algorithm3": self.algorithm3._asdict(),
            "table": [cell._asdict() for cell in self.table],
            "notes": list(self.notes),
            "shares": None if self.shares is None else list(self.shares),
        }


def plan(
    *,
    arms: int = 5,
    gap: float | Sequence[float] = 0.5,
    family: str | Law | Any = "gaussian",  # noqa: ANN401 - or a scipy.stats law
    pilot: Any = None,  # noqa: ANN401 - whatever narwhals understands
    arm: str | None = None,
    value: str | None = None,
    share: float | None = None,
    reach: float | None = None,
    **options: Unpack[ProblemOptions],
) -> Plan:
    """Tell before sampling whether a study can be decided, and how many pulls it will take.

    Parameters
    ----------
    arms, gap
        How many arms there are, and how far the others are behind the best in units of the readings: one number
        for all of them or one for each.
    family
        The law of the readings: "gaussian", "laplace", "logistic", "cauchy", "uniform" or "lognormal" of unit
        scale, a law from `truearm.families`, or a frozen scipy.stats law.
    pilot
        Readings to plan with: a frame, or a dict of arms; `arm` and `value` name its columns. It says what `arms`,
        `gap` and `family` would say, which are then not used.
    share
        Plan for shares: that of the best arm; `gap` is then in points, 0.1 for ten of a hundred, and no family
        matters.
    reach
        How far from the median, in quantile levels, the paper's algorithms may rely on the family; by default the
        one that serves each of them best.
    **options
        delta, contamination, tolerance, quantile, goal, at_least, at_most and between, as in `Study`. The
        tolerance is absolute; at_least and at_most say what a success is in a pilot. Readings of a pilot outside
        of between are removed: they would count as pulls and for no side (extensions E2).

    Examples
    --------
    >>> found = plan(arms=2, gap=0.5, contamination=0.05)
    >>> round(found.worst.lower_bound), round(found.promised.lower_bound), round(found.clean.largest_eps, 3)
    (687, 279, 0.197)
    """
    asked = Problem.of(
        ("best", "other"), **fix_options(options, rounds=False, regularity=None, dependent_arms=False)
    )
    declared, within, delta = asked.contamination, asked.tolerance, asked.delta
    if declared is None:
        msg = "contamination must be a number or a Contamination, but got None; use the share that may be bad"
        raise InvalidArgument(msg, "contamination")
    if within.relative:
        msg = f"tolerance={100 * within.amount:g}% is relative; a plan needs units of the readings, such as 0.1"
        raise InvalidArgument(msg, "tolerance", f"{100 * within.amount:g}%")
    tapes = None if pilot is None else tapes_of(pilot, arm, value)
    if asked.between is not None:
        tapes = _plausible(tapes, asked.between, asked.goal)
    if share is not None or asked.target == "share":
        shares, pilots = _supposed_shares(arms, gap, share, tapes, at_least=asked.at_least, at_most=asked.at_most)
        return _planned_shares(shares, declared, delta, within, pilots)
    if tapes is not None:
        supposed = _from_pilot(tapes, asked.level, asked.sign, room=within.amount)
    else:
        supposed = _from_family(arms, gap, family, asked.goal)
    setting = _Setting(supposed, declared, delta, within, asked.quantile, asked.level)
    return _planned(setting, check_reach(reach) if reach is not None else None)


def _plausible(tapes: Mapping[str, Floats] | None, between: Any, goal: str) -> dict[str, Floats]:  # noqa: ANN401
    """Return a pilot without the readings outside a range; those that timed out are not outside (evidence T8)."""
    if tapes is None:
        msg = "between needs the readings of a pilot; add a pilot, or remove between"
        raise InvalidArgument(msg, "between")
    (low, high), censored = between, math.inf if goal == "min" else -math.inf
    return {
        name: tape[~((tape < low) | (tape > high)) | (tape == censored)] for name, tape in tapes.items()
    }  # what is missing stays missing


def _supposed_shares(
    arms: int,
    gap: float | Sequence[float],
    share: float | None,
    tapes: Mapping[str, Floats] | None,
    *,
    at_least: float | None,
    at_most: float | None,
) -> tuple[tuple[float, ...], int | None]:
    """Return the shares to plan with, the largest first, and the readings of the arm that has the fewest."""
    if tapes is not None:
        problem = Problem(arms=tuple(tapes), at_least=at_least, at_most=at_most)
        judge = Judge.of(problem, [count_successes(tape, problem) for tape in tapes.values()])
        return tuple(judge.observed(i) for i in judge.ranked()), min(tape.size for tape in tapes.values())
    if share is None:
        name, limit = ("at_least", at_least) if at_most is None else ("at_most", at_most)
        msg = f"{name}={limit:g} needs the readings of a pilot; add one, or use share=0.6, that of the best arm"
        raise InvalidArgument(msg, name, limit)
    best = as_number("share", share, "give the share of the best arm, such as 0.6")
    if not 0 < best < 1:
        what = "it is the share of the best arm's readings that succeed"
        msg = f"share must be in (0, 1), but got {share!r}; {what}"
        raise InvalidArgument(msg, "share", share)
    gaps = _each_gap(check_count("arms", arms, least=2), gap)
    if beyond := [each for each in gaps if each > best]:
        msg = (
            f"gap must be at most the share of the best arm, {best:g}, but got {beyond[0]:g}; "
            "no share is below zero, and gaps are in points, such as 0.1"
        )
        raise InvalidArgument(msg, "gap", beyond[0])
    return (best, *(best - each for each in gaps)), None


def _share_outlook(
    seen: Sequence[float], declared: Contamination, delta: float, within: Tolerance, largest: float
) -> Outlook:
    found = share_limit(seen, declared.eps, declared.adversary, tolerance=within.amount, answer=0)
    bound = 0.0 if within and math.isfinite(found.time) else found.pulls(delta)
    return Outlook(bound, _share_pulls(found, delta), min(1.0, largest))


def clean_outlook(*, arms: int, gap: float, share: float | None, eps: float, delta: float) -> Outlook:
    """Return `clean` of a plan with one gap and nothing else of it, for a form that asks while one types."""
    declared = Contamination(eps)
    if share is not None:
        shares, _ = _supposed_shares(arms, gap, share, None, at_least=None, at_most=None)
        return _share_outlook(shares, declared, delta, Tolerance(), shares[0] - max(shares[1:]))
    supposed = _from_family(arms, gap, "gaussian", "max")
    return _outlook(_Setting(supposed, declared, check_delta(delta), Tolerance(), 0.5, 0.5), attacked=False)


def _planned_shares(
    shares: tuple[float, ...], declared: Contamination, delta: float, within: Tolerance, pilots: int | None
) -> Plan:
    """Return the plan for the largest of several shares (extensions 1.2, 1.5)."""
    adversary, gap = declared.adversary, shares[0] - max(shares[1:])
    malicious = adversary is Adversary.MALICIOUS

    def outlook(seen: Sequence[float], eps: float, largest: float) -> Outlook:
        return _share_outlook(seen, Contamination(eps, adversary), delta, within, largest)

    eps = declared.eps
    worst = [max(0.0, p - eps) if malicious else (1 - eps) * p for p in shares[:1]]
    worst += [min(1.0, p + eps) if malicious else (1 - eps) * p + eps for p in shares[1:]]
    # extensions 1.2: an adversary moves the gap g to (1-e) g - e and hides e more; malicious g - 2e, and 2e more
    room = gap + within.amount
    if malicious:
        largest = (room / 2, room / 4, room / 2)
    else:
        largest = (room / (1 + within.amount), room / (2 + room), room / (1 + gap))
    cells = []
    for factor in _GAPS:
        moved = (shares[0], *(max(0.0, shares[0] - factor * (shares[0] - p)) for p in shares[1:]))
        for at in _EPS:
            pulls = _share_pulls(share_limit(moved, at, adversary, tolerance=within.amount, answer=0), delta)
            cells.append(Forecast(factor * gap, at, math.ceil(pulls) if math.isfinite(pulls) else None))
    return Plan(
        arms=len(shares),
        gaps=tuple(shares[0] - p for p in shares[1:]),
        family=_SHARES,
        delta=delta,
        contamination=declared,
        quantile=0.5,
        tolerance=within,
        clean=outlook(shares, eps, largest[0]),
        worst=outlook(worst, eps, largest[1]),
        promised=outlook(worst, 0.0, largest[2]),
        algorithm1=Size(None, None),
        algorithm3=Size(None, None),
        table=tuple(cells),
        notes=("The paper's Algorithms 1 and 3 are for medians.", *_on_size(pilots)),
        shares=shares,
    )


class _Supposed(NamedTuple):
    """The laws to plan with, oriented so that bigger is better: the best arm, and its rivals."""

    best: Law
    rivals: tuple[Law, ...]
    name: str
    pilot: int | None = None
    """Readings of the arm that has the fewest of them, None where the laws are supposed."""

    def spread(self, factor: float, level: float) -> "_Supposed":
        """Return the same with all gaps multiplied."""
        at = self.best.ppf_left(level)
        kinds = {id(law): law for law in self.rivals}
        moved = {key: law.affine(1.0, (1 - factor) * (at - law.ppf_left(level))) for key, law in kinds.items()}
        return self._replace(rivals=tuple(moved[id(law)] for law in self.rivals))


class _Setting(NamedTuple):
    supposed: _Supposed
    contamination: Contamination
    delta: float
    tolerance: Tolerance
    quantile: float
    level: float
    """The quantile, oriented so that bigger is better."""

    @property
    def gaps(self) -> tuple[float, ...]:
        at = self.supposed.best.ppf_left(self.level)
        return tuple(at - law.ppf_left(self.level) for law in self.supposed.rivals)

    @property
    def tied(self) -> bool:
        """Whether some rival is as good as the best, with nothing to tolerate."""
        return not self.tolerance and min(self.gaps) <= 0


def _each_gap(arms: int, gap: float | Sequence[float]) -> list[float]:
    several = gap if isinstance(gap, Iterable) and not isinstance(gap, str) else [gap] * (arms - 1)
    return [check_positive("gap", each) for each in several]


def _from_family(arms: int, gap: float | Sequence[float], family: Any, goal: str) -> _Supposed:  # noqa: ANN401
    check_count("arms", arms, least=2)
    gaps = _each_gap(arms, gap)
    if len(gaps) != arms - 1:
        each = f"{arms - 1} of them, one for each arm behind the best"
        msg = f"gap must be one number or {each}, but got {len(gaps)}"
        raise InvalidArgument(msg, "gap", len(gaps))
    name, law = _named(family)
    law = law if goal == "max" else law.affine(-1.0)
    behind = {g: law.affine(1.0, -g) for g in gaps}
    return _Supposed(law, tuple(behind[g] for g in gaps), name)


def _named(family: Any) -> tuple[str, Law]:  # noqa: ANN401
    if isinstance(family, Law):
        return "the law given", family
    if not isinstance(family, str):
        return "the law given", families.of(family)
    if family not in FAMILIES:
        msg = f"family must be one of {', '.join(FAMILIES)}, a law or pilot data, but got {family!r}"
        raise InvalidArgument(msg)
    return family, FAMILIES[family]()


def _from_pilot(tapes: Mapping[str, Floats], level: float, sign: float, *, room: float) -> _Supposed:
    known = {name: sign * tape[~np.isnan(tape)] for name, tape in tapes.items()}
    if len(known) < 2 or any(tape.size < 2 for tape in known.values()):
        sizes = ", ".join(f"{name!r} {tape.size}" for name, tape in known.items())
        msg = f"pilot must hold at least two arms with two readings each, but got {sizes}"
        raise InvalidArgument(msg)
    samples = [Sample.of(tape) for tape in known.values()]
    best = best_looking(samples, range(len(samples)), level) or 0
    laws = [families.empirical(tape) for tape in _without_infinities(known, level, room)]
    rivals = tuple(law for i, law in enumerate(laws) if i != best)
    return _Supposed(laws[best], rivals, _PILOT_DATA, min(sample.n for sample in samples))


def _without_infinities(known: Mapping[str, Floats], level: float, room: float) -> list[Floats]:
    """Return readings of the same order whose infinities lie beyond all others, whatever shifts are made here.

    Only the order of readings matters to a cut, and shifts are a gap and the tolerance at most.
    """
    for name, tape in known.items():
        if not math.isfinite(np.quantile(tape, level, method="inverted_cdf")):
            msg = (
                f"pilot must tell how far apart arms are, but the quantile of arm {name!r} that is compared is "
                "infinite; leave that arm out"
            )
            raise InvalidArgument(msg)
    finite = np.concatenate([tape[np.isfinite(tape)] for tape in known.values()])
    low, high = float(finite.min()), float(finite.max())
    beyond = 4 * (high - low + room) + max(abs(low), abs(high)) + 1
    return [np.clip(tape, low - beyond, high + beyond) for tape in known.values()]


def _planned(setting: _Setting, reach: float | None) -> Plan:
    supposed, c, gaps = setting.supposed, setting.contamination, setting.gaps
    papers = _papers(setting, gaps, reach)
    return Plan(
        arms=1 + len(supposed.rivals),
        gaps=gaps,
        family=supposed.name,
        delta=setting.delta,
        contamination=c,
        quantile=setting.quantile,
        tolerance=setting.tolerance,
        clean=_outlook(setting, attacked=False),
        worst=_outlook(setting, attacked=True),
        promised=_outlook(setting, attacked=True, promised=True),
        algorithm1=papers.first,
        algorithm3=papers.third,
        table=_table(setting, gaps),
        notes=(*_on_ties(setting), *_on_size(supposed.pilot), *_on_papers(setting, papers)),
    )


def _outlook(setting: _Setting, *, attacked: bool, promised: bool = False) -> Outlook:
    levels = Levels.of(setting.level, None if promised else setting.contamination)
    found = _limit(setting, levels, attacked=attacked)
    bound = 0.0 if setting.tolerance else found.pulls(setting.delta)
    if not math.isfinite(found.time):  # also where an error probability of one half asks for nothing
        bound = math.inf
    largest = _largest_eps(setting, attacked=attacked, promised=promised)
    return Outlook(bound, toptwo_pulls(found, setting.delta), largest)


def terms(found: Limit, delta: float) -> tuple[float, ...]:
    """Return what the evidence that `toptwo` has to gather depends on (evidence section 5.2)."""
    rivals = [weight for arm, weight in enumerate(found.weights) if arm != found.answer]
    size = math.log(found.time * math.sqrt(max(rivals)) / _USUAL)
    return 1.0, math.log(1 / delta), 1 - 1 / len(rivals), max(0.0, -size), max(0.0, size)


def toptwo_pulls(found: Limit, delta: float) -> float:
    """Return the pulls that `toptwo` needs on average where no method can beat a limit: an estimate.

    It gathers 1/T nats per pull. Near the first pulls of all arms, which come before any decision, it needs more
    than either: the cube root of the sum of cubes (evidence section 5.2).
    """
    if not math.isfinite(found.time):
        return math.inf
    gathered = found.time * sum(c * term for c, term in zip(NATS, terms(found, delta), strict=True))
    first = START * len(found.weights)
    most = max(gathered, first)
    return most * math.cbrt((gathered / most) ** 3 + (first / most) ** 3)


def _share_pulls(found: Limit, delta: float) -> float:
    """Return the pulls `toptwo` needs on average for shares: the limit times what was measured."""
    if not math.isfinite(found.time):
        return math.inf
    pulls = found.pulls(delta) * SHARE_RATIO * _by_delta(delta) / _BY_DELTA[0.05]
    return max(pulls, float(START * len(found.weights)))


def _by_delta(delta: float) -> float:
    """Return the measured ratio, linear in log delta between the measured ones, the nearest of them beyond."""
    known = sorted(_BY_DELTA.items())
    return float(np.interp(math.log(delta), [math.log(d) for d, _ in known], [ratio for _, ratio in known]))


class _Seen(NamedTuple):
    """Masses of L under the best arm and of U under a rival, as the readings would show them."""

    law: Law
    eps: float
    malicious: bool

    def below(self, x: Floats, *, closed: bool) -> Floats:
        return self._lifted(self.law.cdf(x) if closed else self.law.cdf_left(x))

    def above(self, x: Floats, *, closed: bool) -> Floats:
        return self._lifted(1 - (self.law.cdf_left(x) if closed else self.law.cdf(x)))

    def _lifted(self, mass: Floats) -> Floats:
        """Return the mass after bad readings went there: the rule adds them, or moves clean ones."""
        if self.malicious:
            return np.minimum(mass + self.eps, 1.0)
        return self.eps + (1 - self.eps) * mass

    def clean_level(self, level: float) -> float:
        """Return the clean mass at which the seen mass reaches a level."""
        return level - self.eps if self.malicious else (level - self.eps) / (1 - self.eps)


def _limit(setting: _Setting, levels: Levels, *, attacked: bool) -> Limit:
    """Return the characteristic time with the laws supposed, rivals made worse by the tolerance."""
    c, supposed = setting.contamination, setting.supposed
    eps, malicious = (c.eps if attacked else 0.0), c.adversary is Adversary.MALICIOUS
    best = _Seen(supposed.best, eps, malicious)
    kinds = {id(law): law for law in supposed.rivals}  # equal rivals are one law, and looked at once
    places = list(kinds)
    kind_of = [places.index(id(law)) for law in supposed.rivals]
    shifted = [law.affine(1.0, -setting.tolerance.amount) for law in kinds.values()]
    rivals = [_Seen(law, eps, malicious) for law in shifted]
    spans = [_span(best, rival, levels) for rival in rivals]
    if setting.tied or any(span is None for span in spans):
        return Limit.never(1 + len(supposed.rivals), 0)
    cuts = [_cuts(best.law, r.law, *span) for r, span in zip(rivals, spans, strict=True) if span is not None]

    def costs(rival: int, x: Floats) -> tuple[Floats, Floats]:
        own = np.concatenate([best.below(x, closed=False), best.below(x, closed=True)])
        theirs = np.concatenate([rivals[rival].above(x, closed=True), rivals[rival].above(x, closed=False)])
        return cost(own, levels.low), cost(theirs, levels.high)

    time, ratios = solved(costs, cuts, np.bincount(kind_of).tolist())
    return Limit.of(time, ratios[kind_of], 0)


def _span(best: _Seen, rival: _Seen, levels: Levels) -> tuple[float, float] | None:
    """Return the cuts between which both arms pay, None if contamination can hide their order for ever."""
    low, high = best.clean_level(levels.low), rival.clean_level(levels.high)
    if min(low, high) <= 0:
        return None
    last = best.law.ppf_left(low)  # the lowest cut whose lower set has enough mass
    if float(rival.above(np.asarray(last), closed=False)) >= levels.high - 1e-12:
        return None  # evidence section 8: there the upper set has enough too
    first = rival.law.ppf_right(max(0.0, 1 - high))
    return min(first, last), last


def _cuts(best: Law, rival: Law, low: float, high: float) -> Floats:
    points = [np.linspace(low, high, FIRST)]
    for law in (best, rival):
        levels = np.linspace(law.cdf(low), law.cdf(high), FIRST)
        points.append(law.ppf_left(np.clip(levels, _TAIL, 1 - _TAIL)))
        if isinstance(law, Piecewise):
            points.append(law.knots)
    return np.unique(np.clip(np.concatenate(points), low, high))


def _largest_eps(setting: _Setting, *, attacked: bool, promised: bool) -> float:
    """Return the contamination from which on the order can be hidden, by bisection."""
    kinds = {id(law): law for law in setting.supposed.rivals}
    shifted = [law.affine(1.0, -setting.tolerance.amount) for law in kinds.values()]
    adversary = setting.contamination.adversary
    malicious = adversary is Adversary.MALICIOUS

    def decidable(eps: float) -> bool:
        at = Levels.of(setting.level, None) if promised else Levels.at(setting.level, eps, adversary)
        seen = eps if attacked else 0.0
        best = _Seen(setting.supposed.best, seen, malicious)
        return all(_span(best, _Seen(law, seen, malicious), at) is not None for law in shifted)

    if setting.tied or not decidable(0.0):
        return 0.0
    return last_true(decidable, 0.0, 1.0, accuracy=1e-9)


class _Papers(NamedTuple):
    """What Algorithms 1 and 3 need, told what regularity the family has, and what Algorithm 1 gives for it."""

    first: Size
    third: Size
    within: float | None = None
    """How far behind the best the arm that Algorithm 1 returns may be, None where it is the best."""


_NOTHING = _Papers(Size(None, None), Size(None, None))


def _papers(setting: _Setting, gaps: Sequence[float], reach: float | None) -> _Papers:
    if setting.supposed.pilot is not None or setting.level != 0.5:
        return _NOTHING
    tried = [_at_reach(setting, gaps, t) for t in (_REACHES if reach is None else (reach,))]
    found = [papers for papers in tried if papers.within is None and papers.first.sharp is not None] or tried
    chosen = [_least(found, name, i) for name in ("first", "third") for i in (0, 1)]
    sizes = [size for size, _ in chosen]
    within = max((w for size, w in chosen if size is not None and w is not None), default=None)
    return _Papers(Size(*sizes[:2]), Size(*sizes[2:]), within)


def _least(found: Sequence[_Papers], name: str, i: int) -> tuple[int | None, float | None]:
    """Return the least of one kind of size, and what comes with it."""
    sizes = [(size, papers.within) for papers in found if (size := getattr(papers, name)[i]) is not None]
    return min(sizes, key=lambda pair: pair[0], default=(None, None))


def _at_reach(setting: _Setting, gaps: Sequence[float], reach: float) -> _Papers:
    laws = (setting.supposed.best, *setting.supposed.rivals)
    B = max(law.minimal_B(reach) for law in laws)
    m2 = max(law.m2 for law in laws)
    c, amount = setting.contamination, setting.tolerance.amount
    if not 0 < B * m2 < math.inf:  # 0: an atom at the median, which the paper's algorithms cannot be told
        return _NOTHING
    shift = bounds.bias(c.eps, B, m2, c.adversary)
    effective = min(gaps) - 2 * shift  # the paper's gap, section 3
    wanted = max(effective, amount)
    if wanted < sys.float_info.min:
        return _NOTHING
    promise = {"eps": c.eps, "B": B, "m2": m2, "reach": reach, "adversary": c.adversary}
    # a rival with a negative effective gap can eliminate the best arm, and those left are then not bounded
    third = _algorithm3(setting, wanted, promise) if effective > 0 else Size(None, None)  # audit 1.l
    within = bounds.selection_gap(amount, shift, shift) if effective < amount else None  # erratum E3
    return _Papers(_algorithm1(setting, wanted, promise), third, within)


def _algorithm1(setting: _Setting, wanted: float, promise: Mapping[str, Any]) -> Size:
    k = 1 + len(setting.supposed.rivals)

    def size(constants: Constants) -> int | None:
        try:
            return k * bounds.uniform_sample_size(k, wanted, setting.delta, **promise, constants=constants)
        except OutOfReach:
            return None

    return Size(size("paper"), size("sharp"))


def _algorithm3(setting: _Setting, wanted: float, promise: Mapping[str, Any]) -> Size:
    """Return the pulls of all arms after which every rival with that effective gap is certainly excluded."""
    k = 1 + len(setting.supposed.rivals)
    try:
        last = bounds.early_stop_round(wanted, k, setting.delta, promise["B"], promise["m2"], survivor="any")
        schedule = bounds.elimination_schedule(
            k, setting.delta, promise["eps"], promise["reach"], promise["adversary"]
        )
        return Size(k * schedule.total(last), k * _sharp_rounds(setting, wanted, promise))
    except OutOfReach:
        return Size(None, None)


def _sharp_rounds(setting: _Setting, wanted: float, promise: Mapping[str, Any]) -> int:
    """Return the readings per arm at the first geometric look whose radius is a quarter of the gap (audit 1.l)."""
    k, n, r = 1 + len(setting.supposed.rivals), 0, 0
    while True:
        r += 1
        share = bounds.round_delta(setting.delta, k, r)
        least = bounds.median_sample_size(promise["B"] * promise["m2"], share, **promise)
        n = max(math.ceil(GROWTH * n), least)
        if bounds.counted_elimination_radius(r, n, k, delta=setting.delta, **promise) <= wanted / 4:
            return n


def _table(setting: _Setting, gaps: Sequence[float]) -> tuple[Forecast, ...]:
    cells = []
    for factor in _GAPS if min(gaps) > 0 else (1.0,):
        spread = setting._replace(supposed=setting.supposed.spread(factor, setting.level))
        for eps in _EPS:
            c = replace(setting.contamination, eps=eps)
            case = spread._replace(contamination=c)
            pulls = toptwo_pulls(_limit(case, Levels.of(case.level, c), attacked=False), case.delta)
            cells.append(Forecast(factor * min(gaps), eps, math.ceil(pulls) if math.isfinite(pulls) else None))
    return tuple(cells)


def _on_ties(setting: _Setting) -> list[str]:
    """Return that a rival is as good as the best, so that nobody can tell the two apart."""
    if not setting.tied:
        return []
    name = numbers.quantile_name(setting.quantile)
    return [f"The best arm and another have the same {name}: neither is better."]


def _on_size(n: int | None) -> list[str]:
    if n is None or n >= _PILOT:
        return []
    off = numbers.percent(0.5 / math.sqrt(n), digits=2)
    return [
        f"The pilot is small: an arm has {numbers.count(n)} readings, from which a share near one half is known "
        f"only to about {off}; take this plan as a rough guess."
    ]


def _on_papers(setting: _Setting, papers: _Papers) -> list[str]:
    notes = []
    if setting.supposed.pilot is not None:
        notes.append(
            "The paper's Algorithms 1 and 3 need to be told how regular the laws are, which data cannot tell."
        )
    elif setting.level != 0.5:
        notes.append("The paper's Algorithms 1 and 3 are for medians.")
    elif papers.first == papers.third == Size(None, None):
        notes.append(
            "The paper's Algorithms 1 and 3 cannot decide: with the constants of the family an effective gap is "
            "not positive."
        )
    elif papers.within is not None:
        notes.append(_on_within(papers, papers.within))
    if setting.tolerance:
        notes.append("With a tolerance several answers are right, and no lower bound is claimed.")
    return notes


def _on_within(papers: _Papers, within: float) -> str:
    """Return what the tolerance means to the paper's algorithms: it bounds the effective gap, not the true one."""
    both = "Algorithm 1 keeps" if papers.third == Size(None, None) else "Algorithms 1 and 3 keep"
    never = " Algorithm 3 promises nothing here, where effective gaps may be negative."
    return (
        f"The paper's {both} the effective gap within the tolerance, which is less than it seems: the arm "
        f"returned may be {numbers.number(within)} behind the best, the tolerance and what contamination can "
        "shift two medians by."
        f"{never if papers.third == Size(None, None) else ''}"
    )


def _told(found: Plan) -> list[str]:
    c, clean, worst = found.contamination, found.clean, found.worst
    eps = numbers.percent(c.eps)
    limits = f"{_eps(clean)} if the readings turn out clean, {_eps(worst)} if the bad ones do their worst"
    if not clean.largest_eps:
        return [f"{found.arms} arms cannot be told apart, however many pulls are made and however clean they are."]
    if not clean.decidable:
        return [
            f"{found.arms} arms cannot be told apart at {eps} contamination, however many pulls are made; "
            f"they can up to {limits}."
        ]
    return _on_pulls(found, eps)


def _eps(outlook: Outlook) -> str:
    return numbers.percent(outlook.largest_eps, ROUND_FLOOR)


def _on_pulls(found: Plan, eps: str) -> list[str]:
    clean, worst = found.clean, found.worst
    also = f"about {_whole(worst.expected)}" if worst.decidable else "but none do"
    second = f", {_whole(worst.lower_bound)} in the second" if worst.decidable else ""
    return [
        f"About {_whole(clean.expected)} pulls tell {found.arms} arms apart at {eps} contamination if the "
        f"readings turn out clean, {also} if the bad ones do their worst (estimates from simulations).",
        f"No method needs fewer than {_whole(clean.lower_bound)} in the first case{second}."
        if not found.tolerance
        else "",
        f"They can be told apart up to {_eps(clean)} contamination in the first case, {_eps(worst)} in the "
        "second.",
    ]


def _whole(pulls: float) -> str:
    return numbers.count(math.ceil(pulls))
