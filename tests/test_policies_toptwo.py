"""The default policy: whom it follows, and what late readings do to that."""

import numpy as np
import pytest

from truearm.claims.certificate import Status, Verdict
from truearm.evidence import pair
from truearm.evidence.sample import shift_sample
from truearm.policies import Told
from truearm.policies.toptwo import TopTwo, split
from truearm.problem import Problem


def coins(k=4, n=2000, seed=3):
    """Arms that are all alike, so that the lead changes often."""
    return dict(zip("ABCD"[:k], np.random.default_rng(seed).normal(size=(k, n)), strict=True))


def driven(problem, tapes, pulls, *, late=0):
    """Give the states of a run; readings of an arm come in `late` pulls after they were issued."""
    policy = TopTwo()
    state, issued, told = policy.start(problem), dict.fromkeys(problem.arms, 0), dict.fromkeys(problem.arms, 0)
    while sum(issued.values()) < pulls and not isinstance(batch := policy.ask(state), Verdict):
        new = {}
        for arm in problem.arms:
            issued[arm] += batch.get(arm, 0)
            upto = max(told[arm], issued[arm] - late)
            if upto > told[arm]:
                at = np.arange(told[arm], upto)
                new[arm], told[arm] = Told(at, tapes[arm][at]), upto
        state = policy.tell(state, new, issued)
        yield state


@pytest.mark.parametrize("late", [0, 3])
def test_a_leg_ends_with_all_pulls_up_to_the_change_and_no_pull_is_in_two(late):
    """The batch that lost the lead belongs to the arm that lost it (evidence T5)."""
    problem, legs, changes = Problem(arms=tuple("ABCD"), contamination=None, delta=1e-9), (), 0
    for state in driven(problem, coins(), 3000, late=late):
        before, legs = legs, state.judge.entries
        if len(legs) > len(before) and before:
            changes += 1
            ended = legs[len(before) - 1]
            assert ended.until.n == state.samples[ended.arm].n
            assert legs[-1].before.n == state.samples[legs[-1].arm].n
    assert changes > 1
    for i in range(4):
        ends = [n for leg in legs if leg.arm == i for n in (leg.before.n, (leg.until or state.samples[i]).n)]
        assert ends == sorted(ends)


def test_an_arm_that_is_rejected_is_no_longer_followed():
    tapes = {arm: np.linspace(0, 1, 400) + shift for arm, shift in (("A", 0.0), ("B", 9.0), ("C", 0.1))}
    tapes["A"][:16] += 20  # leads first, and is then found out
    states = list(driven(Problem(arms=tuple("ABC"), contamination=None), tapes, 400))
    out = [s for s in states if 0 not in s.alive]
    assert out
    assert states[0].judge.entries[0].arm == 0
    assert all(s.judge.entries[-1].arm == 1 for s in out[1:])


def test_what_was_out_at_either_end_of_a_leg_is_filled_in():
    """With all readings told the legs are those of the same prefixes of the tapes."""
    problem, tapes = Problem(arms=tuple("ABCD"), contamination=None, delta=1e-9), coins()
    *_, state = driven(problem, tapes, 1500, late=3)
    legs = [leg for leg in state.judge.entries if leg.until is not None]
    assert any(leg.before.n for leg in legs)
    for leg in legs:
        for sample in (leg.before, leg.until):
            known = sample.n - sample.pending
            assert sample.values.tolist() == sorted(tapes["ABCD"[leg.arm]][: sample.n][:known])
            assert sample.pending == max(0, sample.n - (state.samples[leg.arm].n - 3))


def test_a_tolerable_end_rests_on_the_leaders_whole_sample_alone():
    """Legs say nothing about an arm that is behind by more than the tolerance: a share of the pair, no more."""
    problem = Problem(arms=tuple("ABC"), contamination=0.0, tolerance=3.0, delta=0.2)
    tapes = {arm: np.random.default_rng(5).normal(size=(3, 900))[i] for i, arm in enumerate("ABC")}
    *_, state = driven(problem, tapes, 900)
    assert state.decision.status is Status.TOLERABLE
    judge = state.judge
    for claim in (c for c in state.decision.claims if c.tolerant):
        judged = "ABC".index(claim.arm)
        worse = shift_sample(judge.samples[judged], problem.tolerance, problem.sign)
        alone = pair(judge.samples[judge.leader], worse, judge.trust.levels(judge.problem.level)).log_value
        assert judge.within(judged).log_value == pytest.approx(alone + np.log(0.5 / 2))


def test_an_arm_unlucky_at_first_is_not_starved_by_equal_ones():
    """Between equal arms the evidence falls like minus log n: that must not pay for the log n of the score.

    With a prior of smaller concentrations runs of 10^6 pulls were seen in which the best arm had 49.
    """
    rng, n = np.random.default_rng(1), 100_000
    policy, problem = TopTwo(), Problem(arms=("A", "B", "C"), contamination=None)
    tapes = {"A": np.repeat([2.0, -2.0], [6, 42]), "B": rng.normal(size=n), "C": rng.normal(size=n)}
    tapes |= {arm: tapes[arm] - np.median(tapes[arm]) for arm in "BC"}
    state = policy.start(problem)
    for first, last in ((0, 16), (16, n)):
        told = {arm: Told(np.arange(first, min(last, t.size)), t[first:last]) for arm, t in tapes.items()}
        state = policy.tell(state, told, {arm: min(last, t.size) for arm, t in tapes.items()})
    against, leader = policy.standing(state).against, policy.standing(state).leader
    fighter = "C" if leader == "B" else "B"
    assert against["A"] + np.log(48) > against[fighter] + np.log(n), "the plain score would take the fighter"
    assert against["A"] < state.judge.log_threshold, "it is not rejected, so it must be heard again"
    assert "A" in policy.ask(state)


@pytest.mark.parametrize(
    ("pulls", "arms", "least", "most"),
    [(100, 2, 0.25, 0.75), (100, 3, 0.05, 0.75), (600, 2, 0.1, 0.9), (9000, 2, 0.05, 0.95)],
)
def test_early_shares_are_kept_together_and_open_with_the_pulls(pulls, arms, least, most):
    """Without these limits a load makes winners of equal arms (tests/statistical/test_drift.py)."""
    for gain, other, share in ((1.0, 0.0, most), (0.0, 1.0, least)):
        size, for_leader, owed = split(float(pulls), float(pulls), gain, other, 0.0, arms)
        assert for_leader + owed == pytest.approx(share * size)
