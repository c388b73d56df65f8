"""The compiled engine against the policy object, pull for pull, and its evidence against the reference."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truearm.lab import Stationary, arms, benign, worst
from truearm.lab.simulate import play
from truearm.policies.toptwo import TopTwo
from truearm.problem import Contamination, Problem

engine = pytest.importorskip("truearm.lab.engine")
kernels = pytest.importorskip("truearm.lab.kernels")


class Given:
    """Tapes that are there from the start."""

    def __init__(self, tapes):
        self.tapes = tapes

    def upto(self, arm, n):
        return self.tapes[arm][: max(64, 1 << int(n - 1).bit_length())]


def problem_for(k, **options):
    return Problem(arms=tuple(f"arm {i}" for i in range(k)), **options)


def drawn(name, attack, seed, n=1 << 14):
    instance = arms.instance(name)
    source = attack(instance) if attack is not None else Stationary(0.0, 0.0)
    return Given([tape.readings for tape in source.tapes(np.random.default_rng(seed), instance.arms, n)])


def assert_same(policy, problem, tapes, max_pulls=6000):
    assert engine.run(policy, problem, tapes.upto, max_pulls) == play(policy, problem, tapes, max_pulls)


def attacked(eps):
    return lambda instance: worst(instance, eps)


def spread(eps):
    return lambda instance: benign(instance, eps)


CASES = [
    *((name, None, {}) for name in ("G2", "C2", "D2", "G5w", "D5", "C5", "G10lin", "D10lin", "G50lin")),
    *((name, attacked(0.05), {"contamination": 0.05}) for name in ("G2", "LN2", "D5", "C5", "G10lin", "D10lin")),
    *(
        (name, attacked(0.02), {"contamination": Contamination(0.02, power)})
        for name in ("G2", "D5", "G5w")
        for power in ("prescient", "malicious")
    ),
    *((name, attacked(0.02), {"contamination": 0.05, "dependent_arms": True}) for name in ("G2", "D5", "G5w")),
    *(
        ("G5w", spread(0.02), {"delta": delta, "quantile": q})
        for delta, q in ((0.1, 0.25), (0.001, 0.5), (0.05, 0.9))
    ),
    *((name, spread(0.1), {"contamination": 0.1, "tolerance": 0.3}) for name in ("G2", "D5", "G10lin")),
]


@pytest.mark.parametrize(("name", "attack", "options"), CASES)
def test_runs_agree(name, attack, options):
    k = len(arms.instance(name).arms)
    for seed in range(3):
        problem = problem_for(k, **{"contamination": None, **options})
        assert_same(TopTwo(), problem, drawn(name, attack, seed), 4000)


LONG = np.random.default_rng(8).normal(size=(4, 1 << 16)) - np.array([[0.0], [0.02], [0.02], [0.3]])
LAST = np.random.default_rng(13).integers(0, 4, size=(3, 4096)) + np.array([[0.0], [0.0], [1.0]])
HARD = {
    "samples with tails": (LONG, {"contamination": None}, 60_000),
    "tails and ties": (np.round(LONG, 1), {"contamination": None}, 60_000),
    "a tolerance with ties, where the last arm leads": (LAST, {"contamination": 0.05, "tolerance": 1.0}, 2000),
    "equal arms": (np.random.default_rng(6).normal(size=(2, 1 << 13)), {"contamination": 0.2}, 6000),
    "no value at all": (np.full((3, 256), np.nan), {}, 100),
}


@pytest.mark.parametrize("name", HARD)
def test_hard_runs_agree(name):
    tapes, options, pulls = HARD[name]
    assert_same(TopTwo(), problem_for(len(tapes), **options), Given(tapes), pulls)


small = st.lists(
    st.one_of(st.integers(-3, 3).map(float), st.sampled_from([math.nan, math.inf, -math.inf])),
    min_size=1,
    max_size=6,
)
odd_tapes = st.tuples(st.lists(small, min_size=2, max_size=4), st.integers(0, 2**32 - 1))
"""Up to six different readings per arm, of which each pull draws one: ties, holes and infinities everywhere."""
promises = st.fixed_dictionaries(
    {
        "goal": st.sampled_from(["max", "min"]),
        "tolerance": st.sampled_from([0.0, 1.0]),
        "delta": st.sampled_from([0.05, 0.3]),
        "quantile": st.sampled_from([0.5, 0.25, 0.9]),
        "dependent_arms": st.booleans(),
        "contamination": st.sampled_from(
            [None, 0.0, 0.1, 0.3, Contamination(0.1, "prescient"), Contamination(0.05, "malicious")]
        ),
    }
)


@given(odd_tapes, promises)
def test_toptwo_agrees_on_ties_holes_and_infinities(drawn_tapes, options):
    palettes, seed = drawn_tapes
    rng, problem = np.random.default_rng(seed), problem_for(len(palettes), **options)
    tapes = Given([problem.sign * rng.choice(palette, 364) for palette in palettes])
    assert_same(TopTwo(), problem, tapes, 300)


def test_a_larger_first_batch_agrees():
    assert_same(TopTwo(first=40), problem_for(5, contamination=None), drawn("G5w", None, 8))


def test_one_arm_and_hopeless_levels_end_without_a_pull():
    nothing = Given(np.empty((2, 0)))
    assert engine.run(TopTwo(), problem_for(1), nothing.upto, 100).answer == 0
    hopeless = problem_for(2, quantile=0.1, contamination=Contamination(0.2, "malicious"))
    assert engine.run(TopTwo(), hopeless, nothing.upto, 100).counts == (0, 0)
