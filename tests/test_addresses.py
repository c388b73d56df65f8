"""Every formula address resolves to a heading or a bold label in docs/, and no page from elsewhere is cited.

An address is a page with labels (`evidence T3, T7`, `audit 2.B (iv)`, `docs/errata.md E1`), a label whose page
is clear (`T4b`, `E13`), or a statement of the paper or of Howard and Ramdas in docs/bounds.md (`Alg. 3`).
It resolves if the page has exactly one heading or bold text that begins with the label; an item such as `(iv)` has
to be in the text under it. Comments, docstrings and messages of all code are read, and all pages.
"""

import io
import re
import tokenize
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
OTHERS = [path for folder in ("tests", "benchmarks", "examples") for path in sorted((ROOT / folder).rglob("*.py"))]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), *sorted(ROOT.glob("*.md"))]
READ = [path for path in [*SOURCES, *OTHERS, *PAGES] if path != Path(__file__)]  # here some are made up
HOME = {
    "evidence": "evidence",
    "extensions": "extensions",
    "optimality": "optimality",
    "audit": "bounds",
    "erratum": "errata",
    "errata": "errata",
}
ELSEWHERE = "product|house|style|prior[_ ]work"  # pages that never were here: their addresses lead nowhere
KINDS = {"Lemma": "Lemma", "Cor": "Cor.", "Th": "Theorem", "Alg": "Algorithm", "Def": "Definition"}

_LABEL = r"(?:[ABDELRTU]\d+[a-d]?|\d+\.[0-9A-Za-z]|\d+)(?![0-9A-Za-z])(?: \((?:[ivx]+|\d)\))?"
_MORE = r"(?:(?:, (?:and )?| and |-)(?:sections? )?" + _LABEL + ")*"
LED = re.compile(
    rf"\b(evidence|extensions|optimality|audit|errat(?:um|a)|{ELSEWHERE})(?:\.md)? "
    rf"((?:sections? )?{_LABEL}{_MORE})"
)
BARE = re.compile(r"\b(?:T\d{1,2}[a-d]?|E\d{1,2})\b(?!\[)")
NUMBERED = re.compile(
    r"\b(Howard and Ramdas, )?(Lemma|Cor|Th|Alg|Def)(?:s|\.|ollary|ollaries|eorems?|ms?|orithms?|initions?)? "
    r"(\d+[a-z]?(?:(?:, | and )\d+[a-z]?(?![\d.]))*)"
)


class Address(NamedTuple):
    """A page of docs/, a label on it, and the item under the label, if any."""

    page: str
    label: str
    item: str = ""


def addresses(text: str) -> Iterator[Address]:
    """Find the addresses in one comment, docstring or page."""
    text = re.sub(r"\s+", " ", text)
    for match in LED.finditer(text):
        name = match[1]
        for found in re.finditer(_LABEL, match[2]):
            label, _, item = found[0].partition(" ")
            yield Address(HOME.get(name, name), f"audit {label}" if name == "audit" else label, item)
    text = LED.sub(" ", text)
    for match in NUMBERED.finditer(text):
        for number in re.findall(r"\d+[a-z]?", match[3]):
            yield Address("bounds", f"{match[1] or ''}{KINDS[match[2]]} {number}")
    for match in BARE.finditer(NUMBERED.sub(" ", text)):
        yield Address("evidence" if match[0][0] == "T" else "errata", match[0])


@lru_cache
def labeled(page: str) -> tuple[tuple[str, str], ...]:
    """Return the headings and bold texts of a page, each with the text up to the next."""
    path = ROOT / "docs" / f"{page}.md"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    parts = re.split(r"^#+ (.*)$|\*\*([^*]+)\*\*", text, flags=re.MULTILINE)
    return tuple((" ".join((parts[i] or parts[i + 1]).split()), parts[i + 2]) for i in range(1, len(parts), 3))


def places(address: Address) -> list[str]:
    """Return the texts under the labels that an address may mean; exactly one if it resolves."""
    begins = re.compile(re.escape(address.label) + r"(?!\w|\.\w)")
    return [text for label, text in labeled(address.page) if begins.match(label) and address.item in text]


def unresolved(text: str) -> list[Address]:
    """Return the addresses in a text that lead nowhere, or to more than one place."""
    return [address for address in addresses(text) if len(places(address)) != 1]


def passages(path: Path) -> list[str]:
    """Return the comments, each block as one, and the strings of a Python file; a page as a whole."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return [re.sub(r"^```.*?^```", "", source, flags=re.MULTILINE | re.DOTALL)]
    found, last = [""], -1
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            text = token.string.lstrip("# ")
            found[-1:] = [f"{found[-1]} {text}"] if token.start[0] == last + 1 else [found[-1], text]
            last = token.start[0]
        elif token.type == tokenize.STRING:
            found += [token.string, ""]
    return found


def test_every_address_resolves():
    found = [(str(path), address) for path in READ for text in passages(path) for address in unresolved(text)]
    assert found == []


WRONG = "evidence T99, evidence T4d, extensions 9, audit 9.Z, audit 2.B (xi), erratum E77, Lemma 77, T77, E78"


@pytest.mark.parametrize("text", [*WRONG.split(", "), "Howard and Ramdas, Theorem 8", "prior_work 1.1 (b)"])
def test_an_address_that_leads_nowhere_is_caught(text):
    assert len(unresolved(f"as proved in {text}, so")) == 1


MENTION = re.compile(
    r"(?<![\w*{}/.-])(?!(?<=[\"'])\w+\.md[\"'])[\w./-]*\w\.md\b"
)  # not a name in quotes: a file to open


def _is_here(path: Path) -> bool:
    return path.is_file() and path.resolve().is_relative_to(ROOT.resolve())


def absent(path: Path, text: str) -> list[str]:
    """Return the pages named in a file that are neither in the repository nor beside the file."""
    return [
        name
        for name in MENTION.findall(text)
        if name != f"benchmarks/results/{path.stem}.md"  # which it writes
        and not any(_is_here(base / name) for base in (ROOT, path.parent))
        and "//" not in name
    ]


def test_no_page_is_cited_that_is_not_here():
    files = [
        path
        for folder in ("src", "tests", "docs", "benchmarks", "examples")
        for path in (ROOT / folder).rglob("*")
    ]
    files = [path for path in [*files, *ROOT.glob("*.md")] if path.suffix in {".py", ".md", ".json"}]
    files.remove(ROOT / "docs/pages.py")  # names the pages that it makes
    wrong = {str(path.relative_to(ROOT)): absent(path, path.read_text(encoding="utf-8")) for path in files}
    assert {name: pages for name, pages in wrong.items() if pages} == {}
