"""Counting on a local Spark cluster of two workers; `make spark` runs it, where Java and PySpark are at hand."""

import shutil
import sys
from operator import attrgetter

import numpy as np
import polars as pl
import pytest

import truearm as ta
from truearm.analysis import analyze
from truearm.data import engines

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]  # Spark warns of itself and of pandas


@pytest.fixture(scope="module")
def spark():
    pyspark = pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName(f"truearm {pyspark.__version__}")
    builder = builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2")
    builder = builder.config("spark.pyspark.python", sys.executable)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    rng = np.random.default_rng(11)
    n = 8000
    site = np.where(rng.random(n) < 0.5, "old", "new")
    ms = np.where(site == "new", 0.5, 1.0) * rng.lognormal(size=n).round(3)
    ms[::97], ms[5::197], ms[7::331] = np.nan, np.inf, -np.inf
    frame = pl.DataFrame({"site": site, "ms": ms, "user": rng.integers(0, 900, n)})
    folder = tmp_path_factory.mktemp("rows")
    for i in range(2):
        frame[i::2].write_parquet(folder / f"part{i}.parquet")
    return frame, folder


def test_spark_decides_as_duckdb_and_the_readings_do(spark, rows, monkeypatch):
    frame, folder = rows
    asked = {"arm": "site", "value": "ms", "goal": "min", "contamination": 0.01}
    exact = analyze(frame.select("site", "ms").sort("site"), **asked)
    monkeypatch.setattr(engines, "MAX_ROWS", 1000)
    found = analyze(spark.read.parquet(str(folder)), **asked)
    assert found.made.engine == "pyspark"
    for get in map(attrgetter, ("status", "best", "candidates", "excluded")):
        assert get(found) == get(exact)
    ends = attrgetter("observed", "low", "high")
    assert [*map(ends, found.arms)] == [*map(ends, exact.arms)]
    assert ta.verify(found, found.counts)


def test_units_become_one_reading_in_spark(spark, rows, monkeypatch):
    frame, folder = rows
    asked = {"arm": "site", "value": "ms", "unit": "user", "goal": "min"}
    monkeypatch.setattr(engines, "MAX_ROWS", 1000)
    found, other = (analyze(source, **asked) for source in (spark.read.parquet(str(folder)), frame.lazy()))
    assert (found.units, found.status, found.best) == (other.units, other.status, other.best)
    assert found.pulls == other.pulls
