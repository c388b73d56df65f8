"""Figures that pages quote are those of the kept files, each from its own row; others are computed here."""

import re
from pathlib import Path

import pytest

import truearm as ta

ROOT = Path(__file__).parent.parent
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
WORLDS = {"quiet": 0, "a neighbor that comes and goes": 1, "a load that wanders": 2}
SHORT = ("quiet", "neighbor", "wander")  # as the file has them


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


def by_name(text, after):
    return {gate(name): cells for name, *cells in rows(text, after)[1:]}


def gate(name):
    return name.replace("truearm, tolerance 2%", "truearm --tolerance 2%")


def numbers(text):
    return [float(found.replace(",", "")) for found in NUMBER.findall(text)]


def paragraph(page, beginning):
    """Return the words of a paragraph, or of an item of a list, from some words on."""
    text = text_of(f"docs/{page}.md")
    return " ".join(re.split(r"\n\n|\n\* |\n- ", text[text.index(beginning) :])[0].split())


ALARMS, KEPT = text_of("docs/figures.md"), result("false_alarms")


def test_false_alarms_are_those_of_the_file():
    kept = {name: cells[0::2] for name, cells in by_name(KEPT, "## The same code twice").items()}
    assert by_name(ALARMS, "The same code twice: false alarms.") == kept


def test_regressions_found_are_those_of_the_file():
    kept = by_name(KEPT, "## 5% slower: regressions found")
    kept["truearm, at most 1,000 runs each"] = ["", "", *by_name(KEPT, "## 5% slower, at most 1,000")["truearm"]]
    told = by_name(ALARMS, "5% slower: regressions found")
    assert told.keys() == kept.keys()
    for name, cells in told.items():
        found = zip(kept[name][0::2], kept[name][1::2], strict=True)
        assert cells == [share if runs in ("", "300") else f"{share}, {runs} runs" for share, runs in found]


def test_how_gates_ended_is_as_in_the_file():
    kept = {(name, world): cells for name, world, *cells in rows(KEPT, "## How truearm ended")[1:]}
    told = rows(ALARMS, "The same code twice: how truearm ended.")[1:]
    assert {(gate(name), SHORT[WORLDS[world]]): cells for name, world, *cells in told} == kept


def test_what_a_gate_costs_is_from_the_file():
    cost = paragraph("figures", "A gate that has no budget")
    quiet = int(by_name(KEPT, "## 5% slower: regressions found")["truearm"][1])
    free = " ".join(KEPT[KEPT.index("As many runs as the tools choose") :].split())
    equal, within, slower = (
        int(re.search(words, free)[1].replace(",", ""))
        for words in (r"after ([\d,]+) runs of truearm", r", (\d+) with `--tol", r"6 of 6 after (\d+) runs")
    )
    assert f"took {quiet} and {slower} runs of both commands together, so 25 to 30 rounds" in cost
    assert 24 < quiet / 2 < slower / 2 < 30
    assert f"some {round(equal / 2, -2):.0f} rounds" in cost
    assert f"passed after some {round(within / 2, -2):.0f}." in cost


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


@pytest.mark.parametrize("gap", [0.5, 1.0])
def test_a_smaller_delta_costs_about_twice_the_runs(gap):
    """What docs/recipes/ci-gate.md says of 0.001 against 0.05."""
    assert "about twice the runs (`truearm plan --delta 0.001` against 0.05)" in paragraph(
        "recipes/ci-gate", "**Many gates"
    )
    often, rarely = (ta.plan(arms=2, gap=gap, delta=delta).clean.expected for delta in (0.05, 0.001))
    assert 1.75 < rarely / often < 2.25
