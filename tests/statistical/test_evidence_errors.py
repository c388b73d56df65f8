"""Evidence T1-T7: how often a wrong order is ever certified, under the worst attack for each statement.

The claim is always "arm i is better than arm j", and always wrong. The attack lifts i's bad readings to +inf
and sinks j's to -inf. Two-point arms leave a single cut that matters, so that nothing is lost to the minimum.
"""

import math

import numpy as np
import pytest
from scipy.stats import norm

from reference import breakdown_point, pair
from truearm.bounds.mixture import log_mixture
from truearm.evidence import Judge, Leg, Levels, Stake, Trust, least_evidence, portfolio, threshold
from truearm.evidence.quantiles import Quantile
from truearm.evidence.sample import Sample
from truearm.evidence.targets import Query
from truearm.problem import Adversary, Contamination, Problem

from .promise import broken, kept, log_summits, power

pytestmark = pytest.mark.statistical
INF = math.inf
DELTA, EPS = 0.1, 0.1
CAUSAL = math.log(threshold(2, DELTA, "causal"))
FIXED = Query("fixed")


def test_a_hundred_runs_see_a_promise_broken_threefold():
    """The least number of runs below: with 60 the power would be 0.66."""
    assert power(100, DELTA) > 0.9 > power(60, DELTA)
    assert kept([True] * 23 + [False] * 77, DELTA)
    assert broken([True] * 24 + [False] * 76, DELTA)


def oblivious(rng, draw, side):
    y = draw(rng)
    return np.where(rng.random(y.size) < EPS, side, y)


def malicious(rng, draw, side):
    """Spoil the readings that speak against the claim, those beyond the median at zero, as far as eps goes."""
    y = draw(rng)
    return np.where((y * side < 0) & (rng.random(y.size) < 2 * EPS), side, y)


def changing(rng, draw, side):
    """Attack in half of the batches with all of eps, and do the opposite in the others."""
    return oblivious(rng, draw, side if rng.random() < 0.5 else -side)


def ever_certified(rng, draws, measure, *, least=CAUSAL, horizon=150):
    """Look again and again, always pulling the arm with less to show for the claim."""
    samples = [Sample.of(draw(rng, 8)) for draw in draws]
    while min(s.n for s in samples) < horizon:
        if measure(*samples) >= least:
            return True
        better, worse = samples
        shares = [float(np.mean(better.values <= 0)), float(np.mean(worse.values >= 0))]
        turn = int(shares[1] > shares[0]) if max(s.n for s in samples) < 2 * horizon else int(better.n > worse.n)
        samples[turn] = samples[turn].extend(draws[turn](rng, 1 + samples[turn].n // 5))
    return False


def attacked(attack, mean, side):
    return lambda rng, n: attack(rng, lambda r: r.normal(mean, 1, n), side)


@pytest.mark.parametrize("runs", [100, pytest.param(4000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("attack", "adversary"), [(oblivious, "oblivious"), (changing, "oblivious"), (malicious, "malicious")]
)
def test_equal_medians_are_ever_ordered_this_seldom(runs, attack, adversary):
    rng = np.random.default_rng(11)
    levels = Levels.of(0.5, Contamination(EPS, adversary))
    draws = [attacked(attack, 0.0, INF), attacked(attack, 0.0, -INF)]
    failures = [ever_certified(rng, draws, lambda a, b: pair(a, b, levels).log_value) for _ in range(runs)]
    assert kept(failures, DELTA)


@pytest.mark.parametrize("runs", [100, pytest.param(4000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("attack", "reach"), [(oblivious, norm.ppf(0.5 / (1 - EPS))), (malicious, norm.ppf(0.5 + EPS))]
)
def test_a_zero_effective_gap_is_ever_decided_this_seldom(runs, attack, reach):
    rng = np.random.default_rng(12)
    draws = [
        lambda r, n: shifted_attack(r, n, attack, -reach, INF),
        lambda r, n: shifted_attack(r, n, attack, reach, -INF),
    ]
    failures = [
        ever_certified(rng, draws, lambda a, b: pair(a, b, Levels(0.5, 0.5)).log_value) for _ in range(runs)
    ]
    assert kept(failures, DELTA)


def shifted_attack(rng, n, attack, mean, side):
    if attack is oblivious:
        return oblivious(rng, lambda r: r.normal(mean, 1, n), side)
    y = rng.normal(mean, 1, n)
    wrong_side = y * side < 0  # 1/2 + eps of the readings, eps of all are spoiled
    return np.where(wrong_side & (rng.random(n) < EPS / (0.5 + EPS)), side, y)


def steered_products(rng, runs, p, *, steps):
    """Return the running maximum of the product at the null cut, pulling whichever arm has shown less."""
    counts, pulls = np.zeros((runs, 2)), np.zeros((runs, 2))
    logs, best, rows = np.zeros((runs, 2)), np.zeros(runs), np.arange(runs)
    for _ in range(steps):
        turn = np.argmin(logs, axis=1)
        counts[rows, turn] += rng.random(runs) < p
        pulls[rows, turn] += 1
        logs[rows, turn] = log_mixture(counts[rows, turn], pulls[rows, turn], p)
        best = np.maximum(best, logs.sum(axis=1))
    return best


@pytest.mark.parametrize(("runs", "steps"), [(3000, 250), pytest.param(10_000, 600, marks=pytest.mark.slow)])
@pytest.mark.parametrize("p", [0.5, 0.45, 0.4])
def test_the_product_at_the_null_cut_under_adaptive_steering(runs, steps, p):
    best = steered_products(np.random.default_rng(13), runs, p, steps=steps)
    assert kept(best >= CAUSAL, DELTA)


def two_point(share, values=(-1.0, 1.0)):
    return lambda rng, n: np.where(rng.random(n) < share, *values)


@pytest.mark.parametrize("runs", [100, pytest.param(4000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("share", [0.5, 0.45])
def test_heavy_ties_of_the_worst_kind(runs, share):
    # true medians: all of [-1, 1] for both; take -1 for i, which lies in L = {-1}, and 1 for j, in U = {1}
    rng = np.random.default_rng(14)
    draws = [two_point(share), two_point(1 - share)]
    levels = Levels(share, share)
    failures = [
        ever_certified(rng, draws, lambda a, b: pair(a, b, levels).log_value, horizon=200) for _ in range(runs)
    ]
    assert kept(failures, DELTA)


@pytest.mark.parametrize("runs", [100, pytest.param(3000, marks=pytest.mark.slow)])
def test_closed_cuts_keep_an_arm_with_priority(runs):
    # both medians are 0, and j has priority: i is half zeros and half ones, j half zeros and half below
    draws = [two_point(0.5, (0.0, 1.0)), two_point(0.5, (-1.0, 0.0))]
    for closed, verdict in ((True, kept), (False, broken)):
        rng = np.random.default_rng(15)
        failures = [
            ever_certified(rng, draws, lambda a, b, c=closed: pair(a, b, Levels(0.5, 0.5), closed=c).log_value)
            for _ in range(runs)
        ]
        assert verdict(failures, DELTA)


@pytest.mark.parametrize(("runs", "horizon"), [(3000, 500), pytest.param(20_000, 3000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("k", [2, 5])
def test_a_clairvoyant_adversary_who_freezes_each_arm_at_its_summit(runs, horizon, k):
    rng, p = np.random.default_rng(16), 0.45
    summits = [log_summits(rng, runs, horizon, p) for _ in range(k)]
    best = summits[0] + np.max(summits[1:], axis=0)
    assert kept(best >= math.log(threshold(k, DELTA, "clairvoyant")), DELTA)
    if k == 2:
        assert broken(best >= CAUSAL, DELTA)  # the higher threshold is needed


@pytest.mark.parametrize(("runs", "horizon"), [(3000, 500), pytest.param(20_000, 3000, marks=pytest.mark.slow)])
def test_arms_that_move_together(runs, horizon):
    rng, p = np.random.default_rng(17), 0.5
    summit = log_summits(rng, runs, horizon, p)
    assert kept(2 * summit >= math.log(threshold(2, DELTA, "dependent")), DELTA)
    assert broken(2 * summit >= CAUSAL, DELTA)


@pytest.mark.parametrize("runs", [2000, pytest.param(30_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("n_i", "n_j"), [(40, 40), (20, 100)])
@pytest.mark.parametrize("adversary", ["oblivious", "malicious"])
def test_the_fixed_design_errs_once_in_one_over_delta(runs, n_i, n_j, adversary):
    rng = np.random.default_rng(18)
    levels = Levels.of(0.5, Contamination(EPS, adversary))
    below, above = rng.binomial(n_i, levels.low, runs), rng.binomial(n_j, levels.high, runs)
    p_values = [
        math.exp(-pair(zeros_and_ones(b, n_i - b), zeros_and_ones(n_j - a, a), levels, query=FIXED).log_value)
        for b, a in zip(below, above, strict=True)
    ]
    for delta in (0.2, DELTA, 0.02):
        assert kept(np.array(p_values) <= delta, delta)


def zeros_and_ones(zeros, ones):
    return Sample(np.repeat([0.0, 1.0], [zeros, ones]))


@pytest.mark.parametrize("runs", [100, pytest.param(2000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("adversary", "share"), [(Adversary.OBLIVIOUS, (1 - EPS) / 2), (Adversary.MALICIOUS, 0.5 - EPS)]
)
def test_a_breakdown_point_beyond_the_true_eps_is_seldom_wrong(runs, adversary, share):
    rng = np.random.default_rng(20)
    draws = [two_point(share), two_point(1 - share)]  # the true order is the opposite of what they show

    def overstated(a, b):
        point = breakdown_point(a, [b], CAUSAL, adversary, accuracy=1e-3)
        return point is not None and point >= EPS

    failures = [ever_certified(rng, draws, overstated, least=True, horizon=60) for _ in range(runs)]
    assert kept(failures, DELTA)


@pytest.mark.parametrize("runs", [100, pytest.param(1500, marks=pytest.mark.slow)])
def test_a_certified_tolerance_below_the_true_gap_is_seldom_wrong(runs):
    rng, gap, looks = np.random.default_rng(21), 0.3, (20, 60, 180)
    target, trust = Quantile(Problem(arms=("A", "B"))), Trust(EPS, Adversary.OBLIVIOUS)
    failures = []
    for _ in range(runs):
        x = oblivious(rng, lambda r: r.normal(0, 1, looks[-1]), INF)
        y = oblivious(rng, lambda r: r.normal(gap, 1, looks[-1]), -INF)
        samples = [(Sample.of(x[:n]), Sample.of(y[:n])) for n in looks]
        found = [target.least_tolerance(*both, CAUSAL, trust, Query()) for both in samples]
        failures.append(min(found) < gap)
    assert kept(failures, DELTA)


@pytest.mark.parametrize("runs", [100, pytest.param(2000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("k", [3, 6])
def test_the_best_arm_is_ever_rejected_by_evidence_that_follows_the_leader_this_seldom(runs, k):
    """T5: all arms are fair coins, the judged one is the best by selection; power 0.92 at three times delta.

    The leader is whoever has the most ones, and leads until another has. Nearly all wealth is in legs.
    """
    rng = np.random.default_rng(22)
    failures = [ever_rejected((rng.random((k, 200)) < 0.5).astype(float)) for _ in range(runs)]
    assert kept(failures, DELTA)


def ever_rejected(arms):
    """Return True if arm 0 is ever rejected when all arms are pulled alike."""
    legs, running = [], None
    for n in np.unique(np.geomspace(9, 200, 25).astype(int)):
        ones = arms[:, :n].sum(axis=1)
        leader = int(np.argmax(ones))
        if running is not None and arms[running[0], :n].sum() < ones[leader]:
            legs.append((*running, int(n)))
            running = None
        running = running or (leader, int(n))
        now = [leg for leg in [*legs, (*running, int(n))] if leg[0] != 0]
        made = [Leg(Sample.of(arms[j][:a]), Sample.of(arms[j][:b])) for j, a, b in now]
        whole = Stake(Sample.of(arms[running[0]][:n])) if running[0] else None
        found = least_evidence(Sample.of(arms[0][:n]), portfolio(len(arms), whole, made), Levels(0.5, 0.5))
        if found.log_value >= math.log(1 / DELTA):
            return True
    return False


def test_pulls_that_fail_because_they_are_slow():
    """T8: at its worst a missing reading decides nothing wrongly.

    Small is good. A takes 0.9 with chance 0.495, else 1.5, and fails in 4.9 of 100 pulls, all of them slow ones; B
    takes 1, so B is better. Power of 100 runs: 0.92 at three times delta.
    """
    problem = Problem(arms=("A", "B"), delta=DELTA, goal="min")
    rng, rival, looks, wrong = np.random.default_rng(23), np.full(60, -1.0), (2000, 10_000, 50_000), []
    for _ in range(100):
        chance = rng.random(looks[-1])
        tape = np.where(chance < 0.495, -0.9, np.where(chance < 0.951, -1.5, math.nan))
        samples = [[Sample.of(x) for x in (tape[:n], rival)] for n in looks]
        judges = [Judge.of(problem, pair_) for pair_ in samples]
        wrong.append(any(not j.implausible_arms and j.against(1).log_value >= j.log_threshold for j in judges))
    assert kept(wrong, DELTA)


def tied(rng, n, values):
    return rng.choice(values, n)


@pytest.mark.parametrize("runs", [100, pytest.param(4000, marks=pytest.mark.slow)])
def test_arms_as_good_as_the_baseline_pass_their_gates(runs):
    """T10b: three arms whose medians equal the baseline's, with atoms there; power 0.92 at three times delta.

    At the closed cut every count is that of a fair coin; with open cuts nearly all these arms would fail. In 800
    runs 1 in 100 did.
    """
    rng, problem = np.random.default_rng(24), Problem(arms=tuple("ABCD"), delta=DELTA, contamination=0.0)
    looks = np.unique(np.geomspace(6, 150, 12).astype(int))
    failed = []
    for _ in range(runs):
        tapes = [tied(rng, 150, (0.0, 1.0)), *(tied(rng, 150, (-1.0, 0.0)) for _ in range(3))]
        failed.append(any(Judge.of(problem, [Sample.of(t[:n]) for t in tapes]).gate(0)[0] for n in looks))
    assert kept(failed, DELTA)


@pytest.mark.parametrize("runs", [100, pytest.param(4000, marks=pytest.mark.slow)])
def test_a_margin_beyond_the_true_one_is_seldom_claimed(runs):
    """T10a: medians 2 and 0 with atoms there, claims of more than 2; power 0.92 at three times delta.

    Open cuts would claim it in nearly every run; in 500 runs 1.4 in 100 did.
    """
    rng, problem = np.random.default_rng(25), Problem(arms=("A", "B"), delta=DELTA, contamination=0.0)
    looks, failed = np.unique(np.geomspace(8, 150, 6).astype(int)), []
    for _ in range(runs):
        tapes = tied(rng, 150, (2.0, 3.0)), tied(rng, 150, (-1.0, 0.0))
        found = [Judge.of(problem, [Sample.of(t[:n]) for t in tapes]).margin(1, relative=False) for n in looks]
        failed.append(any(margin is not None and margin > 2 for margin in found))
    assert kept(failed, DELTA)
