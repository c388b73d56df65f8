"""Figures that pages quote are those of the kept files, each from its own row; others are computed here."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import betainc, betaln, logsumexp

import truearm as ta

ROOT = Path(__file__).parent.parent
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def text_of(path):
    return (ROOT / path).read_text(encoding="utf-8")


def result(name):
    return text_of(f"benchmarks/results/{name}.md")


def rows(text, after=""):
    """Return the cells of every row of the first table after some words, that of the names first."""
    block = re.search(r"(?:^\|.*\n)+", text[text.index(after) :], re.MULTILINE)
    heading, _, *others = ([cell.strip() for cell in line.strip("|").split("|")] for line in block[0].splitlines())
    return [heading, *others]


def table(text, after=""):
    """Return per row of a table its cells by the names of the columns."""
    heading, *others = rows(text, after)
    return [dict(zip(heading, row, strict=True)) for row in others]


def numbers(text):
    return [float(found.replace(",", "")) for found in NUMBER.findall(text)]


def paragraph(page, beginning):
    """Return the words of a paragraph, or of an item of a list, from some words on."""
    text = text_of(f"docs/{page}.md")
    return " ".join(re.split(r"\n\n|\n\* |\n- ", text[text.index(beginning) :])[0].split())


def test_the_table_of_gates_is_that_of_the_file():
    assert rows(text_of("docs/figures.md"), "| load |") == rows(result("false_alarms"))


def test_what_a_suite_costs_is_from_the_file():
    kept = {
        row["metrics"]: {name: numbers(cell)[0] for name, cell in row.items()} for row in table(result("suites"))
    }
    one, twenty, many = (kept[metrics] for metrics in ("1", "20", "500"))
    assert numbers(paragraph("suites", "The required evidence grows").split("is 10% slower is ")[1]) == [
        *(one["one named"], twenty["one named"], 20, many["one named"], 500),
        *(size["settled, equal"] for size in (one, twenty, many)),
        *(500, many["half, e-BH"], many["half named"]),
    ]


def test_what_a_control_saves_is_from_the_file():
    told = paragraph("control", "**Sampling.**")
    for variants, words, quarters in (
        ("9 variants, 3 win", "With 9 variants, 3 of them better, it needs about half of the pulls of rounds", 2),
        ("49 variants, 5 win", "with 49 variants, 5 of them better, a quarter", 1),
    ):
        row = next(
            row for row in table(result("control")) if row[""].startswith(variants) and row["rule"] == "Holm"
        )
        assert words in told
        assert round(4 * numbers(row["separated"])[0] / numbers(row["separated, rounds"])[0]) == quarters


def test_what_means_save_is_from_the_file():
    kept = {float(gap): [numbers(cell)[:2] for cell in cells] for gap, *cells in rows(result("means"))[1:]}
    for difference, *cells in rows(text_of("docs/why.md"), "| the difference is")[1:]:
        [gap] = numbers(difference)
        means, *medians = kept[gap]
        assert [numbers(cell) for cell in cells] == [means[:1], *medians]


def test_how_quickly_the_limit_is_reached_is_from_the_file():
    kept = {row["setting"]: row for row in table(result("optimality"))}
    for row in table(text_of("docs/optimality.md"), "| setting |"):
        assert {name: kept[row["setting"]][name].split(" ± ")[0] for name in row} == row


def draws(dev, *prior):
    """Return after how many draws, of which a share 1/2 - dev succeed, the log of a mixture reaches 3.5."""

    def log_evidence(n):
        s, f = n * (0.5 - dev), n * (0.5 + dev)
        parts = [
            betaln(c + s, c + f) - betaln(c, c) + np.log(2 * w * betainc(c + s, c + f, 0.5)) for c, w in prior
        ]
        return logsumexp(parts) + n * np.log(2)

    return brentq(lambda n: log_evidence(n) - 3.5, 1, 1e8)


def test_what_the_prior_costs_is_computed():
    heading, best, *kinds = rows(text_of("docs/evidence.md"), "| dev |")
    priors = ((8, 0.6), (256, 0.4)), ((8, 1),), ((256, 1),)  # half of the concentrations
    for place, dev in enumerate(map(float, heading[1:]), start=1):
        least = min(draws(dev, (c, 1)) for c in np.geomspace(0.25, 5e5, 200))
        assert numbers(best[place]) == [round(least)]
        assert [float(row[place]) for row in kinds] == pytest.approx(
            [draws(dev, *prior) / least for prior in priors], abs=0.01
        )


@pytest.mark.parametrize("gap", [0.5, 1.0])
def test_a_smaller_delta_costs_about_twice_the_runs(gap):
    """What docs/recipes/ci-gate.md says of 0.001 against 0.05."""
    assert "about twice the runs (`truearm plan --delta 0.001` against 0.05)" in paragraph(
        "recipes/ci-gate", "**Many gates"
    )
    often, rarely = (ta.plan(arms=2, gap=gap, delta=delta).clean.expected for delta in (0.05, 0.001))
    assert 1.75 < rarely / often < 2.25


@pytest.mark.parametrize("path", sorted(ROOT.glob("benchmarks/*.py")), ids=lambda path: path.stem)
def test_what_benchmarks_import_from_here_exists(path, monkeypatch):
    for folder in ("tests", "benchmarks"):
        monkeypatch.syspath_prepend(ROOT / folder)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module.partition(".")[0] in ("truearm", "statistical"):
            exec(ast.unparse(node))
