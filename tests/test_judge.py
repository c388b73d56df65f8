"""The judge against its definitions, evaluated by brute force on small samples."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truearm.analysis import analyze
from truearm.bounds.mixture import log_mixture
from truearm.claims.certificate import Status, sample_of
from truearm.evidence import Entry, Judge
from truearm.evidence.sample import Sample
from truearm.problem import Contamination, Problem
from truearm.study import Study

INF, NAN = math.inf, math.nan
designs = st.sampled_from(["sequential", "fixed"])
integers = st.integers(-4, 4).map(float)
promises = st.fixed_dictionaries(
    {
        "contamination": st.sampled_from(
            [None, 0.0, 0.1, Contamination(0.1, "malicious"), Contamination(0.05, "prescient")]
        ),
        "goal": st.sampled_from(["max", "min"]),
        "quantile": st.sampled_from([0.5, 0.3, 0.9]),
    }
)


def tapes_of(values, least=0, most=40, k=2):
    return st.lists(st.lists(values, min_size=least, max_size=most), min_size=k, max_size=k)


def judge_of(problem, tapes, *, early=None, leader=0, design="sequential"):
    """Return a judge; with `early` of the pooled rule: every arm but the last was followed from that pull on."""
    samples = [sample_of(tape, len(tape), problem) for tape in tapes]
    entries = [] if early is None else [Entry(i, sample_of(tapes[i], n, problem)) for i, n in enumerate(early)]
    entries = [e._replace(until=samples[e.arm]) for e in entries[:-1]] + entries[-1:]
    return Judge.of(problem, samples, leader=leader, entries=entries, design=design, ordered=early is not None)


def problem_for(k=2, **options):
    return Problem(arms=tuple("ABCD"[:k]), **options)


# --- T8: readings without a value -----------------------------------------------------------------


def completed(tapes, choices):
    """Yield every way to replace missing readings by one of the choices."""
    holes = [(i, n) for i, tape in enumerate(tapes) for n, value in enumerate(tape) if math.isnan(value)]
    for fill in product(choices, repeat=len(holes)):
        filled = [list(tape) for tape in tapes]
        for (i, n), value in zip(holes, fill, strict=True):
            filled[i][n] = value
        yield filled


@st.composite
def holed(draw, values, k):
    """Tapes with up to four readings NaN, over all arms."""
    tapes = draw(tapes_of(values, least=1, most=12, k=k))
    for _ in range(draw(st.integers(1, 4))):
        tape = tapes[draw(st.integers(0, k - 1))]
        tape[draw(st.integers(0, len(tape) - 1))] = NAN
    return tapes


@given(holed(integers, 2), promises, st.booleans(), designs)
def test_missing_readings_at_their_worst_are_the_least_evidence_of_all_completions(tapes, options, closed, design):
    """T8a: for every assignment of values the evidence is at least this, and for one of them it is this."""
    problem = problem_for(**options)
    found = judge_of(problem, tapes, design=design).against(1, closed=closed).log_value
    each = [
        judge_of(problem, filled, design=design).against(1, closed=closed).log_value
        for filled in completed(tapes, (-9.0, -0.5, 1.0, 9.0))
    ]
    assert found == pytest.approx(min(each), abs=1e-9)


@given(holed(integers, 3), st.data(), st.sampled_from(["max", "min"]))
def test_pulls_that_are_out_never_add_to_pooled_evidence(tapes, data, goal):
    """T5: whatever they will say, also if an arm was followed only after they went out."""
    problem = problem_for(3, contamination=0.1, goal=goal)
    early = [data.draw(st.integers(0, len(tape))) for tape in tapes[:2]]
    out = [[None if math.isnan(value) else value for value in tape] for tape in tapes]
    found = judge_of(problem, out, early=early).against(2).log_value
    each = [
        judge_of(problem, filled, early=early).against(2).log_value
        for filled in completed(tapes, (-9.0, 0.5, 9.0, NAN))
    ]
    assert found <= min(each) + 1e-9


@given(holed(integers, 2), promises, st.booleans(), designs)
def test_censored_readings_are_the_least_evidence_of_all_orders_beyond_the_limit(tapes, options, closed, design):
    """T8c: time-outs of either arm may stand in any order, all of them worse than every value."""
    problem = problem_for(**options)
    limited = [[problem.time_out if math.isnan(value) else value for value in tape] for tape in tapes]
    found = judge_of(problem, limited, design=design).against(1, closed=closed).log_value
    beyond = tuple(-problem.sign * value for value in (5.0, 6.0, 7.0))
    each = [
        judge_of(problem, filled, design=design).against(1, closed=closed).log_value
        for filled in completed(tapes, beyond)
    ]
    assert found == pytest.approx(min(each), abs=1e-9)


@pytest.mark.parametrize("goal", ["max", "min"])
def test_bad_readings_beyond_the_limit_bound_no_quantile_that_timed_out(goal):
    """T8c: with a limit of 10 the true median is 10.5; 60 bad readings say a billion, 490 of 1,000 are cut off."""
    problem = problem_for(goal=goal, contamination=0.06)
    tape = [-problem.sign * x for x in (*[math.inf] * 490, *[1e9] * 60, *[3.0] * 450)]
    shown = [-problem.sign * 10.5 if math.isinf(x) else x for x in tape]
    judges = (judge_of(problem, [readings] * 2) for readings in (tape, shown))
    (found, core), (true, _) = (judge.intervals(0, problem.contamination) for judge in judges)
    assert found.low <= true.low <= true.high <= found.high
    assert core.low <= -problem.sign * 10.5 <= core.high


# --- tolerance and margins ------------------------------------------------------------------------


def test_readings_that_are_not_positive_are_on_the_lower_side_of_a_ratio():
    """A true median of 0.1 is not within a factor 1.5 of one of 1, though of the positive readings most are.

    With -1, 0.1 and 1.5 of chances 0.40, 0.11 and 0.49 only 0.11 of the readings would be in L at the cut 1, were
    those that are not positive left out (evidence section 11).
    """
    tapes = [[-1.0] * 400 + [0.1] * 110 + [1.5] * 490, [1.0] * 1000]
    judge = judge_of(problem_for(contamination=0.0, tolerance="50%"), tapes)
    assert judge.within(1).log_value < 0
    assert judge.tolerance((), relative=True) > 1


# --- giving up ------------------------------------------------------------------------------------


@pytest.mark.parametrize("quantile", [0.95, 0.05, 0.7, 0.3, 0.99, 0.01])
@pytest.mark.parametrize("goal", ["max", "min"])
def test_a_level_that_only_rounding_leaves_is_none(quantile, goal):
    """1 - 0.95 - 0.05 is a little above 0: an error about p0 was all that a user saw."""
    promise = Contamination(round(min(quantile, 1 - quantile), 2), "malicious")
    problem = Problem(arms=("A", "B"), quantile=quantile, goal=goal, contamination=promise)
    tapes = {"A": np.arange(300.0), "B": np.arange(300.0) + 200}
    assert Judge.of(problem, []).is_hopeless
    for design in ("sequential", "fixed"):
        found = analyze(tapes, quantile=quantile, goal=goal, contamination=promise, design=design, control="A")
        assert found.status is Status.INDISTINGUISHABLE
        assert all(arm.low == -INF or arm.high == INF for arm in found.arms)
    study = Study(["A", "B"], quantile=quantile, goal=goal, contamination=promise)
    assert study.result.status is Status.INDISTINGUISHABLE


def rank_of(n, level, bar):
    """Return the sequential rank by its definition."""
    return int(np.sum(log_mixture(np.arange(n), n, level) >= bar))  # it falls with the rank


@pytest.mark.parametrize(("pending", "k"), [(0, 2), (0, 3), (60, 2)])
def test_giving_up_pays_for_every_arm_and_takes_pulls_that_are_out_for_either(pending, k):
    """Evidence T9 by its definition, on arms that read alike: where it is first declared, not a reading before."""
    problem = Problem(arms=tuple("ABC"[:k]), contamination=Contamination(0.2, "malicious"))

    def declared(n):
        rank = rank_of(n + pending, 0.7, math.log(k / problem.delta))  # 1 - p- = 1 - p+ = 0.7, at delta/k
        upper, lower = n + pending + 1 - rank, rank - pending  # of the values: what is out is above, and below
        return upper < lower

    def found(n):
        arms = [Sample(np.arange(float(n)), pending=pending)] * k
        return Judge.of(problem, arms).is_futile(tuple(range(k)))

    first = next(n for n in range(20, 2000) if declared(n))
    assert [found(n) for n in (first - 1, first)] == [False, True]
