"""`truearm work`: this machine measures for a study that is served elsewhere, with the code of a race."""

import math
import re
import shlex
import shutil
import signal
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

import click

from truearm.claims.plain import from_plain
from truearm.cli import options
from truearm.cli.gates import exit_code
from truearm.commands.command import Command
from truearm.commands.measure import METRICS, Conditions, measure
from truearm.errors import InvalidArgument, TruearmError
from truearm.events import Noted
from truearm.problem import Problem, Pull
from truearm.report.numbers import count, name_of
from truearm.service.client import Client, ServiceError

_FIRST_ANSWER_S = 0.5  # then a line says that the server does not answer
_NOT_PLAIN = re.compile(r"^-|[^\w.=:@%+,-]")  # in a name
_CODE = re.compile(r"[^\w./=:@%+,-]")  # in a word of the command: more than an option


@click.command("work", context_settings={"max_content_width": 100})
@click.argument("url")
@click.argument("study")
@click.argument("words", nargs=-1, required=True, metavar="-- COMMAND...")
@click.option(
    "--token", envvar="TRUEARM_TOKEN", show_envvar=True, help="What `truearm serve --new-token` printed."
)
@click.option("--worker", metavar="NAME", help="Name of this worker; host and process by default.")
@click.option(
    "--metric",
    type=click.Choice(METRICS),
    default="stdout",
    show_default=True,
    help="What is measured: the number on the last line that is printed, wall time, cpu time, or peak memory.",
)
@click.option("--timeout", type=options.DURATION, help="Kill a run after this many seconds; it counts as worst.")
@click.option(
    "-i",
    "--ignore-failure",
    is_flag=True,
    help="Count failed runs as missing readings, at their worst, instead of stopping.",
)
@click.option(
    "--any-name",
    is_flag=True,
    help="Allow any arm name: you trust the author of the study, or the command treats names as text.",
)
@click.option("-M", "--max-pulls", type=options.Whole(1), help="End after this many pulls of this worker.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but the end.")
def work_command(*, url: str, study: str, words: tuple[str, ...], **chosen: Any) -> None:  # noqa: ANN401
    """Measure for a study that `truearm serve` hosts, until it is decided.

    \b
    truearm work http://server:8000 tuning -- ./train --rate {arm}       the number it prints last
    truearm work http://server:8000 sort --metric wall -- ./sort {arm}   how long it takes

    The command comes after -- and runs without a shell; {arm} is replaced by the arm to measure and is never the
    program. A run that fails ends the work, or is a missing reading (-i). Nothing is measured twice. The author of
    the study chose the arm names: names with characters other than letters, digits and . = : @ % + , - _ (a slash,
    for example) or with a leading dash need --any-name.
    """  # noqa: D301 - click wants the control character
    template = shlex.split(words[0]) if len(words) == 1 else list(words)
    _check_template(template)
    conditions = Conditions(timeout=chosen["timeout"], ignore_failure=chosen["ignore_failure"])
    with Client(url, study, token=chosen["token"], patience=_FIRST_ANSWER_S) as first:
        _report_silence(first)
    with Client(url, study, token=chosen["token"], worker=chosen["worker"]) as client:
        state = client.state
        commands = _commands(template, state, any_name=chosen["any_name"])
        worst = from_plain(Problem, state["definition"]["problem"], "problem").censored
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        made = 0
        while (chosen["max_pulls"] is None or made < chosen["max_pulls"]) and (pulls := client.ask()):
            for i, pull in enumerate(pulls):
                with _account(client, pull, pulls[i + 1 :]):
                    found = measure(commands[pull.arm], chosen["metric"], conditions)
                value = worst if found.run.timed_out else found.value
                client.tell(pull, Noted(value, {**found.details(), "host": socket.gethostname()}))
                made += 1
                if not chosen["quiet"]:
                    click.echo(f"{pull.ticket}\t{name_of(pull.arm)}\t{value:g}", err=True)
        result = client.result if client.done else None
    were = "1 pull was" if made == 1 else f"{count(made)} pulls were"
    click.echo(f"{were} measured here. {_ending(client, result)}")
    if result is not None:
        raise SystemExit(exit_code(result))


def _check_template(words: Sequence[str]) -> None:
    """Refuse a command that cannot start before a pull is asked for, which would be lost."""
    if not any("{arm}" in word for word in words):
        msg = f"command {shlex.join(words)!r} does not contain {{arm}}; write {{arm}} where the arm's name belongs"
        raise InvalidArgument(msg)
    if "{arm}" in words[0]:
        msg = "{arm} cannot be the program: the author of the study would choose what runs here; name one first"
        raise InvalidArgument(msg)
    if shutil.which(words[0]) is None:
        msg = f"there is no program {words[0]!r} here (no shell is used); check its name and the directory"
        raise InvalidArgument(msg)


def _report_silence(client: Client) -> None:
    """Tell the user if the server does not answer: it may start later, or the address is wrong."""
    try:
        _ = client.state
    except ServiceError as error:
        if error.status == HTTPStatus.UNAUTHORIZED:
            msg = f"{error} (pass --token or set TRUEARM_TOKEN)"
            raise ServiceError(msg, error.status) from None
        if error.status:
            raise
        click.echo(f"{client.url} does not answer; trying for a minute (Ctrl-C to stop).", err=True)


def _commands(template: Sequence[str], state: Mapping[str, Any], *, any_name: bool) -> dict[str, Command]:
    names = [arm["name"] for arm in state["arms"]]
    if not any_name and (odd := next(filter(_NOT_PLAIN.search, names), None)) is not None:
        msg = (
            f"arm {odd!r} is not a plain name, and the command could take it for a program, an option or code; "
            "use plain names in the study, or allow any with --any-name"
        )
        raise InvalidArgument(msg)
    inside = next((word for word in template if "{arm}" in word and _CODE.search(word.replace("{arm}", ""))), None)
    unsafe = next((name for name in names if shlex.quote(name) != name), None)
    if inside is not None and unsafe is not None:
        msg = (
            f"arm {name_of(unsafe)} would become code in {inside!r}; make {{arm}} a separate word, "
            "for example in sh -c './measure \"$1\"' sh {arm}"
        )
        raise InvalidArgument(msg, "command", shlex.join(template))
    return {name: _command(template, name) for name in names}


def _command(template: Sequence[str], arm: str) -> Command:
    return Command(shlex.join(word.replace("{arm}", arm) for word in template), name=arm, shell="none")


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


def _ending(client: Client, result: Any) -> str:  # noqa: ANN401 - a result or None
    if result is None:
        return f"The study is not decided; see {client.url}/studies/{client.name}"
    best = "no winner" if result.best is None else f"{name_of(result.best)} is best"
    return f"The study is done: {result.status.value}, {best}."
