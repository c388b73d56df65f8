"""Compare rounds with cuts: rounds until a decision, gates, equal arms, and which arms are in a round.

Run: python benchmarks/rounds.py [RUNS [REACTING]]. Writes benchmarks/results/rounds.md. Run times of
tests/loads.py: noise .03 in their logarithms, 3% slow spikes; at most 3,000 rounds, delta 5%. The cut is
`TopTwo(balanced=True)` on the same readings. There are 10 RUNS races of equal commands for each load, and
REACTING races on a machine that reacts to everything but labels. RUNS = 30 needs about an hour on one core.
"""

import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
from sections import write_sections

from truearm import Study, TopTwo
from truearm.claims.gates import judge_gate
from truearm.policies.paired import Paired
from truearm.problem import Handicap, Problem, Tolerance

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))
import loads  # noqa: E402 - after the path
from statistical.test_rounds import LOADS, equal, feed, in_rounds, shared, winners  # noqa: E402 - after the path

RUNS = int(sys.argv[1]) if len(sys.argv) > 1 else 30
ROUNDS, EQUAL = 3000, 10 * RUNS
REACTING = int(sys.argv[2]) if len(sys.argv) > 2 else EQUAL
SHOWN = ("quiet", "wander", "neighbor")


def by_cuts(tapes, **setting):
    arms = [str(i) for i in range(len(tapes))]
    return feed(Study(arms, policy=TopTwo(balanced=True), max_pulls=tapes.size, **setting), tapes)


def cell(make, study_of, **setting):
    """Return mean rounds and pulls, and how many of the runs were undecided or wrong."""
    sizes, open_, wrong = [], 0, 0
    for i in range(RUNS):
        study = study_of(make(np.random.default_rng([9, i])), goal="min", **setting)
        sizes.append((max(len(tape) for tape in study.readings.values()), study.pulls))
        best = study.result.best if study.done else None
        open_ += best is None
        wrong += best not in (None, "0")
    return *np.mean(sizes, axis=0), open_, wrong


def format_cell(found, place=0):
    text = f"{found[place]:.0f}"
    if found[2]:
        text += f", {found[2]} of {RUNS} undecided"
    return text + (f", {found[3]} wrong" if found[3] else "")


def gaps():
    yield "| gap | load | cut, separated | rounds, blind | cut, 5% bad | rounds, 5% bad |"
    yield "|---" * 6 + "|"
    for gap, load in product((0.05, 0.02, 0.01), SHOWN):

        def make(rng, gap=gap, load=load):
            return loads.side_by_side(LOADS[load], (1.0, 1 + gap), ROUNDS, rng)

        ways = ((by_cuts, None), (in_rounds, "blind"), (by_cuts, 0.05), (in_rounds, 0.05))
        cells = [cell(make, way, contamination=c) for way, c in ways]
        yield f"| {gap:.0%} | {load} | {' | '.join(map(format_cell, cells))} |"


FIELDS = {
    "0, 5, 10, 10% slower": (1.0, 1.05, 1.1, 1.1),
    "nine 5% slower": (1.0, *[1.05] * 9),
    "1% to 9% slower": tuple(1 + i / 100 for i in range(10)),
}


def duels(tapes, **setting):
    """Return (rounds, pulls) of leader and challenger alone, with fresh rounds for each pair."""
    from truearm.evidence.wins import Score, log_evidence, win_level_of
    from truearm.problem import Contamination

    k = len(tapes)
    level = win_level_of(Contamination.of(setting["contamination"]))
    bar, met = np.log(2 * (k - 1) / 0.05), np.zeros((k, k), dtype=int)  # wins of i over j
    alive, at = list(range(k)), 0
    while len(alive) > 1 and at < tapes.shape[1]:
        share = (met + 1) / (met + met.T + 2)
        head = max(alive, key=lambda i: min(share[i, j] for j in alive if j != i))
        rival = min((j for j in alive if j != head), key=lambda j: met[head, j] - met[j, head])
        first, second = tapes[head, at] < tapes[rival, at], tapes[rival, at] < tapes[head, at]
        met[head, rival] += first
        met[rival, head] += second
        at += 1
        for i, j in ((head, rival), (rival, head)):
            n = int(met[i, j] + met[j, i])
            if j in alive and log_evidence(Score(n, int(met[i, j])), level) >= bar:
                alive.remove(j)
    return 2 * at, alive


def fields():
    yield "| commands | load | all left, blind | two, blind | all left, 5% bad | two, 5% bad |"
    yield "|---" * 6 + "|"
    for (name, factors), load in product(FIELDS.items(), ("quiet", "wander")):

        def make(rng, factors=factors, load=load):
            return loads.side_by_side(LOADS[load], factors, ROUNDS, rng)

        cells = []
        for c in ("blind", 0.05):
            cells.append(format_cell(cell(make, in_rounds, contamination=c), 1))
            two = [duels(make(np.random.default_rng([9, i])), contamination=c) for i in range(RUNS)]
            missed = sum(alive != [0] for _, alive in two)
            cells.append(f"{np.mean([n for n, _ in two]):.0f}" + (f", {missed} open or wrong" if missed else ""))
        yield f"| {name} | {load} | {' | '.join(cells)} |"


def equals():
    yield f"| load | k | winners of {EQUAL}, blind | winners of {EQUAL}, 5% bad |"
    yield "|---" * 4 + "|"
    for load, k in product(LOADS, (2, 4)):
        found = [winners(equal(load, k, 500), EQUAL, contamination=c, goal="min").sum() for c in ("blind", 0.05)]
        yield f"| {load} | {k} | {found[0]} | {found[1]} |"
    found = [winners(lambda rng: shared(rng, 500), EQUAL, contamination=c).sum() for c in ("blind", 0.05)]
    yield f"| AR(1), .9 | 2 | {found[0]} | {found[1]} |"
    found = [_is_named_by_reaction(i, c) for i in range(REACTING) for c in ("blind", 0.05)]
    blind, bounded = (f"{sum(found[i::2])} of {REACTING}" for i in (0, 1))
    yield f"| reacts to slots, time, past readings | 2 | {blind} | {bounded} |"


def _is_named_by_reaction(number, contamination, rounds=200):
    """Return True if one of two equal commands is named on a machine that reacts to all but labels."""
    rng, past = np.random.default_rng([11, number]), [1.0, 1.0]
    study = Study(["0", "1"], rounds=True, goal="min", max_pulls=2 * rounds, contamination=contamination)
    while pulls := study.ask(1):
        slot = len(past)
        slow = 0.04 * (slot % 2) + 0.03 * (slot % 10 < 5) + 0.02 * (past[-2] > past[-1])
        past.append(np.exp(slow + rng.normal(0, 0.03)) + 0.5 * (rng.random() < 0.03))
        study.tell(pulls[0], float(past[-1]))
    return study.result.best is not None


def gates(rounds=400):
    yield "| tolerance | load | equal: PASS, FAIL of all | rounds | 5% slower: FAIL, PASS of all | rounds |"
    yield "|---" * 6 + "|"
    for tolerance, load in product((0.01, 0.02, 0.03, 0.05), SHOWN):
        cells = []
        for factor, verdicts in ((1.0, ("PASS", "FAIL")), (1.05, ("FAIL", "PASS"))):
            outcomes = [_gate(i, factor, tolerance, load, rounds) for i in range(RUNS)]
            counts = [sum(verdict == wanted for verdict, _ in outcomes) for wanted in verdicts]
            cells += [f"{counts[0]}, {counts[1]} of {RUNS}", f"{np.mean([n for _, n in outcomes]):.0f}"]
        yield f"| {tolerance:.0%} | {load} | {' | '.join(cells)} |"


def _gate(number, factor, tolerance, load, rounds):
    """Return the verdict of a gate within some rounds, and how many it took."""
    tapes = loads.side_by_side(LOADS[load], (1.0, factor), rounds, np.random.default_rng([12, number]))
    problem = Problem.of(["old", "new"], goal="min", rounds=True, contamination="blind")
    handicap = Handicap("old", Tolerance(tolerance, relative=True))
    study = Study(replace(problem, handicap=handicap), policy=Paired(guard="old"), max_pulls=2 * rounds, seed=0)
    done = 0
    while counts := study.ask_counts():
        more = counts["old"]
        study.tell_arrays({"old": tapes[0][done : done + more], "new": tapes[1][done : done + more]})
        done += more
    return judge_gate(study.result).verdict, done


def main():
    sections = {
        f"Two commands: mean rounds of {RUNS} runs until a decision": gaps(),
        f"Gates: {RUNS} of each, at most 400 rounds, blind": gates(),
        f"Several commands: mean pulls of {RUNS} runs, by which commands are in a round": fields(),
        "Equal commands: winners named in 500 rounds (allowed: 5%)": equals(),
    }
    write_sections("rounds", "Rounds side by side", sections)


if __name__ == "__main__":
    main()
