"""Drive a race: begin it or go on with it, run the commands, and gather what is to be told."""

import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import click

from truearm.claims.result import Result
from truearm.cli import gates, saved
from truearm.cli.agreeing import agree
from truearm.cli.asked import Asked, defined, in_race
from truearm.cli.live import Board
from truearm.cli.setting import Setting
from truearm.cli.telling import Outcome
from truearm.errors import ArmFailed, CommandFailed, InvalidArgument, TruearmError
from truearm.events import Noted
from truearm.policies import Policy
from truearm.policies.control import AgainstControl
from truearm.policies.paired import Paired
from truearm.policies.toptwo import TopTwo
from truearm.report.export import runs_of
from truearm.run import run
from truearm.study import Study
from truearm.world.commands import Command
from truearm.world.lock import alone
from truearm.world.processes import Measurement, command_source, run_hook, shell_cost, warm_up
from truearm.world.revisions import checked_out, removed
from truearm.world.store import Store

__all__ = ["Race", "begun", "in_race", "outcome", "resumed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Race:
    """A study of commands, how they are run, and where it is logged."""

    study: Study
    setting: Setting
    first: int
    store: Store | None


def begun(asked: Asked, stack: ExitStack) -> Race:
    """Return a new race, its log opened on the stack if it is to be saved."""
    if asked.revisions and not asked.quiet:
        click.echo(f"Preparing {', '.join(asked.revisions)} ...", err=True)
    revisions = checked_out(asked.revisions, build=asked.build) if asked.revisions else ()
    if asked.clean:
        stack.callback(removed, revisions)
    setting, problem = defined(asked, revisions)
    seed = asked.seed if asked.seed is not None else int.from_bytes(os.urandom(4), "big")
    # in rounds or balanced, because the load of a machine changes while commands are being run
    policy: Policy[Any] = TopTwo(first=asked.first, balanced=True)
    if asked.rounds:
        policy = Paired(first=asked.first, guard=setting.guard)
    elif asked.control is not None:
        policy = AgainstControl(asked.control, fdr=asked.fdr, first=asked.first, balanced=True)
    study = Study.of(problem, policy=policy, seed=seed)
    store = None
    if asked.save:
        stack.enter_context(alone(asked.save, wait=False))
        store = stack.enter_context(saved.begun(asked.save, study, setting))
    return Race(study=study, setting=setting, first=asked.first, store=store)


def resumed(path: str, stack: ExitStack, *, yes: bool) -> Race:
    """Return the race of a log, opened on the stack, if it is the user's own or the user agrees to run it."""
    stack.enter_context(alone(path, wait=False))
    found = stack.enter_context(saved.opened(path, broke_off=True, agree=partial(agree, path, yes=yes)))
    if found.setting is None:
        msg = f"{path} holds a study without commands; go on with `truearm next` and `truearm tell`"
        raise InvalidArgument(msg)
    policy = found.study.policy
    if not isinstance(policy, AgainstControl | Paired | TopTwo) or found.setting.arms != found.study.problem.arms:
        msg = f"{path} holds a race that truearm does not begin; see `truearm report {path}`"
        raise InvalidArgument(msg)
    return Race(study=found.study, setting=found.setting, first=policy.first, store=found.store)


def outcome(race: Race, asked: Asked) -> Outcome:
    """Run a race to its end, and return all that is to be told of it."""
    setting = race.setting
    control = race.study.policy.control if isinstance(race.study.policy, AgainstControl) else None
    baseline = setting.arms[0] if asked.reference and control is None else None
    gate = in_race(asked.fail_if_worse_than, setting) or setting.guard
    if asked.resume and asked.fail_if_worse_than not in (None, setting.guard):
        msg = f"the race began without --fail-if-worse-than {gate}, and a gate must be named before it; race anew"
        raise InvalidArgument(msg)
    began = time.monotonic()
    result = _result(race, asked)
    late = asked.limit is not None and time.monotonic() - began >= asked.limit
    most = asked.most is not None and max(result.pulls.values()) >= asked.most
    return Outcome(
        result=result,
        tapes=race.study.readings,
        setting=setting,
        runs=runs_of(race.study.events()),
        seed=race.study.seed,
        unit=asked.time_unit,
        reference=control or baseline or gate,
        baseline=baseline,
        gate=gate,
        path=str(race.store.path) if race.store is not None else None,
        ended=late or most or result.total >= race.study.max_pulls,
        quiet=asked.quiet,
        patience=asked.limit if late and asked.max_time is None else None,
        shell_cost=shell_cost(setting.commands[0], setting.metric),
    )


def _result(race: Race, asked: Asked) -> Result:
    study = race.study
    if study.done and study.result is not None:
        return study.result
    recorder = _Recorder(race)
    try:
        with _terminable(), _hooked(race.setting):
            warm_up(recorder.source, race.setting.arms, race.setting.warmup)
            with _board(race, asked) as draw:
                return run(
                    study,
                    lambda arm: partial(recorder.pull, arm),
                    max_seconds=asked.limit,
                    watch=partial(_watch, race, recorder.counts, asked.most, draw),
                )
    except ArmFailed as error:
        raise _stopped(race, error.__cause__ or error) from error
    except KeyboardInterrupt:
        study.stop()
        assert study.result is not None
        return study.result


def _watch(race: Race, counts: Counter[str], most: int | None, draw: Callable[[], None]) -> bool:
    draw()
    if most is None or max(counts.values()) < most or race.study.in_round:
        return False
    return min(counts[arm] for arm in race.setting.arms) >= race.first


@contextmanager
def _board(race: Race, asked: Asked) -> Iterator[Callable[[], None]]:
    if asked.quiet or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield lambda: None
        return
    limit = float("inf") if asked.limit is None else asked.limit
    setting = race.setting
    timed = setting.conditions.timeout is not None
    with Board(
        race.study, metric=setting.metric, unit=asked.time_unit, first=race.first, limit=limit, timed=timed
    ) as board:
        board.draw()
        yield board.draw


@contextmanager
def _terminable() -> Iterator[None]:
    """Let a request to end (SIGTERM, SIGHUP) keep what is known, like Ctrl-C."""
    signals = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, signal.default_int_handler) for number in signals]
    try:
        yield
    finally:
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)


@contextmanager
def _hooked(setting: Setting) -> Iterator[None]:
    """Run the setup before and the cleanup after, whatever happens between; the same line once for all."""
    limit = setting.conditions.timeout
    for hook in _distinct(setting, "setup"):
        run_hook(hook, "setup", limit)
    try:
        yield
    finally:
        for hook in _distinct(setting, "cleanup"):
            try:
                run_hook(hook, "cleanup", limit)
            except TruearmError as error:
                click.echo(f"Warning: {error}", err=True)


def _distinct(setting: Setting, stage: str) -> list[Command]:
    return list({command.text: command for command in setting.hooks.get(stage, {}).values()}.values())


class _Failure(click.ClickException):
    exit_code = gates.USAGE


def _stopped(race: Race, cause: BaseException) -> click.ClickException:
    words = [str(cause) if isinstance(cause, TruearmError | OSError) else repr(cause)]
    if isinstance(cause, CommandFailed) and cause.stage == "command":
        words.append("(-i counts failed runs as missing readings, at their worst)")
    if race.store is not None:
        words.append(f"{race.study.pulls} runs are kept; go on with: truearm race --resume {race.store.path.name}")
    return _Failure("\n".join(words))


class _Recorder:
    """The source of a race: measures, notes how, and counts."""

    def __init__(self, race: Race) -> None:
        setting = race.setting
        self.race = race
        self.counts = Counter({arm: len(tape) for arm, tape in race.study.readings.items()})
        self._last: dict[str, Any] = {}
        self.source = command_source(
            setting.commands,
            setting.metric,
            conditions=setting.conditions,
            prepare=setting.hooks.get("prepare"),
            conclude=setting.hooks.get("conclude"),
            listen=self._listen,
        )

    def _listen(self, _arm: str, measurement: Measurement) -> None:
        self._last = measurement.details()

    def pull(self, arm: str) -> float:
        """Run a command once; a time-out counts as worse than any run that ended."""
        try:
            value = self.source(arm)
        except TimeoutError:
            value = self.race.study.problem.censored
        self.counts[arm] += 1
        return Noted(value, self._last)
