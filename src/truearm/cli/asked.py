"""What a user of `truearm race` asked for: typed, checked at birth, never changed; and the race it describes."""

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from truearm.claims.suites import Suite
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
from truearm.commands.revisions import Revision
from truearm.errors import InvalidArgument
from truearm.policies.toptwo import START
from truearm.problem import Contamination, Handicap, Problem, Tolerance
from truearm.report.numbers import plural

PATIENCE = 180.0  # seconds: as long as one waits for an answer without having said so


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The options of a race, as typed."""

    commands: tuple[str, ...]
    names: tuple[str, ...]
    revisions: tuple[str, ...]
    build: str | None
    metric: str
    metrics: str | None
    higher: tuple[str, ...]
    goal: str | None
    quantile: float | None
    at_least: float | None
    at_most: float | None
    delta: float
    contamination: Contamination | None
    tolerance: Tolerance
    warmup: int
    runs: int | None
    min_runs: int | None
    max_runs: int | None
    max_time: float | None
    control: str | None
    fdr: bool
    setup: tuple[str, ...]
    prepare: tuple[str, ...]
    conclude: tuple[str, ...]
    cleanup: tuple[str, ...]
    parameter_scan: tuple[tuple[str, str, str], ...]
    parameter_step_size: str | None
    parameter_list: tuple[tuple[str, str], ...]
    shell: str
    no_shell: bool
    env: tuple[str, ...]
    cwd: str | None
    stdin: str
    stdout: str | None
    show_output: bool
    timeout: float | None
    ignore_failure: bool
    accepted: tuple[int, ...]
    seed: int | None
    save: str | None
    resume: str | None
    yes: bool
    as_json: bool
    quiet: bool
    verbose: bool
    time_unit: str | None
    export_json: str | None
    export_csv: str | None
    export_markdown: str | None
    export_html: str | None
    github_summary: bool
    fail_unless_best: str | None
    fail_if_worse_than: str | None
    strict: bool

    def __post_init__(self) -> None:
        """Refuse now what would fail after the race."""
        for wrong, msg in (
            (
                self.github_summary and not os.environ.get("GITHUB_STEP_SUMMARY"),
                "--github-summary needs the variable GITHUB_STEP_SUMMARY, which GitHub sets in a job",
            ),
            (
                self.build is not None and not self.revisions,
                "--build goes with revisions; name them with --rev",
            ),
            (
                self.revisions and not (self.commands or self.resume),
                "give the command to run in each revision, after --: truearm race --rev main --rev . -- ./bench",
            ),
            (
                len(self.revisions) == 1 and not (self.parameter_list or self.parameter_scan),
                "a race needs two revisions; give another --rev, such as . for the working tree",
            ),
            (
                self.revisions and self.cwd and not {"{dir}", "{rev}"} & {*re.findall(r"{\w+}", self.cwd)},
                f"--cwd {self.cwd} is one folder for all revisions; write --cwd {{dir}}/{self.cwd}",
            ),
            (
                self.show_output and self.stdout,
                "--show-output is --output inherit; leave one of them out",
            ),
            (
                self.metric == "stdout" and (self.show_output or self.stdout not in (None, "null", "pipe")),
                "--metric stdout reads what commands print; leave --output and --show-output out",
            ),
            (
                len(self.to_stdout) > 1,
                f"{' and '.join(self.to_stdout)} cannot both go to standard output; write one to a file",
            ),
            (
                self.parameter_step_size is not None and not self.parameter_scan,
                "--parameter-step-size is the step of a scan; give one with -P, or leave it out",
            ),
            (self.yes and not self.resume, "--yes agrees to the commands of --resume FILE; leave it out"),
            (self.save and self.resume, "--resume goes on writing to its own file; leave --save out"),
            (
                self.runs is not None and (self.min_runs is not None or self.max_runs is not None),
                "-r says both -m and -M; leave them out",
            ),
            (
                self.min_runs is not None and self.max_runs is not None and self.min_runs > self.max_runs,
                f"-m {self.min_runs} is more than -M {self.max_runs}",
            ),
            (
                self.fail_unless_best and self.fail_if_worse_than and self.tolerance,
                "--fail-unless-best and --fail-if-worse-than with a tolerance are two questions; race twice",
            ),
            (
                self.fdr and self.control is None and not (self.metrics or self.resume),
                "--fdr is about commands that beat a control; name it with --control",
            ),
            (
                not self.metrics and self.control is not None and self.fail_if_worse_than and self.tolerance,
                "--control and --fail-if-worse-than with a tolerance are two questions; race twice",
            ),
            (
                self.metric == "stdout" and self.goal is None and not self.share and not self.resume,
                "--metric stdout needs --goal max or --goal min: only you know which number is better",
            ),
            (
                self.share and self.fail_if_worse_than and self.tolerance,
                "--fail-if-worse-than has a tolerance for readings, not for shares; leave --tolerance out",
            ),
            *self._about_time_outs(),
            *self._about_files(),
            *self._about_suites(),
        ):
            if wrong:
                raise click.UsageError(msg)

    def _about_time_outs(self) -> Iterator[tuple[object, str]]:
        """Say where a run that is killed is no failure, or may be none (extensions 1.8)."""
        limit = self.timeout if self.metric == "wall" else None
        yield (
            limit is not None and self.at_most is not None and self.at_most > limit,
            f"--timeout {limit} ends runs that may last at most {self.at_most}; give at least as long",
        )
        yield (
            limit is not None and self.at_least is not None,
            "--timeout counts what lasts long as worst, and --at-least as a success; leave one out",
        )

    def _about_files(self) -> Iterator[tuple[object, str]]:
        """Say which file would be written twice, so that one thing would take the place of another."""
        written: dict[str, str | None] = {
            f"--export-{name}": path for name, path in self.exports.items() if path != "-"
        }
        written.update({"--save": self.save, "--resume": self.resume})
        taken: dict[Path, str] = {}
        for option, path in written.items():
            if path is not None:
                first = taken.setdefault(Path(path).absolute(), option)
                yield first != option, f"{first} and {option} write to the same file, {path!r}; name two files"

    def _about_suites(self) -> Iterator[tuple[object, str]]:
        yield self.higher and not self.metrics, "--higher names metrics of a suite; add --metrics json"
        if not self.metrics:
            return
        for option, given in (
            ("--metric", self.metric != "wall"),
            ("--quantile", self.quantile is not None),
            ("--at-least or --at-most", self.share),
            ("--fail-unless-best", self.fail_unless_best),
            ("--time-unit", self.time_unit),
        ):
            yield given, f"--metrics json compares all metrics in rounds, as they are; leave {option} out"
        yield (
            self.control and self.fail_if_worse_than and self.control != self.fail_if_worse_than,
            "--control and --fail-if-worse-than name two commands to compare the others with; leave one out",
        )
        yield self.higher and self.goal == "max", "--higher names exceptions from --goal min; leave one out"

    @property
    def to_stdout(self) -> tuple[str, ...]:
        """The options that send a document to standard output."""
        exports = [f"--export-{name}" for name, path in self.exports.items() if path == "-"]
        return (*(["--json"] if self.as_json else []), *exports)

    @property
    def exports(self) -> dict[str, str]:
        """The files to write, by format; - is standard output."""
        found = {name: getattr(self, f"export_{name}") for name in ("json", "csv", "markdown", "html")}
        return {name: path for name, path in found.items() if path is not None}

    @property
    def rounds(self) -> bool:
        """Whether commands are compared side by side, as they are unless another target is named."""
        alone = self.quantile is None and not self.share and self.control is None
        return alone or self.metrics is not None

    @property
    def limit(self) -> float | None:
        """How many seconds the race may take; a race without limits of its own ends all the same."""
        return PATIENCE if self.max_time is None and self.most is None else self.max_time

    @property
    def share(self) -> bool:
        """Whether shares are compared."""
        return self.at_least is not None or self.at_most is not None

    @property
    def most(self) -> int | None:
        """How many runs of each command there may be."""
        return self.runs if self.runs is not None else self.max_runs

    def first(self, problem: Problem) -> int:
        """How many runs each command has before the first decision."""
        start = 1 if problem.rounds else START
        return self.runs or self.min_runs or min(start, self.max_runs or start)

    @property
    def brief(self) -> bool:
        """Whether nothing says how long one command is to be measured, so that a few seconds will do."""
        return self.runs is None and self.max_time is None and not self.tolerance


def defined(asked: Asked, revisions: Sequence[Revision] = ()) -> tuple[Setting, Problem]:
    """Return the race that was asked for: what is run, and what is to be decided."""
    gate, tolerance = None if asked.metrics else asked.fail_if_worse_than, asked.tolerance
    goal = asked.goal if asked.goal or asked.share else "min"
    setting = _setting(asked, revisions)
    comparing = [
        option
        for option, given in (
            ("--control", asked.control),
            ("--fail-unless-best", asked.fail_unless_best),
            ("--fail-if-worse-than", asked.fail_if_worse_than),
            ("--metrics json", asked.metrics),
        )
        if given is not None
    ]
    if len(setting.commands) == 1 and comparing:
        msg = f"{comparing[0]} compares commands, and there is one; give another, or values for a parameter (-L)"
        raise click.UsageError(msg)
    for name in (asked.control, asked.fail_unless_best, asked.fail_if_worse_than):
        in_race(name, setting)
    limit = asked.timeout if asked.metric == "wall" and goal == "min" else None
    given = Handicap(gate, tolerance, limit) if gate is not None and tolerance else None
    setting = replace(setting, guard=gate)
    problem = Problem.of(
        setting.arms,
        # a gate shares its error probability out over the comparisons, and the race goes on until all are made;
        # in rounds the policy knows of it
        delta=asked.delta if gate is None or asked.rounds else asked.delta / len(setting.arms),
        contamination=asked.contamination,
        tolerance=tolerance if given is None else Tolerance(),
        quantile=0.5 if asked.quantile is None else asked.quantile,
        rounds=asked.rounds and len(setting.commands) > 1,
        goal=goal,
        at_least=asked.at_least,
        at_most=asked.at_most,
    )
    return setting, replace(problem, handicap=given)


def suite_of(asked: Asked, setting: Setting, problem: Problem) -> Suite | None:
    """Return what is asked of all metrics together, if there are many."""
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


def in_race(name: str | None, setting: Setting) -> str | None:
    """Return the name of a command of the race, or say which there are."""
    if name is not None and name not in setting.arms:
        arms = ", ".join(map(repr, setting.arms))
        msg = f"{name!r} is not in this race; its commands are called {arms} (-n names them)"
        raise InvalidArgument(msg)
    return name


def _setting(asked: Asked, revisions: Sequence[Revision]) -> Setting:
    shell = "none" if asked.no_shell else asked.shell
    found = _in_revisions(asked, revisions, shell) if asked.revisions else _commands(asked, shell)
    commands = _with_streams(found, asked)
    typed = [variable for variable, *_ in (*asked.parameter_scan, *asked.parameter_list)]
    given: dict[str, tuple[str, ...]] = {stage: getattr(asked, stage) for stage in HOOKS}
    return Setting(
        commands=commands,
        metric=asked.metrics or asked.metric,
        conditions=Conditions(
            timeout=asked.timeout,
            ignore_failure=asked.ignore_failure,
            accepted=asked.accepted,
            input="null" if _has_own(commands, "input") else _kept(asked.stdin, asked),
            output="inherit"
            if asked.show_output
            else "null"
            if _has_own(commands, "output")
            else _kept(asked.stdout or "null", asked),
        ),
        warmup=asked.warmup,
        hooks={stage: hooks_for(commands, stage, texts, shell, typed) for stage, texts in given.items() if texts},
    )


def _with_streams(commands: tuple[Command, ...], asked: Asked) -> tuple[Command, ...]:
    """Return the commands with input, output, directory and environment of their own where a parameter says so."""
    return tuple(_filled(command, asked) for command in commands)


def _filled(command: Command, asked: Asked) -> Command:
    values, output = command.parameters, asked.stdout or "null"
    given = {"--input": asked.stdin, "--output": output, "--cwd": asked.cwd or ""}
    given.update({f"--env {name}": value for name, value in command.env.items()})
    known = ", ".join(f"{{{name}}}" for name in values)
    for option, text in given.items():
        if asked.revisions and (word := unknown_placeholder(text, values)) is not None:
            msg = f"{option} contains {{{word}}}, which has no value; use {known}"
            raise click.UsageError(msg)
    cwd = command.cwd
    if asked.cwd:
        cwd = str(Path(fill(asked.cwd, values)).absolute())
        if not Path(cwd).is_dir():
            msg = f"--cwd: there is no folder {cwd!r}; make it first, or name another"
            raise click.UsageError(msg)
    filled = {name: fill(text, values) for name, text in (("input", asked.stdin), ("output", output))}
    own: dict[str, str | None] = {
        name: _kept(text, asked) for name, text in filled.items() if values and text != "null"
    }
    env = {name: fill(value, values) for name, value in command.env.items()}
    return replace(command, env=env, cwd=cwd, input=own.get("input"), output=own.get("output"))


def _has_own(commands: Sequence[Command], name: str) -> bool:
    return any(getattr(command, name) is not None for command in commands)


def _kept(place: str, asked: Asked) -> str:
    """Return a file's path so that a saved race may go on from another directory."""
    return str(Path(place).absolute()) if asked.save and place not in ("null", "pipe", "inherit") else place


def _commands(asked: Asked, shell: str) -> tuple[Command, ...]:
    """Return every command with every combination of values."""
    rows = combinations(_parameters(asked, asked.commands))
    lines = [(row, i) for row in rows for i in range(len(asked.commands))]  # the order of hyperfine
    if not lines:
        msg = (
            "give a command or more, such as truearm race 'gzip -kf data' 'zstd -kf data', or --resume FILE; "
            "`truearm race --help` shows more"
        )
        raise click.UsageError(msg)
    if len(lines) > MAX_COMMANDS:
        msg = f"a race takes {MAX_COMMANDS:,} commands at most, but got {len(lines):,}; race a part of them first"
        raise click.UsageError(msg)
    if len(asked.names) > len(asked.commands) and len(asked.names) != len(lines):
        typed = f" as typed ({len(asked.commands)}), or for each with its values ({len(lines)})"
        how = "give one -n for each" + (typed if len(lines) > len(asked.commands) else "")
        msg = f"{_names(asked)} given for {plural(len(lines), 'command')}; {how}"
        raise click.UsageError(msg)
    each = len(asked.names) == len(lines) > len(asked.commands)
    # A saved race may go on from another directory.
    cwd = str(Path().absolute()) if asked.save else None
    env = _environment(asked.env)
    found = []
    for place, (row, i) in enumerate(lines):
        name = asked.names[place] if each else (*asked.names, *[""] * len(asked.commands))[i]
        command = bind(asked.commands[i], row, name=name, env=env, cwd=cwd, shell=shell, typed=row)
        found.append(replace(command, name=name) if each else command)
    return tuple(found)


def _parameters(asked: Asked, templates: Sequence[str]) -> dict[str, tuple[str, ...]]:
    given = [
        *((name, scan(low, high, asked.parameter_step_size)) for name, low, high in asked.parameter_scan),
        *((name, split_list(values)) for name, values in asked.parameter_list),
    ]
    parameters: dict[str, tuple[str, ...]] = {"rev": (), "dir": ()} if asked.revisions else {}
    for name, values in given:
        if name in parameters:
            own = " (--rev gives it its values)" if asked.revisions and name in ("rev", "dir") else ""
            msg = f"parameter {name!r} is given twice{own}; give all its values at once, or rename one"
            raise click.UsageError(msg)
        parameters[name] = values
    lines = [*templates, *(line for stage in HOOKS for line in getattr(asked, stage))]
    lines += [*asked.env, asked.cwd or "", asked.stdin, asked.stdout or ""]
    unused = [name for name, _ in given if not any(f"{{{name}}}" in line for line in lines)]
    if unused:
        msg = f"no command uses {{{unused[0]}}}, so all of its values would race the same; write it into a command"
        raise click.UsageError(msg)
    return dict(given)


def _in_revisions(asked: Asked, revisions: Sequence[Revision], shell: str) -> tuple[Command, ...]:
    """Return the one command in every revision; after -- stand its words."""
    line = asked.commands[0] if len(asked.commands) == 1 else shlex.join(asked.commands)
    if asked.names and len(asked.names) != len(revisions):
        msg = f"{_names(asked)} given for {plural(len(revisions), 'revision')}; give one -n for each, or none"
        raise click.UsageError(msg)
    rows = combinations(_parameters(asked, [line]))
    env = _environment(asked.env)
    found = []
    for revision, name in zip(revisions, asked.names or [one.name for one in revisions], strict=True):
        for row in rows:
            values = {"rev": revision.name, "dir": revision.folder, **row}
            command = bind(line, values, env=env, cwd=revision.folder, shell=shell, typed=row)
            found.append(replace(command, name=" ".join([name, *row.values()])))
    return tuple(found)


def _names(asked: Asked) -> str:
    return "1 name was" if len(asked.names) == 1 else f"{len(asked.names)} names were"


def _environment(pairs: Sequence[str]) -> dict[str, str]:
    for pair in pairs:
        if "=" not in pair or pair.startswith("="):
            msg = f"--env takes NAME=VALUE, but got {pair!r}"
            raise click.UsageError(msg)
    return {pair.partition("=")[0]: pair.partition("=")[2] for pair in pairs}
