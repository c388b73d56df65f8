"""What benchmark tools write: by the tools themselves where they can be had, else by small faithful samples."""

import gzip
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

import truearm as ta
from truearm.cli import main
from truearm.errors import InvalidArgument

BENCHMARKED = """
import pytest
@pytest.mark.parametrize("n", [3, 3000])
def test_sum(benchmark, n):
    benchmark.pedantic(sum, args=(range(n),), rounds=40, iterations=20)
"""

# two benchmarks of google-benchmark 1.8 with --benchmark_repetitions=2, less the keys that say nothing of times
GOOGLE = {
    "context": {"date": "2024-05-01T10:00:00+00:00", "num_cpus": 8, "library_build_type": "release"},
    "benchmarks": [
        {"name": f"BM_copy/{n}", "run_name": f"BM_copy/{n}", "run_type": "iteration", "repetition_index": i}
        | {"iterations": 1000, "real_time": time, "cpu_time": time, "time_unit": unit}
        for n, unit, times in ((8, "ns", (12.5, 12.0)), (64, "us", (1.5, 2.5)))
        for i, time in reversed(list(enumerate(times)))
    ]
    + [
        {"name": "BM_copy/8_mean", "run_name": "BM_copy/8", "run_type": "aggregate", "aggregate_name": "mean"}
        | {"iterations": 2, "real_time": 12.25, "cpu_time": 12.25, "time_unit": "ns"}
    ],
}


RAW = "group,function,value,throughput_num,throughput_type,sample_measured_value,unit,iteration_count\n"


def collect(source):
    """Return what an analysis says about an export, whose readings are in order of pull and better if less."""
    found = ta.analyze(source)
    assert (found.certificate.origin.options["ordered"], found.problem.goal) == (True, "min")
    return found


def written(path, data):
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return path


def benchmarked(folder, *options):
    written(folder / "test_it.py", BENCHMARKED)
    alone = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}  # not ours
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py", *options],
        cwd=folder,
        env=alone,
        check=True,
        capture_output=True,
    )


def test_pytest_benchmark_itself(tmp_path):
    benchmarked(tmp_path, "--benchmark-json=all.json", "--benchmark-save=x", "--benchmark-storage=kept")
    found = collect(tmp_path / "all.json")
    assert {name: tape.size for name, tape in found.readings.items()} == {"test_sum[3]": 40, "test_sum[3000]": 40}
    assert found.units.name == "round of one process"
    [saved] = (tmp_path / "kept").rglob("*_x.json")  # without --benchmark-save-data: statistics only
    with pytest.raises(InvalidArgument, match="no single readings; add --benchmark-save-data"):
        collect(saved)


def test_pyperf_itself(tmp_path):
    subprocess.run(
        [sys.executable, "-m", "pyperf", "timeit", "-q", "-p3", "-n2", "-w1", "-l10", "-o", "p.json", "pass"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    found = collect(tmp_path / "p.json")
    [tape] = found.readings.values()
    assert (tape.size, found.units.name) == (3, "process")


def test_repetitions_of_google_benchmark_in_order_and_in_seconds(tmp_path):
    found = collect(written(tmp_path / "g.json", GOOGLE))
    assert list(found.readings) == ["BM_copy/8", "BM_copy/64"]
    np.testing.assert_allclose(found.readings["BM_copy/8"], [12.5e-9, 12.0e-9])
    np.testing.assert_allclose(found.readings["BM_copy/64"], [1.5e-6, 2.5e-6])
    assert found.units.name == "repetition of one process"

    failed = {**GOOGLE["benchmarks"][0], "error_occurred": True, "error_message": "no"}
    found = collect(written(tmp_path / "g.json", {"benchmarks": [failed, *GOOGLE["benchmarks"][1:]]}))
    assert np.isnan(found.readings["BM_copy/8"]).tolist() == [False, True]


def test_samples_of_criterion_in_all_its_files(tmp_path):
    rows = "Fib,Loop,,,,915000,ns,100\nFib,Loop,,,,2,ms,200\n"
    table = collect(written(tmp_path / "raw.csv", RAW + rows + RAW + "Fib,Call,20,,,16000,ns,20\n"))
    np.testing.assert_allclose(table.readings["Fib/Loop"], [9.15e-6, 1e-5])
    np.testing.assert_allclose(table.readings["Fib/Call/20"], [8e-7])
    old = written(tmp_path / "old.csv", "group,function,value,sample_time_nanos,iteration_count\nFib,,,900,10\n")
    np.testing.assert_allclose(collect(old).readings["Fib"], [9e-8])
    place = tmp_path / "target" / "fib" / "20" / "new"
    place.mkdir(parents=True)
    sample = {"sampling_mode": "Linear", "iters": [10.0, 20.0], "times": [1000.0, 1500.0]}
    file = written(place / "sample.json", sample)
    assert list(collect(file).readings) == ["20"]
    folder = collect(tmp_path / "target")
    np.testing.assert_allclose(folder.readings["fib/20"], [1e-7, 7.5e-8])
    for found in (table, folder, collect(file)):
        assert found.units.name == "sample of one process"


def test_the_command_line_knows_the_goal_of_an_export_but_the_user_knows_better(tmp_path):
    rng = np.random.default_rng(7)
    rows = "".join(
        f"Fib,{f},,,,{t:.0f},ns,10\n" for f, m in (("a", 9e3), ("b", 5e3)) for t in rng.normal(m, 50, 90)
    )
    file = written(tmp_path / "raw.csv", RAW + rows)
    runner = CliRunner()
    least = json.loads(runner.invoke(main, ["analyze", str(file), "--json"]).output)
    assert (least["best"], least["goal"]) == ("Fib/b", "min")
    most = json.loads(runner.invoke(main, ["analyze", str(file), "--json", "--goal", "max"]).output)
    assert most["best"] == "Fib/a"
    share = json.loads(runner.invoke(main, ["analyze", str(file), "--json", "--at-most", "7e-7"]).output)
    assert (share["best"], share["goal"]) == ("Fib/b", "max")


ONCE = {"benchmarks": [run for run in GOOGLE["benchmarks"] if run.get("repetition_index") == 0]}
AGGREGATES = {"benchmarks": [run for run in GOOGLE["benchmarks"] if run["run_type"] == "aggregate"]}
TWICE = {"benchmarks": [{"name": "a", "fullname": "x::a", "stats": {"data": [1.0]}}] * 2}
MANY = {"results": [{"command": f"./{i}", "times": [1.0, 2.0]} for i in range(1_001)]}
SECRET = "line one of many\n" * 500


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("g.json", ONCE, r"one repetition of one process of 'BM_copy/8', .* --benchmark_repetitions=20"),
        ("g.json", AGGREGATES, r"statistics of 'BM_copy/8'.*--benchmark_report_aggregates_only=false"),
        ("g.json", {"benchmarks": [{"run_type": "iteration", "name": "x"}]}, "export of google-benchmark, but is"),
        ("p.json", TWICE, "2 benchmarks are named 'x::a'"),
        ("h.json", MANY, "there are 1,001 benchmarks, but at most 1,000 arms can be compared"),
        ("p.json", {"benchmarks": [{"name": "a", "stats": {"data": [SECRET]}}]}, "line one"),
        ("sample.json", {"iters": [1.0], "times": [1.0, 2.0]}, "not one time for each count of iterations"),
        ("raw.csv", RAW + "Fib,Loop,,,,1,fortnights,10\n", "like an export of criterion, but is not: "),
        ("raw.csv", RAW + f'Fib,Loop,,,,"{SECRET}",ns,10\n', "looks like an export of criterion, but is not"),
    ],
)
def test_what_holds_no_readings_is_refused_with_the_remedy_and_without_its_content(tmp_path, name, data, says):
    with pytest.raises(InvalidArgument, match=says) as caught:
        collect(written(tmp_path / name, data))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_folder_of_something_else_is_refused(tmp_path):
    with pytest.raises(InvalidArgument, match="has no CSV, Parquet or JSON lines files"):
        collect(tmp_path)


def pyperf(values):
    return {
        "benchmarks": [
            {"metadata": {"name": name}, "runs": [{"values": v} for v in runs]} for name, runs in values
        ]
    }


def test_files_are_compared_by_benchmark_and_never_benchmarks_with_each_other(tmp_path):
    rng = np.random.default_rng(3)

    def runs(mean):
        return rng.normal(mean, 0.01, (60, 3)).tolist()

    old = written(tmp_path / "old.json", pyperf([("loads", runs(1.0)), ("dumps", runs(5.0))]))
    new = tmp_path / "new.json.gz"
    new.write_bytes(gzip.compress(json.dumps(pyperf([("dumps", runs(5.0)), ("loads", runs(0.5))])).encode()))
    with pytest.raises(
        InvalidArgument, match="2 benchmarks in common; choose one, such as value='loads': 'loads', 'dumps'"
    ):
        ta.analyze([old, new])
    found = ta.analyze([old, new], value="loads")
    assert (found.best, found.problem.goal, list(found.readings)) == ("new", "min", ["old", "new"])
    assert (found.units.name, found.units.rows) == ("process", {"old": 180, "new": 180})
    ended = CliRunner().invoke(main, ["analyze", str(old), str(new), "--value", "loads"])
    assert ended.stdout.startswith("new has the lowest median")
    other = written(tmp_path / "other.json", pyperf([("sort", runs(1.0))]))
    with pytest.raises(InvalidArgument, match="no benchmark is in all files, and different ones are not compared"):
        ta.analyze([old, other])
    with pytest.raises(InvalidArgument, match=r"'x.csv' is csv"):
        ta.analyze([old, written(tmp_path / "x.csv", "A,B\n1,2\n")])


def test_what_a_race_exported_gives_the_same_answer(tmp_path):
    rng = np.random.default_rng(5)
    result = ta.find_best(
        {"a": lambda: rng.normal(1), "b": lambda: rng.normal(0)}, goal="min", rounds=True, max_pulls=400, seed=1
    )
    file = written(tmp_path / "race.json", json.dumps(result.to_dict(readings=True)))
    found = ta.analyze(file)
    assert (found.problem.rounds, found.problem.goal, found.best) == (True, "min", result.best)
    assert found.problem.contamination == result.problem.contamination
    medians = ta.analyze(file, quantile=0.5)
    assert not medians.problem.rounds
