"""A server process on uvicorn: bind, log (JSON, or text on a terminal), close idle connections, shut down."""

import asyncio
import json
import logging
import signal
import socket
import sys
import time
from collections import Counter
from contextlib import suppress
from typing import Any

import uvicorn

from truearm.errors import InvalidArgument
from truearm.service.access import Settings, check_host, parse_proxies
from truearm.service.app import LOG, Service, create_app

_SHUTDOWN_S = 10  # for running requests
_SWEEP_S = 0.25


class JsonLines(logging.Formatter):
    """Log records as lines of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))
        line = {"at": at, "level": record.levelname.lower(), "message": record.getMessage()}
        trace = {"traceback": self.formatException(record.exc_info)} if record.exc_info else {}
        return json.dumps(line | getattr(record, "fields", {}) | trace)


def _bind(host: str, port: int) -> socket.socket:
    try:
        # not `create_server`: without the protocol, asyncio does not turn off Nagle's algorithm (40 ms per answer)
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(2048)
    except (OSError, UnicodeError) as error:
        msg = f"cannot bind host {host!r} and port {port}: {error}; choose others with --host and --port"
        raise InvalidArgument(msg) from None
    return listening


async def _close_idle(server: uvicorn.Server, settings: Settings) -> None:
    """Close connections that send no request in time, and those of an address that has too many."""
    since: dict[Any, float] = {}  # keys have the last request: a busy connection is idle too when we look
    while True:
        now, connections = time.monotonic(), list[Any](server.server_state.connections)
        idle = [(one, one.cycle) for one in connections if one.cycle is None or one.cycle.response_complete]
        since = {key: since.get(key, now) for key in idle}
        count = Counter((one.client or ("",))[0] for one, _ in idle)
        for (one, _), start in since.items():
            address, is_new = (one.client or ("",))[0], start == now  # its request may be on the way
            if now - start > settings.patience or (count[address] > settings.max_idle and not is_new):
                count[address] -= 1
                with suppress(Exception):
                    one.transport.close()
        await asyncio.sleep(_SWEEP_S)


def _raise_file_limit() -> None:
    """Allow as many open connections as the system does."""
    with suppress(ImportError, OSError, ValueError):  # Windows has no such limit
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def serve(settings: Settings) -> None:
    """Serve until a signal ends it."""
    proxies = None if settings.proxy is None else parse_proxies(settings.proxy)
    service = Service(settings)
    service.tokens.read()
    check_host(settings.host, tokens=len(service.tokens))
    listening = _bind(settings.host, settings.port)
    handler = logging.StreamHandler(sys.stderr)
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    handler.setFormatter(logging.Formatter("{asctime} {message}", "%H:%M:%S", "{") if is_terminal else JsonLines())
    for name, level in (("truearm.service", logging.INFO), ("uvicorn.error", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
    _raise_file_limit()
    tasks = set()

    async def start() -> None:
        host, port = listening.getsockname()[:2]
        url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        name, tokens = service.database.name, len(service.tokens)
        needed = "Requests need a token." if tokens else "Requests from this machine need no token."
        fields = {"event": "listening", "url": url, "database": name, "tokens": tokens}
        LOG.info(f"Serving {url} from {name}. {needed} Press Ctrl-C to stop.", extra={"fields": fields})
        tasks.add(asyncio.create_task(_close_idle(server, settings)))

    config = uvicorn.Config(
        create_app(service, start),
        http="h11",  # it limits the size of a head
        ws="none",
        access_log=False,
        log_config=None,
        server_header=False,
        timeout_graceful_shutdown=_SHUTDOWN_S,
        proxy_headers=proxies is not None,  # or any client could claim another address
        forwarded_allow_ips=proxies or "",
    )
    server = uvicorn.Server(config)
    service.is_ending = lambda: server.should_exit
    for number in (signal.SIGINT, signal.SIGTERM):  # uvicorn raises the signal again when it has shut down
        signal.signal(number, lambda *_: None)
    server.run([listening])
    service.database.close()
