"""Drive a race: begin it or go on with it, run the commands, and gather what is to be told."""

import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import click

from truearm.claims.certificate import sample_of
from truearm.claims.certify import describe
from truearm.cli import gates, saved
from truearm.cli.agreeing import agree
from truearm.cli.asked import Asked, defined, in_race, suite_of
from truearm.cli.edge import load
from truearm.cli.live import Board
from truearm.cli.setting import Setting
from truearm.cli.suites import Follower
from truearm.cli.telling import Outcome
from truearm.commands.command import Command, printable
from truearm.commands.measure import (
    ITERATION,
    Measurement,
    command_source,
    run_hook,
    set_run_variables,
    shell_cost,
)
from truearm.commands.metrics import NOTE
from truearm.commands.process import check_posix
from truearm.commands.revisions import check_out, hold, reopen
from truearm.commands.signals import interruptible
from truearm.errors import ArmFailed, CommandFailed, InvalidArgument, TruearmError
from truearm.events import Noted, Reading
from truearm.policies import Policy
from truearm.policies.alone import Alone
from truearm.policies.control import AgainstControl
from truearm.policies.paired import Paired
from truearm.policies.toptwo import TopTwo
from truearm.report.numbers import name_of
from truearm.run import run
from truearm.store import Store, lock
from truearm.study import Study

BRIEF = 3.0  # seconds, as hyperfine takes at least
_GRACE, _GRACE_SHARE = 1.0, 0.1  # seconds and share of the limit in which a run that began in time may end

__all__ = ["ITERATION", "Race", "begun", "in_race", "outcome", "resumed", "run_out"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Race:
    """A study of commands, how they are run, and where it is logged."""

    study: Study
    setting: Setting
    first: int
    store: Store | None
    follower: Follower | None = None
    """Who watches the metrics of a suite."""


def begun(asked: Asked, stack: ExitStack) -> Race:
    """Return a new race, its log opened on the stack if it is to be saved."""
    check_posix()
    revisions = (
        check_out(asked.revisions, build=asked.build, announce=partial(_prepare, asked)) if asked.revisions else ()
    )
    stack.enter_context(hold(revisions))
    setting, problem = defined(asked, revisions)
    suite = suite_of(asked, setting, problem)
    seed = asked.seed if asked.seed is not None else int.from_bytes(os.urandom(4), "big")
    # in rounds or balanced, because the load of a machine changes while commands are being run
    first = asked.first(problem)
    policy: Policy[Any] = TopTwo(first=first, balanced=True)
    if problem.rounds:
        policy = Paired(first=first, endless=suite is not None, guard=setting.guard)
    elif len(problem.arms) == 1:
        # a time limit would end slow ones early: then the number of runs depends on what they read
        policy = Alone(first=first, runs=asked.runs if asked.max_time is None else None)
    elif asked.control is not None:
        policy = AgainstControl(asked.control, fdr=asked.fdr, first=first, balanced=True)
    study = Study.of(problem, policy=policy, seed=seed)
    store = None
    if asked.save:
        stack.enter_context(lock(asked.save, wait=False))
        store = stack.enter_context(saved.begun(asked.save, study, setting, suite))
    follower = None if suite is None else Follower(suite, study)
    return Race(study=study, setting=setting, first=first, store=store, follower=follower)


def _prepare(asked: Asked) -> None:
    if not asked.quiet:
        click.echo(f"Preparing {', '.join(asked.revisions)} ...", err=True)


def resumed(path: str, stack: ExitStack, *, yes: bool) -> Race:
    """Return the race of a log, opened on the stack, if it is the user's own or the user agrees to run it."""
    check_posix()
    stack.enter_context(lock(path, wait=False))
    found = stack.enter_context(saved.opened(path, broke_off=True, agree=partial(agree, path, yes=yes)))
    if found.setting is None:
        msg = f"{path} holds a study without commands; continue it from Python, see `truearm report {path}`"
        raise InvalidArgument(msg)
    policy = found.study.policy
    if (
        not isinstance(policy, AgainstControl | Alone | Paired | TopTwo)
        or found.setting.arms != found.study.problem.arms
    ):
        msg = f"{path} holds a race that truearm does not begin; see `truearm report {path}`"
        raise InvalidArgument(msg)
    stack.enter_context(hold(reopen(c.cwd for c in found.setting.commands if c.cwd is not None)))
    follower = None if found.suite is None else Follower(found.suite, found.study)
    return Race(study=found.study, setting=found.setting, first=policy.first, store=found.store, follower=follower)


def outcome(race: Race, asked: Asked) -> Outcome:
    """Run a race to its end, and return all that is to be told of it."""
    setting = race.setting
    assert race.follower is None
    control = race.study.policy.control if isinstance(race.study.policy, AgainstControl) else None
    gate = in_race(asked.fail_if_worse_than, setting) or setting.guard
    if asked.resume and asked.fail_if_worse_than not in (None, setting.guard):
        msg = f"the race began without --fail-if-worse-than {gate}, and a gate must be named before it; race anew"
        raise InvalidArgument(msg)
    recorder = _Recorder(race)
    failure, late = run_out(race, asked, recorder)
    result = race.study.result
    assert result is not None
    most = asked.most is not None and max(result.pulls.values()) >= asked.most
    return Outcome(
        result=result,
        tapes=race.study.readings,
        setting=setting,
        runs=[event for event in race.study.events() if isinstance(event, Reading)],
        seed=race.study.seed,
        unit=asked.time_unit,
        reference=control or gate,
        gate=gate,
        path=str(race.store.path) if race.store is not None else None,
        ended=late or most or result.total >= race.study.max_pulls,
        quiet=asked.quiet,
        patience=asked.limit if late and asked.max_time is None else None,
        shell_cost=shell_cost(setting.commands[0], setting.metric),
        cut=recorder.cut,
        standing=race.study.standing,
        verbose=asked.verbose,
        failure=failure,
    )


def run_out(
    race: Race, asked: Asked, recorder: "_Recorder | None" = None
) -> tuple[click.ClickException | None, bool]:
    """Run a race to its end; return what went wrong if that ended it, and whether its limit of time did."""
    began, study = time.monotonic(), race.study
    if race.follower is not None and race.follower.done(race.first):
        study.stop()  # a log that was followed to its end
    failure = None if study.done else _measured(race, asked, recorder or _Recorder(race))
    return failure, asked.limit is not None and time.monotonic() - began >= asked.limit


def _measured(race: Race, asked: Asked, recorder: "_Recorder") -> click.ClickException | None:
    """Run the commands until the study is done; return what went wrong if that ended it."""
    study = race.study
    try:
        with interruptible(), _hooked(race.setting), recorder:
            recorder.warm_up(race.setting.warmup)
            with _board(race, asked) as draw, _in_time(asked, recorder):
                run(
                    study,
                    lambda arm: partial(recorder.pull, arm),
                    max_seconds=asked.limit,
                    watch=partial(_watch, race, recorder.counts, asked.most, _brief(race, asked), draw),
                )
    except (ArmFailed, CommandFailed) as error:
        study.stop()
        return _stopped(race, error.__cause__ or error, asked.exports.values())
    except KeyboardInterrupt:
        study.stop()
    return None


def _brief(race: Race, asked: Asked) -> float:
    """Return from when on one command alone has been measured long enough, if its interval has two ends."""
    alone = len(race.setting.commands) == 1 and asked.brief
    return time.monotonic() + BRIEF if alone else float("inf")


def _bounded(study: Study) -> bool:
    (arm,) = study.problem.arms
    sample = sample_of(study.readings[arm], study.pulls, study.problem, arm)
    found = describe(arm, sample, study.problem, design="sequential")
    return sample.n >= getattr(study.policy, "first", 1) and found.high - found.low < float("inf")


def _watch(race: Race, counts: Counter[str], most: int | None, brief: float, draw: Callable[[], None]) -> bool:
    draw()
    if time.monotonic() >= brief and _bounded(race.study):
        return True
    if race.follower is not None and race.follower.done(race.first):
        return True
    if most is None or max(counts.values()) < most or race.study.in_round:
        return False
    return min(counts[arm] for arm in race.setting.arms) >= race.first


@contextmanager
def _board(race: Race, asked: Asked) -> Iterator[Callable[[], None]]:
    setting = race.setting
    shown = setting.conditions.output == "inherit"
    if asked.quiet or shown or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield lambda: load("scipy.special")  # after the first run, and not in the middle of a decision
        return
    if race.follower is not None:
        yield race.follower.draw
        click.echo(err=True)
        return
    soon = len(setting.commands) == 1 and asked.brief  # in seconds: not worth a word
    limit = float("inf") if asked.limit is None or soon else asked.limit
    timed = setting.conditions.timeout is not None
    with Board(
        race.study, metric=setting.metric, unit=asked.time_unit, first=race.first, limit=limit, timed=timed
    ) as board:
        yield board.draw


@contextmanager
def _in_time(asked: Asked, recorder: "_Recorder") -> Iterator[None]:
    """Stop a run that goes on beyond the limit of time that was asked for; beyond our own only tell of it."""
    if asked.limit is None:
        yield
        return

    def late(*_: object) -> None:
        if recorder.running is None:
            return
        if asked.max_time is not None:
            recorder.cut = recorder.running
            raise KeyboardInterrupt
        told = f"{name_of(recorder.running)} is still running. Ctrl-C stops it and keeps what is known."
        click.echo(f"\nThe time is up, but {told}", err=True)

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, asked.limit + max(_GRACE, _GRACE_SHARE * asked.limit))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _hooked(setting: Setting) -> Iterator[None]:
    """Run the setup before and the cleanup after, whatever happens between; the same line once for all."""
    for hook in _distinct(setting, "setup"):
        run_hook(hook, "setup", setting.conditions.timeout)
    try:
        yield
    finally:
        for hook in _distinct(setting, "cleanup"):
            _cleaned(hook, setting)


def _distinct(setting: Setting, stage: str) -> list[Command]:
    """Return the hooks that are not the same line in the same folder."""
    return list({(hook.text, hook.cwd): hook for hook in setting.hooks.get(stage, {}).values()}.values())


def _cleaned(hook: Command, setting: Setting) -> None:
    try:
        run_hook(hook, "cleanup", setting.conditions.timeout)
    except TruearmError as error:
        click.echo(f"Warning: {error}", err=True)
    except KeyboardInterrupt:
        told = f"cleanup {printable(hook.text)!r} was interrupted; it may be half done"
        click.echo(f"Warning: {told}", err=True)
        raise


class _Failure(click.ClickException):
    exit_code = gates.USAGE


def _stopped(race: Race, cause: BaseException, exports: Collection[str]) -> click.ClickException:
    words = [str(cause) if isinstance(cause, TruearmError | OSError) else repr(cause)]
    if isinstance(cause, CommandFailed) and cause.stage == "command":
        code = cause.exit_code
        remedies = ["-i counts failed runs as missing readings, at their worst"] * (code not in (126, 127))
        remedies += [f"-i={code} says that this code is not a failure"] * (code > 0)
        words.append(f"({'; '.join(remedies)})")
    if exports:
        words.append(f"What was measured before is in {', '.join(exports)}.")
    if race.store is not None:
        words.append(f"{race.study.pulls} runs are kept; go on with: truearm race --resume {race.store.path.name}")
    return _Failure("\n".join(words))


class _Recorder:
    """The source of a race: tells runs their numbers, measures, notes how, and counts."""

    def __init__(self, race: Race) -> None:
        setting = race.setting
        self.race = race
        self.counts = Counter({arm: len(tape) for arm, tape in race.study.readings.items()})
        self.running: str | None = None
        self.cut: str | None = None
        self._last: dict[str, Any] = {}
        self._source = command_source(
            setting.commands,
            setting.metric,
            conditions=setting.conditions,
            prepare=setting.hooks.get("prepare"),
            conclude=setting.hooks.get("conclude"),
            listen=self._listen,
        )

    def __enter__(self) -> "_Recorder":
        return self

    def __exit__(self, *_: object) -> None:
        os.environ.pop(ITERATION, None)

    def _listen(self, _arm: str, measurement: Measurement) -> None:
        self._last = measurement.details()

    def _measured(self, arm: str, iteration: str) -> float:
        set_run_variables(iteration)
        return self._source(arm)

    def warm_up(self, runs: int) -> None:
        """Run every command some times, before anything counts."""
        for i in range(runs):
            for arm in self.race.setting.arms:
                with suppress(TimeoutError):
                    self._measured(arm, f"warmup-{i}")

    def pull(self, arm: str) -> float:
        """Run a command once; a time-out counts as worse than any run that ended."""
        self.running = arm
        try:
            value = self._measured(arm, str(self.counts[arm]))
        except TimeoutError:
            value = self.race.study.problem.censored
        finally:
            self.running = None
        self.counts[arm] += 1
        if self.race.follower is not None:
            self.race.follower.took(arm, self._last.get(NOTE))
        return Noted(value, self._last)
