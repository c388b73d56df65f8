"""Many accept/reject decisions with one error rate (extensions L1, L2)."""

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


def test_weights_are_at_most_one_in_all():
    from truearm.ledger import weight

    for expected in (1, 10, 200):
        total = sum(weight(number, expected) for number in range(1, 100_000))
        rest = 0.5 * 0.47 / math.log(100_000 - expected)  # integral of 0.47 / (n ln^2 n) from there on
        assert 0.5 < total < total + rest <= 1


def test_levels_follow_the_verdicts(tmp_path):
    draw = random.Random(5)
    with ta.Ledger(tmp_path / "loop.db", expected=10) as ledger:
        for number, gain in enumerate((0, 3, 0, 3)):
            ledger.accept(
                f"try-{number}",
                lambda g=gain: draw.gauss(10 - g, 1),
                lambda: draw.gauss(10, 1),
                goal="min",
                max_pulls=120,
            )
        verdicts = [gate.verdict for gate in ledger.gates]
        assert verdicts == ["undecided", "accepted", "undecided", "accepted"]
        assert [gate.level for gate in ledger.gates] == pytest.approx([0.0025, 0.0025, 0.005, 0.005])
        assert all(gate.accepted == (gate.log_evidence >= -math.log(gate.level)) for gate in ledger.gates)
        assert ledger.spent == pytest.approx(4 * 0.0025)


def test_without_false_acceptances_levels_stay(tmp_path):
    draw = random.Random(5)
    with ta.Ledger(tmp_path / "loop.db", error_rate="any", expected=10) as ledger:
        for number in range(3):
            ledger.accept(f"{number}", lambda: draw.gauss(7, 1), lambda: draw.gauss(10, 1), goal="min")
        assert [gate.level for gate in ledger.gates] == pytest.approx([0.0025] * 3)


@pytest.mark.parametrize(("cost", "verdict"), [(9.0, "accepted"), (9.9, "undecided"), (11.0, "not better")])
def test_a_tolerance_asks_for_more_than_a_little(tmp_path, cost, verdict):
    draw = random.Random(2)
    with ta.Ledger(tmp_path / "loop.db", expected=5) as ledger:
        gate = ledger.accept(
            "new",
            lambda: draw.gauss(cost, 0.1),
            lambda: draw.gauss(10, 0.1),
            goal="min",
            tolerance="1%",
            max_pulls=100,
        )
    assert gate.verdict == verdict


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


def test_a_killed_process_leaves_its_level_spent(tmp_path):
    code = (
        "import os, signal, truearm as ta\n"
        f"ledger = ta.Ledger({str(tmp_path / 'loop.db')!r}, expected=10)\n"
        "ledger.accept('dies', lambda: os.kill(os.getpid(), signal.SIGKILL), lambda: 1.0)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], check=False, timeout=60, env=os.environ)
    assert ended.returncode == -signal.SIGKILL
    with ta.Ledger(tmp_path / "loop.db", expected=10) as ledger:
        [gate] = ledger.gates
        assert (gate.name, gate.verdict, gate.level) == ("dies", "open", pytest.approx(0.0025))


@pytest.mark.parametrize("column", ["value", "arm", "notes"])
def test_a_changed_ledger_does_not_verify(tmp_path, column):
    path, draw = tmp_path / "loop.db", random.Random(1)
    with ta.Ledger(path, expected=10) as ledger:
        ledger.accept("new", lambda: draw.gauss(7, 1), lambda: draw.gauss(10, 1), goal="min")
    from truearm.ledger import verify_ledger

    assert [gate.verdict for gate in verify_ledger(path)] == ["accepted"]
    with sqlite3.connect(path) as file:
        file.execute("DROP TRIGGER truearm_no_update")
        changed = {"value": "'0.5'", "arm": "'other'", "notes": '\'{"verdict": "not better"}\''}[column]
        file.execute(f"UPDATE truearm_event SET {column} = {changed} WHERE kind IN ('opened', 'closed')")
    with pytest.raises(ta.VerificationError):
        verify_ledger(path)


@pytest.mark.statistical
def test_useless_proposals_are_rarely_accepted(tmp_path):
    # a proposer that adapts: it proposes again what looked good; 60 loops of 20, any acceptance in at most delta
    # named in more than 10 of 60 loops has a chance below 0.1% at 5%, and above 95% at 30%
    named = 0
    for loop in range(60):
        draw = random.Random(loop)
        with ta.Ledger(tmp_path / f"{loop}.db", error_rate="any", expected=20) as ledger:
            for number in range(20):
                pull = partial(draw.gauss, 0, 1)
                gate = ledger.accept(f"{number}", pull, pull, max_pulls=60)
                if gate.accepted:
                    named += 1
                    break
    assert named <= 10
