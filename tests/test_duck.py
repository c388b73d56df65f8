import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from truearm.world.duck import connected, duckdb
from truearm.world.files import read

FORKED = """
import os, sys
from truearm.world.files import read
path = sys.argv[1]
first = read(path, arm="arm", value="x")
child = os.fork()
assert read(path, arm="arm", value="x").keys() == first.keys()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def run(code, *arguments):
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.skipif(duckdb().__version__ < "2", reason="of DuckDB 1.5, any forked process aborts when it ends")
def test_parent_and_child_of_a_fork_both_read_and_end_without_a_word(tmp_path):
    (tmp_path / "a.csv").write_text("arm,x\nA,1\n")
    done = run(FORKED, tmp_path / "a.csv")
    assert (done.returncode, done.stderr) == (0, "")


def test_files_read_at_once_do_not_see_each_other(tmp_path):
    for i in range(12):
        rows = pa.table({"arm": ["A", f"B{i}"] * 500, "x": np.arange(1000.0) + i})
        feather.write_feather(rows, str(tmp_path / f"{i}.arrow"))
        (tmp_path / f"{i}.csv").write_text("arm,x\n" + "".join(f"A,{x + i}\nB{i},{x}\n" for x in range(500)))

    def outcome(name):
        return {arm: tape.tolist() for arm, tape in read(tmp_path / name, arm="arm", value="x").items()}

    names = [f"{i}.{ending}" for i in range(12) for ending in ("csv", "arrow")]
    one_by_one = list(map(outcome, names))
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(outcome, names * 3)) == one_by_one * 3


def test_a_file_that_was_written_anew_is_read_anew(tmp_path):
    path = tmp_path / "a.parquet"
    for x in (1.0, 2.0):  # of one size and one age
        parquet.write_table(pa.table({"arm": ["A"] * 1000, "x": [x] * 1000}), path, use_dictionary=False)
        os.utime(path, (10**9, 10**9))
        assert set(read(path, arm="arm", value="x")["A"]) == {x}


def test_after_an_error_another_database_is_opened():
    with connected() as connection:
        connection.execute("CREATE TABLE of_all (x INTEGER)")
    with connected() as connection:
        assert connection.execute("FROM of_all").fetchall() == []
    with pytest.raises(KeyboardInterrupt), connected():
        raise KeyboardInterrupt
    with pytest.raises(duckdb().CatalogException), connected() as connection:
        connection.execute("FROM of_all")


def test_the_databases_of_others_are_left_alone():
    with connected() as connection:
        assert connection.execute("SELECT current_setting('disabled_optimizers')").fetchall() != [("",)]
    assert duckdb().sql("SELECT current_setting('disabled_optimizers')").fetchall() == [("",)]
    assert duckdb().connect().sql("SELECT current_setting('disabled_optimizers')").fetchall() == [("",)]
