"""The answer of a race that has ended, of one metric or of many, or of the study in a log, in every form."""

import math
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from truearm.claims import alarms
from truearm.claims.certificate import Status
from truearm.claims.certify import ratios
from truearm.claims.gates import LedgerGate, judge_gate
from truearm.claims.suite import judge_suite
from truearm.cli.answer import DOUBTFUL, FAILED, GOOD, UNDECIDED, Answer, Screen, answer_with, exit_code, pages
from truearm.cli.live import near_words
from truearm.cli.race_log import Race
from truearm.cli.race_options import DEFAULT_LIMIT_S, RaceOptions
from truearm.commands.measure import machine, runs_of, shell_cost
from truearm.report import summaries, tables, words
from truearm.report.export import document, hyperfine_results, json_text, suite_csv, suite_document
from truearm.report.numbers import count, name_of, number, plural, unit_for

_MAX_FORECAST = 100_000  # runs
_QUICK_S = 0.005  # below it hyperfine too advises against a shell
_VERDICT_CODES = {"accepted": GOOD, "not better": FAILED, "undecided": UNDECIDED, "doubtful": DOUBTFUL}
_REPORT = RaceOptions(time_unit=None, quiet=True, verbose=False, strict=False, fail_unless_best=None)


@dataclass(slots=True)
class Ending:
    """How a race ended."""

    elapsed: float | None = None  # seconds that it took; None if a part of it was run earlier
    late: bool = False  # whether the time limit ended it
    stopped: str | None = None  # the command whose run was stopped because the time was up
    budget: int | None = None  # rounds in which a gate was unlikely to be decided, so that it ended early
    decision: LedgerGate | None = None  # the gate of a ledger that this race decided


def race_answer(race: Race, options: RaceOptions = _REPORT, ending: Ending | None = None) -> Answer:
    """Return all forms of a race that has ended; without `ending`, of a log, maybe from another machine."""
    end = ending or Ending()
    if race.suite is not None:
        return _suite_answer(race, options, end)
    result, setting = race.result, race.setting
    gate = judge_gate(result, setting.guard, budget=end.budget)
    reference = getattr(race.study.policy, "control", None) or setting.guard
    metric = setting.metric if setting.commands else None
    times = hyperfine_results(setting.commands, race.runs)
    cost = shell_cost(setting.commands[0], setting.metric) if ending and setting.commands else None
    exhausted, terms = result.status is Status.EXHAUSTED, words.PLAIN._replace(options=True)
    if metric is not None:
        unit = unit_for(metric, result.arms, options.time_unit, target=result.problem.target)
        time_limit = options.limit if exhausted and end.late else None
        terms = words.terms_for(result, metric, unit)
        terms = terms._replace(options=True, elapsed=end.elapsed, time_limit=time_limit)
    undecided = exhausted if gate is None else gate.verdict == "UNSURE"
    notes: list[str] = []
    if not options.quiet:
        is_full = max(result.pulls.values()) >= (options.most or math.inf) or result.total >= race.study.max_pulls
        is_stopped = undecided and exhausted and not (end.late or end.budget is not None or is_full)
        near = undecided and gate is None and not result.ties and result.problem.rounds
        own = _notes_on_result(race, end, terms, cost, near=near)
        notes = _notes(race, options, end, undecided=undecided, interrupted=is_stopped, own=own)

    def make_document() -> dict[str, Any]:  # describing the machine starts a process
        more = {
            **({} if gate is None else {"verdict": gate.verdict}),
            **_describe(race),
            **({"results": times} if metric else {}),
            **({} if end.decision is None else {"gate": end.decision.to_dict()}),
            **({"shell_cost": cost, "machine": machine()} if ending else {}),
        }
        return document(result, result.readings or {}, reference=reference, metric=metric, **more)

    answer = answer_with(
        result,
        terms,
        ratios=ratios(result, reference),
        gate=gate,
        first=[] if end.decision is None else [summaries.ledger_gate(end.decision)],
        verbose=options.verbose,
        times=times,
        notes=notes,
        document=make_document,
    )
    if end.decision is not None:
        return answer._replace(code=_VERDICT_CODES[end.decision.verdict])
    code = exit_code(result, unless_best=options.fail_unless_best, gate=gate, strict=options.strict)
    return answer._replace(code=code)


def _notes(
    race: Race, options: RaceOptions, end: Ending, *, undecided: bool, interrupted: bool, own: Iterable[str] = ()
) -> list[str]:
    """Return notes on a race besides its answer, as a paragraph: `own` is about its result."""
    sentences = ["Interrupted."] if interrupted else []
    if undecided and end.late and options.max_time is None:
        sentences.append(f"--max-time allows more than {number(DEFAULT_LIMIT_S / 60)} minutes.")
    sentences += own
    timed_out = "worse than any run that ended" if race.suite is None else "all metrics of it are missing"
    all_runs = race.runs
    for arm in race.setting.arms:
        runs = [run for run in all_runs if run.arm == arm]
        noted = Counter(key for run in runs for key, value in (run.notes or {}).items() if value is True)
        failed = sum(math.isnan(run.value) for run in runs)
        fates = {
            f"timed out: {timed_out}.": noted["timed_out"],
            "left processes running, which truearm does not end and which take time from later runs: let the "
            "command wait for them, or end them with --conclude.": noted["left_behind"],
            f"failed or {'was lost: a missing reading' if failed == 1 else 'were lost: missing readings'}, at the "
            "worst.": failed,
        }
        sentences += [f"{plural(n, 'run')} of {name_of(arm)} {fate}" for fate, n in fates.items() if n]
    if race.store is not None:
        file, more = shlex.quote(options.save or options.resume), "."
        if undecided:
            limits = "; -M allows more builds" if race.setting.random_builds else " (set a limit again to keep it)"
            more = f"; continue with: truearm race --resume {file}{limits * (not interrupted)}"
        sentences.append(f"All readings are in {name_of(file)}{more}")
    return [" ".join(filter(None, sentences))]


def _notes_on_result(
    race: Race, end: Ending, terms: words.Terms, cost: float | None, *, near: bool
) -> Iterator[str]:
    setting, result, standing = race.setting, race.result, race.study.standing
    if end.stopped is not None:
        has_hooks = not {"prepare", "conclude"}.isdisjoint(setting.hooks)
        what = f"a run of {name_of(end.stopped)}{', or its hook,' * has_hooks} was stopped, without a reading"
        yield f"Time was up: {what}{'; --timeout would count it as slow' * (not has_hooks)}."
    if near:
        yield near_words(standing, max(result.pulls.values()))
        is_open = min(result.pulls.values()) and not standing.close
        left = standing.pulls_left(result.pulls, 1) * setting.runs_per_reading if is_open else math.inf
        if 0 < left <= _MAX_FORECAST:
            yield f"About {plural(int(float(f'{max(1.0, left):.1g}')), 'more run')} would decide (an estimate)."
        elif _MAX_FORECAST < left < math.inf:
            yield "More runs would not decide this in practice."
    if (shell := setting.commands[0].shell) is not None:
        ms = "" if cost is None else number(float(f"{1000 * cost:.2g}"))
        took = f", which takes about {ms} ms of each reading" * bool(ms)
        yield f"Commands ran through {name_of(shell)}{took}."
        if ms and any(0 <= arm.observed < _QUICK_S for arm in result.arms):
            yield "A command took less than 5 ms: if none needs a shell, -N (--shell none) measures without one."
    if len(result.arms) == 1 and result.problem.target == "quantile":
        (arm,), tapes = result.arms, result.readings or {}
        tape = [math.nan if x is None else x for x in tapes[arm.name]]
        if far := alarms.far_readings(tape):
            worst = max((tape[place] for place in far), key=lambda x: abs(x - arm.observed))
            yield (
                f"{plural(len(far), 'run')} of {count(len(tape))} lie{'s' * (len(far) == 1)} more than ten robust "
                f"standard deviations from the median, the farthest {terms.measure(worst)}: something else was "
                "running, or it does this at times."
            )
            if far[0] == 0 and not setting.warmup:
                yield "The first run is one of them: -w 1 leaves it out."


def _describe(race: Race) -> dict[str, Any]:
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


def _suite_answer(race: Race, options: RaceOptions, end: Ending) -> Answer:
    """Return all forms of a race of many metrics that has ended, and its exit code."""
    assert race.suite is not None
    result = race.setting.mark(judge_suite(race.suite, runs_of(race.study.log)))
    lines, rows = summaries.suite_summary(result, "command", end.elapsed), tables.suite_rows(result)
    notes: list[str] = []
    if not options.quiet:
        undecided = result.status == "undecided"
        stopped = undecided and not end.late and result.rounds + result.uncounted < (options.most or math.inf)
        notes = _notes(race, options, end, undecided=undecided, interrupted=stopped)
    verdict = {"verdict": summaries.suite_verdict(result)} if race.suite.gate else {}

    forms = {
        "json": lambda: json_text({**suite_document(result), **_describe(race), "machine": machine(), **verdict}),
        "csv": lambda: suite_csv(result),
        "markdown": lambda: tables.markdown(rows, lines),
        "html": lambda: pages().suite_page(result),
    }
    code = FAILED if result.failed else GOOD if result.status == "decided" else UNDECIDED
    if result.status == "doubtful" or (options.strict and result.is_incomplete):
        code = DOUBTFUL
    shown = rows if result.compared else []
    text = partial(Screen.lay_out, lines=lines.split("\n"), rows=shown, notes=notes)
    return Answer(text, code, forms, summaries.suite_headline(result))
