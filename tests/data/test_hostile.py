"""Data that attack the reader: tiny files of huge tables, numbers and containers that are not readings."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import truearm as ta
from entry import truearm
from truearm.errors import InvalidArgument

MEASURED = """
import resource, sys
import truearm
found = truearm.analyze(sys.argv[1], arm="arm", value="x")
print(found.pulls["a"], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_a_small_parquet_file_of_many_rows_is_counted(tmp_path):
    rows = 1 << 20
    table = pa.table({"arm": pa.array(["a", "b"] * (rows // 2)).dictionary_encode(), "x": np.ones(rows)})
    with parquet.ParquetWriter(tmp_path / "big.parquet", table.schema) as out:
        for _ in range(20):
            out.write_table(table, row_group_size=rows)
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, tmp_path / "big.parquet"],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    n, kilobytes = map(int, done.stdout.split())
    assert n == rows // 2 * 20
    assert kilobytes < 1_000_000


@pytest.mark.parametrize("column", [[1 + 2j, 2.0], np.array([1 + 2j, 2.0]), np.array([1, 2], dtype=np.complex64)])
def test_complex_numbers_are_not_readings(column):
    for read in (lambda: ta.analyze({"A": column, "B": [1, 2]}), lambda: ta.median_interval(column)):
        with pytest.raises(InvalidArgument, match="must be a number, but got"):
            read()
    with pytest.raises(InvalidArgument, match="number"):
        ta.analyze(pd.DataFrame({"A": column, "B": [1, 2]}))
    with pytest.raises(InvalidArgument, match="number"):
        ta.analyze(pd.DataFrame({"arm": ["a", "b"], "x": column}), arm="arm", value="x")


def test_readings_of_an_arm_are_a_list_and_not_a_dict():
    with pytest.raises(InvalidArgument, match=r"column 'A' must be a list of readings, but got \{1: 5.0}"):
        ta.analyze({"A": {1: 5.0}, "B": [1, 2]})
    with pytest.raises(InvalidArgument, match="must be a list of readings"):
        ta.median_interval({1: 5.0, 2: 6.0})


def test_zeros_and_ones_name_the_share_to_compare(tmp_path):
    rng = np.random.default_rng(1)
    rows = "".join(f"{arm},{int(rng.random() < p)}\n" for _ in range(60) for arm, p in (("a", 0.3), ("b", 0.35)))
    (tmp_path / "won.csv").write_text("arm,won\n" + rows)
    ended = truearm("analyze", tmp_path / "won.csv", "--arm", "arm", "--value", "won")
    words = " ".join(ended.stdout.split())
    assert "--at-least 1" in words
    assert "digits" not in words


def test_a_database_asks_for_a_query(tmp_path):
    (tmp_path / "big.duckdb").write_bytes(b"x")
    ended = truearm("analyze", tmp_path / "big.duckdb", "--arm", "arm", "--value", "x")
    assert ended.returncode == 2
    assert "--query" in ended.stderr
    assert "csv" not in ended.stderr
