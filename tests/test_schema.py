"""Every result of every kind is what the schema in the package says."""

import json
from importlib import resources

import jsonschema
import numpy as np
import pytest

import truearm as ta
from truearm.claims.certificate import Status

SCHEMA = json.loads(resources.files("truearm").joinpath("schema.json").read_text(encoding="utf-8"))
VALID = jsonschema.Draft202012Validator(SCHEMA)


def data(gap, n=400, seed=1):
    rng = np.random.default_rng(seed)
    return {"A": rng.normal(10, 1, n), "B": rng.normal(10 + gap, 1, n), "C": rng.normal(9, 1, n)}


def drifting(n=300):
    rng = np.random.default_rng(1)
    rows = np.ravel([np.linspace(2, 0, n) + rng.normal(mean, 0.1, n) for mean in (1.0, 1.3)], "F")
    return {"arm": ["A", "B"] * n, "ms": rows}


def studied(**options):
    rng = np.random.default_rng(2)
    return ta.find_best(
        {"A": lambda: rng.normal(10, 1), "B": lambda: rng.normal(12, 1)}, progress=False, seed=1, **options
    )


RESULTS = {
    "certified": lambda: ta.analyze(data(2)),
    "separated": lambda: ta.analyze(data(2), contamination=None),
    "tolerable": lambda: ta.analyze(data(0.02, 4000), tolerance=0.5),
    "indistinguishable": lambda: ta.analyze(data(0.02, 20000)),
    "exhausted": lambda: ta.analyze(data(0.1, 50)),
    "doubtful": lambda: ta.analyze(drifting(), arm="arm", value="ms", goal="min", order="rows"),
    "study": studied,
    "rounds": lambda: studied(rounds=True),
    "share": lambda: studied(at_least=11),
    "time-outs": lambda: ta.find_best(
        {"A": lambda: np.inf, "B": lambda: 1.0}, goal="min", max_pulls=60, progress=False
    ),
    "missing": lambda: ta.analyze({"A": [1.0, np.nan, 3.0], "B": [np.inf, 2.0, 2.0]}),
    "elimination": lambda: studied(policy="lucb"),
    "control": lambda: ta.analyze(data(2), control="A", tiers=True, pairs=True),
    "fixed": lambda: ta.analyze(data(2), design="fixed", contamination=ta.Contamination(0.02, "malicious")),
}


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", RESULTS)
def test_every_result_is_what_the_schema_says(name):
    found = RESULTS[name]()
    VALID.validate(json.loads(json.dumps(found.to_dict(readings=found.total < 5000), allow_nan=False)))
    if name in {status.value for status in Status}:
        assert found.status.value == name


def test_no_status_is_forgotten():
    assert set(SCHEMA["properties"]["status"]["enum"]) == {status.value for status in Status} <= set(RESULTS)


@pytest.mark.parametrize(
    ("key", "value"), [("status", "sure"), ("delta", 2), ("schema", 1), ("arms", []), ("best", 5)]
)
def test_what_is_no_result_is_refused(key, value):
    found = RESULTS["certified"]().to_dict()
    assert not VALID.is_valid({**found, key: value})
    assert not VALID.is_valid({name: kept for name, kept in found.items() if name != key})
