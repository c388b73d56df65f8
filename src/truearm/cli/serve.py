"""`truearm serve`: studies over HTTP."""

from collections.abc import Callable
from contextvars import Context
from typing import Any

import click

from truearm.cli import options
from truearm.errors import InvalidArgument


def _option(name: str, variable: str, **more: Any) -> Callable[[Any], Any]:  # noqa: ANN401 - of click
    return click.option(name, envvar=f"TRUEARM_{variable}", show_envvar=True, show_default=True, **more)


@click.command("serve", context_settings={"max_content_width": 100})
@_option(
    "--database",
    "DATABASE",
    default="truearm.db",
    metavar="FILE|URL",
    help="A SQLite file, or postgresql://user:password@host/name.",
)
@_option("--host", "HOST", default="127.0.0.1", help="Address to bind; any but loopback needs a token.")
@_option("--port", "PORT", type=options.Whole(0, 65535), default=8000, help="0 picks a free port.")
@_option("--max-body", "MAX_BODY", type=options.Whole(1000), default=1_000_000, help="Bytes per request.")
@_option("--max-batch", "MAX_BATCH", type=options.Whole(1), default=1000, help="Readings or pulls per request.")
@_option("--max-arms", "MAX_ARMS", type=options.Whole(1), default=500, help="Arms per study.")
@_option("--max-studies", "MAX_STUDIES", type=options.Whole(1), default=10_000, help="Studies in all.")
@_option("--rate", "RATE", type=options.Real(1), default=200, help="Requests per second and address.")
@_option(
    "--proxy",
    "PROXY",
    metavar="ADDRESS",
    help="Address or network of a reverse proxy whose X-Forwarded-For is trusted.",
)
@_option(
    "--patience",
    "PATIENCE",
    type=options.Real(0, min_open=True),
    default=10,
    help="Seconds in which a request must arrive.",
)
@click.option("--new-token", metavar="ROLE[:STUDY]", help="Print a new token (viewer, worker, admin) and exit.")
@click.option("--remove-token", metavar="NAME", help="Revoke a token and exit.")
@click.option("--tokens", is_flag=True, help="List the names and roles of tokens and exit.")
def serve_command(
    *,
    database: str,
    host: str,
    port: int,
    proxy: str | None,
    new_token: str | None,
    remove_token: str | None,
    tokens: bool,
    **most: Any,  # noqa: ANN401
) -> None:
    """Serve studies over HTTP: ask and tell for any number of people and machines, and a live page.

    \b
    truearm serve                                     http://127.0.0.1:8000, kept in truearm.db
    truearm serve --new-token admin                   print a token; from then on all requests need one
    truearm serve --host 0.0.0.0 --port 80            for other machines; needs a token first
    truearm serve --database postgresql://me@db/name  several servers may share it

    Every reading is on the disk before it is acknowledged. Ctrl-C or SIGTERM shuts it down cleanly.
    """  # noqa: D301 - click wants the control character
    try:
        from truearm.service import access
        from truearm.service.server import serve
        from truearm.store import Database
    except ModuleNotFoundError as error:
        msg = f"truearm serve needs {error.name}; install it with: pip install 'truearm[serve]'"
        raise InvalidArgument(msg) from None
    _check_one({"--new-token": new_token, "--remove-token": remove_token, "--tokens": tokens or None})
    if new_token is not None:
        role, colon, study = new_token.partition(":")
        click.echo(access.create_token(Database(database), role, study if colon else None))
    elif remove_token is not None:
        if not access.remove_token(Database(database), remove_token):
            msg = f"there is no token {remove_token!r}; see --tokens"
            raise InvalidArgument(msg)
    elif tokens:
        for name, _, role, bound in access.list_tokens(Database(database)):
            click.echo(f"{name}\t{role}\t{bound or 'all studies'}")
    else:
        limits = access.Limits(
            body=most["max_body"],
            batch=most["max_batch"],
            arms=most["max_arms"],
            studies=most["max_studies"],
            rate=most["rate"],
            patience=most["patience"],
        )
        # its words are for programs, in a context of their own: fields, not options
        Context().run(serve, access.Settings(database=database, host=host, port=port, proxy=proxy, limits=limits))


def _check_one(given: dict[str, object]) -> None:
    """Refuse several actions at once: only one of them would be done."""
    names = [name for name, value in given.items() if value is not None]
    if len(names) > 1:
        msg = f"{' and '.join(names)} cannot be combined, and nothing was done; use one at a time"
        raise InvalidArgument(msg)
