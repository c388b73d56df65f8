"""What a reader of an export should know of the machine, and nothing of whose it is."""

import os
import platform
import re
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from truearm.world.commands import neutralized


def machine() -> dict[str, str | int]:
    """Return what a reader of an export should know of the machine, and nothing of whose it is."""
    return {
        "system": platform.system(),
        "release": platform.release(),
        "architecture": platform.machine(),
        "processor": _processor(),
        "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "python": platform.python_version(),
        "truearm": metadata.version("truearm"),
    }


def _processor() -> str:
    with suppress(OSError):
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        if found:
            return neutralized(found[1])
    return platform.processor()
