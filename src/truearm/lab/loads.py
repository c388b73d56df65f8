"""Loads: what a machine does to every reading by the number of its pull, whichever arm it belongs to.

A load is in log scale: a reading is multiplied by its exponential. Arms that are equal stay equal under a load,
yet an adaptive policy pulls them at different times, so that an arm may look better only for when it was pulled.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Load = Callable[[int, np.random.Generator], Floats]
"""The logarithm of the load at each of so many pulls, in order."""


def wander(n: int, rng: np.random.Generator, *, sd: float = 0.15, scale: float = 100.0) -> Floats:
    """Return a load that wanders about its mean: stationary, with correlation exp(-lag / scale).

    Examples
    --------
    >>> load = wander(4000, np.random.default_rng(1), scale=20)
    >>> round(float(np.corrcoef(load[20:], load[:-20])[0, 1]), 1), round(float(load.std()), 2)
    (0.4, 0.15)
    """
    keep = math.exp(-1 / scale)
    steps = sd * math.sqrt(1 - keep * keep) * rng.normal(size=n)
    steps[:1] = sd * rng.normal()
    load = np.empty(n)
    last = 0.0
    for i, step in enumerate(steps.tolist()):
        last = keep * last + step
        load[i] = last
    return load


def walk(n: int, rng: np.random.Generator, *, sd: float = 0.15, scale: float = 100.0) -> Floats:
    """Return a random walk that has moved by `sd` after `scale` pulls, in mean square.

    Examples
    --------
    >>> walk(3, np.random.default_rng(1), scale=1).round(2)
    array([0.05, 0.18, 0.22])
    """
    return np.cumsum(rng.normal(0, sd / math.sqrt(scale), n))


def neighbor(n: int, rng: np.random.Generator, *, height: float = math.log(1.4), scale: float = 100.0) -> Floats:
    """Return the load of a neighbor that comes and goes, for about `scale` pulls each time.

    Examples
    --------
    >>> load = neighbor(1000, np.random.default_rng(1), height=1.0)
    >>> sorted(set(load.tolist())), int(np.count_nonzero(np.diff(load)))
    ([0.0, 1.0], 9)
    """
    switches = rng.random(n) < 1 / scale
    return height * ((np.cumsum(switches) + rng.integers(2)) % 2).astype(np.float64)


def wave(n: int, rng: np.random.Generator, *, sd: float = 0.15, scale: float = 100.0) -> Floats:
    """Return a sine of standard deviation `sd` that repeats every `scale` pulls, at a random phase.

    Examples
    --------
    >>> load = wave(8, np.random.default_rng(1), scale=8, sd=1.0)
    >>> bool(np.allclose(load[:4], -load[4:])), round(float(load.std()), 6)
    (True, 1.0)
    """
    return math.sqrt(2) * sd * np.sin(2 * math.pi * (np.arange(n) / scale + rng.random()))


def ramp(n: int, rng: np.random.Generator, *, rise: float = math.log(1.4), scale: float = 2500.0) -> Floats:
    """Return a load that rises by `rise` in every `scale` pulls; nothing in it is random.

    Examples
    --------
    >>> ramp(3, np.random.default_rng(1), rise=1.0, scale=2)
    array([0. , 0.5, 1. ])
    """
    del rng
    return rise / scale * np.arange(n, dtype=np.float64)


LOADS: dict[str, Load] = {"wander": wander, "neighbor": neighbor, "ramp": ramp, "walk": walk, "wave": wave}


def times(load: Floats, rng: np.random.Generator) -> Floats:
    """Return run times of equal arms under a load: 3% noise in each, and 3% of them slow spikes.

    Examples
    --------
    >>> x = times(np.zeros(1000), np.random.default_rng(1))
    >>> round(float(np.median(x)), 2), int(np.count_nonzero(x > 1.15))
    (1.0, 20)
    """
    slow = np.where(rng.random(load.size) < 0.03, rng.exponential(0.5, load.size), 0.0)
    return np.exp(load + rng.normal(0, 0.03, load.size) + slow)


def side_by_side(load: Load | None, factors: Sequence[float], rounds: int, rng: np.random.Generator) -> Floats:
    """Return run times by arm and round: each round pulls all arms once in a random order, one after the other.

    Examples
    --------
    >>> quick, slow = side_by_side(wander, (1.0, 1.5), 500, np.random.default_rng(1))
    >>> bool((quick < slow).mean() > 0.95)
    True
    """
    k = len(factors)
    pulls = times(np.zeros(k * rounds) if load is None else load(k * rounds, rng), rng).reshape(rounds, k)
    found: Floats = np.array(factors)[:, None] * rng.permuted(pulls, axis=1).T
    return found
