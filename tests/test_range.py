"""The plausible range (extensions E2): readings outside it are counted, and are on neither side of any cut."""

import json
import math

import numpy as np
import pytest
from click.testing import CliRunner

import truearm as ta
from reference import pair
from truearm import Contamination, OutOfReach, Study, analyze
from truearm.cli import main
from truearm.evidence.levels import Levels
from truearm.evidence.sample import Sample
from truearm.problem import Interval


def test_a_study_with_a_range_logs_all_readings_and_verifies():
    rng = np.random.default_rng(1)
    study = Study(["A", "B"], between=(-10, 10), contamination=0.1)
    while counts := study.ask_counts():
        told = {arm: rng.normal(arm == "A", 1, n) for arm, n in counts.items()}
        study.tell_arrays({arm: np.where(rng.random(x.size) < 0.05, 1e6, x) for arm, x in told.items()})
    result = study.result
    assert result.status.value == "certified"
    assert result.best == "A"
    assert max(v for v in result.readings["A"]) == 1e6
    assert result.certificate.verify(result.readings)
    again = Study.from_dict(json.loads(json.dumps(study.to_dict())))
    assert again.result == result
    assert any("True readings are in -10 to 10" in sentence for sentence in result.assumptions)
    assert any("does not depend on the true value" in sentence for sentence in result.assumptions)


def test_too_many_outside_are_a_doubt_with_its_remedy():
    rng = np.random.default_rng(2)
    tapes = {arm: np.where(rng.random(400) < 0.2, 99.0, rng.normal(arm == "A", 1, 400)) for arm in "AB"}
    found = analyze(tapes, between=(-10, 10))
    assert found.status.value == "doubtful"
    assert {doubt.kind for doubt in found.doubts} == {"outside"}
    assert "outside the plausible range -10 to 10, more than chance explains" in str(found)
    assert "raise eps" in str(found)
    assert analyze(tapes, between=(-10, 10), contamination=0.3).status.value != "doubtful"


def test_malicious_levels_hold_if_only_low_readings_leave_the_range():
    """P(clean and in L) >= q - eps, even if exactly the low readings leave the range."""
    levels = Levels.of(0.5, Contamination(0.1, "malicious"))
    rng, wrong = np.random.default_rng(3), 0
    for _ in range(100):
        better = rng.normal(0, 1, 400)
        low = better < np.quantile(better, 0.5)
        better[low & (rng.random(400) < 0.2)] = 99.0  # a tenth of all, all of them low
        one = Sample(plausible=Interval(-10.0, 10.0)).extend(better)
        wrong += pair(one, Sample.of(rng.normal(0, 1, 400)), levels, closed=True).log_value >= math.log(1 / 0.1)
    assert wrong <= 20  # at an error rate of 0.1, more have a chance below 1e-3


@pytest.mark.parametrize("policy", ["lucb", "elimination", "uniform"])
def test_policies_without_ranges_refuse_them(policy):
    regularity = ta.Regularity(B=4, m2=1, reach=0.3)
    with pytest.raises(OutOfReach, match=f"policy '{policy}' takes no plausible range"):
        Study(["A", "B"], between=(0, 1), policy=policy, regularity=regularity, tolerance=0.1)


def test_two_arms_alone_know_the_plausible_range():
    """A reading outside counts for no arm, as in `analyze`; too many of them are no evidence."""
    x, y = np.arange(50.0, 150.0), np.append(np.arange(0.0, 100.0), [999.0] * 12)
    found = ta.is_better(x, y, contamination=0.2, between=(0, 200))
    assert found.log_evidence > ta.is_better(x, y, contamination=0.2).log_evidence
    both = ta.analyze({"x": x, "y": y}, contamination=0.2, between=(0, 200))
    assert found.log_evidence == pytest.approx(both.contests[0].log_evidence)
    assert not ta.is_better(x, y, contamination=0.01, between=(0, 200))
    with pytest.raises(ta.InvalidArgument, match="two increasing numbers"):
        ta.is_better(x, y, between=(200, 0))


def pilot(n=400, seed=6):
    rng = np.random.default_rng(seed)
    tapes = {arm: rng.normal(mean, size=n) for arm, mean in (("A", 5.0), ("B", 6.0))}
    tapes["B"][:20] = -500.0
    return tapes


def test_a_plan_leaves_out_what_a_pilot_has_outside_the_range():
    tapes = pilot()
    inside = {arm: tape[np.abs(tape) < 100] for arm, tape in tapes.items()}
    found = ta.plan(pilot=tapes, between=(0, 100))
    assert found == ta.plan(pilot=inside)
    assert found.clean.lower_bound < ta.plan(pilot=tapes).clean.lower_bound


def test_a_time_out_of_a_pilot_is_not_outside_and_what_is_beyond_the_good_end_is():
    tapes = {"A": [1.0, 2.0, 3.0, math.inf], "B": [4.0, 5.0, 6.0, -math.inf]}
    kept = {"A": [1.0, 2.0, 3.0, math.inf], "B": [4.0, 5.0, 6.0]}
    assert ta.plan(pilot=tapes, goal="min", between=(0, 100)) == ta.plan(pilot=kept, goal="min")


def test_the_command_line_plans_with_a_range(tmp_path):
    rows = "".join(f"{arm},{x!r}\n" for arm, tape in pilot().items() for x in tape.tolist())
    (tmp_path / "pilot.csv").write_text("arm,ms\n" + rows, encoding="utf-8")
    words = ["plan", "--pilot", str(tmp_path / "pilot.csv"), "--arm", "arm", "--value", "ms", "--json"]
    told = CliRunner().invoke(main, [*words, "--between", "0", "100"])
    assert told.exit_code == 0, told.output
    assert json.loads(told.output) == json.loads(json.dumps(ta.plan(pilot=pilot(), between=(0, 100)).to_dict()))
