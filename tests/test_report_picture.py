import math
from functools import partial

import numpy as np
import pytest

from truearm import Adversary, Contamination, InvalidArgument, Study
from truearm.claims.certificate import Claim, Status, Verdict, sample_of
from truearm.claims.certify import certify, rejections
from truearm.evidence import Levels, breakdown_point
from truearm.problem import Problem
from truearm.report.picture import Picture, span

ARMS = ("A", "B", "C")


def tapes(n=400, seed=0, gap=0.7):
    draw = np.random.default_rng(seed)
    return {arm: draw.normal(-gap * i, size=n) for i, arm in enumerate(ARMS)}


def found(readings, status=Status.EXHAUSTED, design="sequential", **problem):
    verdict = Verdict(status=status, best="A" if status is Status.CERTIFIED else None, candidates=ARMS)
    return certify(Problem(arms=ARMS, **problem), readings, verdict, design=design)


@pytest.fixture(scope="module", params=["sequential", "fixed"])
def picture(request):
    readings = tapes()
    return Picture.of(found(readings, design=request.param), readings)


def test_readings_of_another_study_are_refused():
    with pytest.raises(InvalidArgument, match="digest differs"):
        Picture.of(found(tapes(seed=0)), tapes(seed=1))


@pytest.mark.parametrize("adversary", Adversary)
def test_the_least_point_is_the_breakdown_of_the_result(picture, adversary):
    expected = getattr(picture.result.breakdown, adversary.value)
    assert min(picture.points[adversary].values()) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("adversary", Adversary)
def test_candidates_are_those_whose_evidence_is_short_of_the_threshold(picture, adversary):
    what = rejections(picture.result.certificate, picture.tapes, picture.samples, leader=0)[adversary]
    for eps in (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3):
        levels = Levels.at(0.5, eps, adversary)
        short = [arm for i, arm in enumerate(ARMS) if i and what.against(i, levels) < what.judge.log_threshold]
        assert picture.candidates(eps, adversary) == ("A", *short)


@pytest.mark.parametrize("adversary", Adversary)
def test_the_whole_decision_holds_up_to_the_breakdown_point_and_not_beyond(picture, adversary):
    point = getattr(picture.result.breakdown, adversary.value)
    assert picture.candidates(point, adversary) == ("A",)
    assert len(picture.candidates(point + 1e-3, adversary)) > 1


def test_the_slider_holds_the_declared_eps_and_every_breakdown_point(picture):
    assert {0.0, 0.05, *picture.result.breakdown} <= set(picture.eps)
    assert list(picture.eps) == sorted(picture.eps)
    assert picture.eps[-1] == pytest.approx(1.5 * max(picture.result.breakdown), abs=1e-6)


def test_intervals_at_the_declared_eps_are_those_of_the_result(picture):
    for arm, (whole, core) in zip(picture.result.arms, picture.intervals(0.05, Adversary.OBLIVIOUS), strict=True):
        assert (arm.low, arm.high, arm.contamination_low, arm.contamination_high) == (*whole, *core)


def test_intervals_grow_with_the_contamination(picture):
    eps = (0.0, 0.05, 0.1, 0.2)
    widths = np.array([[whole.width for whole, _ in picture.intervals(e, Adversary.MALICIOUS)] for e in eps])
    assert (np.diff(widths, axis=0) >= 0).all()


def test_what_bounds_certified_stands_up_to_the_declared_eps():
    readings = tapes(n=60, gap=0.3)
    picture = Picture.of(
        found(readings, Status.CERTIFIED, contamination=Contamination(0.1, "prescient")), readings
    )
    assert picture.candidates(0.1, Adversary.PRESCIENT) == picture.candidates(0.05, Adversary.OBLIVIOUS) == ("A",)
    assert picture.candidates(0.1, Adversary.MALICIOUS) == ARMS
    assert picture.candidates(0.11, Adversary.PRESCIENT) == ARMS


def test_a_study_without_readings_has_no_candidates_to_show():
    study = Study(ARMS)
    study.stop()
    picture = Picture.of(study.result, study.readings)
    assert picture.points == {adversary: {} for adversary in Adversary}
    assert picture.evidence_over_time().lines == {}


def test_evidence_ends_where_all_readings_put_it(picture):
    time = picture.evidence_over_time()
    what = rejections(picture.result.certificate, picture.tapes, picture.samples, leader=0)[Adversary.OBLIVIOUS]
    levels = Levels.of(0.5, picture.result.problem.contamination)
    assert time.pulls[-1] == picture.result.total
    assert {arm: line[-1] for arm, line in time.lines.items()} == {
        arm: what.against(i, levels) for i, arm in enumerate(ARMS) if i
    }
    assert time.log_threshold == what.judge.log_threshold


def test_evidence_over_time_uses_the_first_pulls_of_every_arm(picture):
    time = picture.evidence_over_time()
    at = len(time.pulls) // 2
    n = time.pulls[at] // 3
    certificate = picture.result.certificate
    expected = certificate.evidence(Claim("B", "A", (n, n, n), 0, 0.0), picture.tapes)(None)
    assert time.lines["B"][at] == expected


def test_a_pooled_study_has_no_evidence_before_its_first_leader():
    draw = np.random.default_rng(5)
    study = Study(ARMS, contamination=0.05)
    while counts := study.ask_counts():
        study.tell_arrays({arm: draw.normal(-2.0 * ARMS.index(arm), size=n) for arm, n in counts.items()})
    assert study.result.certificate.rule == "pooled"
    time = Picture.of(study.result, study.readings).evidence_over_time()
    assert set(time.rejected) == {"B", "C"}
    assert all(math.isfinite(value) for line in time.lines.values() for value in line)


def test_strips_show_a_few_hundred_readings_and_all_that_is_known_of_the_rest():
    readings = {**tapes(n=10_000), "B": np.append(np.zeros(9_000) + np.arange(9_000) % 7, np.full(1_000, 1e9))}
    strip = Picture.of(found(readings), readings).strips()[1]
    assert strip.n == 10_000
    assert 200 <= strip.values.size <= 300
    assert strip.distant == 1_000
    assert strip.far.sum() >= 60


def test_strips_count_missing_and_pending_readings():
    readings = {"A": [1.0, None, math.nan, 3.0, math.inf], "B": [0.0], "C": []}
    strips = Picture.of(found(readings), readings).strips()
    assert [(s.n, s.missing, s.pending) for s in strips] == [(5, 1, 1), (1, 0, 0), (0, 0, 0)]
    assert strips[0].sorted.tolist() == [1.0, 3.0, math.inf]


def test_points_agree_with_a_finer_search(picture):
    level = picture.result.problem.level
    what = rejections(picture.result.certificate, picture.tapes, picture.samples, leader=0)
    for adversary in Adversary:
        found_ = what[adversary]
        for i, arm in enumerate(ARMS[1:], 1):
            bar = found_.judge.log_threshold
            fine = breakdown_point([partial(found_.against, i)], bar, quantile=level, adversary=adversary)
            assert picture.points[adversary][arm] == pytest.approx(fine, rel=2e-4)
            assert picture.points[adversary][arm] <= fine


@pytest.mark.parametrize("values", [[1.0, 1.0], [-1e308, 1e308], [5e-324, 0.0], [math.inf, math.nan]])
def test_a_span_always_has_a_width(values):
    low, high = span(values)
    assert math.isfinite(low)
    assert math.isfinite(high)
    assert low < high


def test_samples_are_those_of_the_certificate():
    readings = tapes()
    picture = Picture.of(found(readings, goal="min"), readings)
    assert (
        picture.samples[1].values.tolist() == sample_of(readings["B"], 400, picture.result.problem).values.tolist()
    )
