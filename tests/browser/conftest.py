import os
import shutil

import numpy as np
import pytest

from truearm import Contamination, Study
from truearm.report.pages import page as report_page

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")  # while it lives, asyncio.run fails in this process: do not outlive the module
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
    if CHROMIUM is None:
        pytest.skip("needs Chromium: install Debian's chromium, or name one in CHROMIUM")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


def decided(arms, **problem):
    """Return a study of arms whose medians fall by a half from one to the next, 4 % of readings spoiled."""
    draw = np.random.default_rng(1)
    study = Study(arms, **problem)
    while counts := study.ask_counts():
        for arm, n in counts.items():
            values = 10 - study.problem.sign * arms.index(arm) / 2 + draw.normal(size=n)
            study.tell_arrays({arm: np.where(draw.random(n) < 0.04, 60.0, values)})
    return study


@pytest.fixture(scope="session")
def study():
    return decided(["A", "B", "C", "D"], contamination=0.05)


@pytest.fixture(scope="session")
def hostile():
    names = ["<script>alert(1)</script>", "two\x00\nlines\u202e", "a-name-without-a-single-break-" * 4, "'\"&$x$"]
    return decided(names, contamination=Contamination(0.02, "malicious"), goal="min")


def write_page(study, folder):
    (folder / "report.html").write_text(report_page(study.result, study.readings), encoding="utf-8")
    return (folder / "report.html").as_uri()


@pytest.fixture(scope="session")
def written(study, tmp_path_factory):
    return write_page(study, tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="session")
def written_hostile(hostile, tmp_path_factory):
    return write_page(hostile, tmp_path_factory.mktemp("page"))
