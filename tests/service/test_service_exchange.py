"""The client's own HTTP against servers that answer, byte by byte, what they are told to."""

import shutil
import socket
import ssl
import subprocess
import threading
from urllib.parse import urlsplit

import pytest

from truearm.service.exchange import Exchange

HEAD = b"HTTP/1.1 200 OK\r\n"
ANSWERS = {
    "a length": (HEAD + b"Content-Length: 5\r\n\r\nhello", (200, b"hello")),
    "chunks": (
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n3;x=1\r\nhel\r\n2\r\nlo\r\n0\r\nTrailer: 1\r\n\r\n",
        (200, b"hello"),
    ),
    "until the end": (b"HTTP/1.0 200 OK\r\n\r\nhello", (200, b"hello")),
    "nothing": (b"HTTP/1.1 204 No Content\r\n\r\n", (204, b"")),
    "a word before": (b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + b"Content-Length: 0\r\n\r\n", (200, b"")),
}
WRONG = {
    "another protocol": (b"220 mail.example ESMTP\r\n", "speaks no HTTP"),
    "half a body": (HEAD + b"Content-Length: 9\r\n\r\nhello", "closed after 5 of 9 bytes"),
    "half a chunk": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n9\r\nhello", "closed after 5 of 9 bytes"),
    "half a head": (HEAD, "closed"),
    "no length": (HEAD + b"Content-Length: -1\r\n\r\n", "has no length"),
    "a long line": (HEAD + b"X: " + b"a" * 70_000, "too long"),
    "many lines": (HEAD + b"X: 1\r\n" * 200 + b"\r\n", "more than 100 lines"),
}


def serve(answers, wrapped=lambda sock: sock):
    """Return the port of a server that reads one request for each answer, a connection each, and what it read."""
    listener, read = socket.create_server(("127.0.0.1", 0)), []

    def work():
        with listener:
            for answer in answers:
                with wrapped(listener.accept()[0]) as connection:
                    read.append(connection.recv(65_536))
                    connection.sendall(answer)

    threading.Thread(target=work, daemon=True).start()
    return listener.getsockname()[1], read


@pytest.mark.parametrize("kind", ANSWERS)
def test_an_answer_is_read_however_its_end_is_told(kind):
    answer, expected = ANSWERS[kind]
    port, read = serve([answer])
    exchange = Exchange(urlsplit(f"http://127.0.0.1:{port}"), 5.0, {"X-Name": "tea"})
    assert exchange.send("POST", "/a", b"{}") == expected
    exchange.close()
    assert read == [
        f"POST /a HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nX-Name: tea\r\nContent-Length: 2\r\n\r\n{{}}".encode()
    ]


@pytest.mark.parametrize("kind", WRONG)
def test_half_an_answer_is_an_error_of_the_connection(kind):
    answer, said = WRONG[kind]
    port, _ = serve([answer])
    with pytest.raises(OSError, match=said):
        Exchange(urlsplit(f"http://127.0.0.1:{port}"), 5.0, {}).send("GET", "/", b"")


@pytest.mark.parametrize("last", [b"Connection: close\r\n", b""])
def test_a_connection_that_was_closed_is_opened_again(last):
    answer = HEAD + last + b"Content-Length: 0\r\n\r\n"
    port, read = serve([answer, answer])
    exchange = Exchange(urlsplit(f"http://127.0.0.1:{port}"), 5.0, {})
    assert exchange.send("GET", "/1", b"") == (200, b"")
    if not last:  # nobody said that it would be closed: the caller learns of it, and may try again
        with pytest.raises(OSError, match=r"closed|reset|Broken"):
            exchange.send("GET", "/2", b"")
    assert exchange.send("GET", "/2", b"") == (200, b"")
    exchange.close()
    assert len(read) == 2


def secured(folder):
    """Return how a server speaks TLS, with a new certificate that only itself vouches for."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    words = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    words += " -addext subjectAltName=DNS:localhost"
    subprocess.run([*words.split(), "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    return context, certificate


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_a_name_is_checked_against_the_certificate(tmp_path, monkeypatch):
    context, certificate = secured(tmp_path)
    port, _ = serve([ANSWERS["chunks"][0]], lambda sock: context.wrap_socket(sock, server_side=True))
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    exchange = Exchange(urlsplit(f"https://localhost:{port}"), 5.0, {})
    assert exchange.send("GET", "/", b"") == (200, b"hello")
    exchange.close()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path):
    context, _ = secured(tmp_path)
    listener = socket.create_server(("127.0.0.1", 0))

    def work():
        with listener, listener.accept()[0] as plain:
            try:
                context.wrap_socket(plain, server_side=True)
            except (ssl.SSLError, OSError):
                return

    threading.Thread(target=work, daemon=True).start()
    with pytest.raises(ssl.SSLCertVerificationError):
        Exchange(urlsplit(f"https://localhost:{listener.getsockname()[1]}"), 5.0, {}).send("GET", "/", b"")
