"""The site is built without a warning and asks nothing from the network; kept files are up to date."""

import html
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
sys.path.insert(0, str(DOCS))

import made  # noqa: E402 - beside the pages
import pages  # noqa: E402

FETCHED = re.compile(
    r"""(?:src|action)=["']https?:|<link[^>]*href=["']https?:|url\(["']?https?:|@import|\bfetch\(["']http"""
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    sources = pages.gather(folder / "pages")
    words = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", str(sources), str(folder / "html")]
    ended = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    assert ended.returncode == 0, ended.stderr
    return folder / "html"


def test_the_site_has_every_page(site):
    sources = [path.relative_to(DOCS).with_suffix(".html") for path in DOCS.rglob("*.md")]
    assert [str(path) for path in sources if not (site / path).exists()] == []


def test_nothing_is_fetched_when_a_page_is_read(site):
    written = [path for path in site.rglob("*") if path.suffix in {".html", ".css", ".svg"}]
    assert len(written) > 40
    for path in written:
        text = path.read_text(encoding="utf-8")
        assert not FETCHED.search(text), path
        assert path.suffix != ".html" or not re.search(r"[–—][a-z]+[- ]", text), path  # options have two hyphens


def test_programs_that_read_find_everything(site):
    listed, whole = ((site / name).read_text(encoding="utf-8") for name in ("llms.txt", "truearm.md"))
    for path in DOCS.rglob("*.md"):
        title = path.read_text(encoding="utf-8").split("\n")[0]
        assert title in whole
        assert path.stem == "index" or f"[{title.lstrip('# ')}]" in listed


def test_every_public_name_and_verb_has_its_place():
    from truearm import __all__
    from truearm.cli import main

    reference, verbs = pages.reference(), pages.command_line()
    assert [name for name in __all__ if f"## `{name}`" not in reference] == []
    assert [verb for verb in main.commands or main.list_commands(None) if f"## truearm {verb}" not in verbs] == []


def test_every_route_and_field_has_its_place():
    from truearm.service.app import openapi_schema

    described, page = openapi_schema(), made.HTTP.read_text(encoding="utf-8")
    routes = [f"## `{method.upper()} {path}`" for path, found in described["paths"].items() for method in found]
    fields = [
        f"| `{name}` |" for kind in described["components"]["schemas"].values() for name in kind["properties"]
    ]
    assert [each for each in [*routes, *fields] if each not in page] == []
    assert page == made.http(), "run: make made"
    assert "| `lease` | number, > 0, ≤ 31,536,000 | `3600.0` | Seconds for which a worker that asks again" in page


def words_of(svg):
    return re.sub(
        r"\s+", " ", html.unescape(re.sub(r"<style.*?</style>|<[^>]+>", " ", svg, flags=re.DOTALL))
    ).split()


@pytest.mark.parametrize(("kept", "marks"), [(made.PICTURE, ()), (made.READ, made.MARKS)], ids=["race", "read"])
def test_the_picture_of_a_race_is_what_a_race_says_today(kept, marks):
    drawn = made.picture(json.loads(made.MEASURED.read_text(encoding="utf-8")), marks)
    assert words_of(kept.read_text(encoding="utf-8")) == words_of(drawn), "run: make made"


def test_the_man_page_is_what_help_says_today():
    assert made.MANUAL.read_text(encoding="utf-8") == made.manual(), "run: make made"
