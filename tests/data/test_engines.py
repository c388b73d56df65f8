"""Data that an engine counts are decided as the same readings in memory."""

import sqlite3
import subprocess
import sys

import duckdb
import ibis
import numpy as np
import polars as pl
import pytest

import truearm as ta
from reference import count_tapes
from truearm.data import engines, tables
from truearm.errors import InvalidArgument

pytestmark = [pytest.mark.usefixtures("counting"), pytest.mark.filterwarnings("ignore::DeprecationWarning")]


def rows(n=4000, seed=11, **more):
    rng = np.random.default_rng(seed)
    site = np.where(rng.random(n) < 0.5, "old", "new")
    ms = np.where(site == "new", 0.5, 1.0) * rng.lognormal(size=n).round(3)
    ms[::97], ms[5::197], ms[7::331] = np.nan, np.inf, -np.inf
    return pl.DataFrame({"site": site, "ms": ms, "user": rng.integers(0, 300, n), **more})


def sources(frame, folder):
    """Return one table in every engine."""
    folder.mkdir(exist_ok=True)
    for i in range(2):
        frame[i::2].write_parquet(folder / f"part{i}.parquet")
    frame.write_csv(folder.parent / "rows.csv")
    return {
        "files": folder,
        "csv": folder.parent / "rows.csv",
        "duckdb": duckdb.sql(f"FROM read_parquet('{folder}/*.parquet')"),
        "polars": frame.lazy(),
        "ibis": ibis.duckdb.connect().read_parquet(f"{folder}/*.parquet"),
    }


def decided(found):
    arms = {arm.name: (arm.observed, arm.low, arm.high, arm.n) for arm in found.arms}
    units = found.units and (found.units.rows, found.units.counts, found.units.shared)
    return found.status, found.best, set(found.candidates), found.excluded, arms, found.missing, units


@pytest.fixture
def counting(monkeypatch):
    monkeypatch.setattr(engines, "MAX_ROWS", 500)
    monkeypatch.setattr(tables, "REDUCED_ROWS", 500)
    monkeypatch.setattr(tables, "PART_ROWS", 900)


ASKED = [
    {"goal": "min", "contamination": 0.01},
    {"quantile": 0.9, "goal": "min"},
    {"at_most": 0.7, "contamination": 0.01},
    {"goal": "min", "tolerance": "5%", "between": (0, 20)},
    {"goal": "min", "unit": "user"},
    {"at_least": 0.9, "unit": "user"},
    {"at_most": 0.7, "unit": "user"},
    {"goal": "min", "round": "user"},
]


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_every_engine_decides_as_the_readings_do(tmp_path, monkeypatch, asked):
    frame = rows().sort("site", "user")
    asked = {"arm": "site", "value": "ms", **asked}
    exact = ta.analyze(frame.to_dict(as_series=False), **asked)
    all_sources = sources(frame, tmp_path / "logs")
    for name, source in all_sources.items():
        found = ta.analyze(source, **asked)
        assert decided(found) == decided(exact), name
        assert (found.made is None) == ("unit" in asked or "round" in asked), name
        if "unit" in asked:  # more units than are fetched are counted
            with monkeypatch.context() as patch:
                patch.setattr(engines, "MAX_GROUPS", 100)
                assert decided(ta.analyze(source, **asked)) == decided(exact), name
    monkeypatch.setattr(engines, "MAX_GROUPS", 100)
    with pytest.raises(InvalidArgument, match=r"round='user' has .* rounds, and 100 can be compared"):
        ta.analyze(all_sources["polars"], arm="site", value="ms", round="user")


@pytest.mark.parametrize("values", [[1e308, -1e308, 5e-324, 0.0], [1.7976931348623157e308, 1.0], [3.0]])
def test_readings_as_far_apart_as_numbers_can_be_are_counted(values):
    frame = pl.DataFrame({"arm": ["A", "B"] * 600, "x": (values * 1200)[:1200]})
    exact = ta.analyze(frame.to_dict(as_series=False), arm="arm", value="x")
    assert decided(ta.analyze(frame.lazy(), arm="arm", value="x")) == decided(exact)


def test_what_goes_wrong_with_an_engine_is_said(tmp_path):
    frame = rows()
    late = frame.with_columns(at=pl.int_range(frame.height), word=pl.lit("x"))
    for source in sources(late, tmp_path / "logs").values():
        for order, unit in (("at", None), ("at", "user"), ("rows", "user")):
            with pytest.raises(InvalidArgument, match=f"order='{order}' needs rows one by one"):
                ta.analyze(source, arm="site", value="ms", order=order, unit=unit)
        with pytest.raises(InvalidArgument, match="value='msec' is not a column; did you mean 'ms'"):
            ta.analyze(source, arm="site", value="msec")
    with pytest.raises(InvalidArgument, match="column 'word' must hold numbers, but its type is String"):
        ta.analyze(late.lazy(), arm="site", value="word")
    for n in (10, frame.height):
        with pytest.raises(InvalidArgument, match="polars failed: InvalidOperationError"):
            ta.analyze(late.head(n).lazy().with_columns(pl.col("word").cast(pl.Int64)), arm="site", value="word")
    holed = frame.with_columns(site=pl.when(pl.int_range(frame.height) == 7).then(None).otherwise("site"))
    for source in sources(holed, tmp_path / "holed").values():
        with pytest.raises(InvalidArgument, match=r"names no arm|1 rows of column 'site' are empty"):
            ta.analyze(source, arm="site", value="ms")
    (tmp_path / "bad.csv").write_text("site,ms\n" + "A,1\nB,2\n" * 400 + "A,fast\n")
    with pytest.raises(InvalidArgument, match="row 801 of column 'ms' must be a number, but got 'fast'"):
        ta.analyze(tmp_path / "bad.csv", arm="site", value="ms")
    found = ta.analyze(tmp_path / "bad.csv", arm="site", value="ms", unreadable="missing")
    assert found.missing == {"A": 1, "B": 0}


@pytest.mark.parametrize("order", ["rows", "at"])
def test_units_in_order_are_not_sorted_by_value(tmp_path, monkeypatch, order):
    """Units that DuckDB reduced came sorted, which was taken for their order: every such analysis was doubtful."""
    monkeypatch.setattr(engines, "MAX_ROWS", 1 << 24)
    frame = rows(ms=np.random.default_rng(5).normal(size=4000)).with_columns(at=pl.int_range(4000))
    frame.write_parquet(tmp_path / "a.parquet")
    asked = {"arm": "site", "value": "ms", "unit": "user", "order": order}
    found, exact = ta.analyze(tmp_path / "a.parquet", **asked), ta.analyze(frame.to_dict(as_series=False), **asked)
    assert found.status.value != "doubtful"
    np.testing.assert_array_equal(found.readings["old"], exact.readings["old"])


def test_an_undeclared_unit_is_suspected_where_rows_are_counted(tmp_path):
    rng = np.random.default_rng(3)
    levels = rng.normal(size=40)
    frame = pl.DataFrame({"site": ["A", "B"] * 1000, "user": np.repeat(np.arange(40), 50)})
    frame = frame.with_columns(ms=pl.Series(levels.repeat(50) + rng.normal(0, 0.01, 2000)))
    frame.write_parquet(tmp_path / "a.parquet")
    for source in (tmp_path / "a.parquet", frame.lazy()):
        found = ta.analyze(source, arm="site", value="ms")
        assert [doubt.detail for doubt in found.doubts] == ["user"]


def test_a_database_without_nan_is_counted_through_ibis(tmp_path):
    frame = rows().filter(pl.col("ms").is_finite())
    with sqlite3.connect(tmp_path / "shop.db") as database:
        database.execute("CREATE TABLE visits (site TEXT, ms REAL, user INTEGER)")
        database.executemany("INSERT INTO visits VALUES (?, ?, ?)", frame.rows())
    database.close()
    connection = ibis.sqlite.connect(tmp_path / "shop.db")
    asked = {"arm": "site", "value": "ms", "goal": "min"}
    exact = ta.analyze(frame.sort("site").to_dict(as_series=False), **asked)
    assert decided(ta.analyze(connection.table("visits"), **asked)) == decided(exact)


def test_what_was_counted_is_verified_by_counting_again(tmp_path):
    frame = rows().sort("site")
    frame.write_parquet(tmp_path / "a.parquet")
    found = ta.analyze(tmp_path / "a.parquet", arm="site", value="ms", goal="min")
    assert ta.verify(found)
    assert ta.verify(found, found.counts)
    with pytest.raises(ta.InvalidArgument, match="or the counts of a result, but got NoneType"):
        found.certificate.verify(found.readings)
    other = count_tapes({"old": [1.0, 2.0], "new": [3.0]})
    with pytest.raises(ta.VerificationError, match="digest differs"):
        ta.verify(found, other)


MEASURED = """
import resource, sys
import truearm as ta
found = ta.analyze(sys.argv[1], arm="arm", value="x", unit=sys.argv[2] or None)
print(sum(found.pulls.values()), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.parametrize(
    ("reading", "unit", "pulls", "megabytes"),
    [
        ("1.0", "", 20_000_000, 1000),  # a small file
        pytest.param("random()", "", 20_000_000, 1000, marks=pytest.mark.slow),
        pytest.param("random()", "u", 4_000_000, 1500, marks=pytest.mark.slow),
    ],
)
def test_twenty_million_rows_take_bounded_memory(tmp_path, reading, unit, pulls, megabytes):
    query = f"SELECT 'arm' || (i % 2) AS arm, {reading} AS x, (i // 10)::INT AS u FROM range(20_000_000) t(i)"
    duckdb.execute(f"COPY ({query}) TO '{tmp_path}/a.parquet'")
    command = [sys.executable, "-c", MEASURED, tmp_path / "a.parquet", unit]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    n, kilobytes = map(int, done.stdout.split())
    assert n == pulls
    assert kilobytes < 1000 * megabytes
