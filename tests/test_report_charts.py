import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truearm.claims.result import Reach
from truearm.problem import Interval
from truearm.report import charts
from truearm.report.charts import Scale, at, power_ticks, pull_ticks, ticks
from truearm.report.picture import Strip, Timeline, span

numbers = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(numbers, min_size=1, max_size=5))
def test_every_finite_value_has_its_place_on_the_board(values):
    window = span(values)
    assert all(0 <= at(value, window) <= charts.WIDTH for value in values)


@given(numbers, numbers)
def test_ticks_are_few_and_inside(a, b):
    found = ticks(span([a, b]))
    assert len(found) <= 11
    assert all(0 <= tick.place <= 1 for tick in found)
    assert [tick.place for tick in found] == sorted({tick.place for tick in found})


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_an_ordinary_window_has_at_least_two_ticks_with_different_labels(low, width):
    labels = [tick.label for tick in ticks(Interval(low, low + width))]
    assert len(labels) >= 2
    assert width < 1e-9 * abs(low) or len(set(labels)) == len(labels)


@pytest.mark.parametrize(("low", "high"), [(-0.2, 1.6), (-1.0, 6.0), (-3.0, 250.0), (0.0, 40_000.0)])
def test_powers_of_ten_are_few(low, high):
    assert 1 <= len(power_ticks(Interval(low, high))) <= 7


def test_the_last_number_of_pulls_is_always_told():
    time = Timeline((20, 30), {"B": (0.0, 4.0)}, 3.0, {})
    assert pull_ticks(Scale.of(time), 30)[-1] == (1.0, "30")


def test_the_threshold_is_always_in_the_picture():
    for line in ((-9.0, -8.0), (0.0, 1.0), (5.0, 5000.0)):
        time = Timeline((20, 3000), {"B": line}, 3.0, {})
        assert 0 < Scale.of(time).y(3.0) < 400


def test_a_quality_curve_falls_for_readings_that_should_be_large():
    points = [Reach(1.0, 0.9), Reach(2.0, 0.5)]
    assert 'd="M0 40.0H250.0V200.0H750.0V400.0H1000"' in charts.quality(points, Interval(0.5, 2.5), falling=True)


def test_a_quality_curve_rises_for_readings_that_should_be_small():
    points = [Reach(1.0, 0.5), Reach(2.0, 0.9)]
    assert 'd="M0 400.0H250.0V200.0H750.0V40.0H1000"' in charts.quality(points, Interval(0.5, 2.5), falling=False)


def test_far_readings_are_drawn_in_the_margins():
    values = np.array([1.0, -math.inf, 1e300])
    strip = Strip(
        3, np.zeros(3), values, np.array([False, True, True]), Interval(0.0, 2.0), 2, 0, 0, np.sort(values)
    )
    drawn = charts.strip(strip, Interval(0.0, 2.0), "readings")
    assert 'class="dots" d="M500 44h0"' in drawn
    assert 'class="far" d="M15 44v5M985 44v5"' in drawn


def test_an_interval_beyond_the_board_is_cut_at_its_edge():
    drawn = charts.bar([-1.0, 1001.0, 200.0, 300.0], 250.0, "wide")
    assert 'class="sampling" x="0" width="1000"' in drawn
    assert 'class="core" x="200.0" width="100.0"' in drawn
