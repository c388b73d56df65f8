"""What a race runs: commands, hooks and conditions; stored in the log."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from truearm.claims.plain import from_plain, to_plain
from truearm.claims.result import Result
from truearm.claims.suite import SuiteResult
from truearm.commands.command import Command, bind, share_shell
from truearm.commands.measure import Conditions
from truearm.commands.revisions import Builds
from truearm.errors import InvalidArgument

AnyResult = TypeVar("AnyResult", Result, SuiteResult)
HOOKS = ("setup", "prepare", "conclude", "cleanup")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The commands of a race, and everything around them that is the same in every round."""

    commands: tuple[Command, ...]
    metric: str = "wall"
    conditions: Conditions = field(default_factory=Conditions)
    warmup: int = 0
    warmup_every_run: bool = False
    """Whether every run follows an unmeasured run of the same command."""
    best_of: int = 1
    """Runs of each command in a round, the best of which is its reading."""
    hooks: Mapping[str, Mapping[str, Command]] = field(default_factory=dict)
    """For each of `HOOKS` the command to run, by arm."""
    guard: str | None = None
    """The arm that others must not be worse than, if it was named when the race began."""
    builds: Builds | None = None
    """How the commands are built, if they are revisions that are."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "commands", share_shell(self.commands))
        seen: set[str] = set()
        for command in self.commands:
            if any("\ud800" <= char <= "\udfff" for char in command.name):
                msg = f"a command must be valid Unicode, but got {command.name!r}; use another name: -n NAME"
                raise InvalidArgument(msg)
            if command.name in seen:
                msg = f"two commands are called {command.name!r}; give them different names with -n"
                raise InvalidArgument(msg)
            seen.add(command.name)
        for stage, hooks in self.hooks.items():
            if stage not in HOOKS or set(hooks) != seen:
                msg = f"hooks are {', '.join(HOOKS)}, one for each command, but got {stage!r} for {sorted(hooks)}"
                raise InvalidArgument(msg)
            if stage in ("setup", "cleanup"):
                self._check_same(stage, hooks)

    @staticmethod
    def _check_same(stage: str, hooks: Mapping[str, Command]) -> None:
        """Refuse a setup that differs by command in one folder: the last one would serve all."""
        if len({(hook.cwd, hook.text) for hook in hooks.values()}) > len({hook.cwd for hook in hooks.values()}):
            other = "--prepare" if stage == "setup" else "--conclude"
            msg = f"--{stage} differs by command, but commands take turns; use {other}, which runs for every run"
            raise InvalidArgument(msg)

    @property
    def arms(self) -> tuple[str, ...]:
        """The names of the commands."""
        return tuple(command.name for command in self.commands)

    @property
    def random_builds(self) -> Builds | None:
        """How the commands are built if every round has new builds."""
        return self.builds if self.builds is not None and self.builds.rounds is not None else None

    def mark(self, result: AnyResult | None) -> AnyResult:
        """Return a result that says which builds it is about, and of how many runs each reading is the best."""
        assert result is not None
        what: dict[str, Any] = {"best_of": self.best_of} if self.best_of > 1 else {}
        if self.random_builds:
            what |= {"builds": "random", "runs_per_build": self.random_builds.runs}
        elif self.builds is not None:
            what["builds"] = "one"
        return replace(result, conditions={**(result.conditions or {}), **what})

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for the log."""
        plain: dict[str, Any] = to_plain(self)
        return plain

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Setting":
        """Return the setting that `to_dict` described."""
        setting: Setting = from_plain(cls, data, "race")
        return setting


def for_each(option: str, given: tuple[str, ...], commands: Sequence[Command]) -> tuple[str, ...]:
    """Return what an option says for every command: it is given once for all, or once for each."""
    if len(given) not in (1, len(commands)):
        msg = f"{option} must be given once or for each of {len(commands)} commands, but came {len(given)} times"
        raise InvalidArgument(msg)
    return given * len(commands) if len(given) == 1 else given


def hooks_for(
    commands: Sequence[Command], stage: str, lines: tuple[str, ...], shell: str, typed: Collection[str] = ()
) -> dict[str, Command]:
    """Return the hook of every arm: one line for all commands, or one for each.

    Parameters
    ----------
    typed
        Parameters whose values are put in as they are.
    """
    # A hook is not measured, so that it may have the shell it needs even under --shell none, and only then.
    how = "auto" if shell == "none" else shell
    return {
        arm.name: bind(
            line,
            arm.parameters,
            env=arm.env,
            cwd=arm.cwd,
            shell=how,
            typed=[name for name in arm.parameters if name in typed],
        )
        for arm, line in zip(commands, for_each(f"--{stage}", lines, commands), strict=True)
    }
