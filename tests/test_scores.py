"""Evidence from bounded scores agrees with vectors computed elsewhere."""

import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import truearm as ta
from truearm.evidence.scores import log_score_evidence

VECTORS = json.loads((Path(__file__).parent / "vectors" / "third_vectors.json").read_text())


@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda case: case["name"])
def test_vectors(case):
    found = log_score_evidence(np.array(case["differences"]), case["m0"], case["items"])
    expected = [np.inf if x is None else x for x in case["log_evidence"]]
    assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("of", [None, 10**9])
def test_a_forecast_of_millions_of_items_does_not_allocate_them(of):
    right = np.zeros((2, 10_000))
    right[0, :506], right[1, 506:1000] = 1, 1
    tracemalloc.start()
    found = ta.analyze(dict(zip("AB", right, strict=True)), round="rows", score_range=(0, 1), of=of)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 10**5 < found.needed["A"] < 10**7
    assert peak < 200e6
