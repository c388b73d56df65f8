"""The application: transport around the routes. Tokens, limits, headers and logs; nothing of studies."""

import asyncio
import contextlib
import json
import logging
import re
import secrets
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route as Path
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from truearm.errors import TruearmError, speaking_json
from truearm.service import openapi, pages, problems
from truearm.service.database import Database
from truearm.service.hosting import Host
from truearm.service.problems import Problem, Refused
from truearm.service.routes import ROUTES, Call, Route
from truearm.service.settings import Settings, is_loopback
from truearm.service.stream import Followers
from truearm.service.tokens import OPEN, Grant, Tokens

LOG = logging.getLogger("truearm.service")
_THREADS = 8
_LOGGED = 0.1  # seconds until the log has a request: to write for each one by itself would take as long as an ask
HEAD = 16_384  # bytes
LARGE_HEAD = Problem(
    431, "Head too large", f"the head of a request may have {HEAD} bytes at most; send fewer or shorter headers"
)
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}


class Service:
    """What the endpoints of one process share.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     service = Service(Settings(database=f"{folder}/studies.db"))
    ...     [route.path for route in service.app().routes][:2]
    ...     service.close()
    ['/studies', '/studies']
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.database = Database(settings.database)
        self.host = Host(self.database, settings.limits)
        self.tokens = Tokens(self.database, needed=not is_loopback(settings.host))
        self.followers = Followers(self.host)
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="truearm")
        self._rates: dict[str, tuple[float, float]] = {}
        self._requests = _Requests()

    def close(self) -> None:
        """Finish what runs, keep snapshots and let go of the database."""
        self._pool.shutdown()
        self.host.close()

    def app(self) -> Starlette:
        """Return the application."""
        routes = [
            Path(r.path, pages.for_people(r.path, partial(self._answer, r)), methods=[r.method]) for r in ROUTES
        ]
        routes.append(Path("/studies/{study}/events", self._events, methods=["GET"]))
        routes.append(Path("/openapi.json", self._schema, methods=["GET"]))
        routes += pages.routes()
        app = Starlette(
            routes=routes,
            lifespan=self._lifespan,
            exception_handlers={HTTPException: _refused, TruearmError: _failed, Exception: _broken},
        )
        app.add_middleware(_Outermost, requests=self._requests)
        return app

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        yield
        self._requests.write()
        await asyncio.to_thread(self.close)

    def in_thread(self, work: Callable[..., Any], *values: Any) -> "asyncio.Future[Any]":  # noqa: ANN401
        """Run what touches the database outside the loop."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pool.submit(_run, future, work, values)
        return future

    async def _answer(self, route: Route, request: Request) -> Response:
        self.check_head(request)
        study = request.path_params.get("study", "")
        grant = await self.allowed(request, route.role, study or None)
        body = await self._body(request, route)
        query = dict(request.query_params) if request.scope["query_string"] else {}
        call = Call(self.host, grant, study, body, query, request.headers)
        response: Response = await self.in_thread(_answered, route, call)
        return response

    def check_head(self, request: Request) -> None:
        """Refuse a head that is too large: it is kept in memory whole."""
        if sum(len(name) + len(value) for name, value in request.headers.raw) > HEAD:
            raise Refused(LARGE_HEAD, {"Connection": "close"})

    async def allowed(self, request: Request, role: str | None, study: str | None) -> Grant:
        """Return what a request may do, or refuse it."""
        if role is None:
            return OPEN
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if not self.tokens.fresh:
            await self.in_thread(self.tokens.read)
        grant = self.tokens.grant(token if scheme.lower() == "bearer" else None)
        if grant is None:
            detail = "this server needs a token; send it as `Authorization: Bearer TOKEN`"
            raise Refused(Problem(401, "No token", detail), {"WWW-Authenticate": "Bearer"})
        if grant is OPEN:
            self._check_host(request)
        self._check_rate(grant, request)
        request.state.grant = grant
        listing = role == "viewer" and study is None  # and what is of no study
        if not grant.allows(role, grant.study if listing else study):
            where = "all studies" if grant.study is None else f"study {grant.study!r}"
            detail = f"this needs the role {role}, and the token is for {grant.role} of {where}; use another token"
            raise Refused(Problem(403, "Not allowed", detail))
        return grant

    def _check_host(self, request: Request) -> None:
        """While nobody needs a token, keep out pages of the web that were led here by a name of their own."""
        name = re.sub(r":\d+$", "", request.headers.get("host", ""))
        if not is_loopback(name):
            detail = f"Host {name!r:.80} is not this machine; use 127.0.0.1, or make a token"
            raise Refused(Problem(421, "Misdirected", detail, field="Host", value=name[:200]))

    def _check_rate(self, grant: Grant, request: Request) -> None:
        rate, now = self.settings.limits.rate, time.monotonic()
        who = f"{grant.name} {request.client.host if request.client else ''}"
        left, since = self._rates.get(who, (2 * rate, now))
        left = min(2 * rate, left + (now - since) * rate) - 1
        if len(self._rates) > 10_000:
            self._rates.clear()
        self._rates[who] = max(left, -1), now
        if left < 0:
            detail = f"more than {rate:g} requests a second; wait, and send several readings at once"
            raise Refused(Problem(429, "Too many requests", detail), {"Retry-After": "1"})

    async def _body(self, request: Request, route: Route) -> Any:  # noqa: ANN401 - of the type the route takes
        if route.method != "POST":
            return None
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json" and route.takes is not None:
            detail = f"Content-Type must be application/json, but got {kind!r:.80}"
            raise Refused(Problem(415, "Unknown media type", detail, field="Content-Type", value=kind[:200]))
        if route.takes is None:
            self._check_not_foreign(request)
            return None
        body = await self._read(request)
        try:
            return msgspec.json.decode(body, type=route.takes)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise Refused(problems.malformed(error, body, route.takes)) from None

    def _check_not_foreign(self, request: Request) -> None:
        # without a body there is no media type that would keep a page of another site from sending it
        if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise Refused(
                Problem(403, "Not allowed", "requests of other sites are not taken; use the page of this one")
            )

    async def _read(self, request: Request) -> bytes:
        most, body = self.settings.limits.body, bytearray()
        try:
            async with asyncio.timeout(self.settings.limits.patience):
                async for piece in request.stream():
                    body += piece
                    if len(body) > most:
                        detail = f"the body may have {most} bytes at most; send several requests"
                        raise Refused(Problem(413, "Too large", detail), {"Connection": "close"})
        except TimeoutError:
            detail = f"the body did not come within {self.settings.limits.patience:g} seconds; send it again"
            raise Refused(Problem(408, "Too slow", detail), {"Connection": "close"}) from None
        except ClientDisconnect:
            raise Refused(Problem(400, "Gone", "the body ended early; send it again")) from None
        return bytes(body)

    async def _events(self, request: Request) -> Response:
        name = request.path_params["study"]
        await self.allowed(request, "viewer", name)
        last = request.headers.get("last-event-id", "0")
        if not re.fullmatch(r"[0-9]{1,15}", last):
            detail = f"Last-Event-ID must be a position, but got {last!r:.80}; leave it out to begin at the first"
            raise Refused(Problem(422, "Invalid value", detail, field="Last-Event-ID", value=last[:200]))
        if int(last) > await self.in_thread(self._position, name):
            last = "0"  # of a log that was replaced, such as by a back-up
        if self.followers.count >= self.settings.limits.streams:
            detail = "this server has as many followers as it takes; try again later"
            raise Refused(Problem(503, "Too many followers", detail), {"Retry-After": "10"})
        follow = self.followers.follow(name, int(last), partial(self.in_thread, self.database.after))
        return StreamingResponse(follow, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    def _position(self, name: str) -> int:
        with self.host.looking(name) as hosted:
            return hosted.position

    async def _schema(self, _: Request) -> Response:
        return Response(_published(), media_type="application/json")


def _answered(route: Route, call: Call) -> Response:
    with speaking_json():
        return route.answer(call)


@cache
def _published() -> bytes:
    return json.dumps(openapi.schema()).encode()


def _run(future: "asyncio.Future[Any]", work: Callable[..., Any], values: tuple[Any, ...]) -> None:
    """Do work in this thread and hand what comes of it to the loop of a future, if somebody waits there still."""
    try:
        settle = partial(future.set_result, work(*values))
    except BaseException as error:  # it is raised where it is waited for
        settle = partial(future.set_exception, error)
    with contextlib.suppress(RuntimeError):  # the loop has ended
        future.get_loop().call_soon_threadsafe(lambda: future.done() or settle())


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    path = request.url.path[:200]
    what = {404: f"there is no page {path!r}", 405: f"{request.method} is not for {path!r}"}
    detail = f"{what.get(error.status_code, error.detail)}; see /openapi.json for what can be asked"
    problem = Problem(error.status_code, error.detail, detail, field="path", value=path)
    return problems.response(problem, dict(error.headers or {}))


async def _failed(request: Request, error: Exception) -> Response:
    if isinstance(error, Refused):
        return problems.response(error.problem, error.headers)
    assert isinstance(error, TruearmError)
    problem = problems.of(error)
    if problem.status >= 500:
        LOG.error(str(error), extra={"fields": {"event": "failed", "request": request.state.id}})
    return problems.response(problem, {"Retry-After": "1"} if problem.status == 503 else None)


async def _broken(request: Request, error: Exception) -> Response:
    name = getattr(request.state, "id", "")
    LOG.error("an error of our own", exc_info=error, extra={"fields": {"event": "broken", "request": name}})
    detail = f"the server met an error of its own; its log has more under request {name}, please report it"
    return problems.response(Problem(500, "Error", detail))


class _Requests:
    """What is known of requests, written to the log a few times a second: the answers go first."""

    def __init__(self) -> None:
        self._known: list[dict[str, Any]] = []

    def add(self, fields: dict[str, Any]) -> None:
        if not self._known:
            asyncio.get_running_loop().call_later(_LOGGED, self.write)
        self._known.append(fields)

    def write(self) -> None:
        requests, self._known = self._known, []
        if requests and LOG.isEnabledFor(logging.INFO):  # nobody reads from which line of ours it came
            LOG.handle(logging.makeLogRecord({**_RECORD, "requests": requests}))


_RECORD = {"name": LOG.name, "msg": "request", "levelno": logging.INFO, "levelname": "INFO"}


class _Outermost:
    """Headers on every answer and a line in the log for every request; no secret is in that line."""

    def __init__(self, app: ASGIApp, requests: _Requests) -> None:
        self._app, self._requests = app, requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0
        state = scope.setdefault("state", {})
        state["id"] = secrets.token_hex(6)

        async def dressed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                given = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *_lacking(given),
                    (b"x-request-id", state["id"].encode()),
                ]
            await send(message)

        try:
            await self._app(scope, receive, dressed)
        except asyncio.CancelledError:  # the server ends and has waited long enough
            if not status:
                problem = Problem(503, "Ending", "this server ends; send the request again, to another or later")
                await problems.response(problem, {"Connection": "close"})(scope, receive, dressed)
        finally:
            grant = state.get("grant")
            fields = {
                "at": time.time(),
                "event": "request",
                "request": state["id"],
                "method": scope["method"],
                "path": scope["path"],
                "status": status,
                "ms": round(1000 * (time.perf_counter() - began), 3),
                "token": grant.name if grant else None,
            }
            self._requests.add(fields)


_HEADERS = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]


def _lacking(given: set[bytes]) -> list[tuple[bytes, bytes]]:
    return [header for header in _HEADERS if header[0] not in given]
