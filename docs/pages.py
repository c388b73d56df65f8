"""Gather the sources of the site, and generate the pages for reference, command line, peers and all pages.

Docstrings, help texts and Markdown files are copied unchanged. `make site` passes the folder in which Sphinx
then builds.
"""

import importlib
import inspect
import json
import re
import shutil
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

import click

import truearm
from truearm.cli import main

DOCS = Path(__file__).parent
ROOT = DOCS.parent
_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[([^\]\[]+)\]\((?!\w+:)[^)]*\)")
_TOCTREE = re.compile(r"```\{toctree\}.*?```\n*", re.DOTALL)


def gather(folder: Path) -> Path:
    """Copy all pages, write the generated ones, and return the folder to build from."""
    docs = folder / "docs"
    shutil.copytree(DOCS, docs, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "benchmarks/results", docs / "made/results", dirs_exist_ok=True)
    (docs / "made/extra").mkdir(parents=True, exist_ok=True)
    for page in docs.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace("../benchmarks/results/", "made/results/"), encoding="utf-8")
    # results belong below the page that quotes them
    with (docs / "figures.md").open("a", encoding="utf-8") as figures:
        figures.write("\n```{toctree}\n:hidden:\n:glob:\n\nmade/results/*\n```\n")
    made = {
        "reference.md": reference(),
        "commands.md": command_line(),
        "schema.md": schema(),
        "changelog.md": (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"),
        "peers.md": peers(),
        "extra/a-race.html": report(),
        "extra/truearm.1": (DOCS / "truearm.1").read_text(encoding="utf-8"),
    }
    for name, text in made.items():
        (docs / "made" / name).write_text(text, encoding="utf-8")
    _place_others(docs)
    names = ordered(docs)
    (docs / "made/extra/llms.txt").write_text(index(docs, names), encoding="utf-8")
    (docs / "made/extra/truearm.md").write_text(whole(docs, names), encoding="utf-8")
    return docs


def reference() -> str:
    """Return every public name with its signature and its docstring, in Markdown.

    Examples
    --------
    >>> "## `find_best`" in reference()
    True
    """
    parts = [
        "# Python reference",
        "All of `import truearm as ta`, from the docstrings. Every example runs in the tests.",
    ]
    for name in truearm.__all__:
        thing = getattr(truearm, name)
        if inspect.ismodule(thing):
            parts += _module(name, thing.__name__)
        else:
            parts += _entry(name, thing, 2)
    return "\n\n".join(parts) + "\n"


def _module(name: str, path: str) -> Iterator[str]:
    module = importlib.import_module(path)
    yield f"## `{name}`"
    yield inspect.cleandoc(module.__doc__ or "")
    for member in getattr(module, "__all__", ()):
        yield from _entry(member, getattr(module, member), 3)


def _entry(name: str, thing: object, level: int) -> Iterator[str]:
    yield f"{'#' * level} `{name}`"
    if inspect.isfunction(thing) or inspect.isclass(thing):
        yield f"```python\n{_signature(name, thing)}\n```"
    yield from _docstring(inspect.getdoc(thing) or "")
    if inspect.isclass(thing):
        for method, function in vars(thing).items():
            if not method.startswith("_") and (
                inspect.isfunction(function) or isinstance(function, classmethod | property)
            ):
                words = (inspect.getdoc(function) or "").split("\n\n")[0]
                yield f"`{method}`\n: {' '.join(words.split())}"


def _signature(name: str, thing: object) -> str:
    if inspect.isclass(thing) and issubclass(thing, Enum):
        return "\n".join(f"{name}.{member.name} = {member.value!r}" for member in thing)
    try:
        signature = inspect.signature(thing)  # type: ignore[arg-type] - a function or a class
    except ValueError:
        return name
    given: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in "".join(word[:1] for word in given):
            given.append("*")
        given.append(_short(str(parameter)))
    back = signature.return_annotation
    end = (
        ")"
        if inspect.isclass(thing) or back is signature.empty
        else f") -> {_short(inspect.formatannotation(back))}"
    )
    line = f"{name}({', '.join(given)}{end}"
    return line if len(line) < 100 else f"{name}(\n    " + ",\n    ".join(given) + f",\n{end}"


def _short(words: str) -> str:
    """Return an annotation or a default without module paths."""
    bare = re.sub(
        r"<(\w+\.\w+): [^>]*>", r"\1", re.sub(r"\b(?:truearm|collections|typing|numpy)\.(?:\w+\.)*", "", words)
    )
    return re.sub(r"<(?:class|function) '?([\w.]+)[^>]*>", r"\1", bare)


def _docstring(text: str) -> Iterator[str]:
    """Yield the parts of a numpydoc docstring as Markdown."""
    head, *rest = _SECTION.split(text)
    words, prompt, example = head.partition(">>> ")
    yield words.strip()
    if prompt:
        yield f"```pycon\n{prompt}{example.strip()}\n```"
    for title, body in zip(rest[::2], rest[1::2], strict=True):
        if title == "Examples":
            yield f"```pycon\n{body.strip()}\n```"
        elif title in ("Parameters", "Attributes", "Returns", "Raises"):
            yield f"**{title}**"
            yield "\n\n".join(_parameters(body))
        else:
            yield f"**{title}**\n\n{body.strip()}"


def _parameters(body: str) -> Iterator[str]:
    for block in re.split(r"\n(?=\S)", body.strip()):
        name, _, words = block.partition("\n")
        yield f"`{name}`\n: {' '.join(words.split())}" if words else name


def command_line() -> str:
    """Return every verb with its help and its options, from click.

    Examples
    --------
    >>> "## truearm race" in command_line()
    True
    """
    group = click.Context(main, info_name="truearm", **main.context_settings)
    parts = ["# All options", "The `--help` of every verb. [The command line](../cli.md) explains the options."]
    for verb in main.list_commands(group):
        command = main.get_command(group, verb)
        assert command is not None
        context = click.Context(command, info_name=verb, parent=group, terminal_width=100, max_content_width=100)
        parts += [f"## truearm {verb}", f"```text\n{command.get_help(context).replace(chr(8), '')}\n```"]
    return "\n\n".join(parts) + "\n"


def schema() -> str:
    """Return the JSON Schema of a result as a page."""
    text = (Path(__file__).parent / "schema.json").read_text(encoding="utf-8")
    described = json.loads(text)["description"]
    return f"# JSON Schema of a result\n\n{described}\n\n```json\n{text.strip()}\n```\n"


PEERS = (
    ("Commands: hyperfine", "race_vs_hyperfine"),
    ("Gates in CI: tolerances, hyperfine, a t-test", "false_alarms"),
    ("Python statements: pyperf", "time_vs_pyperf"),
    ("Rules for the best arm: QLUCB and the paper's Algorithm 3", "efficiency"),
    ("Published means of QLUCB, reproduced", "howard_ramdas"),
    ("Simulators: river and mabwiser", "engine"),
    ("Files: DuckDB's medians", "analyze"),
    ("Shares: Polars and pandas", "shares"),
    ("Ask and tell: Optuna", "service"),
)


def peers() -> str:
    """Return the measured tables that compare other programs with this one."""
    parts = [
        "# Compared with other tools",
        "Benchmark results with their conditions. [Figures](../figures.md) has the summary.",
    ]
    for title, name in PEERS:
        text = (ROOT / f"benchmarks/results/{name}.md").read_text(encoding="utf-8")
        lower = re.sub(r"^(#+ .*)$", r"#\1", text, flags=re.MULTILINE)
        parts += [f"## {title}", re.sub(r"^## ", "### ", lower.split("\n", 1)[1], flags=re.MULTILINE).strip()]
    return "\n\n".join(parts) + "\n"


def ordered(docs: Path, page: str = "index") -> list[str]:
    """Return the names of all pages below one, in the order of the tables of contents, globs filled in."""
    names: list[str] = []
    text = (docs / f"{page}.md").read_text(encoding="utf-8")
    for block in re.findall(r"```\{toctree\}\n(.*?)```", text, re.DOTALL):
        for entry in (line.strip() for line in block.splitlines()):
            if entry and not entry.startswith(":"):
                for path in sorted(docs.glob(f"{entry}.md")):
                    name = path.relative_to(docs).with_suffix("").as_posix()
                    names += [name, *ordered(docs, name)]
    return names


def _place_others(docs: Path) -> None:
    """Put pages that the index does not name under the questions: a new page needs no other file changed."""
    index, named = docs / "index.md", {"index", *ordered(docs)}
    names = (path.relative_to(docs).with_suffix("").as_posix() for path in docs.rglob("*.md"))
    others = sorted(name for name in names if name not in named and not name.startswith("made/"))
    text = index.read_text(encoding="utf-8")
    index.write_text(text.replace("\npolicies\n", "\n".join(["", "policies", *others, ""]), 1), encoding="utf-8")


def index(docs: Path, names: list[str]) -> str:
    """Return the pages as a list for programs that read: the title and the first sentence of each."""
    lines = ["# truearm", "", f"> {truearm.__doc__}", "", "- [All pages in one file](truearm.md)"]
    for name in names:
        text = (docs / f"{name}.md").read_text(encoding="utf-8")
        title = text.split("\n", 1)[0].lstrip("# ")
        lines.append(f"- [{title}]({name}.html): {first_sentence(text)}".rstrip(": "))
    return "\n".join(lines) + "\n"


def first_sentence(page: str) -> str:
    """Return the first sentence of a page outside of blocks, tables and pictures; links become their words."""
    text = re.sub(r"^```.*?^```", "", page, flags=re.MULTILINE | re.DOTALL)
    first = next((part for part in text.split("\n\n")[1:] if re.match(r"\s*[\w`*\[]", part)), "")
    return re.split(r"(?<=[.?]) (?=[A-Z`*])", _LINK.sub(r"\1", " ".join(first.split())))[0]


def whole(docs: Path, names: list[str]) -> str:
    """Return all pages as one Markdown file; links between pages become their words."""
    texts = [(docs / f"{name}.md").read_text(encoding="utf-8") for name in ["index", *names]]
    joined = "\n\n---\n\n".join(_TOCTREE.sub("", text).strip() for text in texts)
    return _LINK.sub(r"\1", joined) + "\n"


def report() -> str:
    """Return the report page of the saved race, as `--export-html` writes it."""
    from truearm.claims.result import Result
    from truearm.report.numbers import unit_for
    from truearm.report.pages import page
    from truearm.report.words import terms_for

    found = json.loads((DOCS / "images/race.json").read_text(encoding="utf-8"))
    result, metric = Result.from_dict(found), found["metric"]
    unit = unit_for(metric, result.arms, target=result.problem.target)
    elapsed = sum(time for command in found["results"] for time in command["times"])  # about that of the race
    return page(result, found["readings"], terms=terms_for(result, metric, unit)._replace(elapsed=elapsed))


if __name__ == "__main__":
    gather(Path(sys.argv[1]))
