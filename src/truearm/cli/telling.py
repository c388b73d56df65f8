"""What a race says when it ends: the text, the files, and the notes beside them."""

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from textwrap import fill
from types import SimpleNamespace
from typing import Any

from truearm.claims.certificate import Status, Tapes
from truearm.claims.result import Result
from truearm.claims.wording import count, name_of, number
from truearm.cli.gates import about_baseline, worse_than
from truearm.cli.setting import Setting
from truearm.errors import InvalidArgument
from truearm.report import text
from truearm.report.export import Run, csv_text, document, hyperfine_results, json_text
from truearm.report.ratios import Ratio, ratios
from truearm.world.processes import machine

_FORMATS = ("json", "csv", "markdown", "html")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A race that ended, and how it is to be told."""

    result: Result
    tapes: Tapes
    setting: Setting
    runs: Sequence[Run]
    seed: int | None
    unit: str | None = None
    reference: str | None = None
    baseline: str | None = None
    gate: str | None = None
    path: str | None = None
    ended: bool = True
    quiet: bool = False

    @property
    def ratios(self) -> tuple[Ratio, ...]:
        """Every command against the reference."""
        return ratios(self.result, self.reference)

    @property
    def worse(self) -> tuple[str, ...]:
        """The commands that are worse than the one that guards the gate."""
        return () if self.gate is None else worse_than(self.result, self.tapes, self.gate)


def write_files(outcome: Outcome, asked: SimpleNamespace) -> None:
    """Write every file that was asked for."""
    makers = {"json": _json, "csv": _csv, "markdown": summarize, "html": _html}
    for name in _FORMATS:
        path = getattr(asked, f"export_{name}")
        if path is not None:
            Path(path).write_text(makers[name](outcome).rstrip("\n") + "\n", encoding="utf-8")
    if asked.github_summary:
        with Path(os.environ["GITHUB_STEP_SUMMARY"]).open("a", encoding="utf-8") as file:
            file.write(f"{summarize(outcome)}\n\n")


def told(outcome: Outcome, *, as_json: bool) -> str:
    """Return what goes to standard output."""
    if as_json:
        return _json(outcome)
    unit, shown = _shown(outcome)
    columns = shutil.get_terminal_size((100, 24)).columns
    width = min(100, columns)
    parts = [
        fill(text.paragraph(shown, unit), width),
        text.table(text.rows(shown, unit, outcome.ratios), columns if sys.stdout.isatty() else None),
        "\n".join(fill(line, width) for line in (*_comparisons(outcome), *_gates(outcome))),
        "" if outcome.quiet else fill(" ".join(_notes(outcome)), width),
    ]
    return "\n\n".join(part for part in parts if part)


def summarize(outcome: Outcome) -> str:
    """Return the paragraph and the table in Markdown."""
    unit, shown = _shown(outcome)
    words = " ".join([text.paragraph(shown, unit), *_comparisons(outcome), *_gates(outcome)])
    return text.markdown(text.rows(shown, unit, outcome.ratios), words)


def _shown(outcome: Outcome) -> tuple[text.Unit, Result]:
    unit = text.unit_for(outcome.setting.metric, outcome.result.arms, outcome.unit)
    return unit, text.in_unit(outcome.result, unit)


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
        "commands": [
            {"name": c.name, "command": c.text, "shell": c.shell, "parameters": dict(c.parameters)}
            for c in setting.commands
        ],
        "shell_startup": setting.conditions.startup.wall,
        "machine": machine(),
        "results": hyperfine_results(setting.commands, outcome.runs),
    }


def _csv(outcome: Outcome) -> str:
    return csv_text(outcome.result, hyperfine_results(outcome.setting.commands, outcome.runs))


def _html(outcome: Outcome) -> str:
    return html_page(outcome.result, outcome.tapes)


def html_page(result: Result, tapes: Tapes) -> str:
    """Return the report as a page, or say what is missing."""
    try:
        module = import_module("truearm.report.html")
    except ModuleNotFoundError:
        msg = "this installation of truearm has no HTML report; write JSON or Markdown instead"
        raise InvalidArgument(msg) from None
    page: str = module.page(result, tapes)
    return page


def _comparisons(outcome: Outcome) -> list[str]:
    goal, metric = outcome.result.problem.goal, outcome.setting.metric
    result = outcome.result
    certain = result.best if result.status in (Status.CERTIFIED, Status.SEPARATED) else None
    return [
        text.comparison(ratio, metric, goal, decided=ratio.reference == certain)
        for ratio in outcome.ratios
        if {ratio.arm, ratio.reference} - {certain, *result.ties}  # arms that tie are said to
    ]


def _gates(outcome: Outcome) -> Iterator[str]:
    if outcome.baseline is not None:
        yield about_baseline(outcome.result, outcome.baseline)
    if outcome.gate is not None:
        names, gate = ", ".join(map(name_of, outcome.worse)), name_of(outcome.gate)
        open_ = "No command is shown to be worse than"
        yield f"Worse than {gate}: {names}." if names else f"{open_} {gate}."


def _notes(outcome: Outcome) -> Iterator[str]:
    setting = outcome.setting
    if outcome.result.status is Status.EXHAUSTED and not outcome.ended:
        yield "Stopped by hand."
    yield _shell_note(setting)
    for arm in setting.arms:
        yield from _lost(arm, [run for run in outcome.runs if run.arm == arm], setting.metric)
    if setting.handicap is not None:
        yield (
            f"{name_of(setting.handicap.arm)} is shown with the handicap in its name: another command has to be "
            "worse by more than that to lose."
        )
    yield f"Order of runs shuffled with seed {outcome.seed}."
    if outcome.path is not None:
        name = Path(outcome.path).name
        yield f"All readings are in {name}; go on with: truearm race --resume {name}"


def _shell_note(setting: Setting) -> str:
    shells = [command for command in setting.commands if command.shell is not None]
    if not shells:
        return "Commands ran without a shell."
    cost = number(1000 * setting.conditions.startup.wall)
    names = "All commands" if len(shells) == len(setting.commands) else ", ".join(name_of(c.name) for c in shells)
    others = "" if len(shells) == len(setting.commands) else ", the others without"
    return f"{names} ran through {shells[0].shell}{others}; its start-up of {cost} ms was subtracted."


def _lost(arm: str, runs: Sequence[Run], metric: str) -> Iterator[str]:
    late = sum(bool(run.details.get("timed_out")) for run in runs)
    failed = sum(run.value != run.value for run in runs) - (late if metric == "stdout" else 0)
    if late:
        counts = "bad readings" if metric == "stdout" else "readings beyond any bound"
        yield f"{count(late)} runs of {name_of(arm)} hit the time-out and count as {counts}."
    if failed:
        yield f"{count(failed)} runs of {name_of(arm)} failed or were lost and count as bad readings."
