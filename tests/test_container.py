"""What deploy/Containerfile does, step by step in a clean directory: no container, but the same commands."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
STEPS = [
    line.partition(" ")[::2]
    for line in (ROOT / "deploy" / "Containerfile").read_text().splitlines()
    if line and not line.startswith("#")
]


def step(name, contains=""):
    """Return what follows a word of the Containerfile."""
    return next(rest for word, rest in STEPS if word == name and contains in rest)


def copied():
    """Return what is copied into the build, from and to."""
    for word, rest in STEPS:
        if word == "COPY" and not rest.startswith("--from"):
            *sources, target = rest.split()
            yield from ((source, target) for source in sources)


@pytest.mark.slow
def test_every_step_works_in_a_clean_directory(tmp_path):
    """Installs from the index of packages, as a build does."""
    source, made, data = (tmp_path / name for name in ("source", "made", "data"))
    source.mkdir()
    data.mkdir()
    for name, target in copied():
        whole = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        whole(ROOT / name, source / (name if target == "./" else target))

    def here(text):
        return text.replace("/opt/truearm", str(made)).replace("/data", str(data))

    build = re.sub(r"^python ", f"{shlex.quote(sys.executable)} ", here(step("RUN", "pip install")))
    clean = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    subprocess.run(build, shell=True, cwd=source, env=clean, check=True, timeout=1200, stdout=subprocess.DEVNULL)
    settings = dict(pair.split("=") for pair in here(step("ENV")).split()) | {"TRUEARM_PORT": "0"}
    serve, environment = json.loads(here(step("ENTRYPOINT"))), clean | settings
    alone = subprocess.run(serve, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert "create one first with --new-token admin" in alone.stderr
    subprocess.run([*serve, "--new-token", "admin"], env=environment, check=True, timeout=120)
    process = subprocess.Popen(serve, env=environment, stderr=subprocess.PIPE, text=True)
    listening = json.loads(process.stderr.readline())
    port = listening["url"].rpartition(":")[2]
    probe = json.loads(here(step("HEALTHCHECK").removeprefix("CMD ")))
    subprocess.run(probe, env=environment | {"TRUEARM_PORT": port}, check=True, timeout=60)
    process.send_signal(signal.Signals[step("STOPSIGNAL")])
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert (data / "truearm.db").exists()
