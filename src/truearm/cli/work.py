"""`truearm work`: this machine measures for a study that is served elsewhere, with the code of a race."""

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
from truearm.claims.wording import count, name_of
from truearm.cli import options
from truearm.cli.gates import exit_code
from truearm.errors import InvalidArgument, TruearmError
from truearm.events import Noted
from truearm.problem import Problem, Pull
from truearm.service.client import Client, ServiceError
from truearm.world.commands import Command, bind
from truearm.world.processes import METRICS, Conditions, measure

_AT_ONCE = 0.5  # seconds, after which it is told that a server does not answer
_CODE = re.compile(r"[^\w./=:@%+,-]")  # in a word: more than a name or an option


@click.command("work", context_settings={"max_content_width": 100})
@click.argument("url")
@click.argument("study")
@click.argument("words", nargs=-1, required=True, metavar="-- COMMAND...")
@click.option(
    "--token", envvar="TRUEARM_TOKEN", show_envvar=True, help="What `truearm serve --new-token` printed."
)
@click.option("--worker", metavar="NAME", help="Who measures; made up of host and process by default.")
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
@click.option("--shell", default="auto", metavar="auto|none|PATH", help="As for a race.")
@click.option(
    "--any-name",
    is_flag=True,
    help="Take whatever names the arms have: you trust who began the study, or the command takes them as text.",
)
@click.option("-M", "--max-pulls", type=options.Whole(1), help="End after this many pulls of this worker.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but the end.")
def work_command(*, url: str, study: str, words: tuple[str, ...], **chosen: Any) -> None:  # noqa: ANN401
    """Measure for a study that `truearm serve` hosts, until it is decided.

    \b
    truearm work http://server:8000 tuning -- ./train --rate {arm}       the number it prints last
    truearm work http://server:8000 sort --metric wall -- ./sort {arm}   how long it takes

    The words of one command come after --; {arm} is the arm to be measured. A run that fails ends the work, or is
    a missing reading (-i). What was begun is told or stays out: nothing is measured twice. The arms were named by
    whoever began the study: names that are more than letters, digits and . / = : @ % + , - _ need --any-name.
    """  # noqa: D301 - click wants the control character
    template = words[0] if len(words) == 1 else shlex.join(words)
    _check_arm(template)
    _check_program(Command(template, shell=chosen["shell"]))
    conditions = Conditions(timeout=chosen["timeout"], ignore_failure=chosen["ignore_failure"])
    with Client(url, study, token=chosen["token"], patience=_AT_ONCE) as first:
        _wait_aloud(first)
    with Client(url, study, token=chosen["token"], worker=chosen["worker"]) as client:
        state = client.state
        commands = _commands(template, state, chosen["shell"], any_name=chosen["any_name"])
        worst = from_plain(Problem, state["definition"]["problem"], "problem").censored
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        made = 0
        while (chosen["max_pulls"] is None or made < chosen["max_pulls"]) and (pulls := client.ask()):
            for i, pull in enumerate(pulls):
                with _accounted(client, pull, pulls[i + 1 :]):
                    found = measure(commands[pull.arm], chosen["metric"], conditions)
                value = worst if found.timed_out else found.value
                client.tell(pull, Noted(value, {**found.details(), "host": socket.gethostname()}))
                made += 1
                if not chosen["quiet"]:
                    click.echo(f"{pull.ticket}\t{name_of(pull.arm)}\t{value:g}", err=True)
        result = client.result if client.done else None
    were = "1 pull was" if made == 1 else f"{count(made)} pulls were"
    click.echo(f"{were} measured here. {_ending(client, result)}")
    if result is not None:
        raise SystemExit(exit_code(result))


def _check_arm(template: str) -> None:
    if "{arm}" not in template:
        msg = f"command {template!r} does not say where the arm stands; write {{arm}} there"
        raise InvalidArgument(msg)


def _check_program(command: Command) -> None:
    """Say what cannot be started before a pull is asked for, which would be lost."""
    program = command.argv[0]
    if "{arm}" not in program and shutil.which(program) is None:
        msg = f"there is no program {program!r} here that can be started; check its name, and where you are"
        raise InvalidArgument(msg)


def _wait_aloud(client: Client) -> None:
    """Say that a server does not answer: it may begin later, or have another address."""
    try:
        _ = client.state
    except ServiceError as error:
        if error.status:
            raise
        click.echo(f"{client.url} does not answer; trying for a minute (Ctrl-C to stop).", err=True)


def _commands(
    template: str, state: Mapping[str, Any], shell: str, *, any_name: bool = False
) -> dict[str, Command]:
    names = [arm["name"] for arm in state["arms"]]
    words = _words(template)
    if not any_name:
        _check_fixed_program(words)
        _check_plain(names)
    _check_no_code(template, words, names)
    return {name: bind(template, {"arm": name}, shell=shell) for name in names}


def _words(template: str) -> list[str]:
    lexer = shlex.shlex(template, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:  # a quote is open: binding says so
        return []


def _check_fixed_program(words: Sequence[str]) -> None:
    """Refuse to let a server choose which program runs here."""
    before = ["", *words]
    if any("{arm}" in word and not last.strip("();|&") for last, word in zip(before, words, strict=False)):
        msg = (
            "{arm} stands where the program stands, so who began the study would choose what runs here; "
            "write the program before it, or allow that with --any-name"
        )
        raise InvalidArgument(msg)


def _check_plain(names: Sequence[str]) -> None:
    """Refuse names that a command which runs its words, such as ssh, would take for code or for an option."""
    odd = next((name for name in names if _CODE.search(name) or name.startswith("-")), None)
    if odd is not None:
        msg = (
            f"arm {odd!r} is not a plain name, and commands such as ssh and sh -c run such words as code or "
            "take them for options; begin the study with plain names, or allow any with --any-name"
        )
        raise InvalidArgument(msg)


def _check_no_code(template: str, words: Sequence[str], names: Sequence[str]) -> None:
    """Refuse to write names that a server gave into what a shell or an interpreter would run as code."""
    inside = [word for word in words if "{arm}" in word and _CODE.search(word.replace("{arm}", ""))]
    unsafe = [name for name in names if shlex.quote(name) != name]
    if inside and unsafe:
        msg = (
            f"arm {name_of(unsafe[0])} would become code in {inside[0]!r}; let {{arm}} be a word of its own, "
            "such as in sh -c './measure \"$1\"' sh {arm}"
        )
        raise InvalidArgument(msg, "command", template)


@contextmanager
def _accounted(client: Client, begun: Pull, others: Sequence[Pull]) -> Iterator[None]:
    """If measuring ends the work, tell the pull that had begun as missing and give those back that had not."""
    try:
        yield
    except (TruearmError, KeyboardInterrupt) as error:
        client.tell(begun, Noted(math.nan, {"failed": type(error).__name__, "host": socket.gethostname()}))
        for pull in others:
            client.release(pull)
        raise


def _ending(client: Client, result: Any) -> str:  # noqa: ANN401 - a result or None
    if result is None:
        return f"The study is not decided; see {client.url}/studies/{client.name}"
    best = "no winner" if result.best is None else f"{name_of(result.best)} is best"
    return f"The study is done: {result.status.value}, {best}."
