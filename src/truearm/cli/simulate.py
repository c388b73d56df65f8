"""`truearm simulate`: run policies on instances whose truth is known, and show how often they err."""

import json
import math
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from functools import partial
from itertools import product
from typing import Any

import click

from truearm import lab
from truearm.cli.answer import GOOD, Answer, Screen, show
from truearm.cli.options import declare
from truearm.problem import Contamination

_COLUMNS = ("instance", "policy", "errors", "answered", "runs", "pulls", "limit", "ratio", "ms_per_run")
_KINDS = {"G": "Gaussian", "C": "Cauchy", "LN": "lognormal", "D": "binomial"}
_OPTIONS = """
--list  List the instances.
--policy toptwo|lucb...  The policy to run; repeat it to compare several. For others use `lab.simulate` in Python.
--attack none|worst|benign  How bad readings are chosen, at the declared share. [default: none]
+ contamination delta
--replications N  Runs of each policy and instance. [default: 100]
--seed SEED  The same seed gives the same table. [default: 0]
--workers N  Processes to run in. [default: 1]
+ json
"""


@click.command("simulate")
@click.argument("instances", nargs=-1, metavar="INSTANCE...")
@declare(_OPTIONS, policy={"default": ("toptwo",), "show_default": True})
@click.pass_context
def simulate_command(ctx: click.Context, /, instances: tuple[str, ...], **chosen: Any) -> None:  # noqa: ANN401
    """Run policies on INSTANCE and count errors and pulls; `limit` is a lower bound on the pulls of any method.

    \b
    truearm simulate --list
    truearm simulate G5 C2 --attack worst
    truearm simulate D2 --policy toptwo --policy lucb --contamination 2%
    """  # noqa: D301 - click wants the control character
    if chosen["list"] or not instances:
        for name in lab.INSTANCES:
            best, *others = (float(arm.median) for arm in lab.instance(name).arms)
            kind = _KINDS[name.rstrip("linsw").rstrip("0123456789")]
            rivals = " to ".join(f"{median:.4g}" for median in sorted({min(others), max(others)}))
            click.echo(f"{name:8} {len(others) + 1} {kind} arms; median of the best {best:.4g}, others {rivals}")
        return
    contamination, runs, rows = chosen["contamination"], chosen["replications"], []
    with ProcessPoolExecutor(chosen["workers"]) if chosen["workers"] > 1 else nullcontext() as executor:
        for name, policy in product(instances, chosen["policy"]):
            instance = lab.instance(name)
            attack = _attack(chosen["attack"], instance, contamination)
            if not chosen["json"]:
                click.echo(f"{policy} on {name}: {runs} runs ...", err=True)
            given = {"contamination": contamination, "delta": chosen["delta"], "seed": chosen["seed"]}
            done = lab.simulate(policy, instance, attack, runs, executor=executor, **given)
            rows.append({"instance": name, "policy": policy, **_row(done.summary)})
    ctx.exit(show(ctx, Answer(partial(_table, rows), GOOD, {"json": partial(json.dumps, rows, indent=1)})))


def _attack(kind: str, instance: lab.Instance, contamination: Contamination | None) -> lab.Attack | None:
    bad = contamination or Contamination(0.05)
    if kind == "none" or bad.eps == 0:
        return None
    return lab.worst(instance, bad.eps, bad.adversary) if kind == "worst" else lab.benign(instance, bad.eps)


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


def _table(rows: list[dict[str, Any]], screen: Screen) -> str:
    def write(name: str, x: object) -> str:
        return "-" if x is None else f"{x:.{2 * (name == 'ratio')}f}" if isinstance(x, float) else str(x)

    heading = tuple(name.replace("_", " ") for name in _COLUMNS)
    cells = [tuple(write(name, row[name]) for name in _COLUMNS) for row in rows]
    return screen.table([heading, *cells])
