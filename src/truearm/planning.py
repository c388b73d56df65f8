"""Before the first pull: whether a study can be decided, and how many pulls it will take.

The laws of the readings are assumed (a family and gaps) or taken from a pilot. Two cases: the readings turn out
clean although a share eps of them might not be, and the bad readings do their worst. Lower bounds hold for every
method (evidence section 3); what `toptwo` needs is a formula in the characteristic time, fitted to simulations.
"""

import math
import sys
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import count
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from truearm import bounds, families
from truearm.bounds.limits import Limit, share_limit
from truearm.bounds.mixture import log_mixture
from truearm.bounds.search import last_true
from truearm.claims.plain import to_plain
from truearm.data.columns import Columns
from truearm.data.tables import load
from truearm.errors import InvalidArgument, OutOfReach
from truearm.evidence import Judge, Levels, Trust, by_looks
from truearm.evidence.levels import divergence
from truearm.evidence.sample import Sample
from truearm.evidence.shares import count_successes
from truearm.evidence.wins import PRIOR as ROUND_PRIOR
from truearm.evidence.wins import win_level
from truearm.families import Law
from truearm.lab.adversaries import Observed
from truearm.lab.limits import characteristic_time, is_decidable
from truearm.policies.paper import GROWTH
from truearm.policies.toptwo import START
from truearm.problem import (
    Adversary,
    Contamination,
    Problem,
    ProblemOptions,
    Tolerance,
    as_number,
    check_count,
    check_positive,
    check_reach,
    fix_options,
    refuse,
    require,
)
from truearm.report import words

Floats = NDArray[np.float64]

FAMILIES: Mapping[str, Callable[[], Law]] = {
    name: getattr(families, name) for name in ("gaussian", "laplace", "logistic", "cauchy", "uniform", "lognormal")
}
NATS = (1.051, 1.319, 1.559, 0.59, 0.379)
"""What `toptwo` needs in nats, by `terms`: fitted to runs, and written here, by benchmarks/plan.py."""
SHARE_NATS = (0.443, 1.299, 1.314, 0.546, 0.478)
"""The same for shares."""
_USUAL = 60.0  # size of a problem at which least is lost: smaller and larger ones need more nats
_REACHES = tuple(step / 100 for step in range(2, 50, 2))
_GRID = 2000  # points of the law of the best arm, for the share of rounds that it wins
_MAX_ROUNDS = 2**40
_EPS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)
_GAPS = (0.5, 0.75, 1.0, 1.5, 2.0)  # times the gap asked for
_PILOT_DATA, _SHARES = "pilot data", "shares"  # in place of a family


class Outlook(NamedTuple):
    """What to expect in one case: a lower bound for all methods, and what `toptwo` needs."""

    lower_bound: float
    """Least expected pulls, of all arms together, of any method with this error probability."""
    expected: float
    """Pulls that `toptwo` needs on average: an estimate from simulations."""
    largest_eps: float
    """Contamination from which on no method can decide."""

    @property
    def decidable(self) -> bool:
        """Whether unlimited pulls would decide."""
        return math.isfinite(self.lower_bound)


class Size(NamedTuple):
    """Pulls of all arms together that one of the paper's algorithms makes, None where it cannot decide."""

    paper: int | None
    sharp: int | None


class Forecast(NamedTuple):
    """Expected pulls of `toptwo` at one gap and contamination if the readings are clean; None: undecidable."""

    gap: float
    eps: float
    pulls: int | None


_NEVER = Size(None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a study would take, before it starts."""

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
    """The same readings, under the paper's assumption that they do not reverse the order: `separated`."""
    algorithm1: Size
    algorithm3: Size
    table: tuple[Forecast, ...]
    shares: tuple[float, ...] | None = None
    """The shares planned for, the largest first; None for quantiles."""
    wins: tuple[float, ...] | None = None
    """In rounds, the share that the best arm wins against each other one."""
    pilot_size: int | None = None
    """Readings of the arm of the pilot that has fewest."""
    within: float | None = None
    """How far behind the best the arm that Algorithm 1 returns may be, None where it is the best."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know beside the numbers."""
        return tuple(words.plan_notes(self))

    @property
    def identifiable(self) -> bool:
        """Whether unlimited clean readings would decide."""
        return self.clean.decidable

    @property
    def applicable(self) -> bool:
        """Whether the paper's algorithms apply: for medians, of laws whose regularity is known."""
        return self.family not in (_PILOT_DATA, _SHARES) and self.quantile == 0.5 and self.wins is None

    def __str__(self) -> str:
        return " ".join((*words.plan_sentences(self), *self.notes))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; what is infinite becomes None."""
        c, plain = self.contamination, {field.name: getattr(self, field.name) for field in fields(self)}
        declared = {"eps": c.eps, "adversary": c.adversary, "causal": c.causal}
        plain["contamination"] = "blind" if c.blind else declared
        for name, value in plain.items():
            if isinstance(value, Outlook | Size):
                plain[name] = value._asdict()
        plain["table"] = [cell._asdict() for cell in self.table]
        for name in ("pilot_size", "within", *(("wins",) if self.wins is None else ())):
            del plain[name]
        return dict(to_plain({**plain, "identifiable": self.identifiable, "notes": self.notes}, null=True))


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
    """Predict before sampling whether a study can be decided, and how many pulls it will take.

    Parameters
    ----------
    arms, gap
        The number of arms, and how far the others are behind the best in units of the readings: one number for
        all of them or one for each.
    family
        The law of the readings: "gaussian", "laplace", "logistic", "cauchy", "uniform" or "lognormal" of unit
        scale, a law from `truearm.families`, or a frozen scipy.stats law.
    pilot
        Readings to plan with, in place of `arms`, `gap` and `family`: a frame, or a dict of arms; `arm` and
        `value` name its columns.
    share
        Plan for shares: that of the best arm; `gap` is then in points, 0.1 for ten of a hundred.
    reach
        How far from the median, in quantile levels, the paper's algorithms may rely on the family; by default the
        one that serves each of them best.
    **options
        delta, contamination, tolerance, quantile, goal, at_least, at_most, between and rounds, as in `Study`. The
        tolerance is absolute; at_least and at_most say what a success is in a pilot. Readings of a pilot outside
        of between are removed: they would count as pulls and for no side (extensions E2).

    Examples
    --------
    >>> found = plan(arms=2, gap=0.5, contamination=0.05)
    >>> round(found.worst.lower_bound), round(found.promised.lower_bound), round(found.clean.largest_eps, 3)
    (687, 279, 0.197)
    """
    if options.get("rounds"):
        options.setdefault("contamination", "blind")
        msg = "share plans for shares of single readings, not for rounds; remove share or rounds"
        refuse(share is not None, msg, "share", share)
    asked = Problem.of(("best", "other"), **fix_options(options, regularity=None, dependent_arms=False))
    known = asked.contamination is not None
    require(known, "contamination", None, "be a number or a Contamination", "use the share that may be bad")
    amount = f"{100 * asked.tolerance.amount:g}%"
    msg = f"tolerance={amount} is relative; a plan needs units of the readings, such as 0.1"
    refuse(asked.tolerance.relative, msg, "tolerance", amount)
    tapes = None if pilot is None else load(pilot, Columns(arm, value)).tapes
    if asked.between is not None:
        tapes = _remove_outside(tapes, asked)
    smallest = None if tapes is None else min((int((~np.isnan(tape)).sum()) for tape in tapes.values()), default=0)
    model: _Model
    if share is not None or asked.target == "share":
        model, name = _assume_shares(asked, arms, gap, share, tapes), _SHARES
    elif tapes is not None:
        model, name = _pilot_laws(asked, tapes), _PILOT_DATA
    else:
        model, name = _family_laws(asked, arms, gap, family)
    if asked.rounds and isinstance(model, _Laws):
        model = _Rounds(asked, model)
    return _plan(model, name, smallest, None if reach is None else check_reach(reach))


def clean_outlook(*, arms: int, gap: float, share: float | None, eps: float, delta: float) -> Outlook:
    """Return `clean` of a plan with one gap, without computing the rest."""
    asked = Problem.of(("best", "other"), contamination=eps, delta=delta)
    if share is not None:
        return _assume_shares(asked, arms, gap, share, None).outlook(_CLEAN, eps)
    return _family_laws(asked, arms, gap, "gaussian")[0].outlook(_CLEAN, eps)


class _Case(NamedTuple):
    """Whether bad readings do their worst, and whether decisions rest on the paper's assumption."""

    attacked: bool = False
    separated: bool = False


_CLEAN, _WORST, _SEPARATED = _Case(), _Case(attacked=True), _Case(attacked=True, separated=True)


@dataclass(frozen=True)
class _Model(ABC):
    """What the arms are like, the best first; bigger is better."""

    asked: Problem

    @property
    @abstractmethod
    def gaps(self) -> tuple[float, ...]:
        """How far the others are behind the best."""

    @abstractmethod
    def spread(self, factor: float) -> "_Model":
        """Return the same with all gaps multiplied."""

    @abstractmethod
    def outlook(self, case: _Case, eps: float) -> Outlook:
        """Return what to expect in a case."""

    @property
    def is_malicious(self) -> bool:
        return self.asked.declared.adversary is Adversary.MALICIOUS

    def limit_outlook(self, found: Limit, largest_eps: float, nats: Sequence[float]) -> Outlook:
        """Return what to expect where no method can beat a limit."""
        bound = 0.0 if self.asked.tolerance else found.pulls(self.asked.delta)
        if not math.isfinite(found.time):  # also where an error probability of one half asks for nothing
            bound = math.inf
        return Outlook(bound, toptwo_pulls(found, self.asked.delta, nats), largest_eps)


@dataclass(frozen=True)
class _Laws(_Model):
    """Laws whose quantiles are compared."""

    laws: tuple[Law, ...]

    @property
    def gaps(self) -> tuple[float, ...]:
        best, *others = (law.ppf_left(self.asked.level) for law in self.laws)
        return tuple(best - other for other in others)

    def spread(self, factor: float) -> "_Laws":
        best, *rivals = self.laws
        moved = {id(law): law.affine(1.0, (1 - factor) * gap) for law, gap in zip(rivals, self.gaps, strict=True)}
        return replace(self, laws=(best, *(moved[id(law)] for law in rivals)))

    def outlook(self, case: _Case, eps: float) -> Outlook:
        def is_possible(eps: float) -> bool:
            return is_decidable(*self._observe(eps, case), tolerance=tolerance)

        tolerance = self.asked.tolerance.amount
        if not tolerance and min(self.gaps) <= 0:
            return self.limit_outlook(Limit.never(len(self.laws), 0), 0.0, NATS)
        largest = last_true(is_possible, 0.0, 1.0, accuracy=1e-9) if is_possible(0.0) else 0.0
        found = characteristic_time(*self._observe(eps, case), tolerance=tolerance)
        return self.limit_outlook(found, largest, NATS)

    def _observe(self, eps: float, case: _Case) -> tuple[list[Observed], Levels]:
        levels = Trust(0.0 if case.separated else eps, self.asked.declared.adversary).levels(self.asked.level)
        bad, (best, *rivals) = eps if case.attacked else 0.0, self.laws
        seen = [Observed(best, bad, -math.inf, "top" if self.is_malicious else "any")]
        return seen + [
            Observed(law, bad, math.inf, "bottom" if self.is_malicious else "any") for law in rivals
        ], levels


@dataclass(frozen=True)
class _Shares(_Model):
    """Shares of successes (extensions 1.2, 1.5)."""

    shares: tuple[float, ...]

    @property
    def gaps(self) -> tuple[float, ...]:
        return tuple(self.shares[0] - p for p in self.shares[1:])

    def spread(self, factor: float) -> "_Shares":
        moved = (max(0.0, self.shares[0] - factor * gap) for gap in self.gaps)
        return replace(self, shares=(self.shares[0], *moved))

    def outlook(self, case: _Case, eps: float) -> Outlook:
        (best, *rivals), declared = self.shares, self.asked.declared.adversary
        if case.attacked and self.is_malicious:
            best, rivals = max(0.0, best - eps), [min(1.0, p + eps) for p in rivals]
        elif case.attacked:
            best, rivals = (1 - eps) * best, [(1 - eps) * p + eps for p in rivals]
        allowed, tolerance = 0.0 if case.separated else eps, self.asked.tolerance.amount
        found = share_limit((best, *rivals), allowed, declared, tolerance=tolerance, answer=0)
        return self.limit_outlook(found, self._largest_eps(case), SHARE_NATS)

    def _largest_eps(self, case: _Case) -> float:
        # the gap g becomes (1-e) g - e and e more is hidden; malicious g - 2e, and 2e more: extensions 1.2
        gap, tolerance = min(self.gaps), self.asked.tolerance.amount
        room = gap + tolerance
        if self.is_malicious:
            return min(1.0, room / 4 if case == _WORST else room / 2)
        ends = {_CLEAN: room / (1 + tolerance), _WORST: room / (2 + room), _SEPARATED: room / (1 + gap)}
        return min(1.0, ends[case])


@dataclass(frozen=True)
class _Rounds(_Model):
    """Laws compared side by side: the best one wins a share of the rounds against each other (extensions E1)."""

    laws: _Laws

    @property
    def gaps(self) -> tuple[float, ...]:
        return self.laws.gaps

    def spread(self, factor: float) -> "_Rounds":
        return replace(self, laws=self.laws.spread(factor))

    @property
    def wins(self) -> tuple[float, ...]:
        """The share of rounds that the best arm wins against each other one, up to the tolerance."""
        best, *rivals = self.laws.laws
        x = np.asarray(best.ppf_left((np.arange(_GRID) + 0.5) / _GRID)) + self.asked.tolerance.amount
        return tuple(float(np.mean(rival.cdf_left(x))) for rival in rivals)

    def outlook(self, case: _Case, eps: float) -> Outlook:
        """Return what rounds take: all arms left are in each, so the best has as many as its nearest rival."""
        delta, wins = self.asked.delta, self.wins

        def losses(eps: float) -> tuple[list[float], float]:
            """Return the shares lost as observed, a round with a bad reading at the worst, and their bound."""
            bad = eps if case.attacked else 0.0
            lost = [1 - (win - 2 * bad if self.is_malicious else (1 - bad) ** 2 * win) for win in wins]
            return lost, win_level(0.0 if case.separated else eps, self.asked.declared.adversary)

        def is_possible(eps: float) -> bool:
            lost, level = losses(eps)
            return max(lost) < level

        largest = last_true(is_possible, 0.0, 0.5, accuracy=1e-6) if is_possible(0.0) else 0.0
        if not is_possible(eps):
            return Outlook(math.inf, math.inf, largest)
        lost, level = losses(eps)
        rounds = [_rounds_until(share, level, math.log(2 * len(lost) / delta)) for share in lost]
        least = [max(0.0, math.log(1 / (2.4 * delta))) / divergence(share, level) for share in lost]
        bound = 0.0 if self.asked.tolerance else sum(least) + max(least)
        return Outlook(bound, sum(rounds) + max(rounds), largest)


def _rounds_until(share: float, level: float, log_bar: float) -> int:
    """Return after how many rounds the evidence reaches a bar if this share of them is in S: an estimate."""

    def is_enough(n: int) -> bool:
        return bool(log_mixture(round(share * n), n, level, ROUND_PRIOR) >= log_bar)

    high = 2
    while not is_enough(high) and high < _MAX_ROUNDS:
        high *= 2
    return high // 2 + 1 + bisect_left(range(high // 2 + 1, high), x=True, key=is_enough)


def _remove_outside(tapes: Mapping[str, Floats] | None, asked: Problem) -> dict[str, Floats]:
    """Return a pilot without the readings outside a range; those that timed out are not outside (evidence T8)."""
    if tapes is None or asked.between is None:
        raise InvalidArgument("between needs the readings of a pilot; add a pilot, or remove between", "between")
    (low, high), censored = asked.between, math.inf if asked.goal == "min" else -math.inf
    return {name: tape[~((tape < low) | (tape > high)) | (tape == censored)] for name, tape in tapes.items()}


def _assume_shares(
    asked: Problem,
    arms: int,
    gap: float | Sequence[float],
    share: float | None,
    tapes: Mapping[str, Floats] | None,
) -> _Shares:
    if tapes is not None:
        problem = Problem(arms=tuple(tapes), at_least=asked.at_least, at_most=asked.at_most)
        judge = Judge.of(problem, [count_successes(tape, problem) for tape in tapes.values()])
        return _Shares(asked, tuple(judge.estimate(i) for i in judge.ranking()))
    if share is None:
        name, limit = ("at_least", asked.at_least) if asked.at_most is None else ("at_most", asked.at_most)
        msg = f"{name}={limit:g} needs the readings of a pilot; add one, or use share=0.6, that of the best arm"
        raise InvalidArgument(msg, name, limit)
    best = as_number("share", share, "give the share of the best arm, such as 0.6")
    what = "it is the share of the best arm's readings that succeed"
    require(0 < best < 1, "share", share, "be in (0, 1)", what)
    gaps, what = _each_gap(arms, gap), "no share is below zero, and gaps are in points, such as 0.1"
    require(max(gaps) <= best, "gap", max(gaps), f"be at most the share of the best arm, {best:g}", what)
    return _Shares(asked, (best, *(best - each for each in gaps)))


def _each_gap(arms: int, gap: float | Sequence[float]) -> list[float]:
    check_count("arms", arms, least=2)
    several = gap if isinstance(gap, Iterable) and not isinstance(gap, str) else [gap] * (arms - 1)
    gaps = [check_positive("gap", each) for each in several]
    must = f"be one number or {arms - 1} of them, one for each arm behind the best"
    require(len(gaps) == arms - 1, "gap", len(gaps), must)
    return gaps


def _family_laws(asked: Problem, arms: int, gap: float | Sequence[float], family: Any) -> tuple[_Laws, str]:  # noqa: ANN401
    gaps, is_name = _each_gap(arms, gap), isinstance(family, str)
    known = not is_name or family in FAMILIES
    require(known, "family", family, f"be one of {', '.join(FAMILIES)}, a law or pilot data")
    law = FAMILIES[family]() if is_name else families.of(family)
    law = law if asked.goal == "max" else law.affine(-1.0)
    behind = {g: law.affine(1.0, -g) for g in gaps}
    return _Laws(asked, (law, *(behind[g] for g in gaps))), family if is_name else "the law given"


def _pilot_laws(asked: Problem, tapes: Mapping[str, Floats]) -> _Laws:
    known = {name: asked.sign * tape[~np.isnan(tape)] for name, tape in tapes.items()}
    sizes, is_short = ", ".join(f"{name!r} {tape.size}" for name, tape in known.items()), len(known) < 2
    is_short = is_short or any(tape.size < 2 for tape in known.values())
    refuse(is_short, f"pilot must hold at least two arms with two readings each, but got {sizes}", "pilot")
    for name, tape in known.items():
        if not math.isfinite(np.quantile(tape, asked.level, method="inverted_cdf")):
            what = f"the quantile of arm {name!r} that is compared is infinite"
            raise InvalidArgument(f"pilot must show how far apart arms are, but {what}; remove that arm", "pilot")
    samples = [Sample.of(tape) for tape in known.values()]
    best = next(iter(by_looks(samples, range(len(samples)), asked.level)), 0)
    # only the order matters to a cut: infinities may be any numbers beyond all others, whatever is shifted here
    finite = np.concatenate([tape[np.isfinite(tape)] for tape in known.values()])
    low, high = float(finite.min()), float(finite.max())
    beyond = 4 * (high - low + asked.tolerance.amount) + max(abs(low), abs(high)) + 1
    laws = [families.empirical(np.clip(tape, low - beyond, high + beyond)) for tape in known.values()]
    return _Laws(asked, (laws[best], *(law for i, law in enumerate(laws) if i != best)))


def _plan(model: _Model, name: str, smallest: int | None, reach: float | None) -> Plan:
    asked, papers = model.asked, _Papers()
    if name != _PILOT_DATA and isinstance(model, _Laws) and asked.level == 0.5:
        papers = _papers(model, reach)
    cells = []
    for factor in _GAPS if min(model.gaps) > 0 else (1.0,):
        spread = model.spread(factor)
        for eps in _EPS:
            expected = spread.outlook(_CLEAN, eps).expected
            pulls = math.ceil(expected) if math.isfinite(expected) else None
            cells.append(Forecast(factor * min(model.gaps), eps, pulls))
    clean, worst, promised = (model.outlook(case, asked.declared.eps) for case in (_CLEAN, _WORST, _SEPARATED))
    return Plan(
        arms=1 + len(model.gaps),
        gaps=model.gaps,
        family=name,
        delta=asked.delta,
        contamination=asked.declared,
        quantile=asked.quantile,
        tolerance=asked.tolerance,
        clean=clean,
        worst=worst,
        promised=promised,
        algorithm1=papers.first,
        algorithm3=papers.third,
        table=tuple(cells),
        shares=model.shares if isinstance(model, _Shares) else None,
        wins=model.wins if isinstance(model, _Rounds) else None,
        pilot_size=smallest,
        within=papers.within,
    )


def terms(found: Limit, delta: float) -> tuple[float, ...]:
    """Return what the evidence that `toptwo` has to collect depends on (evidence section 5.2)."""
    rivals = [weight for arm, weight in enumerate(found.weights) if arm != found.answer]
    size = math.log(found.time * math.sqrt(max(rivals)) / _USUAL)
    return 1.0, math.log(1 / delta), 1 - 1 / len(rivals), max(0.0, -size), max(0.0, size)


def toptwo_pulls(found: Limit, delta: float, nats: Sequence[float] = NATS) -> float:
    """Estimate the pulls that `toptwo` needs on average where no method can beat a limit.

    It collects 1/T nats per pull. Near the first pulls of all arms, which come before any decision, it needs more
    than either: the cube root of the sum of cubes (evidence section 5.2).
    """
    if not math.isfinite(found.time):
        return math.inf
    pulls = found.time * max(0.0, sum(c * term for c, term in zip(nats, terms(found, delta), strict=True)))
    first = START * len(found.weights)
    most = max(pulls, first)
    return most * math.cbrt((pulls / most) ** 3 + (first / most) ** 3)


class _Papers(NamedTuple):
    """What Algorithms 1 and 3 need if they know the family, and what Algorithm 1 gives for it."""

    first: Size = _NEVER
    third: Size = _NEVER
    within: float | None = None
    """As in `Plan`."""


def _papers(model: _Laws, reach: float | None) -> _Papers:
    """Return what the algorithms need at the reach that serves each of them best."""
    tried = [_at_reach(model, t) for t in (_REACHES if reach is None else (reach,))]
    tried = [found for found in tried if found.within is None and found.first.sharp is not None] or tried
    chosen = []
    for name, i in (("first", 0), ("first", 1), ("third", 0), ("third", 1)):
        sizes = [(size, found.within) for found in tried if (size := getattr(found, name)[i]) is not None]
        chosen.append(min(sizes, key=lambda pair: pair[0], default=(None, None)))
    sizes_only = [size for size, _ in chosen]
    within = max((w for size, w in chosen if size is not None and w is not None), default=None)
    return _Papers(Size(*sizes_only[:2]), Size(*sizes_only[2:]), within)


def _at_reach(model: _Laws, reach: float) -> _Papers:
    asked, c, k = model.asked, model.asked.declared, len(model.laws)
    B, m2 = max(law.minimal_B(reach) for law in model.laws), max(law.m2 for law in model.laws)
    if not 0 < B * m2 < math.inf:  # 0: an atom at the median, which the paper's algorithms do not allow
        return _Papers()
    shift, amount = bounds.bias(c.eps, B, m2, c.adversary), asked.tolerance.amount
    effective = min(model.gaps) - 2 * shift  # the paper's gap, section 3
    wanted = max(effective, amount)
    if wanted < sys.float_info.min:
        return _Papers()
    regular: dict[str, Any] = {"eps": c.eps, "B": B, "m2": m2, "reach": reach, "adversary": c.adversary}

    def uniform(constants: bounds.Constants) -> int:
        return bounds.uniform_sample_size(k, wanted, asked.delta, constants=constants, **regular)

    def paper_rounds() -> int:
        last = bounds.early_stop_round(wanted, k, asked.delta, B, m2, survivor="any")
        return bounds.elimination_schedule(k, asked.delta, c.eps, reach, c.adversary).total(last)

    def sharp_rounds() -> int:
        n = 0  # readings per arm at the first geometric look whose radius is a quarter of the gap: audit 1.l
        for r in count(1):
            least = bounds.median_sample_size(B * m2, bounds.round_delta(asked.delta, k, r), **regular)
            n = max(math.ceil(GROWTH * n), least)
            if bounds.counted_elimination_radius(r, n, k, delta=asked.delta, **regular) <= wanted / 4:
                break
        return n

    def pulls(each: Callable[[], int]) -> int | None:
        try:
            return k * each()
        except (OutOfReach, OverflowError):
            return None

    first = Size(pulls(partial(uniform, "paper")), pulls(partial(uniform, "sharp")))
    # without an effective gap a rival can eliminate the best arm, and those left are not bounded: audit 1.l
    third = Size(pulls(paper_rounds), pulls(sharp_rounds)) if effective > 0 else _NEVER
    within = bounds.selection_gap(amount, shift, shift) if effective < amount else None  # erratum E3
    return _Papers(first, third, within)
