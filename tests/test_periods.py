"""Drift in data that an engine counts: found where it voids a decision, at the level that is promised."""

import datetime
import json
from functools import partial

import duckdb
import narwhals as nw
import numpy as np
import polars as pl
import pytest
from scipy.stats import binomtest

import truearm as ta
from truearm.claims import alarms
from truearm.errors import InvalidArgument
from truearm.evidence.counts import Counts
from truearm.evidence.serial import DOUBT
from truearm.problem import Contamination, Problem
from truearm.world import lazy, periods

N = 8000
TIMES = np.arange(N)
FOUND = {"arm": "arm", "value": "v", "order": "t"}


@pytest.fixture(autouse=True)
def small_heads(monkeypatch):
    """Let engines count from a thousand rows on."""
    monkeypatch.setattr(lazy, "SMALL", 1000)


def frame(arm, load, times=TIMES):
    noise = np.random.default_rng(0).normal(size=N)
    return pl.DataFrame({"arm": arm, "t": times, "v": 100 + load * TIMES / N + noise})


def engines(rows):
    import ibis

    connection = duckdb.connect()
    connection.register("rows_of_frame", rows.to_arrow())
    yield rows.lazy()
    yield connection.sql("FROM rows_of_frame")
    yield ibis.memtable(rows)


ONE_AFTER_THE_OTHER = np.where(TIMES < N // 2, "A", "B")
IN_TURN = np.where(TIMES % 2 == 0, "A", "B")


@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")
@pytest.mark.parametrize("arm", [ONE_AFTER_THE_OTHER, IN_TURN], ids=["one after the other", "in turn"])
@pytest.mark.parametrize("contamination", [0.05, None])
def test_arms_that_drift_are_doubtful_in_engines_as_in_memory(arm, contamination):
    """Of equal arms measured one after the other the later one was certified: each was in one half of the time."""
    rows = frame(arm, 50.0)
    for source in (rows, *engines(rows)):
        found = ta.analyze(source, **FOUND, contamination=contamination)
        assert (found.status.value, found.best) == ("doubtful", None)
        assert [doubt.kind for doubt in found.doubts] == ["dependence"]
    assert ta.verify(found, found.counts)


def test_one_stray_time_hides_no_drift():
    """The middle of all times then has a single row behind it."""
    for stray in (10**15, -(10**9)):
        times = np.where(TIMES == 5, stray, TIMES)
        found = ta.analyze(frame(IN_TURN, 50.0, times).lazy(), **FOUND)
        assert found.status.value == "doubtful"
        sizes = [period.n["A"] for period in found.counts.periods]
        assert max(sizes) < N / 8


@pytest.mark.parametrize("head", [20, 100])
def test_drift_beyond_all_that_the_first_rows_show_is_found(monkeypatch, head):
    """All later readings were in one bucket, above those of the head, and so alike."""
    monkeypatch.setattr(lazy, "SMALL", head)
    for load in (1000.0, -1000.0):
        for source in engines(frame(IN_TURN, load)):
            assert ta.analyze(source, **FOUND).status.value == "doubtful"


def test_arms_without_drift_are_decided():
    rows = frame(IN_TURN, 0.0).with_columns(v=pl.col("v") + (pl.col("arm") == "B"))
    for source in engines(rows):
        assert ta.analyze(source, **FOUND).best == "B"


@pytest.mark.parametrize(
    "time",
    [
        lambda i: i * 0.5,
        lambda i: datetime.datetime(2024, 5, 1) + datetime.timedelta(seconds=i),
        lambda i: datetime.datetime(2024, 5, 1, tzinfo=datetime.UTC) + datetime.timedelta(seconds=i),
        lambda i: datetime.date(2024, 5, 1) + datetime.timedelta(days=i // 700),
        lambda i: 1714521600000000000 + i,
        lambda i: datetime.timedelta(seconds=i),
    ],
    ids=["numbers", "times", "times of a zone", "days", "nanoseconds", "durations"],
)
def test_times_of_every_kind_are_cut(time):
    times = [time(i) for i in range(N)]
    for source in list(engines(frame(IN_TURN, 5.0, times)))[
        : 1 if isinstance(times[0], datetime.timedelta) else 2
    ]:
        found = ta.analyze(source, **FOUND)
        assert found.status.value == "doubtful"
        assert sum(period.n.get("A", 0) > 0 for period in found.counts.periods) == 8


def test_few_times_make_few_periods():
    found = ta.analyze(frame(IN_TURN, 0.0, TIMES * 3 // N).lazy(), **FOUND)
    assert sum(period.n.get("A", 0) > 0 for period in found.counts.periods) == 3
    alone = ta.analyze(frame(IN_TURN, 0.0, TIMES * 0).lazy(), **FOUND)
    assert not alone.doubts


def test_times_without_an_end_are_refused():
    with pytest.raises(InvalidArgument, match="order='t' must hold times that can be compared, but goes"):
        ta.analyze(frame(IN_TURN, 0.0, np.where(TIMES == 9, np.inf, TIMES)).lazy(), **FOUND)


def test_more_arms_than_a_query_can_spell_out_are_refused(monkeypatch):
    monkeypatch.setattr(lazy, "_FEW", 1000)
    monkeypatch.setattr(periods, "_ARMS", 10)
    with pytest.raises(InvalidArgument, match="looked at for up to 10 arms of so many rows, and there are 20"):
        ta.analyze(frame(TIMES % 20, 0.0).lazy(), **FOUND)


def test_as_many_arms_as_a_query_can_spell_out(monkeypatch):
    monkeypatch.setattr(lazy, "_FEW", 1000)
    for source in list(engines(frame((TIMES * periods._ARMS // N).astype(str), 0.0)))[:2]:
        assert not ta.analyze(source, **FOUND).doubts


def table(rng, problem, laws, size=400):
    """Return the counts of periods with one law each, all arms alike."""
    parts = [Counts.of({arm: law(rng, size) for arm in problem.arms}, room=256) for law in laws]
    return Counts(periods=tuple(parts))


def normal(shift, rng, size):
    return rng.normal(shift, 1, size)


def spoiled(share, rng, size):
    return np.where(rng.random(size) < share, 1e9, rng.normal(size=size))


def missing(share, rng, size):
    """Leave out the largest, as a time-out would."""
    drawn = rng.normal(size=size)
    return np.where(drawn > np.quantile(drawn, 1 - share), np.nan, drawn)


CALM = [
    (None, [partial(normal, 0.0)] * 8),
    (Contamination(0.05), [partial(spoiled, 0.05), *[partial(spoiled, 0.0)] * 7]),
    (Contamination(0.1, "malicious"), [partial(normal, 0.0)] * 4 + [partial(normal, 0.5)] * 4),
    (None, [partial(missing, 0.0)] * 4 + [partial(missing, 0.4)] * 4),
]


@pytest.mark.statistical
@pytest.mark.parametrize(("contamination", "laws"), CALM, ids=["none", "bursts", "malicious", "missing"])
def test_calm_arms_are_seldom_doubted(contamination, laws):
    """Level: a smoke test, which fails if one in twenty is doubted; all bad readings in one period too."""
    problem, rng = Problem(arms=("A", "B"), contamination=contamination), np.random.default_rng(3)
    doubted = sum(bool(alarms.drift(problem, table(rng, problem, laws))) for _ in range(100))
    assert binomtest(doubted, 100, DOUBT, alternative="greater").pvalue > 0.01


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(("contamination", "laws"), CALM, ids=["none", "bursts", "malicious", "missing"])
def test_calm_arms_are_doubted_as_seldom_as_promised(contamination, laws):
    """Level: at most 1 of 400; a test that is wrong three times as often fails here with a chance of 99%."""
    problem, rng = Problem(arms=("A", "B"), contamination=contamination), np.random.default_rng(5)
    doubted = sum(bool(alarms.drift(problem, table(rng, problem, laws))) for _ in range(4000))
    assert binomtest(doubted, 4000, DOUBT, alternative="greater").pvalue > 0.001


DRIFTING = [
    (None, [partial(normal, i / 8) for i in range(8)]),
    (Contamination(0.05), [partial(normal, i / 7) for i in range(8)]),
    (Contamination(0.05), [partial(normal, 1.0 * (i == 3)) for i in range(8)]),
    (Contamination(0.05, "malicious"), [partial(normal, 1.2 * i / 7) for i in range(8)]),
    (Contamination(0.05), [partial(spoiled, 0.4 * (i > 5)) for i in range(8)]),
]


@pytest.mark.statistical
@pytest.mark.parametrize(("contamination", "laws"), DRIFTING, ids=["none", "ramp", "burst", "malicious", "bad"])
def test_drift_is_found(contamination, laws):
    """Power: with 400 readings in a period, a drift of one standard deviation is found in 9 of 10 cases."""
    problem, rng = Problem(arms=("A", "B"), contamination=contamination), np.random.default_rng(4)
    found = sum(bool(alarms.drift(problem, table(rng, problem, laws))) for _ in range(30))
    assert found >= 27


def test_a_table_keeps_its_periods():
    found = ta.analyze(frame(IN_TURN, 5.0).lazy(), **FOUND)
    kept = Counts.from_dict(json.loads(json.dumps(found.counts.to_dict())))
    assert kept.digest == found.counts.digest
    again = ta.analyze(kept)
    assert again.doubts == found.doubts


def test_a_time_that_is_infinite_is_refused_in_words():
    rows = (
        "SELECT 'A' AS arm, i AS v, CASE WHEN i = 0 THEN TIMESTAMP 'infinity' ELSE TIMESTAMP '2026-01-01' END AS t"
    )
    with duckdb.connect() as connection:
        relation = connection.sql(f"{rows} FROM range(100) r(i)")
        known = nw.from_native(relation).rename({"t": "order"})
        with pytest.raises(InvalidArgument, match="must hold times that can be compared"):
            periods.cuts(known, lambda lazy: lazy.collect(), "t")
