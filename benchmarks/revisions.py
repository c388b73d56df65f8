"""Two releases of a real project raced as revisions of a repository: docs/revisions.md, step by step.

    python benchmarks/revisions.py [--project sqlparse] [--old 0.2.4] [--new 0.3.1] [--max-time 3m]

Fetches the sources of two releases from the package index, commits each into a new repository and tags it, and
races what the project does with one of its own test files. Writes benchmarks/results/revisions.md.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from truearm.world.machine import machine

HERE = Path(__file__).parent
WORK = ("-m", "sqlparse", "--reindent", "tests/files/function_psql.sql")
BUILD = "python -m compileall -q sqlparse"


def fetched(project: str, version: str, folder: Path) -> Path:
    """Return the archive of a release's sources."""
    words = ["download", "--quiet", "--no-deps", "--no-binary", ":all:", "--dest", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", *words, f"{project}=={version}"], check=True)
    return next(folder.glob(f"{project}-{version}.tar.gz"))


def git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=release", "-c", "user.email=release@example.org"]
    subprocess.run(["git", *identity, *words], cwd=folder, check=True)


def repository(folder: Path, archives: dict[str, Path]) -> None:
    """Commit one release after the other, and tag each with its version."""
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    for version, archive in archives.items():
        for path in folder.iterdir():
            if path.name != ".git":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        subprocess.run(["tar", "-xzf", str(archive), "--strip-components=1"], cwd=folder, check=True)
        git(folder, "add", "-A", "-f")
        git(folder, "commit", "-qm", f"Release {version}")
        git(folder, "tag", version)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--project", default="sqlparse")
    parser.add_argument("--old", default="0.2.4")
    parser.add_argument("--new", default="0.3.1")
    parser.add_argument("--max-time", default="3m")
    parser.add_argument("--save", type=Path, default=HERE / "results" / "revisions.md")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        archives = {version: fetched(asked.project, version, folder) for version in (asked.old, asked.new)}
        repository(folder / asked.project, archives)
        gate = ["--fail-if-worse-than", asked.old, "--tolerance", "2%", "--max-time", asked.max_time]
        words = [
            "race",
            "--metric",
            "cpu",
            "--rev",
            asked.old,
            "--rev",
            asked.new,
            "--build",
            BUILD,
            *gate,
            "--",
            "python",
            *WORK,
        ]
        # the interpreter of this script is the one that works too
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        env = {**os.environ, "PATH": path, "XDG_CACHE_HOME": str(folder / "cache"), "COLUMNS": "100"}
        done = subprocess.run(
            [sys.executable, "-m", "truearm", *words],
            cwd=folder / asked.project,
            env=env,
            check=False,
            stdout=subprocess.PIPE,
            text=True,
        )
    about = machine()
    shown = " ".join(f"'{word}'" if " " in word else word for word in words)
    words = (f"{about['cpus']} CPUs", about["system"], about["architecture"], f"Python {sys.version.split()[0]}")
    asked.save.write_text(
        f"# Two releases of {asked.project}\n\nMade by `benchmarks/revisions.py`; {', '.join(map(str, words))}; "
        f"load {os.getloadavg()[1]:.1f}.\n\n```\n$ truearm {shown}\n{done.stdout}```\n\n"
        f"Exit code {done.returncode}.\n"
    )
    print(asked.save.read_text())


if __name__ == "__main__":
    main()
