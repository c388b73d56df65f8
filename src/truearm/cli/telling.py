"""What a race says when it ends: the text, the files, and the notes beside them."""

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from truearm.claims import alarms
from truearm.claims.certificate import Status, Tapes
from truearm.claims.gates import given_up, hidden, worse_than
from truearm.claims.ratios import Ratio, ratios
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
from truearm.report.numbers import PLAIN_UNIT, Unit, count, name_of, number, unit_for

_MAX_FORECAST = 100_000  # runs
_QUICK = 0.005  # seconds: below it hyperfine too advises against a shell


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A race that ended, and how it is to be told."""

    result: Result
    tapes: Tapes
    setting: Setting
    runs: Sequence[Reading]
    seed: int | None
    unit: str | None = None
    reference: str | None = None
    gate: str | None = None
    path: str | None = None
    ended: bool = True
    quiet: bool = False
    patience: float | None = None
    """Seconds after which the race ended, if nobody had said how long it may take."""
    shell_cost: float | None = None
    """Seconds that the shell of the commands takes of each reading."""
    cut: str | None = None
    """The command whose run was stopped because the time that was asked for was up."""
    standing: Standing | None = None
    verbose: bool = False
    failure: click.ClickException | None = None
    """What ended the race before its time; what was measured until then is kept."""

    @property
    def ratios(self) -> tuple[Ratio, ...]:
        """Every command against the reference."""
        return ratios(self.result, self.reference)

    @property
    def censored(self) -> float | None:
        """What a run that timed out counts as; None if none could."""
        return None if self.setting.conditions.timeout is None else self.result.problem.censored

    @property
    def worse(self) -> tuple[str, ...]:
        """The commands that are worse than the one that guards the gate."""
        return () if self.gate is None else worse_than(self.result, self.tapes, self.gate, shared=self._shared)

    @property
    def _shared(self) -> bool:
        return self.setting.guard is not None and not self.result.problem.rounds

    @property
    def given_up(self) -> bool:
        """Whether no command left can be shown to be worse than the guard, however many runs there are."""
        return given_up(self.result, self.tapes, self.gate)


def write_files(outcome: Outcome, asked: Asked) -> Exports:
    """Write every file that was asked for; one that cannot be written keeps none of the others back."""
    makers = {"json": _json, "csv": _csv, "markdown": summarize, "html": _html}
    return write_each({name: partial(maker, outcome) for name, maker in makers.items()}, asked)


def write_each(makers: Mapping[str, Callable[[], str]], asked: Asked) -> Exports:
    """Write the files that were asked for, each by the maker of its format."""
    exports = Exports()
    for name, path in asked.exports.items():
        words = makers[name]().rstrip("\n")
        if path == "-":
            click.echo(words)
        else:
            with exports.writing(path):
                write(path, f"{words}\n")
    if asked.github_summary:
        path = os.environ["GITHUB_STEP_SUMMARY"]
        with exports.writing(path):
            write(path, f"{makers['markdown']()}\n\n", append=True)
    return exports


def told(outcome: Outcome, *, as_json: bool, err: bool = False) -> str:
    """Return what goes to standard output, or to standard error because a document goes there."""
    if as_json:
        return _json(outcome)
    result, unit = outcome.result, _unit(outcome)
    screen = Screen.here(err=err)
    failed = {"fg": "red", "bold": True} if outcome.worse else {}
    answer = [
        "\n".join(screen.filled(line, **failed) for line in _gates(outcome)),
        screen.answer(words.lines(result, voice=_voice(outcome), verbose=outcome.verbose), result),
    ]
    rest = [
        screen.table(_rows(outcome), result, outcome.ratios),
        tables.table(rows) if (rows := tables.control_rows(result)) else "",
        *(_details(outcome, unit, screen) if outcome.verbose else ()),
        "" if outcome.quiet else screen.filled(" ".join(_notes(outcome)), dim=True),
    ]
    return screen.arrange(answer, rest)


def _details(outcome: Outcome, unit: Unit, screen: Screen) -> Iterator[str]:
    """Give what hyperfine shows of each command, and what the answer rests on."""
    times = hyperfine_results(outcome.setting.commands, outcome.runs)
    rows = tables.statistics_rows(outcome.result, outcome.tapes, unit, times)
    yield tables.table(rows, screen.width if screen.terminal else None, words=False)
    if bears := words.breakdowns(outcome.result):
        yield screen.filled(bears)
    yield screen.listed(outcome.result.assumptions)


def summarize(outcome: Outcome) -> str:
    """Return the paragraph and the table in Markdown."""
    return tables.markdown(_rows(outcome), sentences(outcome))


def sentences(outcome: Outcome) -> str:
    """Return what the gates say, first, and what is known, without the table."""
    return "\n".join([*_gates(outcome), words.summarize(outcome.result, voice=_voice(outcome))])


def _rows(outcome: Outcome) -> list[tables.Row]:
    return tables.arm_rows(outcome.result, _voice(outcome), outcome.ratios, censored=outcome.censored)


def _unit(outcome: Outcome) -> Unit:
    target = outcome.result.problem.target
    return unit_for(outcome.setting.metric, outcome.result.arms, outcome.unit, target=target)


def _voice(outcome: Outcome) -> words.Voice:
    return words.voice_for(outcome.result, outcome.setting.metric, _unit(outcome))._replace(options=True)


def _json(outcome: Outcome) -> str:
    return json_text(
        document(
            outcome.result,
            outcome.tapes,
            reference=outcome.reference,
            metric=outcome.setting.metric,
            **_more(outcome),
        )
    )


def _more(outcome: Outcome) -> dict[str, Any]:
    setting = outcome.setting
    return {
        "seed": outcome.seed,
        "commands": plain_commands(setting),
        "shell_cost": outcome.shell_cost,
        "machine": machine(),
        "results": hyperfine_results(setting.commands, outcome.runs),
    }


def plain_commands(setting: Setting) -> list[dict[str, Any]]:
    """Return the commands for JSON."""
    return [
        {"name": c.name, "command": c.text, "shell": c.shell, "parameters": dict(c.parameters)}
        for c in setting.commands
    ]


def _csv(outcome: Outcome) -> str:
    return csv_text(outcome.result, hyperfine_results(outcome.setting.commands, outcome.runs))


def _html(outcome: Outcome) -> str:
    return html_page(outcome.result, outcome.tapes, _unit(outcome), outcome.setting.metric)


def html_page(result: Result, tapes: Tapes, unit: Unit = PLAIN_UNIT, metric: str | None = None) -> str:
    """Return the report as a page, or say what is missing."""
    try:
        module = import_module("truearm.report.pages")
    except ModuleNotFoundError:
        msg = "this installation of truearm has no HTML report; write JSON or Markdown instead"
        raise InvalidArgument(msg) from None
    page: str = module.page(result, tapes, unit=unit, metric=metric)
    return page


def _gates(outcome: Outcome) -> Iterator[str]:
    if outcome.gate is not None:
        yield words.gate(outcome.result, outcome.gate, outcome.worse, _voice(outcome), final=outcome.given_up)
        if not outcome.worse and hidden(outcome.result):
            yield f"--timeout ends runs before they can be that much worse than {name_of(outcome.gate)}: raise it."


def _notes(outcome: Outcome) -> Iterator[str]:
    setting = outcome.setting
    if outcome.result.status is Status.EXHAUSTED and not (outcome.ended or outcome.given_up):
        yield "Interrupted."
    if outcome.patience is not None and outcome.result.status is Status.EXHAUSTED:
        yield f"Stopped after {number(outcome.patience / 60)} minutes; --max-time allows more."
    if outcome.cut is not None:
        hooked = {"prepare", "conclude"} & set(setting.hooks)
        around, remedy = (
            (", or what runs around it,", "") if hooked else ("", "; --timeout would count it as slow")
        )
        yield f"Time was up: a run of {name_of(outcome.cut)}{around} was stopped, without a reading{remedy}."
    yield from _about_names(outcome)
    yield from _forecast(outcome)
    yield from _about_shell(outcome)
    for arm in setting.arms:
        yield from lost(arm, [run for run in outcome.runs if run.arm == arm])
    if len(setting.arms) == 1:
        yield from _outlying(outcome)
    else:
        inside = " inside each round" if outcome.result.problem.rounds else ""
        if outcome.verbose:
            yield f"Order of runs{inside} shuffled with seed {outcome.seed}."
    if outcome.path is not None:
        name = Path(outcome.path).name
        limits = ", without this limit unless you give it again" if outcome.ended else ""
        more = f"; go on with: truearm race --resume {name}{limits}"
        yield f"All readings are in {name}{more if outcome.result.status is Status.EXHAUSTED else '.'}"


def _about_names(outcome: Outcome) -> Iterator[str]:
    """Say which commands have names if others have none: a name may have been meant for another one."""
    commands = outcome.setting.commands
    named = [command for command in commands if command.name != command.text and not command.parameters]
    if len(named) == len(commands) or any(command.cwd for command in commands):
        return
    for command in named:
        yield f"{name_of(command.name)} is the name of {name_of(command.text)}: -n names commands in their order."


def _forecast(outcome: Outcome) -> Iterator[str]:
    """Give what a race that ended early still needs, if its runs go on as they were."""
    result, standing = outcome.result, outcome.standing
    if result.status is not Status.EXHAUSTED or standing is None or not result.problem.rounds or result.ties:
        return
    if outcome.given_up:  # the gate has its answer, and who is best was not asked
        return
    gated = result.problem.handicap is not None  # what looks equal then is the tolerance
    if not gated and (near := nearly_equal(standing, max(result.pulls.values()))):
        yield near
    left = standing.pulls_left(result.pulls, 1)
    if _MAX_FORECAST < left < math.inf:
        yield "More runs would not decide this in practice."
    elif left > 0 and min(result.pulls.values()):
        ends = "would decide"
        if standing.close:
            ends = f"would tell whether {'it can be decided' if gated else 'they can be told apart'}"
        more = number(float(f"{left:.1g}"))
        yield f"About {more} more run{'s' * (more != '1')} {ends} (an estimate)."


def _outlying(outcome: Outcome) -> Iterator[str]:
    """Give the runs of one command alone that lie far out."""
    arm = outcome.result.arms[0]
    tape = [math.nan if x is None else x for x in outcome.tapes[arm.name]]
    found = alarms.outlying(tape) if outcome.result.problem.target == "quantile" else ()
    if not found:
        return
    unit = _unit(outcome)
    worst = max((tape[place] for place in found), key=lambda x: abs(x - arm.observed))
    sign = f" {unit.sign}" if unit.sign else ""
    yield (
        f"{_runs(len(found))} of {count(len(tape))} lie{'s' * (len(found) == 1)} more than ten robust standard "
        f"deviations from the median, the farthest {number(worst / unit.size)}{sign}: something else was running, "
        "or it does this now and then."
    )
    if found[0] == 0 and not outcome.setting.warmup:
        yield "The first run is one of them: -w 1 leaves it out."


def _about_shell(outcome: Outcome) -> Iterator[str]:
    shell, cost = outcome.setting.commands[0].shell, outcome.shell_cost
    if shell is None:
        yield "Commands ran without a shell."
        return
    took = "" if cost is None else f", which takes about {number(float(f'{1000 * cost:.2g}'))} ms of each reading"
    yield f"Commands ran through {name_of(shell)}{took}."
    quick = any(0 <= arm.observed < _QUICK for arm in outcome.result.arms)
    if cost is not None and quick and not any(_needs_shell(c.text) for c in outcome.setting.commands):
        yield "A command took less than 5 ms and none needs a shell: -N (--shell none) measures it without one."


def _needs_shell(line: str) -> bool:
    try:
        return needs_shell(line)
    except InvalidArgument:  # no words to start it by, so only a shell can
        return True


def lost(arm: str, runs: Sequence[Reading], late: str = "worse than any run that ended") -> Iterator[str]:
    """Return what went wrong with runs of a command, in sentences; `late` is what a time-out counts as."""
    killed = sum(bool((run.notes or {}).get("timed_out")) for run in runs)
    behind = sum(bool((run.notes or {}).get("left_behind")) for run in runs)
    failed = sum(math.isnan(run.value) for run in runs)
    if killed:
        yield f"{_runs(killed)} of {name_of(arm)} timed out: {late}."
    if behind:
        yield (
            f"{_runs(behind)} of {name_of(arm)} left processes running, which truearm does not end and which take "
            "time from later runs: let the command wait for them, or end them with --conclude."
        )
    if failed:
        what = (
            "a missing reading, counted at its worst"
            if failed == 1
            else "missing readings, counted at their worst"
        )
        yield f"{_runs(failed)} of {name_of(arm)} failed or {'was' if failed == 1 else 'were'} lost: {what}."


def _runs(n: int) -> str:
    return f"{count(n)} run{'' if n == 1 else 's'}"
