"""Counts instead of readings: the same decision, tables that add, and real engines that count alike."""

import json
import math
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, reject, settings
from hypothesis import strategies as st

import truearm as ta
from truearm.analysis import analyze
from truearm.errors import InvalidArgument, VerificationError
from truearm.evidence import fixed_pair, pair
from truearm.evidence.counts import ROOM, Counts
from truearm.evidence.levels import Levels
from truearm.evidence.ruler import Ruler
from truearm.evidence.sample import Sample
from truearm.world import counting, lazy, scans, tables

LARGEST = sys.float_info.max


def counted(monkeypatch, parts=1 << 13, fetched=1 << 21, finer=256):
    """Count whatever is lazy, in so many parts, fetching at most so many readings."""
    monkeypatch.setattr(lazy, "SMALL", 0)
    monkeypatch.setattr(counting, "_PARTS", parts)
    monkeypatch.setattr(counting, "_FETCHED", fetched)
    monkeypatch.setattr(counting, "_FINER", finer)


def long(tapes):
    arms = [arm for arm, tape in tapes.items() for _ in tape]
    return pl.DataFrame({"arm": arms, "x": np.concatenate([np.asarray(t, dtype=float) for t in tapes.values()])})


def same_decision(exact, found):
    for field in (
        "status",
        "best",
        "candidates",
        "leader",
        "ties",
        "ranking",
        "excluded",
        "few",
        "missing",
        "outside",
    ):
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
    assert exact.doubts == found.doubts


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


ways = st.sampled_from([(4, 1 << 21, 2), (64, 40, 4), (1 << 13, 1 << 21, 256), (3, 0, 2)])


@given(worlds(), options, ways)
@settings(max_examples=12, deadline=None)
@example({"A": np.full(60, 1.5), "B": np.full(60, 1.2)}, {"pairs": True}, (1, 1 << 21, 2))
@example({"A": np.repeat([5e-324, 1e-310, 2.0], 60), "B": np.repeat([0.0, 5e-324, 1e-323], 60)}, {}, (3, 0, 2))
def test_counts_decide_as_the_readings_do(tapes, asked, sizes):
    """Every field that decides is equal, whatever the buckets, the number of passes and what is fetched."""
    check_decision(tapes, asked, sizes)


@pytest.mark.slow
@given(worlds(), options, ways)
@settings(max_examples=600, deadline=None)
def test_counts_decide_as_the_readings_do_in_many_worlds(tapes, asked, sizes):
    check_decision(tapes, asked, sizes)


def check_decision(tapes, asked, sizes):
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
        assert [p[:3] for p in found.tiers.places] == [p[:3] for p in exact.tiers.places]
    if exact.control is not None:
        assert [v.standing for v in found.control.variants] == [v.standing for v in exact.control.variants]


@given(worlds(), st.sampled_from([{"at_least": 2.0}, {"at_most": 2.5}, {"at_least": 2.2, "contamination": None}]))
@settings(max_examples=8, deadline=None)
def test_shares_are_counted_exactly(tapes, asked):
    frame, exact = long(tapes), analyze(tapes, **asked)
    with pytest.MonkeyPatch.context() as patch:
        counted(patch, 3, 1 << 21, 2)
        found, frozen = (analyze(f, arm="arm", value="x", **asked) for f in (frame.lazy(), frame))
    bare = replace(found, made=None, counts=None, certificate=exact.certificate, readings=exact.readings)
    assert repr(bare) == repr(exact)  # a mean of nothing is NaN, which equals nothing
    assert found.counts.digest == frozen.counts.digest
    assert len(found.made.queries) == 1
    assert ta.verify(frozen)


@pytest.mark.parametrize("limit", [0.0, -0.0, 5e-324, 1.0, 1.7976931348623157e308, -1.7976931348623157e308])
@pytest.mark.parametrize("name", ["at_least", "at_most"])
def test_a_share_is_split_at_its_limit(monkeypatch, name, limit):
    ends = [-math.inf, -1.7976931348623157e308, -1.0, -5e-324, -0.0, 0.0, 5e-324, 1.0, math.nextafter(1, 2)]
    tapes = {"A": [*ends, 1.7976931348623157e308, math.inf, math.nan] * 9, "B": [limit] * 9}
    counted(monkeypatch)
    found = analyze(long(tapes), arm="arm", value="x", **{name: limit})
    assert [arm.observed for arm in found.arms] == [arm.observed for arm in analyze(tapes, **{name: limit}).arms]
    assert found.missing == {"A": 9, "B": 0}


def test_a_frame_is_counted_only_for_shares_and_only_if_large(monkeypatch):
    frame = long({"A": [1.0, 0.0] * 30, "B": [1.0, 0.0, 0.0] * 20})
    assert analyze(frame, arm="arm", value="x", at_least=1).counts is None
    counted(monkeypatch)
    assert analyze(frame, arm="arm", value="x", at_least=1).counts is not None
    assert analyze(frame, arm="arm", value="x", at_least=1, order="rows").counts is None
    users = frame.with_row_index("user")
    assert analyze(users, arm="arm", value="x", unit="user", at_least=1).counts is None
    assert analyze(frame, arm="arm", value="x").counts is None
    assert analyze(frame.to_pandas(), arm="arm", value="x", at_least=1).counts is None


def test_an_arm_that_is_no_number_is_no_arm_in_an_engine_either(monkeypatch, tmp_path):
    counted(monkeypatch)
    frame = pl.DataFrame({"arm": [1.0, 2.0, math.nan, None] * 9, "x": np.arange(36.0)})
    with pytest.raises(InvalidArgument, match="18 rows of column 'arm' name no arm"):
        analyze(frame.lazy(), arm="arm", value="x")
    known = frame.drop_nulls()
    known.write_parquet(tmp_path / "rows.parquet")  # its statistics know of no NaN
    with pytest.raises(InvalidArgument, match="9 rows of column 'arm' name no arm"):
        analyze(str(tmp_path / "*.parquet"), arm="arm", value="x")


readings = st.lists(st.floats(allow_nan=False), min_size=1, max_size=40)


@given(readings, readings, st.lists(st.floats(allow_nan=False), max_size=6), st.booleans(), st.booleans())
@settings(max_examples=150, deadline=None)
def test_the_evidence_is_within_its_bracket(better, worse, edges, closed, fixed):
    """Whatever the edges, bounds from counts are on both sides of the evidence (extensions 4.1)."""
    table = Counts.of({"A": better, "B": worse}, edges=edges)
    problem = ta.evidence.judge.Problem(arms=("A", "B"))
    one, other = (table.tapes[arm].sample(problem, arm) for arm in ("A", "B"))
    measure, levels = fixed_pair if fixed else pair, Levels(0.45, 0.45)
    exact = measure(Sample.of(better), Sample.of(worse), levels, closed=closed).log_value
    low = measure(one, other, levels, closed=closed).log_value
    high = measure(one.at_best(), other.at_worst(), levels, closed=closed).log_value
    assert low <= exact + 1e-9
    assert exact <= high + 1e-9
    if one.exact and other.exact:
        assert low == pytest.approx(exact)


def test_one_value_per_arm_in_a_bucket_is_not_one_value_in_all():
    """Judged all 1.5, rival all 1.2, one bucket: ends of the bucket alone would give 25 nats, the truth is -4."""
    table = Counts.of({"A": [1.2] * 60, "B": [1.5] * 60}, edges=[1.0, 2.0])
    found = analyze(table)
    assert found.contests == analyze({"A": [1.2] * 60, "B": [1.5] * 60}).contests


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=200), st.integers(1, 64))
@settings(max_examples=60, deadline=None)
def test_a_ruler_puts_readings_between_its_edges(values, parts):
    x = np.array(values)
    ruler = Ruler.of(x, np.ones(x.size), parts)
    edges = ruler.edges()
    ids = ruler.place(edges)
    assert (np.diff(ids) > 0).all()  # each edge begins a bucket
    assert (ruler.place(np.nextafter(edges, -np.inf)) < ids).all()  # and none begins before it
    order = np.sort(x)
    assert (np.diff(ruler.place(order)) >= 0).all()


@given(st.lists(st.floats(allow_nan=False), max_size=30), st.lists(st.floats(), max_size=30), readings)
@settings(max_examples=60, deadline=None)
def test_adding_is_counting_together(one, two, edges):
    parts = [Counts.of({"A": part, "B": [1.0]}, edges=edges) for part in (one, two)]
    both = Counts.of({"A": [*one, *two], "B": [1.0, 1.0]}, edges=edges)
    assert (parts[0] + parts[1]).digest == (parts[1] + parts[0]).digest == both.digest
    assert Counts.from_dict(json.loads(json.dumps(both.to_dict()))).digest == both.digest
    own = [Counts.of({"A": part}, room=16) for part in (one, two)]  # edges of their own
    total = own[0] + own[1]
    assert total.n == {"A": len(one) + len(two)}
    column = total.columns["A"]
    full = np.flatnonzero(column.counts)
    known = np.sort(np.array([x for x in (*one, *two) if not math.isnan(x)]))
    below = known.searchsorted(total.edges)
    assert np.cumsum(column.counts).tolist() == [*below[1:].tolist(), known.size]
    assert (column.lows[full] >= total.edges[full]).all()


def test_a_stream_keeps_its_size_and_follows_where_readings_go():
    rng = np.random.default_rng(3)
    stream, seen = Counts(), []
    for day in range(40):
        new = rng.normal(size=5000) + (1000 if day >= 20 else 0)
        stream, seen = stream.add({"A": new}), [*seen, new]
    assert stream.edges.size <= ROOM
    sample, all_readings = (
        stream.tapes["A"].sample(ta.evidence.judge.Problem(arms=("A",)), "A"),
        np.concatenate(seen),
    )
    low, high = sample.at(50_001), sample.at(50_001, top=True)
    assert low <= np.sort(all_readings)[50_000] <= high
    largest = np.diff(sample.buckets.ends, prepend=0).max() / sample.size
    assert largest < 0.005  # the law moved by a thousand standard deviations, and the edges with it


@pytest.mark.parametrize("seed", range(60))
def test_a_stream_is_exact_at_every_edge(seed):
    """Batches of several arms, smooth or tied, with infinities and missing readings, in little room."""
    rng = np.random.default_rng(seed)
    stream, seen = Counts(room=32), {"A": [], "B": []}
    for _ in range(6):
        new = {}
        for arm, before in seen.items():
            x = rng.normal(size=int(rng.integers(0, 60))) * rng.choice([0.1, 10.0])
            x = np.round(x) if seed % 2 else x
            x[rng.random(x.size) < 0.1] = rng.choice([np.nan, np.inf, -np.inf])
            new[arm] = x
            before.extend(x.tolist())
        stream = stream.add(new)
    assert stream.edges.size <= 32
    for arm, tape in seen.items():
        known = np.sort(np.array(tape)[~np.isnan(tape)])
        column = stream.columns[arm]
        assert (np.cumsum(column.counts) - column.counts).tolist() == known.searchsorted(stream.edges).tolist()
        full = np.flatnonzero(column.counts)
        places = (stream.edges.searchsorted(known, "right") - 1).tolist()
        assert sorted(set(places)) == full.tolist()
        for bucket, low, high in zip(full.tolist(), column.lows[full], column.highs[full], strict=True):
            inside = known[np.array(places) == bucket]
            assert (low, high) == (inside[0], inside[-1])
        assert column.missing == len(tape) - known.size


def test_a_stream_that_narrows_says_that_its_buckets_are_wide():
    """Leader and observed values were those of a bucket made when readings were spread out."""
    rng = np.random.default_rng(0)
    stream = Counts(room=64).add({arm: rng.normal(0, 100, 1000) for arm in "AB"})
    for _ in range(10):
        stream = stream.add({"A": rng.normal(0.5, 0.1, 5000), "B": rng.normal(0, 0.1, 5000)})
    found = analyze(stream)
    assert (found.best, found.needed) == (None, {})
    assert min(found.coarse.values()) > 0.9
    assert set(found.coarse) == {"A", "B"}
    said = "The medians of A and B are somewhere in buckets that hold up to 9"
    assert said in str(found)
    assert "however many" not in str(found)
    assert type(found).from_dict(found.to_dict()) == found
    assert ta.verify(found, stream)
    assert not analyze(Counts.of({"A": rng.normal(0, 1, 5000), "B": rng.normal(0, 1, 5000)})).coarse
    assert not analyze(Counts.of({"A": np.ones(500), "B": np.ones(500)})).coarse


def test_a_frequent_value_has_a_bucket_to_itself():
    x = np.concatenate((np.random.default_rng(1).normal(size=50_000), np.full(50_000, 0.25)))
    column = Counts.of({"A": x}, room=64).columns["A"]
    own = int(column.counts.argmax())
    assert (column.counts[own], column.lows[own], column.highs[own]) == (50_000, 0.25, 0.25)


def test_room_bounds_the_work_of_every_batch(monkeypatch):
    """Never are there more than three times as many edges as there is room, however many readings come at once."""
    sizes, at_edges = [], Counts.at_edges
    monkeypatch.setattr(Counts, "at_edges", lambda self, edges: sizes.append(edges.size) or at_edges(self, edges))
    rng, stream = np.random.default_rng(2), Counts(room=256)
    for _ in range(5):
        stream = stream.add({"A": rng.standard_t(2, size=20_000), "B": rng.normal(size=20_000)})
    assert 256 < max(sizes) <= 3 * 256
    assert all(column.counts.max() < 0.03 * 100_000 for column in stream.columns.values())


def test_a_changed_table_is_refused():
    data = Counts.of({"A": [1.0, 2.0]}).to_dict()
    with pytest.raises(InvalidArgument, match="was changed since it was written"):
        Counts.from_dict({**data, "arms": {"A": {**data["arms"]["A"], "missing": 7}}})
    with pytest.raises(InvalidArgument, match="version 9 are from another truearm"):
        Counts.from_dict({**data, "counts": 9})
    with pytest.raises(InvalidArgument, match="cannot be: a bucket holds readings between its edges"):
        Counts.from_dict({**data, "arms": {"A": {**data["arms"]["A"], "low": [5.0, 2.0]}}})
    with pytest.raises(InvalidArgument, match="not a table of counts"):
        Counts.from_dict({"edges": []})


WRONG = {
    "part of a reading": {"count": [2.7, 1]},
    "a word": {"count": ["2", 1]},
    "fewer than none": {"count": [-2, 1]},
    "none": {"count": [0, 1]},
    "more than a machine counts": {"count": [2**62, 2**62]},
    "more than any integer": {"count": [2**64, 1]},
    "one for all": {"count": 2},
    "a bucket from behind": {"bucket": [-3, 3]},
    "a bucket twice": {"bucket": [2, 2]},
    "part of a bucket": {"bucket": [2.5, 3]},
    "ends the wrong way": {"low": [1.6, 3.0]},
    "beyond its edges": {"high": [2.5, 3.0]},
    "no number": {"low": [math.nan, 3.0]},
    "a number as a word": {"low": ["1.0", 3.0]},
    "missing in part": {"missing": 1.5},
    "missing as a word": {"missing": "1"},
    "fewer than none missing": {"missing": -1},
    "more missing than eight bytes hold": {"missing": 2**64},
    "more missing than can be": {"missing": 2**63},
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_a_table_that_cannot_be_is_refused_even_with_its_digest(change):
    """What is read as 2 may be written as 2.7, and whoever else reads the table believes that."""
    data = Counts.of({"A": [1.0, 1.5, 3.0, math.nan]}, edges=[0.0, 2.0]).to_dict()
    assert data["arms"]["A"]["bucket"] == [2, 3]
    with pytest.raises(InvalidArgument):
        Counts.from_dict({**data, "arms": {"A": {**data["arms"]["A"], **change}}})


@pytest.mark.parametrize(
    "change",
    [
        {"edges": ["-inf", 2.0, 0.0, -LARGEST, "inf"]},
        {"edges": [0.0, 2.0]},
        {"edges": ["-inf", -LARGEST, 0.0, "nan", "inf"]},
        {"edges": None},
        {"arms": []},
        {"arms": {"\ud800": {"bucket": [], "count": [], "low": [], "high": [], "missing": 1}}},
        {"room": "many"},
        {"room": 2},
        {"made": None},
        {"ruler": []},
        {"ruler": [[0.0, 1.0, 10**10]]},
        {"ruler": [[math.nan, 1.0, 4]]},
        {"periods": []},
        {"periods": [1, 2]},
    ],
)
def test_a_table_is_read_as_it_was_written_or_not_at_all(change):
    data = Counts.of({"A": [1.0, 1.5, 3.0]}, edges=[0.0, 2.0]).to_dict()
    with pytest.raises(InvalidArgument):
        Counts.from_dict({**data, **change})


def test_periods_add_up_to_their_table():
    early, late = (Counts.of({"A": tape}, edges=[0.0, 2.0]) for tape in ([1.0, 1.5], [1.2, 3.0]))
    whole = replace(early + late, periods=(early, late))
    told = json.loads(json.dumps(whole.to_dict()))
    assert Counts.from_dict(told).digest == whole.digest
    older = {**{key: value for key, value in told.items() if key != "periods"}, "halves": told["periods"]}
    assert Counts.from_dict(older).digest == whole.digest
    for periods in ((early, early), (late, late)):
        with pytest.raises(InvalidArgument, match="periods of the table of counts do not add up"):
            Counts.from_dict(replace(whole, periods=periods).to_dict())


def test_periods_of_shards_add_period_by_period():
    early, late = (Counts.of({"A": tape}, edges=[0.0, 2.0]) for tape in ([1.0, 1.5], [1.2, 3.0]))
    shard = replace(early + late, periods=(early, late))
    assert (shard + shard).periods[1].n == {"A": 4}
    assert (shard + replace(shard, periods=(early, late, early))).periods is None
    assert (shard + early).periods is None


def test_no_sum_of_tables_turns_over():
    large = Counts.from_lumps([0.0], {"A": ([0.5], [0.6], [2**52], 2**51)})
    assert large.n == {"A": 2**52 + 2**51}
    with pytest.raises(InvalidArgument, match=r"arm 'A' has 1\.35108e\+16 readings"):
        _ = large + large


def test_two_arms_of_one_name_are_not_one():
    with pytest.raises(InvalidArgument, match="arms must have different names, but got 1, '1'"):
        Counts.of({1: [1.0], "1": [2.0]})


def test_a_certificate_over_counts_claims_nothing_that_counts_do_not_tell():
    """With ordered=true nobody looked at the periods, and the doubt they raise could be left out."""
    rng = np.random.default_rng(5)
    early, late = ({"A": rng.normal(gap, 1, 400), "B": rng.normal(-1, 1, 400)} for gap in (0.0, 8.0))
    periods = tuple(Counts.of(part, edges=np.arange(-15, 15, 0.1)) for part in (early, late))
    table = replace(periods[0] + periods[1], periods=periods)
    data = json.loads(json.dumps(analyze(table, contamination=None).to_dict()))
    assert data["status"] == "doubtful"
    assert [(doubt["kind"], doubt["arm"]) for doubt in data["doubts"]] == [("dependence", "A")]
    assert ta.verify(data, table)
    options = {**data["certificate"]["origin"]["options"], "ordered": True}
    ordered = {**data["certificate"], "origin": {**data["certificate"]["origin"], "options": options}}
    with pytest.raises(VerificationError, match="does not say in what order readings were taken"):
        ta.verify({**data, "certificate": ordered, "alarms": []}, table)
    rounds = {**data["certificate"], "problem": {**data["certificate"]["problem"], "rounds": True}}
    with pytest.raises(VerificationError, match="does not say which readings were taken side by side"):
        ta.verify({**data, "certificate": rounds}, table)


def test_no_arm_of_the_readings_is_left_out_of_what_verifies():
    """Of three arms, the best may not be left out."""
    tapes = {"A": np.arange(100.0, 300.0), "B": np.arange(200.0), "C": np.arange(300.0, 500.0)}
    two = {arm: tapes[arm] for arm in "AB"}
    for source, all_of_it in ((two, tapes), (Counts.of(two), Counts.of(tapes))):
        found = analyze(source)
        assert (found.best, bool(ta.verify(found, source))) == ("A", True)
        with pytest.raises(VerificationError, match="arms that the certificate does not know: 'C'"):
            ta.verify(found, all_of_it)


def test_a_limit_inside_a_bucket_needs_another_count():
    table = Counts.of({"A": [1.0, 3.0], "B": [1.0, 3.0]}, edges=[0.0])
    with pytest.raises(InvalidArgument, match="at_least splits the bucket of readings from 1 to 3"):
        analyze(table, at_least=2.0)
    with pytest.raises(InvalidArgument, match="arm is given, but these readings were counted before"):
        analyze(table, arm="x")


@pytest.mark.parametrize("ending", ["json", "parquet"])
def test_tables_are_kept_in_files(tmp_path, ending):
    table = Counts.of({"A": [1.0, math.inf, math.nan], "B": [-math.inf]})
    tables.write_counts(table, tmp_path / f"counts.{ending}")
    assert tables.read(tmp_path / f"counts.{ending}").digest == table.digest
    pl.DataFrame({"x": [1]}).write_parquet(tmp_path / "other.parquet")
    assert tables.read(tmp_path / "other.parquet") is None


def changed_file(path, change):
    """Write a Parquet table of counts again, with other rows or another description."""
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    rows, described = change(table, json.loads(table.schema.metadata[b"truearm.counts"]))
    words = described if isinstance(described, bytes) else json.dumps(described).encode()
    pq.write_table(rows.replace_schema_metadata({b"truearm.counts": words}), path)


def doubled(rows, described):
    import pyarrow as pa

    return pa.concat_tables([rows, rows.slice(0, 1)]), described


@pytest.mark.parametrize(
    "change",
    [
        doubled,
        lambda rows, told: (rows.set_column(2, "count", rows["count"].cast("float64")), told),
        lambda rows, told: (rows.drop_columns(["low"]), told),
        lambda rows, told: (rows, {**told, "arms": {"A": told["arms"]["A"]}}),
        lambda rows, told: (rows, {**told, "arms": []}),
        lambda rows, _: (rows, []),
        lambda rows, _: (rows, b"{{{"),
        lambda rows, told: (rows, {key: value for key, value in told.items() if key != "counts"}),
    ],
)
def test_a_changed_file_of_counts_is_refused_in_words(tmp_path, change):
    """A row that is there twice was read as one, and one of an arm that is not described as none."""
    path = tmp_path / "counts.parquet"
    tables.write_counts(Counts.of({"A": [1.0, 2.0], "B": [3.0]}), path)
    changed_file(path, change)
    with pytest.raises(InvalidArgument):
        tables.read(path)


def test_a_damaged_file_of_counts_is_refused_in_words(tmp_path):
    path = tmp_path / "counts.parquet"
    tables.write_counts(Counts.of({"A": np.arange(50.0)}), path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InvalidArgument, match="is not a table of counts, or is damaged"):
        tables.read(path)
    deep = tmp_path / "deep.json"
    deep.write_text('{"counts": 1, "edges": ' + "[" * 100_000)
    with pytest.raises(InvalidArgument, match="is not JSON"):
        tables.read(deep)
    twice = tmp_path / "twice.json"
    twice.write_text(json.dumps(Counts.of({"A": [1.0]}).to_dict())[:-1] + ', "arms": {}}')
    with pytest.raises(InvalidArgument, match="the key 'arms' is there twice"):
        tables.read(twice)


def test_data_that_speak_of_counts_are_data(tmp_path):
    pl.DataFrame({"arm": ["truearm.counts"], "x": [1.0]}).write_parquet(tmp_path / "data.parquet")
    (tmp_path / "data.json").write_text('{"counts": [1, 2, 3], "arm": ["a", "b", "a"]}')
    (tmp_path / "kept.json").write_text(json.dumps(Counts.of({"A": [1.0]}).to_dict(), indent=2))
    assert tables.read(tmp_path / "data.parquet") is None
    assert tables.read(tmp_path / "data.json") is None
    assert tables.read(tmp_path / "kept.json").n == {"A": 1}


def test_a_table_with_the_largest_number_is_json_for_everybody(monkeypatch):
    counted(monkeypatch)
    frame = long({"A": [1.0, 2.0, LARGEST] * 20, "B": [1.5] * 60})
    table = ta.count(frame.lazy(), arm="arm", value="x")
    assert Counts.from_dict(json.loads(json.dumps(table.to_dict(), allow_nan=False))).ruler == table.ruler


def test_verification_by_the_table_names_what_differs(monkeypatch):
    rng = np.random.default_rng(2)
    tapes = {"A": rng.normal(size=3000) + 1, "B": rng.normal(size=3000)}
    counted(monkeypatch)
    found = analyze(long(tapes).lazy(), arm="arm", value="x")
    kept = Counts.from_dict(json.loads(json.dumps(found.counts.to_dict())))
    assert ta.verify(found.to_dict(), kept)
    with pytest.raises(VerificationError, match="best is 'B'"):
        ta.verify(replace(found, best="B"), kept)
    with pytest.raises(VerificationError, match="their digest differs"):
        ta.verify(found, Counts.of(tapes))


def visits(n=4000):
    """Return rows of two sites with units, an order, missing and infinite readings."""
    rng = np.random.default_rng(11)
    ms = rng.lognormal(size=n).round(3)
    ms[::97], ms[5::197], ms[7::331] = math.nan, math.inf, -math.inf
    site = np.where(rng.random(n) < 0.5, "old", "new")
    ms = np.where(site == "new", ms * 0.5, ms)
    return pl.DataFrame({"site": site, "ms": ms, "user": rng.integers(0, 900, n), "time": np.arange(n)})


def engines(frame, tmp_path):
    """Give the same rows to every engine at hand."""
    import duckdb

    frame.write_parquet(tmp_path / "rows.parquet")
    frame[: len(frame) // 2].write_parquet(tmp_path / "part1.parquet")
    frame[len(frame) // 2 :].write_parquet(tmp_path / "part2.parquet")
    path = str(tmp_path / "rows.parquet")
    connection = duckdb.connect()
    yield "duckdb", connection.read_parquet(path)
    yield "polars", pl.scan_parquet(path)
    ibis = pytest.importorskip("ibis")
    yield "ibis", ibis.duckdb.connect().read_parquet(path)
    yield "duckdb", str(tmp_path / "part*.parquet")


OLD_NAME = "ignore:fetch_arrow_table:DeprecationWarning"  # Ibis calls DuckDB by a name that is going away


@pytest.mark.filterwarnings(OLD_NAME)
def test_engines_count_alike(monkeypatch, tmp_path):
    """DuckDB, Polars streaming, Ibis over DuckDB and a pattern of files give one table, bit by bit."""
    counted(monkeypatch)
    frame = visits()
    exact = analyze(
        frame.select("site", "ms").sort("site"), arm="site", value="ms", goal="min", contamination=0.01
    )
    digests = set()
    for name, source in engines(frame, tmp_path):
        found = analyze(source, arm="site", value="ms", goal="min", contamination=0.01)
        assert found.made.engine == name
        digests.add(found.counts.digest)
        if len(digests) == 1:
            same_decision(exact, replace(found, doubts=exact.doubts))
    assert len(digests) == 1


@pytest.mark.filterwarnings(OLD_NAME)
@pytest.mark.parametrize("asked", [{}, {"at_least": 0.5}, {"between": (0.0, 50.0)}])
def test_a_nan_in_parquet_is_missing_whatever_statistics_of_its_column_say(monkeypatch, tmp_path, asked):
    """Statistics of a column that has no infinities leave NaN out, and DuckDB orders it above all numbers."""
    counted(monkeypatch)
    monkeypatch.setattr(lazy, "SMALL", 1000)  # a head that says where readings are
    frame = visits().filter(pl.col("ms").is_infinite().not_()).select("site", "ms").sort("site")
    holes = (pl.col("site") == "old") & (pl.int_range(pl.len()) % 5 < 2)
    frame = frame.with_columns(ms=pl.when(holes).then(math.nan).otherwise(pl.col("ms")))
    exact = analyze(frame, arm="site", value="ms", **asked)
    for _, source in engines(frame, tmp_path):
        same_decision(exact, analyze(source, arm="site", value="ms", **asked))


@pytest.mark.parametrize("marks", [(LARGEST,), (1e308, -1e308), (LARGEST, -LARGEST)])
def test_readings_as_far_apart_as_numbers_can_be_are_counted(monkeypatch, marks):
    """Programs write the largest number for what they do not know; beyond it there is no edge of a bucket."""
    counted(monkeypatch, parts=64, fetched=20)
    monkeypatch.setattr(lazy, "SMALL", 500)
    frame = visits().filter(pl.col("ms").is_finite()).select("site", "ms").sort("ms", "site")
    far = pl.DataFrame({"site": ["new", "old"] * len(marks), "ms": np.repeat(marks, 2)})
    frame = pl.concat([far, frame, far])
    exact = analyze(frame.sort("site"), arm="site", value="ms", goal="min")
    assert exact.best == "new"
    same_decision(exact, analyze(frame.lazy(), arm="site", value="ms", goal="min"))


def test_shards_counted_by_two_engines_add_to_the_table_of_the_whole(tmp_path):
    import duckdb

    frame = visits()
    for i in range(4):
        frame[i::4].write_parquet(tmp_path / f"shard{i}.parquet")
    first = ta.count(str(tmp_path / "shard0.parquet"), arm="site", value="ms")
    shards = [first]
    for i in (1, 2, 3):
        path = str(tmp_path / f"shard{i}.parquet")
        source = pl.scan_parquet(path) if i % 2 else duckdb.connect().read_parquet(path)
        shards.append(ta.count(source, arm="site", value="ms", like=first))
    whole = ta.count(frame.lazy(), arm="site", value="ms", like=first)
    total = shards[2] + shards[0] + (shards[3] + shards[1])
    assert total.digest == whole.digest
    assert total.n == {"new": frame.filter(site="new").height, "old": frame.filter(site="old").height}
    assert analyze(total, goal="min").best == "new"


@pytest.mark.filterwarnings(OLD_NAME)
def test_units_and_periods_are_counted_in_the_engine(monkeypatch, tmp_path):
    frame = visits().filter(pl.col("ms").is_finite())
    exact = analyze(frame.sort("site"), arm="site", value="ms", unit="user", goal="min")
    counted(monkeypatch)
    for _, source in engines(frame, tmp_path):
        found = analyze(source, arm="site", value="ms", unit="user", goal="min")
        assert found.units == exact.units
        assert (found.status, found.best, found.pulls) == (exact.status, exact.best, exact.pulls)
        assert [arm.observed for arm in found.arms] == pytest.approx([arm.observed for arm in exact.arms])
    share = analyze(frame.lazy(), arm="site", value="ms", unit="user", at_most=1.0)
    told = analyze(frame.sort("site"), arm="site", value="ms", unit="user", at_most=1.0)
    assert [arm.observed for arm in share.arms] == [arm.observed for arm in told.arms]
    monkeypatch.setattr(lazy, "SMALL", 1000)  # a head that says where readings are
    early = (pl.col("time") < 2000) & (pl.col("site") == "new")
    drifting = frame.with_columns(ms=pl.col("ms") * pl.when(early).then(0.02).otherwise(1.0))
    found = analyze(drifting.lazy(), arm="site", value="ms", order="time", goal="min", contamination=None)
    assert [(doubt.kind, doubt.arm) for doubt in found.doubts] == [("dependence", "new")]
    assert found.best is None
    calm = analyze(frame.lazy(), arm="site", value="ms", order="time", goal="min", contamination=None)
    assert (calm.alarms, calm.best) == ((), "new")
    assert ta.verify(calm, calm.counts)


@pytest.mark.filterwarnings(OLD_NAME)
def test_medians_of_two_are_the_same_in_every_engine(monkeypatch, tmp_path):
    """Polars rounds them twice: of units that tie in memory one won by the last digit."""
    rng = np.random.default_rng(1)
    n = 2000
    values = rng.normal(size=n) * 10 ** rng.uniform(-3, 3, n)
    rows = pl.DataFrame({"arm": np.arange(n) // (n // 2), "user": np.arange(n) // 2, "v": values})
    asked = {"arm": "arm", "value": "v", "unit": "user"}
    exact = analyze(rows, **asked)
    medians = (values[::2] / 2 + values[1::2] / 2).reshape(2, -1)
    assert exact.certificate.digest == analyze({"0": medians[0], "1": medians[1]}).certificate.digest
    counted(monkeypatch)
    edges = np.unique(medians)
    for _, source in engines(rows, tmp_path):
        found = analyze(source, **asked)
        lows = np.concatenate([column.lows[column.counts > 0] for column in found.counts.columns.values()])
        assert np.isin(lows, edges).all()
        same_decision(exact, found)


def test_rounds_of_an_engine_are_the_same_each_time(monkeypatch):
    """Groups come in any order, and the first of arms that tie won."""
    rows = pl.DataFrame(
        {"arm": np.tile(["C", "A", "B"], 100), "day": np.repeat(np.arange(100), 3), "x": np.ones(300)}
    )
    counted(monkeypatch)
    found = [analyze(rows.lazy(), arm="arm", value="x", round="day") for _ in range(5)]
    assert {one.problem.arms for one in found} == {("A", "B", "C")}
    assert len({one.certificate.digest for one in found}) == 1


@pytest.mark.parametrize("limit", [{"at_least": 1.0}, {"at_most": 1.0}])
def test_units_with_missing_readings_succeed_in_engines_as_in_memory(limit, monkeypatch):
    frame = visits().filter(pl.col("ms").is_finite())
    frame = frame.with_columns(ms=pl.when(pl.int_range(pl.len()) % 4 > 0).then("ms"))
    asked = {"arm": "site", "value": "ms", "unit": "user", **limit}
    exact = analyze(frame.sort("site", maintain_order=True), **asked)
    counted(monkeypatch)
    found = analyze(frame.lazy(), **asked)
    assert (found.status, found.best, found.pulls) == (exact.status, exact.best, exact.pulls)
    assert (found.missing, found.excluded) == (exact.missing, exact.excluded)
    assert [arm.observed for arm in found.arms] == [arm.observed for arm in exact.arms]


@pytest.mark.parametrize("empty", [None, math.nan])
def test_rows_without_a_time_or_a_unit_are_refused_in_an_engine_too(monkeypatch, tmp_path, empty):
    """Null units became one unit together, and NaN beyond all times took the doubt about periods away."""
    frame = visits(400).with_columns(pl.col("time").cast(float), pl.col("user").cast(float))
    gaps = pl.int_range(pl.len()) % 40 == 0
    counted(monkeypatch)
    for role, column, told in (
        ("order", "time", "10 rows of column 'time' are empty, so their place in the order is unknown"),
        ("unit", "user", "10 rows of column 'user' name no unit"),
    ):
        rows = frame.with_columns(pl.when(gaps).then(empty).otherwise(pl.col(column)).alias(column))
        rows.write_parquet(tmp_path / "rows.parquet")
        for source in (rows.lazy(), str(tmp_path / "*.parquet")):
            with pytest.raises(InvalidArgument, match=told):
                analyze(source, arm="site", value="ms", goal="min", **{role: column})


def test_a_truth_value_is_no_time_in_any_engine(monkeypatch, tmp_path):
    counted(monkeypatch)
    rows = visits(400).with_columns(pl.col("time") > 200)
    rows.write_parquet(tmp_path / "rows.parquet")
    for source in (rows.lazy(), str(tmp_path / "*.parquet")):
        with pytest.raises(InvalidArgument, match="order='time' must hold numbers or times"):
            analyze(source, arm="site", value="ms", order="time")


def test_whole_numbers_beyond_all_floats_are_counted_as_they_are_read(monkeypatch, tmp_path):
    counted(monkeypatch)
    rows = pl.DataFrame(
        {"arm": ["A", "B"] * 100, "x": [2**60 + 4096 * (i % 7) - 9000 * (i % 2) for i in range(200)]}
    )
    rows.write_parquet(tmp_path / "rows.parquet")
    exact = analyze(rows, arm="arm", value="x")
    for source in (rows.lazy(), str(tmp_path / "*.parquet")):
        same_decision(exact, analyze(source, arm="arm", value="x"))


def test_what_is_under_a_mask_is_counted_as_missing():
    table = Counts.of({"A": np.ma.masked_array([1.0, 999.0], mask=[False, True])})
    assert (table.n, table.columns["A"].missing) == ({"A": 2}, 1)


def test_units_that_time_out_are_counted_as_they_are_read(monkeypatch):
    rng = np.random.default_rng(5)
    unit, arm = np.repeat(np.arange(400), 4), np.repeat(["A", "B"], 800)
    x = np.where(rng.random(1600) < 0.3, math.inf, rng.normal(size=1600) + (arm == "A"))
    x[rng.random(1600) < 0.05] = -math.inf
    frame = pl.DataFrame({"arm": arm, "unit": unit, "x": x})
    asked = {"arm": "arm", "value": "x", "unit": "unit", "goal": "min"}
    exact = analyze(frame, **asked)
    counted(monkeypatch)
    same_decision(exact, analyze(frame.lazy(), **asked))


def test_a_file_that_is_small_is_read_as_before(tmp_path):
    frame = visits()
    frame.write_csv(tmp_path / "rows.csv")
    asked = {"arm": "site", "value": "ms", "goal": "min"}
    assert analyze(tmp_path / "rows.csv", **asked).best == analyze(frame, **asked).best == "new"
    assert analyze(str(tmp_path / "rows.csv"), **asked, unit="user").units.name == "user"


def test_labels_of_a_pattern_are_words(monkeypatch, tmp_path):
    """Read as numbers, versions 1.1 and 1.10 would be one arm, and persons 7 and 007 one person."""
    rng = np.random.default_rng(3)
    version, who = np.tile(["1.1", "1.10", "1.2"], 400), np.arange(1200)
    ms = np.tile([10.0, 30.0, 20.0], 400) + rng.normal(size=1200)
    frame = pl.DataFrame({"version": version, "who": [f"{'0' * (i % 2)}{i // 2}" for i in who], "ms": ms})
    frame.write_csv(tmp_path / "rows.csv")
    counted(monkeypatch)
    for unit in (None, "who"):
        asked = {"arm": "version", "value": "ms", "goal": "min", "unit": unit}
        read, found = (analyze(str(tmp_path / name), **asked) for name in ("rows.csv", "*.csv"))
        assert found.made is not None
        assert (found.best, found.pulls, found.units) == (read.best, read.pulls, read.units)
        assert found.best == "1.1"


@pytest.mark.parametrize("many", [True, False])
@pytest.mark.parametrize("odd", ["NA", "inf", "-Infinity", "none", "+2.5", " 2.5 ", "1e999", "002.5"])
def test_cells_of_a_pattern_are_read_as_those_of_a_file(monkeypatch, tmp_path, many, odd):
    """Labels that blanks stand around were arms of their own, and one mark made words of a whole column."""
    rng = np.random.default_rng(3)
    labels, x = np.tile(["A", " A", "A ", "B"], 100), np.tile([3, 3, 3, 1], 100) + rng.normal(size=400).round(3)
    cells = [odd if i % 20 < 3 else str(value) for i, value in enumerate(x)]
    rows = "".join(f"{label},{cell}\n" for label, cell in zip(labels, cells, strict=True))
    (tmp_path / "rows.csv").write_text("arm,x\n" + rows)
    if many:
        counted(monkeypatch)
    read, found = (analyze(str(tmp_path / name), arm="arm", value="x") for name in ("rows.csv", "*.csv"))
    assert (found.made is not None) == many
    assert found.pulls == {"A": 300, "B": 100}
    same_decision(read, found)


@pytest.mark.parametrize("cell", ["oops", "1,234", "12%", "yes"])
def test_a_cell_of_a_pattern_that_is_no_number_is_named(tmp_path, cell):
    (tmp_path / "rows.csv").write_text("arm,x\n" + "A,1.5\nB,2.5\n" * 50 + f'A,"{cell}"\n')
    with pytest.raises(InvalidArgument, match=f"column 'x' holds {cell}, which is not a plain number"):
        analyze(str(tmp_path / "*.csv"), arm="arm", value="x")


@pytest.mark.parametrize(("names", "said"), [("arm,x,x", "2 columns are named 'x'"), ("arm,x,X", "only in case")])
def test_a_column_of_a_pattern_that_is_there_twice_is_refused(tmp_path, names, said):
    (tmp_path / "rows.csv").write_text(f"{names}\n" + "A,1,9\nB,2,8\n" * 50)
    with pytest.raises(InvalidArgument, match=said):
        analyze(str(tmp_path / "*.csv"), arm="arm", value="x")
    (tmp_path / "rows.csv").write_text("arm,x,x_1\n" + "A,1,9\nB,2,8\n" * 50)
    assert analyze(str(tmp_path / "*.csv"), arm="arm", value="x").pulls == {"A": 50, "B": 50}


def test_readings_of_a_pattern_are_not_rounded_to_what_the_first_rows_look_like(monkeypatch, tmp_path):
    early, late = 12_000, 15_000  # an engine guesses by the first 20,480 rows
    x = np.concatenate((np.zeros(2 * early), np.tile([0.3, 0.2], late) + np.arange(2 * late) % 7 / 100))
    frame = pl.DataFrame({"arm": np.tile(["A", "B"], early + late), "x": x})
    words = pl.when(pl.col("x") == 0).then(pl.lit("0")).otherwise(pl.col("x").cast(pl.String))
    frame.with_columns(x=words).write_csv(tmp_path / "rows.csv")
    counted(monkeypatch)
    found = analyze(str(tmp_path / "*.csv"), arm="arm", value="x")
    assert found.made is not None
    same_decision(analyze(frame, arm="arm", value="x"), found)
    with (tmp_path / "rows.csv").open("a") as file:
        file.write("A,oops\n")
    with pytest.raises(
        InvalidArgument, match="the data cannot be read: column 'x' holds oops, which is not a plain"
    ):
        analyze(str(tmp_path / "*.csv"), arm="arm", value="x")


def test_rounds_of_many_rows_become_one_reading_each(monkeypatch):
    rng = np.random.default_rng(5)
    day = np.repeat(np.arange(120), 20)
    frame = pl.DataFrame({"day": np.tile(day, 2), "arm": np.repeat(["A", "B"], day.size)})
    frame = frame.with_columns(x=pl.Series(rng.normal(size=frame.height)) + (pl.col("arm") == "A") * 2.0)
    exact = analyze(frame, arm="arm", value="x", round="day")
    counted(monkeypatch)
    assert analyze(frame.lazy(), arm="arm", value="x", round="day").best == exact.best == "A"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of pandas and Ibis, between each other
def test_a_database_answers_by_ibis(tmp_path):
    pytest.importorskip("ibis")
    rows = visits().filter(pl.col("ms").is_finite()).select("site", "ms").rows()
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.execute("create table visits (site text, ms real)")
        connection.executemany("insert into visits values (?, ?)", rows)
        connection.commit()
    asked = {"arm": "site", "value": "ms", "goal": "min"}
    assert analyze(f"sqlite://{tmp_path / 'shop.db'}", query="select site, ms from visits", **asked).best == "new"
    with pytest.raises(InvalidArgument, match="does not answer"):
        analyze(f"sqlite://{tmp_path / 'shop.db'}", query="select nothing from nowhere", **asked)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_database_without_nan_counts_and_says_what_it_cannot(monkeypatch, tmp_path):
    """SQLite has no word for NaN, and that it has no median was an error of ours."""
    pytest.importorskip("ibis")
    rows = visits().filter(pl.col("ms").is_finite() | pl.col("ms").is_nan())
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.execute("create table visits (site text, ms real, user integer, time real)")
        connection.executemany(
            "insert into visits values (?, ?, ?, ?)", rows.with_columns(pl.col("ms").fill_nan(None)).rows()
        )
        connection.commit()
    counted(monkeypatch)
    asked = {"arm": "site", "value": "ms", "goal": "min"}
    address, query = f"sqlite://{tmp_path / 'shop.db'}", "select * from visits"
    exact = analyze(rows.select("site", "ms").sort("site"), **asked)
    for order in (None, "time"):
        found = analyze(address, query=query, **asked, order=order)
        assert (found.status, found.best, found.missing) == (exact.status, exact.best, exact.missing)
    with pytest.raises(
        InvalidArgument, match=r"the database does not answer: .*Median.*; count a copy of the rows"
    ):
        analyze(address, query=query, **asked, unit="user")


@pytest.mark.parametrize("address", ["s3://bucket/a.parquet", "https://host/a.csv"])
def test_a_file_elsewhere_is_no_database(address):
    with pytest.raises(InvalidArgument, match=r"is a file that is elsewhere; .* such as duckdb\.read_"):
        analyze(address, arm="a", value="b")


def test_a_duckdb_file_answers_by_itself(tmp_path):
    import duckdb

    address = f"duckdb://{tmp_path / 'shop.db'}"
    with duckdb.connect(str(tmp_path / "shop.db")) as connection:
        connection.register("frame", visits().to_arrow())
        connection.execute("create table visits as select * from frame")
    asked = {"arm": "site", "value": "ms", "goal": "min"}
    assert analyze(address, query="select site, ms from visits", **asked).best == "new"
    with pytest.raises(InvalidArgument, match="say which rows: query="):
        analyze(address, **asked)
    with pytest.raises(InvalidArgument, match="does not answer"):
        analyze(address, query="select nothing from nowhere", **asked)
    with pytest.raises(InvalidArgument, match="query goes with the address of a database"):
        analyze(str(tmp_path), query="select 1", **asked)


def test_what_goes_wrong_is_said(monkeypatch, tmp_path):
    counted(monkeypatch)
    words = pl.DataFrame({"site": ["a", "b", None], "ms": [1.0, 2.0, 3.0], "word": ["x", "y", "z"]}).lazy()
    for asked, told in (
        ({"value": "word"}, "column 'word' must hold numbers, but its type is String"),
        ({"value": "msec"}, "did you mean 'ms'"),
        ({"value": "ms"}, "1 row of column 'site' names no arm"),
        ({"value": "ms", "order": "rows"}, "order='rows' needs rows one by one"),
        ({"value": "ms", "order": "word"}, "order='word' must hold numbers or times"),
    ):
        with pytest.raises(InvalidArgument, match=told):
            analyze(words, arm="site", **asked)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidArgument, match="has no Parquet or CSV files"):
        analyze(str(tmp_path / "empty"), arm="a", value="b")


def test_small_lazy_data_are_read_as_a_whole_and_queries_are_shown(monkeypatch, capsys):
    frame = visits()
    small = analyze(frame.lazy(), arm="site", value="ms", goal="min")
    assert small.made is None
    counted(monkeypatch)
    analyze(frame.lazy(), arm="site", value="ms", goal="min", explain=True)
    assert "-- query 1, polars" in capsys.readouterr().err


def test_one_file_is_read_until_it_has_too_many_rows(tmp_path, monkeypatch):
    path = str(tmp_path / "rows.parquet")
    pl.DataFrame({"arm": ["A", "B"] * 500, "ms": np.arange(1000.0)}).write_parquet(path)
    assert ta.analyze(path, arm="arm", value="ms").counts is None
    monkeypatch.setattr(scans, "WHOLE", 999)
    monkeypatch.setitem(scans._LARGE, "parquet", 0)
    monkeypatch.setattr(lazy, "SMALL", 999)
    assert ta.analyze(path, arm="arm", value="ms").counts.n == {"A": 500, "B": 500}


def test_of_many_arms_rows_are_read_until_there_are_too_many(monkeypatch):
    monkeypatch.setattr(lazy, "SMALL", 3 * lazy._FEW)
    frame = long({f"arm {i}": [1.0, 2.0, 3.0 + i] for i in range(lazy._FEW + 1)}).lazy()
    assert analyze(frame, arm="arm", value="x").counts is None
    monkeypatch.setattr(lazy, "WHOLE", 3 * lazy._FEW)
    assert analyze(frame, arm="arm", value="x").counts is not None


@pytest.mark.parametrize("ending", ["parquet", "json"])
def test_a_file_of_counts_is_analyzed_and_verifies_in_python_too(tmp_path, ending):
    """`analyze` took a table of counts for readings, and `verify` ended in an AttributeError."""
    rng = np.random.default_rng(0)
    counts, path = Counts.of({"A": rng.normal(2, 1, 300), "B": rng.normal(0, 1, 300)}), tmp_path / f"c.{ending}"
    ta.write_counts(counts, path)
    assert ta.read_counts(path).digest == counts.digest
    found = ta.analyze(path)
    assert (found.best, found.pulls) == ("A", {"A": 300, "B": 300})
    assert ta.verify(found, path)
    assert ta.verify(found, str(path))
    with pytest.raises(InvalidArgument, match="arm is given, but these readings were counted before"):
        ta.analyze(path, arm="arm", value="x")
    with pytest.raises(InvalidArgument, match="is not a table of counts; give a file that write_counts made"):
        ta.verify(found, tmp_path / "other.json")
    with pytest.raises(InvalidArgument, match=r"readings must be a dict of readings by arm, .* but got int"):
        ta.verify(found, 7)
    with pytest.raises(InvalidArgument, match="counts must be a table of counts"):
        ta.write_counts({"A": [1.0]}, path)


@pytest.mark.parametrize("name", ["k.txt", "k"])
def test_counts_are_written_where_they_are_found_again(name, tmp_path):
    counts = ta.Counts.of({"A": [1.0, 2.0]})
    with pytest.raises(InvalidArgument, match=r"must end in \.parquet or \.json"):
        ta.write_counts(counts, tmp_path / name)
    for ending in ("K.JSON", "k.PARQUET"):
        ta.write_counts(counts, tmp_path / ending)
        assert ta.read_counts(tmp_path / ending).digest == counts.digest


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_folder_does_not_overwrite_a_column_of_its_files(ending, tmp_path):
    folder = tmp_path / "site=Z"
    folder.mkdir()
    frame = pl.DataFrame({"site": ["A", "B"] * 50, "ms": list(range(100))})
    getattr(frame, f"write_{ending}")(folder / f"x.{ending}")
    with pytest.raises(InvalidArgument, match="the folders name a column 'site', and the files have one"):
        ta.analyze(str(tmp_path), arm="site", value="ms")


def test_labels_end_where_their_words_do_with_duckdb_too(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("site,ms\n" + "B\t,1\nB,2\n" * 30)
    assert list(ta.analyze(path, arm="site", value="ms").pulls) == ["B"]
