"""`truearm simulate`: run a scenario, show what came out, and keep it."""

import csv
import io
import json
import math
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from truearm.cli import edge, options
from truearm.errors import InvalidArgument
from truearm.lab import scenarios
from truearm.report.export import cell
from truearm.report.wording import name_of

Row = dict[str, Any]

_SUFFIXES, _PICTURES = (".csv", ".json", ".parquet"), (".png", ".svg", ".pdf")


@click.command("simulate")
@click.argument("scenario", required=False)
@click.option("--list", "listing", is_flag=True, help="List the scenarios that come with the package.")
@click.option("--replications", type=options.Whole(1), help="Runs per cell, in place of the scenario's.")
@click.option(
    "--seed", type=options.Whole(0), help="In place of the scenario's; the same seed gives the same table."
)
@click.option("--workers", type=options.Whole(1), default=1, show_default=True, help="Processes to run in.")
@click.option(
    "--output", type=options.NewFile(path_type=Path), help="Summary of every cell: .csv, .json or .parquet."
)
@click.option("--runs", type=options.NewFile(path_type=Path), help="Every single run: .csv, .json or .parquet.")
@click.option("--plot", type=options.NewFile(path_type=Path), help="Draw the scenario's picture into this file.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def simulate_command(
    *,
    scenario: str | None,
    listing: bool,
    replications: int | None,
    seed: int | None,
    workers: int,
    output: Path | None,
    runs: Path | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Run policies against instances and attacks whose truth is known.

    SCENARIO is a TOML file, or the name of a scenario that comes with the package.

    \b
    truearm simulate --list
    truearm simulate harm --plot harm.png
    truearm simulate my.toml --replications 20 --workers 2 --output cells.csv
    """  # noqa: D301 - click wants the control character
    if listing or scenario is None:
        for name, title in scenarios.shipped().items():
            click.echo(f"{name:18} {title}")
        return
    for path in (output, runs):
        _check_suffix(path)
    _check_suffix(plot, _PICTURES)
    read = scenarios.read(scenario, replications=replications, seed=seed)
    if plot is not None and read.plot == "none":
        msg = f"scenario {scenario!r} has no picture; give it plot = 'eps' or plot = 'gap'"
        raise InvalidArgument(msg)
    rows, singles = _run(read, workers, quiet=as_json)
    click.echo(json.dumps(_plain(rows), indent=1)) if as_json else _show(read, rows)
    exports = edge.Exports()
    for path, some in ((output, rows), (runs, singles)):
        if path is not None:
            with exports.writing(path):
                write_rows(some, path)
    if plot is not None:
        from truearm.lab import plots

        with exports.writing(plot):
            plots.draw(rows, read.plot, plot)
    sys.exit(exports.code())


def _run(read: scenarios.Scenario, workers: int, *, quiet: bool) -> tuple[list[Row], list[Row]]:
    rows: list[Row] = []
    singles: list[Row] = []
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f} of {task.total:.0f} runs"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=quiet,
        transient=True,
    )
    with ExitStack() as stack:
        executor = stack.enter_context(ProcessPoolExecutor(workers)) if workers > 1 else None
        stack.enter_context(bar)
        total = sum(cell.options.get("replications", 100) for cell in read.cells)
        task = bar.add_task(read.title, total=total)
        for number, cell in enumerate(read.cells):
            if not cell.wanted:
                bar.update(task, total=(bar.tasks[task].total or 0) - cell.options.get("replications", 100))
                continue
            done = cell.run(executor=executor, progress=partial(_advance, bar, task, bar.tasks[task].completed))
            rows.append(scenarios.row(cell, done))
            columns = {name: column.tolist() for name, column in done.runs.items()}
            for values in zip(*columns.values(), strict=True):
                singles.append({"cell": number, **cell.labels, **dict(zip(columns, values, strict=True))})  # noqa: PERF401
    return rows, singles


def _advance(bar: Progress, task: TaskID, base: float, done: int, _: int) -> None:
    bar.update(task, completed=base + done)


def _show(read: scenarios.Scenario, rows: Sequence[Row]) -> None:
    click.echo(read.about)
    changing = [key for key in read.cells[0].labels if len({row[key] for row in rows}) > 1] or [
        "policy",
        "instance",
    ]
    measured = dict(_COLUMNS)
    if all(row["answered"] == row["replications"] for row in rows):
        del measured["right"]
    if all(math.isnan(row["published"]) for row in rows):
        del measured["published"]
    table = Table(title=read.title)
    for key in changing:
        table.add_column(key)
    for name in measured:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(
            *(Text(name_of(str(row[key]))) for key in changing), *(show(row) for show in measured.values())
        )
    Console(width=None if Console().is_terminal else 140).print(table)


_COLUMNS: dict[str, Callable[[Row], str]] = {
    "errors": lambda row: (
        f"{row['errors']}/{row['replications']} ({row['error_low']:.3f}-{row['error_high']:.3f})"
    ),
    "right": lambda row: f"{row['answered'] - row['errors']}/{row['replications']}",
    "pulls": lambda row: _number(row["pulls"]),
    "± SE": lambda row: _number(row["standard_error"]),
    "limit": lambda row: _number(row["limit"]),
    "ratio": lambda row: "-" if math.isnan(row["ratio"]) else f"{row['ratio']:.2f}",
    "ms/run": lambda row: f"{1000 * row['seconds']:.1f}",
    "published": lambda row: _number(row["published"]),
}


def _number(value: float) -> str:
    return "-" if math.isnan(value) else "inf" if math.isinf(value) else f"{value:.0f}"


def _check_suffix(path: Path | None, known: Sequence[str] = _SUFFIXES) -> None:
    if path is not None and path.suffix not in known:
        msg = f"{path} must end in {', '.join(known)}"
        raise InvalidArgument(msg)


def write_rows(rows: Sequence[Row], path: Path) -> None:
    """Write rows to a CSV, JSON or Parquet file, by its suffix."""
    _check_suffix(path)
    if path.suffix == ".json":
        edge.write(path, json.dumps(_plain(rows)))
    elif path.suffix == ".csv":
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(map(cell, rows[0]))
        writer.writerows([cell(value) for value in row.values()] for row in rows)
        edge.write(path, text.getvalue())
    else:
        _write_parquet(rows, path)


def _plain(rows: Sequence[Row]) -> list[Row]:
    """Return rows for strict JSON, in which numbers that are not finite are null."""
    return [
        {
            key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in row.items()
        }
        for row in rows
    ]


def _write_parquet(rows: Sequence[Row], path: Path) -> None:
    try:
        import duckdb
    except ImportError:
        msg = "Parquet needs duckdb; install it with: pip install 'truearm[data]', or write .csv or .json"
        raise InvalidArgument(msg) from None
    import numpy as np

    columns = {key: np.array([row[key] for row in rows]) for key in rows[0]}
    columns = {
        key: column.astype(object) if column.dtype.kind == "U" else column for key, column in columns.items()
    }
    with duckdb.connect() as connection:
        connection.register("runs", columns)
        target = str(path).replace("'", "''")
        connection.sql(f"COPY (SELECT * FROM runs) TO '{target}' (FORMAT parquet)")
