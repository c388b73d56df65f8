"""The pages people see: shells without data, which are public, and the script and style they need.

What a page shows comes from the routes, asked for with the reader's own token; nothing of a study is in here.
"""

from collections.abc import Awaitable, Callable
from functools import cache, partial
from importlib import resources
from string import Template
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from truearm.report.html import asset

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
    """Return the pages and what they load.

    Examples
    --------
    >>> [route.path for route in routes()][:3]
    ['/', '/new', '/s/{study}']
    """
    shells = [Route(path, partial(_page, *page), methods=["GET"]) for path, page in PAGES.items()]
    files = [*_OWN, "report.js", "report.css"]
    return shells + [Route(f"/static/{name}", partial(_file, name), methods=["GET"]) for name in files]


Endpoint = Callable[[Request], Awaitable[Response]]


def for_people(path: str, endpoint: Endpoint) -> Endpoint:
    """Return an endpoint that leads browsers to the page of its path, if it has one, before a token is asked for.

    Examples
    --------
    >>> for_people("/studies/{study}/ask", _page) is _page
    True
    """
    page = _SHOWN.get(path)
    return endpoint if page is None else partial(_led, page, endpoint)


async def _led(page: str, endpoint: Endpoint, request: Request) -> Response:
    accepted = request.headers.get("accept", "")
    if request.method != "GET" or "text/html" not in accepted or "application/json" in accepted:
        return await endpoint(request)
    return RedirectResponse(page.format(study=quote(request.path_params.get("study", ""), safe="")), 303)


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
