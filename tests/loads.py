"""Loads: what a machine does to every reading by the number of its pull, whichever arm it belongs to.

A load is in log scale: a reading is multiplied by its exponential. Arms that are equal stay equal under a load,
yet an adaptive policy pulls them at different times, so that an arm may look better only for when it was pulled.
"""

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Load = Callable[[int, np.random.Generator], Floats]
"""The logarithm of the load at each of n pulls, in order."""


def wander(n: int, rng: np.random.Generator, *, sd: float = 0.15, scale: float = 100.0) -> Floats:
    """Return a load that wanders about its mean: stationary, with correlation exp(-lag / scale)."""
    keep = math.exp(-1 / scale)
    steps = sd * math.sqrt(1 - keep * keep) * rng.normal(size=n)
    steps[:1] = sd * rng.normal()
    return np.array([*itertools.accumulate(steps.tolist(), lambda last, step: keep * last + step)])


def walk(n: int, rng: np.random.Generator, *, sd: float = 0.15, scale: float = 100.0) -> Floats:
    """Return a random walk that has moved by `sd` after `scale` pulls, in mean square."""
    return np.cumsum(rng.normal(0, sd / math.sqrt(scale), n))


def neighbor(n: int, rng: np.random.Generator, *, height: float = math.log(1.4), scale: float = 100.0) -> Floats:
    """Return the load of a neighbor that comes and goes, for about `scale` pulls each time."""
    switches = rng.random(n) < 1 / scale
    return height * ((np.cumsum(switches) + rng.integers(2)) % 2).astype(np.float64)


def wave(n: int, rng: np.random.Generator, *, sd: float = 0.15, scale: float = 100.0) -> Floats:
    """Return a sine of standard deviation `sd` that repeats every `scale` pulls, at a random phase."""
    return math.sqrt(2) * sd * np.sin(2 * math.pi * (np.arange(n) / scale + rng.random()))


def ramp(n: int, rng: np.random.Generator, *, rise: float = math.log(1.4), scale: float = 2500.0) -> Floats:
    """Return a load that rises by `rise` in every `scale` pulls; nothing in it is random."""
    del rng
    return rise / scale * np.arange(n, dtype=np.float64)


LOADS: dict[str, Load] = {"wander": wander, "neighbor": neighbor, "ramp": ramp, "walk": walk, "wave": wave}


def times(load: Floats, rng: np.random.Generator) -> Floats:
    """Return run times of equal arms under a load: 3% noise in each, and 3% of them slow spikes."""
    slow = np.where(rng.random(load.size) < 0.03, rng.exponential(0.5, load.size), 0.0)
    return np.exp(load + rng.normal(0, 0.03, load.size) + slow)


def side_by_side(load: Load | None, factors: Sequence[float], rounds: int, rng: np.random.Generator) -> Floats:
    """Return run times by arm and round: each round pulls all arms once in a random order, one after the other."""
    k = len(factors)
    pulls = times(np.zeros(k * rounds) if load is None else load(k * rounds, rng), rng).reshape(rounds, k)
    found: Floats = np.array(factors)[:, None] * rng.permuted(pulls, axis=1).T
    return found
