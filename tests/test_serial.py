import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import gamma

from truearm.evidence.serial import EVERY, LOG_DOUBT, Purse, Serial, combine, log_evidence_of

VALUES = st.sampled_from([-math.inf, -1.0, 0.0, 0.5, 2.0, math.inf])


def normal(n, seed=1):
    return np.random.default_rng(seed).normal(size=n)


def in_pieces(tape, sizes):
    state, start = Serial(), 0
    for size in sizes:
        state, start = state.extend(tape[start : start + size]), start + size
    return state.extend(tape[start:])


@given(st.lists(VALUES, max_size=300), st.lists(st.integers(0, 50), max_size=5))
def test_evidence_does_not_depend_on_how_a_tape_is_cut(tape, sizes):
    assert in_pieces(tape, sizes).log_evidence == pytest.approx(log_evidence_of(tape), abs=1e-9)


@pytest.mark.parametrize("before", [0, 1, EVERY - 1, EVERY, 100])
@pytest.mark.parametrize("drift", [0.0, 0.9])
def test_the_next_bet_is_fair_at_any_time(before, drift):
    # capital is linear in the next rank, so its mean over a uniform rank is the mean over 1/4 and 3/4
    ranks = drift + (1 - drift) * np.random.default_rng(3).random(before)

    def total(more):
        purse = Purse().after(np.append(ranks, more))
        return math.exp(purse.log_divided) * sum(purse.parts)

    assert (total([0.25]) + total([0.75])) / 2 == pytest.approx(total([]))
    assert total([0.5]) == pytest.approx(total([]))


@pytest.mark.parametrize("values", [[1.0], [0.0, 1.0], [1.0, 2.0, 3.0], [math.inf], [-math.inf, math.inf]])
def test_ties_are_no_drift(values):
    tape = np.random.default_rng(2).choice(values, 20_000)
    assert combine([log_evidence_of(tape, stream) for stream in range(3)]) < 3


def test_constant_arms_are_never_doubtful_however_many():
    # nothing is random here: ties are broken by fixed numbers, so one bad sequence would be bad in every study
    logs = [log_evidence_of(np.zeros(10_000), stream) for stream in range(50)]
    assert max(combine(logs[:k]) for k in range(1, 51)) < 4


@pytest.mark.parametrize("load", [np.sin(np.arange(200_000) / 20_000), np.arange(200_000) / 200_000])
def test_what_begins_late_and_is_slow_is_seen_in_a_long_tape(load):
    tape = normal(250_000)
    assert log_evidence_of(tape) < LOG_DOUBT
    tape[50_000:] += load
    assert log_evidence_of(tape) > LOG_DOUBT


@pytest.mark.parametrize("k", [2, 5, 50])
def test_arms_are_combined_by_their_p_values(k):
    logs = np.linspace(0.5, 3, k)
    fisher = -gamma.logsf(logs.sum(), k) - math.log(2)
    assert combine(logs) == pytest.approx(max(0, fisher, logs.max() - math.log(2 * k)))
    assert combine([*logs, 40.0]) >= 40 - math.log(2 * k + 2)
    assert combine(logs, dependent=True) == max(0, logs.max() - math.log(k))
