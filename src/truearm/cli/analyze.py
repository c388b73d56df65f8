"""`truearm analyze`: which arm is best in data already there."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

import click

from truearm.analysis import analyze
from truearm.claims.certificate import Status
from truearm.claims.result import Analysis
from truearm.cli.answer import answer_with, show
from truearm.cli.errors import as_options
from truearm.cli.options import FORM, QUESTION, declare, explicit_options
from truearm.commands.terminal import is_terminal
from truearm.data.columns import looks_like_time
from truearm.report.numbers import count, name_of
from truearm.report.words import default_terms

_SILENT_S = 5.0  # every so often a terminal shows that the analysis goes on
_OPTIONS = f"""
+ arm value unit order round {" ".join(FORM)} {QUESTION} score-range
--of N  With --score-range: the items are the first in a random order of a list of N.
--design sequential|fixed  'sequential' holds however often the data were looked at; 'fixed' has more power, and
    holds if the number of readings of every arm was chosen in advance. [default: sequential]
+ between
--dependent-arms  Allow readings of different arms to depend on each other.
--pairs  Compare every arm with every other.
+ control fdr tiers
--query SQL  The rows to analyze, as a query of a database, or of FILE, which it calls data.
+ json export-html verbose
"""


@click.command("analyze")
@click.argument("files", metavar="FILE...", type=click.Path(allow_dash=True), nargs=-1, required=True)
@declare(_OPTIONS)
@click.pass_context
def analyze_command(ctx: click.Context, /, *, verbose: bool, **_: Any) -> None:  # noqa: ANN401 - the options
    """Find the best arm in a file of readings, even if some of them are wrong.

    \b
    truearm analyze data.csv --arm variant --value revenue
    truearm analyze data.csv --arm variant --value ms --goal min --quantile 0.95
    truearm analyze data.parquet --arm variant --value latency_ms --at-most 200
    truearm analyze log.csv --arm variant --value ms --unit user --order time
    truearm analyze data.csv --arm variant --value revenue --control A
    truearm analyze data.csv --tiers                   every column is an arm
    truearm analyze s.csv --arm model --value score --round item --score-range 0 1
    truearm analyze hyperfine.json                     hyperfine, pyperf, ...
    truearm analyze old.json new.json                  before and after
    truearm analyze prices.csv --arm store --value price --decimal ,
    zcat log.csv.gz | truearm analyze - --arm site --value ms
    truearm analyze 'logs/*.parquet' --arm site --value ms         of any size
    truearm analyze postgres://db --query 'select * from v' --arm site --value ms

    Reads CSV, TSV, Parquet, JSON lines, JSON, Arrow and Excel (the first sheet).

    Exit codes: 0 decided (certified, tolerable or separated; with --control, it is known which arms beat it); 2
    usage, or a file cannot be read; 3 not decided; 4 doubtful.
    """  # noqa: D301 - click wants the control character
    # defaults depend on what is compared, and an export of a race brings its own
    options = explicit_options(ctx, besides=("json", "export_html", "verbose"))
    files = list(options.pop("files"))
    with _report_delay(files):
        result = analyze(files, **options)
    terms = default_terms(result)._replace(options=True)
    advice = list(_advice(result, None if "goal" in options else options.get("value")))
    answer = answer_with(result, terms, verbose=verbose, notes=advice)
    ctx.exit(show(ctx, answer._replace(text=lambda screen: as_options(answer.text(screen), ctx.command))))


@contextmanager
def _report_delay(files: Sequence[str]) -> Iterator[None]:
    """Show on a terminal how long the body takes, for example with --unit on many millions of rows."""
    done, start = Event(), time.monotonic()
    names = ", ".join(map(name_of, files))

    def show() -> None:
        shown = ""
        while not done.wait(_SILENT_S):
            shown = f"\rStill analyzing {names:.35} ({time.monotonic() - start:.0f} s); Ctrl-C to stop."
            click.echo(shown, nl=False, err=True)
        click.echo("\r" + " " * len(shown) + "\r" if shown else "", nl=False, err=True)

    clock = Thread(target=show, daemon=True)  # it must not keep the process alive
    if is_terminal(sys.stderr):
        clock.start()
    try:
        yield
    finally:
        done.set()
        if clock.ident is not None:
            clock.join()


def _advice(result: Analysis, value: str | None) -> Iterator[str]:
    """Yield notes on the file, and what would help; `value` is the column, unless --goal was given."""
    sizes, problem = set(result.pulls.values()), result.problem
    yield from result.about_data
    if value is not None and problem.target != "share" and looks_like_time(value):
        yield f"Larger was taken to be better; if {name_of(value)} is a time, use --goal min."
    is_open = result.design == "sequential" and result.status is Status.EXHAUSTED
    if is_open and len(sizes) == 1 < min(sizes) and not problem.dependent_arms and problem.score_range is None:
        yield (
            f"Every arm has {count(sizes.pop())} readings: if that number was chosen before the first of them, "
            "--design fixed has more power."
        )
