"""Evidence that one arm's readings drift or depend on each other: a bet on ranks (evidence T12).

The null: the readings of each arm are independent draws of one law, whatever it is, and the tapes of different
arms are independent. Then the rank of each reading among the earlier ones is uniform and independent of them;
ties are broken by a fixed hash, so the same tape always gives the same evidence. Bettors expect the next rank on
the side where the last ones were, over several memories. Fixed shares of a capital of 1 go to them and to cash,
and every `EVERY` ranks a part of all capital is divided again, so that a load that comes late still meets bets.
The capital is a nonnegative martingale: the chance that it ever reaches x is at most 1/x. After `FULL` readings
the ranks are those of blocks, ranked among blocks of the same epoch (T12b). Only the highest capital of each
arm's tape is used, because it does not depend on the policy (T12c).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Scores = NDArray[np.uint8]

DOUBT = 1 / 400  # the share of studies of independent readings that are doubtful, at most
LOG_DOUBT = -math.log(DOUBT)  # what `combine` must reach for a study to be doubtful
FULL = 2048  # readings ranked one by one: as many as most studies need
MEMORIES = (1.0, 4.0, 16.0, 64.0, math.inf)  # over how many ranks bettors average; all of them for a ramp
STRENGTH = 12.0  # bet per expected distance from 1/2: best for small ones, 1 / variance of a uniform rank
LIMIT = 1.9  # largest bet; at 2 one rank at the wrong end takes all capital
CASH = 0.5  # part of the capital that never bets: it costs ln 2 at most, and pays for bets on late loads
EVERY, SHARED = 32, 0.1  # after this many ranks this part is divided again; .03 to .2 find nearly as many loads
LOOKS = (64, 1.0)  # a look is due after this many readings, and this growth: a call costs as much as 100 ranks

_KEEP = np.array([0.0 if memory == 1.0 else math.exp(-1 / memory) for memory in MEMORIES])
_SHARES = np.append(np.full(_KEEP.size, (1 - CASH) / _KEEP.size), CASH)
_SHARED_SHARES = SHARED * _SHARES
_NONE = np.empty(0)
_NO_SCORES = np.empty(0, dtype=np.uint8)
_CHUNK = 128  # values ranked among each other by comparing all pairs
_BEFORE = np.tri(_CHUNK, k=-1, dtype=bool)


def _powers() -> tuple[Floats, Floats]:
    """Return keep^j for j <= EVERY, and matrices that sum the ranks before each place so weighted."""
    powers = np.array([keep ** np.arange(EVERY + 1) for keep in _KEEP])
    lag = np.arange(EVERY + 1) - np.arange(EVERY)[:, None] - 1
    return powers, np.where(lag >= 0, powers[:, np.maximum(lag, 0)], 0.0)


def _sums_of_powers() -> Floats:
    """Return 1 + the sum of keep^j over earlier ranks, row by row as long as it changes."""
    count = np.arange(_SETTLED * EVERY).reshape(-1, 1, EVERY)
    finite = 1 + (1 - _KEEP[:-1, None] ** count) / (1 - _KEEP[:-1, None])
    return np.concatenate((finite, 1.0 + count), axis=1)


_SETTLED = 80  # rows after which a memory of 64 ranks is full to the last digit
_POWERS, _SUMS = _powers()
_WEIGHTS = _sums_of_powers()


@dataclass(frozen=True, slots=True, eq=False)
class Purse:
    """The capital of all bettors when it was last divided, and the ranks since."""

    shared: int = 0
    sums: Floats = field(default_factory=lambda: np.zeros(_KEEP.size))
    parts: Floats = field(default_factory=lambda: _SHARES)
    log_total: float = 0.0
    recent: Floats = field(default_factory=lambda: _NONE)  # ranks less 1/2 since then

    @property
    def bets(self) -> int:
        """How many ranks were bet on."""
        return self.shared * EVERY + self.recent.size

    def after(self, ranks: Floats) -> "tuple[Purse, float]":
        """Return the capital after bets on more ranks, and the highest log total on the way."""
        centered = np.concatenate((self.recent, ranks - 0.5))
        whole, left = divmod(centered.size, EVERY)
        rows = np.concatenate((centered, np.zeros(-centered.size % EVERY))).reshape(-1, EVERY)  # no bet on zeros
        before = _sums_before(rows, self.sums)
        growth = _growth(rows, before[:, :, :EVERY], self.shared)
        parts, log_totals = _share_out(growth[:, :, -1], self.parts)
        highest = np.log(np.matmul(parts[: rows.shape[0], None, :], growth).max(axis=(1, 2)))
        top = max(0.0, self.log_total + float((log_totals[: rows.shape[0]] + highest).max(initial=-math.inf)))
        sums = before[whole - 1, :, EVERY] if whole else self.sums
        log_total = self.log_total + float(log_totals[whole])
        return Purse(self.shared + whole, sums, parts[whole], log_total, centered[centered.size - left :]), top


@dataclass(frozen=True, slots=True, eq=False)
class Serial:
    """One arm's readings so far as a bet against drift and dependence.

    Parameters
    ----------
    stream
        Which sequence of tie-breakers to use; arms that are combined need different ones.
    n, size
        How many readings it has seen, and how many of them have a value.
    """

    stream: int = 0
    n: int = 0
    size: int = 0
    log_evidence: float = 0.0
    earlier: Floats = field(default_factory=lambda: _NONE, repr=False)  # values of this epoch, sorted
    cuts: Floats = field(default_factory=lambda: _NONE, repr=False)
    rest: Scores = field(default_factory=lambda: _NO_SCORES, repr=False)  # of an unfinished block
    purse: Purse = field(default_factory=Purse, repr=False)

    def extend(self, readings: ArrayLike) -> "Serial":
        """Return the state after more readings in order of pull; NaN are skipped, infinities are values."""
        given = np.asarray(readings, dtype=np.float64)
        lacking = np.isnan(given)
        new = given[~lacking] if lacking.any() else given
        state = replace(self, n=self.n + given.size)
        while new.size:
            end = FULL if state.size < FULL else FULL << _epoch(state.size) + 1
            part, new = new[: end - state.size], new[end - state.size :]
            state = _rank_each(state, part) if state.size < FULL else _rank_blocks(state, part)
        return state


def log_evidence_of(tape: ArrayLike, stream: int = 0) -> float:
    """Return the log evidence of one arm's whole tape against independent draws of one law."""
    return Serial(stream).extend(tape).log_evidence


def combine(arms: Iterable[Serial | float], *, dependent: bool = False) -> float:
    """Return -log of a p-value that all arms give independent draws, from their states or log evidences.

    Parameters
    ----------
    dependent
        The tapes of the arms may depend on each other: then only the arm that drifts most counts.
    """
    logs = [max(0.0, arm.log_evidence if isinstance(arm, Serial) else arm) for arm in arms]
    if not logs:
        return 0.0
    alone = max(logs) - math.log(len(logs))  # evidence T12, Bonferroni
    if dependent or len(logs) == 1:
        return max(0.0, alone)
    return max(0.0, max(alone, _fisher(sum(logs), len(logs))) - math.log(2))


def is_due(seen: int, n: int) -> bool:
    """Return True if a study that looked at `seen` of n readings should look again.

    Nothing is lost between looks, because evidence is the highest along the tape; a decision must look anyway.
    """
    return n - seen >= max(LOOKS[0], LOOKS[1] * seen)


def _fisher(total: float, k: int) -> float:
    """Return -log P(sum of k standard exponentials >= total)."""
    terms = [j * math.log(total) - math.lgamma(j + 1) if total > 0 else -math.inf for j in range(1, k)]
    return total - float(np.logaddexp.reduce([0.0, *terms]))  # evidence T12, Fisher


def _epoch(n: int) -> int:
    return (n // FULL).bit_length() - 1


def _rank_each(state: Serial, readings: Floats) -> Serial:
    state = replace(_bet_on(state, readings), size=state.size + readings.size)
    if state.size < FULL:
        return state
    return replace(state, earlier=_NONE, cuts=state.earlier[[FULL // 4, FULL // 2, 3 * FULL // 4]])


def _rank_blocks(state: Serial, readings: Floats) -> Serial:
    block = 2 << _epoch(state.size)
    above = np.zeros(readings.size, dtype=np.uint8)
    for cut in state.cuts.tolist():
        above += (readings > cut).view(np.uint8)
    above = np.concatenate((state.rest, above))
    whole = above.size - above.size % block
    size = state.size + readings.size
    after = replace(state, size=size, rest=above[whole:])
    if whole:
        after = _bet_on(after, above[:whole].reshape(-1, block).sum(axis=1, dtype=np.float64))
    return replace(after, earlier=_NONE) if _epoch(size) > _epoch(state.size) else after


def _bet_on(state: Serial, values: Floats) -> Serial:
    """Return the state after betting on the ranks of more values among those of its epoch."""
    tie_breakers = _uniforms(state.stream, state.purse.bets, values.size)
    earlier, ranks = state.earlier, np.empty(values.size)
    for start in range(0, values.size, _CHUNK):
        chunk = slice(start, start + _CHUNK)
        ranks[chunk], earlier = _ranks(values[chunk], earlier, tie_breakers[chunk])
    purse, top = state.purse.after(ranks)
    return replace(state, earlier=earlier, purse=purse, log_evidence=max(state.log_evidence, top))


def _ranks(values: Floats, earlier: Floats, tie_breakers: Floats) -> tuple[Floats, Floats]:
    """Return each value's rank in (0, 1) among all before it, and all of them sorted."""
    together = np.sort(np.concatenate((earlier, values)), kind="stable")
    before = _BEFORE[: values.size, : values.size]
    below = earlier.searchsorted(values) + ((values[:, None] > values) & before).sum(axis=1)
    upto = below
    if (together[1:] == together[:-1]).any():
        upto = earlier.searchsorted(values, side="right") + ((values[:, None] >= values) & before).sum(axis=1)
    sizes = np.arange(earlier.size + 1, earlier.size + values.size + 1)
    return (below + tie_breakers * (1 + upto - below)) / sizes, together  # evidence T12


def _sums_before(rows: Floats, sums: Floats) -> Floats:
    """Return for each row and memory the weighted sums of ranks before each place and after the last one."""
    within = np.moveaxis(rows @ _SUMS, 0, 1)
    starts = np.empty((rows.shape[0], _KEEP.size))
    for i, row in enumerate(within[:, :, EVERY]):
        starts[i] = sums
        sums = row + _POWERS[:, EVERY] * sums
    within += starts[:, :, None] * _POWERS
    return within


def _growth(rows: Floats, before: Floats, shared: int) -> Floats:
    """Return by how much each bettor, and cash at the end, has multiplied its part at each place of each row."""
    bets = np.clip(STRENGTH * before / _weights(shared, rows.shape[0]), -LIMIT, LIMIT)
    growth = np.ones((rows.shape[0], _KEEP.size + 1, EVERY))
    np.cumprod(1 + bets * rows[:, None, :], axis=2, out=growth[:, :-1])  # evidence T12
    return growth


def _share_out(ends: Floats, parts: Floats) -> tuple[Floats, Floats]:
    """Return the parts of the capital and the log growth of all of it before each row, and after the last one."""
    after, log_totals = np.empty((ends.shape[0] + 1, parts.size)), np.zeros(ends.shape[0] + 1)
    after[0] = parts
    for i, end in enumerate(ends):
        grown = after[i] * end
        total = float(grown.sum())
        after[i + 1] = (1 - SHARED) / total * grown + _SHARED_SHARES
        log_totals[i + 1] = log_totals[i] + math.log(total)
    return after, log_totals


def _weights(shared: int, rows: int) -> Floats:
    """Return 1 + the sum of keep^j over all earlier ranks, for each memory: averages begin with a zero."""
    first, last = min(shared, _SETTLED), min(shared + rows, _SETTLED)
    weights = np.concatenate((_WEIGHTS[first:last], np.repeat(_WEIGHTS[-1:], rows - (last - first), axis=0)))
    weights[:, -1] = 1 + np.arange(shared * EVERY, (shared + rows) * EVERY).reshape(-1, EVERY)
    return weights


def _uniforms(stream: int, first: int, count: int) -> Floats:
    """Return tie-breakers in (0, 1), a hash of their numbers (SplitMix64: Steele, Lea and Flood 2014)."""
    start = (stream * 0xD1B54A32D192ED03 + (first + 1) * 0x9E3779B97F4A7C15) % 2**64
    z = np.uint64(start) + np.arange(count, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) * 2.0**-53 + 2.0**-54
