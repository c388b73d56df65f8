"""Counts instead of readings: the same decision, tables that add, and real engines that count alike."""

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, reject
from hypothesis import strategies as st

import truearm as ta
from reference import count_tapes
from truearm.analysis import analyze
from truearm.data import engines as data_engines
from truearm.errors import InvalidArgument, VerificationError


def counted(monkeypatch, parts, cells):
    """Count whatever is lazy, in that many parts, or value by value where arms times readings are few enough."""
    monkeypatch.setattr(data_engines, "MAX_ROWS", 0)
    monkeypatch.setattr(data_engines, "_PARTS", parts)
    monkeypatch.setattr(data_engines, "_TABLE_CELLS", cells)


def long(tapes):
    arms = [arm for arm, tape in tapes.items() for _ in tape]
    return pl.DataFrame({"arm": arms, "x": np.concatenate([np.asarray(t, dtype=float) for t in tapes.values()])})


def same_decision(exact, found):
    fields = ("status", "best", "candidates", "leader", "ties", "ranking", "excluded", "few", "missing", "outside")
    for field in (*fields, "doubts"):
        assert getattr(found, field) == getattr(exact, field), field
    claims = [replace(c, log_evidence=0.0) for c in exact.certificate.claims]
    assert [replace(c, log_evidence=0.0) for c in found.certificate.claims] == claims
    for one, other in zip(exact.certificate.claims, found.certificate.claims, strict=True):
        assert other.log_evidence <= one.log_evidence + 1e-9
    for one, other in zip(exact.contests, found.contests, strict=True):
        assert (one.better, one.worse, one.excluded) == (other.better, other.worse, other.excluded)
        assert other.log_evidence <= one.log_evidence + 1e-9
    for one, other in zip(exact.arms, found.arms, strict=True):
        assert (one.n, other.low, other.high) == (other.n, one.low, one.high)
        assert other.observed == one.observed or math.isnan(one.observed)
        assert not other.mad_low > one.mad_low + 1e-9
        assert not other.mad_high < one.mad_high - 1e-9


few = st.sampled_from([0.0, 1.0, 2.0, 2.5, 3.0, 7.0, 1e9, -4.0])
odd = st.sampled_from([math.nan, math.inf, -math.inf])
smooth = st.floats(-50, 50)


@st.composite
def worlds(draw):
    """Draw a few arms, each a handful of values that come many times, so that something is decided."""
    values = st.one_of(few, few, smooth, odd) if draw(st.booleans()) else st.one_of(smooth, few)
    tapes = {}
    for name in draw(st.sampled_from([("A", "B"), ("A", "B", "C")])):
        some = draw(st.lists(values, min_size=1, max_size=12))
        tapes[name] = np.repeat(some, draw(st.sampled_from([1, 9, 40])))
    return tapes


options = st.fixed_dictionaries(
    {},
    optional={
        "contamination": st.sampled_from([None, 0.01, 0.1]),
        "quantile": st.sampled_from([0.25, 0.9]),
        "goal": st.sampled_from(["min", "max"]),
        "between": st.sampled_from([(0.0, 3.0)]),
        "tolerance": st.sampled_from([0.5, "10%"]),
        "design": st.sampled_from(["fixed"]),
        "pairs": st.just(True),
        "tiers": st.just(True),
        "control": st.just("B"),
    },
)


ways = st.sampled_from([(4, 1 << 20), (64, 80), (1 << 13, 1 << 20), (3, 0)])


@given(worlds(), options, ways)
@example({"A": np.full(60, 1.5), "B": np.full(60, 1.2)}, {"pairs": True}, (1, 1 << 20))  # one bucket
@example({"A": np.repeat([5e-324, 1e-310, 2.0], 60), "B": np.repeat([0.0, 5e-324, 1e-323], 60)}, {}, (3, 0))
def test_counts_decide_as_the_readings_do(tapes, asked, sizes):
    """Every field that decides is equal, whatever the buckets, the number of passes and what is fetched."""
    frame = long(tapes)
    with pytest.MonkeyPatch.context() as patch:
        counted(patch, *sizes)
        try:
            exact = analyze(frame, arm="arm", value="x", **asked)
        except (InvalidArgument, ta.OutOfReach):  # what does not go together
            reject()
        found = analyze(frame.lazy(), arm="arm", value="x", **asked)
    assert found.made is not None
    same_decision(exact, found)
    assert ta.verify(found, found.counts)
    if exact.tiers is not None:
        assert found.tiers.places == exact.tiers.places
    if exact.control is not None:
        assert [v.standing for v in found.control.variants] == [v.standing for v in exact.control.variants]


def test_one_value_per_arm_in_a_bucket_is_not_one_value_in_all():
    """Judged all 1.5, rival all 1.2, one bucket: ends of the bucket alone would give 25 nats, the truth is -4."""
    tapes = {"A": [1.2] * 60, "B": [1.5] * 60}
    assert analyze(count_tapes(tapes, edges=[1.0, 2.0])).contests == analyze(tapes).contests


def test_no_arm_of_the_readings_is_left_out_of_what_verifies():
    """Of three arms, the best may not be left out."""
    tapes = {"A": np.arange(100.0, 300.0), "B": np.arange(200.0), "C": np.arange(300.0, 500.0)}
    two = {arm: tapes[arm] for arm in "AB"}
    for source, all_of_it in ((two, tapes), (count_tapes(two), count_tapes(tapes))):
        found = analyze(source)
        assert (found.best, bool(ta.verify(found, source))) == ("A", True)
        with pytest.raises(VerificationError, match="arms that the certificate does not know: 'C'"):
            ta.verify(found, all_of_it)


def test_a_limit_inside_a_bucket_needs_another_count():
    table = count_tapes({"A": [1.0, 3.0], "B": [1.0, 3.0]}, edges=[0.0])
    with pytest.raises(InvalidArgument, match="at_least splits the bucket of readings from 1 to 3"):
        analyze(table, at_least=2.0)
