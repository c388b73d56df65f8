"""Before the first pull: whether a study can be decided, and how many pulls it will take.

The laws of the readings are assumed (a family and gaps) or taken from a pilot. Two cases: the readings turn out
clean although a share eps of them might not be, and the bad readings do their worst. Lower bounds hold for every
method (evidence section 3); what `toptwo` needs is a formula in the characteristic time, fitted to simulations.
"""

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR
from functools import partial
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from truearm import bounds, families
from truearm.bounds.limits import Limit, share_limit
from truearm.bounds.mixture import log_mixture
from truearm.bounds.search import last_true
from truearm.data.columns import Columns
from truearm.data.tables import load
from truearm.errors import InvalidArgument, OutOfReach
from truearm.evidence import Judge, Levels, best_looking
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
)
from truearm.report import numbers

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
_SMALL_PILOT = 100  # readings of an arm below which a share near one half has a standard error above 5 %


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
    notes: tuple[str, ...] = ()
    shares: tuple[float, ...] | None = None
    """The shares planned for, the largest first; None for quantiles."""
    wins: tuple[float, ...] | None = None
    """In rounds, the share that the best arm wins against each other one."""

    @property
    def identifiable(self) -> bool:
        """Whether unlimited clean readings would decide."""
        return self.clean.decidable

    @property
    def applicable(self) -> bool:
        """Whether the paper's algorithms apply: for medians, of laws whose regularity is known."""
        return self.family not in (_PILOT_DATA, _SHARES) and self.quantile == 0.5 and self.wins is None

    def __str__(self) -> str:
        return " ".join(filter(None, (*_sentences(self), *self.notes)))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; what is infinite becomes None."""
        c = self.contamination
        outlooks = {name: getattr(self, name)._asdict() for name in ("clean", "worst", "promised")}
        return {
            "arms": self.arms,
            "gaps": list(self.gaps),
            "family": self.family,
            "delta": self.delta,
            "contamination": "blind"
            if c.blind
            else {"eps": c.eps, "adversary": c.adversary.value, "causal": c.causal},
            "quantile": self.quantile,
            "tolerance": {"amount": self.tolerance.amount, "relative": self.tolerance.relative},
            "identifiable": self.identifiable,
            **{
                name: {key: x if math.isfinite(x) else None for key, x in outlook.items()}
                for name, outlook in outlooks.items()
            },
            "algorithm1": self.algorithm1._asdict(),
            "algorithm3": self.algorithm3._asdict(),
            "table": [cell._asdict() for cell in self.table],
            "notes": list(self.notes),
            "shares": None if self.shares is None else list(self.shares),
            **({} if self.wins is None else {"wins": list(self.wins)}),
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
        if share is not None:
            msg = "share plans for shares of single readings, not for rounds; remove share or rounds"
            raise InvalidArgument(msg, "share", share)
    asked = Problem.of(("best", "other"), **fix_options(options, regularity=None, dependent_arms=False))
    if asked.contamination is None:
        msg = "contamination must be a number or a Contamination, but got None; use the share that may be bad"
        raise InvalidArgument(msg, "contamination")
    if asked.tolerance.relative:
        amount = f"{100 * asked.tolerance.amount:g}%"
        msg = f"tolerance={amount} is relative; a plan needs units of the readings, such as 0.1"
        raise InvalidArgument(msg, "tolerance", amount)
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
        model = _Rounds(model)
    return _plan(asked, model, name, smallest, None if reach is None else check_reach(reach))


def clean_outlook(*, arms: int, gap: float, share: float | None, eps: float, delta: float) -> Outlook:
    """Return `clean` of a plan with one gap, without computing the rest."""
    asked = Problem.of(("best", "other"), contamination=eps, delta=delta)
    if share is not None:
        return _outlook(_assume_shares(asked, arms, gap, share, None), asked, _CLEAN)
    return _outlook(_family_laws(asked, arms, gap, "gaussian")[0], asked, _CLEAN)


class _Case(NamedTuple):
    """Whether bad readings do their worst, and whether decisions rest on the paper's assumption."""

    attacked: bool = False
    separated: bool = False


_CLEAN, _WORST, _SEPARATED = _Case(), _Case(attacked=True), _Case(attacked=True, separated=True)


class _Laws(NamedTuple):
    """Laws whose quantiles are compared, oriented so that bigger is better, the best first."""

    laws: tuple[Law, ...]
    level: float
    tolerance: float
    adversary: Adversary
    nats: tuple[float, ...] = NATS

    def outlook(self, asked: Problem, case: _Case, eps: float) -> Outlook:
        return _limit_outlook(self, asked, case, eps)

    @property
    def gaps(self) -> tuple[float, ...]:
        best, *others = (law.ppf_left(self.level) for law in self.laws)
        return tuple(best - other for other in others)

    def spread(self, factor: float) -> "_Laws":
        """Return the same with all gaps multiplied."""
        best, *rivals = self.laws
        moved = {id(law): law.affine(1.0, (1 - factor) * gap) for law, gap in zip(rivals, self.gaps, strict=True)}
        return self._replace(laws=(best, *(moved[id(law)] for law in rivals)))

    def limit(self, eps: float, case: _Case) -> Limit:
        if self._is_tied:
            return Limit.never(len(self.laws), 0)
        return characteristic_time(*self._observe(eps, case), tolerance=self.tolerance)

    def largest_eps(self, case: _Case) -> float:
        def decidable(eps: float) -> bool:
            return is_decidable(*self._observe(eps, case), tolerance=self.tolerance)

        if self._is_tied or not decidable(0.0):
            return 0.0
        return last_true(decidable, 0.0, 1.0, accuracy=1e-9)

    @property
    def _is_tied(self) -> bool:
        return not self.tolerance and min(self.gaps) <= 0

    def _observe(self, eps: float, case: _Case) -> tuple[list[Observed], Levels]:
        levels = Levels.at(self.level, 0.0 if case.separated else eps, self.adversary)
        bad = eps if case.attacked else 0.0
        best, *rivals = self.laws
        malicious = self.adversary is Adversary.MALICIOUS
        seen = [Observed(best, bad, -math.inf, "top" if malicious else "any")]
        return seen + [Observed(law, bad, math.inf, "bottom" if malicious else "any") for law in rivals], levels


class _Shares(NamedTuple):
    """Shares of successes, the largest first (extensions 1.2, 1.5)."""

    shares: tuple[float, ...]
    tolerance: float
    adversary: Adversary
    nats: tuple[float, ...] = SHARE_NATS

    def outlook(self, asked: Problem, case: _Case, eps: float) -> Outlook:
        return _limit_outlook(self, asked, case, eps)

    @property
    def gaps(self) -> tuple[float, ...]:
        return tuple(self.shares[0] - p for p in self.shares[1:])

    def spread(self, factor: float) -> "_Shares":
        moved = (max(0.0, self.shares[0] - factor * gap) for gap in self.gaps)
        return self._replace(shares=(self.shares[0], *moved))

    def limit(self, eps: float, case: _Case) -> Limit:
        best, *rivals = self.shares
        if case.attacked and self.adversary is Adversary.MALICIOUS:
            best, rivals = max(0.0, best - eps), [min(1.0, p + eps) for p in rivals]
        elif case.attacked:
            best, rivals = (1 - eps) * best, [(1 - eps) * p + eps for p in rivals]
        declared = 0.0 if case.separated else eps
        return share_limit((best, *rivals), declared, self.adversary, tolerance=self.tolerance, answer=0)

    def largest_eps(self, case: _Case) -> float:
        # the gap g becomes (1-e) g - e and e more is hidden; malicious g - 2e, and 2e more: extensions 1.2
        gap, room = min(self.gaps), min(self.gaps) + self.tolerance
        if self.adversary is Adversary.MALICIOUS:
            return min(1.0, room / 4 if case == _WORST else room / 2)
        ends = {_CLEAN: room / (1 + self.tolerance), _WORST: room / (2 + room), _SEPARATED: room / (1 + gap)}
        return min(1.0, ends[case])


class _Rounds(NamedTuple):
    """Laws compared side by side: the best one wins a share of the rounds against each other (extensions E1)."""

    laws: _Laws

    @property
    def gaps(self) -> tuple[float, ...]:
        return self.laws.gaps

    def spread(self, factor: float) -> "_Rounds":
        return _Rounds(self.laws.spread(factor))

    @property
    def wins(self) -> tuple[float, ...]:
        """The share of rounds that the best arm wins against each other one, up to the tolerance."""
        best, *rivals = self.laws.laws
        x = np.asarray(best.ppf_left((np.arange(_GRID) + 0.5) / _GRID)) + self.laws.tolerance
        return tuple(float(np.mean(rival.cdf_left(x))) for rival in rivals)

    def outlook(self, asked: Problem, case: _Case, eps: float) -> Outlook:
        """Return what rounds take: all arms left are in each, so the best has as many as its nearest rival."""
        bar, level = math.log(2 * len(self.gaps) / asked.delta), self._level(eps, case)
        lost = [1 - win for win in self._seen(eps, case)]
        if max(lost) >= level:
            return Outlook(math.inf, math.inf, self._largest_eps(case))
        rounds = [_rounds_until(share, level, bar) for share in lost]
        least = [max(0.0, math.log(1 / (2.4 * asked.delta))) / divergence(share, level) for share in lost]
        bound = 0.0 if asked.tolerance else sum(least) + max(least)
        return Outlook(bound, sum(rounds) + max(rounds), self._largest_eps(case))

    def _level(self, eps: float, case: _Case) -> float:
        return win_level(0.0 if case.separated else eps, self.laws.adversary)

    def _seen(self, eps: float, case: _Case) -> list[float]:
        """Return the shares won as observed: at the worst, a round with a bad reading is lost."""
        malicious, bad = self.laws.adversary is Adversary.MALICIOUS, eps if case.attacked else 0.0
        return [win - 2 * bad if malicious else (1 - bad) ** 2 * win for win in self.wins]

    def _largest_eps(self, case: _Case) -> float:
        def decidable(eps: float) -> bool:
            return 1 - min(self._seen(eps, case)) < self._level(eps, case)

        return last_true(decidable, 0.0, 0.5, accuracy=1e-6) if decidable(0.0) else 0.0


_Model = _Laws | _Shares | _Rounds


def _rounds_until(share: float, level: float, log_bar: float) -> int:
    """Return after how many rounds the evidence reaches a bar if this share of them is in S: an estimate."""

    def is_enough(n: int) -> bool:
        return bool(log_mixture(round(share * n), n, level, ROUND_PRIOR) >= log_bar)

    low, high = 1, 2
    while not is_enough(high) and high < _MAX_ROUNDS:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


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
    adversary = (asked.contamination or Contamination(0.0)).adversary
    if tapes is not None:
        problem = Problem(arms=tuple(tapes), at_least=asked.at_least, at_most=asked.at_most)
        judge = Judge.of(problem, [count_successes(tape, problem) for tape in tapes.values()])
        return _Shares(tuple(judge.estimate(i) for i in judge.ranking()), asked.tolerance.amount, adversary)
    if share is None:
        name, limit = ("at_least", asked.at_least) if asked.at_most is None else ("at_most", asked.at_most)
        msg = f"{name}={limit:g} needs the readings of a pilot; add one, or use share=0.6, that of the best arm"
        raise InvalidArgument(msg, name, limit)
    best = as_number("share", share, "give the share of the best arm, such as 0.6")
    if not 0 < best < 1:
        msg = (
            f"share must be in (0, 1), but got {share!r}; it is the share of the best arm's readings that succeed"
        )
        raise InvalidArgument(msg, "share", share)
    gaps = _each_gap(arms, gap)
    if beyond := [each for each in gaps if each > best]:
        msg = (
            f"gap must be at most the share of the best arm, {best:g}, but got {beyond[0]:g}; "
            "no share is below zero, and gaps are in points, such as 0.1"
        )
        raise InvalidArgument(msg, "gap", beyond[0])
    return _Shares((best, *(best - each for each in gaps)), asked.tolerance.amount, adversary)


def _each_gap(arms: int, gap: float | Sequence[float]) -> list[float]:
    check_count("arms", arms, least=2)
    several = gap if isinstance(gap, Iterable) and not isinstance(gap, str) else [gap] * (arms - 1)
    gaps = [check_positive("gap", each) for each in several]
    if len(gaps) != arms - 1:
        msg = (
            f"gap must be one number or {arms - 1} of them, one for each arm behind the best, but got {len(gaps)}"
        )
        raise InvalidArgument(msg, "gap", len(gaps))
    return gaps


def _family_laws(asked: Problem, arms: int, gap: float | Sequence[float], family: Any) -> tuple[_Laws, str]:  # noqa: ANN401
    gaps = _each_gap(arms, gap)
    if isinstance(family, str) and family not in FAMILIES:
        msg = f"family must be one of {', '.join(FAMILIES)}, a law or pilot data, but got {family!r}"
        raise InvalidArgument(msg, "family", family)
    law = FAMILIES[family]() if isinstance(family, str) else families.of(family)
    law = law if asked.goal == "max" else law.affine(-1.0)
    behind = {g: law.affine(1.0, -g) for g in gaps}
    return _laws(asked, (law, *(behind[g] for g in gaps))), family if isinstance(family, str) else "the law given"


def _laws(asked: Problem, laws: tuple[Law, ...]) -> _Laws:
    adversary = (asked.contamination or Contamination(0.0)).adversary
    return _Laws(laws, asked.level, asked.tolerance.amount, adversary)


def _pilot_laws(asked: Problem, tapes: Mapping[str, Floats]) -> _Laws:
    known = {name: asked.sign * tape[~np.isnan(tape)] for name, tape in tapes.items()}
    if len(known) < 2 or any(tape.size < 2 for tape in known.values()):
        sizes = ", ".join(f"{name!r} {tape.size}" for name, tape in known.items())
        msg = f"pilot must hold at least two arms with two readings each, but got {sizes}"
        raise InvalidArgument(msg, "pilot")
    for name, tape in known.items():
        if not math.isfinite(np.quantile(tape, asked.level, method="inverted_cdf")):
            msg = (
                f"pilot must show how far apart arms are, but the quantile of arm {name!r} that is compared is "
                "infinite; remove that arm"
            )
            raise InvalidArgument(msg, "pilot")
    samples = [Sample.of(tape) for tape in known.values()]
    best = best_looking(samples, range(len(samples)), asked.level) or 0
    # only the order matters to a cut: infinities may be any numbers beyond all others, whatever is shifted here
    finite = np.concatenate([tape[np.isfinite(tape)] for tape in known.values()])
    low, high = float(finite.min()), float(finite.max())
    beyond = 4 * (high - low + asked.tolerance.amount) + max(abs(low), abs(high)) + 1
    laws = [families.empirical(np.clip(tape, low - beyond, high + beyond)) for tape in known.values()]
    return _laws(asked, (laws[best], *(law for i, law in enumerate(laws) if i != best)))


def _plan(asked: Problem, model: _Model, name: str, smallest: int | None, reach: float | None) -> Plan:
    assert asked.contamination is not None
    papers = _Papers()
    if name != _PILOT_DATA and isinstance(model, _Laws):
        papers = _papers(asked, model, reach)
    cells = []
    for factor in _GAPS if min(model.gaps) > 0 else (1.0,):
        spread = model.spread(factor)
        for eps in _EPS:
            pulls = spread.outlook(asked, _CLEAN, eps).expected
            cells.append(
                Forecast(factor * min(model.gaps), eps, math.ceil(pulls) if math.isfinite(pulls) else None)
            )
    return Plan(
        arms=1 + len(model.gaps),
        gaps=model.gaps,
        family=name,
        delta=asked.delta,
        contamination=asked.contamination,
        quantile=asked.quantile,
        tolerance=asked.tolerance,
        clean=_outlook(model, asked, _CLEAN),
        worst=_outlook(model, asked, _WORST),
        promised=_outlook(model, asked, _SEPARATED),
        algorithm1=papers.first,
        algorithm3=papers.third,
        table=tuple(cells),
        notes=tuple(_notes(asked, model, name, smallest, papers)),
        shares=model.shares if isinstance(model, _Shares) else None,
        wins=model.wins if isinstance(model, _Rounds) else None,
    )


def _outlook(model: _Model, asked: Problem, case: _Case) -> Outlook:
    return model.outlook(asked, case, asked.contamination.eps if asked.contamination else 0.0)


def _limit_outlook(model: _Laws | _Shares, asked: Problem, case: _Case, eps: float) -> Outlook:
    found = model.limit(eps, case)
    bound = 0.0 if asked.tolerance else found.pulls(asked.delta)
    if not math.isfinite(found.time):  # also where an error probability of one half asks for nothing
        bound = math.inf
    return Outlook(bound, toptwo_pulls(found, asked.delta, model.nats), model.largest_eps(case))


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
    """How far behind the best the arm that Algorithm 1 returns may be, None where it is the best."""


def _papers(asked: Problem, model: _Laws | _Shares, reach: float | None) -> _Papers:
    if not isinstance(model, _Laws) or model.level != 0.5:
        return _Papers()
    tried = [_at_reach(asked, model, t) for t in (_REACHES if reach is None else (reach,))]
    tried = [found for found in tried if found.within is None and found.first.sharp is not None] or tried
    chosen = []
    for name, i in (("first", 0), ("first", 1), ("third", 0), ("third", 1)):
        sizes = [(size, found.within) for found in tried if (size := getattr(found, name)[i]) is not None]
        chosen.append(min(sizes, key=lambda pair: pair[0], default=(None, None)))
    sizes_only = [size for size, _ in chosen]
    within = max((w for size, w in chosen if size is not None and w is not None), default=None)
    return _Papers(Size(*sizes_only[:2]), Size(*sizes_only[2:]), within)


def _at_reach(asked: Problem, model: _Laws, reach: float) -> _Papers:
    c, k, amount = asked.contamination or Contamination(0.0), len(model.laws), asked.tolerance.amount
    B, m2 = max(law.minimal_B(reach) for law in model.laws), max(law.m2 for law in model.laws)
    if not 0 < B * m2 < math.inf:  # 0: an atom at the median, which the paper's algorithms do not allow
        return _Papers()
    shift = bounds.bias(c.eps, B, m2, c.adversary)
    effective = min(model.gaps) - 2 * shift  # the paper's gap, section 3
    wanted = max(effective, amount)
    if wanted < sys.float_info.min:
        return _Papers()
    regular: dict[str, Any] = {"eps": c.eps, "B": B, "m2": m2, "reach": reach, "adversary": c.adversary}
    size = partial(bounds.uniform_sample_size, k, wanted, asked.delta, **regular)
    first = [_pulls(k, partial(size, constants=constants)) for constants in ("paper", "sharp")]
    third: list[int | None] = [None, None]
    if effective > 0:  # otherwise a rival can eliminate the best arm, and those left are not bounded: audit 1.l
        third = [
            _pulls(k, partial(_paper_rounds, k, asked.delta, wanted, regular)),
            _pulls(k, partial(_sharp_rounds, k, asked.delta, wanted, regular)),
        ]
    within = bounds.selection_gap(amount, shift, shift) if effective < amount else None  # erratum E3
    return _Papers(Size(*first), Size(*third), within)


def _pulls(k: int, each: Callable[[], int]) -> int | None:
    try:
        return k * each()
    except (OutOfReach, OverflowError):
        return None


def _paper_rounds(k: int, delta: float, wanted: float, regular: Mapping[str, Any]) -> int:
    last = bounds.early_stop_round(wanted, k, delta, regular["B"], regular["m2"], survivor="any")
    return bounds.elimination_schedule(k, delta, regular["eps"], regular["reach"], regular["adversary"]).total(
        last
    )


def _sharp_rounds(k: int, delta: float, wanted: float, regular: Mapping[str, Any]) -> int:
    """Return the readings per arm at the first geometric look whose radius is a quarter of the gap (audit 1.l)."""
    n, r = 0, 0
    while True:
        r += 1
        share = bounds.round_delta(delta, k, r)
        least = bounds.median_sample_size(regular["B"] * regular["m2"], share, **regular)
        n = max(math.ceil(GROWTH * n), least)
        if bounds.counted_elimination_radius(r, n, k, delta=delta, **regular) <= wanted / 4:
            return n


def _notes(asked: Problem, model: _Model, name: str, smallest: int | None, papers: _Papers) -> Iterable[str]:
    if isinstance(model, _Laws) and not asked.tolerance and min(model.gaps) <= 0:
        yield f"The best arm and another have the same {numbers.quantile_name(asked.quantile)}: neither is better."
    if smallest is not None and smallest < _SMALL_PILOT:
        off = numbers.percent(0.5 / math.sqrt(max(1, smallest)), digits=2)
        yield (
            f"The pilot is small: an arm has {numbers.count(smallest)} readings, from which a share near one half "
            f"is known only to about {off}; take this plan as a rough guess."
        )
    if asked.rounds:
        return
    if name == _PILOT_DATA:
        yield "The paper's Algorithms 1 and 3 need to know how regular the laws are, which data cannot show."
    elif name == _SHARES or asked.level != 0.5:
        yield "The paper's Algorithms 1 and 3 are for medians."
    elif papers == _Papers():
        yield "The paper's Algorithms 1 and 3 cannot decide: an effective gap is not positive for this family."
    elif papers.within is not None:
        yield (
            "The paper's algorithms keep the effective gap within the tolerance, so the arm returned may be "
            f"{numbers.number(papers.within)} behind the best: the tolerance and what contamination can shift two "
            "medians by."
        )
        if papers.third == _NEVER:
            yield "Algorithm 3 promises nothing here, where effective gaps may be negative."
    if asked.tolerance:
        yield "With a tolerance several answers are right, and no lower bound is claimed."


def _sentences(found: Plan) -> list[str]:
    clean, worst, eps = found.clean, found.worst, numbers.percent(found.contamination.eps)
    ends = [numbers.percent(outlook.largest_eps, ROUND_FLOOR) for outlook in (clean, worst)]
    if found.wins is not None and clean.decidable:
        total, rounds = (numbers.count(math.ceil(x)) for x in (clean.expected, clean.expected / found.arms))
        basis = "in random order" if found.contamination.blind else f"at {eps} contamination"
        share = numbers.percent(min(found.wins), ROUND_FLOOR, 2)
        return [
            f"About {total} pulls in {rounds} rounds or more tell {found.arms} arms apart side by side, {basis} "
            f"(an estimate): the best arm wins {share} of the rounds or more. They can be told apart up to "
            f"{ends[0]} contamination."
        ]
    if not clean.largest_eps:
        return [f"{found.arms} arms cannot be told apart, however many pulls are made and however clean they are."]
    if not clean.decidable:
        return [
            f"{found.arms} arms cannot be told apart at {eps} contamination, however many pulls are made; they "
            f"can up to {ends[0]} if the readings turn out clean, {ends[1]} if the bad ones do their worst."
        ]
    forecasts = (clean.expected, clean.lower_bound, worst.expected, worst.lower_bound)
    pulls = [numbers.count(math.ceil(x)) if math.isfinite(x) else "" for x in forecasts]
    also = f"about {pulls[2]}" if worst.decidable else "but none do"
    second = f", {pulls[3]} in the second" if worst.decidable else ""
    return [
        f"About {pulls[0]} pulls tell {found.arms} arms apart at {eps} contamination if the readings turn out "
        f"clean, {also} if the bad ones do their worst (estimates from simulations).",
        "" if found.tolerance else f"No method needs fewer than {pulls[1]} in the first case{second}.",
        f"They can be told apart up to {ends[0]} contamination in the first case, {ends[1]} in the second.",
    ]
