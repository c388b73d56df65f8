"""Runs tests with the lowest versions of the dependencies that pyproject.toml allows, in an empty environment.

Only what the base installation needs is there, so what these tests run needs no extra either.
"""

import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
TOOLS = ("pytest", "hypothesis", "jsonschema", "mpmath")
TESTS = (
    *("tests/bounds", "tests/test_study.py", "tests/test_run.py", "tests/test_evidence.py", "tests/test_judge.py"),
    *(
        "tests/test_sample.py",
        "tests/test_rounds.py",
        "tests/test_certificate.py",
        "tests/test_terminals.py",
        "tests/test_cli.py",
    ),
    *("tests/test_cli_studies.py", "tests/test_cli_race.py", "tests/test_report_html.py"),
)


def lowest(requirement: str) -> str:
    """Return a requirement that allows the lowest version only.

    Examples
    --------
    >>> lowest("numpy>=1.26")
    'numpy==1.26.0'
    """
    name, version = re.fullmatch(r"([\w-]+)>=([\d.]+)", requirement).groups()  # type: ignore[union-attr]
    return f"{name}=={version}{'.0' * (2 - version.count('.'))}"


def main() -> int:
    """Install, test, and return the exit code of the tests."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [lowest(requirement) for requirement in project["dependencies"]]
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder) / "bin/python")
        install = [python, "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
        subprocess.run([*install, *wanted, *TOOLS, str(ROOT)], check=True)
        print("with", ", ".join(wanted), flush=True)
        words = ["-q", "-p", "no:cacheprovider", "-m", "not slow and not statistical", *TESTS]
        return subprocess.run([python, "-m", "pytest", *words], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
