"""A race that somebody else began is shown before it runs, and runs only if the user agrees."""

import os
import select
import sqlite3
import stat
import subprocess

import pytest

from entry import TRUEARM, truearm
from truearm.commands import identity
from truearm.store import Store

RACE = (
    *("--metric", "stdout", "--goal", "max", "-r", "3", "--save", "run.db", "--env", "WHO=me"),
    *("--setup", "touch began", "--output", "pipe"),
    *("-n", "low", "echo 1", "-n", "high\x1b[2J", "echo 2 | tail -1"),
)
STRANGER = {"XDG_STATE_HOME": "/dev/null/state"}


def race(*words, cwd, env=None):
    return truearm("race", *words, cwd=cwd, env=env)


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    folder = tmp_path_factory.mktemp("race")
    assert race(*RACE, cwd=folder).returncode in (0, 3)
    return folder, (folder / "run.db").read_bytes()


@pytest.fixture
def begun(log):
    folder, whole = log
    for path in folder.iterdir():
        path.unlink()
    (folder / "run.db").write_bytes(whole)
    return folder


def readings(folder):
    with Store(folder / "run.db") as store:
        return sum(event.kind == "told" for event in store.events())


def test_one_s_own_race_goes_on_without_a_question(begun):
    found = race("--resume", "run.db", "-M", "4", cwd=begun)
    assert found.returncode in (0, 3), found.stderr
    assert readings(begun) > 6


def test_a_race_of_somebody_else_is_shown_and_needs_a_yes(begun):
    before = readings(begun)
    found = race("--resume", "run.db", cwd=begun, env=STRANGER)
    assert found.returncode == 2
    for words in (
        "was not started by you on this machine",
        "low: echo 1, through /bin/sh, in ",
        "high\\x1b[2J: echo 2 | tail -1",
        "with WHO=me",
        "setup of low: touch began",
        "truearm race --resume run.db --yes",
    ):
        assert words in found.stderr
    assert (readings(begun), (begun / "began").exists()) == (before, False)
    agreed = race("--resume", "run.db", "--yes", "-M", "4", cwd=begun, env=STRANGER)
    assert agreed.returncode in (0, 3), agreed.stderr
    assert (begun / "began").exists()


def on_a_terminal(answer, *words, cwd):
    """Resume as another user at a terminal who types an answer; return the exit code and the output."""
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [TRUEARM, "race", *words], stdin=theirs, stdout=subprocess.DEVNULL, stderr=theirs, cwd=cwd,
        env={**os.environ, **STRANGER, "TERM": "dumb"},
    )  # fmt: skip
    os.close(theirs)
    received, asked = b"", False
    try:
        while select.select([ours], [], [], 30)[0] and (piece := os.read(ours, 65536)):
            received += piece
            if b"[y/N]" in received and not asked:
                asked = bool(os.write(ours, answer))
    except OSError:  # the last process let go of the terminal
        pass
    os.close(ours)  # also ends who waits for an answer
    return process.wait(timeout=60), received.decode()


@pytest.mark.parametrize(("answer", "runs"), [(b"y\n", True), (b"n\n", False), (b"\n", False), (b"\x04", False)])
def test_a_terminal_is_asked(begun, answer, runs):
    code, seen = on_a_terminal(answer, "--resume", "run.db", "-M", "4", cwd=begun)
    assert "echo 2 | tail -1" in seen
    assert "Run all of it?" in seen
    assert (begun / "began").exists() is runs
    assert code in ((0, 3) if runs else (2,))


def test_commands_that_were_changed_are_somebody_else_s(begun):
    """A forger who rewrites all digests still has no key: the signature does not match other commands."""
    with Store(begun / "run.db") as store:
        definition, events = store.definition, list(store.events())
    definition["race"]["commands"][0]["text"] = "touch owned; echo 1"
    (begun / "run.db").unlink()
    with Store(begun / "run.db") as forged:
        forged.create(definition)
        forged.append(events)
    found = race("--resume", "run.db", cwd=begun)
    assert found.returncode == 2
    assert "low: touch owned; echo 1" in found.stderr
    assert not (begun / "owned").exists()


def test_a_copied_file_that_was_changed_by_hand_is_refused(begun):
    connection = sqlite3.connect(begun / "run.db")
    connection.execute("DROP TRIGGER truearm_no_update")
    connection.execute("UPDATE truearm_event SET notes = replace(notes, 'echo 1', 'echo 7') WHERE position = 0")
    connection.commit()
    connection.close()
    found = race("--resume", "run.db", "--yes", cwd=begun)
    assert (found.returncode, "the log was changed after it was written" in found.stderr) == (2, True)


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "truearm" / "key"


def test_the_key_is_made_once_and_for_this_user_only(home):
    first = identity.sign("a")
    assert stat.S_IMODE(home.stat().st_mode) == 0o600
    assert (len(home.read_bytes()), [path.name for path in home.parent.iterdir()]) == (32, ["key"])
    assert identity.sign("a") == first
    home.unlink()
    assert identity.sign("a") != first


def test_a_key_that_others_may_read_is_none(home):
    marked = identity.sign("a")
    home.chmod(0o644)
    assert not identity.is_mine("a", marked)
    assert identity.sign("a") == ""
