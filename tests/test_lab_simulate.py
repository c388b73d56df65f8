"""Simulations: the same table everywhere, exact rates, tapes that keep their order."""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np
import pytest
from scipy.stats import binomtest

from truearm.claims.certificate import Status
from truearm.errors import InvalidArgument
from truearm.lab import instance, limit, worst
from truearm.lab.simulate import Rate, Run, Tapes, simulate
from truearm.problem import Regularity

PAIR = instance("D2")


def small(**options):
    return simulate("toptwo", PAIR, worst(PAIR, 0.05), 20, seed=3, **options)


def assert_same(left, right):
    assert all(np.array_equal(left.runs[key], right.runs[key]) for key in left.runs)
    assert np.array_equal(left.counts, right.counts)


def test_engines_give_the_same_table():
    assert_same(small(engine="compiled"), small(engine="python"))
    assert "best_rejected" not in repr(small())  # in a notebook, 20 runs of numbers would hide the setting


def test_a_dask_cluster_gives_the_same_table(tmp_path):
    distributed = pytest.importorskip("distributed")
    folder = str(tmp_path)
    options = {"n_workers": 1, "processes": False, "dashboard_address": ":0", "local_directory": folder}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        assert_same(small(executor=client.get_executor(pure=False)), small())


def test_the_limit_is_that_of_the_lab():
    done = simulate("toptwo", PAIR, worst(PAIR, 0.05), 4, contamination=0.05, delta=0.1)
    assert done.limit == limit(PAIR, worst(PAIR, 0.05), contamination=0.05).pulls(0.1)
    assert done.summary.ratio == pytest.approx(done.runs["pulls"].mean() / done.limit)


@pytest.mark.parametrize(("count", "trials"), [(0, 7), (3, 40), (40, 40), (17, 200)])
def test_rates_have_exact_intervals(count, trials):
    exact = binomtest(count, trials).proportion_ci(0.95, "exact")
    assert Rate.of(count, trials).interval == pytest.approx((exact.low, exact.high))


def test_tapes_do_not_depend_on_how_they_are_read():
    def tapes():
        return Tapes(instance("G5"), worst(instance("G5"), 0.1), np.random.default_rng(0), 10**6)

    first, second = tapes(), tapes()
    for n in (1, 70, 500, 3000):
        first.upto(2, n)
    assert np.array_equal(first.upto(2, 3000)[:3000], second.upto(2, 3000)[:3000])


class Stubborn:
    """A runner of one's own: always names the last arm."""

    def run(self, problem, tapes, max_pulls):
        assert tapes.upto(0, 10).size <= max_pulls
        k = len(problem.arms)
        return Run(Status.SEPARATED, k - 1, (10,) * k, tuple(range(k - 1)))


def test_any_runner_can_be_simulated():
    done = simulate(Stubborn(), PAIR, None, 10)
    assert done.summary.errors.count == done.summary.lost.count == 10
    assert done.summary.pulls == 20


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_runs_become_a_frame(backend):
    pytest.importorskip(backend)
    assert small().to_frame(backend).shape == (20, 6)


def test_a_policy_without_compiled_code_runs_on_python():
    problem = {"regularity": Regularity(B=5.0, m2=0.68, reach=0.25), "tolerance": 2.0}
    assert simulate("uniform", instance("G2"), None, 2, **problem).summary.answered.count == 2
    with pytest.raises(InvalidArgument, match="no code for"):
        simulate("uniform", instance("G2"), None, 2, engine="compiled", **problem)


def test_rounds_are_blind_by_default_and_lose_the_best_arm_rarely():
    done = simulate("toptwo", PAIR, None, 40, rounds=True, seed=2)
    assert done.problem.is_blind
    assert done.summary.answered.count == 40
    assert done.summary.lost.count <= 8  # of an expected 2 at most: a false alarm of 1e-4
    assert np.isnan(done.limit)


def test_a_plausible_range_is_simulated_without_a_limit():
    done = simulate("toptwo", PAIR, None, 2, contamination=0.05, between=(-20.0, 20.0))
    assert (done.problem.between, done.summary.answered.count) == ((-20.0, 20.0), 2)
    assert np.isnan(done.limit)


@pytest.mark.parametrize("name", ["C5", "G5w"])
def test_no_run_is_caught_between_two_arms_that_are_not_the_best(name):
    pytest.importorskip("numba")
    arms = instance(name)
    done = simulate("toptwo", arms, worst(arms, 0.1), 144, contamination=0.1)  # one of C5 was, for long
    assert done.runs["pulls"].max() < 6 * done.runs["pulls"].mean()


@pytest.mark.parametrize(
    "pool", [ThreadPoolExecutor, partial(ProcessPoolExecutor, mp_context=get_context("spawn"))]
)
def test_executors_give_the_same_table(pool):
    with pool(2) as executor:
        assert_same(small(executor=executor), small())
