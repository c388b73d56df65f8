"""Python code timed side by side: the right order, fresh processes, and errors in words."""

import random
from time import sleep

import pytest

import truearm as ta
from truearm.commands.python import FreshTimer, LocalTimer, make_timers
from truearm.errors import CommandFailed, InvalidArgument


def test_the_faster_statement_is_found_and_verified():
    found = ta.time(
        {"built in": "sum(x)", "loop": "t = 0\nfor v in x: t += v"}, setup="x = range(300)", contamination=0
    )
    assert found.best == "built in"
    assert found.problem.rounds
    assert str(found).startswith("built in is fastest: ")
    assert ta.verify(found)


def test_functions_made_here_are_timed_here_and_the_result_says_so():
    found = ta.time({"short": lambda: sum(range(10)), "long": lambda: sum(range(1000))}, progress=False)
    assert found.best == "short"
    assert found.conditions["process"] == "shared"
    assert "Timed in one process" in str(found)
    assert ta.verify(found)
    assert type(make_timers({"a": lambda: None, "b": list})["b"]) is LocalTimer
    assert {type(code) for code in make_timers({"a": random.SystemRandom, "b": list}).values()} == {FreshTimer}


def test_how_it_was_timed_survives_json():
    found = ta.time({"a": "sum(x)", "b": "max(x)"}, setup="x = range(9)", runs=3, progress=False)
    again = type(found).from_dict(found.to_dict(readings=True))
    loops = found.conditions["loops"]
    assert again.conditions == found.conditions == {"process": "fresh", "loops": loops, "order": "drawn"}
    assert "one process" not in str(found)
    assert set(found.pulls.values()) == {3}


def test_code_alone_is_timed_until_its_median_is_as_precise_as_asked():
    found = ta.time({"nap": lambda: sleep(0.001)}, tolerance="50%", progress=False)
    [arm] = found.arms
    assert (found.status.value, found.best) == ("certified", "nap")
    assert 0.5 * arm.observed <= arm.low <= arm.high <= 1.5 * arm.observed
    assert ta.verify(found)
    short = ta.time({"nap": lambda: sleep(0.001)}, tolerance="1e-9%", max_seconds=1, progress=False)
    assert (short.status.value, short.best) == ("exhausted", None)
    with pytest.raises(
        InvalidArgument, match="tolerance='5%' takes as many runs as it needs, but runs=5 is given"
    ):
        ta.time({"nap": lambda: sleep(0.001)}, tolerance="5%", runs=5)


def test_code_alone_is_timed_as_often_as_there_is_time_for():
    found = ta.time({"nap": "sleep(0.1)"}, setup="from time import sleep", max_seconds=1)
    assert 1 <= found.total < 30, "30 are made where there is time for them"


def test_each_reading_is_a_process_with_a_hash_seed_of_its_own(tmp_path, monkeypatch):
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    file = tmp_path / "seeds"
    code = FreshTimer(
        text="print(7, flush=True)", setup=f"open({str(file)!r}, 'a').write(f'{{hash(\"x\")}}\\n')", loops=1
    )
    for _ in range(3):
        assert code() >= 0
    assert len(set(file.read_text().split())) == 3


@pytest.mark.parametrize(
    ("codes", "setup", "error", "says"),
    [
        ({}, None, InvalidArgument, "codes must map names"),
        ({"a": "1 +", "b": "1"}, None, InvalidArgument, "statement '1 \\+' is not Python"),
        (
            {"a": "x", "b": "1"},
            None,
            CommandFailed,
            "^statement 'x' failed: NameError: name 'x' is not defined; define it: setup='x = ...' or 'import x'$",
        ),
        ({"a": "x"}, "x = 1\nimport nope", CommandFailed, r"^setup 'x = 1\\nimport nope' failed: ModuleNotFound"),
        ({"a": "f()"}, "def f(): return {}[1]", CommandFailed, r"^statement 'f\(\)' failed: KeyError: 1$"),
        ({"a": "raise SystemExit"}, None, CommandFailed, "^statement 'raise SystemExit' failed: SystemExit"),
        ({"a": "import os; os._exit(3)"}, None, CommandFailed, "failed: the process ended with exit code 3$"),
        ({"a": 3, "b": "1"}, None, InvalidArgument, "must be a statement or a function"),
        ({"a": list, "b": "1"}, "x = 1", InvalidArgument, "setup goes with statements"),
        ({"a": lambda: 1, "b": "1"}, None, InvalidArgument, "is a statement, but another code is a function"),
    ],
)
def test_invalid_code_is_refused(codes, setup, error, says):
    with pytest.raises(error, match=says):
        ta.time(codes, setup=setup)
