"""The real entry point, as a shell and a terminal see it."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

TRUEARM = str(Path(sys.executable).with_name("truearm"))


def truearm(*words, env=None, **more):
    """Run a command line to its end."""
    told = {**os.environ, **(env or {})}
    command = [TRUEARM, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=told, **more)


def received(terminal):
    """Return what a terminal shows until the last process lets go of it."""
    seen = b""
    with contextlib.suppress(OSError):  # so it ends
        while piece := os.read(terminal, 65536):
            seen += piece
    os.close(terminal)
    return seen.decode()
