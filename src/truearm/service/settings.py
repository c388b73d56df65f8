"""Settings of a server: where it listens, its database, and its limits."""

from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import msgspec

from truearm.errors import InvalidArgument


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a request, a study and a client."""

    body: int = 1_000_000  # bytes: a full batch with notes
    batch: int = 1000  # readings or pulls in one request
    arms: int = 500
    studies: int = 10_000
    rate: float = 200.0  # requests per second of one address, with bursts of twice as many
    streams: int = 200  # clients that follow events, per process
    idle: int = 100  # connections of one address that wait for a request
    patience: float = 10.0  # seconds in which the head and the body of a request must arrive


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Where a server listens and what it serves."""

    database: str = "truearm.db"
    host: str = "127.0.0.1"
    port: int = 8000
    proxy: str | None = None
    """Addresses or networks of reverse proxies, separated by commas, whose X-Forwarded-For is trusted."""
    limits: Limits = Limits()


@lru_cache(1000)
def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@lru_cache(1000)
def client_network(address: str) -> str:
    """Return the address of a client, in IPv6 its network: one client has a whole /64."""
    try:
        found = IPv6Address(address)
    except ValueError:
        return address
    return str(found.ipv4_mapped or IPv6Network((int(found), 64), strict=False))


def trusted_proxies(proxy: str) -> str:
    """Return all forms in which the addresses of proxies may arrive."""
    found: list[str] = []
    for text in map(str.strip, proxy.split(",")):
        try:
            known = ip_network(text)
        except ValueError:
            try:
                hint = f"; did you mean {ip_network(text, strict=False)}?"
            except ValueError:
                hint = ""
            msg = (
                "proxy must be an address or a network, such as 10.0.0.1 or 10.0.0.0/8, several with commas, "
                f"but got {text!r:.80}{hint}"
            )
            raise InvalidArgument(msg) from None
        found.append(str(known))
        if isinstance(known, IPv4Network):  # as a server that listens on :: sees it
            found.append(f"::ffff:{known.network_address}/{96 + known.prefixlen}")
    return ",".join(found)


def check_host(host: str, *, tokens: int) -> None:
    """Refuse to listen for other machines while no token is needed."""
    if not host:
        msg = "host must be an address or a name, but got ''; remove it to serve this machine only"
        raise InvalidArgument(msg)
    if not tokens and not is_loopback(host):
        msg = (
            f"host {host!r} can be reached from other machines, and this database has no token; create one first "
            "with --new-token admin, or serve 127.0.0.1"
        )
        raise InvalidArgument(msg)
