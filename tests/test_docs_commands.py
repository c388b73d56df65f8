"""Command lines that pages show without what they print are run too, in a folder that has what they name.

Left out: `serve` and `work` that go on until they are ended (tests/service runs them), what needs PostgreSQL or a
container, and the walks that have tests of their own (tests/test_revisions_page.py, tests/test_ci.py).
"""

import gzip
import json
import os
import re
import shlex
import subprocess
import sys

import pyarrow as pa
import pytest
from pyarrow import parquet

from entry import truearm
from service.serving import Server
from test_docs import DOCS, blocks, shortened

PAGES = ("cli", "lab", "revisions", "rounds", "service", "shares", "start", "suites")
ENDS = re.compile(r"(?:zcat [^|]*\| )?truearm (?!work)(?!serve(?! --new-token))")
APART = re.compile(r"\?$| / |2\.0\.5|count\.py|\./hash")  # words beside the command; the walks
DONE = (0, 3)  # decided or not
RACED = (0, 1, 3, 4)  # whatever a second on this machine says: 2 is an error

SUITE = "--fail-if-worse-than old --tolerance 5% --save run.db --export-json suite.json"
BEFORE = {  # what makes the files of a line
    "truearm report run.db": "test -e run.db || truearm race -r 12 --save run.db ./old ./new",
    "truearm ledger loop.db": "truearm race -M 12 --ledger loop.db --base old -n old ./old -n new ./new",
    "truearm verify result.json": "truearm report run.db --json > result.json",
    "truearm verify suite.json": f"truearm race --max-time 0.3 --metrics json -n old ./old -n new ./new {SUITE}",
    "truearm verify found.json": "truearm analyze data.csv --arm variant --value ms --json > found.json",
}


def lines(page):
    """Return the command lines of a page that are run here."""
    shown = [text for kind, text in blocks(DOCS / f"{page}.md") if kind in ("", "sh")]
    whole = (line.removeprefix("$ ") for text in shown for line in text.replace("\\\n", " ").splitlines())
    return [line for line in whole if ENDS.match(line) and not APART.search(line)]


def program(path, words):
    path.write_text(f"#!/bin/sh\n{words}\n")
    path.chmod(0o755)


def repository(folder):
    """Commit a program that is made and prints a flat JSON object."""
    program(folder / "bench", """echo '{"wall": 1.5, "memory": 3}'""")
    (folder / "Makefile").write_text("all:\n")
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    for words in ("init -qb main", "add -A", "commit -qm x", "tag v1.0", "tag v2.0"):
        subprocess.run(["git", *identity, *words.split()], cwd=folder, check=True)


def readings(folder):
    """Write readings of two arms in all the files that are named."""
    rows = [(arm, n % 9 + more, f"{arm}{n}", n) for n in range(90) for arm, more in (("A", 1), ("B", 30))]
    names = ("variant", "ms", "user", "time")
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    columns |= {"site": columns["variant"], "revenue": columns["ms"], "latency_ms": columns["ms"]}
    table = "\n".join(",".join(map(str, row)) for row in [tuple(columns), *zip(*columns.values(), strict=True)])
    for name in ("data.csv", "log.csv", "pilot.csv", "requests.csv"):
        (folder / name).write_text(table)
    scores = "".join(f"{arm},{n},{n % 5 + more}\n" for n in range(60) for arm, more in (("A", 0), ("B", 1)))
    (folder / "scores.csv").write_text(f"model,question,score\n{scores}")
    (folder / "log.csv.gz").write_bytes(gzip.compress(table.encode()))
    (folder / "logs").mkdir()
    parquet.write_table(
        pa.table({name: list(values) for name, values in columns.items()}), folder / "logs/1.parquet"
    )
    times = [{"command": name, "times": [t + i % 7 / 99 for i in range(80)]} for name, t in (("a", 1), ("b", 2))]
    (folder / "hyperfine.json").write_text(json.dumps({"results": times}))


@pytest.fixture
def run(tmp_path):
    """Run a line in a shell, in a folder with everything, and return how it ended."""
    repository(tmp_path)
    readings(tmp_path)
    (tmp_path / "data").write_text("".join(f"{n * 7 % 10}\n" for n in range(100)))
    (tmp_path / "f").write_text("x")
    (tmp_path / "questions.jsonl").write_text("".join(f'{{"question": {n}}}\n' for n in range(20)))
    program(tmp_path / "ask", 'test "$1" = model-a; echo $?')
    for name in ("old", "new", "server-a", "server-b"):
        program(tmp_path / name, """echo '{"parse_ms": 12.1}'""")
    places = tmp_path / "bin"
    places.mkdir()
    program(places / "zstd", "exit 0")
    program(places / "truearm", f'exec "{sys.executable}" -m truearm "$@"')
    surroundings = {
        **os.environ,
        "PATH": f"{places}:{os.environ['PATH']}",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }

    def ended(line):
        if not re.search(r"[|<>&;$*]", line):  # no shell is needed, and no other start of Python
            return truearm(*shlex.split(line)[1:], cwd=tmp_path, env=surroundings)
        shell = {"cwd": tmp_path, "env": surroundings, "capture_output": True, "text": True}
        return subprocess.run(["sh", "-c", line], check=False, timeout=300, **shell)

    return ended


@pytest.mark.parametrize("page", PAGES)
def test_every_command_line_runs(run, page):
    asked = lines(page)
    assert asked
    for line in asked:
        for beginning, made in BEFORE.items():
            if line.startswith(beginning):
                run(made)
        found = run(shortened(line))
        fine = RACED if line.startswith(("truearm race", "truearm time")) else DONE
        assert found.returncode in fine, f"{line}\n{found.stdout}{found.stderr}"
        assert "Traceback" not in found.stderr


def fragments(page):
    """Return the blocks of a page that need a server, a cluster or a function of the reader's."""
    return [source for kind, source in blocks(DOCS / page) if kind == "py"]


def test_a_loop_moves_to_a_server(tmp_path, capsys):
    (source,) = fragments("service.md")
    with Server(tmp_path / "s.db") as server:
        exec(source.replace("http://server:8000", server.url), {"measure": {"A": 1.0, "B": 2.0, "C": 3.0}.get})
    assert capsys.readouterr().out.startswith("A has the lowest median")


def test_every_fragment_is_run_somewhere():
    pages = {path.name for path in DOCS.rglob("*.md") if any(kind == "py" for kind, _ in blocks(path))}
    assert pages == {"scale.md", "service.md"}
