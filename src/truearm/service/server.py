"""A server process: listens, logs lines of JSON, refuses slow heads, and ends in good order."""

import asyncio
import json
import logging
import socket
import sys
import time
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from truearm.service.app import LOG, Service
from truearm.service.settings import Settings, check_open

_HEAD = 16_384  # bytes of the head of a request
_GRACE = 10  # seconds that requests have to end


class Lines(logging.Formatter):
    """Log records as lines of JSON.

    Examples
    --------
    >>> record = logging.makeLogRecord({"msg": "request", "levelname": "INFO", "fields": {"status": 200}})
    >>> json.loads(Lines().format(record))["status"]
    200
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        line: dict[str, Any] = {
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created)),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


class _Patient(H11Protocol):
    """Connections that do not send a whole head in time are closed: many slow ones would keep others out."""

    patience = 10.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._due = self.loop.call_later(self.patience, self._check_head)

    def connection_lost(self, exc: Exception | None) -> None:
        self._due.cancel()
        super().connection_lost(exc)

    def _check_head(self) -> None:
        if self.cycle is None and not self.transport.is_closing():
            self.transport.close()


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

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._service.followers.close()  # they would keep the server for as long as it waits
        super().handle_exit(sig, frame)


def serve(settings: Settings, listening: socket.socket | None = None) -> None:
    """Serve until a signal ends it; `listening` is a socket that is bound already.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     serve(Settings(database=f"{folder}/studies.db", host="0.0.0.0"))
    Traceback (most recent call last):
        ...
    truearm.errors.InvalidArgument: host '0.0.0.0' can be reached from other machines, and this database has no
    token; ...
    """
    service = Service(settings)
    try:
        check_open(settings.host, tokens=len(service.tokens))
    except BaseException:
        service.close()
        raise
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines())
    for name, level in (("truearm.service", logging.INFO), ("uvicorn.error", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
    config = uvicorn.Config(
        service.app(),
        host=settings.host,
        port=settings.port,
        http=type("Patient", (_Patient,), {"patience": settings.limits.patience}),
        ws="none",
        access_log=False,
        log_config=None,
        server_header=False,
        h11_max_incomplete_event_size=_HEAD,
        timeout_graceful_shutdown=_GRACE,
        limit_concurrency=1000,
    )
    _Server(config, service).run([listening] if listening else None)
