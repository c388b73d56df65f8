"""Before the commands of somebody else's log are run: what they are, and whether the user agrees."""

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import click

from truearm.cli.setting import Setting
from truearm.commands.command import Command, printable
from truearm.commands.identity import is_mine, sign
from truearm.commands.measure import Conditions
from truearm.errors import InvalidArgument

_MARK = "mark"
_FIXED = (None, "null", "pipe", "inherit")


def marked(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a log begins with, and the mark of the user who begins it."""
    return {**definition, _MARK: sign(_text(definition))}


def agree(path: str, definition: Mapping[str, Any], setting: Setting, *, yes: bool) -> None:
    """Return if this user wrote the log on this machine, or agrees to what it runs; else end with code 2."""
    if yes or is_mine(_text(definition), definition.get(_MARK)):
        return
    name = printable(path)
    words = "\n".join([f"{name} was not begun by you on this machine. To go on with it runs:", *_listed(setting)])
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        msg = f"{words}\nNothing was run. If you trust all of it: truearm race --resume {name} --yes"
        raise InvalidArgument(msg)
    click.echo(words, err=True)
    try:
        agreed = click.confirm("Run all of it?", err=True)
    except click.Abort:
        agreed = False
    if not agreed:
        msg = f"nothing was run; `truearm report {name}` shows what is known without running anything"
        raise InvalidArgument(msg)


def _text(definition: Mapping[str, Any]) -> str:
    return json.dumps({key: definition[key] for key in definition if key != _MARK}, sort_keys=True)


def _listed(setting: Setting) -> Iterator[str]:
    for command in setting.commands:
        yield f"  {_shown(command.name)}: {_run(command)}"
    for stage, hooks in setting.hooks.items():
        for arm, hook in hooks.items():
            yield f"  {_shown(stage)} of {_shown(arm)}: {_run(hook)}"
    parts: tuple[Conditions | Command, ...] = (setting.conditions, *setting.commands)
    for streams in parts:
        for what, place in (("input from", streams.input), ("output to", streams.output)):
            if place not in _FIXED:
                yield f"  {what} {_shown(place)}"


def _run(command: Command) -> str:
    parts = [_shown(command.text)]
    if command.shell is not None:
        parts.append(f"through {_shown(command.shell)}")
    if command.cwd is not None:
        parts.append(f"in {_shown(command.cwd)}")
    parts += [f"with {_shown(f'{name}={value}')}" for name, value in command.env.items()]
    return ", ".join(parts)


def _shown(text: object) -> str:
    return printable(str(text))
