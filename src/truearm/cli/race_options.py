"""The options of a race: checked together, then turned into commands and a problem."""

import math
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

from truearm.claims.gates import Account
from truearm.cli.answer import FORMS
from truearm.cli.race_log import HOOKS, STREAMS, Setting
from truearm.commands.command import MAX_COMMANDS, Command, bind, combinations, fill, scan, split_list
from truearm.commands.measure import Conditions
from truearm.commands.revisions import Builds, Revision
from truearm.evidence import Judge
from truearm.evidence.wins import least_rounds, win_level_of
from truearm.policies import START
from truearm.problem import Handicap, Problem, Tolerance, refuse
from truearm.report.numbers import plural

DEFAULT_LIMIT_S = 180.0  # of a race without -r, -M and --max-time
DEFAULT_RUNS_PER_BUILD = 5
_NOT_IN_ROUNDS = "quantile at_least at_most control"  # these compare something other than wins
_NEEDS = {  # options, and others of which at least one must be given
    "build": "rev",
    "builds": "build",
    "runs_per_build": "builds",
    "rev": "commands resume",
    "fdr": "control metrics resume",
    "parameter_step_size": "parameter_scan",
    "higher": "metrics",
    "ledger": "base",
    "base": "ledger",
    "expected": "ledger",
    "yes": "resume",
}
_EXCLUDES = {  # options, and others that contradict them
    "builds": f"runs max_runs best_of parameter_list parameter_scan setup cleanup {_NOT_IN_ROUNDS}",
    "metrics": "metric quantile best_of at_least at_most fail_unless_best time_unit",
    # what a gate of a ledger does not answer, or would let one be decided twice
    "ledger": f"delta {_NOT_IN_ROUNDS} fdr metrics fail_unless_best fail_if_worse_than strict seed save",
    "runs": "min_runs max_runs",
    "best_of": _NOT_IN_ROUNDS,
    "show_output": "output",
}
_RESUME_OPTIONS = (  # what may change when a saved race continues; all else is fixed in the file
    "resume yes max_runs max_time fail_unless_best fail_if_worse_than strict json quiet verbose time_unit "
    "export_json export_csv export_markdown export_html github_summary"
)


class RaceOptions(SimpleNamespace):
    """The options of `truearm race` by parameter, and what follows from several of them."""

    accepted: tuple[int, ...] = ()  # exit codes that are not failures

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

    def first(self, problem: Problem) -> int:
        """Return how many readings each command has before the first decision."""
        start = 1 if problem.rounds else START
        least, most = self._readings(self.runs or self.min_runs), self._readings(self.max_runs)
        return least or min(start, most or start)

    def _readings(self, runs: int | None) -> int | None:
        return None if runs is None else runs // int(self.best_of)


def check(options: RaceOptions, given: dict[str, str]) -> RaceOptions:
    """Refuse options that contradict each other, before anything is run; `given` has the flags that were used."""
    flags = {name: f"--{name.replace('_', '-')}" for name in vars(options)}
    flags |= {"commands": "a command after --"} | given
    for option, others in _NEEDS.items():
        known = [flags[other] for other in others.split()]
        missing = option in given and given.keys().isdisjoint(others.split())
        refuse(missing, f"{flags[option]} goes with {' or '.join(known)}; add it, or remove {flags[option]}")
    for option, others in _EXCLUDES.items():
        found = " and ".join(given[other] for other in others.split() if other in given)
        refuse(option in given and found, f"{flags[option]} cannot be combined with {found}; remove {found}")
    new = " and ".join(flags[name] for name in given if name not in _RESUME_OPTIONS.split())
    msg = f"--resume continues what the file says, so it cannot change {new}; remove {new}"
    refuse(options.resume and new, msg)
    _check_runs(options)
    _check_question(options)
    _check_files(options)
    return options


def _check_runs(options: RaceOptions) -> None:
    is_seeded = options.build and "{seed}" in options.build
    refuse(is_seeded and not options.builds, "{seed} in --build needs --builds N, which draws the seeds; add it")
    is_alone = len(options.rev) == 1 and not (options.parameter_list or options.parameter_scan)
    refuse(is_alone, "a race needs two revisions; give another --rev, such as . for the working tree")
    is_one = options.rev and options.cwd and not {"{dir}", "{rev}"} & {*re.findall(r"{\w+}", options.cwd)}
    refuse(is_one, f"--cwd {options.cwd} is one folder for all revisions; write --cwd {{dir}}/{options.cwd}")
    least, most = options.min_runs, options.max_runs
    refuse(least and most and least > most, f"-m {least} is more than -M {most}; lower it")
    for option, runs in (("-r", options.runs), ("-m", least), ("-M", most)):
        msg = f"{option} {runs} is less than --best-of {options.best_of}, the runs of one reading; raise it"
        refuse(runs is not None and runs < options.best_of, msg)


def _check_question(options: RaceOptions) -> None:
    limit, most, gate = options.timeout, options.at_most, options.fail_if_worse_than
    if limit is not None and options.metric == "wall":
        # a run that is killed must be a failure (extensions 1.8)
        is_late = options.at_least is not None or (most is not None and most > limit)
        msg = f"--timeout {limit} would end runs that count as good; remove it, or use --at-most {limit}"
        refuse(is_late, msg)
    if gate and options.tolerance and not options.metrics:
        others = {"--fail-unless-best": options.fail_unless_best, "--control": options.control}
        others["shares"] = options.share
        other = " and ".join(option for option, value in others.items() if value)
        refuse(other, f"--fail-if-worse-than with --tolerance does not go with {other}; race twice, or remove one")
    is_open = options.metric == "stdout" and options.goal is None and not options.share and not options.resume
    refuse(is_open, "--metric stdout needs --goal max or --goal min: only you know which number is better")
    is_double = options.metrics and options.control and gate not in (None, options.control)
    msg = "--control and --fail-if-worse-than name two commands to compare the others with; remove one"
    refuse(is_double, msg)
    refuse(options.higher and options.goal == "max", "--higher names exceptions from --goal min; remove one")


def _check_files(options: RaceOptions) -> None:
    needed = options.github_summary and not os.environ.get("GITHUB_STEP_SUMMARY")
    refuse(needed, "--github-summary needs GITHUB_STEP_SUMMARY, which GitHub sets in a job; remove it elsewhere")
    is_taken = options.metric == "stdout" and (options.show_output or options.output not in (None, "null", "pipe"))
    refuse(is_taken, "--metric stdout reads what commands print; remove --output and --show-output")
    files = {f"--export-{form}": getattr(options, f"export_{form}") for form in FORMS}
    files |= {"--save": options.save, "--resume": options.resume, "--json": "-" if options.json else None}
    by_path: dict[Path, str] = {}
    for option, path in files.items():
        first = option if path is None else by_path.setdefault(Path(path).absolute(), option)
        refuse(first != option, f"{first} and {option} write to the same file, {path!r}; name two files")


def define(options: RaceOptions, revisions: Sequence[Revision] = ()) -> tuple[Setting, Problem]:
    """Return what a race runs and what it decides."""
    gate, tolerance = None if options.metrics else options.fail_if_worse_than, options.tolerance
    commands, builds = tuple(_commands(options, revisions)), None
    if options.build is not None:
        by_folder = {revision.folder: revision for revision in revisions}
        arms = {command.name: by_folder[command.parameters["dir"]] for command in commands}
        runs = (options.runs_per_build or DEFAULT_RUNS_PER_BUILD) if options.builds else 1
        builds = Builds(command=options.build, revisions=arms, rounds=options.builds, runs=runs)
    conditions = {name: getattr(options, name) for name in ("timeout", "ignore_failure", "accepted")}
    setting = Setting(
        commands=commands,
        metric=options.metrics or options.metric,
        conditions=Conditions(**conditions),
        guard=gate,
        builds=builds,
        hooks={stage: _hooks(commands, stage, options) for stage in HOOKS if getattr(options, stage)},
        **{name: getattr(options, name) for name in ("warmup", "warmup_every_run", "best_of")},
    )
    names = {
        "--control": options.control,
        "--fail-unless-best": options.fail_unless_best,
        "--fail-if-worse-than": options.fail_if_worse_than,
    }
    comparing = {**names, "--metrics json": options.metrics, "--best-of": options.best_of > 1}
    for option, value in comparing.items():
        msg = f"{option} compares commands, and there is one; give another, or values for a parameter (-L)"
        refuse(value and len(setting.commands) == 1, msg)
    for name in names.values():
        check_name(name, setting)
    rival = gate
    if options.ledger is not None:
        others = [arm for arm in setting.arms if arm != check_name(options.base, setting)]
        msg = f"--ledger compares one candidate with --base, but got {len(others)}; open a gate for each candidate"
        refuse(len(others) != 1, msg)
        rival = others[0]
    is_time = options.metric == "wall" and not options.share and options.goal in (None, "min")
    limit = options.timeout if is_time else None
    handicap = Handicap(rival, tolerance, limit) if rival is not None and tolerance else None
    in_rounds = options.rounds and len(setting.commands) > 1
    automatic = "blind" if in_rounds else 0.05
    problem = Problem.of(
        setting.arms,
        # a gate splits its error probability over the comparisons; in rounds the policy does that
        delta=options.delta if gate is None or options.rounds else options.delta / len(setting.arms),
        contamination=automatic if options.contamination == "auto" else options.contamination,
        tolerance=tolerance if handicap is None else Tolerance(),
        quantile=0.5 if options.quantile is None else options.quantile,
        rounds=in_rounds,
        default_goal="min",
        goal=options.goal,
        at_least=options.at_least,
        at_most=options.at_most,
    )
    if options.builds:
        _check_builds(options, problem)
    return setting, replace(problem, handicap=handicap)


def _check_builds(options: RaceOptions, problem: Problem) -> None:
    """Refuse fewer builds than can decide; the first round of a suite shows which metrics there are."""
    if options.ledger is not None:
        from truearm.ledger import at_level  # other races do not need it

        problem = at_level(problem, read_account(options).next_level)
    level, threshold = win_level_of(problem.contamination), Judge.of(problem, ()).log_threshold
    least = (options.metrics is not None) + least_rounds(level, threshold)  # extensions U2
    what = f"{plural(len(problem.arms), 'revision')} at an error probability of {problem.error:g}"
    msg = f"--builds {options.builds} cannot decide: {what} take {least} rounds at least, each with new builds; "
    refuse(options.builds < least, f"{msg}use --builds {least} or more")


def read_account(options: RaceOptions) -> Account:
    """Return the account of the ledger of a race, which may not exist yet."""
    from truearm.ledger import read_ledger  # other races do not need it

    path, settings = Path(options.ledger), {} if options.expected is None else {"expected": options.expected}
    account = read_ledger(path) if path.exists() and path.stat().st_size else Account()
    return replace(account, **settings)


def check_name(name: str | None, setting: Setting) -> str | None:
    """Return the name of a command of the race; raise if the race has no such command."""
    known = ", ".join(map(repr, setting.arms))
    is_unknown = name is not None and name not in setting.arms
    refuse(is_unknown, f"{name!r} is not in this race; its commands are called {known} (-n names them)")
    return name


def _hooks(commands: Sequence[Command], stage: str, options: RaceOptions) -> dict[str, Command]:
    """Return the hook of every arm: one line for all commands, or one for each."""
    lines = getattr(options, stage)
    msg = f"--{stage} must be given once or for each of {len(commands)} commands, but got {len(lines)}; repeat it"
    refuse(len(lines) not in (1, len(commands)), msg)
    typed = [variable for variable, *_ in (*options.parameter_scan, *options.parameter_list)]
    # a hook is not measured, so that it may have the shell it needs even under --shell none, and only then
    shell = "auto" if options.N or options.shell == "none" else options.shell
    found = {}
    for arm, line in zip(commands, lines * (len(commands) if len(lines) == 1 else 1), strict=True):
        own = [name for name in arm.parameters if name in typed]
        found[arm.name] = bind(line, arm.parameters, env=arm.env, cwd=arm.cwd, shell=shell, typed=own)
    return found


def _commands(options: RaceOptions, revisions: Sequence[Revision]) -> Iterator[Command]:
    """Return every command with every combination of values, in hyperfine's order; or one in every revision."""
    here = str(Path().absolute()) if options.save else None  # a saved race may continue from another directory
    line = options.commands[0] if len(options.commands) == 1 else shlex.join(options.commands)
    bases: list[tuple[str, str | None, dict[str, str]]] = [(template, here, {}) for template in options.commands]
    if options.rev:
        bases = [(line, one.folder, {"rev": one.name, "dir": one.folder}) for one in revisions]
    parameters = _parameters(options)
    total = len(bases) * math.prod(map(len, parameters.values()))
    msg = f"a race takes {MAX_COMMANDS:,} commands at most, but got {total:,}; race fewer at a time"
    refuse(total > MAX_COMMANDS, msg)
    cells = [(row, i) for row in combinations(parameters) for i in range(len(bases))]
    names, several = options.command_name, len(cells) > len(bases)
    example = "truearm race 'gzip -kf data' 'zstd -kf data', or --resume FILE"
    refuse(not cells, f"give at least one command, such as {example}; `truearm race --help` shows more")
    msg = f"{len(names)} names were given for {plural(len(cells), 'command')}; give one -n for each"
    refuse(len(names) > len(bases) and len(names) != len(cells), msg)
    for place, (row, i) in enumerate(cells):
        template, cwd, own = bases[i]
        shown = " ".join(f"{key}={value}" for key, value in row.items())
        is_each = several and len(names) == len(cells)
        name = names[place if is_each else i] if is_each or i < len(names) else ""
        shell = "none" if options.N else options.shell
        command = bind(template, {**own, **row}, name=name, cwd=cwd, shell=shell, typed=row)
        if own and not is_each:
            name = f"{name or own['rev']} {shown}".rstrip()
        elif row and not names and len(bases) == 1 and template not in {f"{{{key}}}" for key in row}:
            name = shown
        elif not is_each:
            name = command.name
        yield _place(replace(command, name=name), options)


def _place(command: Command, options: RaceOptions) -> Command:
    """Return a command with environment, directory, input and output, its parameters replaced in all of them."""
    values, env = command.parameters, {}
    output = "inherit" if options.show_output else options.output or "null"
    for pair in options.env:
        name, equals, value = pair.partition("=")
        refuse(not equals or not name, f"--env takes NAME=VALUE, but got {pair!r}")
        env[name] = fill(value, values)
        unknown = re.findall(r"(?<!\$)\{\w+\}", env[name]) if options.rev else []
        refuse(unknown, f"--env {pair} contains {', '.join(unknown)}, which has no value; use {{rev}} or {{dir}}")
    cwd, *streams = (fill(text, values) for text in (options.cwd or "", options.input, output))
    folder = str(Path(cwd).absolute()) if cwd else command.cwd
    missing = cwd and not (Path(cwd).is_dir() or options.builds)
    refuse(missing, f"--cwd: there is no folder {folder!r}; create it first, or name another")
    # a saved race may continue from another directory
    streams = [str(Path(one).absolute()) if options.save and one not in STREAMS else one for one in streams]
    Conditions(input=streams[0], output=streams[1])  # checks them
    return replace(command, env=env, cwd=folder, input=streams[0], output=streams[1])


def _parameters(options: RaceOptions) -> dict[str, tuple[str, ...]]:
    given = [
        *((name, scan(low, high, options.parameter_step_size)) for name, low, high in options.parameter_scan),
        *((name, split_list(values)) for name, values in options.parameter_list),
    ]
    texts = [*options.commands, *(line for stage in HOOKS for line in getattr(options, stage))]
    texts += [*options.env, options.cwd or "", options.input, options.output or ""]
    names = ["rev", "dir"] if options.rev else []
    for name, _ in given:
        msg = f"parameter {name!r} is given twice, or by --rev; give all its values at once, or rename one"
        refuse(name in names, msg)
        msg = f"no command uses {{{name}}}, so all its values would run the same; add it to a command"
        refuse(not any(f"{{{name}}}" in text for text in texts), msg)
        names.append(name)
    return dict(given)
