"""Revisions on real repositories: checked out once, built once, and errors that say what to do."""

import contextlib
import json
import os
import subprocess
from pathlib import Path

import pytest

from entry import commit, git, interrupt_starts, truearm
from truearm.commands import revisions
from truearm.commands.revisions import WORKING_TREE
from truearm.errors import CommandFailed, InvalidArgument


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "project"
    (folder / "sub").mkdir(parents=True)
    commit(folder, "v1", **{"sub/bench": "one"})
    commit(folder, "second", **{"sub/bench": "two"})
    return folder


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


def check_out(names, *, start, cache, **how):
    with contextlib.chdir(start), pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache))
        return revisions.check_out(names, **how)


def test_each_revision_has_its_own_files_in_the_same_folder(repository, cache):
    (repository / "sub" / "bench").write_text("three")
    found = check_out(["v1", "main", "."], start=str(repository / "sub"), cache=cache)
    assert [Path(r.folder, "bench").read_text() for r in found] == ["one", "two", "three"]
    assert [r.name for r in found] == ["v1", "main", WORKING_TREE]
    assert all(Path(r.top).is_relative_to(cache) for r in found[:2])
    assert git(repository, "status", "--porcelain") == "M sub/bench"  # the user's own tree is as it was


def test_a_revision_is_built_once(repository, cache):
    build = "echo x >> built"
    for _ in range(2):
        found = check_out(["v1", "main"], build=build, start=str(repository), cache=cache)
    assert [Path(r.folder, "built").read_text() for r in found] == ["x\n", "x\n"]
    other = check_out(["v1"], build="echo y >> built", start=str(repository), cache=cache)
    assert Path(other[0].folder, "built").read_text() == "y\n"  # never on top of another build
    for _ in range(2):  # the working tree each time
        check_out(["."], build=build, start=str(repository), cache=cache)
    assert (repository / "built").read_text() == "x\nx\n"


def test_an_interrupt_while_git_starts_leaves_no_process(repository, cache, monkeypatch):
    started = interrupt_starts(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        check_out(["main"], start=str(repository), cache=cache)
    assert [process.returncode is None for process in started] == [False]


def test_a_failed_build_shows_its_output_and_is_retried(repository, cache):
    build = "echo half > product; echo no such header >&2; test -e {flag}".replace("{flag}", str(cache / "flag"))
    with pytest.raises(
        CommandFailed, match=r"(?s)--build .* of revision 'v1' ended with exit code 1.*no such header"
    ):
        check_out(["v1"], build=build, start=str(repository), cache=cache)
    (cache / "flag").touch()
    assert check_out(["v1"], build=build, start=str(repository), cache=cache)[0].commit


@pytest.mark.parametrize("name", ["mian", "-v1", "--all", "", "v1..main", "no such"])
def test_words_that_are_no_revision_are_refused_before_anything_is_built(repository, cache, name):
    says = r"--rev 'mian' is not a revision .* did you mean main\?" if name == "mian" else "is not a revision"
    with pytest.raises(InvalidArgument, match=says):
        check_out(["main", name], build="touch built", start=str(repository), cache=cache)
    assert not cache.exists()


def test_a_shallow_clone_says_how_to_get_the_rest(repository, cache, tmp_path):
    git(tmp_path, "clone", "-q", "--depth", "1", repository.as_uri(), "shallow")
    with pytest.raises(InvalidArgument, match=r"shallow: `git fetch --unshallow --tags`"):
        check_out(["v1"], start=str(tmp_path / "shallow"), cache=cache)


@pytest.fixture
def part(repository, tmp_path):
    """Give the repository a submodule, and return where that is from."""
    part = tmp_path / "part"
    commit(part, "part", bench="inner")
    git(repository, "submodule", "--quiet", "add", str(part), "part")
    git(repository, "commit", "-qm", "with a part")
    return part


@pytest.mark.usefixtures("part")
def test_submodules_come_along(repository, cache, monkeypatch):
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "protocol.file.allow")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "always")
    found = check_out(["main"], start=str(repository), cache=cache)
    assert Path(found[0].folder, "part", "bench").read_text() == "inner"


def test_a_missing_submodule_is_an_error(repository, cache, part):
    part.rename(part.with_name("gone"))
    with pytest.raises(InvalidArgument, match="git submodule failed"):
        check_out(["main"], start=str(repository), cache=cache)


def test_a_folder_that_a_revision_lacks_is_named(repository, cache):
    (repository / "new").mkdir()
    commit(repository, "new", **{"new/x": ""})
    with pytest.raises(InvalidArgument, match="revision 'v1' has no folder 'new/'"):
        check_out(["v1", "main"], start=str(repository / "new"), cache=cache)


def test_after_a_race_no_worktree_is_listed_and_the_build_is_kept(project, cache):
    git(project, "worktree", "add", "-q", "--detach", str(project.parent / "mine"), "v1")
    words = ("--build", "echo built >> made", "--rev", "v1", "--rev", "v2", "--", "./bench 3")
    for _ in range(2):
        done = race(project, cache, *words)
        assert done.returncode == 0, done.stderr
        assert len(git(project, "worktree", "list").splitlines()) == 2  # the user's own stay
    assert [made.read_text() for made in cache.rglob("made")] == ["built\n", "built\n"]
    failed = race(project, cache, "--rev", "v1", "--rev", "v2", "--", "false")
    assert failed.returncode == 2
    assert len(git(project, "worktree", "list").splitlines()) == 2


def test_worktrees_that_were_not_used_for_a_month_are_removed(project, cache):
    assert race(project, cache, "--rev", "v1", "--rev", "v2", "--", "./bench 3").returncode == 0
    for marker in cache.rglob("*.ready"):
        os.utime(marker, (1, 1))
    assert race(project, cache, "--rev", "v2", "--rev", ".", "--", "./bench 3").returncode == 0
    assert len([*cache.rglob("*.ready")]) == 1


@pytest.mark.parametrize("all_of_it", [False, True])
def test_a_deleted_cache_is_made_again(repository, cache, all_of_it):
    top = Path(check_out(["v1"], start=str(repository), cache=cache)[0].top)
    subprocess.run(["rm", "-rf", str(top.parent if all_of_it else top)], check=True)
    assert Path(check_out(["v1"], start=str(repository), cache=cache)[0].folder, "sub", "bench").exists()


def test_changed_files_in_the_cache_are_checked_out_again(repository, cache):
    """Otherwise edits and benchmark output would be measured under the name of the commit."""
    [first] = check_out(["v1"], build="echo x >> built", start=str(repository), cache=cache)
    Path(first.folder, "sub", "bench").write_text("slow")
    [again] = check_out(["v1"], build="echo x >> built", start=str(repository), cache=cache)
    assert Path(again.folder, "sub", "bench").read_text() == "one"
    assert Path(again.folder, "built").read_text() == "x\n"
    git(again.top, "checkout", "-q", "--detach", "main")
    [third] = check_out(["v1"], build="echo x >> built", start=str(repository), cache=cache)
    assert Path(third.folder, "sub", "bench").read_text() == "one"


SLOW, QUICK = "#!/bin/sh\necho $((100 + $1))\n", "#!/bin/sh\necho $((10 + $1))\n"  # prints what it "took"


@pytest.fixture
def project(repository):
    """Version 1 is slow, main is quick, and the working tree is slow again."""
    for text, tag in ((SLOW, "v1"), (QUICK, "v2")):
        commit(repository, tag, bench=text)
    (repository / "bench").write_text(SLOW)
    return repository


def race(folder, cache, *words):
    how = ("--metric", "stdout", "--goal", "min") if "--resume" not in words else ()
    return truearm("race", *how, *words, cwd=folder, env={"XDG_CACHE_HOME": str(cache)})


def test_a_race_of_revisions_finds_the_best_one(project, cache):
    done = race(project, cache, "--json", "--rev", "v1", "--rev", "v2", "--rev", ".", "--", "./bench", "3")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["best"] == "v2"
    assert {arm["name"]: arm["observed"] for arm in told["arms"]} == {"v1": 103, "v2": 13, WORKING_TREE: 103}
    assert any(cache.rglob("*.ready"))


def test_two_names_of_one_commit_are_noticed(project, cache):
    found = race(project, cache, "--rev", "HEAD", "--rev", "@", "-r", "1", "--", "./bench", "1")
    assert "Warning: two of these revisions are the same commit\n" in found.stderr


def test_a_race_goes_on_only_with_the_files_it_began_with(project, cache):
    words = ("--save", "r.db", "-r", "2", "--rev", "v1", "--rev", "v2", "--", "./bench", "1")
    assert race(project, cache, *words).returncode == 3
    assert race(project, cache, "--resume", "r.db", "-M", "3").returncode == 3
    [slow] = [path for path in cache.rglob("bench") if path.is_file() and path.read_text() == SLOW]
    slow.write_text(QUICK)
    refused = race(project, cache, "--resume", "r.db", "-M", "4")
    assert refused.returncode == 2
    assert "changed since the race; start a new race" in " ".join(refused.stderr.split())


def test_parameters_and_revisions_multiply(project, cache):
    done = race(project, cache, "--json", "--rev", "v1", "--rev", "v2", "-L", "n", "1,2", "--", "./bench", "{n}")
    assert {arm["name"] for arm in json.loads(done.stdout)["arms"]} == {"v1 n=1", "v1 n=2", "v2 n=1", "v2 n=2"}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--rev", "v1", "--", "./bench"), "a race needs two revisions"),
        (("--rev", "v1", "--rev", "v2"), "--rev goes with a command after --"),
        (("--build", "make", "echo 1", "echo 2"), "--build goes with --rev"),
        (("--rev", "v1", "--rev", "v9", "--", "./bench"), "--rev 'v9' is not a revision"),
        (("--rev", "v1", "--rev", "v1", "--", "./bench 1"), "two commands are called 'v1'"),
        (("--rev", "v1", "--rev", "v2", "--build", "exit 3", "--", "./bench"), "it printed nothing"),
        (
            ("--rev", "v1", "--rev", "v2", *("-n", "x") * 3, "--", "./bench"),
            "3 names were given for 2 commands",
        ),
        (("--cwd", "sub", "--rev", "v1", "--rev", "v2", "--", "./bench 1"), "--cwd {dir}/sub"),
        (("--env", "A={dri}/src", "--rev", "v1", "--rev", "v2", "--", "./bench 1"), "--env"),
        (("--cwd", "{folder}", "--rev", "v1", "--rev", "v2", "--", "./bench 1"), "{dir}"),
        (("--input", "{reff}/x", "--rev", "v1", "--rev", "v2", "--", "./bench 1"), "--input"),
    ],
)
def test_invalid_races_of_revisions_are_refused(project, cache, words, says):
    done = race(project, cache, *words)
    assert done.returncode == 2
    assert says in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_placeholders_are_replaced_wherever_a_race_takes_text(project, cache):
    commit(project, "v3", data="5\n")
    commit(project, "none", data="6\n")
    words = ("--env", "HERE={dir}", "--env", "WHICH={rev}", "--cwd", "{dir}/sub", "--prepare", "touch {dir}/made")
    line = 'test "$PWD" = "$HERE/sub" && test -e "$HERE/made" && test $WHICH = {rev} && echo ${#WHICH}'
    words += ("--build", "touch {dir}/built-{rev}", "--rev", "v3", "--rev", "main", "--", line)
    done = race(project, cache, "--json", *words)
    assert done.returncode == 0, done.stderr
    assert {arm["name"]: arm["observed"] for arm in json.loads(done.stdout)["arms"]} == {"v3": 2, "main": 4}
    assert any(cache.rglob("built-v3"))
    words = ("--input", "{dir}/bench", "--rev", "v1", "--rev", "v2", "--", "sh -c 'sed -n s/echo/echo/p | wc -c'")
    fed = race(project, cache, "--json", *words)
    assert {arm["name"]: arm["observed"] for arm in json.loads(fed.stdout)["arms"]} == {"v1": 19, "v2": 18}
