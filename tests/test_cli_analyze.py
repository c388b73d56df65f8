import json

import numpy as np
import pytest

from entry import truearm
from truearm.claims.certificate import Certificate, Status
from truearm.claims.plain import from_plain


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    rng = np.random.default_rng(0)
    rows = [
        f"{arm},{rng.normal(mean):.6f}" for _ in range(300) for arm, mean in (("A", 1.0), ("B", 0.0), ("C", 0.9))
    ]
    file = tmp_path_factory.mktemp("data") / "data.csv"
    file.write_text("variant,x\n" + "\n".join(rows) + "\n")
    return file


def test_words_and_a_table_and_three_when_undecided(data):
    ended = truearm("analyze", data, "--arm", "variant", "--value", "x")
    assert ended.returncode == 3
    assert "A or C may have the highest median" in " ".join(ended.stdout.split())
    assert "excluded by C" in ended.stdout
    assert ended.stderr == ""


def test_zero_and_json_that_verifies_when_certified(data):
    ended = truearm("analyze", data, "--arm", "variant", "--value", "x", "--tolerance", "0.6", "--json")
    found = json.loads(ended.stdout)
    assert (ended.returncode, found["status"], found["best"]) == (0, Status.TOLERABLE, "C")
    assert found["pulls"] == {"total": 900, "arms": {"A": 300, "B": 300, "C": 300}}
    lines = [line.split(",") for line in data.read_text().splitlines()[1:]]
    tapes = {name: np.array([float(x) for arm, x in lines if arm == name]) for name in "ABC"}
    assert from_plain(Certificate, found["certificate"]).verify(tapes)


def test_standard_input_and_small_is_good(data):
    ended = truearm("analyze", "-", "--arm", "variant", "--value", "x", "--goal", "min", input=data.read_text())
    assert ended.returncode == 0
    assert ended.stdout.startswith("B has the lowest median")


def test_a_wide_file_from_hyperfine(tmp_path):
    rng = np.random.default_rng(1)
    results = [
        {"command": name, "times": rng.normal(t, 0.01, 100).tolist()} for name, t in (("old", 2), ("new", 1))
    ]
    (tmp_path / "h.json").write_text(json.dumps({"results": results}))
    ended = truearm("analyze", tmp_path / "h.json", "--goal", "min", "--contamination", "10%:malicious")
    assert ended.returncode == 0
    assert ended.stdout.startswith("new has the lowest median")


def test_a_page_is_written(data, tmp_path):
    ended = truearm("analyze", data, "--arm", "variant", "--value", "x", "--export-html", tmp_path / "page.html")
    assert ended.returncode == 3
    assert (tmp_path / "page.html").read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--arm", "varient", "--value", "x"], "did you mean 'variant'"),
        (["--arm", "varient", "--value", "x"], "--arm 'varient' is not a column"),
        (["--arm", "variant"], "--arm 'variant' needs --value '...' too"),
        ([], "column 'variant' holds words; name the columns: --arm 'variant' --value 'x'"),
        (["--export-html", "none/x.html"], "the folder 'none' does not exist; make it first"),
        (["--arm", "x", "--value", "variant"], "row 1 of column 'variant' must be a number, but got 'A'"),
        (["--arm", "variant", "--value", "x", "--contamination", "0.7"], "eps must be in [0, 0.5)"),
    ],
)
def test_mistakes_end_with_two_and_a_remedy(data, words, message):
    ended = truearm("analyze", data, *words)
    assert ended.returncode == 2
    assert message in " ".join(ended.stderr.split())
    assert ended.stdout == ""


def test_an_unknown_ending_names_the_option(tmp_path):
    (tmp_path / "data.txt").write_text("A,B\n1,2\n")
    ended = truearm("analyze", tmp_path / "data.txt")
    assert ended.returncode == 2
    assert "use --kind 'csv' or another of" in " ".join(ended.stderr.split())


def test_standard_input_that_is_empty_is_called_so():
    ended = truearm("analyze", "-", "--arm", "a", "--value", "b", input="")
    assert ended.returncode == 2
    assert "standard input is empty" in ended.stderr


@pytest.fixture(scope="module")
def timed(tmp_path_factory):
    """Identical code in 8 processes each of 50 readings, which share what is special about a process."""
    rng = np.random.default_rng(5)
    rows = [
        f"{arm},{arm}{process},{i},{level * rng.lognormal(0, 0.01):.6f}"
        for arm in "AB"
        for process, level in enumerate(rng.lognormal(0, 0.2, 8))
        for i in range(50)
    ]
    file = tmp_path_factory.mktemp("timed") / "timed.csv"
    file.write_text("code,process,i,ms\n" + "\n".join(rows) + "\n")
    return file


def test_a_unit_and_an_order(timed):
    words = ["analyze", timed, "--arm", "code", "--value", "ms", "--goal", "min", "--json"]
    assert json.loads(truearm(*words).stdout)["pulls"]["arms"] == {"A": 400, "B": 400}
    ended = truearm(*words, "--unit", "process", "--order", "i")
    assert (ended.returncode, json.loads(ended.stdout)["pulls"]["arms"]) == (3, {"A": 8, "B": 8})
    ended = truearm(*words, "--order", "rows")
    assert ended.returncode == 4
    found = json.loads(ended.stdout)
    assert (found["status"], found["best"]) == ("doubtful", None)
    assert "process" in [doubt["detail"] for doubt in found["doubts"]]
    assert "--unit process" in " ".join(truearm(*words[:-1], "--order", "rows").stdout.split())


def test_units_with_holes_are_missing(tmp_path):
    rows = [
        f"{arm},{arm}{unit},{value}"
        for arm, top in (("A", 9), ("B", 1))
        for unit in range(60)
        for value in (top, top + unit / 100, "")
    ]
    (tmp_path / "holed.csv").write_text("arm,unit,x\n" + "\n".join(rows) + "\n")
    words = ["analyze", tmp_path / "holed.csv", "--arm", "arm", "--value", "x", "--unit", "unit", "--json"]
    assert json.loads(truearm(*words).stdout)["missing"] == {"A": 59, "B": 59}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--arm", "code", "--value", "ms", "--unit", "proces"], "--unit 'proces' is not a column; did you mean"),
        (["--arm", "code", "--value", "ms", "--order", "process"], "--order 'process' must hold numbers or times"),
        (["--unit", "process"], "column 'code' holds words; name the columns: --arm 'code' --value"),
        (["--arm", "process", "--value", "ms", "--unit", "code"], "arm 'A0' has one unit only: its 50 readings"),
    ],
)
def test_mistakes_with_units_end_with_two_and_a_remedy(timed, words, message):
    ended = truearm("analyze", timed, *words)
    assert ended.returncode == 2
    assert message in " ".join(ended.stderr.split())


def test_errors_of_everyday_files_speak_of_options(tmp_path):
    (tmp_path / "a.csv").write_text("site;ms\nA;1.234,5\nB;2\n")
    columns = (tmp_path / "a.csv", "--arm", "site", "--value", "ms")
    ended = truearm("analyze", *columns)
    assert ended.returncode == 2
    assert "use --decimal ',' --thousands '.'" in " ".join(ended.stderr.split())


def test_of_times_less_is_better(tmp_path):
    runs = [
        {"command": name, "times": [base + i / 1e4 for i in range(60)]} for name, base in (("a", 0.1), ("b", 0.2))
    ]
    (tmp_path / "h.json").write_text(json.dumps({"results": runs}))
    ended = truearm("analyze", tmp_path / "h.json", "--order", "rows")
    assert "lowest median" in ended.stdout or "doubt" in ended.stdout.lower()
    (tmp_path / "t.csv").write_text("site,latency_ms\n" + "A,1\nA,2\nB,3\nB,4\n" * 40)
    ended = truearm("analyze", tmp_path / "t.csv", "--arm", "site", "--value", "latency_ms")
    assert "if latency_ms is a time, use --goal min" in " ".join(ended.stdout.split())
    (tmp_path / "r.csv").write_text(
        "site,item,latency_ms\n" + "".join(f"A,{i},{i}\nB,{i},{i + 1}\n" for i in range(40))
    )
    ended = truearm("analyze", tmp_path / "r.csv", "--arm", "site", "--value", "latency_ms", "--round", "item")
    assert "if latency_ms is a time, use --goal min" in " ".join(ended.stdout.split())
    ended = truearm("analyze", tmp_path / "t.csv", "--arm", "site", "--value", "latency_ms", "--goal", "max")
    assert "--goal" not in ended.stdout


def test_what_was_read_otherwise_is_verified_otherwise(tmp_path):
    (tmp_path / "a.csv").write_text("site;ms\n" + "A;3,5\nB;1,5\n" * 60)
    columns = (tmp_path / "a.csv", "--arm", "site", "--value", "ms", "--decimal", ",")
    (tmp_path / "found.json").write_text(truearm("analyze", *columns, "--json").stdout)
    ended = truearm("verify", tmp_path / "found.json", *columns)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_imported_times_are_shown_with_their_unit(tmp_path):
    runs = [
        {"command": arm, "times": [ms / 1000 + n / 1e6 for n in range(30)]} for arm, ms in (("a", 20), ("b", 30))
    ]
    (tmp_path / "runs.json").write_text(json.dumps({"results": runs}))
    shown = truearm("analyze", tmp_path / "runs.json").stdout
    assert "median [ms]" in shown
    assert json.loads(truearm("analyze", tmp_path / "runs.json", "--json").stdout)["conditions"] == {"unit": "s"}
