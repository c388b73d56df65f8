"""evaluate: the best mean score on a list of items (extensions B)."""

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import truearm as ta


def scores(n, abilities, seed):
    """Return 0/1 scores of models on items of different difficulty, as functions of an item."""
    rng = np.random.default_rng(seed)
    difficulty = rng.normal(size=n)
    table = {arm: rng.random(n) < 1 / (1 + np.exp(difficulty - a)) for arm, a in abilities.items()}
    return {arm: (lambda item, row=row: float(row[item])) for arm, row in table.items()}, table


def test_the_best_model_is_found_from_a_part_of_the_list():
    arms, table = scores(1319, {"A": 1.0, "B": 1.6, "C": 0.5}, 1)
    result = ta.evaluate(arms, range(1319), seed=1, progress=False)
    assert result.best == max(table, key=lambda arm: table[arm].mean()) == "B"
    assert result.items.scored < 0.8 * 1319 == 0.8 * result.items.all
    assert result.pulls["C"] < result.pulls["B"]
    assert "highest mean score on the 1,319 items" in str(result)
    assert f"{result.items.scored} of 1,319 items scored" in str(result)
    lead = next(lead for lead in result.better_by if lead.than == "A")
    assert 0 < lead.at_least < lead.observed
    assert result.breakdown.oblivious > 0
    assert ta.verify(result)


def test_no_item_is_scored_twice_and_all_arms_see_the_same_items():
    seen = {"A": [], "B": []}
    arms = {arm: (lambda item, arm=arm: seen[arm].append(item) or 0.5) for arm in seen}
    result = ta.evaluate(arms, list("abcdefghij") * 3, progress=False)
    assert sorted(seen["A"]) == sorted(seen["B"]) == sorted("abcdefghij" * 3)
    assert result.status.value == "indistinguishable"
    assert set(result.ties) == {"A", "B"}


def test_lists_with_equal_means_rarely_have_a_winner():
    # 200 lists: at most delta = 5% named; more than 20 has a chance below 0.1% at 5%, above 95% at 15%
    named = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        row = rng.permutation(np.repeat([0.0, 1.0], 30))
        other = rng.permutation(row)
        arms = {"A": row.__getitem__, "B": other.__getitem__}
        result = ta.evaluate(arms, range(60), seed=seed, progress=False)
        named += result.best is not None
    assert named <= 20


def test_a_spoiled_share_of_scores_does_not_make_a_winner():
    # the adversary raises 5% of A's scores and lowers 5% of B's before the order is drawn
    named = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        row = (rng.random(200) < 0.5).astype(float)
        good, bad = row.copy(), row.copy()
        good[rng.choice(np.flatnonzero(row == 0), 10, replace=False)] = 1
        bad[rng.choice(np.flatnonzero(row == 1), 10, replace=False)] = 0
        arms = {"A": good.__getitem__, "B": bad.__getitem__}
        result = ta.evaluate(arms, range(200), contamination=0.05, seed=seed, progress=False)
        named += result.best is not None
    assert named <= 20


def test_failures_count_at_their_worst_and_are_shown():
    def fails(item):
        if item % 3 == 0:
            raise ValueError("no answer")
        return 1.0

    result = ta.evaluate({"A": fails, "B": lambda _: 0.0}, range(200), seed=2, progress=False)
    assert result.best == "A"
    assert list(result.conditions["failures"]["A"]) == ["ValueError: no answer"]
    with pytest.raises(ta.ArmFailed, match="no answer"):
        ta.evaluate({"A": fails, "B": lambda _: 0.0}, range(200), on_error="stop", seed=2, progress=False)


def test_a_score_outside_of_the_range_names_item_and_arm():
    with pytest.raises(ta.InvalidArgument, match=r"score 3 of 'A' on item \d+ is outside of score_range \(0, 1\)"):
        ta.evaluate({"A": lambda _: 3, "B": lambda _: 1}, range(10), progress=False)


async def half(_):
    return 0.5


def test_async_functions_executors_and_other_ranges():
    with ThreadPoolExecutor(3) as pool:
        result = ta.evaluate(
            {"A": half, "B": lambda _: 5}, range(100), score_range=(0, 5), workers=pool, progress=False
        )
    assert result.best == "B"
    assert result.better_by[0].observed == 4.5


def test_control_and_tiers_score_every_arm_on_every_item():
    arms, _ = scores(300, {"A": 0.0, "B": 2.5, "C": 0.0}, 3)
    result = ta.evaluate(arms, range(300), control="A", tiers=True, seed=1, progress=False)
    assert result.control.named("better") == ("B",)
    assert result.tiers.tiers[0] == ("B",)
    assert set(result.pulls.values()) == {300}


def test_a_killed_evaluation_continues_where_it_was(tmp_path):
    code = (
        "import os, signal, sys, truearm as ta\n"
        "calls, count = open('calls', 'a'), []\n"
        "def score(arm, right):\n"
        "    def f(item):\n"
        "        print(arm, item, file=calls, flush=True)\n"
        "        count.append(item)\n"
        "        if len(count) == 40: os.kill(os.getpid(), signal.SIGKILL)\n"
        "        return float(item % right != 0)\n"
        "    return f\n"
        "arms = {'A': score('A', 50), 'B': score('B', 3)}\n"
        "r = ta.evaluate(arms, range(400), store='run.db', progress=False, workers=1, seed=1)\n"
        "print(r.best, r.items.scored)\n"
    )

    codes = []
    while 0 not in codes and len(codes) < 60:
        call = [sys.executable, "-c", code]
        ended = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
        codes.append(ended.returncode)
    assert codes[0] == -signal.SIGKILL
    assert codes[-1] == 0, ended.stderr
    assert ended.stdout.split()[0] in ("A", "None")  # scores lost in kills count at their worst
    calls = (tmp_path / "calls").read_text().splitlines()
    assert len(set(calls)) == len(calls)


def test_scores_that_are_there_are_analyzed():
    _, table = scores(400, {"A": 1.0, "B": 2.0}, 5)
    frame = {
        "model": ["A"] * 250 + ["B"] * 250,
        "item": [*range(250)] * 2,
        "score": [*table["A"][:250].astype(float), *table["B"][:250].astype(float)],
    }
    columns = {"arm": "model", "value": "score", "round": "item", "contamination": 0}
    found = ta.analyze(frame, **columns, score_range=(0, 1), items=400)
    assert (found.best, found.items) == ("B", (250, 400))
    assert any("You say that the items were drawn" in line for line in found.assumptions)
    drawn = ta.analyze(frame, **columns, score_range=(0, 1))
    assert drawn.items == (250, None)
    assert ta.verify(found, found.readings).trust == ("one reading per 'item'; give the table of rows",)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"score_range": (1, 0)}, "increasing"),
        ({"tolerance": "5%"}, "points"),
        ({"max_items": 0}, "max_items"),
    ],
)
def test_mistakes_are_named(options, message):
    with pytest.raises(ta.InvalidArgument, match=message):
        ta.evaluate({"A": lambda _: 1, "B": lambda _: 0}, range(5), progress=False, **options)


def test_scores_that_are_there_count_as_given_and_are_checked():
    wide = {"A": [1.0, 0.0, 1.0] * 30, "B": [0.0, 0.0, 1.0] * 30}
    found = ta.analyze(wide, round="rows", score_range=(0, 1), of=100)
    assert (found.best, found.problem.contamination.eps, found.items) == ("A", 0.0, (90, 100))
    with pytest.raises(
        ta.InvalidArgument, match=r"the score 7 of 'B' on item 2 is outside of score_range \(0, 1\)"
    ):
        ta.analyze({"A": [1.0, 0.0], "B": [0.0, 7.0]}, round="rows", score_range=(0, 1))
