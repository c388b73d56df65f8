"""evaluate: the best mean score on a list of items (extensions B)."""

import asyncio
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import truearm as ta
from entry import TRUEARM, is_running, received, truearm, wait_for
from truearm.report.pages import page


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


def equal_rows(rng, n):
    """Two arms with the same mean on a list."""
    row = rng.permutation(np.repeat([0.0, 1.0], n // 2))
    return row, rng.permutation(row)


def spoiled_rows(rng, n, same):
    """Two equal arms of which an adversary raises 5% of one and lowers 5% of the other, before the order is drawn.

    With the same scores on every item the spoiled ones stand out most: nothing else differs.
    """
    row = rng.permutation(np.repeat([0.0, 1.0], n // 2))
    good, bad = row.copy(), row.copy() if same else rng.permutation(row)
    good[rng.choice(np.flatnonzero(good == 0), n // 20, replace=False)] = 1
    bad[rng.choice(np.flatnonzero(bad == 1), n // 20, replace=False)] = 0
    return good, bad


NULLS = [
    (equal_rows, 0.0),
    (lambda rng, n: spoiled_rows(rng, n, same=True), 0.05),
    (lambda rng, n: spoiled_rows(rng, n, same=False), 0.05),
]


def winners(rows, eps, lists, n):
    """Count lists on which a winner is named, among those where the true means are equal."""
    named = 0
    for seed in range(lists):
        one, other = rows(np.random.default_rng(seed), n)
        arms = {"A": one.__getitem__, "B": other.__getitem__}
        result = ta.evaluate(arms, range(n), contamination=eps, seed=seed, progress=False)
        named += result.best is not None
    return named


@pytest.mark.parametrize(("rows", "eps"), NULLS)
@pytest.mark.parametrize(("lists", "n", "most"), [(40, 40, 8), pytest.param(1000, 60, 72, marks=pytest.mark.slow)])
def test_equal_means_have_a_winner_in_at_most_delta(rows, eps, lists, n, most):
    assert winners(rows, eps, lists, n) <= most  # at 5% more has a chance of 0.1%; power .89 at 30% (slow: 10%)


def test_failures_count_at_their_worst_and_are_shown():
    def fails(item):
        if item % 3 == 0:
            raise ValueError("no answer")
        return 1.0

    result = ta.evaluate({"A": fails, "B": lambda _: 0.0}, range(200), seed=2, progress=False)
    assert result.best == "A"
    ((why, times),) = result.conditions["failures"]["A"].items()
    assert f"A failed on {times} items ({why}): missing, counted at the worst." in str(result)
    assert "failed on" in page(result, result.readings)
    assert ta.Result.from_dict(result.to_dict()).items == result.items
    full = ta.evaluate({"A": fails, "B": lambda _: 0.0}, range(200), seed=2, progress=False, control="B")
    assert full.conditions["failures"] == {"A": {"ValueError: no answer": 67}}
    assert "assuming the scores are as given" in str(full)
    assert ta.verify(full)

    def silent(_):
        raise TimeoutError

    late = ta.evaluate({"A": silent, "B": lambda _: 0.0}, range(9), progress=False)
    assert late.conditions["failures"] == {"A": {"TimeoutError": 9}}
    with pytest.raises(ta.ArmFailed, match="no answer"):
        ta.evaluate({"A": fails, "B": lambda _: 0.0}, range(200), on_error="stop", seed=2, progress=False)


def test_a_study_of_scores_checks_them_too():
    study = ta.Study(["A", "B"], rounds=True, score_range=(0, 1), items=20)
    pull, other = study.ask()
    with pytest.raises(ta.InvalidArgument, match=r"the score 7 of .* is outside of score_range=\(0, 1\)"):
        study.tell(pull, 7)
    with pytest.raises(ta.InvalidArgument, match="outside of score_range"):
        study.tell_arrays({other.arm: [-1]})
    late = ta.find_best(
        {"A": lambda: 1.0, "B": lambda: -math.inf}, rounds=True, score_range=(0, 1), items=30, progress=False
    )
    assert (late.best, late.status.value) == (None, "indistinguishable")  # a time-out is a missing score


@pytest.mark.parametrize(("max_items", "scored"), [(None, 143), (100, 100)])
def test_arms_left_are_scored_no_further_than_asked(max_items, scored):
    row = np.random.default_rng(3).permutation(np.repeat([0.0, 1.0], [71, 72]))
    arms = {"A": row.__getitem__, "B": row[::-1].__getitem__, "C": lambda _: 0.0}
    result = ta.evaluate(arms, range(143), max_items=max_items, seed=1, progress=False)
    assert (result.items.scored, result.best) == (scored, None)
    assert result.pulls["C"] < scored
    assert ("A and B tie for the highest mean score on the 143 items" in str(result)) is (max_items is None)


def test_more_workers_draw_several_items_at_once():
    at_once, most = [], []

    def score(item):
        at_once.append(item)
        time.sleep(0.005)
        most.append(len(at_once))
        at_once.remove(item)
        return item % 2

    result = ta.evaluate({"A": score, "B": lambda _: 0}, range(40), workers=16, seed=1, progress=False)
    assert result.best == "A"
    assert result.items.scored % 8 == 0
    assert 1 < max(most) <= 8


loops = set()


async def half(_):
    loops.add(asyncio.get_running_loop())
    return 0.5


def test_async_functions_executors_and_other_ranges():
    with ThreadPoolExecutor(3) as pool:
        result = ta.evaluate(
            {"A": half, "B": lambda _: 5}, range(100), score_range=(0, 5), workers=pool, progress=False
        )
    assert result.best == "B"
    assert result.better_by[0].observed == 4.5
    assert len(loops) == 1  # a client that all calls share belongs to one loop


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
        "def score(arm, share):\n"
        "    def f(item):\n"
        "        print(arm, item, file=calls, flush=True)\n"
        "        count.append(item)\n"
        "        if len(count) == 60: os.kill(os.getpid(), signal.SIGKILL)\n"
        "        if item == 7: raise ValueError('no answer')\n"
        "        return float(item % share != 0)\n"
        "    return f\n"
        "arms = {'A': score('A', 3), 'B': score('B', 2)}\n"
        "r = ta.evaluate(arms, range(50), store='run.db', progress=False, workers=1, seed=1)\n"
        "print(r.items.scored, r.items.all, sum(sum(k.values()) for k in r.conditions['failures'].values()))\n"
    )
    codes = []
    while 0 not in codes and len(codes) < 8:
        call = [sys.executable, "-c", code]
        ended = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
        codes.append(ended.returncode)
    killed = codes.count(-signal.SIGKILL)
    assert codes[-1] == 0, ended.stderr
    assert killed == len(codes) - 1 > 0
    calls = (tmp_path / "calls").read_text().splitlines()
    assert len(set(calls)) == len(calls)
    scored, _, failed = map(int, ended.stdout.split())
    assert len(calls) <= 2 * scored <= len(calls) + killed  # of each batch of two one may have waited
    assert failed >= killed  # lost scores are missing, and the log knows why others are


def test_a_store_refuses_other_items(tmp_path):
    """They would get the scores of the items before."""
    right, store = {"A": lambda item: float(item != ""), "B": lambda item: len(item) > 3}, tmp_path / "run.db"
    options = {"seed": 1, "store": store, "progress": False}
    found = ta.evaluate(right, ["one", "two", "six", {"q": "ten"}], **options)
    assert ta.evaluate(right, ["one", "two", "six", {"q": "ten"}], **options) == found
    with pytest.raises(ta.ProtocolError, match="differs in items; use another file"):
        ta.evaluate(right, ["one", "two", "six", {"q": "seven"}], **options)


@pytest.mark.parametrize("of", [None, 10**9])
def test_a_forecast_of_millions_of_items_does_not_allocate_them(of):
    right = np.zeros((2, 10_000))
    right[0, :506], right[1, 506:1000] = 1, 1
    tracemalloc.start()
    found = ta.analyze(dict(zip("AB", right, strict=True)), round="rows", score_range=(0, 1), of=of)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 10**5 < found.needed["A"] < 10**7
    assert peak < 200e6


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
    with pytest.raises(ta.InvalidArgument, match="of=200 must be the length of the whole list"):
        ta.analyze(frame, **columns, score_range=(0, 1), of=200)
    with pytest.raises(ta.InvalidArgument, match=r"300 items needs .* such as score_range=\(0, 1\)"):
        ta.analyze(frame, **columns, of=300)
    assert any("score_range=(0, 1) compares means" in note for note in ta.analyze(frame, **columns).notes)
    drawn = ta.analyze(frame, **columns, score_range=(0, 1))
    assert drawn.items == (250, None)
    assert ta.verify(found, found.readings).trust == ("one reading per 'item'; give the table of rows",)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"score_range": (1, 0)}, "increasing"),
        ({"score_range": (1, 2)}, r"score 0 of 'B' on item \d+ is outside of score_range=\(1, 2\)"),
        ({"items": pd.DataFrame({"q": [1, 2]})}, "items must be a list, but got DataFrame; for rows of"),
        ({"items": range(2**70)}, "items must be at most 16,777,216"),
        ({"items": iter(int, 1)}, "items must be at most 16,777,216"),
        ({"tolerance": "5%"}, "points"),
        ({"max_items": 0}, "max_items"),
        ({"workers": 0}, "workers"),
        ({"on_error": "ignore"}, "on_error"),
        ({"control": "C"}, "control must name an arm, but got 'C'"),
        ({"tiers": "yes"}, "tiers must be True or False"),
        ({"store": 5}, "store must be the path of a file"),
        ({"arms": {"A": float}}, r"arms must name two or more, but got \['A'\]"),
    ],
)
def test_mistakes_are_named(options, message):
    scored = []
    arms = {"A": lambda item: scored.append(item) or 1, "B": lambda _: 0}
    with pytest.raises(ta.InvalidArgument, match=message):
        ta.evaluate(progress=False, **{"arms": arms, "items": range(5), **options})
    assert "score_range" in options or not scored


EVEN = ("--arm", "even=sh -c 'echo $1 >> calls; echo $(( $1 % 2 ))' sh {item}")
TENTH = ("--arm", "tenth=sh -c 'read x; test $x -ne 7 || exit 3; echo $(( x % 10 != 0 ))'")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("items.txt", "\n".join(map(str, range(1, 61)))),
        ("items.jsonl", "\n".join(f'"{i}"' for i in range(1, 61))),
        ("items.csv", "\n".join(["n", *map(str, range(1, 61))])),
    ],
)
def test_commands_that_print_scores(tmp_path, monkeypatch, name, content):
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(content)
    words = ("evaluate", "--items", name, *EVEN, *TENTH, "--store", "run.db", "--workers", "4", "--seed", "1")
    first = truearm(*words, "--export-html", "page.html")
    assert first.returncode == 0, first.stderr
    assert "tenth has the highest mean score on the 60 items" in first.stdout
    assert "tenth failed on 1 item (exit code 3)" in first.stdout
    assert "highest mean score" in Path("page.html").read_text()
    calls = Path("calls").read_text()
    again = truearm(*words, "--json")
    assert Path("calls").read_text() == calls  # decided already
    found = json.loads(again.stdout)
    assert (found["best"], found["items"]) == ("tenth", {"scored": len(calls.split()), "all": 60})
    Path("r.json").write_text(again.stdout)
    assert "tenth has the highest mean score on the 60 items" in truearm("analyze", "r.json").stdout
    assert truearm("verify", "r.json").returncode == 0
    assert "ratio" not in truearm("report", "run.db").stdout  # of means, it was called one per round


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--arm", "a=echo 1 {item}", "--arm", "b=echo"), 3, "but printed '')"),
        (
            ("--arm", "a=echo 1/2", "--arm", "b=echo"),
            3,
            "it must print one number on its last line, but printed '1/2')",
        ),
        (("--arm", "a=echo 1", "--arm", "b=echo 2"), 2, "outside of --score-range 0 1"),
        (("--arm", "a=echo 1", "--arm", "b=echo 1"), 3, "a and b tie for the highest mean score on the 2 items"),
        (("--arm", "a=echo 1", "--arm", "b=false", "--on-error", "stop"), 2, "arm 'b' failed on item"),
        (("--arm", "a=echo 1", "--arm", "b=sleep 9", "--timeout", "50ms"), 3, "TimeoutError: killed after 0.05"),
        (("--arm", "a=echo 1", "--arm", "b=nosuchprogram"), 2, "not on the PATH"),
        (("--arm", "a=echo 1 | cat", "--arm", "b=echo 1"), 2, "needs a shell"),
        (("--arm", "a=sh -c 'echo {item}'", "--arm", "b=echo 1"), 2, "would become code"),
        (("--arm", "echo 1", "--arm", "b=echo 1"), 2, "NAME=COMMAND"),
        (("--arm", "a=echo 1", "--arm", "a=echo 1"), 2, "two arms are called 'a'"),
        (("--arm", "a=echo 1"), 2, "add another --arm"),
    ],
)
def test_commands_that_do_not(tmp_path, words, code, said):
    (tmp_path / "items.txt").write_text("1\n2\n")
    ended = truearm("evaluate", "--items", str(tmp_path / "items.txt"), *words)
    output = " ".join((ended.stdout + ended.stderr).split())
    assert (ended.returncode, said in output) == (code, True), output


def test_a_line_of_a_json_file_is_not_an_item(tmp_path):
    (tmp_path / "q.json").write_text('[\n  "1+1",\n  "2+2"\n]\n')
    ended = truearm("evaluate", "--items", tmp_path / "q.json", "--arm", "a=echo 1", "--arm", "b=echo 0")
    assert (ended.returncode, "write each item as JSON on a line of its own" in ended.stderr) == (2, True)


def test_an_interrupt_ends_the_commands_that_run(tmp_path):
    (tmp_path / "items.txt").write_text("a\nb\n")
    arms = [f"--arm={arm}=sh -c 'echo $$ > {arm}; exec sleep 600'" for arm in "xy"]
    process = subprocess.Popen(
        [TRUEARM, "evaluate", "--items=items.txt", "--store=a.db", *arms], cwd=tmp_path, stdout=-1, text=True
    )
    files = [tmp_path / arm for arm in "xy"]
    assert wait_for(lambda: all(file.exists() and file.read_text().strip() for file in files))
    process.send_signal(signal.SIGINT)
    assert re.search(r"of 2 items scored(?s:.)*the same command continues", process.communicate(timeout=30)[0])
    assert (process.returncode, *(is_running(int(file.read_text())) for file in files)) == (3, False, False)


def test_a_terminal_shows_the_leader_and_the_items_left():
    code = (
        "import time, truearm as ta\n"
        "def wait(score):\n"
        "    return lambda item: time.sleep(0.02) or score(item)\n"
        "arms = {'A': wait(lambda i: i % 2), 'B': wait(lambda i: i % 3 == 0)}\n"
        "ta.evaluate(arms, range(40), seed=1)\n"
    )
    terminal, other = os.openpty()
    subprocess.run([sys.executable, "-c", code], stderr=other, check=True, timeout=60)
    os.close(other)
    assert re.search(r"A leads, 2 left, \d+ of 40 items left", received(terminal))
