"""Windows, as far as it can be had here: a Python without what only POSIX has."""

import subprocess
import sys

import pytest

# What Windows lacks is removed after the standard library took its own choice of it, because ours comes later.
WINDOWS = """
import importlib.abc, os, select, shutil, signal, sqlite3, subprocess, sys, tempfile, threading
import platformdirs, warnings  # platformdirs chooses by sys.platform
warnings.filterwarnings('ignore', message='only soft file lock')  # on Windows filelock has its own
ABSENT = {"fcntl", "resource", "termios", "pwd", "grp", "pty", "tty", "posix_ipc", "syslog"}
class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None
sys.meta_path.insert(0, Blocked())
for name in ABSENT:
    sys.modules.pop(name, None)
for place, names in (
    (os, "killpg getuid geteuid getgid getpgid setsid fork wait4 set_blocking O_NONBLOCK pidfd_open "
         "sched_getaffinity mkfifo nice chown"),
    (signal, "SIGKILL SIGHUP SIGPIPE SIGUSR1 SIGALRM SIGCHLD SIGSTOP pthread_sigmask alarm"),
    (select, "poll epoll"),
):
    for name in names.split():
        if hasattr(place, name):
            delattr(place, name)
"""


def windows(code, *words, cwd=None):
    return subprocess.run(
        [sys.executable, "-c", WINDOWS + code, *words], capture_output=True, text=True, check=False, cwd=cwd
    )


def command(*words, cwd=None):
    return windows("from truearm.__main__ import main\nmain()", *words, cwd=cwd)


def test_every_module_can_be_imported():
    done = windows(
        "import pkgutil, importlib, truearm\n"
        "names = [m.name for m in pkgutil.walk_packages(truearm.__path__, 'truearm.')]\n"
        "for name in names:\n"
        "    if not name.endswith('__main__') and not name.startswith(('truearm.lab', 'truearm.service')):\n"
        "        importlib.import_module(name)\n"
        "print(len(names) > 80)\n"
    )
    assert done.stdout == "True\n", done.stderr


def test_studies_analyses_and_logs_work(tmp_path):
    done = windows(
        """
import random
import truearm as ta
from truearm.errors import ProtocolError
draw = random.Random(1)
arms = {"A": lambda: draw.gauss(0, 1), "B": lambda: draw.gauss(3, 1)}
print(ta.find_best(arms, store="run.db").best, ta.find_best(arms, store="run.db").best)
from truearm.store import lock
with lock("run.db"):
    try:
        ta.find_best(arms, store="run.db")
    except ProtocolError as error:
        print(str(error)[:31])
try:
    ta.find_best(arms, store="nowhere/run.db")
except ValueError as error:
    print(error)
print(sorted(os.listdir()))
study = ta.Study(["A", "B"], max_pulls=2)
for pull in study.ask():
    study.tell(pull, 1.0)
print(study.result.status.value, ta.analyze({"A": range(100, 300), "B": range(200)}).best)
""",
        cwd=tmp_path,
    )
    assert done.stdout.splitlines() == [
        "B B",
        "another process uses run.db (or",
        "nowhere/run.db cannot be a file; choose a file in an existing directory",
        "['run.db']",
        "exhausted A",
    ], done.stderr


def test_the_command_line_works(tmp_path):
    (tmp_path / "x.csv").write_text("A,B\n" + "".join(f"{i},{i + 100}\n" for i in range(200)))
    assert "Commands:" in command("--help").stdout
    found = command("analyze", "x.csv", "--export-html", "x.html", cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    assert (tmp_path / "x.html").read_text().startswith("<!DOCTYPE html>")
    timed = command("time", "pass", "-r", "2")
    assert "pass: observed median " in timed.stdout, timed.stderr


@pytest.mark.parametrize("words", [("true", "false"), ("--rev", ".", "--rev", "HEAD", "--", "true")])
def test_a_race_says_in_a_line_what_it_needs(tmp_path, words):
    done = command("race", "--save", "r.db", *words, cwd=tmp_path)
    assert done.returncode == 2
    line = done.stderr.splitlines()[-1]
    assert line == (
        "Error: commands are run and measured on Linux and macOS only; on Windows, run truearm inside WSL"
    )
    assert list(tmp_path.iterdir()) == []
