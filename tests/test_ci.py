"""What CI runs: each step of the action, and each line that the page gives to copy, in a real repository."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from entry import commit, git

ROOT = Path(__file__).parent.parent
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}
PAGE = (ROOT / "docs/recipes/ci-gate.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
GITHUB, GITLAB = (yaml.safe_load(text) for kind, text in BLOCKS if kind == "yaml")
SHELL = next(text for kind, text in BLOCKS if kind == "sh")
NUMBERS = "--metric stdout --goal min"  # what a bench prints instead of what it takes: the same each time


@pytest.fixture
def project(tmp_path):
    """A repository whose last commit is far slower than the one before, which is as quick as the first."""
    folder, makefile = tmp_path / "project", "bench: bench.in\n\tcp bench.in bench\n\tchmod +x bench\n"
    for seconds, name in (("0.010", "first"), ("0.01", "second"), ("0.05", "slow")):
        program = f"#!/bin/sh\nsleep {seconds}\necho {seconds}\n"
        commit(folder, name, **{"bench.in": program, "Makefile": makefile})
    return folder


@pytest.fixture
def runner(tmp_path):
    """What GitHub's runner sets, with truearm as the first step installs it."""
    installed = tmp_path / "temp" / "truearm" / "bin" / "truearm"
    installed.parent.mkdir(parents=True)
    installed.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m truearm "$@"\n')
    installed.chmod(0o755)
    files = {name: str(tmp_path / name.lower()) for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
    return {
        **os.environ,
        **files,
        "RUNNER_TEMP": str(tmp_path / "temp"),
        "GITHUB_ACTION_PATH": str(ROOT),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "PATH": f"{installed.parent}{os.pathsep}{os.environ['PATH']}",
    }


def filled(text, given, outputs):
    """Return text with its expressions replaced, which must be ones that this runner knows."""
    known = {**{f"inputs.{key}": value for key, value in given.items()}, **outputs}
    return re.sub(r"\$\{\{ (.*?) \}\}", lambda found: known[found[1]], text)


def run_step(name, folder, runner, outputs=None, **given):
    """Run a step as GitHub does, with these inputs and the defaults of the others."""
    step = STEPS[name]
    inputs = {key: value.get("default", "") for key, value in ACTION["inputs"].items()} | given
    env = {key: filled(value, inputs, outputs or {}) for key, value in step.get("env", {}).items()}
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]],
        cwd=folder / filled(step.get("working-directory", "."), inputs, {}),
        env={**runner, **env},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def raced(folder, runner, **given):
    """Return the step of the race, the code it put out, and how the job is judged."""
    inputs = {"command": "./bench", "build": "make", "options": NUMBERS} | given
    done = run_step("Race", folder, runner, **inputs)
    assert done.returncode == 0, done.stdout + done.stderr  # the artifact is kept in any case
    code = re.fullmatch(r"code=(\d)\n", Path(runner["GITHUB_OUTPUT"]).read_text())[1]
    return done, int(code), run_step("Judge", folder, runner, {"steps.race.outputs.code": code}, **inputs)


def test_the_action_has_the_shape_that_github_asks_for():
    assert ACTION["runs"]["using"] == "composite"
    assert all({"name", "shell"} <= set(step) for step in STEPS.values() if "run" in step)
    assert all(isinstance(value.get("default", ""), str) for value in ACTION["inputs"].values())
    used = set(re.findall(r"inputs\.([\w-]+)", (ROOT / "action.yml").read_text(encoding="utf-8")))
    assert used == set(ACTION["inputs"])
    assert not any("${{" in step["run"] for step in STEPS.values() if "run" in step)  # inputs are never code
    assert {f"`{name}`" for name in ACTION["inputs"]} <= set(re.findall(r"`[\w-]+`", PAGE))


def test_a_slower_head_fails_with_summary_annotation_and_artifact(project, runner):
    done, code, judged = raced(project, runner)
    assert (code, judged.returncode) == (1, 1)
    assert re.search(
        r"^::error title=A gate failed::FAIL: head is worse than base by more than 2%25\.", done.stdout, re.M
    )
    assert "| base" in Path(runner["GITHUB_STEP_SUMMARY"]).read_text()
    kept = Path(runner["RUNNER_TEMP"], "truearm-result")
    assert json.loads((kept / "race.json").read_text())["best"] == "base"
    assert "<html" in (kept / "race.html").read_text()
    assert STEPS["Keep the page and the readings"]["with"]["path"] == "${{ runner.temp }}/truearm-result"
    assert "project" not in {path.name.split("-")[0] for path in Path(runner["XDG_CACHE_HOME"]).rglob("*.ready")}


def test_a_head_that_always_fails_is_a_warning_and_no_quiet_note(project, runner):
    """Failures that are ignored show nothing, so that the gate gives up; that is no good news."""
    commit(project, "broken", **{"bench.in": "#!/bin/sh\nexit 1\n"})
    done, code, _ = raced(project, runner, options=f"{NUMBERS} -i")
    assert code == 3
    assert re.search(r"^::warning title=Not decided::.*Warning: .*head", done.stdout, re.M)


def test_equal_code_passes_without_a_word(project, runner):
    done, code, judged = raced(project, runner, base="first", head="second")
    assert (code, judged.returncode) == (0, 0)
    assert "::" not in done.stdout


@pytest.mark.parametrize(("undecided", "ends"), [("pass", 0), ("fail", 3)])
def test_what_is_not_decided_is_a_word_and_not_a_failure(project, runner, undecided, ends):
    asked = {"base": "first", "head": "second", "tolerance": "0", "undecided": undecided}
    done, code, judged = raced(project, runner, **asked, options=f"{NUMBERS} -M 3")
    assert (code, judged.returncode) == (3, ends)
    assert "::warning title=Not decided::" in done.stdout


@pytest.mark.parametrize(
    "given",
    [
        {"options": "--metrics json", "command": 'sh -c \'./bench | sed "s/.*/{\\"s\\": &}/"\''},
        {"options": f"{NUMBERS} --builds 12 --runs-per-build 1", "build": "make && echo {seed} > seed"},
    ],
)
def test_a_suite_and_random_builds_are_options_too(project, runner, given):
    done, code, _ = raced(project, runner, **given)
    assert code == 1, done.stdout


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"build": "exit 3"}, "ended with exit code 3"),
        ({"base": "nothing"}, "--rev 'nothing' is not a revision"),
        ({"command": "./none"}, "./none"),
    ],
)
def test_what_cannot_be_run_is_an_error_that_says_why(project, runner, given, says):
    done, code, judged = raced(project, runner, **given)
    assert (code, judged.returncode) == (2, 2)
    assert says in " ".join(done.stdout.split())
    assert judged.stdout.startswith("::error title=The race could not be run::")


def test_a_shallow_checkout_says_what_to_set(project, runner, tmp_path):
    git(tmp_path, "clone", "-q", "--depth", "1", project.as_uri(), "shallow")
    done, code, _ = raced(tmp_path / "shallow", runner)
    assert code == 2
    assert "fetch-depth: 0" in " ".join(done.stdout.split())


@pytest.mark.slow
def test_the_first_step_installs_what_the_others_run(runner, tmp_path):
    """Needs a package index; without one pip says so, and this says nothing."""
    runner["RUNNER_TEMP"] = str(tmp_path / "fresh")
    done = run_step("Install truearm", tmp_path, runner)
    if "No matching distribution" in done.stderr:
        pytest.skip("no package index")
    assert done.returncode == 0, done.stderr
    program = tmp_path / "fresh" / "truearm" / "bin" / "truearm"
    assert "race" in subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout


def test_the_workflow_to_copy_names_inputs_that_there_are(project, runner):
    step = GITHUB["jobs"]["speed"]["steps"][-1]
    assert step["uses"].split("@")[0].endswith("/truearm")
    assert set(step["with"]) <= set(ACTION["inputs"])
    _, code, judged = raced(project, runner, options="", **step["with"])
    assert (code, judged.returncode) == (1, 1)


def test_the_gitlab_job_to_copy_fails_where_it_should(project, runner):
    install, line = GITLAB["speed"]["script"]
    assert install == "pip install truearm"
    assert GITLAB["speed"]["allow_failure"]["exit_codes"] == 3
    env = {**runner, "CI_MERGE_REQUEST_DIFF_BASE_SHA": "second"}
    done = subprocess.run(["bash", "-ec", line], cwd=project, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert all((project / name).exists() for name in GITLAB["speed"]["artifacts"]["paths"])


@pytest.mark.parametrize(("base", "ends"), [("second", 1), ("slow", 0)])
def test_the_shell_lines_to_copy_fail_where_they_should(project, runner, base, ends):
    git(project, "branch", "-f", "old", base)
    lines = SHELL.replace("main", "old").replace("--tolerance 2%", f"--tolerance 2% {NUMBERS}")
    done = subprocess.run(
        ["sh", "-ec", lines], cwd=project, env=runner, capture_output=True, text=True, check=False
    )
    assert done.returncode == ends, done.stdout + done.stderr
