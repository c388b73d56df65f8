"""`truearm race`: which command is best, answered with an error probability."""

import math
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

from truearm.claims.result import Result
from truearm.cli import gates, options
from truearm.cli.live import Board
from truearm.cli.saved import alone, begun, opened
from truearm.cli.setting import Setting, handicapped, hooks_for
from truearm.cli.telling import Outcome, told, write_files
from truearm.errors import ArmFailed, InvalidArgument, TruearmError
from truearm.events import Noted
from truearm.policies.toptwo import START, TopTwo
from truearm.problem import Problem, Tolerance
from truearm.report.export import runs_of
from truearm.run import run
from truearm.study import Study
from truearm.world.commands import Command, expand, listed, scanned
from truearm.world.processes import (
    METRICS,
    Conditions,
    Measurement,
    command_source,
    run_hook,
    shell_cost,
    warm_up,
)
from truearm.world.store import Store

# What may be said anew when a saved race goes on; all else is fixed in the file.
_AGAIN = {
    *("resume", "max_runs", "max_time", "baseline", "fail_unless_best", "fail_if_worse_than", "strict", "as_json"),
    *("quiet", "time_unit", "export_json", "export_csv", "export_markdown", "export_html", "github_summary"),
}


_NEW_FILE = options.NewFile(dir_okay=False)


@click.command("race", context_settings={"max_content_width": 100})
@click.argument("commands", nargs=-1, metavar="COMMAND...")
@click.option(
    "-n", "--command-name", "names", multiple=True, metavar="NAME", help="Name of a command; repeatable."
)
@click.option("--reference", metavar="COMMAND", help="One more command, which the others are compared with.")
@click.option(
    "--metric",
    type=click.Choice(METRICS),
    default="wall",
    show_default=True,
    help="What is measured: wall time, user and system time (cpu), peak memory (of the command itself, from about "
    "4.9 MiB on, the least that can be shown), or the number on the last line a command prints (stdout).",
)
@click.option(
    "--goal", type=click.Choice(["min", "max"]), help="Which is better; min by default, must be said for stdout."
)
@options.quantile_option
@options.delta_option
@options.contamination_option
@options.tolerance_option
@click.option("-w", "--warmup", type=click.IntRange(0), default=0, help="Runs of each command that do not count.")
@click.option("-r", "--runs", type=click.IntRange(1), help="Exactly so many runs of each command: -m N -M N.")
@click.option(
    "-m",
    "--min-runs",
    type=click.IntRange(1),
    help=f"Runs of each command before the first decision; {START} by default.",
)
@click.option("-M", "--max-runs", type=click.IntRange(1), help="Stop when a command has had so many runs.")
@click.option("--max-time", type=options.DURATION, help="Stop after so many seconds (or 5m, 1h).")
@click.option("--baseline", metavar="NAME", help="What there is: is anything better? Ratios are relative to it.")
@click.option("-s", "--setup", multiple=True, metavar="CMD", help="Run once before the race, for each command.")
@click.option("-p", "--prepare", multiple=True, metavar="CMD", help="Run before every run, not measured.")
@click.option("-C", "--conclude", multiple=True, metavar="CMD", help="Run after every run, not measured.")
@click.option("-c", "--cleanup", multiple=True, metavar="CMD", help="Run once after the race, for each command.")
@click.option(
    "-P", "--parameter-scan", nargs=3, multiple=True, metavar="VAR MIN MAX", help="Race all numbers for {VAR}."
)
@click.option("-D", "--parameter-step-size", metavar="STEP", help="Step of the scans; 1 by default.")
@click.option(
    "-L", "--parameter-list", nargs=2, multiple=True, metavar="VAR A,B,...", help="Race all values for {VAR}."
)
@click.option(
    "-S",
    "--shell",
    default="auto",
    metavar="auto|none|PATH",
    help="One shell for all if one needs it, none, or this.",
)
@click.option("-N", "no_shell", is_flag=True, help="The same as --shell none.")
@click.option("--env", multiple=True, metavar="NAME=VALUE", help="Set a variable for the commands; repeatable.")
@click.option("--cwd", type=click.Path(exists=True, file_okay=False), help="Directory to run the commands in.")
@click.option("--input", "stdin", default="null", metavar="null|FILE", help="Standard input of the commands.")
@click.option(
    "--output",
    "stdout",
    default="null",
    metavar="null|pipe|inherit|FILE",
    help="Where their standard output goes.",
)
@click.option(
    "--timeout",
    type=options.DURATION,
    help="Kill a run after so many seconds. It counts as worse than any run that ended.",
)
@click.option(
    "-i",
    "--ignore-failure",
    is_flag=True,
    help="Count failed runs as missing readings, at their worst, instead of stopping.",
)
@click.option("--seed", type=int, help="Seed of the order of runs inside a batch; recorded in any case.")
@click.option("--save", type=_NEW_FILE, metavar="FILE", help="Log every reading in FILE.")
@click.option("--resume", type=click.Path(dir_okay=False), metavar="FILE", help="Go on with the race in FILE.")
@options.json_option
@click.option("-q", "--quiet", is_flag=True, help="No live table, and no text but the result.")
@click.option(
    "-u", "--time-unit", type=click.Choice(["microsecond", "millisecond", "second"]), help="Unit of times shown."
)
@click.option(
    "--export-json", type=_NEW_FILE, metavar="FILE", help="Everything, with hyperfine's `results` in it."
)
@click.option(
    "--export-csv", type=_NEW_FILE, metavar="FILE", help="One row per command, hyperfine's columns first."
)
@click.option("--export-markdown", type=_NEW_FILE, metavar="FILE", help="The table in Markdown.")
@click.option("--export-html", type=_NEW_FILE, metavar="FILE", help="A page that stands alone.")
@click.option("--github-summary", is_flag=True, help="Append the table to the summary of a GitHub job.")
@click.option("--fail-unless-best", metavar="NAME", help="Exit with 1 if NAME is not the best.")
@click.option(
    "--fail-if-worse-than",
    metavar="NAME",
    help="Exit with 1 if a command is worse than NAME by more than the tolerance.",
)
@click.option("--strict", is_flag=True, help="Exit with 4 if an alarm says that the assumptions fail.")
@click.pass_context
def race_command(ctx: click.Context, /, commands: tuple[str, ...], **chosen: Any) -> None:  # noqa: ANN401
    """Find out which command is best: interleaved runs, until it is known, with an error probability.

    \b
    truearm race 'gzip -kf data' 'zstd -kf data'          which is faster?
    truearm race -w 3 -L n 1,6,9 'gzip -{n} -kf data'     which level is fastest?
    truearm race --tolerance 2% 'sort a' 'sort -S1G a'    within 2 % is good enough
    truearm race --metric memory './old' './new'          which needs less memory?
    truearm race --metric stdout --goal max './train --lr 0.1' './train --lr 0.3'
    truearm race --save r.db 'cmd1' 'cmd2'                and after Ctrl-C or a crash:
    truearm race --resume r.db
    truearm race -n old './old' -n new './new' --fail-if-worse-than old --tolerance 3%

    Up to 5 % of the runs may be disturbed in any way without spoiling the answer (--contamination). Commands run
    without a shell unless one of them uses shell syntax; then all run through the same shell.

    Exit codes: 0 decided; 1 a gate failed; 2 usage, or a command failed; 3 not decided; 4 doubtful.
    """  # noqa: D301 - click wants the control character
    asked = SimpleNamespace(**chosen)
    _check_files(asked)
    with ExitStack() as stack:
        race = _resumed(ctx, commands, asked, stack) if asked.resume else _begun(commands, asked, stack)
        outcome = _outcome(race, asked)
    write_files(outcome, asked)
    click.echo(told(outcome, as_json=asked.as_json))
    ctx.exit(_exit_code(outcome, asked))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Race:
    study: Study
    setting: Setting
    first: int
    store: Store | None


def _begun(commands: Sequence[str], asked: SimpleNamespace, stack: ExitStack) -> _Race:
    setting, problem = _defined(commands, asked)
    first = _first(asked)
    seed = asked.seed if asked.seed is not None else int.from_bytes(os.urandom(4), "big")
    # balanced, because the load of a machine changes while commands are being run
    study = Study.of(problem, policy=TopTwo(first=first, balanced=True), seed=seed)
    store = None
    if asked.save:
        stack.enter_context(alone(asked.save, wait=False))
        store = stack.enter_context(begun(asked.save, study, setting))
    return _Race(study=study, setting=setting, first=first, store=store)


def _resumed(ctx: click.Context, commands: Sequence[str], asked: SimpleNamespace, stack: ExitStack) -> _Race:
    _check_nothing_new(ctx, commands)
    stack.enter_context(alone(asked.resume, wait=False))
    saved = stack.enter_context(opened(asked.resume, broke_off=True))
    if saved.setting is None:
        msg = f"{asked.resume} holds a study without commands; go on with `truearm next` and `truearm tell`"
        raise InvalidArgument(msg)
    return _Race(
        study=saved.study,
        setting=saved.setting,
        first=saved.store.definition["options"]["first"],
        store=saved.store,
    )


def _check_nothing_new(ctx: click.Context, commands: Sequence[str]) -> None:
    given = [
        parameter.opts[-1]
        for parameter in ctx.command.params
        if parameter.name not in _AGAIN
        and parameter.name is not None
        and ctx.get_parameter_source(parameter.name) is click.core.ParameterSource.COMMANDLINE
    ]
    if commands or given:
        what = "commands" if commands else ", ".join(given)
        msg = f"--resume takes {what} from the file, where they were fixed; leave them out"
        raise click.UsageError(msg)


def _check_files(asked: SimpleNamespace) -> None:
    """Refuse now what would fail after the race."""
    if asked.github_summary and not os.environ.get("GITHUB_STEP_SUMMARY"):
        msg = "--github-summary needs the variable GITHUB_STEP_SUMMARY, which GitHub sets in a job"
        raise click.UsageError(msg)
    if asked.save and asked.resume:
        msg = "--resume goes on writing to its own file; leave --save out"
        raise click.UsageError(msg)


def _first(asked: SimpleNamespace) -> int:
    """Return how many runs each command has before the first decision."""
    if asked.runs is not None:
        if asked.min_runs is not None or asked.max_runs is not None:
            msg = "-r says both -m and -M; leave them out"
            raise click.UsageError(msg)
        asked.max_runs = asked.runs
        return int(asked.runs)
    most = asked.max_runs or START
    if asked.min_runs is not None and asked.max_runs is not None and asked.min_runs > asked.max_runs:
        msg = f"-m {asked.min_runs} is more than -M {asked.max_runs}"
        raise click.UsageError(msg)
    return int(asked.min_runs or min(START, most))


def _defined(lines: Sequence[str], asked: SimpleNamespace) -> tuple[Setting, Problem]:
    goal = asked.goal or "min"
    if asked.metric == "stdout" and asked.goal is None:
        msg = "--metric stdout needs --goal max or --goal min: only you know which number is better"
        raise click.UsageError(msg)
    setting = _setting(lines, asked)
    gate = asked.fail_if_worse_than
    tolerance = asked.tolerance
    if gate is not None and tolerance:
        setting = handicapped(setting, _known(gate, setting.arms), tolerance, goal)
        tolerance = Tolerance()
    if gate is not None:
        setting = replace(setting, guard=_in_race(gate, setting))
    problem = Problem(
        arms=setting.arms,
        # a gate shares its error probability out over the comparisons, and the race goes on until they can be made
        delta=asked.delta if gate is None else asked.delta / len(setting.arms),
        contamination=asked.contamination,
        tolerance=tolerance,
        quantile=asked.quantile,
        goal=goal,
    )
    for name in (asked.baseline, asked.fail_unless_best, gate):
        if name is not None:
            _in_race(name, setting)
    return setting, problem


def _setting(lines: Sequence[str], asked: SimpleNamespace) -> Setting:
    shell = "none" if asked.no_shell else asked.shell
    commands = _commands(lines, asked, shell)
    if asked.save:
        for name in ("stdin", "stdout"):
            if getattr(asked, name) not in ("null", "pipe", "inherit"):
                setattr(asked, name, str(Path(getattr(asked, name)).absolute()))
    given: dict[str, tuple[str, ...]] = {
        stage: getattr(asked, stage) for stage in ("setup", "prepare", "conclude", "cleanup")
    }
    return Setting(
        commands=commands,
        metric=asked.metric,
        conditions=Conditions(
            timeout=asked.timeout,
            ignore_failure=asked.ignore_failure,
            input=asked.stdin,
            output=asked.stdout,
        ),
        warmup=asked.warmup,
        hooks={stage: hooks_for(commands, stage, texts, shell) for stage, texts in given.items() if texts},
    )


def _commands(lines: Sequence[str], asked: SimpleNamespace, shell: str) -> tuple[Command, ...]:
    templates = [asked.reference, *lines] if asked.reference else list(lines)
    names = ["", *asked.names] if asked.reference else list(asked.names)
    if not templates:
        msg = "give two commands or more, or --resume FILE; `truearm race --help` shows examples"
        raise click.UsageError(msg)
    if len(names) > len(templates):
        msg = f"{len(asked.names)} names were given for {len(lines)} commands; give at most one -n for each"
        raise click.UsageError(msg)
    parameters: dict[str, tuple[str, ...]] = {}
    for variable, low, high in asked.parameter_scan:
        parameters[variable] = scanned(low, high, asked.parameter_step_size)
    for variable, values in asked.parameter_list:
        parameters[variable] = listed(values)
    # A saved race may go on from another directory.
    cwd = str(Path(asked.cwd or ".").absolute()) if asked.cwd or asked.save else None
    names += [""] * (len(templates) - len(names))
    found = [
        command
        for line, name in zip(templates, names, strict=True)
        for command in expand(line, parameters, name=name, env=_environment(asked.env), cwd=cwd, shell=shell)
    ]
    if len(found) == 1:
        msg = "one command has nobody to race with; give another one, or values for a parameter (-L, -P)"
        raise click.UsageError(msg)
    if asked.reference:
        asked.baseline = asked.baseline or found[0].name
    return tuple(found)


def _environment(pairs: Sequence[str]) -> dict[str, str]:
    for pair in pairs:
        if "=" not in pair or pair.startswith("="):
            msg = f"--env takes NAME=VALUE, but got {pair!r}"
            raise click.UsageError(msg)
    return {pair.partition("=")[0]: pair.partition("=")[2] for pair in pairs}


def _known(name: str, arms: Sequence[str]) -> str:
    if name not in arms:
        msg = f"{name!r} is not in this race; its commands are called {', '.join(map(repr, arms))} (-n names them)"
        raise InvalidArgument(msg)
    return name


def _in_race(name: str, setting: Setting) -> str:
    """Return what a command is called in the race, where the baseline may carry a handicap in its name."""
    given = setting.handicap
    if given is not None and name not in setting.arms and given.baseline == name:
        return given.arm
    return _known(name, setting.arms)


class _Recorder:
    """The source of a race: measures, notes how, and counts."""

    def __init__(self, race: _Race) -> None:
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
        notes = self._last
        if self.race.setting.handicap is not None:
            value, notes = self.race.setting.handicap.applied(arm, value), {**notes, "measured": _plain(value)}
        self.counts[arm] += 1
        return Noted(value, notes)


def _plain(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)  # notes are JSON


def _outcome(race: _Race, asked: SimpleNamespace) -> Outcome:
    began = time.monotonic()
    result = _result(race, asked)
    names = {key: getattr(asked, key) for key in ("baseline", "fail_unless_best", "fail_if_worse_than")}
    found = {key: name and _in_race(name, race.setting) for key, name in names.items()}
    gate = found["fail_if_worse_than"] or race.setting.guard
    late = asked.max_time is not None and time.monotonic() - began >= asked.max_time
    most = asked.max_runs is not None and max(result.pulls.values()) >= asked.max_runs
    return Outcome(
        result=result,
        tapes=race.study.readings,
        setting=race.setting,
        runs=runs_of(race.study.events()),
        seed=race.study.seed,
        unit=asked.time_unit,
        reference=found["baseline"] or gate,
        baseline=found["baseline"],
        gate=gate,
        path=str(race.store.path) if race.store is not None else None,
        ended=late or most or result.total >= race.study.max_pulls,
        quiet=asked.quiet,
        shell_cost=shell_cost(race.setting.commands[0], race.setting.metric),
    )


def _result(race: _Race, asked: SimpleNamespace) -> Result:
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
                    max_seconds=asked.max_time,
                    watch=partial(_watch, race, recorder.counts, asked.max_runs, draw),
                )
    except ArmFailed as error:
        raise _stopped(race, error.__cause__ or error) from error
    except KeyboardInterrupt:
        study.stop()
        assert study.result is not None
        return study.result


def _watch(race: _Race, counts: Counter[str], most: int | None, draw: Callable[[], None]) -> bool:
    draw()
    if most is None or max(counts.values()) < most:
        return False
    return min(counts[arm] for arm in race.setting.arms) >= race.first


@contextmanager
def _board(race: _Race, asked: SimpleNamespace) -> Iterator[Callable[[], None]]:
    if asked.quiet or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield lambda: None
        return
    limit = float("inf") if asked.max_time is None else asked.max_time
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
    for hook in _distinct(setting, "setup"):
        run_hook(hook, "setup")
    try:
        yield
    finally:
        for hook in _distinct(setting, "cleanup"):
            try:
                run_hook(hook, "cleanup")
            except TruearmError as error:
                click.echo(f"Warning: {error}", err=True)


def _distinct(setting: Setting, stage: str) -> list[Command]:
    return list({command.text: command for command in setting.hooks.get(stage, {}).values()}.values())


class _Failure(click.ClickException):
    exit_code = gates.USAGE


def _stopped(race: _Race, cause: BaseException) -> click.ClickException:
    words = [str(cause) if isinstance(cause, TruearmError) else repr(cause)]
    if "count as missing" in words[0]:
        words.append("(-i counts failed runs as missing readings, at their worst)")
    if race.store is not None:
        words.append(f"{race.study.pulls} runs are kept; go on with: truearm race --resume {race.store.path.name}")
    return _Failure("\n".join(words))


def _exit_code(outcome: Outcome, asked: SimpleNamespace) -> int:
    best = asked.fail_unless_best and _in_race(asked.fail_unless_best, outcome.setting)
    return gates.exit_code(outcome.result, unless_best=best, worse=outcome.worse, strict=asked.strict)
