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
