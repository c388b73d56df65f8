"""Python code timed side by side: the right order, fresh processes, and errors in words."""

import random
import warnings

import pytest

import truearm as ta
from truearm.errors import CommandFailed, InvalidArgument
from truearm.world.timing import Timed, TimedHere, timed


def test_the_faster_statement_is_found_and_verified():
    found = ta.time({"built in": "sum(x)", "loop": "t = 0\nfor v in x: t += v"}, setup="x = range(300)")
    assert found.best == "built in"
    assert found.problem.rounds
    assert ta.verify(found)


def test_functions_that_can_be_imported_run_in_processes_of_their_own():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert {type(code) for code in timed({"a": random.SystemRandom, "b": list}).values()} == {Timed}


def test_functions_made_here_are_timed_here_with_a_warning():
    with pytest.warns(UserWarning, match="timed in this process"):
        found = ta.time({"short": lambda: sum(range(10)), "long": lambda: sum(range(1000))}, progress=False)
    assert found.best == "short"
    assert type(timed({"a": lambda: None, "b": list})["b"]) is TimedHere


def test_each_reading_is_a_process_with_a_hash_seed_of_its_own(tmp_path, monkeypatch):
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    file = tmp_path / "seeds"
    code = Timed(text="pass", setup=f"open({str(file)!r}, 'a').write(f'{{hash(\"x\")}}\\n')", loops=1)
    for _ in range(3):
        assert code() >= 0
    assert len(set(file.read_text().split())) == 3


@pytest.mark.parametrize(
    ("codes", "setup", "error", "says"),
    [
        ({"a": "1"}, None, InvalidArgument, "two names or more"),
        ({"a": "1 +", "b": "1"}, None, InvalidArgument, "statement '1 \\+' is not Python"),
        ({"a": "x", "b": "1"}, None, CommandFailed, "(?s)'x' failed, timed in a process of its own.*NameError"),
        ({"a": 3, "b": "1"}, None, InvalidArgument, "must be a statement or a function"),
        ({"a": list, "b": "1"}, "x = 1", InvalidArgument, "setup goes with statements"),
        ({"a": lambda: 1, "b": "1"}, None, InvalidArgument, "is a statement, but another code is a function"),
    ],
)
def test_what_cannot_be_timed_is_said_in_words(codes, setup, error, says):
    with pytest.raises(error, match=says):
        ta.time(codes, setup=setup)
