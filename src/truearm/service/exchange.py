"""One HTTP/1.1 connection for small requests, one after the other. Standard library only.

A request is one packet, because each piece that comes by itself wakes the server once more. Of the head of an
answer only what its length needs is read: `http.client` reads it like that of a mail, and takes as long as an ask.
"""

import socket
import ssl
import threading
from urllib.parse import SplitResult

_LINE = 65_536  # bytes of a line, and
_LINES = 100  # lines of a head: more is an attack


class Exchange:
    """A connection to a server, opened when it is first needed and kept while the server keeps it.

    Parameters
    ----------
    parts
        Scheme, host and port of the server.
    timeout
        Seconds to wait for each part of an answer.
    headers
        What every request says.
    """

    def __init__(self, parts: SplitResult, timeout: float, headers: dict[str, str]) -> None:
        self._secure, self._timeout = parts.scheme == "https", timeout
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if self._secure else 80)
        name = f"[{self._host}]" if ":" in self._host else self._host.encode("idna").decode()
        named = {"Host": f"{name}:{parts.port}" if parts.port else name, **headers}
        self._head = "".join(f"{name}: {value}\r\n" for name, value in named.items())
        self._socket: socket.socket | None = None
        self._lock = threading.Lock()  # of threads that share it, each would read what another asked for

    def close(self) -> None:
        """Let go of the connection; the next request opens one again."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._socket is not None:
            self._file.close()
            self._socket.close()
        self._socket = None

    def send(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        """Send a request and return status and body of its answer; an error of the connection is an OSError."""
        head = f"{method} {path} HTTP/1.1\r\n{self._head}Content-Length: {len(body)}\r\n\r\n"
        with self._lock:
            try:
                if self._socket is None:
                    self._open()
                assert self._socket is not None
                self._socket.sendall(head.encode() + body)
                status, found, stays = self._answer()
            except BaseException:
                self._close()
                raise
            if not stays:
                self._close()
        return status, found

    def _open(self) -> None:
        made = socket.create_connection((self._host, self._port), self._timeout)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._secure:
            made = ssl.create_default_context().wrap_socket(made, server_hostname=self._host)
        self._socket, self._file = made, made.makefile("rb")

    def _answer(self) -> tuple[int, bytes, bool]:
        """Return status and body, and whether the connection may be used again."""
        status = 100
        while status < 200:  # what is said before the answer
            version, _, rest = self._line().partition(b" ")
            if not version.startswith(b"HTTP/1.") or not rest[:3].isdigit():
                msg = f"what answers speaks no HTTP, but says {version[:40]!r}"
                raise ConnectionError(msg)
            status, headers = int(rest[:3]), self._headers()
        stays = version == b"HTTP/1.1" and b"close" not in headers.get(b"connection", b"").lower()
        if status in (204, 304):
            return status, b"", stays
        if b"chunked" in headers.get(b"transfer-encoding", b"").lower():
            return status, self._chunks(), stays
        length = headers.get(b"content-length")
        return (status, self._file.read(), False) if length is None else (status, self._read(_size(length)), stays)

    def _line(self) -> bytes:
        line = self._file.readline(_LINE + 1)
        if not line.endswith(b"\n"):
            msg = "the head of the answer is too long" if len(line) > _LINE else "the connection was closed"
            raise ConnectionError(msg)
        return line.rstrip(b"\r\n")

    def _headers(self) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        for _ in range(_LINES):
            if not (line := self._line()):
                return found
            name, _, value = line.partition(b":")
            found[name.lower()] = value.strip()
        msg = f"the head of the answer has more than {_LINES} lines"
        raise ConnectionError(msg)

    def _chunks(self) -> bytes:
        found = []
        while size := _size(self._line().partition(b";")[0], 16):
            found.append(self._read(size))
            self._line()
        self._headers()  # what may follow the last one
        return b"".join(found)

    def _read(self, size: int) -> bytes:
        found = self._file.read(size)
        if len(found) < size:
            msg = f"the connection was closed after {len(found)} of {size} bytes of the answer"
            raise ConnectionError(msg)
        return found


def _size(text: bytes, base: int = 10) -> int:
    try:
        size = int(text, base)
    except ValueError:
        size = -1
    if size < 0:
        msg = f"the answer has no length, but {text[:40]!r}"
        raise ConnectionError(msg)
    return size
