"""The application: transport around the routes. Tokens, limits, headers and logs; nothing of studies."""

import asyncio
import contextlib
import json
import logging
import re
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache, partial
from typing import Any, cast

import msgspec
from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route as Path
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from truearm.errors import TruearmError
from truearm.service import openapi, pages, problems
from truearm.service.database import Busy, Database, DatabaseError, Row
from truearm.service.hosting import Host, rehearse
from truearm.service.problems import Problem, Refused
from truearm.service.routes import LOG, ROUTES, Call, Route, Streamed, found
from truearm.service.settings import Settings, is_loopback, network
from truearm.service.stream import Followers, Shared
from truearm.service.tokens import OPEN, Grant, Tokens

_THREADS = 8
_HEALTH = 3.0  # seconds in which a health check has its answer
_PATIENCE = 30.0  # seconds in which other requests have theirs, but for tables and reports
_WELL = 1.0  # seconds for which that is not looked for again
_LOGGED = 0.1  # seconds until the log has a request: to write for each one by itself would take as long as an ask
_APART = 0.002  # seconds between requests of several connections that do not come at the same time
_AT_ONCE = 0.01  # seconds of work after which the loop waits for none for a while: a slow disk, a large study
_HELD = _AT_ONCE  # seconds for which it waits at most: no disk that hangs keeps others from an answer
_REST = 20  # times as long, so that such work has the loop for a twentieth of the time at most
_SELDOM = 20  # quick answers between two slow ones that count by themselves: SQLite tidies up once in a hundred
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
    """What the endpoints of one process share."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.database = Database(settings.database)
        self.host = Host(self.database, settings.limits)
        self.tokens = Tokens(self.database, needed=not is_loopback(settings.host))
        self.followers = Followers(self.host)
        self._drawn = Shared()
        self._check: asyncio.Future[Any] | None = None  # the last look at the database, for `/healthz`
        self._checked_at = 0.0
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="truearm")
        self._rates: dict[str, tuple[float, float]] = {}
        self._requests = _Requests()
        self._last: object = None  # the connection that was looked at last, for `at_once`
        self._last_ended = self._threads_until = 0.0
        self._quick = _SELDOM  # answers since a slow one
        self._rehearsal: Future[None] | None = None  # what the first decision would wait for

    def close(self) -> None:
        """Finish what runs, keep snapshots and let go of the database."""
        self._pool.shutdown()
        self.host.close()

    def app(self) -> ASGIApp:
        """Return the application."""
        routes = [Path(r.path, partial(self._slowly, r), methods=[r.method]) for r in ROUTES]
        routes.append(Path("/studies/{study}/events", self._events, methods=["GET"]))
        routes.append(Path("/openapi.json", self._schema, methods=["GET"]))
        routes += pages.routes()
        others = Starlette(
            routes=routes,
            lifespan=self._lifespan,
            exception_handlers={HTTPException: _refused, TruearmError: _failed, Exception: _failed},
        )

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            route, study = found(scope.get("method", ""), scope.get("path", ""))
            if route is None:
                await others(scope, receive, send)
            else:
                page = pages.for_people(route, study, scope)
                response = page or await self._responded(route, study, scope, receive)
                await response(scope, receive, send)

        return _Outermost(app, self._requests)

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        self._rehearsal = self._pool.submit(rehearse)
        yield
        self._requests.write()
        await asyncio.to_thread(self.close)

    def in_thread(self, work: Callable[..., Any], *values: Any) -> "asyncio.Future[Any]":  # noqa: ANN401
        """Run what touches the database outside the loop."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pool.submit(_run, future, work, values)
        return future

    async def _slowly(self, route: Route, request: Request) -> Response:
        """Answer what `found` leaves to others, such as HEAD."""
        return await self._answer(route, request.path_params.get("study", ""), request.scope, request.receive)

    def at_once(self, scope: Scope, body: bytes, who: object, *, only: bool = False) -> Response | None:
        """Answer a small request here and now if that takes no time; None if it has to be waited for.

        Whoever is alone, as one connection among those that are open, so gets an answer in half the time. Requests
        of several share transactions instead. What is slow, such as a disk or a large study, is waited for
        elsewhere, so that others are answered meanwhile; the `only` one that is connected is spared the hand-over.
        """
        route, study = found(scope["method"], scope["path"])
        began, limits = time.perf_counter(), self.settings.limits
        if route is None or not route.at_once or not self.database.is_file or len(body) > limits.body:
            return None
        if not self._is_alone(who, began) or began < self._threads_until or not self.tokens.fresh:
            return None
        if self._rehearsal is not None and not self._rehearsal.done():
            return None
        state = scope["state"]
        state["id"] = _new_id()
        try:
            head = _Head(scope)
            grant = self._permitted(head, route.role, study)
            self._check_kind(head, route)
            state["call"] = Call(self.host, grant, study, self._decoded(route, body), {}, head.headers)
            answer = partial(_answered, route, state["call"]._replace(wait=False))
            if only:
                response = answer()
            else:
                late = self._pool.submit(answer)
                if not wait([late], _HELD).done:
                    state["late"] = late
                    self._timed(began)
                    return None
                response = late.result()
        except Busy:
            return None
        except Exception as error:
            response = _problem(scope, error)
        self._timed(began)
        self._requests.add(scope, response.status_code, began)
        response.raw_headers += _added(response.raw_headers, state["id"])
        return response

    def _timed(self, began: float) -> None:
        """Have the loop wait for nothing for a while if that was slow, and not only once in a while."""
        ended = self._last_ended = time.perf_counter()
        self._quick += 1
        if ended - began > _AT_ONCE:
            if self._quick <= _SELDOM:
                self._threads_until = ended + _REST * (ended - began)
            self._quick = 0

    def _is_alone(self, who: object, now: float) -> bool:
        """Tell whether a connection is the only one that was answered at once in the last moment."""
        alone = who is self._last or now > self._last_ended + _APART
        self._last = who
        return alone

    async def _responded(self, route: Route, study: str, scope: Scope, receive: Receive) -> Response:
        try:
            return await self._answer(route, study, scope, receive)
        except Exception as error:
            return _problem(scope, error)

    async def _answer(self, route: Route, study: str, scope: Scope, receive: Receive) -> Response:
        try:
            async with asyncio.timeout(_PATIENCE if isinstance(route.gives, type) else None):
                return await self._awaited(route, study, scope, receive)
        except TimeoutError:
            raise self._silent(_PATIENCE) from None

    async def _awaited(self, route: Route, study: str, scope: Scope, receive: Receive) -> Response:
        if (late := scope["state"].pop("late", None)) is not None:  # it was begun, and is not done twice
            with contextlib.suppress(Busy):
                return cast("Response", await asyncio.wrap_future(late))
        call: Call | None = scope["state"].get("call")  # it was checked when it could not be answered at once
        if call is None:
            head = _Head(scope)
            grant = await self._allowed(head, route.role, study or None)
            body = await self._body(head, route, receive)
            query = dict(QueryParams(scope["query_string"])) if scope["query_string"] else {}
            call = Call(self.host, grant, study, body, query, head.headers)
        answered = partial(self.in_thread, _answered, route, call)
        response: Response
        if route.shared:
            response = await self._drawn.get(study, answered)
        else:
            response = await (answered() if route.role else self._checked(answered))
        if isinstance(response, Streamed):
            response.body_iterator = self._in_parts(() if scope["method"] == "HEAD" else response.parts)
        self._last_ended = time.perf_counter()
        return response

    async def _in_parts(self, parts: Iterable[bytes]) -> AsyncIterator[bytes]:
        each = iter(parts)
        while (part := await self.in_thread(next, each, None)) is not None:
            yield part

    async def _checked(self, check: "Callable[[], asyncio.Future[Any]]") -> Response:
        """Return what a look at the database says, in time; one look a second, however many ask."""
        if self._check is None or (self._check.done() and time.monotonic() > self._checked_at + _WELL):
            self._check, self._checked_at = check(), time.monotonic()
        try:
            async with asyncio.timeout(_HEALTH):
                return cast("Response", await asyncio.shield(self._check))
        except TimeoutError:
            raise self._silent(_HEALTH) from None

    def _silent(self, seconds: float) -> DatabaseError:
        name = self.database
        return DatabaseError(f"the database {name} did not answer within {seconds:g} seconds; see whether it runs")

    async def _allowed(self, head: "_Head", role: str | None, study: str | None) -> Grant:
        if role is not None and not self.tokens.fresh:
            await self.in_thread(self.tokens.read)
        return self._permitted(head, role, study)

    def _permitted(self, head: "_Head", role: str | None, study: str | None) -> Grant:
        """Return what a request may do, or refuse it."""
        if role is None:
            return OPEN  # who looks whether the server is well must not hear that it is busy
        self._check_rate(head)  # before the token, so that guesses are counted
        grant = self._granted(head)
        if grant is OPEN:
            self._check_host(head)
        head.state["grant"] = grant
        own = study is None  # what is of no study; who may begin one is asked when its name is read
        if not grant.allows(role, grant.study if own else study):
            where = "all studies" if grant.study is None else f"study {grant.study!r}"
            detail = f"this needs the role {role}, and the token is for {grant.role} of {where}; use another token"
            raise Refused(Problem(403, "Not allowed", detail))
        return grant

    def _granted(self, head: "_Head") -> Grant:
        scheme, _, token = head.headers.get("authorization", "").partition(" ")
        grant = self.tokens.grant(token if scheme.lower() == "bearer" else None)
        if grant is None:
            detail = "this server needs a token; send it as `Authorization: Bearer TOKEN`"
            if token:
                detail = "this token is unknown or was removed; use another one"
            raise Refused(Problem(401, "No token", detail), {"WWW-Authenticate": "Bearer"})
        return grant

    def _check_host(self, head: "_Head") -> None:
        """While nobody needs a token, keep out pages of the web that were led here by a name of their own."""
        name = re.sub(r":\d+$", "", head.headers.get("host", ""))
        if not is_loopback(name):
            detail = f"Host {name!r:.80} is not this machine; use 127.0.0.1, or make a token"
            raise Refused(Problem(421, "Misdirected", detail, field="Host", value=name[:200]))

    def _check_rate(self, head: "_Head") -> None:
        rate, now, who = self.settings.limits.rate, time.monotonic(), head.client
        if ":" in who:
            who = network(who)
        left, since = self._rates.get(who, (2 * rate, now))
        left = min(2 * rate, left + (now - since) * rate) - 1
        if len(self._rates) > 10_000:
            self._rates.clear()
        self._rates[who] = max(left, -1), now
        if left < 0:
            detail = f"more than {rate:g} requests a second; wait, and send several readings at once"
            raise Refused(Problem(429, "Too many requests", detail), {"Retry-After": "1"})

    async def _body(self, head: "_Head", route: Route, receive: Receive) -> Any:  # noqa: ANN401 - of the route
        if route.method != "POST":
            return None
        self._check_kind(head, route)
        return None if route.takes is None else self._decoded(route, await self._read(receive))

    def _check_kind(self, head: "_Head", route: Route) -> None:
        kind = head.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json" and route.takes is not None:
            detail = f"Content-Type must be application/json, but got {kind!r:.80}"
            raise Refused(Problem(415, "Unknown media type", detail, field="Content-Type", value=kind[:200]))
        if route.takes is None:
            self._check_not_foreign(head)

    def _decoded(self, route: Route, body: bytes) -> Any:  # noqa: ANN401
        try:
            return msgspec.json.decode(body, type=route.takes)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            assert route.takes is not None
            raise Refused(problems.malformed(error, body, route.takes)) from None

    def _check_not_foreign(self, head: "_Head") -> None:
        # without a body there is no media type that would keep a page of another site from sending it
        if head.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise Refused(
                Problem(403, "Not allowed", "requests of other sites are not taken; use the page of this one")
            )

    async def _read(self, receive: Receive) -> bytes:
        most, body, more = self.settings.limits.body, bytearray(), True
        try:
            async with asyncio.timeout(self.settings.limits.patience):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refused(Problem(400, "Gone", "the body ended early; send it again"))
                    body += message.get("body", b"")
                    more = message.get("more_body", False)
                    if len(body) > most:
                        detail = f"the body may have {most} bytes at most; send several requests"
                        raise Refused(Problem(413, "Too large", detail), {"Connection": "close"})
        except TimeoutError:
            detail = f"the body did not come within {self.settings.limits.patience:g} seconds; send it again"
            raise Refused(Problem(408, "Too slow", detail), {"Connection": "close"}) from None
        return bytes(body)

    async def _events(self, request: Request) -> Response:
        name, head = request.path_params["study"], _Head(request.scope)
        await self._allowed(head, "viewer", name)
        last = head.headers.get("last-event-id", "0")
        if not re.fullmatch(r"[0-9]{1,15}", last):
            detail = f"Last-Event-ID must be a position, but got {last!r:.80}; leave it out to begin at the first"
            raise Refused(Problem(422, "Invalid value", detail, field="Last-Event-ID", value=last[:200]))
        if int(last) > await self.in_thread(self._position, name):
            last = "0"  # of a log that was replaced, such as by a back-up
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")  # what follows it has no end
        if self.followers.count >= self.settings.limits.streams:
            detail = "this server has as many followers as it takes; try again later"
            raise Refused(Problem(503, "Too many followers", detail), {"Retry-After": "10"})

        async def read(*place: Any) -> list[Row]:  # noqa: ANN401 - of `Database.after`
            if not self.tokens.fresh:
                await self.in_thread(self.tokens.read)
            self._granted(head)  # a token that was removed meanwhile reads nothing more
            return cast("list[Row]", await self.in_thread(self.database.after, *place))

        follow = self.followers.follow(name, int(last), read)
        return StreamingResponse(follow, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    def _position(self, name: str) -> int:
        with self.host.looking(name) as hosted:
            return hosted.position

    async def _schema(self, _: Request) -> Response:
        return Response(_published(), media_type="application/json")


class _Head:
    """What is looked at of the head of a request; of headers that came twice, the first."""

    def __init__(self, scope: Scope) -> None:
        raw: list[tuple[bytes, bytes]] = scope["headers"]
        if sum(len(name) + len(value) for name, value in raw) > HEAD:  # it is kept in memory whole
            raise Refused(LARGE_HEAD, {"Connection": "close"})
        self.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(raw)}
        self.client = (scope.get("client") or ("",))[0]
        self.state: dict[str, Any] = scope["state"]


def _answered(route: Route, call: Call) -> Response:
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
    return _problem(request.scope, error)


def _problem(scope: Scope, error: Exception) -> Response:
    """Return an error as an answer."""
    name = scope["state"].get("id", "")
    if isinstance(error, Refused):
        return problems.response(error.problem, error.headers)
    if isinstance(error, TruearmError):
        problem = problems.of(error)
        if problem.status >= 500:
            LOG.error(str(error), extra={"fields": {"event": "failed", "request": name}})
        return problems.response(problem, {"Retry-After": "1"} if problem.status == 503 else None)
    LOG.error("an error of our own", exc_info=error, extra={"fields": {"event": "broken", "request": name}})
    detail = f"the server met an error of its own; its log has more under request {name}, please report it"
    return problems.response(Problem(500, "Error", detail))


class _Requests:
    """What is known of requests, written to the log a few times a second: the answers go first."""

    def __init__(self) -> None:
        self._known: list[dict[str, Any]] = []

    def add(self, scope: Scope, status: int, began: float) -> None:
        """Note a request that was answered; no secret is in what is noted."""
        if not self._known:
            asyncio.get_running_loop().call_later(_LOGGED, self.write)
        state = scope["state"]
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
        self._known.append(fields)

    def write(self) -> None:
        requests, self._known = self._known, []
        if requests and LOG.isEnabledFor(logging.INFO):  # nobody reads from which line of ours it came
            LOG.handle(logging.makeLogRecord({**_RECORD, "requests": requests}))


_RECORD = {"name": LOG.name, "msg": "request", "levelno": logging.INFO, "levelname": "INFO"}


class _Outermost:
    """Headers on every answer and a line in the log for every request."""

    def __init__(self, app: ASGIApp, requests: _Requests) -> None:
        self._app, self._requests = app, requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0
        state = scope.setdefault("state", {})
        state.setdefault("id", _new_id())

        async def dressed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *_added(message["headers"], state["id"])]
            await send(message)

        try:
            await self._app(scope, receive, dressed)
        except asyncio.CancelledError:  # the server ends and has waited long enough
            if not status:
                problem = Problem(503, "Ending", "this server ends; send the request again, to another or later")
                await problems.response(problem, {"Connection": "close"})(scope, receive, dressed)
        finally:
            self._requests.add(scope, status, began)


_HEADERS = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]


def _added(headers: list[tuple[bytes, bytes]], name: str) -> list[tuple[bytes, bytes]]:
    """Return what an answer has beside its own headers, and the name of its request."""
    given = {name.lower() for name, _ in headers}
    return [*(header for header in _HEADERS if header[0] not in given), (b"x-request-id", name.encode())]


def _new_id() -> str:
    return secrets.token_hex(6)
