"""The pages people see: shells without data, which are public, and the script and style they need.

What a page shows comes from the routes, asked for with the reader's own token; nothing of a study is in here.
"""

from functools import cache, partial
from importlib import resources
from string import Template
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Scope

from truearm.report.pages import asset
from truearm.service.routes import Route as Asked

PAGES = {  # by path: the file of its own part, and its title
    "/": ("list", "Studies"),
    "/new": ("new", "New study"),
    "/s/{study}": ("study", "Study"),
    "/s/{study}/next": ("next", "Next reading"),
}
_SHOWN = {"/studies": "/", "/studies/{study}": "/s/{study}"}  # by the path of a program: the page that shows it
_KINDS = {"js": "text/javascript", "css": "text/css"}
_OWN = ("common.js", "list.js", "new.js", "study.js", "next.js", "service.css")


def routes() -> list[Route]:
    """Return the pages and what they load."""
    shells = [Route(path, partial(_page, *page), methods=["GET"]) for path, page in PAGES.items()]
    files = [*_OWN, "report.js", "report.css"]
    return shells + [Route(f"/static/{name}", partial(_file, name), methods=["GET"]) for name in files]


def for_people(route: Asked, study: str, scope: Scope) -> Response | None:
    """Return what leads a browser that opens the address of a program to its page; None if it is no browser."""
    page = _SHOWN.get(route.path) if route.method == "GET" else None
    if page is None:
        return None
    accepted = b",".join(value for name, value in scope["headers"] if name == b"accept")
    if b"text/html" not in accepted or b"application/json" in accepted:
        return None
    return RedirectResponse(page.format(study=quote(study, safe="")), 303)


async def _page(name: str, title: str, _: Request) -> Response:
    text = Template(_text("shell.html")).substitute(title=title, page=name, body=_text(f"{name}.html"))
    return Response(text, media_type="text/html", headers={"Cache-Control": "no-cache"})


async def _file(name: str, _: Request) -> Response:
    kind = _KINDS[name.rpartition(".")[2]]
    return Response(_text(name), media_type=kind, headers={"Cache-Control": "no-cache"})


@cache
def _text(name: str) -> str:
    if name.startswith("report."):  # one style and one script for the report and for here
        return asset("script.js" if name.endswith("js") else "style.css")
    return resources.files("truearm.service").joinpath("page", name).read_text(encoding="utf-8")
