"""A server process: listens, logs (JSON, or words on a terminal), refuses slow heads, ends in good order."""

import asyncio
import gc
import json
import logging
import re
import signal
import socket
import sys
import time
from functools import lru_cache
from http import HTTPStatus
from types import FrameType
from typing import Any, cast

import uvicorn
from starlette.responses import Response
from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from truearm.errors import InvalidArgument, printable
from truearm.service import problems
from truearm.service.app import HEAD, LARGE_HEAD, Service
from truearm.service.routes import LOG
from truearm.service.settings import Settings, believed, check_open

_WIRE = 16  # times the body: what a request may have with the sizes of its pieces, if those are small
_PLAIN = re.compile(rb"/studies/[A-Za-z0-9/-]+")  # an address without marks that mean something else
_JSON = json.JSONEncoder(check_circular=False)
_GRACE = 10  # seconds that requests have to end
_GARBAGE = (
    20_000,
    50,
    50,
)  # new objects between looks for cycles, of which a request makes none: a twentieth of a tell


class Lines(logging.Formatter):
    """Log records as lines of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line, or one for each of the requests of a record."""
        return "\n".join(_JSON.encode(self._line(record, fields)) for fields in _said(record))

    def _line(self, record: logging.LogRecord, fields: dict[str, Any]) -> dict[str, Any]:
        at = _utc(int(fields.get("at", record.created)))
        line = {"at": at, "level": record.levelname.lower(), "message": record.getMessage(), **fields}
        line["at"] = at
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return line


@lru_cache(4)
def _utc(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second))


def _said(record: logging.LogRecord) -> list[dict[str, Any]]:
    """Return the fields of each line of a record."""
    return getattr(record, "requests", None) or [getattr(record, "fields", {})]


class Words(logging.Formatter):
    """Log records for a person at a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a sentence or short lines."""
        return "\n".join(self._line(record, fields) for fields in _said(record))

    def _line(self, record: logging.LogRecord, fields: dict[str, Any]) -> str:
        if fields.get("event") == "listening":
            who = "Requests need a token." if fields["tokens"] else "Nobody on this machine needs a token."
            return f"Serving {fields['url']} from {fields['database']}. {who} Ctrl-C ends it."
        if fields.get("event") == "request":
            clock = time.strftime("%H:%M:%S", time.localtime(fields["at"]))
            what = f"{fields['method']} {printable(fields['path'])}"
            return f"{clock} {what} {fields['status']} {fields['ms']:.0f} ms"
        return f"{record.levelname.lower()}: {record.getMessage()}" + self._traced(record)

    def _traced(self, record: logging.LogRecord) -> str:
        return f"\n{self.formatException(record.exc_info)}" if record.exc_info else ""


class _Joined:
    """A transport that sends the head of an answer with the first of its body: each piece wakes the other end."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._pieces: list[bytes] = []

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - of the transport
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def write(self, data: bytes) -> None:
        self._pieces.append(data)
        if len(self._pieces) > 1:
            self._send()
        else:
            self._loop.call_soon(self._send)  # if nothing follows at once

    def close(self) -> None:
        self._send()
        self._transport.close()

    def write_whole(self, data: bytes) -> None:
        """Write what nothing follows."""
        self._pieces.append(data)
        self._send()

    def _send(self) -> None:
        pieces, self._pieces = self._pieces, []
        if pieces and not self._transport.is_closing():
            self._transport.write(b"".join(pieces))


class _Patient(HttpToolsProtocol):
    """Connections that do not send a whole head in time are closed: many slow ones would keep others out.

    So are those that send more than a head, or a whole request, may have: the parser keeps what it is given.

    A request that came whole is offered to the service at once, before a task is made for it.
    """

    service: Service
    patience, most = 10.0, 1_000_000

    _due: asyncio.TimerHandle | None = None
    _came = 0  # bytes of this request
    _offered: bytearray | None = None  # the body of a request, if that may be answered at once
    _first = True  # of what was read last: many in a row would keep others waiting

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast("asyncio.Transport", _Joined(transport, self.loop)))
        self._due = self.loop.call_later(self.patience, transport.close)

    def data_received(self, data: bytes) -> None:
        if self._idle:
            self._begin()
        self._came, self._first = self._came + len(data), True
        super().data_received(data)
        if self._offered is not None:
            self._take_back()  # the rest of its body is waited for
        if self._idle:
            if self._came > HEAD and not self.transport.is_closing():
                self._refuse()
            return
        self._disarm()  # the head is there; the application sees to the body
        if self._came > HEAD + _WIRE * self.most:
            self.transport.close()

    def on_headers_complete(self) -> None:
        first, self._first = self._first, False
        if first and _PLAIN.fullmatch(self.url) and self._is_free and not self._is_for_another:
            self.scope["method"] = self.parser.get_method().decode("ascii")
            self.scope["path"] = self.url.decode("ascii")
            self._offered = bytearray()
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if self._offered is None:
            super().on_body(body)
        else:
            self._offered += body

    def on_message_complete(self) -> None:
        if self._offered is not None:
            scope, only = cast("Scope", self.scope), len(self.connections) == 1
            answer = self.service.at_once(scope, bytes(self._offered), self, only=only)
            if answer is not None:
                self._offered, self._came = None, 0
                self._disarm()
                self._answer(answer, close=not self.parser.should_keep_alive())
                self.on_response_complete()
                return
            self._take_back()
        super().on_message_complete()

    @property
    def _is_free(self) -> bool:
        """Whether nothing stands in the way of an answer at once: no request before this one, no limit."""
        full = self.limit_concurrency is not None and len(self.connections) >= self.limit_concurrency
        usual = self.parser.get_http_version() == "1.1" and not self.parser.should_upgrade()
        return self._idle and usual and not (full or self.expect_100_continue or self.flow.write_paused)

    @property
    def _is_for_another(self) -> bool:
        """Whether a proxy may say who asks, which is looked at later."""
        return self.config.proxy_headers and b"x-forwarded-for" in dict(self.headers)

    def _take_back(self) -> None:
        """Do with a request what is done with all others."""
        body, self._offered = self._offered, None
        if not self.transport.is_closing():
            super().on_headers_complete()
            if body:
                super().on_body(bytes(body))

    def _answer(self, answer: Response, *, close: bool) -> None:
        headers = [*self.server_state.default_headers, *answer.raw_headers]
        if close and "connection" not in answer.headers:
            headers.append((b"connection", b"close"))
        head = b"".join([b"%b: %b\r\n" % header for header in headers])
        status = answer.status_code, HTTPStatus(answer.status_code).phrase.encode()
        transport = cast("_Joined", self.transport)
        transport.write_whole(b"HTTP/1.1 %d %b\r\n%b\r\n%b" % (*status, head, bytes(answer.body)))
        if close or answer.headers.get("connection") == "close":
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        super().connection_lost(exc)

    @property
    def _idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _begin(self) -> None:
        if self._due is None:
            self._came = 0
            self._due = self.loop.call_later(self.patience, self.transport.close)

    def _refuse(self) -> None:
        self._answer(problems.response(LARGE_HEAD), close=True)

    def _disarm(self) -> None:
        if self._due is not None:
            self._due.cancel()
        self._due = None


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for server in self.servers if self.started else ():
            host, port = server.sockets[0].getsockname()[:2]
            shown = f"[{host}]" if ":" in host else host
            fields = {
                "event": "listening",
                "url": f"http://{shown}:{port}",
                "database": str(self._service.database),
            }
            LOG.info("listening", extra={"fields": {**fields, "tokens": len(self._service.tokens)}})

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's signature
        """Begin to end; unlike uvicorn's own, do not send the signal to oneself again when all is done."""
        self._service.followers.close()  # they would keep the server for as long as it waits
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True


def _bound(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # asyncio looks for the protocol before it has small answers sent at once, which saves 40 ms of each
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except (OSError, UnicodeError) as error:
        msg = f"host {host!r} and port {port} cannot be listened at: {error}; choose others with --host and --port"
        raise InvalidArgument(msg) from None
    return listening


def serve(settings: Settings) -> None:
    """Serve until a signal ends it."""
    proxies = None if settings.proxy is None else believed(settings.proxy)
    service = Service(settings)
    try:
        check_open(settings.host, tokens=len(service.tokens))
        listening = _bound(settings.host, settings.port)
    except BaseException:
        service.close()
        raise
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Words() if sys.stderr.isatty() else Lines())
    for name, level in (("truearm.service", logging.INFO), ("uvicorn.error", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
    limits = settings.limits
    config = uvicorn.Config(
        service.app(),
        http=type(
            "Uninterrupted", (_Patient,), {"service": service, "patience": limits.patience, "most": limits.body}
        ),
        ws="none",
        access_log=False,
        log_config=None,
        server_header=False,
        timeout_graceful_shutdown=_GRACE,
        limit_concurrency=1000,
        proxy_headers=proxies is not None,  # or whoever asks could say that it is another
        forwarded_allow_ips=proxies or "",
    )
    gc.freeze()
    gc.set_threshold(*_GARBAGE)
    _Server(config, service).run([listening])
