"""Race two releases of a real project as revisions of a repository (docs/revisions.md).

    python benchmarks/revisions.py [--project mistune] [--old 2.0.5] [--new 3.0.2] [--max-time 3m]

Fetches the sources of two releases from the package index, commits and tags each in a new repository, and races
the rendering of a page of Markdown. Writes benchmarks/results/revisions.md. The benchmark script is outside of
the repository and gets the folder of a revision as {dir}: neither release has the script, and they keep their
package in different folders.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from truearm.commands.measure import machine

HERE = Path(__file__).parent
WORK = """
import sys
from pathlib import Path

top = Path(sys.argv[1])
sys.path[:0] = [str(top / "src"), str(top)]
import mistune

PARTS = (
    "# Title *one*",
    "Some **text** with `code`, a [link](http://example.org) and <b>html</b>.",
    "* a\\n* b\\n    * c",
    "> quote\\n> more",
    "```\\ncode\\n```",
    "1. one\\n2. two",
)
mistune.html("\\n\\n".join(PARTS * 60))
"""
BUILD = "python -m compileall -q ."


def fetch(project: str, version: str, folder: Path) -> Path:
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
    parser.add_argument("--project", default="mistune")
    parser.add_argument("--old", default="2.0.5")
    parser.add_argument("--new", default="3.0.2")
    parser.add_argument("--max-time", default="3m")
    parser.add_argument("--save", type=Path, default=HERE / "results" / "revisions.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        archives = {version: fetch(options.project, version, folder) for version in (options.old, options.new)}
        repository(folder / options.project, archives)
        gate = ["--fail-if-worse-than", options.old, "--tolerance", "2%", "--max-time", options.max_time]
        script = folder / "render.py"
        script.write_text(WORK)
        words = ["race", "--metric", "cpu", "--rev", options.old, "--rev", options.new, "--build", BUILD, *gate]
        words += ["--", "python", str(script), "{dir}"]
        # the benchmark runs with the interpreter of this script
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        env = {**os.environ, "PATH": path, "XDG_CACHE_HOME": str(folder / "cache"), "COLUMNS": "100"}
        done = subprocess.run(
            [sys.executable, "-m", "truearm", *words],
            cwd=folder / options.project,
            env=env,
            check=False,
            stdout=subprocess.PIPE,
            text=True,
        )
    about = machine()
    command = " ".join(f"'{word}'" if " " in word else word for word in words).replace(str(folder), "..")
    where = (f"{about['cpus']} CPUs", about["system"], about["architecture"], f"Python {sys.version.split()[0]}")
    options.save.write_text(
        f"# Two releases of {options.project}\n\nMade by `benchmarks/revisions.py`; {', '.join(map(str, where))}; "
        f"load {os.getloadavg()[1]:.1f}.\n\n```\n$ truearm {command}\n{done.stdout}```\n\n"
        f"Exit code {done.returncode}.\n"
    )
    print(options.save.read_text())


if __name__ == "__main__":
    main()
