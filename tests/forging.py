"""Genuine results of many kinds as their JSON, and every small way to tamper with one."""

import copy
import json
import math
from functools import cache

import numpy as np

from truearm import audit
from truearm.analysis import analyze
from truearm.policies.control import AgainstControl
from truearm.policies.lucb import Lucb
from truearm.policies.paper import Elimination, Uniform
from truearm.policies.toptwo import TopTwo
from truearm.problem import Contamination, Handicap, Problem, Regularity, Tolerance
from truearm.study import Study

REGULAR = Regularity(B=3.0, m2=1.0, reach=0.25)


def told(problem, means, *, policy="toptwo", seed=1, max_pulls=1500, holes=0.0, drift=0.0, spread=1.0):
    """Return a study that took whole batches of normal readings."""
    rng, study = np.random.default_rng(seed), Study(problem, policy=policy, max_pulls=max_pulls)
    place = dict.fromkeys(problem.arms, 0)
    while counts := study.ask_counts():
        readings = {}
        for arm, n in counts.items():
            at = np.arange(place[arm], place[arm] + n)
            drawn = rng.normal(means[problem.arms.index(arm)], spread, n) + drift * at
            readings[arm] = np.where(rng.random(n) < holes, np.nan, drawn)
            place[arm] += n
        study.tell_arrays(readings)
    return study


def late(problem, means, *, seed=1, workers=5, stop=None):
    """Return a study whose workers finish in any order; `stop` ends it after that many readings."""
    rng, study, out, n = np.random.default_rng(seed), Study(problem, max_pulls=600, seed=7), [], 0
    while not study.done and n != stop:
        out += study.ask(workers - len(out)) if len(out) < workers else []
        pull = out.pop(int(rng.integers(len(out))))
        study.tell(pull, float(rng.normal(means[problem.arms.index(pull.arm)])))
        n += 1
    study.stop()
    return study


def pending():
    """Return a study that was stopped in the middle of a batch, with pulls out and pulls never handed out."""
    rng, study = np.random.default_rng(3), Study(Problem(arms=("A", "B", "C")))
    for pull in study.ask(30)[:20]:
        study.tell(pull, rng.normal())
    study.stop()
    return study


def arms(k):
    return tuple("ABCDEFGH"[:k])


def frame(k=3, n=120, *, gap=1.5, seed=5, holes=0.0, drift=0.0):
    rng = np.random.default_rng(seed)
    columns = {arm: rng.normal(-gap * i, 1, n) + drift * np.arange(n) for i, arm in enumerate(arms(k))}
    return {arm: np.where(rng.random(n) < holes, np.nan, column) for arm, column in columns.items()}


def of(k, means, policy="toptwo", told_as=None, **promises):
    """Return a function that runs a study of k arms; `told_as` are options of the run."""
    return lambda: told(Problem(arms=arms(k), **promises), means, policy=policy, **(told_as or {}))


LONG, NARROW, FIVE, FIFTH = {"max_pulls": 20_000}, {"spread": 0.5}, Tolerance.of("5%"), Tolerance.of("20%")
STUDIES = {
    "certified": of(3, (2, 0, 0.2)),
    "separated": of(2, (0, 1), contamination=None, goal="min"),
    "five arms": of(5, (5, 3, 4, 6, 4.5), goal="min", delta=0.1),
    "tolerable": of(3, (0.2, 0, 0.1), tolerance=1.0),
    "within a ratio": of(2, (10, 10.1), told_as={"spread": 0.3}, tolerance=FIFTH, goal="min"),
    "indistinguishable": of(2, (0, 0), told_as={"seed": 2}, contamination=0.2),
    "exhausted": of(3, (0.1, 0, -3), told_as={"max_pulls": 200}),
    "drifting": of(2, (0.1, 0), told_as={"drift": 0.5}),
    "too many missing": of(2, (0, 0), told_as={"holes": 0.5}),
    "missing": of(3, (3, 0, 0), told_as={"holes": 0.05}),
    "clairvoyant": of(2, (2, 0), contamination=Contamination(0.02, "prescient")),
    "malicious": of(3, (2, 0, 0), contamination=Contamination(0.02, "malicious", causal=True)),
    "dependent": of(2, (2, 0), dependent_arms=True),
    "quantile": of(2, (0, 2), quantile=0.9, goal="min"),
    "balanced": of(3, (2, 0, 1), TopTwo(balanced=True)),
    "handicap": of(2, (100, 101), told_as=NARROW, goal="min", handicap=Handicap("A", FIVE)),
    "limited": of(2, (100, 101), told_as=NARROW, goal="min", handicap=Handicap("A", FIVE, 105.0)),
    "ties": of(3, (1, 1, 0), told_as={"spread": 0.0}),
    "elimination": of(3, (6, 0, 3), Elimination(), LONG, regularity=REGULAR, contamination=None),
    "elimination as printed": of(2, (6, 0), Elimination("paper"), LONG, regularity=REGULAR),
    "uniform": of(3, (1, 0, 0.5), Uniform(), LONG, regularity=REGULAR, tolerance=2.0, contamination=None),
    "lucb": of(3, (2, 0, 1), Lucb()),
    "lucb with slack": of(2, (0.3, 0), Lucb(slack=0.1), tolerance=0.5),
    "rounds": of(3, (0, 2, 1.5), told_as={"holes": 0.02}, rounds=True, goal="min"),
    "rounds within a ratio": of(2, (10, 10.1), told_as={"spread": 0.3}, rounds=True, tolerance=FIFTH, goal="min"),
    "share": of(2, (1.5, -0.5), at_least=0.0),
    "share of three": of(3, (0, 2, 1), told_as={"holes": 0.03}, at_most=0.5, tolerance=0.02),
    "in a range": of(3, (2, 0, 0.2), between=(-2.5, 5.0), contamination=0.1),
    "against a control": of(3, (0, 2, 0), AgainstControl("A"), {"max_pulls": 400}),
    "an arm called notes": lambda: told(Problem(arms=("notes", "message")), (2, 0)),
    "pending": pending,
    "late": lambda: late(Problem(arms=arms(3)), (1.5, 0, 0.2)),
    "late and stopped": lambda: late(Problem(arms=arms(2)), (1.5, 0), stop=60),
}
UNSEEN = Contamination(0.02, "malicious", causal=False)
ANALYSES = {
    "analyzed": lambda: (frame(), {}),
    "analyzed, fixed": lambda: (frame(), {"design": "fixed", "goal": "min"}),
    "analyzed, pairs": lambda: (frame(4, 60, gap=0.7), {"pairs": True}),
    "analyzed, not decided": lambda: (frame(gap=0.05), {"contamination": 0.1}),
    "analyzed, tolerable": lambda: (frame(gap=0.05), {"tolerance": 1.0}),
    "analyzed, dependent": lambda: (frame(), {"dependent_arms": True}),
    "analyzed, missing": lambda: (frame(holes=0.05), {"contamination": 0.1}),
    "analyzed, drifting": lambda: (frame(drift=0.1), {"order": "rows"}),
    "analyzed, control and tiers": lambda: (frame(4), {"control": "C", "tiers": True}),
    "analyzed, rounds": lambda: (frame(2), {"round": "rows", "design": "fixed"}),
    "analyzed, share": lambda: (frame(2), {"at_least": -0.5, "design": "fixed"}),
    "analyzed, uneven rounds": lambda: (
        {arm: tape[: 120 - 20 * i] for i, (arm, tape) in enumerate(frame(3).items())},
        {"round": "rows", "pairs": True},
    ),
    "analyzed, in a range": lambda: (frame(), {"between": (-4.0, 3.0), "contamination": 0.1}),
    "analyzed, audited": lambda: (frame(), {"contamination": audit(400, 4, arms=3)}),
    "analyzed, false discoveries": lambda: (frame(4), {"control": "C", "fdr": True}),
    "analyzed, fixed control": lambda: (frame(4), {"control": "C", "design": "fixed"}),
    "analyzed, unseen future": lambda: (frame(), {"contamination": UNSEEN}),
    "analyzed, prescient": lambda: (frame(), {"contamination": Contamination(0.02, "prescient")}),
}
NAMES = (*STUDIES, *ANALYSES)
OVERLAPPING = ("late", "late and stopped")  # they decided while pulls were out: only a log can repeat that


def plain(tape):
    return [float(x) if math.isfinite(x) else str(float(x)) for x in tape]


@cache
def _text(name):
    if name in STUDIES:
        return json.dumps(STUDIES[name]().result.to_dict(readings=True), allow_nan=False)
    tapes, options = ANALYSES[name]()
    found = {**analyze(tapes, **options).to_dict(), "readings": {arm: plain(tape) for arm, tape in tapes.items()}}
    return json.dumps(found, allow_nan=False)


def genuine(name):
    return json.loads(_text(name))


def places(value, path=()):
    """Iterate over the paths of all parts of a document, its readings left out."""
    if path:
        yield path
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        if path or key != "readings":
            yield from places(part, (*path, key))


def part(data, path):
    for key in path:
        data = data[key]
    return data


def changes(value, names):
    """Return other values for a part; of a list also one that lacks, repeats or swaps parts."""
    if isinstance(value, bool):
        return [not value, None]
    if isinstance(value, int | float):
        near = [value + 1, value - 1, -value - 1, value * 1.001 + 1e-4, 0 if value else 7]
        return [*near, None, "inf", 10**6, 10**400, math.nan, str(value), [value]]
    if isinstance(value, str):
        words = (*names, "certified", "exhausted", "pooled", "causal", "fixed")
        others = [name for name in words if name != value]
        return [*others[:4], value + "x", value + "\u200b", value.replace("A", "\u0391"), "", None, 1]
    if value is None:
        return [0, 0.25, names[0], True, "inf"]
    if isinstance(value, list):
        made = [[*value, *value[:1]] if value else [names[0]], [*value, *names[:1]], None]
        return [*made, value[:-1], value[1:], value[::-1]] if value else made
    without = ({k: v for k, v in value.items() if k != key} for key in value)
    return [None, {}, {**value, "more": 1}, *without]


def forgeries(data):
    """Iterate over all tampered documents, each with the path to what was changed."""
    names = list(data["pulls"]["arms"])
    for path in places(data):
        value = part(data, path)
        for other in changes(value, names):
            if other == value and type(other) is type(value):
                continue
            forged = copy.copy(data)
            at = forged
            for key in path[:-1]:
                at[key] = copy.copy(at[key])
                at = at[key]
            at[path[-1]] = other
            yield path, other, forged
