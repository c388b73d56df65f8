"""A wrong value of any argument of a public function ends in one sentence, or in an answer."""

import inspect
import math

import numpy as np
import pytest
from scipy import stats

import truearm as ta
from truearm import bounds, families, lab, lower_bounds
from truearm.errors import InvalidArgument, TruearmError
from truearm.evidence import Levels
from truearm.families import Shape
from truearm.policies.alone import Alone
from truearm.problem import check_arms

WRONG = ["x", None, math.nan, -1, [], [1, "a"], [[1], [1, 2]], np.array([0.1, 0.2]), np.zeros((2, 2)), {}, 10**400]
WRONG += [range(2**62), -np.ones(1)]
EXTREME = [5e-324, 10**300]  # in the range of floats, but not their squares; arms of the lab can be too many
LAW, LIFTING = families.gaussian(), lower_bounds.lifting(0.5, 0.05, "malicious", best=True)
TWO = {"A": float, "B": float}
PAIR = lab.instance("G2")
MAD = {"eps": 0, "B": 4, "m2": 1, "adversary": "malicious"}
GOOD = {  # values of all arguments that have no default
    **{"arms": [LAW], "eps": 0.05, "delta": 0.05, "B": 4.0, "m2": 0.25, "reach": 0.2, "adversary": "prescient"},
    **{"k": 3, "n": 1000, "gap": 0.5, "r": 2, "error": 0.2, "law": LAW, "q": 0.5, "p": 0.5, "p0": 0.4},
    **{"below": 0.2, "radius": 0.05, "t": 0.1, "median": 1.0, "mad": 0.2, "medians": [1.0, 2.0], "weight": 0.75},
    **{"biases": [0.1, 0.1], "bias_best": 0.1, "bias_selected": 0.1, "eta": 0.1, "tolerance": 0.01, "best": 0.5},
    **{"arm": LIFTING, "values": [1.0, 2.0], "weights": [1.0, 1.0], "frozen": LAW, "instance": PAIR},
    **{"shares": [0.5, 0.4], "slack": 0.01, "parameters": [0.5, 0.4], "kind": "uniform", "samples": {"a": [1.0]}},
    **{"name": "G2", "means": [0.5, 0.4], "distance": 1.0, "shape": "gaussian", "contamination": 0.05, "bad": 1},
    **{"spoils": "top", "laws": [LAW, families.gaussian(-1.0)], "levels": Levels(0.5, 0.5), "steps": 5, "s": 3},
    **{"rng": np.random.default_rng(1), "gaps": [0.1], "x": [1.0, 2.0, 3.0], "y": [0.0, 1.0, 2.0], "checked": 100},
}
INTERVALS = [ta.quality_curve, ta.mad_interval, ta.quantile_interval, ta.median_interval, ta.identification]
LAB_CLASSES = lab.Instance, lab.Mixture
UNCHECKED = {"play", "inner_levels", "amplified", "simulate"}  # parts of a run, and what takes a problem's options


def functions():
    for module in (bounds, lower_bounds, families, lab):
        names = {*getattr(module, "__all__", dir(module))} - UNCHECKED
        found = [getattr(module, name) for name in sorted(names) if not name.startswith("_")]
        prefix = module.__name__ if module is lower_bounds else "truearm"
        yield from (f for f in found if inspect.isfunction(f) and f.__module__.startswith(prefix))
    yield from (*INTERVALS, ta.is_better, ta.breakdown, ta.audit, ta.moments, ta.least_eps, *LAB_CLASSES)


@pytest.mark.parametrize("function", [*functions()], ids=lambda function: function.__name__)
def test_a_wrong_value_ends_in_one_sentence(function):
    parameters = inspect.signature(function).parameters
    needed = {name: GOOD[name] for name, p in parameters.items() if p.default is p.empty}
    for name in parameters:
        for wrong in WRONG + EXTREME * ("bounds" in function.__module__):
            message = ""
            try:
                function(**needed | {name: wrong})
            except TruearmError as error:
                message = str(error)
            assert "\n" not in message, (name, wrong)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ta.audit(3, 0).contamination, "check more readings"),
        (lambda: ta.Study(["A", "B"], contamination=ta.audit(100, 60)), "from 0.5 on nothing can be certified"),
        (lambda: ta.audit(3, 4), "bad must not be more than checked, but got 4 of 3"),
        (lambda: ta.audit([3, 4], [0, 0], arms=3), "one for each of 3 arms"),
        (lambda: ta.audit(3.5, 0), "checked must be an integer"),
        (lambda: ta.audit(3, 0, delta=2), "delta must be in"),
        (lambda: ta.least_eps([], [1.0]), "x must have at least one reading"),
        (lambda: ta.find_best({"A": 1.0}), "must be a function"),
        (lambda: ta.find_best({"A": [0] * 9, "B": float}), "got list; use truearm.analyze for readings"),
        (lambda: ta.find_best({}), "at least one arm"),
        (lambda: ta.find_best(TWO, on_error="retry"), "on_error must be 'stop' or 'missing'"),
        (lambda: ta.find_best(TWO, max_seconds=-1), "max_seconds must be"),
        (lambda: ta.find_best(TWO, policy="best"), "policy must be one of"),
        (lambda: ta.find_best(TWO, executor=4), "executor must be .*, such as ThreadPoolExecutor.4., but got 4"),
        (lambda: ta.plan(family="poisson"), "family must be one of gaussian"),
        (lambda: ta.plan(gap=0.0), "gap must be positive"),
        (lambda: ta.plan(gap=[1.0, 2.0]), "gap must be one number or 4"),
        (lambda: ta.plan(contamination=None), "contamination must be"),
        (lambda: ta.plan(contamination=5), "for 5 percent write 0.05"),
        (lambda: ta.plan(tolerance="2%"), "tolerance=2% is relative; a plan needs units of the readings"),
        (lambda: ta.plan(arms=1), "arms must be an integer not less than 2"),
        (lambda: ta.plan(pilot={"A": [1.0, 2.0]}), "at least two arms"),
        (lambda: ta.plan(pilot={"A": [1.0, 0.0]}, at_least=1), "at least two arms"),
        (lambda: ta.plan(rounds=True, score_range=(0, 1), contamination=0), "score_range is always None here"),
        (lambda: ta.plan(pilot={"A": [math.inf] * 3, "B": [1.0, 2.0]}), "of arm 'A' that is compared is infinite"),
        (lambda: ta.Study(["A", "B"], policy=Alone()), "one arm alone"),
        (lambda: check_arms("AB"), r"got 'AB'; write \['AB'\]"),
        (lambda: check_arms([]), "at least one arm"),
        (lambda: check_arms(["A", ""]), "non-empty strings, but got ''"),
        (lambda: check_arms(["A", 3]), r"got 3; use str\(name\)"),
        (lambda: check_arms(["A", "B", "A"]), "'A' appears twice"),
        (lambda: check_arms(3), "list of names, but got 3"),
        (lambda: check_arms(None), "list of names, but got None"),
        (lambda: families.gaussian(0, 0), "scale must be positive"),
        (lambda: families.uniform(1, 1), "low < high"),
        (lambda: families.discrete([1, 2], [1]), "equal lengths"),
        (lambda: families.discrete([1, 2], [1, -1]), "masses must be >= 0"),
        (lambda: families.empirical([]), "at least one finite"),
        (lambda: families.smoothed_bernoulli(1.2), "p must be in"),
        (lambda: families.of(stats.norm), "frozen scipy.stats"),
        (lambda: families.of(stats.zipf(1.5)), "truncate it yourself"),
        (lambda: LAW.affine(0.0), "abs"),
        (lambda: lab.instance("G3"), "one of G2, G2s"),
        (lambda: lab.howard_ramdas("normal"), "kind must be"),
        (lambda: lab.lifted([0.45, 0.6], 0.05), "begin with the largest"),
        (lambda: lab.malicious_extreme(0.1, 0.1), "slack must be"),
        (lambda: lab.Stationary(0.1, 0.0, "top"), "needs power='malicious'"),
        (lambda: lab.malicious(0.1, "upper", 0.0), "spoils must be"),
        (lambda: lab.Mixture(0.1, (LAW,), (0.5,)), "sum to 1"),
        (lambda: lab.Drifting(0.1, max).observed(LAW, 0), "not stationary"),
        (lambda: lab.simulate("toptwo", PAIR, engine="fast"), "engine must be"),
        (lambda: lab.simulate("toptwo", PAIR, executor=4), "executor must be one of concurrent.futures"),
        (lambda: lab.simulate("toptwo", PAIR, progress=True), "progress must be a function"),
        (lambda: lab.Tapes("G2", None, GOOD["rng"], 9), "instance must be an Instance"),
        (lambda: lab.Mixture(0.1, (LAW, LAW), (1.5, -0.5)), "sum to 1"),
        (lambda: ta.find_best({"A": float, "B": float}, workers="4"), "workers must be an integer"),
        (lambda: lab.limit(PAIR, tolerance="2%"), "absolute"),
        (lambda: lab.limit(PAIR, lab.Steering(0.1, best=0)), "not stationary"),
        (lambda: lab.bernoulli_limit([0.5, 1.0]), "means must be"),
        (lambda: lab.known_shape_limit(lab.instance("D2"), 0.1), "normal, Laplace or logistic"),
        (lambda: lab.least_favorable_kl(1.0, 0.1, Shape("cauchy")), "shape must be"),
        (lambda: lab.minimax_pulls(PAIR, None, 0.05), "contamination must be"),
        (lambda: bounds.mad_sample_size(1, 0.1, **MAD, constants="paper"), "kappa must be given"),
        (lambda: bounds.mad_error(9, 0.1, **MAD | {"B": 1e200}), "n=9 is below the threshold"),
        (lambda: bounds.elimination_constant(0, 5e-324, "malicious"), "reach must be at least 1e-09"),
        (lambda: bounds.median_radius(10, 0.1, 0.1, "malicious", constants="best"), "constants must be"),
        (lambda: bounds.rank_shift(np.array([0.1, 0.6]), "oblivious"), r"eps must be in \[0, 0.5\), but got 0.6"),
        (lambda: bounds.dkw_radius(np.array([1.5, 2.0]), 0.1), "n must be an integer"),
        (lambda: bounds.bias(0.1, 4, np.array([0.1, 0.0]), "oblivious"), "m2 must be positive"),
        (lambda: bounds.effective_gaps([1.0, 2.0], [0.1, -0.1]), "biases >= 0"),
        (lambda: ta.Study("AB", rounds=np.array([True, False])), "rounds must be True or False, but got array"),
        (lambda: ta.plan(rounds=[True]), r"rounds must be True or False, but got \[True\]"),
        (lambda: ta.Study(["A"], goal=np.array(["min", "max"])), "goal must be 'max' or 'min', but got array"),
        (lambda: ta.Study(["A"], policy=5), "policy must be one of .*, but got 5"),
        (lambda: lab.simulate("toptwo", PAIR, 3), "adversary must be an Attack, but got 3; use"),
        (lambda: families.lognormal(1000), "mu must be between -700 and 700, but got 1000"),
        (lambda: families.gaussian(math.inf), "loc must be finite, but got inf"),
        (lambda: families.piecewise(atoms=[(1.0,)]), r"atoms must be a list of \(value, mass\), but got"),
        (lambda: bounds.effective_gaps([1, 2], [1, 2, 3]), "medians and biases must have equal shapes, but got"),
        (lambda: bounds.shift(5, 0.1, "oblivious"), "law must be a law, but got 5; use one of truearm.families"),
        (lambda: bounds.lower_rank(2**60, 0.5, 0.1), "is too large; use at most 9,007"),
        (lambda: lower_bounds.lifting(0.5, 0, "malicious", best=3), "best must be True or False, but got 3"),
    ],
)
def test_a_wrong_value_is_named(call, words):
    with pytest.raises(InvalidArgument, match=words):
        call()
