"""Test a release: build, check, install into an empty environment, run. Nothing is uploaded."""

import os
import subprocess
import sys
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
DATA_FILES = (
    "truearm/py.typed",
    "truearm/report/templates/",
    "truearm/report/static/",
    "truearm/service/templates/",
    "truearm/service/static/",
    "share/man/man1/truearm.1",
    "licenses/LICENSE",
)
ROWS = "arm,value\n" + "".join(f"{arm},{mean + i % 7}\n" for i in range(60) for arm, mean in (("A", 0), ("B", 20)))


def run_step(part: str, words: list[str], *, folder: Path | None = None, codes: tuple[int, ...] = (0,)) -> str:
    """Run a step, print one line about it, and return its output; exit if it fails."""
    plain = {**os.environ, "NO_COLOR": "1", "TERM": "dumb"}  # twine prints colors without a terminal
    ended = subprocess.run(words, cwd=folder or ROOT, capture_output=True, text=True, check=False, env=plain)
    is_right = ended.returncode in codes
    last = (ended.stdout.strip() or ended.stderr.strip() or "done").splitlines()
    print(f"{part:28} {'ok' if is_right else 'failed'}   {last[0][:90]}", flush=True)
    if not is_right:
        sys.exit(f"{' '.join(words)}\n{ended.stdout}{ended.stderr}")
    return ended.stdout + ended.stderr


def check_contents(wheel: Path) -> None:
    """Check that the wheel has its data files, or exit."""
    names = zipfile.ZipFile(wheel).namelist()
    missing = [part for part in DATA_FILES if not any(part in name for name in names)]
    print(f"{'contents of the wheel':28} {'failed' if missing else 'ok'}   {', '.join(missing or DATA_FILES)}")
    if missing:
        sys.exit(1)


def check_commands(binaries: Path, folder: Path) -> None:
    """Run the first commands of a new user on the base installation."""
    truearm, python = str(binaries / "truearm"), str(binaries / "python")
    (folder / "x.csv").write_text(ROWS, encoding="utf-8")
    run_step("truearm --version", [truearm, "--version"])
    run_step("python -m truearm", [python, "-m", "truearm", "--version"])
    run_step("truearm race", [truearm, "race", "-q", "sleep 0.01", "sleep 0.03"], folder=folder)
    run_step(
        "truearm analyze x.csv", [truearm, "analyze", "x.csv", "--arm", "arm", "--value", "value"], folder=folder
    )
    run_step("truearm --help", [truearm, "--help"])
    run_step("truearm time", [truearm, "time", "pass", "sum(range(1000))"], folder=folder)
    output = run_step("truearm serve", [truearm, "serve"], folder=folder, codes=(2,))
    assert "truearm[serve]" in output, "a verb that needs an extra says which"
    program = "import truearm as ta; print(ta.time({'a': 'pass', 'b': 'sum(range(2000))'}, progress=False).best)"
    run_step("ta.time", [python, "-c", program], folder=folder)
    assert (binaries.parent / "share/man/man1/truearm.1").is_file()


def main() -> None:
    """Build, check, install and run a release, and resolve every extra."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run_step("sdist and wheel", [sys.executable, "-m", "build", "--outdir", str(folder / "dist"), str(ROOT)])
        files = sorted(map(str, (folder / "dist").iterdir()))
        run_step("twine check", [sys.executable, "-m", "twine", "check", "--strict", *files])
        wheel = next((folder / "dist").glob("*.whl"))
        check_contents(wheel)
        venv.create(folder / "empty", with_pip=True)
        binaries = folder / "empty/bin"
        install = [str(binaries / "python"), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
        run_step("install into an empty venv", [*install, str(wheel)])
        run_step("pip check", [str(binaries / "python"), "-m", "pip", "check"])
        check_commands(binaries, folder)
        for extra in extras:
            run_step(f"extra {extra} resolves", [*install, "--dry-run", f"{wheel}[{extra}]"])
        print(f"\nNothing was uploaded. {len(files)} files were tested; `python -m build` makes them again.")


if __name__ == "__main__":
    main()
