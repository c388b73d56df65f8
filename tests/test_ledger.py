"""Many accept/reject decisions with one error rate (extensions L1, L2)."""

import hashlib
import itertools
import json
import math
import os
import random
import signal
import sqlite3
import subprocess
import sys
from functools import partial

import pytest

import truearm as ta
from entry import commit, git, truearm, wait_for
from truearm.claims.gates import weight
from truearm.ledger import read_ledger
from truearm.store import StoreError


def verify_ledger(path):
    return read_ledger(path).gates


def test_weights_are_at_most_one_in_all():
    for expected in (1, 10, 200):
        total = sum(weight(number, expected) for number in range(1, 100_000))
        rest = 0.5 * 0.47 / math.log(100_000 - expected)  # integral of 0.47 / (n ln^2 n) from there on
        assert 0.5 < total < total + rest <= 1


def test_levels_follow_the_verdicts(tmp_path):
    one, other = random.Random(5), random.Random(6)  # the order inside a round is drawn by the system
    with ta.Ledger(tmp_path / "loop.db", expected=10) as ledger:
        for number, gain in enumerate((0, 3, 0, 3)):
            better, base = partial(one.gauss, 10 - gain, 1), partial(other.gauss, 10, 1)
            ledger.accept(f"try-{number}", better, base, goal="min", max_pulls=120)
        verdicts = [gate.verdict for gate in ledger.gates]
        assert verdicts == ["undecided", "accepted", "undecided", "accepted"]
        assert [gate.level for gate in ledger.gates] == pytest.approx([0.0025, 0.0025, 0.005, 0.005])
        assert all(gate.accepted == (gate.log_evidence >= -math.log(gate.level)) for gate in ledger.gates)
    assert (len(ledger.gates), ledger.spent) == (4, pytest.approx(4 * 0.0025))  # after the file was closed too
    with ta.Ledger(tmp_path / "good.db", expected=5, delta=0.5) as ledger:  # gate 6 had a level of 0.73
        gates = [ledger.accept(str(n), lambda: 9.0, lambda: 10.0, goal="min") for n in range(6)]
        assert (gates[-1].level, gates[-1].verdict) == (0.49, "accepted")


@pytest.mark.parametrize("then", ["", "another ledger"])
def test_a_ledger_whose_file_is_gone_opens_no_gate(tmp_path, then):
    with ta.Ledger(tmp_path / "l.db", expected=5) as ledger:
        ledger.accept("a", lambda: 9.0, lambda: 10.0, goal="min")
        for file in tmp_path.iterdir():
            file.unlink()
    if then:
        ta.Ledger(tmp_path / "l.db", expected=5).close()
    with pytest.raises(StoreError, match=r"unable to open|was replaced"):
        ledger.accept("b", lambda: 9.0, lambda: 10.0, goal="min")
    assert (tmp_path / "l.db").exists() == bool(then)


@pytest.mark.parametrize(("cost", "verdict"), [(9.0, "accepted"), (9.9, "undecided"), (11.0, "not better")])
def test_a_tolerance_asks_for_more_than_a_little(tmp_path, cost, verdict):
    draw = random.Random(2)
    with ta.Ledger(tmp_path / "loop.db", expected=5) as ledger:
        new, base = partial(draw.gauss, cost, 0.1), partial(draw.gauss, 10, 0.1)
        gate = ledger.accept("new", new, base, goal="min", tolerance="1%", max_pulls=100)
    said = {"accepted": "Accepted: new is better", "undecided": "Not accepted: new was not shown to be better"}
    assert (gate.verdict, str(gate).startswith(said.get(verdict, "Not accepted: new is certified"))) == (
        verdict,
        True,
    )


def test_a_ledger_continues_with_its_own_settings_only(tmp_path):
    path = tmp_path / "loop.db"
    with ta.Ledger(path, expected=7) as ledger:
        ledger.open("a", {})
    with ta.Ledger(path, expected=7) as ledger:
        assert [gate.verdict for gate in ledger.gates] == ["open"]
    with pytest.raises(ta.InvalidArgument, match="expected=7"):
        ta.Ledger(path, expected=8)
    with pytest.raises(ta.InvalidArgument, match="error_rate must be"):
        ta.Ledger(tmp_path / "other.db", error_rate="fwer")


def test_a_failed_measurement_closes_its_gate(tmp_path):
    def fail():
        msg = "broken"
        raise ValueError(msg)

    with ta.Ledger(tmp_path / "loop.db") as ledger:
        with pytest.raises(ta.ArmFailed, match="broken"):
            ledger.accept("breaks", fail, lambda: 1.0)
        [gate] = ledger.gates
        assert gate.verdict == "undecided"


def test_scores_on_items_are_accepted_in_a_new_order_for_each_gate(tmp_path):
    seen = []

    def better(item):
        seen.append(item)
        return item % 10 != 0

    with ta.Ledger(tmp_path / "loop.db", expected=10) as ledger:
        first = ledger.accept_scores("better", better, lambda item: item % 3 != 0, range(600), workers=1)
        again = ledger.accept_scores("same", better, better, range(40), goal="min")
        worse = ledger.accept_scores("worse", lambda _: 0.0, lambda _: 4.0, range(99), score_range=(0, 5))
        for candidate, items, said in ((better, [], "items must hold"), (3, [1], "candidate must be a function")):
            with pytest.raises(ta.InvalidArgument, match=said):
                ledger.accept_scores("none", candidate, better, items)
        for how in ({"workers": 0}, {"max_items": 0}, {"on_error": "go"}, {"name": "base"}):  # nothing is spent
            with pytest.raises(ta.InvalidArgument, match=f"^{next(iter(how))} must be"):
                ledger.accept_scores(**{"name": "n", "candidate": better, "base": better, "items": [1], **how})
        assert [gate.verdict for gate in ledger.gates] == ["accepted", "undecided", "not better"]
        assert [gate.level for gate in ledger.gates] == pytest.approx([0.0025, 0.005, 0.005])
        for bad in (5, ta.analyze({"A": [1.0], "B": [2.0]})):
            with pytest.raises(ta.InvalidArgument, match="result must compare 'x' with 'base'"):
                ledger.record(ledger.open("x"), bad)
    for path in (5, "x" * 5000):
        with pytest.raises(ta.InvalidArgument, match="cannot be a file"):
            ta.Ledger(path)
    assert first.result.items.scored < first.result.items.all == 600
    assert first.log_evidence >= first.log_bar == -math.log(0.0025)
    assert (again.log_evidence, worse.result.best) == (0.0, "base")
    assert seen[:20] != sorted(seen[:20])


def ledger_with_gates(path, **settings):
    draw = random.Random(1)
    with ta.Ledger(path, expected=10, **settings) as ledger:
        for name, cost in (("better", 7), ("worse", 13)):
            ledger.accept(name, lambda c=cost: draw.gauss(c, 1), lambda: draw.gauss(10, 1), goal="min")
        ledger.open("dies", details={"command": "./new"})
        ledger.accept("again", lambda: draw.gauss(10, 1), lambda: draw.gauss(10, 1), max_pulls=20)
    return path


def edit(path, statement, *values):
    with sqlite3.connect(path) as file:
        file.execute("PRAGMA synchronous = OFF")
        file.execute("DROP TRIGGER IF EXISTS truearm_no_update")
        file.execute("DROP TRIGGER IF EXISTS truearm_no_delete")
        file.execute(statement, values)
    file.close()


def test_a_change_of_any_field_of_any_row_is_found(tmp_path):
    path = ledger_with_gates(tmp_path / "loop.db")
    assert [gate.verdict for gate in verify_ledger(path)] == ["accepted", "not better", "open", "undecided"]
    changes = {"position": 99, "study": "x", "kind": "told", "ticket": 7, "arm": "x", "draw": 1, "value": "9.5"}
    changes |= {"notes": "{}", "digest": b"x", "worker": "x", "at": 1.0}
    with sqlite3.connect(path) as file:
        assert {row[1] for row in file.execute("PRAGMA table_info(truearm_event)")} == set(changes)
        rows = file.execute("SELECT position FROM truearm_event").fetchall()
    copy = tmp_path / "copy.db"
    for (position,), (column, value) in itertools.product(rows, changes.items()):
        if position == 0 and column not in ("notes", "digest", "study", "position"):
            continue  # its other columns hold nothing
        copy.write_bytes(path.read_bytes())
        edit(copy, f"UPDATE truearm_event SET {column} = ? WHERE position = ?", value, position)
        if (position, column) != (rows[-1][0], "study"):  # without it the ledger is what it was before
            with pytest.raises(ta.VerificationError):
                assert not verify_ledger(copy), (column, position)


@pytest.mark.parametrize(
    ("row", "column", "forged"),
    [
        (1, "value", "0.5"),  # a larger level
        (3, "ticket", 5),
        (4, "notes", ('"not better"', '"accepted"')),
        (2, "value", "1.0"),  # accepted without the evidence
        (6, "kind", "issued"),
        (6, "notes", "[]"),
        (0, "notes", ("0.05", "0.5")),
    ],
)
def test_rows_whose_digests_were_recomputed_must_follow_from_each_other(tmp_path, row, column, forged):
    path = ledger_with_gates(tmp_path / "loop.db")
    head = read_ledger(path).head
    with sqlite3.connect(path) as file:
        [(old,)] = file.execute(f"SELECT {column} FROM truearm_event WHERE position = ?", (row,))
    new = old.replace(*forged) if isinstance(forged, tuple) else forged
    edit(path, f"UPDATE truearm_event SET {column} = ? WHERE position = ?", new, row)
    with sqlite3.connect(path) as file:  # the chain as docs/certificate.md says
        rows = file.execute("SELECT position, kind, ticket, arm, draw, value, notes FROM truearm_event").fetchall()
    digest = b""
    for position, *columns in rows:
        text = "\0".join("" if x is None else str(x) for x in (position, *columns))
        digest = hashlib.sha256(digest + text.encode()).digest()
        if position == 0:
            digest = hashlib.sha256(b"truearm log 3\0" + columns[-1].encode()).digest()
        edit(path, "UPDATE truearm_event SET digest = ? WHERE position = ?", digest, position)
    with pytest.raises(ta.VerificationError, match="does not follow"):
        verify_ledger(path)
    with pytest.raises(ta.VerificationError):
        read_ledger(path, head)


def test_a_shortened_ledger_was_never_at_the_head_that_was_noted(tmp_path):
    path = ledger_with_gates(tmp_path / "loop.db")
    head = read_ledger(path).head
    edit(path, "DELETE FROM truearm_event WHERE position = 7")
    assert [gate.verdict for gate in verify_ledger(path)][-1] == "open"
    with pytest.raises(ta.VerificationError, match="was never at"):
        read_ledger(path, head)
    with pytest.raises(ta.InvalidArgument, match="holds no ledger"):
        verify_ledger(tmp_path / "none.db")
    (tmp_path / "text.db").write_text("site,ms")
    with pytest.raises(ta.InvalidArgument, match="is not a ledger"):
        verify_ledger(tmp_path / "text.db")


def test_several_processes_and_threads_share_one_ledger(tmp_path):
    code = (
        "import sys, random, truearm as ta\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "draw = random.Random(sys.argv[2])\n"
        "with ta.Ledger(sys.argv[1], expected=8) as ledger, ThreadPoolExecutor(2) as pool:\n"
        "    pull, base = (lambda: draw.gauss(7, 1)), (lambda: draw.gauss(10, 1))\n"
        "    names = [f'{sys.argv[2]}-{i}' for i in range(4)]\n"
        "    list(pool.map(lambda name: ledger.accept(name, pull, base, goal='min'), names))\n"
    )
    path = tmp_path / "loop.db"
    running = [subprocess.Popen([sys.executable, "-c", code, path, str(i)], env=os.environ) for i in range(2)]
    assert [process.wait(timeout=120) for process in running] == [0, 0]
    gates = verify_ledger(path)
    assert [gate.number for gate in gates] == [*range(1, 9)]
    assert {gate.name for gate in gates} == {f"{i}-{j}" for i in range(2) for j in range(4)}
    assert all(gate.accepted for gate in gates)
    assert gates[-1].level > gates[0].level == pytest.approx(0.05 / 16)


QUICK, SLOW = "sh -c 'sleep 0.001'", "sh -c 'sleep 0.02'"


def race(folder, base, candidate, *more):
    words = ("race", "--ledger", folder / "loop.db", "--base", "old", "-n", "old", base, "-n", "new", candidate)
    return truearm(*words, *more, cwd=folder)


def test_a_race_is_a_gate(tmp_path):
    ended = race(tmp_path, SLOW, QUICK, "--expected", "4", "--export-json", tmp_path / "race.json")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("Accepted: new is better than old. Gate 1: evidence ")
    worse = race(tmp_path, QUICK, SLOW, "--json")
    assert worse.returncode == 1
    assert json.loads(worse.stdout)["gate"]["verdict"] == "not better"
    open_one = race(tmp_path, SLOW, QUICK, "-M", "3", "--tolerance", "2%")
    assert open_one.returncode == 3
    assert "Not accepted: new was not shown to be better than old by more than 2%. Gate 3" in open_one.stdout
    failed = race(tmp_path, QUICK, "false")
    assert (failed.returncode, failed.stdout) == (2, "")
    assert "command 'false' (new) ended with" in failed.stderr
    assert "Gate 4 was open: it is spent, and nothing is accepted." in failed.stderr
    assert "is not a truearm log but a ledger" in truearm("report", tmp_path / "loop.db").stderr
    gates = verify_ledger(tmp_path / "loop.db")
    assert [gate.verdict for gate in gates] == ["accepted", "not better", "undecided", "undecided"]
    assert [gate.level for gate in gates] == pytest.approx([0.00625, 0.0125, 0.0125, 0.0125])
    kept = json.loads((tmp_path / "race.json").read_text())
    assert gates[0].details["readings"] == kept["certificate"]["digest"]
    commands = gates[0].details["commands"]
    assert commands["old"]["command"] == SLOW
    assert len(commands["new"]["sha256"]) == 64


def test_what_a_gate_cannot_be_asked(tmp_path):
    for more, message in (
        (("--delta", "0.1"), "remove --delta"),
        (("--save", tmp_path / "r.db", "--seed", "1"), "remove --seed and --save"),
        (("--metrics", "json"), "remove --metrics"),
        (("--fail-if-worse-than", "old"), "remove --fail-if-worse-than"),
        (("-n", "third", "true"), "open a gate for each candidate"),
        (("--base", "oldest"), "'oldest' is not in this race"),
    ):
        ended = race(tmp_path, "true", "true", *more)
        assert ended.returncode == 2
        assert message in " ".join(ended.stderr.split())
    assert "--ledger goes with --base" in truearm("race", "--ledger", tmp_path / "loop.db", "true", "false").stderr
    assert "goes with --ledger" in truearm("race", "--base", "true", "true", "false").stderr
    assert not (tmp_path / "loop.db").exists()  # nothing was spent
    assert race(tmp_path, SLOW, QUICK, "-M", "2").returncode == 3
    assert "is a ledger with" in race(tmp_path, "true", "true", "--expected", "7").stderr
    assert len(verify_ledger(tmp_path / "loop.db")) == 1


def test_revisions_are_accepted_by_name(tmp_path):
    for seconds in ("0.02", "0.001"):
        commit(tmp_path, f"v{seconds}", bench=f"#!/bin/sh\nsleep {seconds}\n")
    revisions = ("--rev", "HEAD~1", "--rev", "HEAD", "--base", "HEAD~1")
    ended = truearm("race", "--ledger", tmp_path / "loop.db", *revisions, "-q", "--", "./bench", cwd=tmp_path)
    assert ended.returncode == 0
    assert ended.stdout.startswith("Accepted: HEAD is better than HEAD~1.")
    [gate] = verify_ledger(tmp_path / "loop.db")
    assert gate.details["commands"]["HEAD"]["commit"] == git(tmp_path, "rev-parse", "HEAD")
    assert len({command["sha256"] for command in gate.details["commands"].values()}) == 2


def test_a_race_killed_in_its_first_run_leaves_an_open_gate(tmp_path):
    words = ("race", "--ledger", tmp_path / "loop.db", "--base", "old", "-n", "old", "touch began; sleep 60")
    process = subprocess.Popen(
        [sys.executable, "-m", "truearm", *words, "-n", "new", "touch began; sleep 61"],
        cwd=tmp_path,
        env=os.environ,
        start_new_session=True,
    )
    assert wait_for((tmp_path / "began").exists, 60)
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait(timeout=60) == -signal.SIGKILL
    [gate] = verify_ledger(tmp_path / "loop.db")
    assert (gate.name, gate.verdict, gate.accepted) == ("new", "open", False)
    assert race(tmp_path, SLOW, QUICK).returncode == 0
    assert [gate.number for gate in verify_ledger(tmp_path / "loop.db")] == [1, 2]


def test_the_ledger_verb_shows_gates_and_what_is_guaranteed(tmp_path):
    path = ledger_with_gates(tmp_path / "loop.db")
    shown = truearm("ledger", path)
    assert (shown.returncode, shown.stderr) == (0, "")
    text = " ".join(shown.stdout.split())
    assert "4 gates: 1 accepted, 1 not better, 1 undecided, 1 open." in text
    assert "the expected share that is not better than its base is at most 5%, whenever the loop stops" in text
    assert "1% of 5% is spent; the next gate needs evidence of 200." in text
    assert "better 1 base 400" in text
    assert max(map(len, truearm("ledger", path, env={"COLUMNS": "80"}).stdout.splitlines())) <= 80
    plain = json.loads(truearm("ledger", path, "--json").stdout)
    assert [gate["verdict"] for gate in plain["gates"]] == ["accepted", "not better", "open", "undecided"]
    assert (plain["spent"], plain["next_level"]) == (pytest.approx(0.01), pytest.approx(0.005))
    page = tmp_path / "loop.html"
    assert truearm("ledger", path, "--export-html", page).stdout == ""
    drawn = page.read_text(encoding="utf-8")
    assert drawn.count('<span class="state">accepted</span>') == 1
    assert "4 gates: 1 accepted" in drawn
    either = ledger_with_gates(tmp_path / "any.db", error_rate="any")
    assert "any accepted candidate is not better than its base is at most 5%" in truearm("ledger", either).words
    with ta.Ledger(tmp_path / "new.db"):
        pass
    assert truearm("ledger", tmp_path / "new.db", "--export-html", page).returncode == 0
    assert truearm("ledger", tmp_path / "new.db").stdout.startswith("No gate was opened.")


def test_verify_recomputes_a_ledger(tmp_path):
    path = ledger_with_gates(tmp_path / "loop.db")
    good = truearm("verify", path)
    assert good.returncode == 0
    assert "4 gates" in good.stdout
    head = read_ledger(path).head
    assert json.loads(truearm("verify", path, "--head", head, "--json").stdout)["head"] == head
    assert truearm("verify", path, "--head", "0" * 64).returncode == 1
    edit(path, "UPDATE truearm_event SET value = '9' WHERE position = 3")
    assert truearm("verify", path).returncode == 1
    assert "was changed" in truearm("ledger", path).stderr
