import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from truearm.bounds.search import bracket, first_count, last_true_each

numbers = st.floats(-1e300, 1e300)


@given(st.lists(numbers, min_size=3, max_size=3))
def test_a_bracket_ends_at_neighbors_on_either_way(ends):
    low, change, high = sorted(ends)
    up = bracket(lambda x: x <= change, low, high)
    down = bracket(lambda x: x >= change, high, low)
    if change < high:
        assert up == (change, math.nextafter(change, math.inf))
    if low < change:
        assert down == (change, math.nextafter(change, -math.inf))


@given(st.lists(st.tuples(st.integers(-50, 50), st.integers(0, 40), st.integers(1, 40)), max_size=8))
def test_integers_are_searched_either_way(cases):
    change = np.array([c for c, _, _ in cases], dtype=np.int64)
    inside, outside = change - [a for _, a, _ in cases], change + [b for _, _, b in cases]
    assert np.array_equal(last_true_each(lambda x: x <= change, inside, outside), change)
    assert np.array_equal(last_true_each(lambda x: x > change, outside, inside), change + 1)


@given(st.integers(1, 2**60))
def test_the_first_count_is_exact(change):
    assert first_count(lambda n: n >= change) == change
