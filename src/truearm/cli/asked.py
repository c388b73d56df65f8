"""What a user of `truearm race` asked for: typed, checked at birth, never changed; and the race it describes."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from truearm.cli.setting import HOOKS, Setting, hooks_for
from truearm.errors import InvalidArgument
from truearm.policies.toptwo import START
from truearm.problem import Contamination, Handicap, Missing, Problem, Tolerance, check_between
from truearm.world.commands import Command, expand, listed, scanned
from truearm.world.processes import Conditions


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The options of a race, as typed."""

    commands: tuple[str, ...]
    names: tuple[str, ...]
    reference: str | None
    metric: str
    goal: str | None
    quantile: float
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
                self.metric == "stdout" and self.goal is None and not self.resume,
                "--metric stdout needs --goal max or --goal min: only you know which number is better",
            ),
        ):
            if wrong:
                raise click.UsageError(msg)

    @property
    def most(self) -> int | None:
        """How many runs of each command there may be."""
        return self.runs if self.runs is not None else self.max_runs

    @property
    def first(self) -> int:
        """How many runs each command has before the first decision."""
        return self.runs or self.min_runs or min(START, self.max_runs or START)


def defined(asked: Asked) -> tuple[Setting, Problem]:
    """Return the race that was asked for: what is run, and what is to be decided."""
    goal, gate, tolerance = asked.goal or "min", asked.fail_if_worse_than, asked.tolerance
    setting = _setting(asked)
    for name in (asked.control, asked.fail_unless_best, gate):
        in_race(name, setting)
    given = Handicap(gate, tolerance) if gate is not None and tolerance else None
    setting = replace(setting, guard=gate)
    return setting, Problem(
        arms=setting.arms,
        # a gate shares its error probability out over the comparisons, and the race goes on until they can be made
        delta=asked.delta if gate is None else asked.delta / len(setting.arms),
        contamination=asked.contamination,
        tolerance=tolerance if given is None else Tolerance(),
        quantile=asked.quantile,
        goal=goal,
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


def _setting(asked: Asked) -> Setting:
    shell = "none" if asked.no_shell else asked.shell
    commands = _commands(asked, shell)
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
    parameters: dict[str, tuple[str, ...]] = {}
    for variable, low, high in asked.parameter_scan:
        parameters[variable] = scanned(low, high, asked.parameter_step_size)
    for variable, values in asked.parameter_list:
        parameters[variable] = listed(values)
    unused = [name for name in parameters if not any(f"{{{name}}}" in line for line in templates)]
    if unused:
        msg = f"no command uses {{{unused[0]}}}, so all of its values would race the same; write it into a command"
        raise click.UsageError(msg)
    # A saved race may go on from another directory.
    cwd = str(Path(asked.cwd or ".").absolute()) if asked.cwd or asked.save else None
    names += [""] * (len(templates) - len(names))
    found = [
        command
        for line, name in zip(templates, names, strict=True)
        for command in expand(line, parameters, name=name, env=_environment(asked.env), cwd=cwd, shell=shell)
    ]
    if len(found) == 1:
        msg = "a race needs two commands; give another one, or values for a parameter (-L, -P)"
        raise click.UsageError(msg)
    return tuple(found)


def _environment(pairs: Sequence[str]) -> dict[str, str]:
    for pair in pairs:
        if "=" not in pair or pair.startswith("="):
            msg = f"--env takes NAME=VALUE, but got {pair!r}"
            raise click.UsageError(msg)
    return {pair.partition("=")[0]: pair.partition("=")[2] for pair in pairs}
