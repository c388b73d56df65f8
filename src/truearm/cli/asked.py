"""What a user of `truearm race` asked for: typed, checked at birth, never changed; and the race it describes."""

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from truearm.cli.setting import HOOKS, Setting, hooks_for
from truearm.errors import InvalidArgument
from truearm.policies.toptwo import START
from truearm.problem import Contamination, Handicap, Missing, Problem, Tolerance, check_between, goal_for
from truearm.world.commands import MOST_COMMANDS, Command, expand, listed, scanned
from truearm.world.processes import Conditions
from truearm.world.revisions import Revision

PATIENCE = 180.0  # seconds: as long as one waits for an answer without having said so


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The options of a race, as typed."""

    commands: tuple[str, ...]
    names: tuple[str, ...]
    revisions: tuple[str, ...]
    build: str | None
    clean: bool
    reference: str | None
    metric: str
    goal: str | None
    quantile: float | None
    at_least: float | None
    at_most: float | None
    delta: float
    contamination: Contamination | None
    tolerance: Tolerance
    missing: Missing
    between: tuple[float, float] | None
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
    stdout: str
    timeout: float | None
    ignore_failure: bool
    seed: int | None
    save: str | None
    resume: str | None
    yes: bool
    as_json: bool
    quiet: bool
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
                (self.build is not None or self.clean) and not self.revisions,
                f"{'--build' if self.build is not None else '--clean'} goes with revisions; name them with --rev",
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
                self.revisions and self.reference,
                "--reference adds a command, but --rev races one command in several revisions; leave one out",
            ),
            (self.revisions and self.cwd, "--cwd and --rev both say where to run; start truearm in that folder"),
            (
                self.revisions and self.save and self.clean,
                "--clean removes what a saved race goes on with; leave one out",
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
                self.fdr and self.control is None,
                "--fdr is about commands that beat a control; name it with --control",
            ),
            (
                self.control is not None and self.fail_if_worse_than and self.tolerance,
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
        ):
            if wrong:
                raise click.UsageError(msg)

    @property
    def rounds(self) -> bool:
        """Whether commands are compared side by side, as they are unless another target is named."""
        return self.quantile is None and not self.share and self.control is None and self.between is None

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

    @property
    def first(self) -> int:
        """How many runs each command has before the first decision."""
        start = 1 if self.rounds else START
        return self.runs or self.min_runs or min(start, self.max_runs or start)


def defined(asked: Asked, revisions: Sequence[Revision] = ()) -> tuple[Setting, Problem]:
    """Return the race that was asked for: what is run, and what is to be decided."""
    gate, tolerance = asked.fail_if_worse_than, asked.tolerance
    goal = asked.goal if asked.goal or asked.share else "min"
    setting = _setting(asked, revisions)
    for name in (asked.control, asked.fail_unless_best, gate):
        in_race(name, setting)
    given = Handicap(gate, tolerance) if gate is not None and tolerance else None
    setting = replace(setting, guard=gate)
    return setting, Problem(
        arms=setting.arms,
        # a gate shares its error probability out over the comparisons, and the race goes on until all are made;
        # in rounds the policy knows of it
        delta=asked.delta if gate is None or asked.rounds else asked.delta / len(setting.arms),
        contamination=asked.contamination,
        tolerance=tolerance if given is None else Tolerance(),
        quantile=0.5 if asked.quantile is None else asked.quantile,
        rounds=asked.rounds,
        goal=goal_for(goal, asked.at_least, asked.at_most),
        at_least=asked.at_least,
        at_most=asked.at_most,
        missing=asked.missing,
        between=check_between(asked.between),
        handicap=given,
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
    commands = _in_revisions(asked, revisions, shell) if asked.revisions else _commands(asked, shell)
    given: dict[str, tuple[str, ...]] = {stage: getattr(asked, stage) for stage in HOOKS}
    return Setting(
        commands=commands,
        metric=asked.metric,
        conditions=Conditions(
            timeout=asked.timeout,
            ignore_failure=asked.ignore_failure,
            input=_kept(asked.stdin, asked),
            output=_kept(asked.stdout, asked),
        ),
        warmup=asked.warmup,
        hooks={stage: hooks_for(commands, stage, texts, shell) for stage, texts in given.items() if texts},
    )


def _kept(place: str, asked: Asked) -> str:
    """Return a file's path so that a saved race may go on from another directory."""
    return str(Path(place).absolute()) if asked.save and place not in ("null", "pipe", "inherit") else place


def _commands(asked: Asked, shell: str) -> tuple[Command, ...]:
    templates = [asked.reference, *asked.commands] if asked.reference else list(asked.commands)
    names = ["", *asked.names] if asked.reference else list(asked.names)
    if not templates:
        msg = "give two commands or more, or --resume FILE; `truearm race --help` shows examples"
        raise click.UsageError(msg)
    if len(names) > len(templates):
        msg = (
            f"{len(asked.names)} names were given for {len(asked.commands)} commands; give at most one -n for each"
        )
        raise click.UsageError(msg)
    parameters = _parameters(asked, templates)
    # A saved race may go on from another directory.
    cwd = str(Path(asked.cwd or ".").absolute()) if asked.cwd or asked.save else None
    names += [""] * (len(templates) - len(names))
    found = [
        command
        for line, name in zip(templates, names, strict=True)
        for command in expand(line, parameters, name=name, env=_environment(asked.env), cwd=cwd, shell=shell)
    ]
    if len(found) > MOST_COMMANDS:
        msg = f"a race takes {MOST_COMMANDS:,} commands at most, but got {len(found):,}; race a part of them first"
        raise click.UsageError(msg)
    if len(found) == 1:
        msg = "a race needs two commands; give another one, or values for a parameter (-L, -P)"
        raise click.UsageError(msg)
    return tuple(found)


def _parameters(asked: Asked, templates: Sequence[str]) -> dict[str, tuple[str, ...]]:
    parameters: dict[str, tuple[str, ...]] = {}
    for variable, low, high in asked.parameter_scan:
        parameters[variable] = scanned(low, high, asked.parameter_step_size)
    for variable, values in asked.parameter_list:
        parameters[variable] = listed(values)
    unused = [name for name in parameters if not any(f"{{{name}}}" in line for line in templates)]
    if unused:
        msg = f"no command uses {{{unused[0]}}}, so all of its values would race the same; write it into a command"
        raise click.UsageError(msg)
    return parameters


def _in_revisions(asked: Asked, revisions: Sequence[Revision], shell: str) -> tuple[Command, ...]:
    """Return the one command in every revision; after -- stand its words."""
    line = asked.commands[0] if len(asked.commands) == 1 else shlex.join(asked.commands)
    if asked.names and len(asked.names) != len(revisions):
        msg = f"{len(asked.names)} names were given for {len(revisions)} revisions; give one -n for each, or none"
        raise click.UsageError(msg)
    given = _parameters(asked, [line])
    names = asked.names or tuple(revision.name for revision in revisions)
    found = [
        replace(command, name=" ".join([name, *(command.parameters[key] for key in given)]))
        for revision, name in zip(revisions, names, strict=True)
        for command in expand(
            line,
            {"rev": (revision.name,), "dir": (revision.folder,), **given},
            env=_environment(asked.env),
            cwd=revision.folder,
            shell=shell,
        )
    ]
    return tuple(found)


def _environment(pairs: Sequence[str]) -> dict[str, str]:
    for pair in pairs:
        if "=" not in pair or pair.startswith("="):
            msg = f"--env takes NAME=VALUE, but got {pair!r}"
            raise click.UsageError(msg)
    return {pair.partition("=")[0]: pair.partition("=")[2] for pair in pairs}
