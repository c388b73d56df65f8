"""`truearm simulate`: scenarios in, tables, files and pictures out."""

import csv
import json
import tomllib
from importlib.resources import files

import pytest
from click.testing import CliRunner

from truearm.cli import main
from truearm.errors import InvalidArgument
from truearm.lab import scenarios

SMALL = """
title = "Small"
replications = 4
plot = "eps"

[[grid]]
policy = ["toptwo", "mean_elimination"]
instance = "D2"
attack = "worst"
eps = [0.0, 0.05]
"""


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(SMALL, "utf-8")
    return path


def call(*arguments):
    return CliRunner().invoke(main, ["simulate", *map(str, arguments)])


def test_shipped_scenarios_are_listed():
    listed = call("--list").output
    assert all(name in listed for name in ("harm", "evidence", "howard-ramdas-5", "schreuder"))


@pytest.mark.parametrize("name", sorted(scenarios.shipped()))
def test_shipped_scenarios_are_valid(name):
    text = files("truearm.lab").joinpath("shipped", f"{name}.toml").read_text("utf-8")
    assert tomllib.loads(text)["about"]
    assert scenarios.read(name, replications=1).cells


def test_a_scenario_becomes_a_table(small):
    result = call(small)
    assert result.exit_code == 0, result.output
    assert "Small" in result.output
    assert result.output.count("toptwo") == 2


def test_runs_without_an_answer_are_not_right_ones(tmp_path, small):
    assert "right" not in call(small).output
    path = tmp_path / "short.toml"
    path.write_text(SMALL.replace("replications = 4", "replications = 4\nmax_pulls = 20"), "utf-8")
    assert '"answered": 0' in call(path, "--json").output
    assert "0/4" in call(path).output
    assert "right" in call(path).output


def test_json_is_strict_and_has_a_row_per_cell(small):
    rows = json.loads(call(small, "--json").output)
    assert [(row["policy"], row["eps"]) for row in rows] == [
        ("toptwo", 0.0),
        ("toptwo", 0.05),
        ("mean-elimination", 0.0),
        ("mean-elimination", 0.05),
    ]
    assert rows[0]["limit"] > 0
    assert rows[2]["limit"] is None


@pytest.mark.parametrize("suffix", ["csv", "json", "parquet"])
def test_runs_are_written(small, tmp_path, suffix):
    target = tmp_path / f"runs.{suffix}"
    assert call(small, "--runs", target).exit_code == 0
    if suffix == "csv":
        assert len(list(csv.DictReader(target.read_text("utf-8").splitlines()))) == 16
    elif suffix == "json":
        assert len(json.loads(target.read_text("utf-8"))) == 16
    else:
        duckdb = pytest.importorskip("duckdb")
        assert duckdb.sql(f"SELECT count(*), min(pulls) > 0 FROM '{target}'").fetchall() == [(16, True)]


def test_a_picture_is_drawn(small, tmp_path):
    pytest.importorskip("matplotlib")
    target = tmp_path / "small.png"
    assert call(small, "--plot", target).exit_code == 0
    assert target.read_bytes()[:4] == b"\x89PNG"


def test_gaps_are_drawn_too(tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "gaps.toml"
    path.write_text(SMALL.replace('"eps"', '"gap"').replace('"D2"', '["G5w", "C5"]'), "utf-8")
    assert call(path, "--plot", tmp_path / "gaps.png", "--replications", 2).exit_code == 0


def test_two_workers_give_the_same_rows(small):
    alone, shared = (json.loads(call(small, "--json", "--workers", n).output) for n in (1, 2))
    for row in alone + shared:
        row.pop("seconds")
    assert alone == shared


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("instance = ", "did you mean 'instance'?"),
        ("eps = ", "did you mean 'eps'?"),
        ("attack = ", "did you mean 'attack'?"),
    ],
)
def test_wrong_keys_are_named_with_a_suggestion(tmp_path, wrong, message):
    path = tmp_path / "wrong.toml"
    path.write_text(SMALL.replace(wrong, wrong[:2] + wrong[2:].replace(" = ", "s = ")), "utf-8")
    result = call(path)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"worst"', '"wurst"', "did you mean 'worst'?"),
        ('"D2"', '"D22"', "did you mean 'D2'?"),
        ('"toptwo"', '"toptow"', "did you mean 'toptwo'?"),
        ('plot = "eps"', 'plot = "pie"', "plot must be one of"),
    ],
)
def test_wrong_values_are_named_with_a_suggestion(old, new, message):
    with pytest.raises(InvalidArgument, match=message.replace("?", r"\?")):
        scenarios.parse(tomllib.loads(SMALL.replace(old, new)))


def test_broken_toml_and_unknown_names_are_usage_errors(tmp_path):
    path = tmp_path / "broken.toml"
    path.write_text("title = ", "utf-8")
    assert "not valid TOML" in call(path).output
    assert call("hamr").exit_code == 2
    assert call("harm", "--output", "cells.xls").exit_code == 2


def test_cells_beyond_the_wanted_limit_are_left_out(tmp_path):
    path = tmp_path / "few.toml"
    path.write_text(SMALL.replace('["toptwo", "mean_elimination"]', '"toptwo"') + "limit_below = 30\n", "utf-8")
    assert [row["eps"] for row in json.loads(call(path, "--json").output)] == [0.0]


def test_a_scenario_without_a_picture_says_so():
    assert "has no picture" in " ".join(call("powers", "--plot", "x.png").output.split())
