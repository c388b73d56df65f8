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
from test_words import CASES
from truearm.claims.certificate import Alarm, Claim, ControlClaims, Entered, Origin, Status
from truearm.claims.result import Arm, Control, Place, Tiers, Variant
from truearm.problem import Contamination, Handicap, Problem, Regularity, Tolerance

DOCS = Path(__file__).parent.parent / "docs"
SCHEMA = json.loads((DOCS / "schema.json").read_text(encoding="utf-8"))
VALID = jsonschema.Draft202012Validator(SCHEMA)


@pytest.fixture(scope="module")
def documents():
    """Return the results of the table of words, and some that only a study, a clock or counts make."""
    found = [case[0]() if isinstance(case, tuple) else case() for case in CASES.values()]
    late = ta.Study(["A", "B"], max_pulls=50)
    while pulls := late.ask(2):
        late.tell(pulls[0], 1.0)
    late.stop()
    table = count_tapes({"A": np.arange(300.0), "B": np.arange(60.0, 360.0)})
    scores = ta.evaluate({"A": lambda _: 1.0, "B": lambda _: 0.0}, range(60), progress=False)
    others = [scores, ta.analyze(table), replace(found[0], conditions={"process": "fresh"}), late.result]
    return [json.loads(json.dumps(one.to_dict(readings=True), allow_nan=False)) for one in (*found, *others)]


def test_the_schema_is_one_and_follows_from_the_types():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    sys.path.insert(0, str(DOCS))
    import made

    assert json.loads(made.schema()) == SCHEMA, "run python docs/made.py"


def test_every_result_is_what_the_schema_says(documents):
    for document in documents:
        VALID.validate(document)
    statuses = {document["status"] for document in documents}
    assert statuses == set(SCHEMA["$defs"]["Status"]["enum"]) == {status.value for status in Status}


# docs/certificate.md lists what a document holds: nothing more, nothing less

PAGE = (DOCS / "certificate.md").read_text(encoding="utf-8")
CERTIFICATE = "key of `certificate`"


def listed(heading):
    """Return the rows of a table by the keys that its first column names, with what they hold."""
    table = PAGE.split(f"| {heading} | holds |\n|---|---|\n", 1)[1].split("\n\n", 1)[0]
    return {key: held for keys, held in re.findall(r"^\| (.*?) \| (.*) \|$", table, re.M) for key in named(keys)}


def named(text):
    return re.findall(r"`(\w+)`", text)


def test_the_page_lists_the_keys_of_every_document(documents):
    of_all, of_analyses = listed("key"), listed("key of an analysis")
    analyses = {key for document in documents if "contests" in document for key in document}
    studies = {key for document in documents if "contests" not in document for key in document}
    assert set(of_all) | set(of_analyses) == analyses | studies
    assert not set(of_analyses) & studies
    assert set(listed(CERTIFICATE)) == {key for document in documents for key in document["certificate"]}


@pytest.mark.parametrize(
    ("heading", "key", "kinds"),
    [
        ("key", "arms", [Arm]),
        ("key", "doubts", [Alarm]),
        ("key", "control", [Control, Variant]),
        ("key of an analysis", "tiers", [Tiers, Place]),
        (CERTIFICATE, "problem", [Problem, Contamination, Tolerance, Regularity, Handicap]),
        (CERTIFICATE, "origin", [Origin]),
        (CERTIFICATE, "entries", [Entered]),
        (CERTIFICATE, "claims", [Claim]),
        (CERTIFICATE, "control", [ControlClaims]),
    ],
)
def test_the_page_names_every_field(heading, key, kinds):
    held = set(named(listed(heading)[key]))
    wanted = {name for kind in kinds for name in getattr(kind, "_fields", None) or [f.name for f in fields(kind)]}
    assert wanted <= held
