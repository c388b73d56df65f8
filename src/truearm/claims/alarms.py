"""Signs that assumptions do not hold: doubts, which void a certificate, and alarms; and eps from checked readings.

Those that rest on chance are false alarms, over all arms together, with probability at most `FALSE_ALARM` per
kind, and `serial.DOUBT` for "dependence". "dependence", "missing", "outside" and "outliers" hold however often one
looks (e-values and ranks that hold at all times, evidence T12, audit 2.C), "units" at any one look.
docs/assumptions.md derives the bounds. "ties" and "contradiction" are plain facts about the readings.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from truearm.bounds import special
from truearm.claims import show
from truearm.claims.certificate import Alarm
from truearm.claims.result import Result
from truearm.evidence import Judge
from truearm.evidence.intervals import ranks_of, spread
from truearm.evidence.judge import FALSE_ALARM, UNDECLARED, exceeds
from truearm.evidence.sample import Floats, Sample
from truearm.evidence.serial import LOG_DOUBT, Serial, combine, log_evidence_of
from truearm.evidence.shares import highest_level
from truearm.evidence.units import Suspect
from truearm.problem import (
    Adversary,
    Contamination,
    Design,
    Problem,
    check_adversary,
    check_count,
    check_delta,
    check_design,
    check_kind,
    refuse,
)

FAR = 10 * 1.4826  # in MADs: ten standard deviations if the readings are normal
CAUCHY_TAIL = 2 / math.pi * math.atan(1 / FAR)  # share of a Cauchy law beyond FAR of its MADs: 4.3 %
UNITS = {1000.0: "1,000 times", 60.0: "60 times", 1 / 60: "1/60 of", 1 / 1000: "1/1,000 of"}
TIED_SHARE = 0.1  # of the readings; below it a tie moves the ranks less than the default contamination does
_LARGEST = np.finfo(np.float64).max
_LEAST_TIED = 10  # readings; fewer equal ones say little about the instrument


def doubts(judge: Judge) -> tuple[Alarm, ...]:
    """Return the assumptions that the samples contradict, whatever the order of their readings."""
    arms, samples, refuted = judge.problem.arms, judge.samples, judge.implausible_arms
    rest = [i for i in range(len(arms)) if i not in refuted and judge.is_contradicted(i)]
    return (
        *(Alarm("outside", arms[i], samples[i].outside, samples[i].n) for i in refuted),
        *(Alarm("contradiction", arms[i], samples[i].missing + samples[i].outside, samples[i].n) for i in rest),
    )


def dependence(problem: Problem, tapes: Sequence[Serial]) -> tuple[Alarm, ...]:
    """Return an alarm for each arm whose readings depend on when they were taken, or one for all arms."""
    if combine([tape.log_evidence for tape in tapes], dependent=problem.dependent_arms) < LOG_DOUBT:
        return ()
    bar = LOG_DOUBT + math.log(len(tapes))
    by_arm = zip(problem.arms, tapes, strict=True)
    alone = tuple(Alarm("dependence", arm, n=tape.n) for arm, tape in by_arm if tape.log_evidence >= bar)
    together = (Alarm("dependence", "", n=sum(tape.n for tape in tapes)),)
    return alone if 0 < len(alone) < len(tapes) else together


def find_unshared_drift(tapes: Sequence[Floats], tests: int | None = None) -> tuple[Alarm, ...]:
    """Return a doubt if arms that were pulled side by side depend on their time in ways that they do not share.

    The n-th readings of two arms, taken one after the other, meet the same conditions. A common load leaves
    nothing in their differences, or in the ratios of positive readings; what an arm does alone stays in both.
    Differences of independent draws are independent draws, so the level is that of evidence T12d; `tests` pairs
    share it, by default those of the first arm with each other one.
    """
    first, bar = tapes[0], LOG_DOUBT + math.log(tests or max(1, len(tapes) - 1))
    for other in tapes[1:]:
        n = min(first.size, other.size)
        one, two = first[:n], other[:n]
        with np.errstate(invalid="ignore", divide="ignore"):
            ways = [one - two]
            if np.nanmin(np.concatenate((one, two)), initial=1.0) > 0:
                ways.append(np.log(one) - np.log(two))
        if all(log_evidence_of(way[np.isfinite(way)]) >= bar for way in ways):
            return (Alarm("dependence", "", n=n),)
    return ()


def clusters(suspects: Sequence[Suspect]) -> tuple[Alarm, ...]:
    """Return a doubt for every undeclared column whose rows are more alike than rows of one arm should be.

    Over all columns together a false alarm has probability at most `FALSE_ALARM` (extensions 2). That each arm is
    a separate unit is a plain fact.
    """
    level = FALSE_ALARM / max(1, len(suspects))
    confounded = [Alarm("confounded", "", detail=s.column) for s in suspects if s.is_confounded]
    clustered = (s for s in suspects if not s.is_confounded and s.p_value(level) <= level)
    return (*confounded, *(Alarm("clusters", "", detail=s.column) for s in clustered))


def find(problem: Problem, samples: Sequence[Sample]) -> tuple[Alarm, ...]:
    """Return the alarms, arm by arm, from the readings as oriented samples."""
    found = (
        sign(problem, arm, sample)
        for arm, sample in zip(problem.arms, samples, strict=True)
        for sign in _SIGNS[problem.target]
        if sample.size + sample.missing
    )
    return tuple(alarm for alarm in found if alarm is not None)


def _share(problem: Problem) -> float:
    return FALSE_ALARM / len(problem.arms)


def _missing(problem: Problem, arm: str, sample: Sample) -> Alarm | None:
    """Judge the share of missing readings against eps; in any case they count at their worst."""
    declared = None if problem.is_blind else problem.contamination  # Ctrl-C in a run contradicts nothing
    eps = (declared or UNDECLARED).eps
    is_more = exceeds(sample.missing, sample.n, eps, -math.log(_share(problem)))
    return Alarm("missing", arm, sample.missing, sample.n) if is_more else None


def _outliers(problem: Problem, arm: str, sample: Sample) -> Alarm | None:
    """Judge the share far from the median against eps and, for heavy tails, a Cauchy law's own share.

    Infinities on the bad side are excluded: they are time-outs.
    """
    known = replace(sample, missing=0, outside=0)  # these have separate alarms: evidence T8
    share = _share(problem) / 2  # half for the limits, half for the count beyond them
    ranks = ranks_of(known.n, 0.5, share / 2, 0.0, Adversary.OBLIVIOUS, design="sequential")
    center, reach = known.between(ranks), FAR * spread(known, ranks).high
    if not 0 < reach < math.inf:
        return None
    ends = (np.nextafter(-math.inf, 0.0), center.low - reach, np.nextafter(center.high + reach, math.inf))
    first, low, high = known.count(np.array(ends)).tolist()
    far = low - first + known.size - high
    eps = (problem.contamination or UNDECLARED).eps
    allowed = eps + (1 - eps) * CAUCHY_TAIL  # docs/assumptions.md
    return Alarm("outliers", arm, far, known.n) if exceeds(far, known.n, allowed, -math.log(share)) else None


def far_readings(readings: Sequence[float]) -> tuple[int, ...]:
    """Return the places of finite readings more than ten robust standard deviations from the median."""
    values = np.asarray(readings, dtype=np.float64)
    if not np.isfinite(values).any():
        return ()
    known = np.where(np.isfinite(values), values, np.nan)
    distance = np.abs(known - np.nanmedian(known))
    reach = FAR * np.nanmedian(distance)
    return tuple(np.flatnonzero((reach > 0) & (distance > reach)).tolist())


def _units(problem: Problem, arm: str, sample: Sample) -> Alarm | None:
    """Look for readings that are a factor of the others: a cluster that smooth tails do not make.

    Sizes count, in logs. Null: beyond the middle 80 % the density of the logs falls. The order statistics up to
    the end of the middle fix all windows, and the readings beyond are independent draws given them, so that the
    count in a window is at most binomial (docs/assumptions.md).
    """
    n = sample.size
    up = n > 0 and sample.at(n // 2 + 1) > 0
    places = (int(level * (n - 1)) for level in (0.1, 0.5, 0.9)) if n else ()
    sizes = [sample.at(i + 1) if up else -sample.at(n - i) for i in places]
    if not sizes or not 0 < sizes[0] <= sizes[2] < math.inf:
        return None  # ratios mean nothing
    low, center, high = map(math.log, sizes)
    least = math.log(1.1) / 2  # a window at least 10 % wide, for readings that hardly vary
    low, high = min(low, center - least), max(high, center + least)
    width = high - low
    for factor, words in UNITS.items():
        shift = abs(math.log(factor))
        if shift < 3 * width:
            continue  # readings vary too much for a factor to stand out
        edges = np.array([width, shift - 2 * width, shift - width, shift, shift + width])
        with np.errstate(over="ignore", under="ignore"):
            ends = np.clip(np.exp(high + edges if factor > 1 else low - edges), math.ulp(0.0), _LARGEST)
        cuts = ends if up else -ends
        upto = sample.count(cuts, closed=True) if up == (factor > 1) else n - sample.count(cuts)
        ahead, before, inside, after = np.diff(upto).tolist()
        chance = width / (shift - width)  # of the window, in the stretch that begins one width beyond the middle
        # broad contamination is not a cluster, nor is one reading
        if inside >= 2 * max(before, after, 1):
            tail = special.betainc(inside, ahead + before + 1, chance)  # P(Bin(all three, chance) >= inside)
            if tail <= _share(problem) / len(UNITS):
                return Alarm("units", arm, int(inside), sample.n, detail=words)
    return None


def _ties(problem: Problem, arm: str, sample: Sample) -> Alarm | None:
    at = sample.quantile(problem.level)
    tied = int(sample.count(at, closed=True)) - int(sample.count(at))
    if math.isinf(at) or tied < max(_LEAST_TIED, TIED_SHARE * sample.n):
        return None
    return Alarm("ties", arm, tied, sample.n, (problem.sign * at,))


_SIGNS: Mapping[str, Sequence[Callable[[Problem, str, Sample], Alarm | None]]] = {
    "quantile": (_missing, _outliers, _units, _ties),
    "share": (_missing,),
    "wins": (_missing, _units),
    "mean": (),  # a missing score counts at its worst, whatever the share of wrong ones
}
"""What is looked for where arms are compared by a target."""


# A bound for eps, to pass as `contamination=`


@dataclass(frozen=True, slots=True)
class Audit:
    """An upper bound for eps from checked readings; pass it as `contamination=`."""

    eps: float
    """The share of bad readings is at most this."""
    delta: float
    """The chance that it is more, over all arms."""
    checked: tuple[int, ...]
    bad: tuple[int, ...]
    """Checked readings, and bad ones among them; one number per arm if they differ."""
    arms: int
    design: Design
    adversary: Adversary = Adversary.OBLIVIOUS

    @property
    def contamination(self) -> Contamination:
        """The bound as an assumption; an error if it bounds nothing."""
        msg = f"the audit bounds eps by {self.eps:.2g} only, and from 0.5 on nothing can be certified; "
        refuse(self.eps >= 0.5, f"{msg}check more readings, or fix their source")
        return Contamination(self.eps, self.adversary, error=self.delta)

    def __str__(self) -> str:
        return str(show("audit_text", self))


def audit(
    checked: int | Sequence[int],
    bad: int | Sequence[int],
    *,
    arms: int | None = None,
    of: Result | None = None,
    delta: float = 0.05,
    design: Design = "sequential",
    adversary: str = "oblivious",
) -> Audit:
    """Return a valid upper bound for eps from readings that were checked at the source.

    The chance of a bad reading must be the same at every pull. How the readings to check are chosen matters
    (extensions E5): from a file or pilot whose size was fixed in advance, draw them at random. From a study, which
    stops in view of its readings, flip a coin for each pull when it is issued, and check these in that order.

    Parameters
    ----------
    checked, bad
        The number of checked readings of each arm, and of bad ones among them; a list if arms differ.
    arms
        The number of arms; each has an equal share of delta, and the worst bound counts.
    of
        The result whose readings were checked, if any. It gives the number of arms, and requires
        `design="sequential"` unless the number of its readings was fixed in advance too.
    design
        "fixed" if the size of the file or pilot and the number of checks were both chosen in advance;
        "sequential" is valid no matter when you stop checking.
    delta, adversary
        The chance that the bound is wrong, and what makes bad readings, as in `Contamination`.

    Examples
    --------
    >>> [round(audit(100, bad).eps, 3) for bad in (0, 1)], round(audit(100, 0, arms=5).eps, 3)
    ([0.043, 0.07], 0.065)
    """
    if of is not None:
        check_kind("of", of, Result, "use what find_best returned")
    checks, wrong = _counts("checked", checked), _counts("bad", bad)
    lengths = {len(checks), len(wrong)} - {1}
    if arms is None:
        arms = max(lengths, default=1) if of is None else len(of.arms)
    k = check_count("arms", arms)
    msg = f"checked and bad must be one number, or one for each of {k} arms, but got {checked!r} and {bad!r}"
    refuse(lengths - {k}, msg)
    if lengths:
        checks, wrong = (counts * (k // len(counts)) for counts in (checks, wrong))
    for n, b in zip(checks, wrong, strict=True):
        refuse(b > n, f"bad must not be more than checked, but got {b} of {n}")
    kind, share = check_design(design), check_delta(delta) / k
    msg = "design must be 'sequential' for readings of a study, which stops in view of them, but got 'fixed'; "
    msg += "choose the pulls to check by a coin when they are issued, or check a file of fixed size"
    refuse(kind == "fixed" and of is not None and of.design != "fixed", msg)
    eps = max(highest_level(b, n, share, kind) for n, b in zip(checks, wrong, strict=True))  # extensions E5
    return Audit(eps, delta, checks, wrong, k, kind, check_adversary(adversary))


def _counts(name: str, given: int | Sequence[int]) -> tuple[int, ...]:
    if isinstance(given, list | tuple) and given:
        return tuple(check_count(f"{name}[{i}]", n, least=0) for i, n in enumerate(given))
    return (check_count(name, given, least=0),)  # type: ignore[arg-type]
