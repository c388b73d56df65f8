"""Show a race that has ended: the answer, the table, the notes below it, and the exported files."""

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from truearm.claims import alarms
from truearm.claims.certificate import Status, Tapes
from truearm.claims.certify import ratios
from truearm.claims.gates import Gate, judge_gate
from truearm.claims.ledger import Gate as LedgerGate
from truearm.claims.result import Result
from truearm.cli.asked import Asked
from truearm.cli.edge import Exports, write
from truearm.cli.live import nearly_equal
from truearm.cli.screen import Screen
from truearm.cli.setting import Setting
from truearm.commands.command import needs_shell
from truearm.commands.measure import machine
from truearm.errors import InvalidArgument
from truearm.events import Reading
from truearm.policies import Standing
from truearm.report import tables, words
from truearm.report.export import csv_text, document, hyperfine_results, json_text
from truearm.report.numbers import Unit, count, name_of, number, plural, unit_for

_MAX_FORECAST = 100_000  # runs
_QUICK_S = 0.005  # below it hyperfine too advises against a shell


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A race that has ended."""

    result: Result
    tapes: Tapes
    setting: Setting
    runs: Sequence[Reading]
    seed: int | None
    unit: str | None = None
    reference: str | None = None
    gate: str | None = None
    budget: int | None = None
    """Rounds in which a gate was unlikely to be decided, so that it ended early."""
    path: str | None = None
    ended: bool = True
    """Whether a limit ended it, and not the user."""
    quiet: bool = False
    default_limit: float | None = None
    """Seconds after which it was stopped, if the user set no limit."""
    shell_cost: float | None = None
    """Seconds that the shell adds to each reading."""
    stopped: str | None = None
    """The command whose run was stopped because the time was up."""
    standing: Standing | None = None
    verbose: bool = False
    failure: click.ClickException | None = None
    decision: LedgerGate | None = None
    """The gate of a ledger that this race decided."""

    @property
    def verdict(self) -> Gate | None:
        """What the gate says, if there is one."""
        return judge_gate(self.result, self.gate, tapes=self.tapes, budget=self.budget)

    @property
    def display_unit(self) -> Unit:
        """The unit that readings are shown in."""
        return unit_for(self.setting.metric, self.result.arms, self.unit, target=self.result.problem.target)

    @property
    def voice(self) -> words.Voice:
        """How sentences name runs, commands and units."""
        spent = self.default_limit if self.result.status is Status.EXHAUSTED else None
        voice = words.voice_for(self.result, self.setting.metric, self.display_unit)
        return voice._replace(options=True, elapsed=spent)

    @property
    def sentences(self) -> str:
        """The answer, without the table."""
        return "\n".join(self._lines(verbose=False))

    def _lines(self, *, verbose: bool) -> list[str]:
        found = words.lines(self.result, voice=self.voice, verbose=verbose, gate=self.verdict)
        return found if self.decision is None else [words.ledger_gate(self.decision), *found]

    def rows(self) -> tables.Rows:
        """Return the table of commands."""
        censored = None if self.setting.conditions.timeout is None else self.result.problem.censored
        return tables.arm_rows(self.result, self.voice, ratios(self.result, self.reference), censored=censored)

    def hyperfine(self) -> list[dict[str, Any]]:
        """Return the results as hyperfine writes them."""
        return hyperfine_results(self.setting.commands, self.runs)

    def document(self) -> str:
        """Return everything as JSON."""
        gate = self.verdict
        more = {
            **({} if gate is None else {"verdict": gate.verdict}),
            "seed": self.seed,
            "commands": plain_commands(self.setting),
            **plain_builds(self.setting, self.runs),
            "shell_cost": self.shell_cost,
            "machine": machine(),
            "results": self.hyperfine(),
            **({} if self.decision is None else {"gate": self.decision.to_dict()}),
        }
        metric = self.setting.metric
        return json_text(document(self.result, self.tapes, reference=self.reference, metric=metric, **more))

    def makers(self) -> dict[str, Callable[[], str]]:
        """Return what makes each export."""
        return {
            "json": self.document,
            "csv": lambda: csv_text(self.result, self.hyperfine()),
            "markdown": lambda: tables.markdown(self.rows(), self.sentences),
            "html": lambda: html_page(
                self.result, self.tapes, self.display_unit, self.setting.metric, self.verdict
            ),
        }

    def text(self, *, err: bool = False) -> str:
        """Return what a person reads, on standard output or standard error."""
        result, screen, gate = self.result, Screen.here(err=err), self.verdict
        answer = [screen.answer(self._lines(verbose=self.verbose), result, gate)]
        rest = [
            screen.table(self.rows(), result, ratios(result, self.reference), self.display_unit),
            tables.table(rows) if (rows := tables.control_rows(result)) else "",
        ]
        if self.verbose:
            rows = tables.statistics_rows(result, self.tapes, self.display_unit, self.hyperfine())
            rest.append(tables.table(rows, screen.width if screen.terminal else None, words=False))
            rest += [screen.wrap(words.breakdowns(result)), screen.bullets(result.assumptions)]
        rest.append("" if self.quiet else screen.wrap(" ".join(_notes(self)), dim=True))
        return screen.arrange(answer, rest)


def html_page(result: Result, tapes: Tapes, unit: Unit, metric: str | None, gate: Gate | None = None) -> str:
    """Return the report as a page."""
    from truearm.report.pages import page  # a race that writes no page starts without it

    return page(result, tapes, unit=unit, metric=metric, gate=gate)


def write_exports(makers: Mapping[str, Callable[[], str]], asked: Asked) -> Exports:
    """Write every file that was asked for; a failure of one does not affect the others."""
    exports = Exports()
    for name, path in asked.exports.items():
        text = makers[name]().rstrip("\n")
        if path == "-":
            click.echo(text)
        else:
            with exports.writing(path):
                write(path, f"{text}\n")
    if asked.github_summary:
        path = os.environ["GITHUB_STEP_SUMMARY"]
        with exports.writing(path):
            write(path, f"{makers['markdown']()}\n\n", append=True)
    return exports


def plain_commands(setting: Setting) -> list[dict[str, Any]]:
    """Return the commands for JSON."""
    return [
        {"name": c.name, "command": c.text, "shell": c.shell, "parameters": dict(c.parameters)}
        for c in setting.commands
    ]


def plain_builds(setting: Setting, runs: Sequence[Reading]) -> dict[str, Any]:
    """Return the builds for JSON, with the seeds in order of round, if every round had new ones."""
    if (builds := setting.random_builds) is None:
        return {}
    seeds = {arm: [(run.notes or {}).get("seed") for run in runs if run.arm == arm] for arm in setting.arms}
    plain = {"command": builds.command, "rounds": builds.rounds, "runs_per_build": builds.runs, "seeds": seeds}
    return {"builds": plain}


def _notes(outcome: Outcome) -> Iterator[str]:
    setting, result = outcome.setting, outcome.result
    gate = outcome.verdict
    undecided = result.status is Status.EXHAUSTED if gate is None else gate.verdict == "UNSURE"
    if undecided and not outcome.ended and result.status is Status.EXHAUSTED:
        yield "Interrupted."
    if undecided and outcome.default_limit is not None:
        yield f"--max-time allows more than {number(outcome.default_limit / 60)} minutes."
    if outcome.stopped is not None:
        hooked = {"prepare", "conclude"} & set(setting.hooks)
        around, remedy = (", or its hook,", "") if hooked else ("", "; --timeout would count it as slow")
        yield f"Time was up: a run of {name_of(outcome.stopped)}{around} was stopped, without a reading{remedy}."
    if undecided and gate is None and not result.ties:
        yield from _forecast(outcome)
    yield from _about_shell(outcome)
    for arm in setting.arms:
        yield from describe_losses(arm, [run for run in outcome.runs if run.arm == arm])
    if len(setting.arms) == 1:
        yield from _about_outliers(outcome)
    elif outcome.verbose and outcome.seed is not None:
        inside = " inside each round" if result.problem.rounds else ""
        yield f"Order of runs{inside} shuffled with seed {outcome.seed}."
    if outcome.path is not None:
        limits = "; this limit no longer applies unless you set it again" if outcome.ended else ""
        limits = "; -M allows more builds" if outcome.ended and setting.random_builds else limits
        yield where_saved(Path(outcome.path).name, limits if undecided else None)


def where_saved(name: str, limits: str | None) -> str:
    """Return where the readings are, and how to continue unless `limits` is None."""
    if limits is None:
        return f"All readings are in {name_of(name)}."
    return f"All readings are in {name_of(name)}; continue with: truearm race --resume {name_of(name)}{limits}"


def _forecast(outcome: Outcome) -> Iterator[str]:
    """Say what an undecided race in rounds still needs, if its runs continue as they were."""
    result, standing = outcome.result, outcome.standing
    if standing is None or not result.problem.rounds:
        return
    if near := nearly_equal(standing, max(result.pulls.values())):
        yield near
    left = standing.pulls_left(result.pulls, 1)
    if _MAX_FORECAST < left < math.inf:
        yield "More runs would not decide this in practice."
    elif 0 < left < math.inf and min(result.pulls.values()):
        ends = "would tell whether they can be told apart" if standing.close else "would decide"
        more = number(float(f"{left:.1g}"))
        yield f"About {more} more run{'s' * (more != '1')} {ends} (an estimate)."


def _about_outliers(outcome: Outcome) -> Iterator[str]:
    """Describe runs of one command alone that are far from its median."""
    arm, unit = outcome.result.arms[0], outcome.display_unit
    tape = [math.nan if x is None else x for x in outcome.tapes[arm.name]]
    found = alarms.far_readings(tape) if outcome.result.problem.target == "quantile" else ()
    if found:
        worst = max((tape[place] for place in found), key=lambda x: abs(x - arm.observed))
        yield (
            f"{plural(len(found), 'run')} of {count(len(tape))} lie{'s' * (len(found) == 1)} more than ten robust "
            f"standard deviations from the median, the farthest {unit.attach(number(worst / unit.size))}: "
            "something else was running, or it does this now and then."
        )
        if found[0] == 0 and not outcome.setting.warmup:
            yield "The first run is one of them: -w 1 leaves it out."


def _about_shell(outcome: Outcome) -> Iterator[str]:
    commands, cost = outcome.setting.commands, outcome.shell_cost
    if commands[0].shell is None:
        return
    took = "" if cost is None else f", which takes about {number(float(f'{1000 * cost:.2g}'))} ms of each reading"
    yield f"Commands ran through {name_of(commands[0].shell)}{took}."
    quick = any(0 <= arm.observed < _QUICK_S for arm in outcome.result.arms)
    if cost is not None and quick and not any(_needs_shell(command.text) for command in commands):
        yield "A command took less than 5 ms and none needs a shell: -N (--shell none) measures it without one."


def _needs_shell(line: str) -> bool:
    try:
        return needs_shell(line)
    except InvalidArgument:  # it cannot be split into words
        return True


def describe_losses(
    arm: str, runs: Sequence[Reading], late: str = "worse than any run that ended"
) -> Iterator[str]:
    """Say how many runs of a command timed out (`late` is what that counts as), failed or left processes."""
    notes = [run.notes or {} for run in runs]
    killed, behind = (sum(bool(note.get(key)) for note in notes) for key in ("timed_out", "left_behind"))
    failed = sum(math.isnan(run.value) for run in runs)
    if killed:
        yield f"{plural(killed, 'run')} of {name_of(arm)} timed out: {late}."
    if behind:
        yield (
            f"{plural(behind, 'run')} of {name_of(arm)} left processes running, which truearm does not end and "
            "which take time from later runs: let the command wait for them, or end them with --conclude."
        )
    if failed:
        what = "was lost: a missing reading" if failed == 1 else "were lost: missing readings"
        yield f"{plural(failed, 'run')} of {name_of(arm)} failed or {what}, at the worst."
