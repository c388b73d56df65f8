import json
import time

import numpy as np
import pytest

from entry import truearm
from truearm.claims.certificate import Certificate, Status
from truearm.claims.plain import from_plain
from truearm.cli.analyze import _report_delay


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


def test_a_long_analysis_says_on_a_terminal_that_it_goes_on(monkeypatch, capsys):
    monkeypatch.setattr("truearm.cli.analyze._SILENT_S", 0.03)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with _report_delay(["big.csv"]):
        time.sleep(0.1)
    shown = capsys.readouterr().err.split("\r")
    assert shown[1] == "Still analyzing big.csv (0 s); Ctrl-C to stop."
    assert shown[-2:] == [" " * (1 + len(shown[1])), ""]


def test_zero_and_json_that_verifies_when_certified(data):
    ended = truearm("analyze", data, "--arm", "variant", "--value", "x", "--tolerance", "0.6", "--json")
    found = json.loads(ended.stdout)
    assert (ended.returncode, found["status"], found["best"]) == (0, Status.TOLERABLE, "C")
    assert found["pulls"] == {"total": 900, "arms": {"A": 300, "B": 300, "C": 300}}
    lines = [line.split(",") for line in data.read_text().splitlines()[1:]]
    tapes = {name: np.array([float(x) for arm, x in lines if arm == name]) for name in "ABC"}
    assert from_plain(Certificate, found["certificate"]).verify(tapes)


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


def test_a_value_named_like_a_time_is_questioned_unless_the_goal_is_given(tmp_path):
    (tmp_path / "t.csv").write_text("site,latency_ms\n" + "A,1\nA,2\nB,3\nB,4\n" * 4)
    ended = truearm("analyze", tmp_path / "t.csv", "--arm", "site", "--value", "latency_ms")
    assert "if latency_ms is a time, use --goal min" in " ".join(ended.stdout.split())
    assert "chosen before the first of them, --design fixed has" in " ".join(ended.stdout.split())
    ended = truearm("analyze", tmp_path / "t.csv", "--arm", "site", "--value", "latency_ms", "--goal", "max")
    assert "--goal" not in ended.stdout
    (tmp_path / "s.csv").write_text("item,A,B\n1,0,1\n2,1,0\n")
    ended = truearm("analyze", tmp_path / "s.csv", "--round", "item", "--score-range", "0", "1")
    assert (ended.returncode, "--design" in ended.stdout) == (3, False)  # it changes nothing for scores


def test_what_was_read_otherwise_is_verified_otherwise(tmp_path):
    (tmp_path / "a.csv").write_text("site;ms\n" + "A;3,5\nB;1,5\n" * 60)
    columns = (tmp_path / "a.csv", "--arm", "site", "--value", "ms", "--decimal", ",")
    (tmp_path / "found.json").write_text(truearm("analyze", *columns, "--json").stdout)
    ended = truearm("verify", tmp_path / "found.json", *columns)
    assert (ended.returncode, ended.stderr) == (0, "")


MEANS = {"A": 0.0, "B": 0.0, "C": 1.0, "D": -1.0}


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "wide.csv"
    rng = np.random.default_rng(0)
    columns = [rng.normal(mean, 1, 200) for mean in MEANS.values()]
    lines = [",".join(MEANS), *(",".join(f"{x:.4f}" for x in row) for row in zip(*columns, strict=True))]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def test_control(wide):
    assert truearm("analyze", wide, "--control", "C").returncode == 0  # nothing beats it: settled
    assert truearm("analyze", wide, "--control", "A", "--contamination", "0.4").returncode == 3
    rate = truearm("analyze", wide, "--control", "A", "--fdr").stdout.replace("\n", " ")
    assert "On average at most 5%" in rate
    found = truearm("analyze", wide, "--control", "A")
    assert found.returncode == 0, found.stdout
    assert found.stdout.startswith("C is better than A. ")
    assert "not better than A" in found.stdout
    plain = json.loads(truearm("analyze", wide, "--control", "A", "--json").stdout)
    assert plain["control"]["arm"] == "A"
    assert [v["standing"] for v in plain["control"]["variants"]] == ["open", "better", "not better"]
    assert set(plain["control"]["variants"][1]["breakdown"]) == {"oblivious", "prescient", "malicious"}
    assert any("all arms named better than the control" in s for s in plain["assumptions"])


def test_tiers(wide):
    found = truearm("analyze", wide, "--tiers")
    assert "3 tiers: C; then" in found.stdout
    plain = json.loads(truearm("analyze", wide, "--tiers", "--json").stdout)
    assert plain["tiers"]["tiers"][0] == ["C"]
    assert {p["arm"]: (p["best"], p["worst"]) for p in plain["tiers"]["places"]}["D"] == (4, 4)


def test_the_page_shows_both(wide, tmp_path):
    page = tmp_path / "page.html"
    truearm("analyze", wide, "--control", "A", "--tiers", "--export-html", str(page))
    written = page.read_text()
    assert "<title>C beats A" in written
    assert 'id="control-title"' in written
    assert 'id="tiers-title"' in written
    assert written.count('data-title="tier"><span>2</span>') == 2


def test_between(wide):
    found = truearm("analyze", wide, "--between", "-2.5", "2.5", "--contamination", "0.2", "--json")
    assert found.returncode in (0, 3), found.stdout
    assert sum(json.loads(found.stdout)["outside"].values()) > 0
