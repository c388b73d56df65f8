import doctest
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.special import betaincc

from truearm import bounds, families

TEXT = (Path(__file__).parent.parent / "docs" / "errata.md").read_text(encoding="utf-8")
SETUP, *SECTIONS = re.split(r"^## ", TEXT, flags=re.MULTILINE)
OPTIONS = doctest.NORMALIZE_WHITESPACE


def blocks(section):
    return "\n".join(re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL))


def failures(section, name):
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(verbose=False, optionflags=OPTIONS)
    test = parser.get_doctest(blocks(SETUP) + "\n" + blocks(section), {}, name, "docs/errata.md", 0)
    report = []
    runner.run(test, out=report.append)
    return "".join(report)


def test_every_erratum_is_there_once_and_in_order():
    assert [section.split(".")[0] for section in SECTIONS] == [f"E{i}" for i in range(1, 20)]


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.split(".")[0])
def test_the_check_of_each_erratum_runs(section):
    assert ">>>" in blocks(section)
    assert failures(section, section.split(".")[0]) == ""


def test_a_wrong_number_in_the_document_would_be_caught():
    section = SECTIONS[4].replace("0.0148", "0.0149")
    assert "Expected" in failures(section, "E5")


def test_the_printed_radius_loses_the_best_arm_in_one_round():
    density, r, k, delta = 2.5e-4, 10**10, 2, 0.05  # audit 1.a: B near 3800, no contamination, gap near 0
    side = 0.5 - density
    law = families.piecewise(bars=[(-1, 1, 2 * density), (-1.1, -1, side), (1, 1.1, side)])
    B = 1 / (density * law.m2)
    schedule = bounds.elimination_schedule(k, delta, 0.0, density, "oblivious")
    n = schedule.initial + 2 * r + 1 + int(2 * schedule.N * np.log(r + 1))  # no fewer than the total of round r
    right = bounds.elimination_radius(r, k, delta, B, law.m2)
    one_side, one_side_right = (
        betaincc(n // 2 + 1, n - n // 2, 0.5 + density * radius) for radius in (right / np.sqrt(B), right)
    )
    assert one_side**2 > delta  # one median too high and the other too low: the best arm is gone
    assert one_side_right < bounds.round_delta(delta, k, r)


def test_the_numbers_in_the_table_of_theorems_run():
    text = (Path(__file__).parent.parent / "docs" / "bounds.md").read_text(encoding="utf-8")
    assert ">>>" in blocks(text)
    assert failures(text, "bounds") == ""


def test_the_paper_in_code_has_every_statement_and_erratum():
    text = (Path(__file__).parent.parent / "docs" / "paper.md").read_text()
    numbers = {
        "Lemma": (1, 6, 7, 8, 19, 20, 21, 23, 24, 27, 28),
        "Theorem": (2, 3, 14, 15, 16, 22),
        "Corollary": (5, 10, 12, 13, 17),
        "Definition": (1, 2, 3),
        "Algorithm": (1, 2, 3),
    }
    names = [f"{kind} {n}" for kind, each in numbers.items() for n in each] + ["Lemmas 25 and 26"]
    assert [name for name in names if f"**{name}**" not in text] == []
    assert [n for n in range(1, 20) if not re.search(rf"\bE{n}\b", text)] == []
