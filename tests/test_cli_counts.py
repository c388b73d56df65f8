"""`truearm analyze` on folders, patterns, databases and tables of counts; `truearm verify` by the table."""

import json

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from truearm.cli import main
from truearm.world import lazy


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(4)
    site = np.where(rng.random(6000) < 0.5, "old", "new")
    frame = pl.DataFrame({"site": site, "ms": rng.normal(10, 1, 6000) - (site == "new")})
    (tmp_path / "logs").mkdir()
    for i in range(3):
        frame[i::3].write_parquet(tmp_path / "logs" / f"day{i}.parquet")
    return tmp_path


def run(*words):
    return CliRunner().invoke(main, list(map(str, words)), catch_exceptions=False)


@pytest.mark.parametrize("ending", ["json", "parquet"])
def test_a_folder_is_counted_and_verified_by_its_table(folder, monkeypatch, ending):
    monkeypatch.setattr(lazy, "SMALL", 100)
    asked = ("--arm", "site", "--value", "ms", "--goal", "min")
    table = folder / f"counts.{ending}"
    found = run("analyze", folder / "logs", *asked, "--json", "--counts", table)
    assert found.exit_code == 0
    data = json.loads(found.stdout)
    assert (data["best"], data["made"]["engine"], len(data["made"]["queries"]) > 0) == ("new", "duckdb", True)
    (folder / "found.json").write_text(found.stdout)
    assert run("verify", folder / "found.json", table).stdout.startswith("Verified")
    again = run("analyze", table, "--goal", "min", "--json")
    assert json.loads(again.stdout)["best"] == "new"


def test_a_pattern_explains_itself(folder, monkeypatch):
    monkeypatch.setattr(lazy, "SMALL", 100)
    found = run("analyze", folder / "logs" / "*.parquet", "--arm", "site", "--value", "ms", "--explain")
    assert "-- query 1, duckdb" in found.stderr
    assert "GROUP BY" in found.stderr


def test_few_rows_of_a_pattern_are_read_and_can_be_counted_and_drawn(folder):
    table, drawn = folder / "few.json", folder / "few.html"
    words = ("analyze", folder / "logs", "--arm", "site", "--value", "ms", "--goal", "min")
    found = run(*words, "--counts", table, "--export-html", drawn, "--explain")
    assert found.exit_code == 0
    assert "Nothing is sent to an engine" in found.stderr
    assert 'id="eps"' in drawn.read_text()
    assert run("analyze", table, "--goal", "min").stdout.split(":")[0] == found.stdout.split(":")[0]
    (folder / "few_found.json").write_text(run(*words, "--json").stdout)
    ended = run("verify", folder / "few_found.json", table)
    assert ended.exit_code == 1
    assert "A table of counts verifies what was found from it" in ended.stdout


def test_counts_have_a_page_without_a_slider(folder, monkeypatch):
    monkeypatch.setattr(lazy, "SMALL", 100)
    drawn = folder / "page.html"
    found = run(
        "analyze", folder / "logs", "--arm", "site", "--value", "ms", "--goal", "min", "--export-html", drawn
    )
    assert found.exit_code == 0
    written = drawn.read_text()
    assert "<h1>new is best</h1>" in written
    assert "counted where they are" in written
    assert 'id="eps"' not in written


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--value", "msec"), "did you mean 'ms'"),
        (("--value", "ms", "--query", "select 1"), "query goes with the address of a database"),
    ],
)
def test_errors_speak_of_options(folder, monkeypatch, words, told):
    monkeypatch.setattr(lazy, "SMALL", 100)
    monkeypatch.chdir(folder)
    found = CliRunner().invoke(main, ["analyze", "logs", "--arm", "site", *words])
    assert found.exit_code == 2
    assert told in " ".join(found.output.split())
