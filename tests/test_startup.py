"""Modules loaded before the first answer; times would depend on the load of the machine."""

import subprocess
import sys

import click
import pytest

from truearm import cli

HEAVY = {"numpy", "scipy", "rich", "narwhals", "duckdb", "pandas", "numba", "matplotlib", "asyncio"}


def heavy_after(code):
    """Return which of the heavy modules a fresh process has loaded after some code."""
    told = "import sys; print('loaded', *sorted(set(sys.modules) & set(sys.argv[1].split(','))))"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{told}", ",".join(HEAVY)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split()[1:])


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["rce"]])
def test_the_first_answer_of_the_command_line_loads_nothing_heavy(words):
    code = f"import sys; from truearm.cli import main\ntry: main({words!r})\nexcept SystemExit: pass"
    assert heavy_after(code) == set()


# Tells what is loaded when a run starts, and what is loaded while one is being measured.
WATCHED = """
import sys
from truearm.commands import process
running, firsts, during = [], [], []
def hook(event, arguments):
    if event == "subprocess.Popen":
        running.append(arguments)
        firsts.append({"scipy", "rich"} & set(sys.modules))
    elif event == "import" and running:
        during.append(arguments[0])
wait = process._run_to_end
def attended(*arguments, **more):
    try:
        return wait(*arguments, **more)
    finally:
        running.clear()
process._run_to_end = attended
sys.addaudithook(hook)
from truearm.cli import main
try:
    main(["race", "-r", "3", "-N", *sys.argv[2:], "true", "true -x"])
except SystemExit:
    pass
assert len(firsts) == 6, firsts
print("first", sorted(firsts[0]), "during", during)
"""


@pytest.mark.parametrize("options", [(), ("--quantile", "0.5"), ("--at-most", "1"), ("--control", "true")])
def test_a_race_begins_without_scipy_and_loads_nothing_while_a_run_is_measured(options):
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, "", *options], capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines()[-1:] == ["first [] during []"], done.stderr


def test_every_verb_is_in_the_help():
    assert list(cli._VERBS) == cli.main.list_commands(click.Context(cli.main))


def test_an_interrupt_while_loading_ends_without_a_word():
    code = (
        "import sys\n"
        "hit = sys.argv.pop(1)\n"
        "class Hit:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == hit: raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Hit())\n"
        "from truearm.__main__ import main\n"
        "main()\n"
    )
    for module, said in (("click", (130, "")), ("numpy", (2, "Error: interrupted; nothing was decided\n"))):
        done = subprocess.run(
            [sys.executable, "-c", code, module, "plan"], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr.lstrip()) == said  # click ends the line of ^C
