"""Signs in the readings that the promises do not hold. They are told, never acted upon.

An alarm changes no decision and no reading. Those that rest on chance cry wrongly, over all arms together,
with probability at most `FALSE_ALARM` per kind: "missing", "outliers" and "drift" however often one looks
(e-values and ranks that hold at all times, audit 2.C), "units" at any one look. docs/assumptions.md derives
the four bounds. "ties" and "contradiction" are plain facts about the readings.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from truearm.bounds import sequential_quantile_ranks
from truearm.bounds.mixture import log_mixture
from truearm.claims.certificate import Tape, Tapes, sample_of
from truearm.claims.wording import count, name_of, number, percent, quantile_name
from truearm.evidence import Levels, pair
from truearm.evidence.sample import Sample, spread
from truearm.problem import Contamination, Problem

FALSE_ALARM = 0.001  # one study in a thousand: rare enough that a reader still looks when it happens
FAR = 10 * 1.4826  # in MADs: ten standard deviations if the readings are normal
CAUCHY_TAIL = 2 / math.pi * math.atan(1 / FAR)  # share of a Cauchy law beyond FAR of its MADs: 4.3 %
UNITS = {1000.0: "1,000 times", 60.0: "60 times", 1 / 60: "1/60 of", 1 / 1000: "1/1,000 of"}
TIED_SHARE = 0.1  # of the readings; below it a tie moves the ranks less than the default contamination does
_LEAST_TIED = 10  # readings; fewer equal ones say little about the instrument
_LEAST_SPLIT = 32  # readings in the earlier part; with fewer a drift cannot reach the evidence it needs
_UNDECLARED = Contamination(0.05)  # contamination=None declares no share: judge by the default one

Floats = NDArray[np.float64]


class Alarm(NamedTuple):
    """Something in the readings that does not fit the promises, in one sentence with what to do.

    Examples
    --------
    >>> Alarm("ties", "A", "half of the readings of A are 3").kind
    'ties'
    """

    kind: str
    """One of "missing", "contradiction", "outliers", "units", "ties", "drift"."""
    arm: str
    message: str


def find(problem: Problem, tapes: Tapes, samples: Sequence[Sample] | None = None) -> tuple[Alarm, ...]:
    """Return the alarms, arm by arm.

    Parameters
    ----------
    tapes
        Per arm the readings in order of pull, in the user's units; None for a pull never told.
    samples
        The tapes as oriented samples, if the caller has them: saves sorting again.

    Examples
    --------
    >>> readings = 1 + np.arange(400) * 0.618 % 1
    >>> readings[::50] *= 1000
    >>> for alarm in find(Problem(arms=("A",)), {"A": readings}):
    ...     print(alarm.kind, "|", alarm.message)
    units | 7 readings of A (1.75 %) lie near 1,000 times its median and hardly any beside them: if this is
    a mistake of units, correct it at the source; nothing was changed here.
    >>> find(Problem(arms=("A",)), {"A": readings[readings < 10]})
    ()
    """
    known = samples or [
        sample_of(tape, len(tape), problem.sign) for tape in (tapes.get(a, ()) for a in problem.arms)
    ]
    return tuple(
        alarm
        for arm, sample in zip(problem.arms, known, strict=True)
        for alarm in _of_arm(problem, tapes.get(arm, ()), arm, sample)
    )


def _of_arm(problem: Problem, tape: Tape, arm: str, sample: Sample) -> Iterator[Alarm]:
    if not sample.values.size + sample.missing:
        return
    signs: dict[str, Callable[[], str | None]] = {
        "missing": lambda: _missing(problem, sample),
        "contradiction": lambda: _contradiction(problem, sample),
        "outliers": lambda: _outliers(problem, sample),
        "units": lambda: _units(problem, sample),
        "ties": lambda: _ties(problem, sample),
        "drift": lambda: _drift(problem, tape, sample),
    }
    for kind, sign in signs.items():
        if (message := sign()) is not None:
            yield Alarm(kind, arm, message.format(arm=name_of(arm)))


def _share(problem: Problem) -> float:
    return FALSE_ALARM / len(problem.arms)


def _declared(problem: Problem) -> Contamination:
    return problem.contamination or _UNDECLARED


def _declaration(problem: Problem) -> str:
    if problem.contamination is None:
        return f"none was declared, and this is judged by {percent(_UNDECLARED.eps)}"
    return f"{percent(problem.contamination.eps)} contamination was declared"


def _exceeds(bad: int, n: int, allowed: float, log_bar: float) -> bool:
    """Tell whether so many bad among n readings contradict a chance of at most `allowed` for each."""
    if allowed <= 0:
        return bad > 0
    return bool(log_mixture(n - bad, n, 1 - allowed) >= log_bar)  # audit 2.C, Ville


def too_many_missing(problem: Problem, sample: Sample) -> bool:
    """Tell whether more readings are missing than chance explains under the declared contamination.

    Examples
    --------
    >>> [too_many_missing(Problem(arms=("A",)), Sample(np.arange(90.0), missing)) for missing in (5, 40)]
    [False, True]
    """
    return _exceeds(sample.missing, sample.n, _declared(problem).eps, -math.log(_share(problem)))


def _missing(problem: Problem, sample: Sample) -> str | None:
    if not too_many_missing(problem, sample):
        return None
    n = sample.n
    return (
        f"{count(sample.missing)} of {count(n)} readings of {{arm}} ({percent(sample.missing / n)}) are missing"
        f", more than chance explains when {_declaration(problem)}: find out why they fail, or declare more "
        "contamination."
    )


def _known(sample: Sample) -> Sample:
    """Return the sample without its missing readings, which have an alarm of their own (evidence T8)."""
    return Sample(sample.values, 0, sample.pending)


def _contradiction(problem: Problem, sample: Sample) -> str | None:
    c = problem.contamination or Contamination(0.0)
    share = problem.delta / len(problem.arms)  # the level of the intervals in a result
    low, high = sample.between(sequential_quantile_ranks(sample.n, problem.level, share, c.eps, c.adversary))
    if low <= high:
        return None
    return (
        f"no true {quantile_name(problem.quantile)} of {{arm}} fits its readings when {_declaration(problem)}, "
        f"because {count(sample.missing)} of {count(sample.n)} are missing: distrust every statement about "
        "{arm}, and declare more contamination."
    )


def _outliers(problem: Problem, sample: Sample) -> str | None:
    """Judge the share far from the median against eps and, for heavy tails, a Cauchy law's own share.

    Infinities on the bad side are left out: they are what a time-out leaves.
    """
    known = _known(sample)
    share = _share(problem) / 2  # half for the limits, half for the count beyond them
    ranks = sequential_quantile_ranks(known.n, 0.5, share / 2, 0.0, "oblivious")
    center, reach = known.between(ranks), FAR * spread(known, ranks).high
    if not 0 < reach < math.inf:
        return None
    ends = (np.nextafter(-math.inf, 0.0), center.low - reach, np.nextafter(center.high + reach, math.inf))
    first, low, high = np.searchsorted(known.values, ends).tolist()
    far = low - first + known.values.size - high
    eps = _declared(problem).eps
    allowed = eps + (1 - eps) * CAUCHY_TAIL  # docs/assumptions.md
    if not _exceeds(far, known.n, allowed, -math.log(share)):
        return None
    return (
        f"{count(far)} of {count(known.n)} readings of {{arm}} ({percent(far / known.n)}) lie more than ten "
        f"robust standard deviations from its median, and {_declaration(problem)}: look at them, and declare "
        "more contamination unless they are true readings with very heavy tails."
    )


def _units(problem: Problem, sample: Sample) -> str | None:
    """Look for a cluster at a factor of the median that smooth tails do not make."""
    middle = _log_middle(sample.values)
    if middle is None:
        return None
    logs, low, high = middle
    mirrored = -logs[::-1], -high, -low
    for factor, words in UNITS.items():
        above = (logs, low, high) if factor > 1 else mirrored
        found = _cluster(*above, shift=abs(math.log(factor)), share=_share(problem) / len(UNITS))
        if found:
            return (
                f"{count(found)} readings of {{arm}} ({percent(found / sample.n)}) lie near {words} its median "
                "and hardly any beside them: if this is a mistake of units, correct it at the source; nothing "
                "was changed here."
            )
    return None


def _log_middle(values: Floats) -> tuple[Floats, float, float] | None:
    """Return the ends of the middle 80 % of the logs of sizes, and before them the sorted logs outside.

    None where ratios mean nothing.
    """
    if not values.size:
        return None
    sizes = values if values[values.size // 2] > 0 else -values[::-1]
    low, center, high = (float(sizes[int(level * (sizes.size - 1))]) for level in (0.1, 0.5, 0.9))
    if not 0 < low <= high < math.inf:
        return None
    least = math.log(1.1) / 2  # a window at least 10 % wide, for readings that hardly vary
    low, center, high = math.log(low), math.log(center), math.log(high)
    low, high = min(low, center - least), max(high, center + least)
    with np.errstate(over="ignore"):
        ends = np.exp((low, high))
    first, start, end = np.searchsorted(sizes, (math.ulp(0.0), *ends)).tolist()
    return np.log(np.concatenate((sizes[first:start], sizes[end:]))), low, high


def _cluster(logs: Floats, low: float, high: float, *, shift: float, share: float) -> int:
    """Return how many logs lie in the middle moved by `shift`, 0 if smooth tails explain them.

    Null: beyond the middle 80 % the density of the logs falls. The order statistics up to the end of the
    middle fix all windows, and the readings beyond are independent draws given them, so that the count in the
    window is at most binomial (docs/assumptions.md).
    """
    width = high - low
    if shift < 3 * width:
        return 0  # readings vary too much for a factor to stand out
    edges = high + np.array([width, shift - 2 * width, shift - width, shift, shift + width])
    ahead, before, inside, after = np.diff(np.searchsorted(logs, edges, side="right")).tolist()
    if inside < 2 * max(before, after, 1):  # broad contamination is not a cluster, nor is one reading
        return 0
    chance = width / (shift - width)  # of the window, in the stretch that begins one width beyond the middle
    tail = betainc(inside, ahead + before + 1, chance)  # P(Bin(inside + ahead + before, chance) >= inside)
    return int(inside) if tail <= share else 0


def _ties(problem: Problem, sample: Sample) -> str | None:
    at = sample.quantile(problem.level)
    first, last = (int(np.searchsorted(sample.values, at, side=side)) for side in ("left", "right"))
    tied = last - first
    if tied < max(_LEAST_TIED, TIED_SHARE * sample.n):
        return None
    return (
        f"{count(tied)} of {count(sample.n)} readings of {{arm}} ({percent(tied / sample.n)}) equal its "
        f"{quantile_name(problem.quantile)} {number(problem.sign * at)}: arms that share this value cannot be "
        "told apart, so record more digits if the instrument has them."
    )


def _drift(problem: Problem, tape: Tape, sample: Sample) -> str | None:
    """Judge whether the true quantile moved between earlier and later pulls, at the declared eps.

    The split is a power of two in the middle third, so that few splits share the error probability.
    """
    n = len(tape)
    split = 1 << max(0, (2 * n // 3).bit_length() - 1)
    levels = Levels.of(problem.level, problem.contamination)
    if split < _LEAST_SPLIT or min(levels) <= 0:
        return None
    power = split.bit_length() - _LEAST_SPLIT.bit_length() + 1
    log_bar = math.log(2 * power * (power + 1) / _share(problem))  # sum of 1/(m (m+1)) is 1; both directions
    parts = tape[:split], tape[split:]
    if isinstance(tape, np.ndarray):
        oriented = [problem.sign * np.asarray(part) for part in parts]
        if not _may_drift(oriented, sample.quantile(problem.level), levels, log_bar):
            return None
    earlier, later = (_known(sample_of(part, len(part), problem.sign)) for part in parts)
    moves = ((later, earlier), (earlier, later))
    if all(pair(better, worse, levels, closed=True).log_value < log_bar for better, worse in moves):
        return None
    then, now = (number(problem.sign * part.quantile(problem.level)) for part in (earlier, later))
    return (
        f"the {quantile_name(problem.quantile)} of {{arm}} drifts: {then} in its first {count(split)} pulls, "
        f"{now} in the {count(n - split)} after them: give readings in order of pull, interleave the arms, and "
        "keep conditions the same."
    )


def _may_drift(parts: Sequence[Floats], cut: float, levels: Levels, log_bar: float) -> bool:
    """Tell whether the evidence at one cut, a bound of the least over all cuts, reaches the bar; sorts nothing."""
    below = [float(np.count_nonzero(part <= cut)) for part in parts]
    above = [float(np.count_nonzero(part >= cut)) for part in parts]
    sizes = [part.size - int(np.count_nonzero(np.isnan(part))) for part in parts]
    low, high = log_mixture(below, sizes, levels.low), log_mixture(above, sizes, levels.high)
    return bool(max(low[1] + high[0], low[0] + high[1]) >= log_bar)  # later better, earlier better
