"""What is said is said in the words of the door that was used: options or arguments, readings with their unit."""

import random

import pytest
from click.testing import CliRunner

import truearm as ta
from truearm.claims.certificate import Status, Verdict
from truearm.claims.certify import certify
from truearm.cli import main
from truearm.cli.answer import Screen
from truearm.errors import InvalidArgument
from truearm.problem import Problem
from truearm.report.numbers import TIMES
from truearm.report.pages import page
from truearm.report.tables import table
from truearm.report.words import summarize, voice_for
from truearm.run import find_best


def run(*words):
    ended = CliRunner().invoke(main, [str(word) for word in words])
    return ended.exit_code, " ".join(ended.output.split())


@pytest.fixture
def rows():
    draw = random.Random(5)
    return [(arm, draw.gauss(mean, 1)) for _ in range(60) for arm, mean in (("a", 10), ("b", 14))]


@pytest.fixture
def file(tmp_path, rows):
    path = tmp_path / "data.csv"
    path.write_text("variant,ms\n" + "".join(f"{arm},{x:.4f}\n" for arm, x in rows))
    return path


LONG = ("--arm", "variant", "--value", "ms")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"control": "zz"}, "control must name an arm, but got 'zz'"),
        ({"between": (5, 1)}, r"between must be two increasing numbers, but got \(5, 1\)"),
        ({"at_most": 3, "goal": "min"}, "remove goal"),
        ({"value": "MS"}, "value='MS' is not a column; did you mean 'ms'?"),
        ({"arm": "ms"}, "value='ms' is the column of the arms"),
        ({"contamination": 0.6}, r"contamination must be in \[0, 0.5\), but got 0.6"),
    ],
)
def test_python_hears_of_its_arguments(rows, arguments, said):
    frame = {"variant": [arm for arm, _ in rows], "ms": [x for _, x in rows]}
    with pytest.raises(InvalidArgument, match=said.replace("?", r"\?")):
        ta.analyze(frame, **{"arm": "variant", "value": "ms", **arguments})


def test_what_an_alarm_advises_can_be_typed_where_it_is_read(tmp_path):
    draw = random.Random(3)
    passed = [(arm, int(draw.random() < share)) for _ in range(200) for arm, share in (("a", 0.1), ("b", 0.35))]
    path = tmp_path / "passed.csv"
    path.write_text("variant,passed\n" + "".join(f"{arm},{x}\n" for arm, x in passed))
    _, output = run("analyze", path, "--arm", "variant", "--value", "passed")
    assert "decides (--at-least 1)." in " ".join(output.split())
    assert "at_least" not in output
    told = str(ta.analyze({"v": [arm for arm, _ in passed], "x": [x for _, x in passed]}, arm="v", value="x"))
    assert "decides (at_least=1)." in told
    assert "--" not in told


def test_an_option_is_not_broken_at_its_hyphens():
    words = "The share of readings at least 1 decides, and nothing else does: --at-least 1."
    assert all("--at-least" in Screen(width).wrap(words) for width in range(40, 100))


def test_readings_of_a_service_are_found_by_their_name(tmp_path):
    path = tmp_path / "readings.csv"
    path.write_text(
        "ticket,arm,draw,value,worker,at\n" + "".join(f"{i},A,{i},{3.5 + i},w,{9.25 * i}\n" for i in range(9))
    )
    _, output = run("analyze", path)
    assert "name the columns: --arm 'arm' --value 'value'" in output
    assert "--round" not in output
    path.write_text("run_id,variant,price\n" + "".join(f"{7 * i},A,{3.5 + i}\n" for i in range(9)))
    assert "--arm 'variant' --value 'price'" in run("analyze", path)[1]


def test_arms_with_too_few_readings_are_told_in_one_sentence(tmp_path):
    path = tmp_path / "single.csv"
    path.write_text("variant,ms\na,1\nb,2\nc,3\n")
    assert "a and b have 1 reading each: too few to decide anything." in run("analyze", path, *LONG)[1]
    path.write_text("variant,ms\na,1\nb,2\nc,3\nb,2.5\n")
    assert "a and b have 2 readings or less: too few to decide anything" in run("analyze", path, *LONG)[1]


def test_one_missing_value_counts_at_its_worst(file):
    file.write_text(file.read_text() + "a,\n")
    assert "1 missing value counts at its worst (a 1)." in run("analyze", file, *LONG)[1]


def undecided(**more):
    tapes = {"sort a": [0.0125, 0.013, 0.0131], "sort b": [0.0126, 0.0129, 0.0135]}
    problem = Problem(arms=tuple(tapes), goal="min", **more)
    return certify(problem, tapes, Verdict(status=Status.EXHAUSTED, candidates=problem.arms))


def test_readings_inside_sentences_bear_their_unit():
    result = undecided(rounds=True)
    told = summarize(result, voice=voice_for(result, "wall", TIMES[1]))
    assert "looks best (13 ms)" in told or "looks best (12.9 ms)" in told
    assert "Readings are in" not in told
    assert "arm" not in told


def test_a_saved_study_of_people_has_no_commands_and_no_runs(tmp_path):
    log = tmp_path / "tasting.db"
    find_best({"x": lambda: 7.0, "y": lambda: 5.0}, max_pulls=2, store=log, progress=False)
    _, output = run("report", log)
    assert "2 readings." in output
    assert "arm readings median" in output
    assert "command" not in output
    assert "run" not in output


def test_a_page_before_its_first_reading_says_so():
    study = ta.Study(["A", "B"])
    study.ask()
    study.stop()
    shown = page(study.result, study.readings)
    assert "There are no readings yet." in shown
    assert "estimator" not in shown
    assert "1 pulls" not in shown


def test_a_table_fits_with_long_names_at_both_ends():
    long = "a name of an arm that goes on and on and on and on"
    lines = [("arm", "n", "standing"), ("A", "10", f"excluded by {long}"), (long, "10", "best")]
    shown = table(lines, 60).split("\n")
    assert max(map(len, shown)) <= 60
    assert "excluded by a name" in shown[1]


def test_a_narrow_table_goes_without_what_is_missed_least():
    heading = ("arm", "readings", "median", "true median", "MAD", "standing")
    line = ("it is red", "200", "9.942", "9.49 to 10.43", "0.884", "excluded by blue")
    widths = {52: "arm median true median standing", 60: "arm readings median true median standing"}
    for width, titles in widths.items():
        shown = table([heading, line], width).split("\n")
        assert " ".join(shown[0].split()) == titles
        assert max(map(len, shown)) <= width
    assert "MAD" in table([heading, line])
