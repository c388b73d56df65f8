"""Arguments at the edge of what numbers can hold: an answer, or one sentence about the argument."""

import numpy as np
import pytest

import truearm as ta

TAPES = {"A": [float(i * 37 % 101) for i in range(200)], "B": [float(i * 37 % 101 + 20) for i in range(200)]}


@pytest.mark.parametrize("more", [{}, {"at_least": 50}, {"tiers": True}, {"control": "A"}, {"round": "rows"}])
@pytest.mark.parametrize("design", ["sequential", "fixed"])
@pytest.mark.parametrize("adversary", ["oblivious", "malicious"])
def test_a_tiny_contamination_answers_as_zero(more, design, adversary):
    tiny, none = (
        ta.analyze(TAPES, contamination=ta.Contamination(eps, adversary), design=design, **more)
        for eps in (1e-17, 0.0)
    )
    assert (tiny.status, tiny.best, tiny.candidates) == (none.status, none.best, none.candidates)


@pytest.mark.parametrize("quantile", [1e-300, 5e-324, 1e-17, 1 - 1e-16])
def test_a_quantile_too_near_an_end_is_refused_in_one_sentence(quantile):
    with pytest.raises(ta.TruearmError, match=r"quantile must be at least 1e-09 and at most 1 - 1e-09"):
        ta.analyze(TAPES, quantile=quantile)


@pytest.mark.filterwarnings("error")
def test_a_forecast_of_a_fixed_design_of_shares_raises_no_warning():
    tapes = {
        "A": np.resize([0.0, 0.0, 1.0, 0.0, 1.0], 10),
        "B": np.resize([0.0, 0.0, 0.0, 1.0, 1.0], 20),
        "C": np.zeros(13),
        "D": np.array([0.0, np.nan, 0.0, 0.0, np.inf, 0.0, 0.0, 0.0, 0.0, 0.0]),
    }
    found = ta.analyze(
        tapes, design="fixed", contamination=0, tolerance=0.1, delta=1e-30, at_most=-3.0, control="A"
    )
    assert found.status is ta.Status.EXHAUSTED


@pytest.mark.parametrize("delta", [5e-324, 1e-300])
def test_a_delta_too_small_for_arithmetic_is_refused_in_one_sentence(delta):
    for call in (lambda: ta.analyze(TAPES, delta=delta), lambda: ta.plan(delta=delta)):
        with pytest.raises(ta.InvalidArgument, match=r"delta must be at least 1e-100, but got"):
            call()
