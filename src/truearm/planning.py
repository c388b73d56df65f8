"""Predict whether a study can be decided, and how many pulls it will take.

The laws of the readings are assumed (a family and gaps) or taken from a pilot. Three cases: the readings turn out
clean although a share eps of them might not be, bad readings do their worst, and the same under the paper's
assumption. Lower bounds hold for every method (evidence section 3); what `toptwo` needs is a formula in the
characteristic time, fitted to simulations.
"""

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from itertools import count
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias, Unpack

import numpy as np
from numpy.typing import NDArray

from truearm import bounds, families
from truearm.bounds.limits import Limit, share_limit
from truearm.bounds.mixture import log_mixture
from truearm.bounds.search import bracket, first_count
from truearm.claims.plain import to_plain
from truearm.data.columns import MAX_ARMS, Columns
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
from truearm.policies import START
from truearm.policies.paper import GROWTH
from truearm.problem import (
    Adversary,
    Contamination,
    Problem,
    ProblemOptions,
    Tolerance,
    as_number,
    check_count,
    check_flag,
    check_positive,
    check_reach,
    fix_options,
    refuse,
    require,
)
from truearm.report import summaries

Floats = NDArray[np.float64]
_Gap: TypeAlias = float | Sequence[float]

FAMILIES: Mapping[str, Callable[[], Law]] = {
    name: getattr(families, name) for name in ("gaussian", "laplace", "logistic", "cauchy", "uniform", "lognormal")
}
NATS = (1.051, 1.319, 1.559, 0.59, 0.379)
"""Coefficients of `terms` for the nats that `toptwo` needs, fitted to runs by benchmarks/plan.py."""
SHARE_NATS = (0.443, 1.299, 1.314, 0.546, 0.478)
"""The same for shares."""
_TYPICAL_SIZE = 60.0  # smaller and larger problems need more nats
_REACHES = tuple(step / 100 for step in range(2, 50, 2))
_GRID = 2000  # points of the law of the best arm, for the share of rounds that it wins
_MAX_ROUNDS = 2**40
_EPS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)
_GAPS = (0.5, 0.75, 1.0, 1.5, 2.0)  # times the gap that is planned for
_PILOT_DATA, _SHARES = "pilot data", "shares"  # in place of a family
_FIXED = {"regularity": None, "dependent_arms": False, "score_range": None, "items": None}  # not planned for


class Outlook(NamedTuple):
    """What to expect in one case: a lower bound for all methods, and what `toptwo` needs."""

    lower_bound: float
    """The fewest expected pulls of all arms together, for any method with this error probability."""
    expected: float
    """Pulls that `toptwo` needs on average: an estimate from simulations."""
    largest_eps: float
    """The smallest contamination at which no method can decide."""

    @property
    def decidable(self) -> bool:
        """Whether unlimited pulls would decide."""
        return math.isfinite(self.lower_bound)


class Size(NamedTuple):
    """Pulls of all arms together that one of the paper's algorithms makes, None where it cannot decide."""

    paper: int | None
    sharp: int | None


class Forecast(NamedTuple):
    """Expected pulls of `toptwo` at one gap and contamination if the readings are clean; None if undecidable."""

    gap: float
    eps: float
    pulls: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The forecast of a study."""

    arms: int
    gaps: tuple[float, ...]
    family: str
    delta: float
    contamination: Contamination
    quantile: float
    tolerance: Tolerance
    clean: Outlook
    """Readings turn out clean, but decisions must still hold against the contamination: `certified`."""
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
    """In rounds, the share of rounds that the best arm wins against each other arm."""
    pilot_size: int | None = None
    """The smallest number of readings of an arm in the pilot."""
    within: float | None = None
    """How far behind the best the arm that Algorithm 1 returns may be, None where it is the best."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know about the numbers."""
        return tuple(summaries.plan_notes(self))

    @property
    def identifiable(self) -> bool:
        """Whether unlimited clean readings would decide."""
        return self.clean.decidable

    @property
    def applicable(self) -> bool:
        """Whether the paper's algorithms apply: for medians, of laws whose regularity is known."""
        return self.family not in (_PILOT_DATA, _SHARES) and self.quantile == 0.5 and self.wins is None

    def __str__(self) -> str:
        return " ".join((*summaries.plan_sentences(self), *self.notes))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; infinities become None."""
        c, plain = self.contamination, {field.name: getattr(self, field.name) for field in fields(self)}
        declared = {"eps": c.eps, "adversary": c.adversary, "causal": c.causal}
        plain["contamination"] = "blind" if c.blind else declared
        plain.update({name: value._asdict() for name, value in plain.items() if isinstance(value, Outlook | Size)})
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
        The share of the best arm, to plan for shares; a `gap` of 0.1 is then ten percentage points.
    reach
        How far from the median, in quantile levels, the paper's algorithms may rely on the family; by default the
        best value for each.
    **options
        delta, contamination, tolerance, quantile, goal, at_least, at_most, between and rounds, as in `Study`. The
        tolerance is absolute; at_least and at_most say what a success is in a pilot. Readings of a pilot outside
        of between are removed: they would count as pulls but for neither side (extensions E2).

    Examples
    --------
    >>> found = plan(arms=2, gap=0.5, contamination=0.05)
    >>> round(found.worst.lower_bound), round(found.promised.lower_bound), round(found.clean.largest_eps, 3)
    (687, 279, 0.197)
    """
    if check_flag("rounds", options.get("rounds", False)):
        options.setdefault("contamination", "blind")
        msg = "share plans for shares of single readings, not for rounds; remove share or rounds"
        refuse(share is not None, msg, "share", share)
    problem = Problem.of(("best", "other"), **fix_options(options, **_FIXED))
    known = problem.contamination is not None
    require(known, "contamination", None, "be a number or a Contamination", "use the share that may be bad")
    amount = f"{100 * problem.tolerance.amount:g}%"
    msg = f"tolerance={amount} is relative; a plan needs units of the readings, such as 0.1"
    refuse(problem.tolerance.relative, msg, "tolerance", amount)
    tapes = None if pilot is None else load(pilot, Columns(arm, value)).tapes
    if problem.between is not None:
        tapes = _remove_outside(tapes, problem)
    smallest = None if tapes is None else _smallest_size(tapes)
    if share is not None or problem.target == "share":
        model, name = _share_model(problem, arms, gap, share, tapes), _SHARES
    elif tapes is not None:
        model, name = _pilot_model(problem, tapes), _PILOT_DATA
    else:
        model = _family_model(problem, arms, gap, family)
        name = family if isinstance(family, str) else "the law given"
    return _plan(model, name, smallest, None if reach is None else check_reach(reach))


def clean_outlook(*, arms: int, gap: float, share: float | None, eps: float, delta: float) -> Outlook:
    """Return `clean` of a plan with one gap, without computing the rest."""
    problem = Problem.of(("best", "other"), contamination=eps, delta=delta)
    if share is not None:
        return _share_model(problem, arms, gap, share, None).outlook(_CLEAN, eps)
    return _family_model(problem, arms, gap, "gaussian").outlook(_CLEAN, eps)


class _Case(NamedTuple):
    """Whether bad readings do their worst, and whether decisions rest on the paper's assumption."""

    attacked: bool = False
    separated: bool = False


_CLEAN, _WORST, _SEPARATED = _Case(), _Case(attacked=True), _Case(attacked=True, separated=True)


class _Model(NamedTuple):
    """The laws of the arms, the best first; bigger is better."""

    problem: Problem
    values: tuple[float, ...]
    """The quantile or the share of each arm."""
    laws: tuple[Law, ...] = ()
    """Their laws; none for shares."""

    @property
    def gaps(self) -> tuple[float, ...]:
        """How far the others are behind the best."""
        return tuple(self.values[0] - value for value in self.values[1:])

    @property
    def wins(self) -> tuple[float, ...]:
        """The share of rounds that the best arm wins against each other one, up to the tolerance."""
        best, *rivals = self.laws
        x = np.asarray(best.ppf_left((np.arange(_GRID) + 0.5) / _GRID)) + self.problem.tolerance.amount
        return tuple(float(np.mean(rival.cdf_left(x))) for rival in rivals)

    def spread(self, factor: float) -> "_Model":
        """Return the same with all gaps multiplied."""
        values = (self.values[0], *(self.values[0] - factor * gap for gap in self.gaps))
        if not self.laws:
            return self._replace(values=tuple(max(0.0, value) for value in values))
        pairs = zip(self.laws[1:], self.gaps, strict=True)
        moved = {id(law): law.affine(1.0, (1 - factor) * gap) for law, gap in pairs}
        return self._replace(values=values, laws=(self.laws[0], *(moved[id(law)] for law in self.laws[1:])))

    def outlook(self, case: _Case, eps: float) -> Outlook:
        """Return what to expect in a case."""
        is_possible, highest = partial(self._is_possible, case), 0.5 if self.problem.rounds else 1.0
        largest = bracket(is_possible, 0.0, highest, accuracy=1e-9)[1] if is_possible(0.0) else 0.0
        return Outlook(*self.pulls(case, eps), largest)

    def pulls(self, case: _Case, eps: float) -> tuple[float, float]:
        """Return the lower bound and the expected pulls in a case."""
        if not self._is_possible(case, eps):
            return math.inf, math.inf
        problem = self.problem
        if problem.rounds:
            bound, expected = _round_pulls(*self._losses(case, eps), problem.delta)
            return 0.0 if problem.tolerance else bound, expected
        tolerance = problem.tolerance.amount
        if self.laws:
            found, nats = characteristic_time(*self._observe(case, eps), tolerance=tolerance), NATS
        else:
            (shares, allowed), power = self._shares_at(case, eps), problem.declared.adversary
            found, nats = share_limit(shares, allowed, power, tolerance=tolerance, answer=0), SHARE_NATS
        bound = 0.0 if problem.tolerance else found.pulls(problem.delta)
        return bound if math.isfinite(found.time) else math.inf, toptwo_pulls(found, problem.delta, nats)

    def _is_possible(self, case: _Case, eps: float) -> bool:
        """Return True if unlimited pulls would decide."""
        tolerance = self.problem.tolerance.amount
        if self.problem.rounds:
            lost, level = self._losses(case, eps)
            return max(lost) < level
        if self.laws:
            is_apart = tolerance > 0 or min(self.gaps) > 0
            return is_apart and is_decidable(*self._observe(case, eps), tolerance=tolerance)
        (best, *rivals), allowed = self._shares_at(case, eps)
        if self._is_malicious:
            return best - max(rivals) + tolerance > 2 * allowed
        return 1 - best + max(rivals) < (1 + tolerance) * (1 - allowed)  # extensions 1.2

    @property
    def _is_malicious(self) -> bool:
        return self.problem.declared.adversary is Adversary.MALICIOUS

    def _losses(self, case: _Case, eps: float) -> tuple[list[float], float]:
        """Return the shares of rounds lost as observed, those with a bad reading at the worst, and their bound."""
        bad = eps if case.attacked else 0.0
        lost = [1 - (win - 2 * bad if self._is_malicious else (1 - bad) ** 2 * win) for win in self.wins]
        return lost, win_level(0.0 if case.separated else eps, self.problem.declared.adversary)

    def _observe(self, case: _Case, eps: float) -> tuple[list[Observed], Levels]:
        levels = Trust(0.0 if case.separated else eps, self.problem.declared.adversary).levels(self.problem.level)
        bad, (best, *rivals), malicious = eps if case.attacked else 0.0, self.laws, self._is_malicious
        seen = [Observed(law, bad, math.inf, "bottom" if malicious else "any") for law in rivals]
        return [Observed(best, bad, -math.inf, "top" if malicious else "any"), *seen], levels

    def _shares_at(self, case: _Case, eps: float) -> tuple[tuple[float, ...], float]:
        """Return the shares as observed, and the contamination that decisions allow for (extensions 1.2)."""
        bad, allowed, (best, *rivals) = eps if case.attacked else 0.0, 0.0 if case.separated else eps, self.values
        if self._is_malicious:
            return (max(0.0, best - bad), *(min(1.0, p + bad) for p in rivals)), allowed
        return ((1 - bad) * best, *((1 - bad) * p + bad for p in rivals)), allowed


def _round_pulls(lost: Sequence[float], level: float, delta: float) -> tuple[float, float]:
    """Return the pulls of rounds: all remaining arms are in each, so the best has as many as its nearest rival."""
    least = [max(0.0, math.log(1 / (2.4 * delta))) / divergence(share, level) for share in lost]
    log_bar = math.log(2 * len(lost) / delta)

    def is_enough(share: float, n: int) -> bool:
        return n >= _MAX_ROUNDS or bool(log_mixture(round(share * n), n, level, ROUND_PRIOR) >= log_bar)

    rounds = [first_count(partial(is_enough, share)) for share in lost]
    return sum(least) + max(least), sum(rounds) + max(rounds)


def _smallest_size(tapes: Mapping[str, Floats]) -> int:
    """Return the smallest number of readings of an arm in a pilot; raise if it shows no difference of arms."""
    sizes = {name: int(np.count_nonzero(~np.isnan(tape))) for name, tape in tapes.items()}
    counts = ", ".join(f"{name!r} {size}" for name, size in sizes.items())
    msg = f"pilot must hold at least two arms with two readings each, but got {counts or 'none'}"
    refuse(len(sizes) < 2 or min(sizes.values()) < 2, msg, "pilot")
    return min(sizes.values())


def _remove_outside(tapes: Mapping[str, Floats] | None, problem: Problem) -> dict[str, Floats]:
    """Return a pilot without the readings outside a range; those that timed out are not outside (evidence T8)."""
    if tapes is None or problem.between is None:
        raise InvalidArgument("between needs the readings of a pilot; add a pilot, or remove between", "between")
    (low, high), censored = problem.between, math.inf if problem.goal == "min" else -math.inf
    return {name: tape[~((tape < low) | (tape > high)) | (tape == censored)] for name, tape in tapes.items()}


def _share_model(
    problem: Problem, arms: int, gap: _Gap, share: float | None, tapes: Mapping[str, Floats] | None
) -> _Model:
    if tapes is not None:
        pilot = Problem(arms=tuple(tapes), at_least=problem.at_least, at_most=problem.at_most)
        judge = Judge.of(pilot, [count_successes(tape, pilot) for tape in tapes.values()])
        return _Model(problem, tuple(judge.estimate(i) for i in judge.ranking()))
    if share is None:
        name, limit = ("at_least", problem.at_least) if problem.at_most is None else ("at_most", problem.at_most)
        msg = f"{name}={limit:g} needs the readings of a pilot; add one, or use share=0.6, that of the best arm"
        raise InvalidArgument(msg, name, limit)
    best = as_number("share", share, "give the share of the best arm, such as 0.6")
    what = "write 0.6 if 60% of the best arm's readings succeed"
    require(0 < best < 1, "share", share, "be in (0, 1)", what)
    gaps, what = _expand_gap(arms, gap), "no share is below zero, and gaps are in points, such as 0.1"
    require(max(gaps) <= best, "gap", max(gaps), f"be at most the share of the best arm, {best:g}", what)
    return _Model(problem, (best, *(best - each for each in gaps)))


def _expand_gap(arms: int, gap: _Gap) -> list[float]:
    require(check_count("arms", arms, least=2) <= MAX_ARMS, "arms", arms, f"be at most {MAX_ARMS:,}")
    several = gap if isinstance(gap, Iterable) and not isinstance(gap, str) else [gap] * (arms - 1)
    gaps = [check_positive("gap", each) for each in several]
    must = f"be one number or {arms - 1} of them, one for each arm behind the best"
    require(len(gaps) == arms - 1, "gap", len(gaps), must)
    return gaps


def _model_of(problem: Problem, laws: Sequence[Law]) -> _Model:
    return _Model(problem, tuple(law.ppf_left(problem.level) for law in laws), tuple(laws))


def _family_model(problem: Problem, arms: int, gap: _Gap, family: Any) -> _Model:  # noqa: ANN401
    gaps, is_name = _expand_gap(arms, gap), isinstance(family, str)
    known = not is_name or family in FAMILIES
    require(known, "family", family, f"be one of {', '.join(FAMILIES)}, a law or pilot data")
    law = FAMILIES[family]() if is_name else families.of(family)
    law = law if problem.goal == "max" else law.affine(-1.0)
    behind = {g: law.affine(1.0, -g) for g in gaps}
    return _model_of(problem, [law, *(behind[g] for g in gaps)])


def _pilot_model(problem: Problem, tapes: Mapping[str, Floats]) -> _Model:
    known = {name: problem.sign * tape[~np.isnan(tape)] for name, tape in tapes.items()}
    for name, tape in known.items():
        if not math.isfinite(np.quantile(tape, problem.level, method="inverted_cdf")):
            what = f"the quantile of arm {name!r} that is compared is infinite"
            raise InvalidArgument(f"pilot must show how far apart arms are, but {what}; remove that arm", "pilot")
    samples = [Sample.of(tape) for tape in known.values()]
    best = next(iter(by_looks(samples, range(len(samples)), problem.level)), 0)
    # a cut depends on order alone, so infinities may be any numbers that stay beyond the others after a shift
    finite = np.concatenate([tape[np.isfinite(tape)] for tape in known.values()])
    low, high = float(finite.min()), float(finite.max())
    beyond = 4 * (high - low + problem.tolerance.amount) + max(abs(low), abs(high)) + 1
    laws = [families.empirical(np.clip(tape, low - beyond, high + beyond)) for tape in known.values()]
    return _model_of(problem, [laws.pop(best), *laws])


def _plan(model: _Model, name: str, smallest: int | None, reach: float | None) -> Plan:
    problem = model.problem
    papers, within = _NO_PULLS, None
    if name not in (_PILOT_DATA, _SHARES) and problem.level == 0.5 and not problem.rounds:
        papers, within = _paper_pulls(model, reach)
    cells = []
    for factor in _GAPS if min(model.gaps) > 0 else (1.0,):
        spread = model.spread(factor)
        for eps in _EPS:
            expected = spread.pulls(_CLEAN, eps)[1]
            pulls = math.ceil(expected) if math.isfinite(expected) else None
            cells.append(Forecast(factor * min(model.gaps), eps, pulls))
    clean, worst, promised = (model.outlook(case, problem.declared.eps) for case in (_CLEAN, _WORST, _SEPARATED))
    return Plan(
        arms=len(model.values),
        gaps=model.gaps,
        family=name,
        delta=problem.delta,
        contamination=problem.declared,
        quantile=problem.quantile,
        tolerance=problem.tolerance,
        clean=clean,
        worst=worst,
        promised=promised,
        algorithm1=Size(*papers[:2]),
        algorithm3=Size(*papers[2:]),
        table=tuple(cells),
        shares=None if model.laws else model.values,
        wins=model.wins if problem.rounds else None,
        pilot_size=smallest,
        within=within,
    )


def terms(found: Limit, delta: float) -> tuple[float, ...]:
    """Return the terms on which the evidence that `toptwo` needs depends (evidence section 5.2)."""
    rivals = [weight for arm, weight in enumerate(found.weights) if arm != found.answer]
    size = math.log(found.time * math.sqrt(max(rivals)) / _TYPICAL_SIZE)
    return 1.0, math.log(1 / delta), 1 - 1 / len(rivals), max(0.0, -size), max(0.0, size)


def toptwo_pulls(found: Limit, delta: float, nats: Sequence[float] = NATS) -> float:
    """Estimate the average pulls of `toptwo` from the limit of all methods.

    It gains 1/T nats per pull. Close to the number of first pulls, which come before any decision, it needs more
    than either: the cube root of the sum of cubes (evidence section 5.2).
    """
    if not math.isfinite(found.time):
        return math.inf
    pulls = found.time * max(0.0, sum(c * term for c, term in zip(nats, terms(found, delta), strict=True)))
    first = START * len(found.weights)
    most = max(pulls, first)
    return most * math.cbrt((pulls / most) ** 3 + (first / most) ** 3)


_Pulls: TypeAlias = tuple[int | None, ...]
"""Pulls of Algorithm 1, printed and sharp, and of Algorithm 3, printed and sharp; None if it cannot decide."""
_NO_PULLS: _Pulls = (None,) * 4


def _paper_pulls(model: _Model, reach: float | None) -> tuple[_Pulls, float | None]:
    """Return what the paper's algorithms need, each at its best reach, and `Plan.within`."""
    tried = [_pulls_at_reach(model, t) for t in (_REACHES if reach is None else (reach,))]
    tried = [(pulls, within) for pulls, within in tried if within is None and pulls[1] is not None] or tried
    best: list[tuple[int | None, float | None]] = []
    for i in range(4):
        sizes = [(pulls[i], within) for pulls, within in tried if pulls[i] is not None]
        best.append(min(sizes, key=itemgetter(0), default=(None, None)))
    withins = [within for size, within in best if size is not None and within is not None]
    return tuple(size for size, _ in best), max(withins, default=None)


def _pulls_at_reach(model: _Model, reach: float) -> tuple[_Pulls, float | None]:
    problem, c, k = model.problem, model.problem.declared, len(model.laws)
    B, m2 = max(law.minimal_B(reach) for law in model.laws), max(law.m2 for law in model.laws)
    if not 0 < B * m2 < math.inf:  # 0: an atom at the median, which the paper's algorithms do not allow
        return _NO_PULLS, None
    shift, amount = bounds.bias(c.eps, B, m2, c.adversary), problem.tolerance.amount
    effective = min(model.gaps) - 2 * shift  # the paper's gap, section 3
    wanted = max(effective, amount)
    if wanted < sys.float_info.min:
        return _NO_PULLS, None
    regular: dict[str, Any] = {"eps": c.eps, "B": B, "m2": m2, "reach": reach, "adversary": c.adversary}

    def uniform(constants: bounds.Constants) -> int:
        return bounds.uniform_sample_size(k, wanted, problem.delta, constants=constants, **regular)

    def paper_rounds() -> int:
        last = bounds.early_stop_round(wanted, k, problem.delta, B, m2, survivor="any")
        return bounds.elimination_schedule(k, problem.delta, c.eps, reach, c.adversary).total(last)

    def sharp_rounds() -> int:
        n = 0  # readings per arm at the first geometric look whose radius is a quarter of the gap: audit 1.l
        for r in count(1):
            least = bounds.median_sample_size(B * m2, bounds.round_delta(problem.delta, k, r), **regular)
            n = max(math.ceil(GROWTH * n), least)
            if bounds.counted_elimination_radius(r, n, k, delta=problem.delta, **regular) <= wanted / 4:
                break
        return n

    def pulls(each: Callable[[], int]) -> int | None:
        try:
            return k * each()
        except (OutOfReach, OverflowError):
            return None

    first = pulls(partial(uniform, "paper")), pulls(partial(uniform, "sharp"))
    # without an effective gap a rival can eliminate the best arm, and those left are not bounded: audit 1.l
    third = (pulls(paper_rounds), pulls(sharp_rounds)) if effective > 0 else (None, None)
    within = bounds.selection_gap(amount, shift, shift) if effective < amount else None  # erratum E3
    return (*first, *third), within
