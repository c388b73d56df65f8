"""The HTTP application: routes, roles, limits and headers around `Studies`."""

import asyncio
import logging
import math
import re
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import msgspec
from litestar import Litestar, MediaType, Request, Response, get, post
from litestar.connection import ASGIConnection
from litestar.datastructures import CacheControlHeader, Headers
from litestar.di import NamedDependency, Provide
from litestar.exceptions import HTTPException, InternalServerException
from litestar.exceptions.http_exceptions import RequestEntityTooLarge
from litestar.handlers import BaseRouteHandler
from litestar.openapi import OpenAPIConfig, ResponseSpec
from litestar.params import FromPath, HeaderParameter, JSONBody, QueryParameter
from litestar.plugins.jinja import JinjaTemplateEngine
from litestar.response import Stream, Template
from litestar.static_files import create_static_files_router
from litestar.template import TemplateConfig
from litestar.types import ASGIApp, Message, Receive, Send

import truearm
from truearm import __version__
from truearm.errors import TruearmError, printable
from truearm.report.export import document
from truearm.service import answers, models
from truearm.service.access import Grant, Settings, Tokens, client_network, is_loopback
from truearm.service.models import Refused
from truearm.service.studies import Studies
from truearm.store import Database, Row, StoreError

LOG = logging.getLogger("truearm.service")
_PAGE_STUDIES, _PAGE_EVENTS, _STREAM_ROWS = 50, 5000, 500
_POLL_S, _KEEP_ALIVE_S = 0.5, 15.0  # of streams: between looks at the log, and between signs of life
_HEALTH_TIMEOUT_S, _HEALTH_MAX_AGE_S = 3.0, 1.0
_REQUEST_TIMEOUT_S = 30.0  # of requests that send no stream, table or report
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
_MAX_HEAD_BYTES = 16_384
_NO_CACHE = CacheControlHeader(no_cache=True)
_STUDY = "/studies/{study:str}"
_FIND = "SELECT study, at FROM truearm_event WHERE position = 0 AND study = %s"
_LIST = (
    "SELECT study, at FROM truearm_event WHERE position = 0 AND (at < %s OR (at = %s AND study < %s)) "
    "ORDER BY at DESC, study DESC LIMIT %s"
)


class Service:
    """The objects that the handlers of one process share."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.database = Database(settings.database)
        self.studies = Studies(self.database, settings)
        self.tokens = Tokens(self.database)
        self.streams = 0  # clients that follow events
        self.is_ending: Callable[[], bool] = lambda: False
        self._health: tuple[float, asyncio.Future[None]] | None = None
        self.draw = lru_cache(_PAGE_STUDIES)(self._draw)  # once for all viewers

    def _draw(self, study: str, position: int) -> models.Live:  # noqa: ARG002 - part of the key
        return answers.live(self.studies.snapshot(study))

    async def check_health(self) -> None:
        """Raise if the database does not commit a write in time; one write per second for all checks."""
        if self._health is None or (self._health[1].done() and time.monotonic() > self._health[0]):
            future = asyncio.ensure_future(asyncio.to_thread(self.database.check_writes))
            self._health = time.monotonic() + _HEALTH_MAX_AGE_S, future
        try:
            async with asyncio.timeout(_HEALTH_TIMEOUT_S):
                await asyncio.shield(self._health[1])
        except TimeoutError:
            raise _timeout_error(self.database, _HEALTH_TIMEOUT_S) from None


Shared = NamedDependency[Service]
Name = FromPath[str]
AnyRequest = Request[Any, Any, Any]


def _timeout_error(database: Database, seconds: float) -> StoreError:
    msg = f"the database {database.name} did not answer within {seconds:g} seconds; check that it runs"
    return StoreError(msg)


async def check_role(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """Refuse a request whose token does not allow the role of its route."""
    role, study = handler.opt.get("role"), connection.path_params.get("study")
    if role is None:
        return
    grant: Grant = connection.app.state.service.tokens.authenticate(connection.headers.get("authorization", ""))
    connection.scope["state"]["grant"] = grant
    # a route without a study checks the study itself
    if not grant.allows(role, grant.study if study is None else study):
        where = "all studies" if grant.study is None else f"study {grant.study!r}"
        needed = role if study is None else f"{role} of study {study!r}"
        detail = f"this needs the role {needed}, and the token is for {grant.role} of {where}; use another token"
        raise Refused(403, "Not allowed", detail)


class JsonRequest(Request[Any, Any, Any]):
    """A request whose JSON is decoded strictly into the model of its route."""

    async def json(self) -> Any:  # noqa: ANN401
        """Return the body as the model of the route."""
        kind, field = self.content_type[0], self.route_handler.parsed_data_field
        if kind != "application/json":
            detail = f"Content-Type must be application/json, but got {kind!r:.80}"
            raise Refused(415, "Unknown media type", detail, field="Content-Type", value=kind)
        assert field is not None
        body = await self.body()
        try:
            return msgspec.json.decode(body, type=field.annotation)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise models.explain_invalid(error, body) from None

    async def body(self) -> bytes:
        """Return the body, or refuse one that is too large or too slow."""
        settings = self.app.state.service.settings
        try:
            async with asyncio.timeout(settings.patience):
                return await super().body() or b" "  # Litestar passes an empty one without `json`
        except RequestEntityTooLarge:
            detail = f"the body may have {settings.max_body} bytes at most; send several requests"
            refused = 413, "Too large", detail
        except TimeoutError:
            refused = 408, "Too slow", f"the body took over {settings.patience:g} seconds; send it again"
        except InternalServerException:
            refused = 400, "Gone", "the body ended early; send it again"
        raise Refused(*refused, headers={"Connection": "close"})


@post("/studies", role="admin", status_code=201, operation_id="create")
async def create(
    service: Shared, request: AnyRequest, data: JSONBody[models.NewStudy]
) -> Response[models.Created]:
    """Create a study, or find the same one; another one under its name is refused."""
    grant: Grant = request.scope["state"]["grant"]
    if grant.study not in (None, data.id):
        detail = f"the token is for study {grant.study!r} only; create that one, or use another token"
        raise Refused(403, "Not allowed", detail, field="id", value=data.id)
    # not sync_to_thread=True: Litestar wraps the first of two handlers of one path twice
    made = await asyncio.to_thread(service.studies.create, data)
    headers = {"Location": f"/studies/{made.id}"}
    return Response(made, status_code=201 if made.created else 200, headers=headers)


@get("/studies", role="viewer", sync_to_thread=True, operation_id="list")
def list_studies(
    service: Shared,
    request: AnyRequest,
    before: Annotated[str | None, QueryParameter(description="`next` of a page")] = None,
) -> models.Page:
    """List studies, the newest first, 50 to a page."""
    grant: Grant = request.scope["state"]["grant"]
    if grant.study is not None:
        rows = service.database.execute(_FIND, (grant.study,))
        return models.Page([_summarize(service.studies, *row) for row in rows], None)
    began, _, name = ("inf" if before is None else before).partition("_")
    try:
        at = float(began)
    except ValueError:
        detail = f"before cannot be {before!r:.80}; take it from `next` of the page before"
        raise Refused(422, "Invalid value", detail, field="before", value=before) from None
    rows = service.database.execute(_LIST, (at, at, name.replace("\0", ""), _PAGE_STUDIES + 1))
    last = rows[_PAGE_STUDIES - 1] if len(rows) > _PAGE_STUDIES else None
    more = None if last is None else f"/studies?before={last[1]!r}_{quote(last[0])}"
    return models.Page([_summarize(service.studies, *row) for row in rows[:_PAGE_STUDIES]], more)


def _parse_position(field: str, value: str) -> int:
    if not re.fullmatch(r"[0-9]{1,15}", value):
        detail = f"{field} must be the last position you know, or 0, but got {value!r:.80}; correct or remove it"
        raise Refused(422, "Invalid value", detail, field=field, value=value)
    return int(value)


def _summarize(studies: Studies, name: str, began: float) -> models.Summary:
    try:
        with studies.read(name) as hosted:
            return answers.summary(hosted)
    except StoreError:
        raise
    except Exception as error:  # a study that cannot be read must not hide the others
        is_ours = isinstance(error, TruearmError)
        if not is_ours:
            LOG.exception("study %r cannot be read", name)
        reason = str(error) if is_ours else "it cannot be read; see the log of the server"
        return models.Summary(name, name, began, 0, 0, 0, False, "broken", None, None, reason)


_UNCHANGED = ResponseSpec(None, description="Nothing changed since the ETag of If-None-Match.")


@get(_STUDY, role="viewer", sync_to_thread=True, operation_id="show", responses={304: _UNCHANGED})
def show(
    service: Shared,
    study: Name,
    tag: Annotated[str | None, HeaderParameter(name="If-None-Match", description="the ETag that you know")] = None,
) -> Response[models.State]:
    """Return the state of a study, with the result once it is done. Has an ETag; browsers are sent to its page."""
    with service.studies.read(study) as hosted:
        current = f'"{hosted.position}-{hosted.digest.hex()[:16]}"'
        if (tag or "").removeprefix("W/") == current:  # a proxy that compresses answers adds W/
            return Response(None, status_code=304, headers={"ETag": current})  # type: ignore[arg-type]
        return Response(answers.state(hosted), headers={"ETag": current})


@post(f"{_STUDY}/ask", role="worker", status_code=200, sync_to_thread=True, operation_id="ask")
def ask(service: Shared, study: Name, data: JSONBody[models.Ask]) -> models.Pulls:
    """Hand out pulls, first those that the worker holds; in rounds, whole rounds."""
    return service.studies.ask(study, data.worker, data.n)


@post(f"{_STUDY}/tell", role="worker", status_code=200, sync_to_thread=True, operation_id="tell")
def tell(service: Shared, study: Name, data: JSONBody[models.Tell]) -> models.Outcomes:
    """Record readings of pulls. Each has an outcome: `told`, `known` (the same again) or `refused`."""
    return service.studies.tell(study, data.readings, data.worker)


@post(f"{_STUDY}/release", role="worker", status_code=200, sync_to_thread=True, operation_id="release")
def release(service: Shared, request: AnyRequest, study: Name, data: JSONBody[models.Release]) -> models.Outcomes:
    """Take back pulls of a worker that were never started; an admin without a worker also those of others."""
    of_others = data.worker is None and request.scope["state"]["grant"].allows("admin", study)
    return service.studies.release(study, data.tickets, data.worker, of_others=of_others)


@post(f"{_STUDY}/readings", role="worker", status_code=200, sync_to_thread=True, operation_id="give")
def give(service: Shared, study: Name, data: JSONBody[models.Give]) -> models.Added:
    """Add readings to a passive study, once for each key; a key with other readings is refused."""
    return service.studies.give(study, data.key, data.readings)


@post(f"{_STUDY}/stop", role="admin", status_code=200, sync_to_thread=True, operation_id="stop")
def stop(service: Shared, request: AnyRequest, study: Name) -> models.Pulls:
    """End a study with what is known so far."""
    # there is no body whose media type would keep a page of another site from sending this
    if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise Refused(403, "Not allowed", "requests of other sites are refused; use the page of this server")
    return service.studies.stop(study)


@get(f"{_STUDY}/log", role="viewer", sync_to_thread=True, operation_id="log")
def log(
    service: Shared,
    study: Name,
    since: Annotated[str, QueryParameter(description="the last position you know")] = "0",
) -> models.Log:
    """Return the log in pages of 5,000 events: enough for anyone to replay the study."""
    position = _parse_position("since", since)
    with service.studies.read(study) as hosted:
        definition = hosted.definition_text
    rows = service.database.rows(study, position, _PAGE_EVENTS)
    more = rows[-1][0] if len(rows) == _PAGE_EVENTS else None
    return models.Log(definition, [answers.log_entry(Row(*row)) for row in rows], more)


_CSV, _PARQUET = "text/csv", "application/vnd.apache.parquet"


@get(f"{_STUDY}/readings.csv", role="viewer", sync_to_thread=True, media_type=_CSV, operation_id="csv")
def csv(service: Shared, study: Name) -> Stream:
    """Return the readings as a table."""
    return _table(service, study, "csv")


@get(f"{_STUDY}/readings.parquet", role="viewer", sync_to_thread=True, media_type=_PARQUET, operation_id="parquet")
def parquet(service: Shared, study: Name) -> Stream:
    """Return the readings as a table; needs pyarrow on the server."""
    return _table(service, study, "parquet")


def _table(service: Service, study: str, suffix: str) -> Stream:
    kind, write = (_CSV, answers.as_csv) if suffix == "csv" else (_PARQUET, answers.as_parquet)
    with service.studies.read(study) as hosted:
        upto, passive = hosted.position, hosted.passive
    parts = write(answers.readings(service.database, study, upto, passive=passive))
    parts = chain([next(parts)], parts)  # an error in the first part still has a status
    headers = {"Content-Disposition": f'attachment; filename="{study}.{suffix}"'}
    return Stream(parts, media_type=kind, headers=headers)


@get(f"{_STUDY}/report", role="viewer", sync_to_thread=True, media_type=MediaType.HTML, operation_id="report")
def report(service: Shared, request: AnyRequest, study: Name) -> Response[bytes]:
    """Return the self-contained page; as JSON, which `truearm verify` checks, if `Accept` asks for it."""
    found = service.studies.snapshot(study)
    if found.passive and not found.is_known:
        msg = f"study {study!r} has arms without a reading; there is nothing to report yet"
        raise Refused(409, "Conflict", msg, field="study", value=study)
    result, readings = found.result(), found.readings
    if "application/json" in request.headers.get("accept", ""):
        return Response(msgspec.json.encode(document(result, readings)), media_type=MediaType.JSON)
    from truearm.report.pages import page, script_hash

    text = page(result, readings, title=found.title if found.title != found.name else None)
    sources = f"script-src '{script_hash()}'; style-src 'unsafe-inline'; img-src data:"
    policy = {"Content-Security-Policy": f"default-src 'none'; {sources}; sandbox allow-scripts"}
    return Response(text.encode(), media_type=MediaType.HTML, headers=policy)


@get(f"{_STUDY}/live", role="viewer", sync_to_thread=True, operation_id="live")
def live(service: Shared, study: Name) -> models.Live:
    """Return what the page of a study shows."""
    return service.draw(study, service.studies.snapshot(study).position)


@get(f"{_STUDY}/events", role="viewer", media_type="text/event-stream", operation_id="events")
async def events(
    service: Shared,
    request: AnyRequest,
    study: Name,
    last: Annotated[
        str, HeaderParameter(name="Last-Event-ID", description="the last position you know; all events without it")
    ] = "0",
) -> Stream:
    """Send events as they happen (server-sent events)."""
    position = _parse_position("Last-Event-ID", last)
    if position > (await asyncio.to_thread(service.studies.snapshot, study)).position:
        position = 0  # the log was replaced, as by a backup
    if request.scope["state"].get("is_head"):  # the stream has no end
        return Stream([b""], media_type="text/event-stream")
    if service.streams >= service.settings.max_streams:
        detail = "this server has as many followers as it allows; try again later"
        raise Refused(503, "Too many followers", detail, headers={"Retry-After": "10"})
    authorization = request.headers.get("authorization", "")

    async def stream() -> AsyncIterator[bytes]:
        nonlocal position
        sent_at = time.monotonic()
        service.streams += 1
        try:
            yield b"retry: 1000\n\n"
            while not service.is_ending():
                await service.tokens.refresh()
                service.tokens.authenticate(authorization)  # a token that was removed reads nothing more
                rows = await asyncio.to_thread(service.database.rows, study, position, _STREAM_ROWS)
                if rows:
                    position, sent_at = rows[-1][0], time.monotonic()
                    yield b"".join(answers.event_message(Row(*row)) for row in rows)
                elif time.monotonic() - sent_at >= _KEEP_ALIVE_S:
                    sent_at = time.monotonic()
                    yield b": keep-alive\n\n"
                if len(rows) < _STREAM_ROWS:
                    await asyncio.sleep(_POLL_S)
        except TruearmError as error:
            yield b"event: problem\ndata: " + msgspec.json.encode(models.as_refused(error).problem) + b"\n\n"
        finally:
            service.streams -= 1

    return Stream(stream(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


@post("/estimate", role="viewer", status_code=200, sync_to_thread=True, operation_id="estimate")
def estimate(data: JSONBody[models.Plan]) -> models.Estimate:
    """Estimate how many readings a study may take."""
    from truearm.planning import clean_outlook

    found = clean_outlook(arms=data.arms, gap=data.gap, share=data.share, eps=data.contamination, delta=data.delta)
    pulls = math.ceil(found.expected) if math.isfinite(found.expected) else None
    return models.Estimate(pulls, found.largest_eps)


@get("/healthz", operation_id="health")
async def health(service: Shared) -> models.Health:
    """Return whether the server answers and its database accepts writes."""
    await service.check_health()
    return models.Health("ok", __version__)


@get("/openapi.json", include_in_schema=False, sync_to_thread=False)
def openapi() -> Response[bytes]:
    """Return the published schema."""
    return Response(msgspec.json.encode(openapi_schema()), media_type=MediaType.JSON)


_PAGES = {  # by path: the template, and the title
    "/": ("list", "Studies"),
    "/new": ("new", "New study"),
    "/s/{study}": ("study", "Study"),
    "/s/{study}/next": ("next", "Next reading"),
}


@get([path.replace("{study}", "{study:str}") for path in _PAGES], include_in_schema=False, sync_to_thread=False)
def page(request: AnyRequest) -> Template:
    """Return a page without data; its script requests that with the reader's token."""
    name, title = _PAGES[request.scope["path_template"]]
    context, headers = {"title": title, "page": name}, {"Cache-Control": "no-cache"}
    return Template(f"{name}.html", context=context, media_type=MediaType.HTML, headers=headers)


API = (
    *(create, list_studies, show, ask, tell, release, give, stop, log, csv, parquet, report, live, events),
    *(estimate, health),
)


def create_app(service: Service, on_startup: Callable[[], Awaitable[None]] | None = None) -> ASGIApp:
    """Return the application of a process."""
    return Gate(_litestar(service, on_startup), service)


def _litestar(service: Service | None, on_startup: Callable[[], Awaitable[None]] | None = None) -> Litestar:
    root = Path(truearm.__file__).parent
    static = create_static_files_router(
        "/static", [root / "service/static", root / "report/static"], cache_control=_NO_CACHE
    )
    app = Litestar(
        [*API, openapi, page, static],
        dependencies={"service": Provide(lambda: service, sync_to_thread=False)},
        guards=[check_role],
        request_class=JsonRequest,
        request_max_body_size=None if service is None else service.settings.max_body,
        exception_handlers={Exception: lambda request, error: _problem_response(request.scope, error)},
        openapi_config=OpenAPIConfig(
            "truearm", __version__, path="/schema", render_plugins=[], use_handler_docstrings=True
        ),
        template_config=TemplateConfig(directory=root / "service/templates", engine=JinjaTemplateEngine),
        on_startup=[] if on_startup is None else [on_startup],
        logging_config=None,
    )
    app.state.service = service
    return app


@cache
def openapi_schema() -> dict[str, Any]:
    """Return the OpenAPI description of the service."""
    schema: dict[str, Any] = _litestar(None).openapi_schema.to_schema()
    kinds = [kind for kind in vars(models).values() if isinstance(kind, type) and msgspec.Struct in kind.__bases__]
    # msgspec describes its own types in full: defaults, limits of parts of a union, closed objects
    _, schema["components"]["schemas"] = msgspec.json.schema_components(
        kinds, ref_template="#/components/schemas/{name}"
    )
    schema["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    roles = {handler.operation_id: handler.opt.get("role") for handler in API}
    for operation in (operation for path in schema["paths"].values() for operation in path.values()):
        operation["summary"] = operation.pop("description", operation.get("summary"))
        for parameter in operation.setdefault("parameters", []):  # all are text
            parameter["schema"] = {"type": "string", "minLength": int(parameter["in"] == "path")}
        operation["responses"].pop("400", None)
        operation["responses"]["default"] = {"description": "The error, and what to do.", "content": content}
        if role := roles[operation["operationId"]]:
            operation |= {"description": f"Needs the role {role}.", "security": [{"token": []}, {}]}
    creation = schema["paths"]["/studies"]["post"]["responses"]
    creation["200"] = {**creation["201"], "description": "The same study exists."}
    report_content = schema["paths"]["/studies/{study}/report"]["get"]["responses"]["200"]["content"]
    report_content["application/json"] = {"schema": {"type": "object"}}
    return schema


def _problem_response(scope: Any, error: Exception) -> Response[bytes]:  # noqa: ANN401 - of ASGI
    """Return an error as an answer."""
    name, path = scope["state"].get("id", ""), scope["path"][:200]
    if isinstance(error, TruearmError):
        refused = models.as_refused(error)
        if refused.problem.status >= 500:
            LOG.error(str(error), extra={"fields": {"event": "failed", "request": name}})
    elif isinstance(error, HTTPException) and error.status_code < 500:
        what = {404: f"there is no page {path!r}", 405: f"{scope['method']} is not allowed for {path!r}"}
        detail = f"{what.get(error.status_code, error.detail)}; see /openapi.json for what is"
        more = {"field": "path", "value": path, "headers": dict(error.headers or {})}
        refused = Refused(error.status_code, error.detail, detail, **more)
    else:
        LOG.error("internal error", exc_info=error, extra={"fields": {"event": "broken", "request": name}})
        detail = f"the server had an internal error; its log has more under request {name}, please report it"
        refused = Refused(500, "Error", detail)
    body, status, media = msgspec.json.encode(refused.problem), refused.problem.status, "application/problem+json"
    return Response(body, status_code=status, headers=refused.headers, media_type=media)


class Gate:
    """The outermost layer: host and rate of a request, headers of its answer, and a log line."""

    def __init__(self, app: Litestar, service: Service) -> None:
        self._app, self._service = app, service
        self._window, self._counts = 0.0, Counter[str]()  # requests of each client in two seconds

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:  # noqa: ANN401
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status, method = time.perf_counter(), 0, scope["method"]
        state: dict[str, Any] = scope.setdefault("state", {})
        state |= {"id": secrets.token_hex(6), "is_head": method == "HEAD"}

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = {name.decode().lower(): value.decode("latin-1") for name, value in message["headers"]}
                headers = {**_HEADERS, **headers, "x-request-id": state["id"]}
                message["headers"] = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
            elif state["is_head"] and message["type"] == "http.response.body":
                message = {**message, "body": b"", "more_body": False}
            await send(message)

        has_limit = not scope["path"].endswith(("/events", "/report", "/readings.csv", "/readings.parquet"))
        try:
            async with asyncio.timeout(_REQUEST_TIMEOUT_S if has_limit else None):
                await self._check(scope)
                scope["method"] = "GET" if state["is_head"] else method
                await self._app(scope, receive, send_with_headers)
        except Exception as error:
            if status:
                raise
            if isinstance(error, TimeoutError):
                error = _timeout_error(self._service.database, _REQUEST_TIMEOUT_S)
            response = _problem_response(scope, error)
            await response.to_asgi_response(None, Request(scope))(scope, receive, send_with_headers)
        finally:
            milliseconds = 1000 * (time.perf_counter() - started)
            fields = {
                "event": "request",
                "request": state["id"],
                "method": method,
                "path": scope["path"],
                "status": status,
                "ms": round(milliseconds, 3),
                "token": state["grant"].name if "grant" in state else None,
            }
            line = f"{method} {printable(scope['path'])} {status} {milliseconds:.0f} ms"
            LOG.info(line, extra={"fields": fields})

    async def _check(self, scope: Any) -> None:  # noqa: ANN401
        """Refuse too many requests and, while no token is needed, names that others point at this machine."""
        headers = Headers.from_scope(scope)
        if sum(len(name) + len(value) for name, value in scope["headers"]) > _MAX_HEAD_BYTES:
            detail = f"the head may have {_MAX_HEAD_BYTES} bytes at most; send fewer or shorter headers"
            raise Refused(431, "Head too large", detail, headers={"Connection": "close"})
        if scope["path"] != "/healthz":  # a busy server is healthy
            self._count(scope)  # before the token, so that guesses count
            await self._service.tokens.refresh()
            name = re.sub(r":\d+$", "", headers.get("host", ""))
            if not self._service.tokens.required and not is_loopback(name):
                detail = f"Host {name!r:.80} is not this machine; use 127.0.0.1, or create a token"
                raise Refused(421, "Misdirected", detail, field="Host", value=name)
        accept, found = headers.get("accept", ""), re.fullmatch(r"/studies(?:/([^/]+))?", scope["path"])
        is_browser = "text/html" in accept and "application/json" not in accept
        if found and is_browser and scope["method"] in ("GET", "HEAD"):
            page = "/" if found[1] is None else f"/s/{quote(found[1], safe='')}"
            raise Refused(303, "See the page", f"the page for browsers is {page}", headers={"Location": page})

    def _count(self, scope: Any) -> None:  # noqa: ANN401
        rate, now = self._service.settings.rate, time.monotonic()
        if now - self._window > 2:
            self._window, self._counts = now, Counter()
        client = client_network((scope.get("client") or ("",))[0])
        self._counts[client] += 1
        if self._counts[client] > 2 * rate:
            detail = f"more than {rate:g} requests a second; wait, and send several readings in one request"
            raise Refused(429, "Too many requests", detail, headers={"Retry-After": "1"})
