"""`truearm serve`: studies over HTTP; `truearm work`: this machine measures for one of them."""

import math
import re
import shlex
import shutil
import signal
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click

from truearm.claims.plain import from_plain
from truearm.cli.answer import GOOD, exit_code
from truearm.cli.options import declare
from truearm.commands.command import Command
from truearm.commands.measure import Conditions, measure
from truearm.errors import InvalidArgument, TruearmError
from truearm.events import Noted
from truearm.problem import Problem, Pull, refuse
from truearm.report.numbers import name_of, plural
from truearm.report.words import headline
from truearm.service.client import Client, ServiceError

_FIRST_ANSWER_S = 0.5  # then a line says that the server does not answer
_NOT_PLAIN = re.compile(r"^-|[^\w.=:@%+,-]")  # in a name
_CODE = re.compile(r"[^\w./=:@%+,-]")  # in a word of the command: more than an option
_SERVE = """
--database FILE|URL  A SQLite file, or postgresql://user:password@host/name. [default: truearm.db] [env var:
    TRUEARM_DATABASE]
--host ADDRESS  Address to bind; any but loopback needs a token. [default: 127.0.0.1] [env var: TRUEARM_HOST]
--port PORT  0 picks a free port. [default: 8000] [env var: TRUEARM_PORT]
--max-body BYTES  Bytes per request. [default: 1000000] [env var: TRUEARM_MAX_BODY]
--max-batch N  Readings or pulls per request. [default: 1000] [env var: TRUEARM_MAX_BATCH]
--max-arms N  Arms per study. [default: 500] [env var: TRUEARM_MAX_ARMS]
--max-studies N  Studies in all. [default: 10000] [env var: TRUEARM_MAX_STUDIES]
--rate RATE  Requests per second and address. [default: 200] [env var: TRUEARM_RATE]
--proxy ADDRESS  Address or network of a reverse proxy whose X-Forwarded-For is trusted. [env var: TRUEARM_PROXY]
--patience SECONDS  Time in which a whole request must arrive. [default: 10] [env var: TRUEARM_PATIENCE]
--new-token ROLE[:STUDY]  Print a new token (viewer, worker, admin) and exit.
--remove-token NAME  Revoke a token and exit.
--tokens  List the names and roles of tokens and exit.
"""
_WORK = """
--token TOKEN  What `truearm serve --new-token` printed. [env var: TRUEARM_TOKEN]
--worker NAME  Name of this worker; host and process by default.
--metric wall|cpu|memory|stdout  What is measured: the number on the last line that is printed, wall time, cpu
    time, or peak memory. [default: stdout]
+ timeout
-i, --ignore-failure  Go on if a run fails: it is a missing reading and counts at its worst.
--any-name  Allow any arm name: you trust the author of the study, or the command treats names as text.
-M, --max-pulls N  Stop after this many pulls of this worker.
+ quiet
"""


@click.command("serve")
@declare(_SERVE)
def serve_command(*, database: str, **chosen: Any) -> None:  # noqa: ANN401
    """Serve studies over HTTP: ask and tell for any number of people and machines, and a live page.

    \b
    truearm serve                                     127.0.0.1:8000, truearm.db
    truearm serve --new-token admin                   all requests need one then
    truearm serve --host 0.0.0.0 --port 80            needs a token first
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
    new, old = chosen["new_token"], chosen["remove_token"]
    given = [f"--{name.replace('_', '-')}" for name in ("new_token", "remove_token", "tokens") if chosen[name]]
    refuse(len(given) > 1, f"{' and '.join(given)} cannot be combined, and nothing was done; use one at a time")
    if new is not None:
        role, colon, study = new.partition(":")
        click.echo(access.create_token(Database(database), role, study if colon else None))
    elif old is not None:
        refuse(not access.remove_token(Database(database), old), f"there is no token {old!r}; see --tokens")
    elif chosen["tokens"]:
        for name, _, role, bound in access.list_tokens(Database(database)):
            click.echo(f"{name}\t{role}\t{bound or 'all studies'}")
    else:
        settings = {name: value for name, value in chosen.items() if "token" not in name}
        serve(access.Settings(database=database, **settings))


@click.command("work")
@click.argument("url")
@click.argument("study")
@click.argument("words", nargs=-1, required=True, metavar="-- COMMAND...")
@declare(_WORK)
def work_command(*, url: str, study: str, words: tuple[str, ...], **chosen: Any) -> int:  # noqa: ANN401
    """Measure for a study that `truearm serve` hosts, until it is decided.

    \b
    truearm work http://server:8000 tuning -- ./train --rate {arm}
    truearm work http://server:8000 sort --metric wall -- ./sort {arm}

    The command comes after -- and runs without a shell; {arm} is replaced by the arm to measure and is never the
    program. A run that fails is a missing reading and ends the work, unless -i is given. Nothing is measured
    twice. The author of the study chose the arm names: names with characters other than letters, digits and
    . = : @ % + , - _ (a slash, for example) or with a leading dash need --any-name.
    """  # noqa: D301 - click wants the control character
    template = shlex.split(words[0]) if len(words) == 1 else list(words)
    _check_template(template)
    conditions = Conditions(timeout=chosen["timeout"], ignore_failure=chosen["ignore_failure"])
    with Client(url, study, token=chosen["token"], patience=_FIRST_ANSWER_S) as first:
        _report_silence(first)
    with Client(url, study, token=chosen["token"], worker=chosen["worker"]) as client:
        state = client.state
        commands = _commands(template, state, any_name=chosen["any_name"])
        worst = from_plain(Problem, state["definition"]["problem"], "problem").time_out
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        made = 0
        while (chosen["max_pulls"] is None or made < chosen["max_pulls"]) and (pulls := client.ask()):
            for i, pull in enumerate(pulls):
                with _account(client, pull, pulls[i + 1 :]):
                    measured = measure(commands[pull.arm], chosen["metric"], conditions)
                value = worst if measured.run.timed_out else measured.value
                client.tell(pull, Noted(value, {**measured.details(), "host": socket.gethostname()}))
                made += 1
                if not chosen["quiet"]:
                    click.echo(f"{pull.ticket}\t{name_of(pull.arm)}\t{value:g}", err=True)
        result = client.result if client.done else None
    ending = f"The study is not decided; see {client.url}/s/{client.name}"
    if result is not None:
        best = "no winner" if result.best is None else headline(result)
        ending = f"The study is done: {result.status.value}, {best}."
    click.echo(f"{plural(made, 'pull')} measured here. {ending}")
    return GOOD if result is None else exit_code(result)


def _check_template(words: Sequence[str]) -> None:
    """Refuse a command that cannot start, before a pull is requested and lost."""
    line = shlex.join(words)
    msg = f"command {line!r} does not contain {{arm}}; write {{arm}} where the arm's name belongs"
    refuse("{arm}" not in line, msg)
    msg = "{arm} cannot be the program: the author of the study would choose it; write URL STUDY -- PROGRAM {arm}"
    refuse("{arm}" in words[0], msg)
    msg = f"there is no program {words[0]!r} here (no shell is used); check its name and the directory"
    refuse(shutil.which(words[0]) is None, msg)


def _report_silence(client: Client) -> None:
    """Print a line if the server does not answer: it may start later, or the address is wrong."""
    try:
        _ = client.state
    except ServiceError as error:
        if error.status:
            raise
        click.echo(f"{client.url} does not answer; trying for a minute (Ctrl-C to stop).", err=True)


def _commands(template: Sequence[str], state: Mapping[str, Any], *, any_name: bool) -> dict[str, Command]:
    names = [arm["name"] for arm in state["arms"]]
    odd = None if any_name else next(filter(_NOT_PLAIN.search, names), None)
    why = "is not a plain name, and the command could take it for a program, an option or code"
    refuse(odd is not None, f"arm {odd!r} {why}; use plain names in the study, or allow any with --any-name")
    inside = next((word for word in template if "{arm}" in word and _CODE.search(word.replace("{arm}", ""))), None)
    unsafe = next((name_of(name) for name in names if shlex.quote(name) != name), None)
    remedy = "make {arm} a separate word, for example in sh -c './measure \"$1\"' sh {arm}"
    refuse(inside and unsafe, f"arm {unsafe} would become code in {inside!r}; {remedy}")
    lines = {name: shlex.join(word.replace("{arm}", name) for word in template) for name in names}
    return {name: Command(line, name=name, shell="none") for name, line in lines.items()}


@contextmanager
def _account(client: Client, current: Pull, others: Sequence[Pull]) -> Iterator[None]:
    """If the work ends early, record the current pull as missing and release the pulls that were not started."""
    try:
        yield
    except (TruearmError, KeyboardInterrupt) as error:
        client.tell(current, Noted(math.nan, {"failed": type(error).__name__, "host": socket.gethostname()}))
        for pull in others:
            client.release(pull)
        raise
