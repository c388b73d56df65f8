"""The command line asked for more than the best arm: control, tiers, plausible range, audit."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from truearm.cli import main

MEANS = {"A": 0.0, "B": 0.0, "C": 1.0, "D": -1.0}


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "wide.csv"
    rng = np.random.default_rng(0)
    columns = [rng.normal(mean, 1, 200) for mean in MEANS.values()]
    lines = [",".join(MEANS), *(",".join(f"{x:.4f}" for x in row) for row in zip(*columns, strict=True))]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def run(*words):
    return CliRunner().invoke(main, list(words))


def test_control(file):
    found = run("analyze", file, "--control", "A")
    assert found.exit_code == 0, found.output
    assert found.output.startswith("C is better than A. ")
    assert "not better than A" in found.output
    plain = json.loads(run("analyze", file, "--control", "A", "--json").output)
    assert plain["control"]["arm"] == "A"
    assert [v["standing"] for v in plain["control"]["variants"]] == ["open", "better", "not better"]
    assert set(plain["control"]["variants"][1]["breakdown"]) == {"oblivious", "prescient", "malicious"}
    assert any("all arms named better than the control" in s for s in plain["assumptions"])


def test_exit_codes_answer_what_was_asked(file):
    assert run("analyze", file, "--control", "C").exit_code == 0  # nothing beats it: settled
    assert run("analyze", file, "--control", "A", "--contamination", "0.4").exit_code == 3
    assert run("analyze", file, "--control", "Z").exit_code == 2
    assert run("analyze", file, "--fdr").exit_code == 2


def test_false_discoveries(file):
    found = run("analyze", file, "--control", "A", "--fdr")
    assert "On average at most 5%" in found.output.replace("\n", " ")
    refused = run("analyze", file, "--control", "A", "--fdr", "--design", "fixed")
    assert refused.exit_code == 2
    assert "--design 'sequential'" in refused.output


def test_tiers(file):
    found = run("analyze", file, "--tiers")
    assert "3 tiers: C; then" in found.output
    plain = json.loads(run("analyze", file, "--tiers", "--json").output)
    assert plain["tiers"]["tiers"][0] == ["C"]
    assert {p["arm"]: (p["best"], p["worst"]) for p in plain["tiers"]["places"]}["D"] == (4, 4)
    assert plain["certificate"]["places"] == plain["tiers"]["places"]


def test_the_page_shows_both(file, tmp_path):
    page = tmp_path / "page.html"
    run("analyze", file, "--control", "A", "--tiers", "--export-html", str(page))
    written = page.read_text()
    assert "<title>C beats A" in written
    assert 'id="control-title"' in written
    assert 'id="tiers-title"' in written
    assert written.count('data-title="tier"><span>2</span>') == 2


def test_between(file):
    found = run("analyze", file, "--between", "-2.5", "2.5", "--contamination", "0.2", "--json")
    assert found.exit_code in (0, 3), found.output
    assert sum(json.loads(found.output)["outside"].values()) > 0
    assert run("analyze", file, "--between", "5", "1").exit_code == 2
