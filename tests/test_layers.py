import importlib
import inspect
import pkgutil
import re
import runpy
import subprocess
import tomllib
from pathlib import Path

import pytest

import truearm

ROOT = Path(__file__).parent.parent
PURE = ["problem.py", "errors.py", "events.py", "decision.py", "study.py"]
PURE += ["bounds", "families", "evidence", "claims", "policies"]
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(truearm.__path__, "truearm.")
    if not module.name.startswith("truearm.cli") and not module.name.endswith("__main__")
)


def test_all_is_sorted_and_true():
    assert truearm.__all__ == sorted(truearm.__all__)
    for name in truearm.__all__:
        assert getattr(truearm, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="attribute"):
        truearm.nothing  # noqa: B018 - the access is the test


def test_every_public_function_has_an_example():
    things = [getattr(part, name) for part in (truearm, truearm.bounds, truearm.families) for name in part.__all__]
    assert [each for each in things if inspect.isfunction(each) and ">>>" not in (each.__doc__ or "")] == []


def test_every_module_has_a_docstring():
    assert [name for name in MODULES if not importlib.import_module(name).__doc__] == []


def test_the_pure_layers_draw_no_entropy():
    places = [ROOT / "src/truearm" / name for name in PURE]
    for path in (path for place in places for path in ([place] if place.suffix else place.glob("*.py"))):
        drawn = re.findall(r"np\.random\.default_rng\((.*?)\)", re.sub(r'"""(.|\n)*?"""', "", path.read_text()))
        assert drawn in ([], ["seed"]), path  # a study shuffles by the seed it was given


def test_the_layers_on_the_page_are_those_of_the_contract():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = [re.findall(r"\w+", layer) for layer in settings["contracts"][0]["layers"]]
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| (.*?) \|", page, re.MULTILINE)
    assert [int(floor) for floor, _ in rows] == list(range(len(rows)))[::-1]
    floors = [re.findall(r"`(\w+)/?`", part) for _, named in rows for part in named.split(" above ")]
    assert [sorted(floor) for floor in floors] == [sorted(layer) for layer in layers]


def test_imports_by_string_point_down():
    """The contract sees imports inside functions, but not names in strings."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = [re.findall(r"\w+", layer) for layer in settings["contracts"][0]["layers"]]
    depth = {name: i for i, layer in enumerate(layers) for name in layer}
    for path in (ROOT / "src/truearm").rglob("*.py"):
        own = path.relative_to(ROOT / "src/truearm").parts[0].removesuffix(".py")
        for name in re.findall(r"(?:import_module|__import__)\(f?[\"']truearm\.(\w+)", path.read_text()):
            assert own.startswith("__") or name == own or depth[own] < depth[name], (path, name)


def test_make_lowest_runs_tests_that_exist():
    tool = runpy.run_path(str(ROOT / "tools" / "lowest.py"))
    assert [name for name in (*tool["TESTS"], *tool["MORE_TESTS"]) if not (ROOT / name).exists()] == []


def test_the_version_is_written_once():
    written = [
        name
        for name in ("pyproject.toml", "CITATION.cff", "docs/conf.py", "src/truearm/__init__.py")
        if f'"{truearm.__version__}"' in (ROOT / name).read_text()
    ]
    assert written == ["src/truearm/__init__.py"]


def test_no_address_of_a_registry_or_of_this_machine_is_committed():
    words = re.compile(r"pypi\.org|registry\.npmjs|files\.pythonhosted|deb\.debian|/" + "work/")
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in tracked.split():
        path = ROOT / name
        if path.suffix in {".py", ".md", ".toml", ".yml", ".cfg", ""} and path.is_file():
            assert not words.search(path.read_text(errors="ignore").replace(words.pattern, "")), name
