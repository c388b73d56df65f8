"""Data that attack the reader: numbers and containers that are not readings."""

import numpy as np
import pandas as pd
import pytest

import truearm as ta
from truearm.errors import InvalidArgument


@pytest.mark.parametrize("column", [[1 + 2j, 2.0], np.array([1 + 2j, 2.0]), np.array([1, 2], dtype=np.complex64)])
def test_complex_numbers_are_not_readings(column):
    for read in (lambda: ta.analyze({"A": column, "B": [1, 2]}), lambda: ta.median_interval(column)):
        with pytest.raises(InvalidArgument, match="must be a number, but got"):
            read()
    with pytest.raises(InvalidArgument, match="number"):
        ta.analyze(pd.DataFrame({"A": column, "B": [1, 2]}))
    with pytest.raises(InvalidArgument, match="number"):
        ta.analyze(pd.DataFrame({"arm": ["a", "b"], "x": column}), arm="arm", value="x")


def test_readings_of_an_arm_are_a_list_and_not_a_dict():
    with pytest.raises(InvalidArgument, match=r"column 'A' must be a list of readings, but got \{1: 5.0}"):
        ta.analyze({"A": {1: 5.0}, "B": [1, 2]})
    with pytest.raises(InvalidArgument, match="must be a list of readings"):
        ta.median_interval({1: 5.0, 2: 6.0})
