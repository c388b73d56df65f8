"""Simulate loops of accept/reject decisions: a ledger, greedy acceptance, and a test per gate (extensions L1, L2).

Run: python benchmarks/ledger.py [LOOPS]. Writes benchmarks/results/ledger.md. Run times have noise .03 in their
logarithms and 3% slow spikes. Readings are simulated and judged with the levels of `Account` and the evidence of
rounds. Some gates also pass through `Ledger` itself, and must have the same outcome.
"""

import math
import sys
import tempfile
from functools import cache

import numpy as np
from scipy.stats import ttest_ind
from sections import write_sections

import truearm as ta
from truearm.claims.gates import Account
from truearm.evidence.wins import Score, log_evidence

LOOPS = int(sys.argv[1]) if len(sys.argv) > 1 else 300
ROUNDS = 400  # the budget of a gate
SINGLE = math.log(40)  # the threshold 2/delta of a single gate at 5%
RUNS = 20  # of each command, for rules with a fixed number


@cache
def table():
    """Return the log-evidence for the candidate by rounds and wins."""
    found = np.full((ROUNDS + 1, ROUNDS + 1), -np.inf)
    for n in range(1, ROUNDS + 1):
        found[n, : n + 1] = [log_evidence(Score(n, wins), 0.5) for wins in range(n + 1)]
    return found


def times(rng, typical, size, noise=0.03):
    spikes = np.where(rng.random(size) < 0.03, 1 + rng.exponential(0.5, size), 1)
    return typical * np.exp(noise * rng.normal(size=size)) * spikes


def level_of(number, accepted, **settings):
    """Return the level of a gate by its number and the number of gates accepted before it."""
    return Account(gates=[None] * (number - 1), accepted=accepted, **settings).next_level


def decide(candidate, base, log_bar):
    """Return the verdict of a gate, its rounds, and the log-evidence at the end."""
    places = np.arange(1, candidate.size + 1)
    better = table()[places, np.cumsum(candidate < base)]
    worse = table()[places, np.cumsum(base < candidate)]
    at = np.flatnonzero((better >= log_bar) | (worse >= log_bar))
    last = int(at[0]) if at.size else candidate.size - 1
    verdict = "accepted" if better[last] >= log_bar else "not better" if worse[last] >= log_bar else "undecided"
    return verdict, last + 1, float(better[last])


def greedy(candidate, base):
    return np.median(candidate[:RUNS]) < np.median(base[:RUNS])


def t_test(candidate, base):
    return ttest_ind(candidate[:RUNS], base[:RUNS], equal_var=False, alternative="less").pvalue < 0.05


def useless():
    """Loops of 100 proposals that are never better; the proposer adapts to verdicts and readings."""
    names = {"ledger, any": "any", "ledger, fdr": "fdr"}
    loops, acceptances = (
        dict.fromkeys((*names, "medians", "t-test"), 0),
        dict.fromkeys((*names, "medians", "t-test"), 0),
    )
    for loop in range(LOOPS):
        rng = np.random.default_rng([35, loop])
        accepted = dict.fromkeys(loops, 0)
        slower, noise, seen = 1.0, 0.03, 0.0
        for number in range(1, 101):
            base, candidate = times(rng, 1.0, ROUNDS, noise), times(rng, slower, ROUNDS, noise)
            for name, rate in names.items():
                level = level_of(number, accepted[name], error_rate=rate)
                verdict, _, seen = decide(candidate, base, -math.log(level))
                accepted[name] += verdict == "accepted"
            accepted["medians"] += greedy(candidate, base)
            accepted["t-test"] += t_test(candidate, base)
            # what looked good is proposed again with more noise; anything else is replaced by a worse or equal one
            slower, noise = (1.0, min(2 * noise, 0.5)) if seen > 0.5 else (1 + 0.002 * rng.integers(3), 0.03)
        for name, n in accepted.items():
            loops[name] += n > 0
            acceptances[name] += n
    yield f"| rule | loops of {LOOPS} that accept any | accepted of {100 * LOOPS:,} |"
    yield "|---|---|---|"
    for name in loops:
        yield f"| {name} | {loops[name]} ({loops[name] / LOOPS:.1%}) | {acceptances[name]} |"
    most = 0.05 + 3 * math.sqrt(0.05 * 0.95 / LOOPS)
    yield ""
    yield f"Allowed for `any`: 5% plus 3 standard errors, {most:.1%}."


def real():
    """Loops of 200 proposals with 10 real gains of 5%; each accepted one becomes the base."""
    rules = ("ledger, fdr", "single gates", "medians", "t-test")
    shares, found = {rule: [] for rule in rules}, {rule: [] for rule in rules}
    rounds = {rule: [] for rule in rules[:2]}
    for loop in range(LOOPS):
        rng = np.random.default_rng([36, loop])
        gains = set(rng.choice(200, 10, replace=False).tolist())
        right, wrong = dict.fromkeys(rules, 0), dict.fromkeys(rules, 0)
        for number in range(200):
            is_real = number in gains
            base, candidate = times(rng, 1.0, ROUNDS), times(rng, 0.95 if is_real else 1.0, ROUNDS)
            level = level_of(number + 1, right["ledger, fdr"] + wrong["ledger, fdr"], expected=200)
            for rule, log_bar in (("ledger, fdr", -math.log(level)), ("single gates", SINGLE)):
                verdict, n, _ = decide(candidate, base, log_bar)
                (right if is_real else wrong)[rule] += verdict == "accepted"
                if is_real:
                    rounds[rule].append(n)
            (right if is_real else wrong)["medians"] += greedy(candidate, base)
            (right if is_real else wrong)["t-test"] += t_test(candidate, base)
        for rule in rules:
            shares[rule].append(wrong[rule] / max(1, wrong[rule] + right[rule]))
            found[rule].append(right[rule])
    yield f"| rule | mean false share of {LOOPS} loops | real gains accepted, of 10 | rounds per real gain |"
    yield "|---|---|---|---|"
    for rule in rules:
        many = f"{np.mean(rounds[rule]):.1f}" if rule in rounds else f"{RUNS}"
        yield f"| {rule} | {np.mean(shares[rule]):.1%} | {np.mean(found[rule]):.2f} | {many} |"
    ratio = np.mean(rounds["ledger, fdr"]) / np.mean(rounds["single gates"])
    yield ""
    yield f"Rounds of the ledger over those of single gates with threshold 2/delta = 40: {ratio:.2f} (goal: 2.5)."


def through_ledger():
    """Pass gates through `Ledger` with the same readings, and compare levels, evidence and verdicts."""
    rng, gates = np.random.default_rng(37), 30
    with tempfile.TemporaryDirectory() as folder, ta.Ledger(f"{folder}/loop.db", expected=gates) as ledger:
        accepted = 0
        for number in range(gates):
            base, candidate = times(rng, 1.0, ROUNDS), times(rng, 0.9 if number % 3 == 0 else 1.0, ROUNDS)
            mine, theirs = iter(candidate), iter(base)
            gate = ledger.accept(
                f"{number}", lambda it=mine: next(it), lambda it=theirs: next(it), goal="min", max_pulls=120
            )
            n = gate.result.total // 2
            assert gate.level == level_of(number + 1, accepted, expected=gates)
            assert math.isclose(gate.log_evidence, table()[n, int((candidate < base)[:n].sum())], abs_tol=1e-9)
            assert gate.accepted == (decide(candidate[:n], base[:n], gate.log_bar)[0] == "accepted")
            accepted += gate.accepted
    yield f"{gates} gates through `Ledger` have the levels, the evidence and the verdicts of the simulation."


def main():
    sections = {
        "100 useless proposals by a proposer that adapts": useless(),
        "10 real gains of 5% among 200 proposals": real(),
        "The same rule": through_ledger(),
    }
    write_sections("ledger", "Many gates, one error rate", sections)


if __name__ == "__main__":
    main()
