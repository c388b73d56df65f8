"""What the front page says is so: its program prints it, its figures are in the files they are quoted from."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
NUMBER = re.compile(r"(?<![\w.^-])\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
QUOTED = re.compile(r"\]\((?:\.\./)?(benchmarks/results/\w+\.md)\)")
LABEL = re.compile(r"\[[^\]]*\]\([^)]*\)|`[^`]*`|\b[SE]\d+\b|Algorithm \d|k = [\d, ]+")  # links, code, settings


def numbers(text):
    return {float(found.replace(",", "")) for found in NUMBER.findall(text)}


def quotes():
    """Yield every claim with figures and the file it is quoted from: clauses of the README, rows of the tables."""
    measured = README.split("## Measured")[1]
    parts = QUOTED.split(measured)
    yield from zip(parts[0::2], parts[1::2], strict=False)
    for row in (ROOT / "docs/figures.md").read_text(encoding="utf-8").splitlines():
        if row.startswith("|") and (found := QUOTED.search(row)):
            yield row.split("|")[2], found[1]


@pytest.mark.parametrize(("claim", "source"), list(quotes()))
def test_every_figure_is_in_the_file_it_is_quoted_from(claim, source):
    claimed = numbers(LABEL.sub("", claim))
    assert claimed
    assert claimed <= numbers((ROOT / source).read_text(encoding="utf-8").replace("x,", " ,").replace("x |", " |"))


def test_all_results_are_quoted():
    kept = {f"benchmarks/results/{path.name}" for path in (ROOT / "benchmarks/results").glob("*.md")}
    text = (ROOT / "docs/figures.md").read_text(encoding="utf-8")
    assert kept - set(QUOTED.findall(text)) <= {"benchmarks/results/freshness.md"}  # about a constant of ours


def test_the_first_program_prints_what_the_page_says():
    program, printed = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", README, re.DOTALL).groups()
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert ended.stdout.split() == printed.split()


def test_what_is_measured_by_make_bench_is_in_a_release():
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    assert "benchmarks/RESULTS.md" in (ROOT / "docs/figures.md").read_text(encoding="utf-8")
    assert not any("benchmarks" in each for each in build["targets"]["sdist"]["exclude"])
