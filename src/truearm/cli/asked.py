"""The options of a race: checked together, then turned into commands and a problem."""

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import click

from truearm.claims.suite import Suite
from truearm.cli.setting import HOOKS, Setting, hooks_for
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


def check(asked: Asked) -> Asked:
    """Refuse options that contradict each other before anything is run."""
    for wrong, msg in (
        *_about_revisions(asked),
        *_about_limits(asked),
        *_about_questions(asked),
        *_about_suites(asked),
        *_about_ledgers(asked),
        *_about_files(asked),
    ):
        if wrong:
            raise click.UsageError(msg)
    return asked


_Checks = Iterator[tuple[object, str]]


def _about_revisions(asked: Asked) -> _Checks:
    yield asked.build is not None and not asked.revisions, "--build goes with revisions; name them with --rev"
    yield asked.builds and not asked.build, "--builds N builds revisions N times; say how with --rev and --build"
    yield asked.runs_per_build and not asked.builds, "--runs-per-build is the runs of each of --builds N; add it"
    yield (
        asked.build and "{seed}" in asked.build and not asked.builds,
        "{seed} in --build is another one for each of --builds N; add it",
    )
    for option, given in (
        ("-r", asked.runs),
        ("-M", asked.max_runs),
        ("--best-of", asked.best_of > 1),
        ("-L and -P", asked.parameter_list or asked.parameter_scan),
        ("--setup and --cleanup", asked.setup or asked.cleanup),
        ("--quantile, --at-least, --at-most and --control", not asked.rounds),
    ):
        yield (
            asked.builds and given,
            f"--builds N races revisions in up to N rounds of new builds; remove {option}",
        )
    yield (
        asked.revisions and not (asked.commands or asked.resume),
        "give the command to run in each revision, after --: truearm race --rev main --rev . -- ./bench",
    )
    yield (
        len(asked.revisions) == 1 and not (asked.parameter_list or asked.parameter_scan),
        "a race needs two revisions; give another --rev, such as . for the working tree",
    )
    yield (
        asked.revisions and asked.cwd and not {"{dir}", "{rev}"} & {*re.findall(r"{\w+}", asked.cwd)},
        f"--cwd {asked.cwd} is one folder for all revisions; write --cwd {{dir}}/{asked.cwd}",
    )


def _about_limits(asked: Asked) -> _Checks:
    yield (
        asked.runs is not None and (asked.min_runs is not None or asked.max_runs is not None),
        "-r says both -m and -M; remove them",
    )
    yield (
        asked.min_runs is not None and asked.max_runs is not None and asked.min_runs > asked.max_runs,
        f"-m {asked.min_runs} is more than -M {asked.max_runs}",
    )
    for option, runs in (("-r", asked.runs), ("-m", asked.min_runs), ("-M", asked.max_runs)):
        yield (
            runs is not None and runs < asked.best_of,
            f"{option} {runs} is less than --best-of {asked.best_of}, the runs of one reading; raise it",
        )
    limit = asked.timeout if asked.metric == "wall" else None
    yield (  # a run that is killed must be a failure (extensions 1.8)
        limit is not None and asked.at_most is not None and asked.at_most > limit,
        f"--timeout {limit} ends runs that may last at most {asked.at_most}; use at least as long",
    )
    yield (
        limit is not None and asked.at_least is not None,
        "--timeout counts long runs as worst, and --at-least as successes; remove one",
    )


def _about_questions(asked: Asked) -> _Checks:
    gate = asked.fail_if_worse_than and asked.tolerance
    yield (
        asked.fail_unless_best and gate,
        "--fail-unless-best and --fail-if-worse-than with a tolerance are two questions; race twice",
    )
    yield (
        not asked.metrics and asked.control is not None and gate,
        "--control and --fail-if-worse-than with a tolerance are two questions; race twice",
    )
    yield (
        asked.share and gate,
        "--fail-if-worse-than has a tolerance for readings, not for shares; remove --tolerance",
    )
    yield (
        asked.fdr and asked.control is None and not (asked.metrics or asked.resume),
        "--fdr is about commands that beat a control; name it with --control",
    )
    yield (
        asked.metric == "stdout" and asked.goal is None and not asked.share and not asked.resume,
        "--metric stdout needs --goal max or --goal min: only you know which number is better",
    )
    yield (
        asked.parameter_step_size is not None and not asked.parameter_scan,
        "--parameter-step-size is the step of a scan; use it with -P",
    )
    yield (
        asked.best_of > 1 and not asked.rounds,
        "--best-of is about rounds; remove it, or --quantile, --at-least, --at-most and --control",
    )


def _about_suites(asked: Asked) -> _Checks:
    yield asked.higher and not asked.metrics, "--higher names metrics of a suite; add --metrics json"
    if not asked.metrics:
        return
    for option, given in (
        ("--metric", asked.metric != "wall"),
        ("--quantile", asked.quantile is not None),
        ("--best-of", asked.best_of > 1),
        ("--at-least or --at-most", asked.share),
        ("--fail-unless-best", asked.fail_unless_best),
        ("--time-unit", asked.time_unit),
    ):
        yield given, f"--metrics json compares all metrics in rounds, as they are; remove {option}"
    yield (
        asked.control and asked.fail_if_worse_than and asked.control != asked.fail_if_worse_than,
        "--control and --fail-if-worse-than name two commands to compare the others with; remove one",
    )
    yield asked.higher and asked.goal == "max", "--higher names exceptions from --goal min; remove one"


def _about_ledgers(asked: Asked) -> _Checks:
    yield asked.ledger and asked.base is None, "--ledger needs --base NAME: the command that is in use now"
    for option, given in (("--base", asked.base), ("--expected", asked.expected)):
        yield given is not None and asked.ledger is None, f"{option} goes with --ledger FILE; add it"


def _about_files(asked: Asked) -> _Checks:
    yield (
        asked.github_summary and not os.environ.get("GITHUB_STEP_SUMMARY"),
        "--github-summary needs the variable GITHUB_STEP_SUMMARY, which GitHub sets in a job",
    )
    yield asked.show_output and asked.stdout, "--show-output is --output inherit; remove one of them"
    yield (
        asked.metric == "stdout" and (asked.show_output or asked.stdout not in (None, "null", "pipe")),
        "--metric stdout reads what commands print; remove --output and --show-output",
    )
    yield asked.yes and not asked.resume, "--yes agrees to the commands of --resume FILE; remove it"
    yield asked.save and asked.resume, "--resume goes on writing to its own file; remove --save"
    printed = [f"--export-{name}" for name, path in asked.exports.items() if path == "-"]
    printed += ["--json"] if asked.as_json else []
    yield len(printed) > 1, f"{' and '.join(printed)} cannot both go to standard output; write one to a file"
    paths = {f"--export-{name}": path for name, path in asked.exports.items() if path != "-"}
    by_path: dict[Path, str] = {}
    for option, path in {**paths, "--save": asked.save, "--resume": asked.resume}.items():
        if path is not None:
            first = by_path.setdefault(Path(path).absolute(), option)
            yield first != option, f"{first} and {option} write to the same file, {path!r}; name two files"


def define(asked: Asked, revisions: Sequence[Revision] = ()) -> tuple[Setting, Problem]:
    """Return what a race runs and what it decides."""
    gate, tolerance = None if asked.metrics else asked.fail_if_worse_than, asked.tolerance
    setting = _make_setting(asked, revisions)
    comparing = {
        "--control": asked.control,
        "--fail-unless-best": asked.fail_unless_best,
        "--fail-if-worse-than": asked.fail_if_worse_than,
        "--metrics json": asked.metrics,
        "--best-of": asked.best_of if asked.best_of > 1 else None,
    }
    option = next((option for option, given in comparing.items() if given is not None), None)
    if len(setting.commands) == 1 and option is not None:
        msg = f"{option} compares commands, and there is one; give another, or values for a parameter (-L)"
        raise click.UsageError(msg)
    rival = gate
    if asked.ledger is not None:
        rival = _candidate(asked, setting)
    for name in (asked.control, asked.fail_unless_best, asked.fail_if_worse_than):
        check_name(name, setting)
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
    return replace(setting, guard=gate), replace(problem, handicap=handicap)


def _check_builds(builds: int, problem: Problem, *, uncounted: int) -> None:
    """Refuse fewer builds than can decide; the first round of a suite shows which metrics there are."""
    least = uncounted + least_rounds(
        win_level_of(problem.contamination), Judge.of(problem, ()).log_threshold
    )  # extensions U2
    if builds < least:
        msg = (
            f"--builds {builds} cannot decide: {plural(len(problem.arms), 'revision')} at an error probability of "
            f"{problem.error:g} take {least} rounds at least, each with new builds; use --builds {least} or more"
        )
        raise click.UsageError(msg)


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
    return Suite(
        problem=problem,
        reference=gate or asked.control or setting.arms[0],
        higher=asked.higher,
        fdr=asked.fdr,
        gate=gate is not None,
    )


def check_name(name: str | None, setting: Setting) -> str | None:
    """Return the name of a command of the race; raise if the race has no such command."""
    if name is not None and name not in setting.arms:
        arms = ", ".join(map(repr, setting.arms))
        msg = f"{name!r} is not in this race; its commands are called {arms} (-n names them)"
        raise InvalidArgument(msg)
    return name


def _make_setting(asked: Asked, revisions: Sequence[Revision]) -> Setting:
    shell = "none" if asked.no_shell else asked.shell
    commands = _in_revisions(asked, revisions, shell) if asked.revisions else _plain_commands(asked, shell)
    commands = tuple(_fill_surroundings(command, asked) for command in commands)
    typed = [variable for variable, *_ in (*asked.parameter_scan, *asked.parameter_list)]
    hooks: dict[str, tuple[str, ...]] = {stage: getattr(asked, stage) for stage in HOOKS}
    own = {name for command in commands for name in ("input", "output") if getattr(command, name) is not None}
    output = "inherit" if asked.show_output else asked.stdout or "null"
    return Setting(
        commands=commands,
        metric=asked.metrics or asked.metric,
        conditions=Conditions(
            timeout=asked.timeout,
            ignore_failure=asked.ignore_failure,
            accepted=asked.accepted,
            input="null" if "input" in own else _absolute(asked.stdin, asked),
            output="null" if "output" in own else _absolute(output, asked),
        ),
        warmup=asked.warmup,
        warmup_every_run=asked.warmup_every_run,
        best_of=asked.best_of,
        builds=_builds(asked, revisions, commands),
        hooks={stage: hooks_for(commands, stage, texts, shell, typed) for stage, texts in hooks.items() if texts},
    )


def _builds(asked: Asked, revisions: Sequence[Revision], commands: Sequence[Command]) -> Builds | None:
    if asked.build is None:
        return None
    by_folder = {revision.folder: revision for revision in revisions}
    arms = {command.name: by_folder[command.parameters["dir"]] for command in commands}
    runs = (asked.runs_per_build or DEFAULT_RUNS_PER_BUILD) if asked.builds else 1
    return Builds(command=asked.build, revisions=arms, rounds=asked.builds, runs=runs)


def _fill_surroundings(command: Command, asked: Asked) -> Command:
    """Return a command with its parameters replaced in environment, directory, input and output."""
    values, output = command.parameters, asked.stdout or "null"
    given = {"--input": asked.stdin, "--output": output, "--cwd": asked.cwd or ""}
    given.update({f"--env {name}": value for name, value in command.env.items()})
    for option, text in given.items():
        if asked.revisions and (word := unknown_placeholder(text, values)) is not None:
            known = ", ".join(f"{{{name}}}" for name in values)
            msg = f"{option} contains {{{word}}}, which has no value; use {known}"
            raise click.UsageError(msg)
    cwd = command.cwd
    if asked.cwd:
        cwd = str(Path(fill(asked.cwd, values)).absolute())
        if not (Path(cwd).is_dir() or asked.builds):
            msg = f"--cwd: there is no folder {cwd!r}; make it first, or name another"
            raise click.UsageError(msg)
    own = {name: fill(text, values) for name, text in (("input", asked.stdin), ("output", output)) if values}
    streams = {name: _absolute(text, asked) for name, text in own.items() if text != "null"}
    env = {name: fill(value, values) for name, value in command.env.items()}
    return replace(command, env=env, cwd=cwd, input=streams.get("input"), output=streams.get("output"))


def _absolute(place: str, asked: Asked) -> str:
    """Return the path of a stream so that a saved race may continue from another directory."""
    return str(Path(place).absolute()) if asked.save and place not in _FIXED_STREAMS else place


def _plain_commands(asked: Asked, shell: str) -> tuple[Command, ...]:
    """Return every command with every combination of values, in hyperfine's order."""
    templates, names = asked.commands, asked.names
    lines = [(row, i) for row in combinations(_parameters(asked, templates)) for i in range(len(templates))]
    if not lines:
        msg = (
            "give a command or more, such as truearm race 'gzip -kf data' 'zstd -kf data', or --resume FILE; "
            "`truearm race --help` shows more"
        )
        raise click.UsageError(msg)
    if len(lines) > MAX_COMMANDS:
        msg = f"a race takes {MAX_COMMANDS:,} commands at most, but got {len(lines):,}; race a part of them first"
        raise click.UsageError(msg)
    if len(names) > len(templates) and len(names) != len(lines):
        typed = f" as typed ({len(templates)}), or for each with its values ({len(lines)})"
        how = "give one -n for each" + (typed if len(lines) > len(templates) else "")
        msg = f"{_count_names(names)} given for {plural(len(lines), 'command')}; {how}"
        raise click.UsageError(msg)
    each = len(names) == len(lines) > len(templates)
    cwd = str(Path().absolute()) if asked.save else None  # a saved race may continue from another directory
    env = _environment(asked.env)
    commands = []
    for place, (row, i) in enumerate(lines):
        name = names[place] if each else (*names, *[""] * len(templates))[i]
        command = bind(templates[i], row, name=name, env=env, cwd=cwd, shell=shell, typed=row)
        if row and not name and len(templates) == 1 and templates[0] not in {f"{{{key}}}" for key in row}:
            name = _values(row)
        commands.append(replace(command, name=name) if name and (each or (row and not names)) else command)
    return tuple(commands)


def _values(row: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in row.items())


def _parameters(asked: Asked, templates: Sequence[str]) -> dict[str, tuple[str, ...]]:
    given = [
        *((name, scan(low, high, asked.parameter_step_size)) for name, low, high in asked.parameter_scan),
        *((name, split_list(values)) for name, values in asked.parameter_list),
    ]
    names = ["rev", "dir"] if asked.revisions else []
    for name, _ in given:
        if name in names:
            own = " (--rev gives it its values)" if asked.revisions and name in ("rev", "dir") else ""
            msg = f"parameter {name!r} is given twice{own}; give all its values at once, or rename one"
            raise click.UsageError(msg)
        names.append(name)
    texts = [*templates, *(line for stage in HOOKS for line in getattr(asked, stage))]
    texts += [*asked.env, asked.cwd or "", asked.stdin, asked.stdout or ""]
    for name, _ in given:
        if not any(f"{{{name}}}" in text for text in texts):
            msg = f"no command uses {{{name}}}, so all of its values would race the same; write it into a command"
            raise click.UsageError(msg)
    return dict(given)


def _in_revisions(asked: Asked, revisions: Sequence[Revision], shell: str) -> tuple[Command, ...]:
    """Return the one command, whose words follow --, in every revision."""
    line = asked.commands[0] if len(asked.commands) == 1 else shlex.join(asked.commands)
    if asked.names and len(asked.names) != len(revisions):
        many = plural(len(revisions), "revision")
        msg = f"{_count_names(asked.names)} given for {many}; give one -n for each, or none"
        raise click.UsageError(msg)
    rows = combinations(_parameters(asked, [line]))
    env = _environment(asked.env)
    commands = []
    for revision, name in zip(revisions, asked.names or [one.name for one in revisions], strict=True):
        for row in rows:
            values = {"rev": revision.name, "dir": revision.folder, **row}
            command = bind(line, values, env=env, cwd=revision.folder, shell=shell, typed=row)
            commands.append(replace(command, name=f"{name} {_values(row)}".rstrip()))
    return tuple(commands)


def _count_names(names: Sequence[str]) -> str:
    return "1 name was" if len(names) == 1 else f"{len(names)} names were"


def _environment(pairs: Sequence[str]) -> dict[str, str]:
    for pair in pairs:
        if "=" not in pair or pair.startswith("="):
            msg = f"--env takes NAME=VALUE, but got {pair!r}"
            raise click.UsageError(msg)
    return {pair.partition("=")[0]: pair.partition("=")[2] for pair in pairs}
