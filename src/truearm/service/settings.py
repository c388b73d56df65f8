"""What a server may be told: where it listens, what it keeps its logs in, and the limits it holds everybody to."""

from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import msgspec

from truearm.errors import InvalidArgument


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much one request, one study and one client may ask for."""

    body: int = 1_000_000  # bytes: a full batch with notes
    batch: int = 1000  # readings or pulls in one request
    arms: int = 500
    studies: int = 10_000
    rate: float = 200.0  # requests a second of one address; twice as many at once
    streams: int = 200  # followers of events in one process
    patience: float = 10.0  # seconds until the head and body of a request have come


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Where a server listens and what it serves."""

    database: str = "truearm.db"
    host: str = "127.0.0.1"
    port: int = 8000
    proxy: str | None = None
    """Addresses or networks of reverse proxies, with commas, which are believed when they say who asks."""
    limits: Limits = Limits()


@lru_cache(1000)
def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@lru_cache(1000)
def network(address: str) -> str:
    """Return what one client of IPv6 has: not an address, but a network of them."""
    try:
        found = IPv6Address(address)
    except ValueError:
        return address
    return str(found.ipv4_mapped or IPv6Network((int(found), 64), strict=False))


def believed(proxy: str) -> str:
    """Return all ways in which the addresses of proxies may come, or refuse what is none."""
    found: list[str] = []
    for text in proxy.split(","):
        try:
            known = ip_network(text.strip())
        except ValueError:
            msg = (
                "proxy must be an address or a network, such as 10.0.0.1 or 10.0.0.0/8, several with commas, "
                f"but got {text!r:.80}{_network_of(text.strip())}"
            )
            raise InvalidArgument(msg) from None
        found.append(str(known))
        if isinstance(known, IPv4Network):  # as a server that listens at :: sees it
            found.append(f"::ffff:{known.network_address}/{96 + known.prefixlen}")
    return ",".join(found)


def _network_of(text: str) -> str:
    try:
        return f"; did you mean {ip_network(text, strict=False)}?"
    except ValueError:
        return ""


def check_open(host: str, *, tokens: int) -> None:
    """Refuse to serve other machines while nobody needs a token."""
    if not host:
        msg = "host must be an address or a name, but got ''; leave it out to serve this machine alone"
        raise InvalidArgument(msg)
    if not tokens and not is_loopback(host):
        msg = (
            f"host {host!r} can be reached from other machines, and this database has no token; make one first "
            "with --new-token admin, or serve 127.0.0.1"
        )
        raise InvalidArgument(msg)
