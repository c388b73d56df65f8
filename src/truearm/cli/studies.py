"""Saved studies by hand and by script: `next` hands out pulls, `tell` takes readings, the others look."""

import math
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import click

from truearm.claims.certificate import Status
from truearm.claims.ratios import ratios
from truearm.claims.result import Result
from truearm.claims.suites import Suite
from truearm.cli import options, suites
from truearm.cli.edge import check_file, write
from truearm.cli.gates import exit_code, suite_code
from truearm.cli.saved import Saved, begun, opened
from truearm.cli.screen import Screen
from truearm.cli.telling import html_page
from truearm.errors import ProtocolError
from truearm.events import Reading
from truearm.report import text
from truearm.report.export import csv_text, document, hyperfine_results, json_text
from truearm.report.suite_wording import headline
from truearm.report.summary import summary
from truearm.report.wording import amount, count, counted, name_of
from truearm.store import lock
from truearm.study import Study
from truearm.world.commands import Command

_PATIENCE = 20  # twentieths of a second that one waits for others without a word
_FILE = click.argument("file", type=click.Path(dir_okay=False))


@click.command("next")
@_FILE
@click.option(
    "-n",
    "--number",
    "pulls",
    type=options.Whole(1, 100_000),
    default=1,
    show_default=True,
    help="How many pulls.",
)
@click.option("--arm", "arms", multiple=True, metavar="NAME", help="Begin a study of these arms in a new FILE.")
@options.question_options
@options.between_option
@click.option(
    "--rounds", is_flag=True, help="Compare arms side by side: which one wins more than half of the rounds?"
)
@click.option("--seed", type=options.Whole(0), help="Shuffle the pulls inside a batch.")
@options.json_option
@click.pass_context
def next_command(ctx: click.Context, /, file: str, pulls: int, arms: tuple[str, ...], **chosen: Any) -> None:  # noqa: ANN401
    """Hand out the next pulls of a saved study: a ticket and an arm per line.

    \b
    truearm next run.db --arm A --arm B --goal min     begin a study
    truearm next run.db -n 4                           four pulls at once, for four people
    truearm next run.db | while read -r ticket arm; do truearm tell run.db $ticket $(./try "$arm"); done

    Every ticket is handed out once and waits for `truearm tell`. Nothing is printed when the study is done.
    """  # noqa: D301 - click wants the control character
    as_json = chosen.pop("as_json")
    with _in_turn(file):
        if arms:
            _begin(file, arms, chosen)
        else:
            _check_fixed(ctx)
        with opened(file) as saved:
            asked = saved.study.ask(pulls)
    if as_json:
        click.echo(json_text({"done": saved.study.done, "pulls": [pull._asdict() for pull in asked]}))
        return
    for pull in asked:
        click.echo(f"{pull.ticket}\t{name_of(pull.arm)}")
    if not asked:
        click.echo(f"The study is done; see `truearm report {file}`.", err=True)


@contextmanager
def _in_turn(file: str) -> Iterator[None]:
    """Have a log for oneself; if that takes longer than a moment, say so."""
    check_file(file)
    with ExitStack() as stack:
        for _ in range(_PATIENCE):
            try:
                stack.enter_context(lock(file, wait=False))
                break
            except ProtocolError as error:
                busy = str(error)
                time.sleep(0.05)
        else:
            click.echo(f"Waiting: {busy} (Ctrl-C ends the waiting).", err=True)
            stack.enter_context(lock(file, wait=True))
        yield


def _begin(file: str, arms: tuple[str, ...], chosen: dict[str, Any]) -> None:
    if len(arms) == 1:
        msg = f"a study compares arms, but got {arms[0]!r} alone; give another --arm"
        raise click.UsageError(msg)
    seed = chosen.pop("seed")
    begun(file, Study(arms, seed=seed, **chosen)).close()


def _check_fixed(ctx: click.Context) -> None:
    for name in (
        "goal",
        "quantile",
        "at_least",
        "at_most",
        "rounds",
        "delta",
        "contamination",
        "tolerance",
        "between",
        "seed",
    ):
        if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            msg = f"--{name.replace('_', '-')} was fixed when the study began; leave it out"
            raise click.UsageError(msg)


@click.command("tell", context_settings={"ignore_unknown_options": True})
@_FILE
@click.argument("words", nargs=-1, metavar="[TICKET VALUE]...")
@click.option(
    "--release",
    multiple=True,
    type=options.Whole(0),
    metavar="TICKET",
    help="A pull that never began goes out again.",
)
def tell_command(file: str, words: tuple[str, ...], release: tuple[int, ...]) -> None:
    """Record readings of a saved study; without words, lines of ticket and value from standard input.

    \b
    truearm tell run.db 0 12.5 1 nan       nan is a missing reading and counts at its worst
    truearm tell run.db 2 inf              a time-out if smaller is better; -inf if larger is
    truearm tell run.db < readings.txt
    truearm tell run.db --release 7        nobody ever began it

    Every reading is on the disk before it is believed. Telling the same again changes nothing.
    """  # noqa: D301 - click wants the control character
    readings = list(_parsed(words or (() if release else sys.stdin.read().split())))
    with _in_turn(file), opened(file) as saved:
        for ticket, value in readings:
            saved.study.tell(ticket, value)
        for ticket in release:
            saved.study.release(ticket)
        click.echo(_line(saved), err=True)


def _parsed(words: Sequence[str]) -> Iterator[tuple[int, float]]:
    if len(words) % 2:
        msg = f"tell takes pairs of ticket and value, but got {counted(len(words), 'word')}; give both of each"
        raise click.UsageError(msg)
    for ticket, value in zip(words[::2], words[1::2], strict=True):
        try:
            number = int(ticket), float(value)
        except ValueError:
            msg = f"a ticket is a whole number and a value a number, nan or inf, but got {ticket!r} {value!r:.60}"
            raise click.UsageError(msg) from None
        if math.isinf(number[1]) and not value.lower().lstrip("+-").startswith("inf"):
            msg = f"the value {value!r:.60} is beyond all numbers that can be kept; write inf or -inf if meant"
            raise click.UsageError(msg)
        yield number


@click.command("status")
@_FILE
@options.json_option
def status_command(file: str, as_json: bool) -> None:
    """Show where a saved study stands: which arm leads, the evidence against the others, which tickets are out.

    \b
    truearm status run.db
    """  # noqa: D301 - click wants the control character
    with opened(file) as saved:
        standing, out, head = saved.study.standing, saved.study.out, saved.store.head
    if saved.suite is not None:
        _status_of_suite(saved, saved.suite, head, as_json=as_json)
        return
    counts = {arm: len(tape) for arm, tape in saved.study.readings.items()}
    if as_json:
        evidence = {arm: standing.against.get(arm) for arm in counts if arm != standing.leader}
        click.echo(
            json_text(
                {
                    "done": saved.study.done,
                    "leader": standing.leader,
                    "candidates": list(standing.alive),
                    "pulls": {"total": saved.study.pulls, "arms": counts},
                    "log_evidence": evidence,
                    "log_threshold": standing.log_threshold,
                    "out": [pull._asdict() for pull in out],
                    "head": head,
                }
            )
        )
        return
    click.echo(_line(saved))
    for arm, n in counts.items():
        place = "leads" if arm == standing.leader else "candidate" if arm in standing.alive else "excluded"
        share = standing.share(arm)
        against = "" if place == "leads" else f", {round(100 * share)}% of the evidence that would exclude it"
        click.echo(f"{name_of(arm)}: {place}, {counted(n, 'pull')}{against}")
    for pull in out:
        click.echo(f"out: ticket {pull.ticket}, {name_of(pull.arm)}")
    click.echo(f"head of the log: {head}")


def _status_of_suite(saved: Saved, suite: Suite, head: str, *, as_json: bool) -> None:
    follower = suites.Follower(suite, saved.study)
    found, _ = follower.result()
    if as_json:
        click.echo(
            json_text({"status": found.status, "failed": found.failed, "rounds": found.rounds, "head": head})
        )
        return
    click.echo(f"{headline(found)}. {follower.words}.")
    click.echo(f"head of the log: {head}")


def _line(saved: Saved) -> str:
    study, given = saved.study, saved.study.problem.handicap
    judged = (
        "" if given is None else f" ({name_of(given.arm)} counts as {amount(given.tolerance)} worse than it is)"
    )
    if study.done and study.result is not None:
        best, status = study.result.best, study.result.status
        word = "is good enough" if status is Status.TOLERABLE else "is best"
        found = f"{status.value}, " + ("no winner" if best is None else f"{name_of(best)} {word}")
        return f"Done after {counted(study.pulls, 'pull')}: {found}{judged}."
    leader = study.standing.leader
    who = "nobody leads yet" if leader is None else f"{name_of(leader)} leads"
    left = counted(len(study.standing.alive), "candidate")
    return f"{counted(study.pulls, 'pull')}, {count(study.in_flight)} out: {who}, {left}{judged}."


@click.command("report")
@_FILE
@options.json_option
@click.option("--markdown", "as_markdown", is_flag=True, help="Print a table in Markdown.")
@click.option("--csv", "as_csv", is_flag=True, help="Print one row per arm as CSV.")
@click.option("--html", type=options.NewFile(dir_okay=False), metavar="FILE", help="Write a self-contained page.")
@click.pass_context
def report_command(
    ctx: click.Context, /, file: str, *, as_json: bool, as_markdown: bool, as_csv: bool, html: str | None
) -> None:
    """Print what is known from a saved study or race, finished or not.

    \b
    truearm report run.db
    truearm report run.db --html report.html
    truearm report run.db --json

    Pulls that are out count at their worst. Nothing is written to the study.
    """  # noqa: D301 - click wants the control character
    if as_json + as_markdown + as_csv + (html is not None) > 1:
        msg = "choose one of --json, --markdown, --csv and --html"
        raise click.UsageError(msg)
    with opened(file) as saved:
        study = saved.study
        if saved.suite is not None and saved.setting is not None:
            found, makers = suites.Follower(saved.suite, study).makers(saved.setting)
            kind = "json" if as_json else "markdown" if as_markdown else "csv" if as_csv else "text"
            if html is not None:
                write(html, makers["html"]())
                return
            click.echo(makers[kind]().rstrip("\n"))
            ctx.exit(suite_code(found))
        study.stop()  # this object only: the log does not know of it
        assert study.result is not None
        if html is not None:
            metric = saved.setting.metric if saved.setting else None
            unit = text.unit_for(metric or "stdout", study.result.arms, target=study.problem.target)
            write(html, html_page(study.result, study.readings, unit, metric))
            return
        click.echo(_reported(saved, study.result, as_json=as_json, as_markdown=as_markdown, as_csv=as_csv))
        sys.exit(exit_code(study.result))


def _reported(saved: Saved, result: Result, *, as_json: bool, as_markdown: bool, as_csv: bool) -> str:
    tapes = saved.study.readings
    metric = saved.setting.metric if saved.setting else "stdout"
    runs = [event for event in saved.study.events() if isinstance(event, Reading)]
    commands: Sequence[Command] = saved.setting.commands if saved.setting else ()
    if as_json:
        found = document(result, tapes, metric=metric if commands else None, seed=saved.study.seed)
        return json_text({**found, "results": hyperfine_results(commands, runs)} if commands else found)
    if as_csv:
        return csv_text(result, hyperfine_results(commands, runs)).rstrip("\n")
    unit = text.unit_for(metric, result.arms, target=result.problem.target)
    shown = text.in_unit(result, unit)
    timed = saved.setting is not None and saved.setting.conditions.timeout is not None
    censored = result.problem.censored if timed else None
    heading, *lines = text.rows(shown, unit, ratios(result), censored=censored)
    if saved.setting is None:  # nobody said what was measured, or how
        heading = heading._replace(arm="arm", runs="pulls")
    rows, words = [heading, *lines], text.paragraph(shown, unit, metric) if saved.setting else summary(shown)
    if as_markdown:
        return text.markdown(rows, words)
    screen = Screen.here()
    return f"{screen.filled(words)}\n\n{text.table(rows, screen.width if screen.terminal else None)}"
