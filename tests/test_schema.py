"""Every result of every kind is what the schema in the package says."""

import json
import re
import sys
from dataclasses import fields, replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest

import truearm as ta
from reference import count_tapes
from truearm.claims.certificate import Alarm, Bound, Claim, ControlClaims, Entered, Origin, Place, Status
from truearm.claims.result import Arm, Control, Variant
from truearm.problem import Contamination, Handicap, Problem, Regularity, Tolerance

DOCS = Path(__file__).parent.parent / "docs"
SCHEMA = json.loads((DOCS / "schema.json").read_text(encoding="utf-8"))
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


def test_the_schema_is_one_and_follows_from_the_types():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    sys.path.insert(0, str(DOCS))
    import made

    assert json.loads(made.schema()) == SCHEMA, "run python docs/made.py"


@pytest.mark.parametrize("name", RESULTS)
def test_every_result_is_what_the_schema_says(name):
    found = RESULTS[name]()
    VALID.validate(json.loads(json.dumps(found.to_dict(readings=found.total < 5000), allow_nan=False)))
    statuses = {status.value for status in Status}
    assert set(SCHEMA["$defs"]["Status"]["enum"]) == statuses <= set(RESULTS)
    assert name not in statuses or found.status.value == name


@pytest.mark.parametrize(
    ("key", "value"), [("status", "sure"), ("delta", "x"), ("schema", 2), ("arms", [{}]), ("best", 5)]
)
def test_what_is_no_result_is_refused(key, value):
    found = RESULTS["certified"]().to_dict()
    assert not VALID.is_valid({**found, key: value})
    assert not VALID.is_valid({name: kept for name, kept in found.items() if name != key})


# docs/certificate.md lists what a document holds: nothing more, nothing less

PAGE = (DOCS / "certificate.md").read_text(encoding="utf-8")
CERTIFICATE = "key of `certificate`"


def listed(heading):
    """Return the rows of a table by the keys that its first column names, with what they hold."""
    table = PAGE.split(f"| {heading} | holds |\n|---|---|\n", 1)[1].split("\n\n", 1)[0]
    return {key: held for keys, held in re.findall(r"^\| (.*?) \| (.*) \|$", table, re.M) for key in named(keys)}


def named(text):
    return re.findall(r"`(\w+)`", text)


def documents():
    found = [make().to_dict(readings=True) for make in RESULTS.values()]
    table = count_tapes({"A": np.arange(300.0), "B": np.arange(60.0, 360.0)})
    timed = replace(ta.analyze(data(2)), conditions={"process": "fresh"})
    late = ta.Study(["A", "B"], max_pulls=50)
    while pulls := late.ask(2):
        late.tell(pulls[0], 1.0)
    late.stop()
    return [*found, ta.analyze(table).to_dict(), timed.to_dict(), late.result.to_dict(readings=True)]


def test_the_page_lists_the_keys_of_every_document():
    found = documents()
    of_all, of_analyses = listed("key"), listed("key of an analysis")
    analyses = {key for document in found if "contests" in document for key in document}
    studies = {key for document in found if "contests" not in document for key in document}
    assert set(of_all) | set(of_analyses) == analyses | studies
    assert not set(of_analyses) & studies
    assert set(listed(CERTIFICATE)) == {key for document in found for key in document["certificate"]}


@pytest.mark.parametrize(
    ("heading", "key", "kinds"),
    [
        ("key", "arms", [Arm]),
        ("key", "doubts", [Alarm]),
        ("key", "control", [Control, Variant]),
        (CERTIFICATE, "problem", [Problem, Contamination, Tolerance, Regularity, Handicap]),
        (CERTIFICATE, "origin", [Origin]),
        (CERTIFICATE, "entries", [Entered]),
        (CERTIFICATE, "claims", [Claim]),
        (CERTIFICATE, "exclusions", [Bound]),
        (CERTIFICATE, "control", [ControlClaims]),
        (CERTIFICATE, "places", [Place]),
    ],
)
def test_the_page_names_every_field(heading, key, kinds):
    held = set(named(listed(heading)[key]))
    wanted = {name for kind in kinds for name in getattr(kind, "_fields", None) or [f.name for f in fields(kind)]}
    assert wanted <= held
