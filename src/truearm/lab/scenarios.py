"""Scenarios: files in TOML that say which policies to run on which instances against which attacks.

A scenario is a list of grids. In a grid every key may hold one value or a list; each combination is a cell, and
each cell is one simulation.
"""

import difflib
import math
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

from truearm import families
from truearm.errors import InvalidArgument
from truearm.families import Law
from truearm.lab import adversaries, arms
from truearm.lab.adversaries import Attack
from truearm.lab.arms import Instance
from truearm.lab.limits import limit
from truearm.lab.simulate import Runner, Simulation, simulate
from truearm.policies import Policy, by_name
from truearm.problem import Contamination, Regularity, check_adversary

Table = Mapping[str, Any]

_SCENARIO_KEYS = {"title", "about", "replications", "seed", "max_pulls", "plot", "grid"}
_GRID_KEYS = {
    "policy",
    "instance",
    "attack",
    "eps",
    "adversary",
    "contamination",
    "delta",
    "tolerance",
    "between",
    "reach",
    "size",
    "published",
    "limit_below",
    "replications",
}
_PLOTS = ("eps", "gap", "none")
_ATTACKS = ("none", "own", "worst", "benign", "directed")
_BASELINES = {
    "mean_elimination": "MeanElimination",
    "lil_ucb": "LilUcb",
    "mean_ucb": "MeanUcb",
    "plain_median": "PlainMedian",
}
_POLICIES = ("toptwo", "elimination", "lucb", "uniform")
_INSTANCES: dict[str, Callable[..., Instance]] = {
    "howard_ramdas": arms.howard_ramdas,
    "schreuder": arms.schreuder,
    "confounded": arms.confounded,
    "lifted": arms.lifted,
}


@dataclass(frozen=True)
class Cell:
    """One simulation of a scenario, ready to run."""

    labels: dict[str, Any]
    """What tells the cell from the others, for tables and pictures."""
    policy: Policy[Any] | Runner
    instance: Instance
    attack: Attack | None
    options: dict[str, Any]
    """Further arguments of `simulate`."""
    published: float | None = None
    limit_below: float = math.inf

    @property
    def wanted(self) -> bool:
        """Whether the least number of pulls is small enough for the scenario."""
        if self.limit_below == math.inf:
            return True
        found = limit(self.instance, self.attack, contamination=self.options["contamination"])
        return found.pulls(self.options["delta"]) < self.limit_below

    def run(
        self, *, executor: Executor | None = None, progress: Callable[[int, int], None] | None = None
    ) -> Simulation:
        """Run the cell."""
        return simulate(
            self.policy, self.instance, self.attack, executor=executor, progress=progress, **self.options
        )

    @property
    def effective_gap(self) -> float:
        """The least effective gap of the instance under the contamination of the attack (section 3)."""
        eps, power = (self.attack.eps, self.attack.power) if self.attack is not None else (0.0, "oblivious")
        return min(self.instance.effective_gaps(eps, power))


@dataclass(frozen=True)
class Scenario:
    """A file that was read and checked."""

    title: str
    about: str
    cells: tuple[Cell, ...] = field(repr=False)
    plot: str = "none"


def shipped() -> dict[str, str]:
    """Return the names of the scenarios that come with the package, and their titles."""
    found = {Path(entry.name).stem: entry for entry in files("truearm.lab").joinpath("shipped").iterdir()}
    return {name: tomllib.loads(found[name].read_text("utf-8"))["title"] for name in sorted(found)}


def read(source: str | Path, *, replications: int | None = None, seed: int | None = None) -> Scenario:
    """Read a scenario from a file, or one that comes with the package by its name.

    Parameters
    ----------
    replications, seed
        In place of those in the file.
    """
    table = _loaded(source)
    if replications is not None:
        table["replications"] = replications
        for grid in table.get("grid", []):
            grid.pop("replications", None)
    if seed is not None:
        table["seed"] = seed
    return parse(table, str(source))


def _loaded(source: str | Path) -> dict[str, Any]:
    path = Path(source)
    names = shipped()
    if str(source) in names:
        text = files("truearm.lab").joinpath("shipped", f"{source}.toml").read_text("utf-8")
    elif path.is_file():
        text = path.read_text("utf-8")
    else:
        msg = f"there is no scenario {str(source)!r}, neither a file nor one of {', '.join(names)}"
        raise InvalidArgument(msg + _suggestion(str(source), names))
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        msg = f"{source} is not valid TOML: {error}"
        raise InvalidArgument(msg) from None


def parse(table: Table, where: str = "scenario") -> Scenario:
    """Return the scenario that a table describes, or say which key or value is wrong."""
    _check_keys(table, _SCENARIO_KEYS, where)
    if not table.get("grid"):
        msg = f"{where}: at least one [[grid]] with policy and instance is needed"
        raise InvalidArgument(msg)
    plot = _one_of(table.get("plot", "none"), _PLOTS, f"{where}: plot")
    common = {key: table[key] for key in ("replications", "seed", "max_pulls") if key in table}
    cells: list[Cell] = []
    for number, grid in enumerate(table["grid"], start=1):
        cells.extend(_cells(grid, common, f"{where}: grid {number}"))
    return Scenario(str(table.get("title", where)), str(table.get("about", "")), tuple(cells), plot)


def _cells(grid: Table, common: Table, where: str) -> Iterator[Cell]:
    _check_keys(grid, _GRID_KEYS, where)
    for key in ("policy", "instance"):
        if key not in grid:
            msg = f"{where}: {key} is missing"
            raise InvalidArgument(msg)
    spread = {key: value if isinstance(value, list) else [value] for key, value in grid.items()}
    for values in product(*spread.values()):
        yield _cell(dict(zip(spread, values, strict=True)), common, where)


def _cell(table: dict[str, Any], common: Table, where: str) -> Cell:
    eps = float(table.get("eps", 0.0))
    power = str(check_adversary(table.get("adversary", "oblivious")))
    name, instance = _instance(table["instance"], where)
    label, policy = _policy(table["policy"], where)
    attack_name = _one_of(table.get("attack", "none"), _ATTACKS, f"{where}: attack")
    attack = _attack(attack_name, instance, eps, power, size=float(table.get("size", 10.0)))
    told = _one_of(table.get("contamination", "promise"), ("promise", "declared"), f"{where}: contamination")
    options = dict(common) | {
        "delta": float(table.get("delta", 0.05)),
        "tolerance": table.get("tolerance", 0.0),
        "between": _between(table["between"], where) if "between" in table else None,
        "contamination": Contamination(eps, power) if told == "declared" else None,  # type: ignore[arg-type]
        "regularity": _regularity(instance.arms, float(table["reach"])) if "reach" in table else None,
    }
    if "replications" in table:
        options["replications"] = table["replications"]
    labels = {
        "policy": label,
        "instance": name,
        "attack": attack_name,
        "eps": eps,
        "adversary": power,
        "contamination": told,
        "delta": options["delta"],
    }
    return Cell(
        labels,
        policy,
        instance,
        attack,
        options,
        table.get("published"),
        float(table.get("limit_below", math.inf)),
    )


def _instance(value: str | Table, where: str) -> tuple[str, Instance]:
    if isinstance(value, str):
        _one_of(value, arms.INSTANCES, f"{where}: instance")
        return value, arms.instance(value)
    options = dict(value)
    kind = _one_of(options.pop("kind", ""), (*_INSTANCES, "translations", "coins"), f"{where}: instance.kind")
    label = " ".join([kind.replace("_", "-"), *(str(part) for part in options.values())])
    if kind == "translations":
        law: Law = getattr(families, _one_of(options.pop("law", "gaussian"), _LAWS, f"{where}: instance.law"))()
        return label, arms.translations(law, options.pop("gaps"), name=label)
    if kind == "coins":
        return label, arms.coins(options.pop("shares"), name=label)
    if kind == "howard_ramdas":
        return label, arms.howard_ramdas(options.pop("arms"), **options)
    return label, _INSTANCES[kind](**options)


_LAWS = ("gaussian", "cauchy", "laplace", "logistic", "lognormal", "uniform")


def _policy(value: str | Table, where: str) -> tuple[str, Policy[Any] | Runner]:
    options = {"name": value} if isinstance(value, str) else dict(value)
    name = _one_of(options.pop("name", ""), (*_POLICIES, *_BASELINES), f"{where}: policy")
    label = " ".join([name.replace("_", "-"), *(f"{key}={part}" for key, part in options.items())])
    if name in _BASELINES:
        from truearm.lab import baselines

        made: Runner = getattr(baselines, _BASELINES[name])(**options)
        return label, made
    return label, by_name(name, **options)


def _attack(kind: str, instance: Instance, eps: float, power: str, *, size: float) -> Attack | None:
    if kind == "none" or (eps == 0 and kind != "own"):
        return None
    if kind == "own":
        return instance.attack
    if kind == "worst":
        return adversaries.worst(instance, eps, power)
    if kind == "benign":
        return adversaries.benign(instance, eps)
    bad = tuple(-size if arm == instance.best else size for arm in range(len(instance.arms)))
    return adversaries.oblivious(eps, bad)


def _between(value: object, where: str) -> tuple[float, float]:
    if not isinstance(value, Mapping) or set(value) != {"low", "high"}:
        msg = f"{where}: between must be a range such as {{ low = 0.0, high = 10.0 }}, but got {value!r:.80}"
        raise InvalidArgument(msg)
    return value["low"], value["high"]


def _regularity(laws: Sequence[Law], reach: float) -> Regularity:
    m2 = max(law.m2 for law in laws)
    slopes = max(law.minimal_B(reach) * law.m2 for law in laws)  # B m2 bounds the inverse slope of every arm
    return Regularity(B=slopes / m2, m2=m2, reach=reach)


def _check_keys(table: Table, known: set[str], where: str) -> None:
    for key in table:
        if key not in known:
            msg = f"{where} has the unknown key {key!r}"
            raise InvalidArgument(msg + _suggestion(key, known))


def _one_of(value: object, known: Sequence[str], where: str) -> str:
    if not isinstance(value, str) or value not in known:
        msg = f"{where} must be one of {', '.join(known)}, but got {value!r}"
        raise InvalidArgument(msg + _suggestion(str(value), known))
    return value


def _suggestion(word: str, known: Sequence[str] | Mapping[str, Any] | set[str]) -> str:
    close = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def row(cell: Cell, done: Simulation) -> dict[str, Any]:
    """Return the summary of a cell as one flat row."""
    summary = done.summary
    # baselines make another promise, since they know the noise, and so does a slack in quantile levels
    bound = not isinstance(cell.policy, Runner) and not getattr(cell.policy, "slack", 0)
    medians = done.problem.target == "quantile" and done.instance.quantile == 0.5
    return cell.labels | {
        "replications": summary.replications,
        "errors": summary.errors.count,
        "error_rate": summary.errors.value,
        "error_low": summary.errors.interval.low,
        "error_high": summary.errors.interval.high,
        "best_rejected": summary.lost.count,
        "answered": summary.answered.count,
        "pulls": summary.pulls,
        "standard_error": summary.standard_error,
        "median_pulls": summary.quantiles[0.5],
        "limit": summary.limit if bound else math.nan,
        "ratio": summary.ratio if bound else math.nan,
        "published": math.nan if cell.published is None else float(cell.published),
        "effective_gap": cell.effective_gap if medians else math.nan,
        "seconds": summary.seconds,
    }
