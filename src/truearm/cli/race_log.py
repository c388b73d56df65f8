"""A race and its log: what it runs, and consent to run the commands of another user's log."""

import json
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from truearm.claims.plain import from_plain, to_plain
from truearm.claims.result import Result
from truearm.claims.suite import Suite, SuiteResult
from truearm.commands.command import Command, share_shell
from truearm.commands.identity import is_mine, sign
from truearm.commands.measure import Conditions
from truearm.commands.revisions import Builds
from truearm.commands.terminal import is_terminal
from truearm.errors import InvalidArgument, TruearmError, first_line, printable
from truearm.events import TOLD, Event
from truearm.problem import refuse, require
from truearm.run import log_to, resume_study
from truearm.store import Store, check_file
from truearm.study import Study

if TYPE_CHECKING:
    from truearm.claims.gates import LedgerGate
    from truearm.ledger import Ledger

AnyResult = TypeVar("AnyResult", Result, SuiteResult)
HOOKS = ("setup", "prepare", "conclude", "cleanup")
STREAMS = ("null", "pipe", "inherit")  # values of input and output that are not files
_SIGNATURE = "mark"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The commands of a race, and everything around them that is the same in every round."""

    commands: tuple[Command, ...]
    metric: str = "wall"
    conditions: Conditions = field(default_factory=Conditions)
    warmup: int = 0
    warmup_every_run: bool = False  # whether every run follows an unmeasured run of the same command
    best_of: int = 1  # runs of each command in a round, the best of which is its reading
    hooks: Mapping[str, Mapping[str, Command]] = field(default_factory=dict)
    """For each of `HOOKS` the command to run, by arm."""
    guard: str | None = None  # the arm that others must not be worse than, if one was named at the start
    builds: Builds | None = None  # how revisions are built; None if they are not

    def __post_init__(self) -> None:
        object.__setattr__(self, "commands", share_shell(self.commands))
        arms = self.arms
        for command in self.commands:
            is_double = arms.count(command.name) > 1
            refuse(is_double, f"two commands are called {command.name!r}; give them different names with -n")
        for stage, hooks in self.hooks.items():
            require(set(hooks) == set(arms), f"hooks of {stage!r}", sorted(hooks), "be one for each command")
            other = {"setup": "--prepare", "cleanup": "--conclude"}.get(stage)
            folders, lines = zip(*{(hook.cwd, hook.text) for hook in hooks.values()}, strict=True)
            is_mixed = other is not None and len(lines) > len(set(folders))  # the last one would serve all
            refuse(is_mixed, f"--{stage} differs by command, but commands take turns; use {other}, for every run")

    @property
    def arms(self) -> tuple[str, ...]:
        """The names of the commands."""
        return tuple(command.name for command in self.commands)

    @property
    def random_builds(self) -> Builds | None:
        """How the commands are built if every round has new builds."""
        return self.builds if self.builds is not None and self.builds.rounds is not None else None

    @property
    def runs_per_reading(self) -> int:
        """How many runs of a command make one reading."""
        return self.best_of if self.random_builds is None else self.random_builds.runs

    def mark(self, result: AnyResult | None) -> AnyResult:
        """Return a result with notes on its builds and on how many runs each reading is the best of."""
        assert result is not None
        what: dict[str, Any] = {"best_of": self.best_of} if self.best_of > 1 else {}
        if self.random_builds:
            what |= {"builds": "random", "runs_per_build": self.random_builds.runs}
        elif self.builds is not None:
            what["builds"] = "one"
        return replace(result, conditions={**(result.conditions or {}), **what}) if what else result


@dataclass(frozen=True, slots=True, kw_only=True)
class Race:
    """A study, and if it is one of commands, how they are run."""

    study: Study
    setting: Setting = field(default_factory=partial(Setting, commands=(), metric="stdout"))
    store: Store | None = None
    suite: Suite | None = None  # the question about all metrics, if a run measures several
    ledger: "Ledger | None" = None
    gate: "LedgerGate | None" = None  # the gate of the ledger that this race decides

    @property
    def first(self) -> int:
        """How many runs each command has before the first decision."""
        return getattr(self.study.policy, "first", 1)

    @property
    def result(self) -> Result:
        """The result of the study, which has ended."""
        return self.setting.mark(self.study.result)

    @property
    def runs(self) -> list[Event]:
        """All readings, with notes of how they were measured."""
        return [event for event in self.study.events() if event.kind == TOLD]


def create(path: str | Path, study: Study, setting: Setting, suite: Suite | None = None) -> Store:
    """Create the log of a race, signed by this user; a file that holds a study is left as it is."""
    check_file(path)
    store = Store(path)
    if store.created:
        store.close()
        raise InvalidArgument(f"{path} holds a study already; continue it with --resume, or choose another file")
    definition = study.definition if suite is None else {**study.definition, "suite": to_plain(suite)}
    definition = {**definition, "race": to_plain(setting)}
    store.create({**definition, _SIGNATURE: sign(_text(definition))})
    log_to(study, store)
    return store


@contextmanager
def open_log(path: str | Path, *, resume: bool = False, yes: bool = False) -> Iterator[Race]:
    """Open a log and replay its study, which continues to log there.

    With `resume`, the user must agree first, unless they started it or `yes` is true, and pulls without a reading
    count as missing, at their worst: their runs are over.
    """
    maker = f"`truearm race --save {path}`"
    refuse(not Path(path).exists(), f"there is no file {str(path)!r}; {maker} makes it")
    check_file(path)
    with ExitStack() as stack:
        with _explain_damage(path):
            store = stack.enter_context(Store(path))
            # a crash may leave the file before anything is in it
            refuse(not store.created, f"{path} holds no study yet; {maker} starts one in it")
            definition = store.definition
            race, suite = definition.get("race"), definition.get("suite")
            parts = {} if race is None else {"setting": from_plain(Setting, race, "race")}
            parts |= {} if suite is None else {"suite": from_plain(Suite, suite, "suite")}
        if "setting" in parts and resume and not yes:
            _agree(str(path), definition, parts["setting"])
        with _explain_damage(path):
            study = resume_study(store, broke_off=resume)
        yield Race(study=study, store=store, **parts)


@contextmanager
def _explain_damage(path: str | Path) -> Iterator[None]:
    try:
        yield
    except (TruearmError, OSError, MemoryError, sqlite3.OperationalError):  # not the content
        raise
    except Exception as error:
        msg = f"{path} is damaged ({first_line(error):.120}) and was not changed; use a copy, or another file"
        raise InvalidArgument(msg) from error


def _agree(path: str, definition: Mapping[str, Any], setting: Setting) -> None:
    """Raise unless this user started the log on this machine or agrees to run its commands."""
    if is_mine(_text(definition), definition.get(_SIGNATURE)):
        return
    name = printable(path)
    words = "\n".join([f"{name} was not started by you on this machine. Continuing it runs:", *_describe(setting)])
    is_asked = is_terminal(sys.stdin) and is_terminal(sys.stderr)
    trust = f"{words}\nNothing was run. If you trust all of it: truearm race --resume {name} --yes"
    refuse(not is_asked, trust)
    click.echo(words, err=True)
    refuse(
        not click.confirm("Run all of it?", err=True),
        f"nothing was run; `truearm report {name}` shows what is known without running anything",
    )


def _text(definition: Mapping[str, Any]) -> str:
    return json.dumps({key: definition[key] for key in definition if key != _SIGNATURE}, sort_keys=True)


def _describe(setting: Setting) -> Iterator[str]:
    """Return everything that continuing a race would run, read and write, a line for each."""
    hooks = [(f"{stage} of {arm}", hook) for stage, by in setting.hooks.items() for arm, hook in by.items()]
    for name, command in [*((one.name, one) for one in setting.commands), *hooks]:
        places = {
            "through": command.shell,
            "in": command.cwd,
            "input from": command.input or setting.conditions.input,
        }
        places["output to"] = command.output or setting.conditions.output
        parts = [f"{word} {place}" for word, place in places.items() if place not in (None, *STREAMS)]
        parts += [f"with {name}={value}" for name, value in command.env.items()]
        yield printable(f"  {name}: {', '.join([command.text, *parts])}")
    if setting.random_builds:
        for revision in setting.random_builds.revisions.values():
            what = f"build of {revision.commit} from {revision.repository}, in {revision.top}"
            yield printable(f"  {what}: {setting.random_builds.command}")
