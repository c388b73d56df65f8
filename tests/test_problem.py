import dataclasses
import math
import re

import numpy as np
import pytest

import truearm as ta
from truearm.errors import InvalidArgument
from truearm.problem import (
    Adversary,
    Contamination,
    Handicap,
    Problem,
    Regularity,
    Tolerance,
    check_count,
    check_delta,
    check_eps,
    check_positive,
    check_quantile,
    check_reach,
)


def check_b(value):
    return check_positive("B", value)


BAD = [
    (check_eps, (-0.1, 0.5, 0.7, math.nan, math.inf)),
    (check_delta, (0, 1, -1, math.nan)),
    (check_quantile, (0, 1, 95, math.nan)),
    (check_reach, (0, 0.5, math.nan)),
    (check_b, (0, -2, math.inf, math.nan)),
]


@pytest.mark.parametrize(("check", "bad"), BAD)
def test_a_value_out_of_range_is_named(check, bad):
    for value in bad:
        with pytest.raises(InvalidArgument, match=rf"^(\w+) must be .*but got {value!r}"):
            check(value)
    for value in (None, "0.1", True, [0.1], np.array([0.1, 0.2]), 1j):
        with pytest.raises(InvalidArgument, match=r"must be a number, but got .*; (give|use|0\.5)"):
            check(value)


@pytest.mark.parametrize("value", [1.0, True, "3", None, -1, np.float64(2)])
def test_a_count_is_a_whole_number(value):
    with pytest.raises(InvalidArgument, match="n must be an integer not less than 0, but got"):
        check_count("n", value, 0)


@pytest.mark.parametrize("causal", [False, np.False_, 0])
def test_an_oblivious_adversary_cannot_see_the_future(causal):
    with pytest.raises(InvalidArgument, match=r"causal=False contradicts .* use 'prescient'"):
        Contamination(0.1, "oblivious", causal)


def test_what_a_contamination_argument_takes():
    declared = Contamination(0.1, "malicious")
    assert Contamination.of(declared) is declared
    assert Contamination.of(np.float32(0.25)) == Contamination(0.25)
    assert Contamination.of(0) == Contamination(0.0, Adversary.OBLIVIOUS, None)
    with pytest.raises(InvalidArgument, match="contamination must be a number, but got '10%'"):
        Contamination.of("10%")


@pytest.mark.parametrize(
    ("value", "amount", "relative"),
    [
        (0, 0.0, False),
        (np.float32(0.5), 0.5, False),
        (" 2.5 % ", 0.025, True),
        ("0.3", 0.3, False),
        ("1e3", 1000.0, False),
        ("0%", 0.0, True),
        (Tolerance(0.2), 0.2, False),
    ],
)
def test_what_a_tolerance_argument_takes(value, amount, relative):
    found = Tolerance.of(value)
    assert (found.amount, found.relative) == (pytest.approx(amount), relative)
    assert type(found.amount) is float


@pytest.mark.parametrize(
    "value", ["", "%", "two", "2%%", "-1%", -0.5, math.nan, "nan", math.inf, "inf%", None, True, [1]]
)
def test_other_tolerances_are_refused(value):
    with pytest.raises(InvalidArgument, match=r"tolerance must be .*but got"):
        Tolerance.of(value)


def test_regularity_checks_each_field():
    good = {"B": np.float64(4), "m2": 1, "reach": 0.25}
    assert dataclasses.astuple(Regularity(**good)) == (4.0, 1.0, 0.25)
    for name in good:
        with pytest.raises(InvalidArgument, match=f"^{name} must be"):
            Regularity(**(good | {name: -1}))


ROUNDS = {"rounds": True}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"dependent_arms": "no"}, "^dependent_arms must"),
        ({"regularity": 3}, "^regularity must"),
        (ROUNDS | {"score_range": (0, math.inf)}, "^score_range must"),
        (ROUNDS | {"items": 2**70, "score_range": (0, 1)}, "^items must"),
        ({"rounds": "yes"}, "must be True or False"),
        (ROUNDS | {"quantile": 0.95}, "remove quantile or rounds"),
        (ROUNDS | {"at_least": 4}, "remove at_least or rounds"),
        (ROUNDS | {"at_most": 4}, "remove at_most or rounds"),
        (ROUNDS | {"regularity": Regularity(B=4, m2=1, reach=0.25)}, "remove regularity or rounds"),
        ({"at_least": 1, "at_most": 2}, "cannot be combined with at_least"),
        ({"at_least": 1, "quantile": 0.9}, "cannot be combined with at_least"),
        ({"at_least": 1, "goal": "min"}, "remove goal"),
        ({"at_least": math.inf}, "must be finite"),
        ({"at_most": "fast"}, "must be a number"),
        ({"at_most": 200, "tolerance": "2%"}, "in points"),
        ({"at_most": 200, "tolerance": 2.0}, "in points"),
        ({"at_most": 200, "handicap": Handicap("A", Tolerance(1.0))}, "cannot be combined with at_most"),
        *(({"between": ends}, "two increasing numbers") for ends in ((5, 1), (1, 1), (0, math.nan))),
        *(({"between": ends}, "must be two numbers") for ends in ((1,), "ab")),
        ({"between": ("a", "b")}, "between must be a number"),
    ],
)
def test_a_problem_refuses_what_it_cannot_use(options, words):
    with pytest.raises(InvalidArgument, match=words):
        Problem(arms=("A", "B"), **options)


def test_a_problem_reads_its_arguments():
    numbers = {"delta": np.float32(0.25), "contamination": np.float64(0.1), "quantile": np.float64(0.9)}
    problem = Problem(arms=["A", "B"], tolerance="2%", goal="min", **numbers)
    assert problem.arms == ("A", "B")
    assert (type(problem.delta), type(problem.quantile)) == (float, float)
    assert (problem.contamination, problem.tolerance) == (Contamination(0.1), Tolerance(0.02, relative=True))
    assert (problem.sign, problem.level) == (-1.0, pytest.approx(0.1))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: ta.Study(["A", "B"], gaol="min"), "gaol is an unexpected keyword argument; did you mean goal?"),
        (lambda: ta.find_best({"A": min}, max_pull=1), "did you mean max_pulls?"),
        (lambda: ta.find_best({"A": min}, missing="worst"), "missing readings always count at their worst"),
        (lambda: ta.analyze({"A": [1.0]}, tolerence=1), "did you mean tolerance?"),
        (lambda: ta.plan(contamnation=0.1), "did you mean contamination?"),
        (lambda: ta.find_best({"A": lambda: 1.0}, zebra=1), "the arguments of a problem are at_least, at_most"),
        (lambda: ta.suite({"a": [1]}, arm="a", round="a", reference="1", detla=1), "did you mean delta?"),
    ],
)
def test_a_keyword_that_does_not_exist_is_named_with_the_nearest_one(call, said):
    with pytest.raises(TypeError, match=re.escape(said)):
        call()
