"""Run a race: start it or continue it, run the commands, and collect the outcome."""

import hashlib
import math
import os
import shlex
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truearm.claims.certificate import samples_of
from truearm.claims.certify import describe
from truearm.claims.gates import LedgerGate, is_out_of_reach
from truearm.claims.suite import Progress, Suite
from truearm.cli import race_log
from truearm.cli.answer import Answer
from truearm.cli.errors import Failure
from truearm.cli.live import board
from truearm.cli.race_answer import Ending, race_answer
from truearm.cli.race_log import Race, Setting
from truearm.cli.race_options import RaceOptions, check_name, define, read_account
from truearm.commands.command import Command
from truearm.commands.measure import ITERATION, NOTE, Run, draw_padding, join_runs, measure, run_hook, runs_of
from truearm.commands.revisions import Builder, Revision, check_out, check_unchanged
from truearm.commands.terminal import interruptible, is_terminal, load
from truearm.errors import ArmFailed, CommandFailed, TruearmError, printable
from truearm.events import Noted
from truearm.evidence import Judge
from truearm.policies import Policy
from truearm.policies.alone import Alone
from truearm.policies.control import AgainstControl
from truearm.policies.paired import Paired
from truearm.policies.toptwo import TopTwo
from truearm.problem import refuse
from truearm.run import Study, shuffle
from truearm.run import run as run_study
from truearm.store import lock

if TYPE_CHECKING:
    from truearm.ledger import Ledger

MIN_ALONE_S = 3.0  # a single command is measured for at least this long, as in hyperfine
MIN_FORECAST_ROUNDS = 10  # before a gate may end for being out of reach
_GRACE_S, _GRACE_SHARE = 1.0, 0.1  # of the limit, in which a run that started in time may end


def start(options: RaceOptions, stack: ExitStack) -> Race:
    """Return a new race; its log is opened on the stack if it is saved."""
    revisions: Sequence[Revision] = ()
    if options.rev:
        if not options.quiet:
            click.echo(f"Preparing {', '.join(options.rev)} ...", err=True)
        revisions = check_out(options.rev, build=options.build, every_round=options.builds is not None)
        if not options.quiet and len({one.commit for one in revisions}) < len(revisions):
            click.echo("Warning: two of these revisions are the same commit", err=True)
    setting, problem = define(options, revisions)
    if setting.random_builds:
        stack.enter_context(setting.random_builds.hold())
    suite, ledger, gate = None, None, None
    if options.metrics is not None:
        base, chosen = options.fail_if_worse_than, {"higher": options.higher, "fdr": options.fdr}
        reference = base or options.control or setting.arms[0]
        suite = Suite(problem=problem, reference=reference, gate=base is not None, **chosen)
    if options.ledger is not None:
        from truearm.ledger import Ledger, at_level  # other races do not need it

        ledger = stack.enter_context(Ledger(options.ledger, **read_account(options).settings))
        gate = _open_gate(ledger, options, setting, revisions)
        problem = at_level(problem, gate.level)
    seed = options.seed
    if seed is None and not problem.rounds:  # the order of rounds is drawn round by round
        seed = int.from_bytes(os.urandom(4), "big")
    # in rounds or balanced, because the load of a machine changes while commands are run
    first = options.first(problem)
    policy: Policy[Any] = TopTwo(first=first, balanced=True)
    if problem.rounds:
        policy = Paired(first=first, endless=suite is not None, guard=setting.guard)
    elif len(problem.arms) == 1:
        # a time limit would end slow runs early: then the number of runs depends on the readings
        policy = Alone(first=first, runs=options.runs if options.max_time is None else None)
    elif options.control is not None:
        policy = AgainstControl(options.control, fdr=options.fdr, first=first, balanced=True)
    study = Study(problem, policy=policy, seed=seed)
    store = None
    if options.save:
        stack.enter_context(lock(options.save))
        store = stack.enter_context(race_log.create(options.save, study, setting, suite))
    return Race(study=study, setting=setting, store=store, suite=suite, ledger=ledger, gate=gate)


def _open_gate(
    ledger: "Ledger", options: RaceOptions, setting: Setting, revisions: Sequence[Revision]
) -> LedgerGate:
    """Open the next gate of a ledger: from here on its level is spent."""
    commits = {revision.folder: revision.commit for revision in revisions}
    (candidate,) = (arm for arm in setting.arms if arm != options.base)
    details = {
        "metric": setting.metric,
        "goal": options.goal or "min",
        "tolerance": str(options.tolerance),
        "commands": {command.name: _identify(command, commits) for command in setting.commands},
    }
    return ledger.open(candidate, options.base, details)


def _identify(command: Command, commits: dict[str, str | None]) -> dict[str, Any]:
    """Return what a ledger keeps of a command: its text, its commit, and the digest of its program."""
    details: dict[str, Any] = {"command": command.text}
    if command.cwd in commits:
        details["commit"] = commits[command.cwd]
    word = command.argv[0] if command.shell is None else command.text.split()[0]
    program = Path(command.cwd or ".", word) if "/" in word else Path(shutil.which(word) or "/")
    if program.is_file():
        details["sha256"] = hashlib.sha256(program.read_bytes()).hexdigest()
    return details


def resume(options: RaceOptions, stack: ExitStack) -> Race:
    """Return the race of a log, opened on the stack, if this user started it or agrees to run it."""
    path, gate = options.resume, options.fail_if_worse_than
    stack.enter_context(lock(path))
    race = stack.enter_context(race_log.open_log(path, resume=True, yes=options.yes))
    setting, study, suite = race.setting, race.study, race.suite
    known = isinstance(study.policy, AgainstControl | Alone | Paired | TopTwo)
    is_race = setting.commands and known and setting.arms == study.problem.arms
    remedy = f"continue it from Python, see `truearm report {path}`"
    refuse(not is_race, f"{path} holds a study without commands that truearm would race; {remedy}")
    check_name(gate, setting)
    fixed = setting.guard if suite is None else suite.reference
    msg = f"the race compares with {fixed}, not with {gate}; a gate is fixed at the start, so race again"
    refuse(gate not in (None, fixed), msg)
    options.best_of = setting.best_of
    if setting.random_builds:
        stack.enter_context(setting.random_builds.hold())
        options.builds = setting.random_builds.rounds
    else:
        check_unchanged(command.cwd for command in setting.commands if command.cwd is not None)
    return race if suite is None or gate is None else replace(race, suite=replace(suite, gate=True))


def run(race: Race, options: RaceOptions) -> tuple[Answer, click.ClickException | None]:
    """Run a race to its end; return its answer, and the failure that ended it."""
    check_name(options.fail_unless_best, race.setting)
    runner, study, failure, is_new = _Runner(race, options), race.study, None, not race.study.pulls
    started = time.monotonic()
    if runner.is_settled():
        study.stop()  # the log needs no more runs
    if not study.done:
        try:
            with interruptible(), _hooks(race.setting):
                runner.warm_up()
                with _board(race, options, runner) as draw, _time_limit(options.max_time, runner):
                    watch = partial(runner.is_enough, draw, time.monotonic() + MIN_ALONE_S)
                    run_study(study, partial(partial, runner.pull), max_seconds=options.limit, watch=watch)
        except (ArmFailed, CommandFailed) as error:
            study.stop()
            failure = _describe_failure(race, options, error.__cause__ or error)
        except KeyboardInterrupt:
            study.stop()
    elapsed = time.monotonic() - started
    runner.ending.late = options.limit is not None and elapsed >= options.limit
    runner.ending.elapsed = elapsed if is_new else None
    if race.ledger is not None and race.gate is not None:
        runner.ending.decision = race.ledger.record(race.gate, race.result)
    return race_answer(race, options, runner.ending), failure


def _board(race: Race, options: RaceOptions, runner: "_Runner") -> AbstractContextManager[Callable[[], None]]:
    inherit = race.setting.commands[0].output == "inherit"
    if options.quiet or inherit or not is_terminal(sys.stderr) or os.environ.get("TERM") == "dumb":
        return nullcontext(partial(load, "scipy.special"))  # after the first run, not in the middle of a decision
    limit = math.inf if options.limit is None or runner.is_brief else options.limit
    return board(race, unit=options.time_unit, limit=limit, suite=lambda: runner.progress)


@contextmanager
def _time_limit(limit: float | None, runner: "_Runner") -> Iterator[None]:
    """Stop a run that exceeds the limit."""

    def stop(*_: object) -> None:
        if runner.running is not None:
            runner.ending.stopped = runner.running
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    # 0 sets no timer
    signal.setitimer(signal.ITIMER_REAL, 0 if limit is None else limit + max(_GRACE_S, _GRACE_SHARE * limit))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _hooks(setting: Setting) -> Iterator[None]:
    """Run the setup before and the cleanup after, whatever happens; the same line in the same folder once."""
    timeout = setting.conditions.timeout
    setup, cleanup = (
        {(hook.text, hook.cwd): hook for hook in setting.hooks.get(stage, {}).values()}.values()
        for stage in ("setup", "cleanup")
    )
    for hook in setup:
        run_hook(hook, "setup", timeout)
    try:
        yield
    finally:
        for hook in cleanup:
            try:
                run_hook(hook, "cleanup", timeout)
            except TruearmError as error:
                click.echo(f"Warning: {error}", err=True)
            except KeyboardInterrupt:
                line = printable(hook.text)
                click.echo(f"Warning: cleanup {line!r} was interrupted; it may be half done", err=True)
                raise


def _describe_failure(race: Race, options: RaceOptions, cause: BaseException) -> click.ClickException:
    lines = [str(cause) if isinstance(cause, TruearmError | OSError) else repr(cause)]
    if isinstance(cause, CommandFailed) and cause.stage == "command":
        code, known = cause.exit_code, race.setting.conditions.accepted
        remedies = ["-i to count failed runs as missing readings, at their worst"] * (code not in (126, 127))
        remedies += [f"-i={','.join(map(str, (*known, code)))} if this exit code is not a failure"] * (code > 0)
        lines.append(f"Use {', or '.join(remedies)}.")
    if race.gate is not None:
        lines.append(f"Gate {race.gate.number} was open: it is spent, and nothing is accepted.")
    if race.store is not None:
        file = shlex.quote(options.save or options.resume)
        lines.append(f"The runs before it are kept; continue with: truearm race --resume {file}")
    return Failure("\n".join(lines))


class _Runner:
    """The runs of a race: numbered, measured and logged, until there are enough."""

    def __init__(self, race: Race, options: RaceOptions) -> None:
        setting = race.setting
        self._race, self._options = race, options
        is_open = options.runs is None and options.max_time is None and not options.tolerance
        self.is_brief = len(setting.commands) == 1 and is_open
        """Whether one command alone is measured for a few seconds only."""
        self._metrics = {} if race.suite is None else runs_of(race.study.log)
        self.progress = None if race.suite is None else Progress(race.suite).after(self._metrics)
        """How many comparisons of a suite are settled."""
        self.running: str | None = None
        self.ending = Ending()
        self._counts = Counter({arm: len(tape) for arm, tape in race.study.readings.items()})
        self._started, self._rounds = time.monotonic(), max(self._counts.values(), default=0)
        self._next_forecast = max(MIN_FORECAST_ROUNDS, race.first)
        self._builder = Builder(setting.random_builds) if setting.random_builds else None
        self._round: dict[str, Run] = {}  # measured in this round, and not yet pulled
        self._commands = {command.name: command for command in setting.commands}

    def is_settled(self) -> bool:
        """Return True if all metrics are settled, or a command has had its runs."""
        most, least = self._options.most, min(self._counts[arm] for arm in self._commands)
        if self._race.study.in_round or least < self._race.first:
            return False
        self.progress = self.progress and self.progress.after(self._metrics)
        is_done = self.progress is not None and self.progress.done
        return is_done or (most is not None and max(self._counts.values()) >= most)

    def is_enough(self, draw: Callable[[], None], brief_until: float) -> bool:
        """Draw, and return True if the race is decided or will not be."""
        draw()
        is_bounded = self.is_brief and time.monotonic() >= brief_until and self._is_bounded()
        return is_bounded or (not self._race.study.in_round and self._is_out_of_reach()) or self.is_settled()

    def _is_bounded(self) -> bool:
        """Return True if the interval of the only command has two ends, or if half of its runs have no time."""
        study = self._race.study
        found = describe(Judge.of(study.problem, samples_of(study.problem, study.readings)), 0)
        is_known = math.isfinite(found.high - found.low) or not math.isfinite(found.observed)
        return found.n >= self._race.first and is_known

    def _is_out_of_reach(self) -> bool:
        """Return True if a gate will likely not be decided within the limits: a forecast, now and then."""
        study, rounds, limit = self._race.study, max(self._counts.values()), self._options.limit
        guard = getattr(study.policy, "guard", None)
        if guard is None or rounds < self._next_forecast:
            return False
        self._next_forecast = math.ceil(1.05 * rounds)
        budget = float(self._options.most or math.inf)
        if limit is not None:
            pace = (rounds - self._rounds) / (time.monotonic() - self._started)
            budget = min(budget, self._rounds + pace * limit)
        arms, judge = study.problem.arms, Judge.of(study.problem, samples_of(study.problem, study.readings))
        if budget < math.inf and is_out_of_reach(judge, arms.index(guard), int(budget)):
            self.ending.budget = int(budget)
        return self.ending.budget is not None

    def _measure(self, arm: str, iteration: str) -> Run:
        """Run a command once, between its hooks; a time-out counts as worse than any run that ended."""
        setting = self._race.setting
        if setting.warmup_every_run and iteration.isdigit():
            self._measure(arm, f"warmup-{iteration}")  # so that no other command ran just before (extensions R)
        variables = {ITERATION: iteration, **draw_padding()}
        hooks, timeout = setting.hooks, setting.conditions.timeout
        if "prepare" in hooks:
            run_hook(hooks["prepare"][arm].with_env(variables), "prepare", timeout)
        found = measure(self._commands[arm].with_env(variables), setting.metric, setting.conditions)
        if "conclude" in hooks:
            run_hook(hooks["conclude"][arm].with_env(variables), "conclude", timeout)
        return self._race.study.problem.time_out if found.run.timed_out else found.value, found.details()

    def warm_up(self) -> None:
        """Run every command a few times without measuring; builds are warmed up in their round."""
        for i in range(0 if self._builder else self._race.setting.warmup):
            for arm in self._commands:
                self._measure(arm, f"warmup-{i}")

    def _measure_round(self, arms: Sequence[str]) -> dict[str, Run]:
        """Run all arms of a round in turn, several times, in an order symmetric in arms (extensions R5, U1)."""
        setting, best = self._race.setting, min if self._race.study.problem.goal == "min" else max
        made = {arm: self._builder.build(arm) for arm in arms} if self._builder else {}
        count = setting.runs_per_reading
        runs: dict[str, list[Run]] = {arm: [] for arm in arms}
        for i in range(-setting.warmup if made else 0, count):
            for place in shuffle(range(len(arms))):
                arm = arms[place]
                run = self._measure(arm, f"warmup-{-i}" if i < 0 else str(self._counts[arm] * count + i))
                runs[arm] += [run] * (i >= 0)
        found = {arm: join_runs(own, None if made else best) for arm, own in runs.items()}
        return {arm: (value, {**details, **made.get(arm, {})}) for arm, (value, details) in found.items()}

    def pull(self, arm: str) -> float:
        """Run a command once, or return its reading of this round if that is the median or best of several."""
        self.running = arm
        try:
            if self._builder is None and self._race.setting.best_of == 1:
                value, details = self._measure(arm, str(self._counts[arm]))
            else:
                if arm not in self._round:
                    self._round = self._measure_round([arm, *self._race.study.round_left])
                value, details = self._round.pop(arm)
        finally:
            self.running = None
        self._counts[arm] += 1
        if self.progress is not None:
            self._metrics[arm].append(details.get(NOTE))
        return Noted(value, details)
