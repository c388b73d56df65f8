"""Races over random builds, on real repositories: a new build of each revision in every round (extensions U)."""

import json
import os
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import truearm as ta
from entry import TRUEARM, commit, git, truearm
from truearm.commands.revisions import Builds, Revision
from truearm.errors import InvalidArgument

PAGE = (Path(__file__).parent.parent / "docs" / "revisions.md").read_text(encoding="utf-8")
SEEDED = "echo {seed} > made && test {seed} = $TRUEARM_SEED"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Return a repository: all versions cost 200, the working tree costs 100 and has a new file."""
    folder = tmp_path_factory.mktemp("builds") / "project"
    for tag in ("v1", "v2", "v3", "v4"):
        commit(folder, tag, **{"cost": "200\n", ".gitignore": "made\nbuilt\n", "version": tag})
    (folder / "cost").write_text("100\n")
    (folder / "new").write_text("0\n")
    return folder


def race(folder, *words, metric=("--metric", "stdout", "--goal", "min")):
    env = {"XDG_CACHE_HOME": str(folder.parent / "cache")}
    return truearm("race", *metric, *words, cwd=folder, env=env)


def test_every_round_has_a_new_build_of_each_revision_and_runs_builds_in_turn(project, tmp_path):
    status = git(project, "status", "--porcelain")
    runs, log = tmp_path / "runs", tmp_path / "r.db"
    line = f'echo "$WHICH:$(cat made):$TRUEARM_ITERATION" >> {runs}; test -e new && echo 100 || echo 200'
    words = ("--rev", "v1", "--rev", ".", "--builds", "14", "--build", SEEDED, "--runs-per-build", "3", "-w", "1")
    done = race(project, "--save", log, "--json", "--env", "WHICH={rev}", *words, "--", line)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["best"], found["pulls"]["arms"]) == ("working tree", {"v1": 12, "working tree": 12})
    assert found["conditions"]["builds"] == "random"
    seeds = found["builds"]["seeds"]
    assert len({*seeds["v1"], *seeds["working tree"]}) == 24
    order = []
    rows = [row.split(":") for row in runs.read_text().splitlines()]
    assert len(rows) == 2 * 12 * 4
    for place in range(0, len(rows), 2):  # pairs of runs, a run that warms up first, of one build each
        pair = {rev: (int(seed), iteration) for rev, seed, iteration in rows[place : place + 2]}
        number, run = divmod(place // 2, 4)
        expected = str(3 * number + run - 1) if run else "warmup-1"
        assert pair == {arm: (seeds[arm][number], expected) for arm in seeds}
        order.append(rows[place][0])
    assert len(set(order)) == 2  # both come first at times: never with chance 2^-47
    assert git(project, "status", "--porcelain") == status
    assert git(project, "worktree", "list").count("\n") == 0
    assert not [*(project.parent / "cache").rglob("made")]
    said = " ".join(truearm("report", log).stdout.split())
    assert "working tree is best over random builds: " in said
    assert "12 rounds, 24 builds, 72 runs." in said
    (tmp_path / "r.json").write_text(done.stdout)
    assert truearm("verify", tmp_path / "r.json", log).returncode == 0


def test_a_killed_race_goes_on_with_new_builds(project, tmp_path):
    flag, log = tmp_path / "flag", tmp_path / "r.db"
    line = f"sh -c 'test $TRUEARM_ITERATION = 7 && test ! -e {flag} && touch {flag} && kill -9 $PPID; cat cost'"
    words = ("--rev", "v1", "--rev", ".", "--builds", "20", "--build", SEEDED, "--runs-per-build", "2")
    start = [TRUEARM, "race", "--metric", "stdout", "--goal", "min", "--save", str(log), *words, "--", line]
    env = {**os.environ, "XDG_CACHE_HOME": str(project.parent / "cache")}
    assert subprocess.run(start, cwd=project, env=env, check=False, capture_output=True).returncode == -9
    again = race(project, "--resume", log, "--json", metric=())
    assert again.returncode == 0, again.stderr
    found = json.loads(again.stdout)
    assert found["best"] == "working tree"
    seeds = [seed for own in found["builds"]["seeds"].values() for seed in own if seed is not None]
    assert len(set(seeds)) == len(seeds) == found["pulls"]["total"] - 1  # a pull was lost, and counts as such
    assert not [*(project.parent / "cache").rglob("made")]


def test_a_suite_has_the_median_of_each_metric_and_a_gate_names_random_builds(project):
    line = """sh -c 'echo "{\\"x\\": $(cat cost), \\"i\\": $((TRUEARM_ITERATION % 3 * 10))}"'"""
    words = ("--rev", "v1", "--rev", ".", "--builds", "16", "--build", SEEDED, "--runs-per-build", "3")
    gate = ("--metrics", "json", "--fail-if-worse-than", "working tree", "--tolerance", "2%")
    done = race(project, "--json", *gate, *words, "--", line, metric=())
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    assert found["runs"]["v1"][0] == {"x": 200, "i": 10}
    assert "worse than in working tree by more than 2% over random builds" in found["summary"]
    assert len(found["builds"]["seeds"]["v1"]) == len(found["runs"]["v1"])


def test_a_gate_and_one_build_each_say_what_they_are_about(project):
    gate = ("--fail-if-worse-than", "working tree", "--tolerance", "2%", "--rev", "v1", "--rev", ".")
    done = race(project, *gate, "--builds", "20", "--build", SEEDED, "--runs-per-build", "1", "--", "cat cost")
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("FAIL: v1 is worse than working tree by more than 2% over random builds.")
    done = race(project, "--rev", "v1", "--rev", ".", "--build", "touch built", "--", "cat cost")
    assert "95% sure of these two builds, " in done.stdout


def test_a_build_that_ignores_its_seed_ends_the_race(project):
    words = ("--rev", "v1", "--rev", "v2", "--builds", "12", "--build", "echo {seed} | wc -l > made")
    done = race(project, *words, "--", "cat cost")
    assert done.returncode == 2
    assert re.search(
        "made the same files of 'v[12]' with 4 seeds: it ignores {seed};", " ".join(done.stderr.split())
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--rev", "v2", "--builds", "11"), "2 revisions at an error probability of 0.05 take 12 rounds at least"),
        (("--rev", "v2", "--rev", "v3", "--builds", "12"), "use --builds 13 or more"),
        (("--rev", "v2", "--rev", "v3", "--rev", "v4", "--rev", ".", "--builds", "13"), "use --builds 14 or more"),
        (("--rev", "v2", "--builds", "14", "--ledger", "loop.db", "--base", "v1"), "use --builds 20 or more"),
        (("--rev", "v2", "--builds", "14", "--contamination", "0.4999999"), "at least, each with new builds"),
        (("--rev", "v2", "--builds", "14", "-M", "20"), "remove -M"),
        (("--rev", "v2", "--builds", "14", "--setup", "true"), "remove -s/--setup"),
        (("--rev", "v2", "--builds", "14", "--quantile", "0.9"), "remove --quantile"),
        (("--rev", "v2"), "{seed} in --build needs --builds N, which draws the seeds; add it"),
        (("--rev", "v2", "--builds", "14", "-L", "n", "1,2"), "remove -L"),
    ],
)
def test_what_cannot_be_built_is_refused_before_anything_is(project, words, says):
    done = race(project, "--rev", "v1", "--build", SEEDED, *words, "--", "cat cost")
    assert done.returncode == 2
    assert says in " ".join(done.stderr.split())
    assert not [*(project.parent / "cache").rglob("made")]


def test_builds_outside_of_the_cache_are_not_removed(tmp_path):
    place = {"name": "v1", "commit": "0" * 40, "repository": str(tmp_path), "folder": str(tmp_path)}
    builds = Builds(command="true", rounds=12, revisions={"v1": Revision(top=str(tmp_path), **place)})
    with pytest.raises(InvalidArgument, match="not in the cache"), builds.hold():
        pass
    assert tmp_path.exists()


def simulate(rng, slower=1.0, builds=20, runs=3):
    """Race two revisions whose layouts move times by 4%, in rounds of new builds, or of one build each."""
    speeds = {"old": 1.0, "new": slower}
    fixed = {arm: rng.gauss(1, 0.04) for arm in speeds}
    study = ta.Study([*speeds], rounds=True, goal="min", seed=rng.getrandbits(32), max_pulls=2 * (builds or 40))
    while pulls := study.ask(1):
        for pull in pulls:
            layout = rng.gauss(1, 0.04) if builds else fixed[pull.arm]
            times = [speeds[pull.arm] * layout * rng.gauss(1, 0.01) for _ in range(runs)]
            study.tell(pull, sorted(times)[runs // 2])
    return study.result.best


def test_random_builds_name_equal_revisions_rarely_and_a_slow_one_mostly():
    rng = random.Random(36)
    fresh = [simulate(rng) for _ in range(100)]
    assert sum(best is not None for best in fresh) <= 5
    fixed = [simulate(rng, builds=None) for _ in range(20)]
    assert sum(best is not None for best in fixed) > 12  # right about two binaries, wrong about revisions
    slow = [simulate(rng, slower=1.08) for _ in range(20)]
    assert slow.count("old") > 10
    assert "new" not in slow


RECIPES = [line for line in re.findall(r"^--build '(.*)'$", PAGE, re.MULTILINE) if line.startswith(("echo", "cc"))]


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize("recipe", RECIPES, ids=["padding", "link order"])
def test_a_recipe_changes_the_layout_and_nothing_else(tmp_path, recipe):
    """Other seeds move functions, and the program prints what it printed."""
    for name in "abcdef":
        (tmp_path / f"{name}.c").write_text(f"int {name}(int x) {{ return x * {ord(name)}; }}\n")
    calls = "+".join(f"{name}({i})" for i, name in enumerate("abcdef"))
    (tmp_path / "main.c").write_text(
        "#include <stdio.h>\nint a(int), b(int), c(int), d(int), e(int), f(int);\n"
        f'int main(void) {{ printf("%d\\n", {calls}); }}\n'
    )
    layouts = set()
    for seed in ("1", "2", "3"):
        subprocess.run(["sh", "-ec", recipe.replace("{seed}", seed)], cwd=tmp_path, check=True)
        assert subprocess.check_output(["./bench"], cwd=tmp_path, text=True) == "1510\n"
        symbols = subprocess.check_output(["nm", "bench"], cwd=tmp_path, text=True).splitlines()
        layouts.add(tuple(line for line in symbols if line.split()[-1] in "abcdef"))
    assert len(layouts) == 3
    assert all(len(layout) == 6 for layout in layouts)
