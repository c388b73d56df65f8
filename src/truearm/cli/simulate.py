"""`truearm simulate`: run policies on instances whose truth is known, and show how often they err."""

import json
import math
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from itertools import product
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from truearm import lab
from truearm.cli import options
from truearm.problem import Adversary, Contamination

_COLUMNS = ("instance", "policy", "errors", "answered", "runs", "pulls", "limit", "ratio", "ms_per_run")


@click.command("simulate")
@click.argument("instances", nargs=-1, metavar="INSTANCE...")
@click.option("--list", "listing", is_flag=True, help="List the instances.")
@click.option(
    "--policy", "policies", multiple=True, default=("toptwo",), show_default=True, help="Repeat it to compare."
)
@click.option(
    "--attack",
    type=click.Choice(["none", "worst", "benign"]),
    default="none",
    show_default=True,
    help="What the bad readings are, at the declared share.",
)
@options.shared("contamination", "delta")
@click.option(
    "--replications",
    type=options.Whole(1),
    default=100,
    show_default=True,
    help="Runs of each policy and instance.",
)
@click.option(
    "--seed", type=options.Whole(0), default=0, show_default=True, help="The same seed gives the same table."
)
@click.option("--workers", type=options.Whole(1), default=1, show_default=True, help="Processes to run in.")
@click.option("--json", "as_json", is_flag=True, help="Print the table as JSON.")
def simulate_command(
    *,
    instances: tuple[str, ...],
    listing: bool,
    policies: tuple[str, ...],
    attack: str,
    contamination: Contamination | None,
    delta: float,
    replications: int,
    seed: int,
    workers: int,
    as_json: bool,
) -> None:
    """Run policies on INSTANCE and count errors and pulls; `limit` is the least number of pulls of any method.

    \b
    truearm simulate --list
    truearm simulate G5 C2 --attack worst
    truearm simulate D2 --policy toptwo --policy lucb --contamination 2% --replications 20
    """  # noqa: D301 - click wants the control character
    if listing or not instances:
        for name in lab.INSTANCES:
            arms = lab.instance(name).arms
            click.echo(f"{name:8} {len(arms)} arms, the best is {arms[0]!r}")
        return
    rows = []
    with ProcessPoolExecutor(workers) if workers > 1 else nullcontext() as executor:
        for name, policy in product(instances, policies):
            instance = lab.instance(name)
            spoiled = _attack(attack, instance, contamination)
            if not as_json:
                click.echo(f"{policy} on {name}: {replications} runs ...", err=True)
            done = lab.simulate(
                policy,
                instance,
                spoiled,
                replications,
                contamination=contamination,
                delta=delta,
                seed=seed,
                executor=executor,
            )
            rows.append({"instance": name, "policy": policy, **_row(done.summary)})
    click.echo(json.dumps(rows, indent=1)) if as_json else _show(rows)


def _attack(kind: str, instance: lab.Instance, contamination: Contamination | None) -> lab.Attack | None:
    eps, adversary = (contamination.eps, contamination.adversary) if contamination else (0.05, Adversary.OBLIVIOUS)
    if kind == "none" or eps == 0:
        return None
    return lab.worst(instance, eps, adversary) if kind == "worst" else lab.benign(instance, eps)


def _row(summary: lab.Summary) -> dict[str, Any]:
    numbers = {"pulls": summary.pulls, "limit": summary.limit, "ratio": summary.ratio}
    return {
        "errors": summary.errors.count,
        "error_interval": list(summary.errors.interval),
        "answered": summary.answered.count,
        "runs": summary.replications,
        **{name: x if math.isfinite(x) else None for name, x in numbers.items()},
        "ms_per_run": 1000 * summary.seconds,
    }


def _show(rows: list[dict[str, Any]]) -> None:
    table = Table()
    for name in _COLUMNS:
        table.add_column(name.replace("_", " "), justify="left" if name in ("instance", "policy") else "right")
    for row in rows:
        table.add_row(*(_cell(row[name], 2 if name == "ratio" else 0) for name in _COLUMNS))
    Console(width=None if Console().is_terminal else 100).print(table)


def _cell(value: object, digits: int) -> str:
    if value is None:
        return "-"
    return f"{value:.{digits}f}" if isinstance(value, float) else str(value)
