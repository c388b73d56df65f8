"""Counts instead of readings: the same decision, tables that add, and real engines that count alike."""

import json
import math
import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, reject, settings
from hypothesis import strategies as st

import truearm as ta
from truearm.analysis import analyze
from truearm.data import engines as data_engines
from truearm.errors import InvalidArgument, VerificationError
from truearm.evidence import fixed_pair, pair
from truearm.evidence.counts import ROOM, Counts
from truearm.evidence.levels import Levels
from truearm.evidence.ruler import Ruler
from truearm.evidence.sample import Sample

LARGEST = sys.float_info.max


def counted(monkeypatch, parts=1 << 13, fetched=1 << 21, finer=256):
    """Count whatever is lazy, in so many parts, fetching at most so many readings."""
    monkeypatch.setattr(data_engines, "MAX_ROWS", 0)
    monkeypatch.setattr(data_engines, "_PARTS", parts)
    monkeypatch.setattr(data_engines, "_FETCHED_ROWS", fetched)
    monkeypatch.setattr(data_engines, "_FINER_PARTS", finer)


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


def test_no_sum_of_tables_turns_over():
    large = Counts.from_lumps([0.0], {"A": ([0.5], [0.6], [2**52], 2**51)})
    assert large.n == {"A": 2**52 + 2**51}
    with pytest.raises(InvalidArgument, match=r"arm 'A' has 1\.35108e\+16 readings"):
        _ = large + large


def test_two_arms_of_one_name_are_not_one():
    with pytest.raises(InvalidArgument, match="arms must have different names, but got 1, '1'"):
        Counts.of({1: [1.0], "1": [2.0]})


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


def test_what_is_under_a_mask_is_counted_as_missing():
    table = Counts.of({"A": np.ma.masked_array([1.0, 999.0], mask=[False, True])})
    assert (table.n, table.columns["A"].missing) == ({"A": 2}, 1)


@pytest.mark.parametrize("address", ["s3://bucket/a.parquet", "https://host/a.csv"])
def test_a_file_elsewhere_is_no_database(address):
    with pytest.raises(InvalidArgument, match=r"is a file that is elsewhere; .* such as duckdb\.read_"):
        analyze(address, arm="a", value="b")
