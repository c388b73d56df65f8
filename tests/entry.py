"""The command line as a shell and a terminal see it."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from click.testing import CliRunner

from truearm.cli import main
from truearm.events import Event

TRUEARM = str(Path(sys.executable).with_name("truearm"))


class Ended(NamedTuple):
    """The end of a command, by the names of `subprocess`."""

    returncode: int
    stdout: str
    stderr: str

    @property
    def words(self):
        return " ".join(self.stdout.split())

    @property
    def json(self):
        return json.loads(self.stdout)


def truearm(*words, env=None, cwd=".", **more):
    """Run a command line to its end, in this process: a start of Python costs more than most tests."""
    with contextlib.chdir(cwd):
        found = CliRunner().invoke(main, list(map(str, words)), env=env, catch_exceptions=False, **more)
    return Ended(found.exit_code, found.stdout, found.stderr)


def git(folder, *words):
    """Run git in a folder as some author, and return what it printed."""
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always"]
    return subprocess.run(
        ["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def commit(folder, name, **files):
    """Write files, commit everything and tag it."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / ".git").exists():
        git(folder, "init", "-q", "-b", "main")
    for file, text in files.items():
        (folder / file).write_text(text)
        (folder / file).chmod(0o755)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", name)
    git(folder, "tag", "-f", name)


def interrupt_starts(monkeypatch, number=signal.SIGINT):
    """Let a signal arrive whenever a process has just been started; return the list of these processes."""
    started = []

    class Popen(subprocess.Popen):
        def __init__(self, *words, **options):
            super().__init__(*words, **options)
            started.append(self)
            signal.raise_signal(number)

    monkeypatch.setattr(subprocess, "Popen", Popen)
    return started


def is_running(pid):
    """Return True if a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_for(condition, seconds=20):
    """Wait until a condition holds, and return whether it does."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def received(terminal):
    """Return what a terminal shows until the last process lets go of it."""
    seen = b""
    with contextlib.suppress(OSError):  # so it ends
        while piece := os.read(terminal, 65536):
            seen += piece
    os.close(terminal)
    return seen.decode()


def on_terminal(*words, stream="stdout", **env):
    """Run a race with one stream on a terminal, and return what that terminal received."""
    ours, theirs = os.openpty()
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, stream: theirs}
    inherited = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    env = {**inherited, "TERM": "xterm", "PYTHONUTF8": "1", **env}
    with subprocess.Popen([TRUEARM, "race", *words], **streams, env=env):
        os.close(theirs)
        return received(ours).replace("\r\n", "\n")


def issued(ticket, arm, draw, *, counted=False):
    """Return the event of a pull that was handed out."""
    return Event("counted" if counted else "issued", ticket, arm, draw)


def told(ticket, arm, value, notes=None):
    """Return the event of a reading."""
    return Event("told", ticket, arm, None, value, notes)


def released(ticket, arm):
    """Return the event of a pull that never started."""
    return Event("released", ticket, arm)
