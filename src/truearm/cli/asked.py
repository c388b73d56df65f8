"""The options of a race: checked together, then turned into commands and a problem."""

import os
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import click

from truearm.claims.suite import Suite
from truearm.cli.saved import HOOKS, Setting
from truearm.commands.command import (
    MAX_COMMANDS,
    Command,
    bind,
    combinations,
    fill,
    scan,
    split_list,
    unknown_placeholder,
)
from truearm.commands.measure import Conditions
from truearm.commands.revisions import Builds, Revision
from truearm.errors import InvalidArgument
from truearm.evidence import Judge
from truearm.evidence.wins import least_rounds, win_level_of
from truearm.policies.toptwo import START
from truearm.problem import Handicap, Problem, Tolerance
from truearm.report.numbers import plural

DEFAULT_LIMIT_S = 180.0  # of a race without -r, -M and --max-time
DEFAULT_RUNS_PER_BUILD = 5
_FIXED_STREAMS = ("null", "pipe", "inherit")
_COMPARING = ("control", "fail-unless-best", "fail-if-worse-than")


class Asked(SimpleNamespace):
    """The options of `truearm race` by name, and what follows from several of them."""

    @property
    def exports(self) -> dict[str, str]:
        """The files to write, by format; - is standard output."""
        found = {name: getattr(self, f"export_{name}") for name in ("json", "csv", "markdown", "html")}
        return {name: path for name, path in found.items() if path is not None}

    @property
    def share(self) -> bool:
        """Whether shares are compared."""
        return self.at_least is not None or self.at_most is not None

    @property
    def rounds(self) -> bool:
        """Whether commands are compared side by side, as they are unless another target is named."""
        return self.metrics is not None or (self.quantile is None and not self.share and self.control is None)

    @property
    def most(self) -> int | None:
        """How many readings of each command there may be."""
        return self._readings(self.runs or self.max_runs) or self.builds

    @property
    def limit(self) -> float | None:
        """How many seconds the race may take."""
        return DEFAULT_LIMIT_S if self.max_time is None and self.most is None else self.max_time

    @property
    def brief(self) -> bool:
        """Whether one command alone is measured for a few seconds only."""
        return self.runs is None and self.max_time is None and not self.tolerance

    def first(self, problem: Problem) -> int:
        """Return how many readings each command has before the first decision."""
        start = 1 if problem.rounds else START
        least, most = self._readings(self.runs or self.min_runs), self._readings(self.max_runs)
        return least or min(start, most or start)

    def _readings(self, runs: int | None) -> int | None:
        return None if runs is None else runs // int(self.best_of)


_NEEDS = (  # an option, others of which it needs one, and the remedy
    ("build", "rev", "--build goes with revisions; name them with --rev"),
    ("builds", "build", "--builds N builds revisions N times; say how with --rev and --build"),
    ("runs_per_build", "builds", "--runs-per-build is the runs of each of --builds N; add it"),
    ("rev", "commands resume", "give the command to run in each revision, after --: {example}"),
    ("fdr", "control metrics resume", "--fdr is about commands that beat a control; name it with --control"),
    ("parameter_step_size", "parameter_scan", "--parameter-step-size is the step of a scan; use it with -P"),
    ("higher", "metrics", "--higher names metrics of a suite; add --metrics json"),
    ("ledger", "base", "--ledger needs --base NAME: the command that is in use now"),
    ("base", "ledger", "--base goes with --ledger FILE; add it"),
    ("expected", "ledger", "--expected goes with --ledger FILE; add it"),
    ("yes", "resume", "--yes agrees to the commands of --resume FILE; remove it"),
)
_EXCLUDES = (  # an option, others that contradict it, and why
    (
        "builds",
        "runs max_runs best_of parameter_list parameter_scan setup cleanup quantile at_least at_most control",
        "--builds N races revisions in up to N rounds of new builds; remove {others}",
    ),
    (
        "metrics",
        "metric quantile best_of at_least at_most fail_unless_best time_unit",
        "--metrics json compares all metrics in rounds, as they are; remove {others}",
    ),
    (
        "ledger",  # what asks another question than its gates, or would let one be decided twice
        "delta quantile at_least at_most control fdr metrics fail_unless_best fail_if_worse_than strict seed save "
        "resume",
        "--ledger decides in rounds, in one race, at its own level; remove {others}",
    ),
    ("runs", "min_runs max_runs", "-r says both -m and -M; remove {others}"),
    ("best_of", "quantile at_least at_most control", "--best-of is about rounds; remove it, or {others}"),
    ("save", "resume", "--resume goes on writing to its own file; remove --save"),
    ("show_output", "output", "--show-output is --output inherit; remove one of them"),
)
_AGAIN = (  # what may change when a saved race continues; all else is fixed in the file
    "resume yes max_runs max_time fail_unless_best fail_if_worse_than strict json quiet verbose time_unit "
    "export_json export_csv export_markdown export_html github_summary"
)


def check(asked: Asked, given: Mapping[str, str]) -> Asked:
    """Refuse options that contradict each other before anything is run; `given` has the flags of those given."""
    for option, others, msg in _NEEDS:
        if option in given and not any(other in given for other in others.split()):
            raise click.UsageError(msg.format(example="truearm race --rev main --rev . -- ./bench"))
    for option, others, msg in _EXCLUDES:
        if option in given and (found := [given[other] for other in others.split() if other in given]):
            raise click.UsageError(msg.format(others=", ".join(found)))
    new = [flag for name, flag in given.items() if name not in _AGAIN.split()]
    if asked.resume and new:
        what = "commands" if "commands" in given else ", ".join(new)
        raise click.UsageError(f"--resume takes {what} from the file, where they were fixed; remove them")
    if wrong := [*_about_runs(asked), *_about_questions(asked), *_about_files(asked)]:
        raise click.UsageError(wrong[0])
    return asked


def _about_runs(asked: Asked) -> Iterator[str]:
    if asked.build and "{seed}" in asked.build and not asked.builds:
        yield "{seed} in --build is another one for each of --builds N; add it"
    if len(asked.rev) == 1 and not (asked.parameter_list or asked.parameter_scan):
        yield "a race needs two revisions; give another --rev, such as . for the working tree"
    if asked.rev and asked.cwd and not {"{dir}", "{rev}"} & {*re.findall(r"{\w+}", asked.cwd)}:
        yield f"--cwd {asked.cwd} is one folder for all revisions; write --cwd {{dir}}/{asked.cwd}"
    if asked.min_runs is not None and asked.max_runs is not None and asked.min_runs > asked.max_runs:
        yield f"-m {asked.min_runs} is more than -M {asked.max_runs}"
    for option, runs in (("-r", asked.runs), ("-m", asked.min_runs), ("-M", asked.max_runs)):
        if runs is not None and runs < asked.best_of:
            yield f"{option} {runs} is less than --best-of {asked.best_of}, the runs of one reading; raise it"


def _about_questions(asked: Asked) -> Iterator[str]:
    limit = asked.timeout if asked.metric == "wall" else None
    if limit is not None and asked.at_most is not None and asked.at_most > limit:
        # a run that is killed must be a failure (extensions 1.8)
        yield f"--timeout {limit} ends runs that may last at most {asked.at_most}; use at least as long"
    if limit is not None and asked.at_least is not None:
        yield "--timeout counts long runs as worst, and --at-least as successes; remove one"
    gate = asked.fail_if_worse_than and asked.tolerance
    for option, given in (("fail-unless-best", asked.fail_unless_best), ("control", asked.control)):
        if gate and given and not asked.metrics:
            yield f"--{option} and --fail-if-worse-than with a tolerance are two questions; race twice"
    if asked.share and gate:
        yield "--fail-if-worse-than has a tolerance for readings, not for shares; remove --tolerance"
    if asked.metric == "stdout" and asked.goal is None and not asked.share and not asked.resume:
        yield "--metric stdout needs --goal max or --goal min: only you know which number is better"
    if asked.metrics and asked.control and asked.fail_if_worse_than not in (None, asked.control):
        yield "--control and --fail-if-worse-than name two commands to compare the others with; remove one"
    if asked.higher and asked.goal == "max":
        yield "--higher names exceptions from --goal min; remove one"


def _about_files(asked: Asked) -> Iterator[str]:
    if asked.github_summary and not os.environ.get("GITHUB_STEP_SUMMARY"):
        yield "--github-summary needs the variable GITHUB_STEP_SUMMARY, which GitHub sets in a job"
    if asked.metric == "stdout" and (asked.show_output or asked.output not in (None, "null", "pipe")):
        yield "--metric stdout reads what commands print; remove --output and --show-output"
    printed = [f"--export-{name}" for name, path in asked.exports.items() if path == "-"]
    printed += ["--json"] if asked.json else []
    if len(printed) > 1:
        yield f"{' and '.join(printed)} cannot both go to standard output; write one to a file"
    paths = {f"--export-{name}": path for name, path in asked.exports.items() if path != "-"}
    by_path: dict[Path, str] = {}
    for option, path in {**paths, "--save": asked.save, "--resume": asked.resume}.items():
        if path is not None and (first := by_path.setdefault(Path(path).absolute(), option)) != option:
            yield f"{first} and {option} write to the same file, {path!r}; name two files"


def define(asked: Asked, revisions: Sequence[Revision] = ()) -> tuple[Setting, Problem]:
    """Return what a race runs and what it decides."""
    gate, tolerance = None if asked.metrics else asked.fail_if_worse_than, asked.tolerance
    setting = replace(_make_setting(asked, revisions), guard=gate)
    names = {f"--{name}": getattr(asked, name.replace("-", "_")) for name in _COMPARING}
    comparing = {**names, "--metrics json": asked.metrics, "--best-of": asked.best_of > 1}
    option = next((option for option, given in comparing.items() if given), None)
    if len(setting.commands) == 1 and option is not None:
        msg = f"{option} compares commands, and there is one; give another, or values for a parameter (-L)"
        raise click.UsageError(msg)
    for name in names.values():
        check_name(name, setting)
    rival = gate if asked.ledger is None else _candidate(asked, setting)
    is_time = asked.metric == "wall" and not asked.share and asked.goal in (None, "min")
    limit = asked.timeout if is_time else None
    handicap = Handicap(rival, tolerance, limit) if rival is not None and tolerance else None
    in_rounds = asked.rounds and len(setting.commands) > 1
    automatic = "blind" if in_rounds else 0.05
    problem = Problem.of(
        setting.arms,
        # a gate splits its error probability over the comparisons; in rounds the policy does that
        delta=asked.delta if gate is None or asked.rounds else asked.delta / len(setting.arms),
        contamination=automatic if asked.contamination == "auto" else asked.contamination,
        tolerance=tolerance if handicap is None else Tolerance(),
        quantile=0.5 if asked.quantile is None else asked.quantile,
        rounds=in_rounds,
        default_goal="min",
        goal=asked.goal,
        at_least=asked.at_least,
        at_most=asked.at_most,
    )
    if asked.builds:
        _check_builds(asked.builds, problem, uncounted=asked.metrics is not None)
    return setting, replace(problem, handicap=handicap)


def _check_builds(builds: int, problem: Problem, *, uncounted: int) -> None:
    """Refuse fewer builds than can decide; the first round of a suite shows which metrics there are."""
    level, threshold = win_level_of(problem.contamination), Judge.of(problem, ()).log_threshold
    least = uncounted + least_rounds(level, threshold)  # extensions U2
    if builds < least:
        raise click.UsageError(
            f"--builds {builds} cannot decide: {plural(len(problem.arms), 'revision')} at an error probability of "
            f"{problem.error:g} take {least} rounds at least, each with new builds; use --builds {least} or more"
        )


def _candidate(asked: Asked, setting: Setting) -> str:
    """Return the command that a gate of a ledger may accept."""
    if len(setting.commands) != 2:
        msg = f"--ledger compares one candidate with --base, but got {plural(len(setting.commands), 'command')}; "
        raise click.UsageError(f"{msg}open a gate for each candidate")
    base = check_name(asked.base, setting)
    return next(arm for arm in setting.arms if arm != base)


def suite_of(asked: Asked, setting: Setting, problem: Problem) -> Suite | None:
    """Return the question about all metrics together, if there are many."""
    if asked.metrics is None:
        return None
    gate = asked.fail_if_worse_than
    reference = gate or asked.control or setting.arms[0]
    return Suite(problem=problem, reference=reference, higher=asked.higher, fdr=asked.fdr, gate=gate is not None)


def check_name(name: str | None, setting: Setting) -> str | None:
    """Return the name of a command of the race; raise if the race has no such command."""
    if name is not None and name not in setting.arms:
        arms = ", ".join(map(repr, setting.arms))
        raise InvalidArgument(f"{name!r} is not in this race; its commands are called {arms} (-n names them)")
    return name


def _make_setting(asked: Asked, revisions: Sequence[Revision]) -> Setting:
    shell = "none" if asked.N else asked.shell
    env = dict(_split_variable(pair) for pair in asked.env)
    make = _in_revisions if asked.rev else _plain_commands
    commands = tuple(_fill_surroundings(command, asked) for command in make(asked, revisions, shell, env))
    typed = [variable for variable, *_ in (*asked.parameter_scan, *asked.parameter_list)]
    hooks = {stage: lines for stage in HOOKS if (lines := getattr(asked, stage))}
    own = {name for command in commands for name in ("input", "output") if getattr(command, name) is not None}
    output = "inherit" if asked.show_output else asked.output or "null"
    return Setting(
        commands=commands,
        metric=asked.metrics or asked.metric,
        conditions=Conditions(
            timeout=asked.timeout,
            ignore_failure=asked.ignore_failure,
            accepted=asked.accepted,
            input="null" if "input" in own else _absolute(asked.input, asked),
            output="null" if "output" in own else _absolute(output, asked),
        ),
        warmup=asked.warmup,
        warmup_every_run=asked.warmup_every_run,
        best_of=asked.best_of,
        builds=_builds(asked, revisions, commands),
        hooks={stage: _hooks(commands, stage, lines, shell, typed) for stage, lines in hooks.items()},
    )


def _split_variable(pair: str) -> tuple[str, str]:
    name, equals, value = pair.partition("=")
    if not equals or not name:
        raise click.UsageError(f"--env takes NAME=VALUE, but got {pair!r}")
    return name, value


def _hooks(
    commands: Sequence[Command], stage: str, lines: tuple[str, ...], shell: str, typed: Collection[str]
) -> dict[str, Command]:
    """Return the hook of every arm: one line for all commands, or one for each; `typed` values are not quoted."""
    if len(lines) not in (1, len(commands)):
        msg = f"--{stage} must be given once or for each of {len(commands)} commands, but came {len(lines)} times"
        raise InvalidArgument(msg)
    # a hook is not measured, so that it may have the shell it needs even under --shell none, and only then
    how = "auto" if shell == "none" else shell
    found = {}
    for arm, line in zip(commands, lines * (len(commands) if len(lines) == 1 else 1), strict=True):
        own = [name for name in arm.parameters if name in typed]
        found[arm.name] = bind(line, arm.parameters, env=arm.env, cwd=arm.cwd, shell=how, typed=own)
    return found


def _builds(asked: Asked, revisions: Sequence[Revision], commands: Sequence[Command]) -> Builds | None:
    if asked.build is None:
        return None
    by_folder = {revision.folder: revision for revision in revisions}
    arms = {command.name: by_folder[command.parameters["dir"]] for command in commands}
    runs = (asked.runs_per_build or DEFAULT_RUNS_PER_BUILD) if asked.builds else 1
    return Builds(command=asked.build, revisions=arms, rounds=asked.builds, runs=runs)


def _fill_surroundings(command: Command, asked: Asked) -> Command:
    """Return a command with its parameters replaced in environment, directory, input and output."""
    values, output = command.parameters, asked.output or "null"
    given = {"--input": asked.input, "--output": output, "--cwd": asked.cwd or ""}
    given.update({f"--env {name}": value for name, value in command.env.items()})
    for option, text in given.items():
        if asked.rev and (word := unknown_placeholder(text, values)) is not None:
            known = ", ".join(f"{{{name}}}" for name in values)
            raise click.UsageError(f"{option} contains {{{word}}}, which has no value; use {known}")
    cwd = command.cwd
    if asked.cwd:
        cwd = str(Path(fill(asked.cwd, values)).absolute())
        if not (Path(cwd).is_dir() or asked.builds):
            raise click.UsageError(f"--cwd: there is no folder {cwd!r}; make it first, or name another")
    own = {name: fill(text, values) for name, text in (("input", asked.input), ("output", output)) if values}
    streams = {name: _absolute(text, asked) for name, text in own.items() if text != "null"}
    env = {name: fill(value, values) for name, value in command.env.items()}
    return replace(command, env=env, cwd=cwd, input=streams.get("input"), output=streams.get("output"))


def _absolute(place: str, asked: Asked) -> str:
    """Return the path of a stream so that a saved race may continue from another directory."""
    return str(Path(place).absolute()) if asked.save and place not in _FIXED_STREAMS else place


def _plain_commands(
    asked: Asked, _revisions: Sequence[Revision], shell: str, env: Mapping[str, str]
) -> Iterator[Command]:
    """Return every command with every combination of values, in hyperfine's order."""
    templates, names = asked.commands, asked.command_name
    lines = [(row, i) for row in combinations(_parameters(asked, templates)) for i in range(len(templates))]
    if not lines:
        raise click.UsageError(
            "give a command or more, such as truearm race 'gzip -kf data' 'zstd -kf data', or --resume FILE; "
            "`truearm race --help` shows more"
        )
    if len(lines) > MAX_COMMANDS:
        msg = f"a race takes {MAX_COMMANDS:,} commands at most, but got {len(lines):,}; race a part of them first"
        raise click.UsageError(msg)
    if len(names) > len(templates) and len(names) != len(lines):
        typed = f" as typed ({len(templates)}), or for each with its values ({len(lines)})"
        _refuse_names(names, plural(len(lines), "command"), typed * (len(lines) > len(templates)))
    each = len(names) == len(lines) > len(templates)
    cwd = str(Path().absolute()) if asked.save else None  # a saved race may continue from another directory
    for place, (row, i) in enumerate(lines):
        name = names[place] if each else (*names, *[""] * len(templates))[i]
        command = bind(templates[i], row, name=name, env=env, cwd=cwd, shell=shell, typed=row)
        if row and not name and len(templates) == 1 and templates[0] not in {f"{{{key}}}" for key in row}:
            name = _describe_values(row)
        yield replace(command, name=name) if name and (each or (row and not names)) else command


def _in_revisions(
    asked: Asked, revisions: Sequence[Revision], shell: str, env: Mapping[str, str]
) -> Iterator[Command]:
    """Return the one command, whose words follow --, in every revision."""
    line = asked.commands[0] if len(asked.commands) == 1 else shlex.join(asked.commands)
    names = asked.command_name or [one.name for one in revisions]
    if len(names) != len(revisions):
        _refuse_names(names, plural(len(revisions), "revision"), ", or none")
    rows = combinations(_parameters(asked, [line]))
    for (revision, name), row in product(zip(revisions, names, strict=True), rows):
        values = {"rev": revision.name, "dir": revision.folder, **row}
        command = bind(line, values, env=env, cwd=revision.folder, shell=shell, typed=row)
        yield replace(command, name=f"{name} {_describe_values(row)}".rstrip())


def _refuse_names(names: Sequence[str], what: str, how: str) -> NoReturn:
    given = "1 name was" if len(names) == 1 else f"{len(names)} names were"
    raise click.UsageError(f"{given} given for {what}; give one -n for each{how}")


def _describe_values(row: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in row.items())


def _parameters(asked: Asked, templates: Sequence[str]) -> dict[str, tuple[str, ...]]:
    given = [
        *((name, scan(low, high, asked.parameter_step_size)) for name, low, high in asked.parameter_scan),
        *((name, split_list(values)) for name, values in asked.parameter_list),
    ]
    texts = [*templates, *(line for stage in HOOKS for line in getattr(asked, stage))]
    texts += [*asked.env, asked.cwd or "", asked.input, asked.output or ""]
    names = ["rev", "dir"] if asked.rev else []
    for name, _ in given:
        if name in names:
            own = " (--rev gives it its values)" if asked.rev and name in ("rev", "dir") else ""
            msg = f"parameter {name!r} is given twice{own}; give all its values at once, or rename one"
            raise click.UsageError(msg)
        if not any(f"{{{name}}}" in text for text in texts):
            msg = f"no command uses {{{name}}}, so all of its values would race the same; write it into a command"
            raise click.UsageError(msg)
        names.append(name)
    return dict(given)
