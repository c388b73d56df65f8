"""A race in a file: create its log, open it again, and ask before the commands of another user's log are run."""

import json
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import click

from truearm.claims.plain import from_plain, to_plain
from truearm.claims.suite import Suite
from truearm.cli.edge import check_file
from truearm.cli.setting import Setting
from truearm.commands.command import Command
from truearm.commands.identity import is_mine, sign
from truearm.commands.measure import Conditions
from truearm.errors import InvalidArgument, TruearmError, printable
from truearm.run import log_to, resume_study
from truearm.store import Store
from truearm.study import Study

_SIGNATURE = "mark"


class Saved(NamedTuple):
    """A log and its study; the setting if it is a race, and the suite if it has one."""

    store: Store
    study: Study
    setting: Setting | None
    suite: Suite | None = None


def create(path: str | Path, study: Study, setting: Setting, suite: Suite | None = None) -> Store:
    """Create the log of a race, signed by this user; a file that holds a study is left as it is."""
    check_file(path)
    store = Store(path)
    if store.created:
        store.close()
        msg = f"{path} holds a study already; continue it with --resume, or choose another file"
        raise InvalidArgument(msg)
    definition = study.definition if suite is None else {**study.definition, "suite": to_plain(suite)}
    definition = {**definition, "race": setting.to_dict()}
    store.create({**definition, _SIGNATURE: sign(_text(definition))})
    log_to(study, store)
    return store


@contextmanager
def open_log(
    path: str | Path, *, resume: bool = False, agree: Callable[[Mapping[str, Any], Setting], None] | None = None
) -> Iterator[Saved]:
    """Open a log and replay its study, which goes on logging there.

    Parameters
    ----------
    resume
        Count pulls without a reading as missing, at their worst: their runs are over.
    agree
        Called with the definition of a race before anything is written.
    """
    maker = f"`truearm race --save {path}`"
    if not Path(path).exists():
        msg = f"there is no file {str(path)!r}; {maker} makes it"
        raise InvalidArgument(msg)
    check_file(path)
    with ExitStack() as stack:
        with _explain_damage(path):
            store = stack.enter_context(Store(path))
            if not store.created:  # a crash left the file before anything was in it
                msg = f"{path} holds no study yet; {maker} starts one in it"
                raise InvalidArgument(msg)
            definition = store.definition
            setting = None if (race := definition.get("race")) is None else Setting.from_dict(race)
            asked = definition.get("suite")
            suite = None if asked is None else from_plain(Suite, asked, "suite")
        if setting is not None and agree is not None:
            agree(definition, setting)
        with _explain_damage(path):
            study = resume_study(store, broke_off=resume)
        yield Saved(store, study, setting, suite)


@contextmanager
def _explain_damage(path: str | Path) -> Iterator[None]:
    try:
        yield
    except (TruearmError, OSError, MemoryError):
        raise
    except sqlite3.OperationalError as error:  # the disk, a lock or the file system, not the content
        msg = f"{path} cannot be opened as a log: {error}; make its folder writable, or copy the log elsewhere"
        raise InvalidArgument(msg) from error
    except Exception as error:
        what = f"{type(error).__name__}: {error}".splitlines()[0]
        msg = f"{path} is damaged ({what:.120}) and was not changed; use a copy, or start again in another file"
        raise InvalidArgument(msg) from error


def agree(path: str, definition: Mapping[str, Any], setting: Setting, *, yes: bool) -> None:
    """Return if this user started the log on this machine, or agrees to run its commands; raise otherwise."""
    if yes or is_mine(_text(definition), definition.get(_SIGNATURE)):
        return
    name = printable(path)
    words = "\n".join([f"{name} was not started by you on this machine. Continuing it runs:", *_describe(setting)])
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
    return json.dumps({key: definition[key] for key in definition if key != _SIGNATURE}, sort_keys=True)


def _describe(setting: Setting) -> Iterator[str]:
    for command in setting.commands:
        yield f"  {printable(command.name)}: {_describe_command(command)}"
    for stage, hooks in setting.hooks.items():
        for arm, hook in hooks.items():
            yield f"  {printable(stage)} of {printable(arm)}: {_describe_command(hook)}"
    if setting.random_builds:
        for revision in setting.random_builds.revisions.values():
            what = f"build of {revision.commit} from {revision.repository}, in {revision.top}"
            yield printable(f"  {what}: {setting.random_builds.command}")
    parts: tuple[Conditions | Command, ...] = (setting.conditions, *setting.commands)
    for part in parts:
        for what, place in (("input from", part.input), ("output to", part.output)):
            if place not in (None, "null", "pipe", "inherit"):
                yield f"  {what} {printable(str(place))}"


def _describe_command(command: Command) -> str:
    parts = [command.text]
    parts += [f"through {command.shell}"] * (command.shell is not None)
    parts += [f"in {command.cwd}"] * (command.cwd is not None)
    parts += [f"with {name}={value}" for name, value in command.env.items()]
    return printable(", ".join(parts))
