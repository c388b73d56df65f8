"""The pages people see: shells without data, which are public, and the script and style they need.

What a page shows comes from the routes, asked for with the reader's own token; nothing of a study is in here.
"""

from functools import cache, partial
from importlib import resources
from string import Template

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from truearm.report.html import asset

PAGES = {  # by path: the file of its own part, and its title
    "/": ("list", "Studies"),
    "/new": ("new", "New study"),
    "/s/{study}": ("study", "Study"),
    "/s/{study}/next": ("next", "Next reading"),
}
_KINDS = {"js": "text/javascript", "css": "text/css"}
_OWN = ("common.js", "list.js", "new.js", "study.js", "next.js", "service.css")


def routes() -> list[Route]:
    """Return the pages and what they load.

    Examples
    --------
    >>> [route.path for route in routes()][:3]
    ['/', '/new', '/s/{study}']
    """
    shells = [Route(path, partial(_page, *page), methods=["GET"]) for path, page in PAGES.items()]
    files = [*_OWN, "report.js", "report.css"]
    return shells + [Route(f"/static/{name}", partial(_file, name), methods=["GET"]) for name in files]


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
