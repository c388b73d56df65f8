import math
import os
import resource
import shutil
import signal
import sys
import threading
import time
from pathlib import Path
from unittest.mock import Mock

import pytest

from entry import interrupt_starts, is_running, wait_for
from truearm.commands.command import Command, bind
from truearm.commands.measure import Conditions, machine, measure, run_hook, shell_cost
from truearm.errors import InvalidArgument

MEGABYTE = 1 << 20
LATE = 4.0  # seconds no run here takes, however busy the machine


def python(code, **options):
    """Run a line of Python as a command without a shell."""
    return bind(f"'{sys.executable}' -I -S -c {{code}}", {"code": code}, name="python {code}", **options)


def open_descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


def test_processor_time_is_that_of_the_command():
    burn = "import time\nwhile time.process_time() < 0.3: pass"
    assert 0.28 <= measure(python(burn), "cpu").value < 1


def test_peak_memory_is_that_of_the_command_and_not_of_this_process():
    for megabytes in (20, 60):
        run = measure(python(f"x = b'x' * {megabytes * MEGABYTE}"), "memory")
        assert megabytes <= run.value / MEGABYTE < megabytes + 15
    assert measure(Command("true")).run.peak_memory is None
    more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 + 20 * MEGABYTE
    assert measure(python(f"x = b'x' * {more}")).run.peak_memory >= more


def test_how_a_command_ends_is_known_also_under_the_launcher():
    run = measure(Command("kill -9 0"), "memory", Conditions(ignore_failure=True, timeout=5))
    assert (run.run.exit_code, run.run.peak_memory, run.run.timed_out) == (-9, None, False)
    assert math.isnan(run.value)


@pytest.mark.parametrize(
    ("printed", "value"),
    [
        ("0.25", 0.25),
        ("epoch 1\naccuracy: 0.93\n\n", 0.93),
        ("loss=-1.5e-3", -0.0015),
        ("took 12 s.", 12.0),
        ("93%", 93.0),
        (".5", 0.5),
        ("inf", math.inf),
        ("nan", math.nan),
        ("x" * 100_000 + "\n7", 7.0),
    ],
)
def test_the_number_on_the_last_line(printed, value):
    assert measure(python(f"print({printed!r})"), "stdout").value == pytest.approx(value, nan_ok=True)


@pytest.mark.parametrize(
    "command",
    [
        Command("no-such-program-here -x"),
        Command("./no-such-program-here"),
        Command("true", cwd="/no/such/directory"),
        Command("true", shell="/no/such/shell"),
    ],
)
def test_a_command_that_cannot_start_is_an_error_even_if_failures_are_ignored(command):
    with pytest.raises(InvalidArgument, match=r"command .*true|no-such-program-here"):
        measure(command, "wall", Conditions(ignore_failure=True))


@pytest.mark.parametrize("metric", ["wall", "memory"])
def test_a_time_out_leaves_no_orphans(tmp_path, metric):
    line = f"sleep 60 & echo $! > '{tmp_path}/pid'; (trap '' TERM; sleep 60); wait"
    assert measure(Command(line), metric, Conditions(timeout=0.3)).run.timed_out
    pid = int((tmp_path / "pid").read_text())
    assert wait_for(lambda: not is_running(pid))


def test_a_time_out_stops_a_command_that_never_stops_writing():
    started = time.monotonic()
    run = measure(Command("yes"), "wall", Conditions(timeout=0.3, output="pipe"))
    assert run.run.timed_out
    assert run.run.stdout.text.endswith("y\ny\n") or run.run.stdout.text.endswith("y")
    assert time.monotonic() - started < LATE


def test_an_interrupt_kills_the_command_and_goes_on(tmp_path):
    line = f"echo $$ > '{tmp_path}/pid'; sleep 60"
    interrupt = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        measure(Command(line))
    interrupt.join()
    assert not is_running(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT, signal.SIGALRM])
def test_interrupts_while_a_command_is_started_and_killed_leave_nothing_behind(monkeypatch, number):
    def killpg(pid, how):
        signal.raise_signal(number)
        kill(pid, how)

    kill, before = os.killpg, signal.signal(number, signal.default_int_handler)
    processes = interrupt_starts(monkeypatch, number)
    monkeypatch.setattr(os, "killpg", killpg)
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        measure(Command("sleep 60"))
    assert (signal.signal(number, before), time.monotonic() - started < LATE) == (signal.default_int_handler, True)
    assert not any(is_running(process.pid) for process in processes)


def test_a_process_that_ends_while_proc_is_read_does_not_matter(monkeypatch):
    for name in ("exists", "read_bytes"):
        monkeypatch.setattr(Path, name, Mock(side_effect=ProcessLookupError))
    assert measure(Command("echo 7"), "stdout").value == 7


def test_much_output_neither_blocks_nor_fills_memory():
    code = "import sys; [f.write('x' * 1000 + chr(10)) for _ in range(3000) for f in (sys.stdout, sys.stderr)]"
    run = measure(python(code), "wall", Conditions(output="pipe", timeout=20))
    assert not run.run.timed_out
    assert len(run.run.stdout.text) == len(run.run.stderr.text) == 8192


@pytest.mark.parametrize(
    "options",
    [{"timeout": 0}, {"timeout": math.inf}, {"input": "/no/such/file"}, {"output": "/no/such/directory/file"}],
)
def test_conditions_are_checked_at_birth(options):
    with pytest.raises(InvalidArgument, match=next(iter(options))):
        Conditions(**options)


def test_a_relative_program_is_found_from_the_directory_of_the_command(tmp_path):
    shutil.copy("/bin/true", tmp_path / "mine")
    assert measure(Command("./mine", cwd=str(tmp_path))).run.exit_code == 0
    assert measure(Command("mine", env={"PATH": str(tmp_path)})).run.exit_code == 0


def test_no_descriptor_is_left_open():
    for metric in ("wall", "memory", "stdout"):
        measure(Command("echo 1"), metric)
    before = open_descriptors()
    for metric in ("wall", "memory", "stdout", "wall"):
        measure(Command("echo 1; exit 0"), metric, Conditions(timeout=5, output="pipe"))
    assert open_descriptors() == before


def test_the_command_inherits_nothing_but_its_streams_and_no_terminal():
    listed = "[int(f) > 2 for f in os.listdir('/proc/self/fd')]"
    code = f"import os; print({listed}.count(True), os.getsid(0) in (os.getpid(), os.getppid()))"
    run = measure(python(code), "memory", Conditions(output="pipe"))
    assert run.run.stdout.text.strip() == "1 True"  # the listing itself


def test_without_pidfd_a_thread_waits(monkeypatch):
    monkeypatch.delattr(os, "pidfd_open")
    assert 0.1 <= measure(Command("sleep 0.1")).value < LATE
    assert measure(Command("sleep 9"), "wall", Conditions(timeout=0.1)).run.timed_out
    assert measure(Command("echo 4"), "stdout").value == 4


@pytest.mark.parametrize("shell", ["none", f"{sys.executable} -I -S", "/no/such/shell"])  # Python takes no `:`
def test_a_shell_that_cannot_run_the_probe_has_no_cost(shell):
    assert shell_cost(Command("true", shell=shell)) is None


def test_a_hook_runs_to_its_end_and_may_leave_a_server_behind(tmp_path):
    line = f"(sleep 0.3; echo up >&2; echo done > '{tmp_path}/log') & true"
    run_hook(Command(line), "setup")
    assert not (tmp_path / "log").exists()
    assert wait_for((tmp_path / "log").exists)


def test_the_machine_is_described_without_its_owner():
    told = machine()
    assert os.uname().nodename not in told.values()
    assert not [place for place in (Path.home(), Path.cwd()) if str(place) in str(told)]
    assert 1 <= told["cpus"] <= os.cpu_count()
