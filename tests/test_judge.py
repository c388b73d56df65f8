"""The judge against its definitions, evaluated by brute force on small samples."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from reference import fixed_pair
from truearm.analysis import analyze
from truearm.bounds.mixture import log_mixture
from truearm.claims.certificate import Status, sample_of
from truearm.evidence import Entry, Judge, pair, shift_sample
from truearm.evidence.sample import Sample
from truearm.problem import Contamination, Problem, Tolerance
from truearm.study import Study

INF, NAN = math.inf, math.nan
designs = st.sampled_from(["sequential", "fixed"])
integers = st.integers(-4, 4).map(float)
wild = st.one_of(integers, st.sampled_from([INF, -INF, NAN]))
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
    """Give every way in which missing readings may be replaced by one of the choices."""
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


def test_a_pull_out_when_its_arm_began_to_lead_counts_for_neither_end():
    """In L of the first readings it would raise the ratio: evidence from a reading nobody has seen."""
    problem = problem_for(3, contamination=None)
    tapes = [[*[None] * 8, *[1.0] * 12], [0.0] * 20, [0.0] * 20]
    out = judge_of(problem, tapes, early=[8]).against(2).log_value
    told = [judge_of(problem, [[x] * 8 + tapes[0][8:], *tapes[1:]], early=[8]).against(2) for x in (-1.0, 1.0)]
    assert out < min(t.log_value for t in told)


@given(holed(integers, 2), promises, st.booleans(), designs)
def test_censored_readings_are_the_least_evidence_of_all_orders_beyond_the_limit(tapes, options, closed, design):
    """T8c: time-outs of either arm may stand in any order, all of them worse than every value."""
    problem = problem_for(**options)
    limited = [[problem.censored if math.isnan(value) else value for value in tape] for tape in tapes]
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


def test_time_outs_leave_an_upper_end_where_the_lower_one_is_none_of_them():
    """So the quantile is within the limit, and a time-out is worse than it."""
    problem = problem_for()
    tape = [*[problem.censored] * 20, *range(80)]
    found, _ = judge_of(problem, [tape, tape]).intervals(0, problem.contamination)
    plain, _ = judge_of(problem, [[-1.0] * 20 + tape[20:]] * 2).intervals(0, problem.contamination)
    assert found == plain


# --- ties: open, closed, lexicographic ------------------------------------------------------------


@given(tapes_of(wild, most=30), promises, designs)
def test_of_equal_quantiles_the_first_listed_arm_is_the_best(tapes, options, design):
    """Evidence of an arm listed first is open, that of one listed later closed (T3, ties)."""
    ahead, behind = (judge_of(problem_for(**options), tapes, leader=i, design=design) for i in (0, 1))
    assert ahead.against(1, closed=True).log_value <= ahead.against(1).log_value
    assert behind.against(0) == behind.against(0, closed=True)
    measure, levels = fixed_pair if design == "fixed" else pair, ahead.trust.levels(ahead.problem.level)
    assert ahead.against(1) == measure(*ahead.samples, levels)
    assert behind.against(0) == measure(*behind.samples[::-1], levels, closed=True)


# --- thresholds -----------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3, 4])
def test_strict_statements_pay_for_every_arm(k):
    """Pooled k/delta, pairs k(k-1)/delta (T10a)."""
    problem, tapes = problem_for(k, delta=0.1), [[1.0]] * k
    pairs, pooled = judge_of(problem, tapes), judge_of(problem, tapes, early=[0])
    assert math.exp(pairs.log_threshold) == pytest.approx((k - 1) / 0.1)
    assert math.exp(pairs.log_strict) == pytest.approx((k - 1) * k / 0.1)
    assert math.exp(pooled.log_threshold) == pytest.approx(1 / 0.1)
    assert math.exp(pooled.log_strict) == pytest.approx(k / 0.1)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_a_gate_needs_evidence_of_k_over_delta(k):
    """T10b: as many readings as first reach it make an arm worse than the baseline, and one less does not."""
    problem = problem_for(k, delta=0.1, contamination=None)
    for n in range(1, 60):
        judge = judge_of(problem, [[1.0] * n, [0.0] * n, *[[1.0]] * (k - 2)])
        reached = judge.better(0, 1).log_value >= math.log(k / 0.1)
        assert (1 in judge.gate(0)[0]) == reached
    assert reached


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


def moved_down(judge, judged, tolerance):
    """Return the judge with all rivals of an arm made worse."""
    sign = judge.problem.sign
    samples = tuple(s if i == judged else shift_sample(s, tolerance, sign) for i, s in enumerate(judge.samples))
    entries = tuple(
        Entry(e.arm, shift_sample(e.before, tolerance, sign), e.until and shift_sample(e.until, tolerance, sign))
        for e in judge.entries
    )
    return replace(judge, samples=samples, entries=entries)


def holds(judge, judged, amount, *, relative):
    moved = moved_down(judge, judged, Tolerance(amount, relative))
    return moved.against(judged, closed=True).log_value >= judge.log_strict


@st.composite
def ordered_tapes(draw, k):
    """Arms of which the last is mostly behind, so that there is a margin to find."""
    high = st.one_of(
        st.integers(0, 9).map(float), st.integers(-9, 9).map(float), st.sampled_from([INF, -INF, NAN])
    )
    low = st.one_of(st.integers(-9, 1).map(float), st.integers(-9, 9).map(float), st.sampled_from([-INF, NAN]))
    best = draw(st.lists(st.sampled_from([3.0, 5.0, 8.0]), min_size=20, max_size=30))
    worst = draw(st.lists(st.sampled_from([-4.0, 0.0, 1.0, 2.0]), min_size=20, max_size=30))
    middle = [draw(st.lists(high, min_size=10, max_size=20)) for _ in range(k - 2)]
    return [[*best, *draw(st.lists(high, max_size=8))], *middle, [*worst, *draw(st.lists(low, max_size=6))]]


def in_units_of(goal, tapes):
    """Return tapes of which bigger is better as readings for a goal, mostly positive ones for either."""
    return tapes if goal == "max" else [[10 - value for value in tape] for tape in tapes]


def meetings(judge, *, relative):
    """Return the amounts at which a reading of the leader, made worse, meets one of the other arm."""
    sign = judge.problem.sign
    values = [sign * s.values[np.isfinite(s.values)] for s in judge.samples]
    pairs = [(a, b) for a in values[0] for b in values[1] if sign * (a - b) > 0]
    if relative:
        return np.unique([max(a / b, b / a) - 1 for a, b in pairs if a > 0 and b > 0])
    return np.unique([abs(a - b) for a, b in pairs])


@given(ordered_tapes(2), promises, st.booleans(), designs)
def test_the_margin_of_a_pair_is_the_last_shift_that_holds(tapes, options, relative, design):
    """Evidence falls in steps where a reading of one arm meets one of the other: all steps are tried."""
    problem = problem_for(**{**options, "quantile": 0.5}, delta=0.3)
    judge = judge_of(problem, in_units_of(problem.goal, tapes), design=design)
    judge = replace(judge, samples=(judge.samples[0], judge.samples[1].map(lambda v: np.maximum(v, -99.0))))
    steps = meetings(judge, relative=relative)
    between = [0.0, *(steps[:-1] + steps[1:]) / 2][: steps.size]
    reached = [step for step, at in zip(steps, between, strict=True) if holds(judge, 1, at, relative=relative)]
    found = judge.margin(1, relative=relative)
    if not holds(judge, 1, 0.0, relative=relative):
        assert found is None
    elif not steps.size or holds(judge, 1, 2 * steps[-1] + 1, relative=relative):
        assert holds(judge, 1, found, relative=relative)  # so few readings are met that every shift holds
    else:
        assert found == pytest.approx(reached[-1], rel=1e-3, abs=1e-3)
        assert holds(judge, 1, found * (1 - 1e-9), relative=relative)


@given(ordered_tapes(3), st.data(), st.booleans(), st.sampled_from(["max", "min"]))
def test_a_pooled_margin_holds_with_all_rivals_made_worse(tapes, data, relative, goal):
    problem, tapes = problem_for(3, contamination=0.05, delta=0.3, goal=goal), in_units_of(goal, tapes)
    early = [data.draw(st.integers(0, len(tape) // 2)) for tape in tapes[:2]]
    judge = judge_of(problem, tapes, early=early)
    found = judge.margin(2, relative=relative)
    if not judge.samples[2].censored:
        assert (found is not None) == holds(judge, 2, 0.0, relative=relative)
    if found:
        assert holds(judge, 2, found * (1 - 1e-6), relative=relative)


@given(ordered_tapes(2), st.booleans(), st.sampled_from(["max", "min"]), st.data())
def test_a_margin_over_an_arm_that_times_out_holds_for_every_time_it_would_have_taken(tapes, relative, goal, data):
    problem, tapes = problem_for(delta=0.3, goal=goal), in_units_of(goal, tapes)
    slow = data.draw(st.integers(1, len(tapes[1])))
    limited = [*[problem.censored] * slow, *tapes[1][slow:]]
    known = [problem.sign * value for tape in (tapes[0], limited) for value in tape if math.isfinite(value)]
    late = problem.sign * (min(known) - data.draw(st.integers(0, 5)))
    told = [late if value == problem.censored else value for value in limited]
    before, after = (judge_of(problem, [tapes[0], tape]).margin(1, relative=relative) for tape in (limited, told))
    if before is not None:
        assert after is not None
        assert before <= after + 1e-3 * (1 + after)


# --- giving up ------------------------------------------------------------------------------------


@settings(suppress_health_check=[HealthCheck.filter_too_much])
@given(tapes_of(wild, least=1, most=4), promises)
def test_what_is_given_up_stays_undecided_on_endless_readings(kinds, options):
    """Arms that are declared indistinguishable are not told apart by a hundred times as many such readings."""
    problem = problem_for(**options)
    assume(judge_of(problem, [kind * 40 for kind in kinds]).is_futile((0, 1)))
    endless = [kind * 4000 for kind in kinds]
    for leader in (0, 1):
        later = judge_of(problem, endless, leader=leader)
        assert later.is_hopeless or later.against(1 - leader).log_value < later.log_threshold


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
