"""A race of one metric or of many that has ended, or the study of a log, in every form that is asked for."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from truearm.claims import alarms
from truearm.claims.certificate import Status
from truearm.claims.certify import ratios
from truearm.claims.gates import Gate, LedgerGate, judge_gate
from truearm.claims.result import Result
from truearm.claims.suite import Runs, SuiteResult, judge_suite
from truearm.cli.answer import DOUBTFUL, FAILED, GOOD, UNDECIDED, Answer, Screen, exit_code, html_page, lay_out
from truearm.cli.asked import Asked
from truearm.cli.live import near_words
from truearm.cli.saved import Race
from truearm.commands.command import needs_shell
from truearm.commands.measure import machine, runs_of
from truearm.errors import InvalidArgument
from truearm.events import Reading
from truearm.report import tables, words
from truearm.report.export import csv_text, document, hyperfine_results, json_text, suite_csv, suite_document
from truearm.report.numbers import number, unit_for

_QUICK_S = 0.005  # below it hyperfine too advises against a shell
_VERDICT_CODES = {"accepted": GOOD, "not better": FAILED, "undecided": UNDECIDED, "doubtful": DOUBTFUL}
REPORT = Asked(time_unit=None, quiet=True, verbose=False, strict=False, fail_unless_best=None)
"""The options of the report of a log, which may come from another machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A race that has ended."""

    race: Race
    result: Result
    asked: Asked
    reference: str | None = None
    budget: int | None = None
    """Rounds in which a gate was unlikely to be decided, so that it ended early."""
    ended: bool = True
    """Whether a limit ended it, and not the user."""
    default_limit: float | None = None
    """Seconds after which it was stopped, if the user set no limit."""
    stopped: str | None = None
    """The command whose run was stopped because the time was up."""
    decision: LedgerGate | None = None
    """The gate of a ledger that this race decided."""
    shell_cost: float | None = None
    """Seconds that the shell adds to each reading."""

    def answer(self) -> Answer:
        """Return all forms of the outcome, and its exit code."""
        result, setting, asked = self.result, self.race.setting, self.asked
        gate = judge_gate(result, setting.guard, budget=self.budget)
        voice, found = self._voice(), ratios(result, self.reference)
        metric = setting.metric if setting.commands else None
        times = hyperfine_results(setting.commands, self.race.runs)
        first = [] if self.decision is None else [words.ledger_gate(self.decision)]
        said = "\n".join([*first, *words.lines(result, voice=voice, gate=gate)])
        censored = None if setting.conditions.timeout is None else result.problem.censored

        def text(screen: Screen) -> str:
            return lay_out(
                result,
                voice,
                screen,
                ratios=found,
                gate=gate,
                first=first,
                censored=censored,
                verbose=asked.verbose,
                statistics=tables.statistics_rows(result, result.readings, voice.unit, times),
                notes=[] if asked.quiet else [" ".join(filter(None, self._notes(gate)))],
            )

        def make_document() -> str:
            more = {
                **({} if gate is None else {"verdict": gate.verdict}),
                **describe_race(self.race),
                **({"results": times} if metric else {}),
                **({} if self.decision is None else {"gate": self.decision.to_dict()}),
            }
            more |= {"shell_cost": self.shell_cost, "machine": machine()} if asked is not REPORT else {}
            return json_text(document(result, result.readings, reference=self.reference, metric=metric, **more))

        rows = tables.arm_rows(result, voice, found, censored=censored)
        forms = {
            "json": make_document,
            "csv": lambda: csv_text(result, times),
            "markdown": lambda: tables.markdown(rows, said),
            "html": lambda: html_page(result, voice, gate),
        }
        code = exit_code(result, unless_best=asked.fail_unless_best, gate=gate, strict=asked.strict)
        if self.decision is not None:
            code = _VERDICT_CODES[self.decision.verdict]
        return Answer(text, code, forms, said, notice=self.budget is not None and not result.alarms)

    def _voice(self) -> words.Voice:
        """Return how sentences name runs, commands and units."""
        result, setting = self.result, self.race.setting
        if not setting.commands:
            return words.PLAIN._replace(options=True)
        unit = unit_for(setting.metric, result.arms, self.asked.time_unit, target=result.problem.target)
        elapsed = self.default_limit if result.status is Status.EXHAUSTED else None
        return words.voice_for(result, setting.metric, unit)._replace(options=True, elapsed=elapsed)

    def _notes(self, gate: Gate | None) -> Iterator[str]:
        race, setting, result = self.race, self.race.setting, self.result
        undecided = result.status is Status.EXHAUSTED if gate is None else gate.verdict == "UNSURE"
        if undecided and not self.ended and result.status is Status.EXHAUSTED:
            yield "Interrupted."
        if undecided and self.default_limit is not None:
            yield f"--max-time allows more than {number(self.default_limit / 60)} minutes."
        if self.stopped is not None:
            yield words.stopped_run(self.stopped, hooked=not {"prepare", "conclude"}.isdisjoint(setting.hooks))
        if undecided and gate is None and not result.ties and result.problem.rounds:
            yield near_words(race.study.standing, max(result.pulls.values()))
            left = race.study.standing.pulls_left(result.pulls, 1) if min(result.pulls.values()) else math.inf
            yield words.runs_left(left * setting.runs_per_reading, close=bool(race.study.standing.close))
        yield self._about_shell()
        yield from describe_losses(race)
        if len(setting.arms) == 1:
            yield self._about_outliers()
        elif self.asked.verbose and race.study.seed is not None:
            inside = " inside each round" if result.problem.rounds else ""
            yield f"Order of runs{inside} shuffled with seed {race.study.seed}."
        if race.store is not None:
            limits = "; this limit no longer applies unless you set it again" if self.ended else ""
            limits = "; -M allows more builds" if self.ended and setting.random_builds else limits
            yield words.where_saved(Path(race.store.path).name, limits if undecided else None)

    def _about_outliers(self) -> str:
        """Describe runs of one command alone that are far from its median."""
        arm, result = self.result.arms[0], self.result
        tape = [math.nan if x is None else x for x in result.readings[arm.name]]
        found = alarms.far_readings(tape) if result.problem.target == "quantile" else ()
        if not found:
            return ""
        worst = max((tape[place] for place in found), key=lambda x: abs(x - arm.observed))
        is_first = found[0] == 0 and not self.race.setting.warmup
        return words.far_runs(len(found), len(tape), self._voice().measure(worst), is_first=is_first)

    def _about_shell(self) -> str:
        commands, cost = self.race.setting.commands, self.shell_cost
        if commands[0].shell is None:
            return ""
        quick = any(0 <= arm.observed < _QUICK_S for arm in self.result.arms)
        needless = cost is not None and quick and not any(_needs_shell(command.text) for command in commands)
        return words.shell_note(commands[0].shell, cost, needless=needless)


def _needs_shell(line: str) -> bool:
    try:
        return needs_shell(line)
    except InvalidArgument:  # it cannot be split into words
        return True


def describe_losses(race: Race, late: str = "worse than any run that ended") -> Iterator[str]:
    """Say how many runs of each command timed out (`late` is what that counts as), failed or left processes."""
    by_arm: dict[str, list[Reading]] = {arm: [] for arm in race.setting.arms}
    for run in race.runs:
        by_arm[run.arm].append(run)
    for arm, runs in by_arm.items():
        killed, behind = (
            sum(bool((run.notes or {}).get(key)) for run in runs) for key in ("timed_out", "left_behind")
        )
        yield from words.lost_runs(arm, killed, behind, sum(math.isnan(run.value) for run in runs), late)


def describe_race(race: Race) -> dict[str, Any]:
    """Return the seed, the commands, and random builds with their seeds in order of round, for JSON."""
    setting, runs = race.setting, race.runs
    plain: dict[str, Any] = {"seed": race.study.seed}
    if setting.commands:
        plain["commands"] = [
            {"name": c.name, "command": c.text, "shell": c.shell, "parameters": dict(c.parameters)}
            for c in setting.commands
        ]
    if (builds := setting.random_builds) is not None:
        seeds = {arm: [(run.notes or {}).get("seed") for run in runs if run.arm == arm] for arm in setting.arms}
        counts = {"command": builds.command, "rounds": builds.rounds, "runs_per_build": builds.runs}
        plain["builds"] = {**counts, "seeds": seeds}
    return plain


def suite_answer(race: Race, asked: Asked = REPORT, *, late: bool = False) -> Answer:
    """Return all forms of a race of many metrics that has ended, and its exit code."""
    assert race.suite is not None
    suite, runs = race.suite, runs_of(race.study.log)
    result = race.setting.mark(judge_suite(suite, runs))
    lines, rows = words.suite_summary(result, "command"), tables.suite_rows(result)
    notes = [] if asked.quiet else list(_suite_notes(race, result, asked, late=late))
    verdict = {"verdict": words.suite_verdict(result)} if suite.gate else {}

    def text(screen: Screen) -> str:
        table = screen.table(rows) if result.compared else ""
        return screen.arrange(map(screen.wrap, lines.split("\n")), [table, screen.wrap(" ".join(notes), dim=True)])

    forms = {
        "json": lambda: json_text(
            {**suite_document(result, runs), **describe_race(race), "machine": machine(), **verdict}
        ),
        "csv": lambda: suite_csv(result),
        "markdown": lambda: tables.markdown(rows, lines),
        "html": lambda: _page(result, runs),
    }
    code = FAILED if result.failed else GOOD if result.status == "decided" else UNDECIDED
    if result.status == "doubtful" or (asked.strict and result.is_incomplete):
        code = DOUBTFUL
    return Answer(text, code, forms, words.suite_headline(result))


def _page(result: SuiteResult, runs: Runs) -> str:
    from truearm.report.pages import suite_page  # a race that writes no page starts without it

    return suite_page(result, runs)


def _suite_notes(race: Race, result: SuiteResult, asked: Asked, *, late: bool) -> Iterator[str]:
    undecided = result.status == "undecided"
    if undecided and late and asked.max_time is None and asked.limit is not None:
        yield f"--max-time allows more than {number(asked.limit / 60)} minutes."
    elif undecided and not late and result.rounds + result.uncounted < (asked.most or math.inf):
        yield "Interrupted."
    yield from describe_losses(race, "all metrics of it are missing")
    if asked.verbose and race.study.seed is not None:
        yield f"Order of runs inside each round shuffled with seed {race.study.seed}."
    if race.store is not None:
        yield words.where_saved(race.store.path.name, "" if undecided else None)
