"""The walk through a race of revisions: its lines are run as they stand, in a folder of their own."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from entry import TRUEARM

PAGE = (Path(__file__).parent.parent / "docs" / "revisions.md").read_text(encoding="utf-8")
FIRST, SECOND, BUILDS = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def shell(lines, folder, cache):
    names = {f"GIT_{who}_{what}": "t@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    env = {
        **os.environ,
        **names,
        "PATH": f"{Path(TRUEARM).parent}:{os.environ['PATH']}",
        "XDG_CACHE_HOME": str(cache),
    }
    done = subprocess.run(
        ["sh", "-ec", lines], cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=True
    )
    return " ".join(done.stdout.split())


def test_the_walk_says_what_the_page_says(tmp_path):
    said = shell(FIRST, tmp_path, tmp_path / "cache")
    assert "v2 is fastest: " in said
    assert "95% sure, for any load that treats the commands alike" in said
    said = shell(SECOND, tmp_path / "counting", tmp_path / "cache")
    assert "FAIL: working tree is worse than HEAD by more than 2%." in said
    assert said.endswith("exit code 1")


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_the_walk_over_random_builds(tmp_path):
    (tmp_path / "counting").mkdir()
    said = shell(BUILDS, tmp_path / "counting", tmp_path / "cache")
    assert "working tree is fastest over random builds: " in said
    assert re.search(r"\d+ rounds, (\d+) builds, ", said)
