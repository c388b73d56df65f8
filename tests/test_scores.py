"""Evidence from bounded scores agrees with vectors computed elsewhere."""

import json
from pathlib import Path

import numpy as np
import pytest

from truearm.evidence.scores import log_score_evidence

VECTORS = json.loads((Path(__file__).parent / "vectors" / "third_vectors.json").read_text())


@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda case: case["name"])
def test_vectors(case):
    found = log_score_evidence(np.array(case["differences"]), case["m0"], case["items"])
    expected = [np.inf if x is None else x for x in case["log_evidence"]]
    assert found == pytest.approx(expected, abs=1e-9)
