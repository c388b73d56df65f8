import json
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest

from reference import vectors
from truearm import VerificationError, analyze, verify
from truearm.claims.result import Analysis
from truearm.evidence import Evidence, Judge, Sample, comparison
from truearm.problem import Problem

VECTORS = vectors("answers_vectors")


@pytest.fixture(scope="module")
def tapes():
    rng = np.random.default_rng(0)
    means = {"A": 0.0, "B": 0.1, "C": 0.8, "D": 1.6, "E": -1.0}
    return {arm: rng.normal(mean, 1, 400) for arm, mean in means.items()}


def test_the_order_is_that_of_the_vectors():
    given, expected = VECTORS["ext-tiers"]["inputs"], VECTORS["ext-tiers"]["expected"]
    judge = Mock(samples=given["E"], log_strict=np.log(4 * 3 / 2 / given["delta"]), is_hopeless=False)
    judge.better = lambda i, j, enough: Evidence(np.log(given["E"][i][j]))  # noqa: ARG005
    found = comparison.order(judge, tuple(given["empirical order"]))
    assert np.argwhere(found.better).tolist() == expected["claims"]
    assert [list(place) for place in found.places] == expected["rank_intervals"]
    assert np.cumsum([len(tier) for tier in found.tiers])[:-1].tolist() == expected["tier_boundaries_after"]
    for k, bar in zip(given["k"], expected["log_constant_strict"], strict=True):
        judge = Judge.of(Problem(arms=tuple(map(str, range(k)))), [Sample.of([])] * k)
        assert judge.log_strict == pytest.approx(float(bar))


@pytest.mark.parametrize("design", ["sequential", "fixed"])
def test_all_pairs_are_claimed_that_can_be(tapes, design):
    found = analyze(tapes, tiers=True, design=design)
    assert found.tiers.tiers == (("D",), ("C",), ("B", "A"), ("E",))
    assert [(place.best, place.worst) for place in found.tiers.places] == [(1, 1), (2, 2), (3, 4), (3, 4), (5, 5)]
    assert (found.tiers.claimed, found.tiers.pairs, found.tiers.skipped) == (9, 10, 0)


def test_searches_beyond_the_limit_are_counted_as_open(tapes, monkeypatch):
    whole = analyze(tapes, tiers=True)
    monkeypatch.setattr(comparison, "MAX_SEARCHES", 1)
    cut = analyze(tapes, tiers=True)
    assert whole.tiers.skipped == 0 < cut.tiers.skipped
    assert cut.tiers.claimed < whole.tiers.claimed == 9
    assert "were not compared one by one" in str(cut)


def test_ties_share_a_tier_however_many_readings_there_are():
    found = analyze({"A": [1.0] * 2000, "B": [1.0] * 2000, "C": [0.0] * 2000}, tiers=True)
    assert found.tiers.tiers == (("A", "B"), ("C",))
    one = analyze({"A": range(100), "B": range(100)}, tiers=True)
    assert "One tier: no group of arms is certified to be better" in str(one)


def test_a_stranger_can_check_it(tapes):
    found = analyze(tapes, tiers=True)
    again = Analysis.from_dict(json.loads(json.dumps(found.to_dict())))
    assert again == found
    assert again.certificate.verify(tapes)
    first, *rest = again.tiers.places
    assert (first.arm, first.best, first.worst) == ("D", 1, 1)
    wide = replace(again.tiers, places=(replace(first, worst=3), *rest))
    with pytest.raises(VerificationError, match=r"places\[0\].worst is 3, but the readings give 1"):
        verify(replace(again, tiers=wide), tapes)
