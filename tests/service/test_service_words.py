"""Errors speak the language of the request: JSON, never Python."""

import itertools
import re

import pytest
from msgspec import ValidationError, convert, json

from truearm.errors import TruearmError
from truearm.service import models
from truearm.service.models import NewStudy

from .serving import hosting

PYTHON = re.compile(r"\w=\S|\b(True|False|None)\b|Interval\(|\bdict|\btuple|\bta\.|\bStudy\(|\[\.\.\.\]")
ODD = {
    "arms": [["A"], ["A", "A"], ["", "B"], ["A\0", "B"], ["A", "B", "C"]],
    "title": ["x\0"],
    "delta": [0, 1, -1, 1e300, 1e-300, 5e-324, 0.9],
    "contamination": [
        0,
        0.5,
        -1,
        5,
        None,
        {"eps": 0.7},
        *({"eps": 0.1, "adversary": a} for a in ("malicious", "x")),
    ],
    "tolerance": [-1, 1e308, "2%", "x", "", "-2%", "200%", True, None],
    "quantile": [0, 1, 0.001, 0.99],
    "goal": ["min", "max", "best"],
    "at_least": [0, 1, -1e308, 0.5, "1"],
    "at_most": [0, 1],
    "between": [[0, 1], [1, 0], [1, 1], [1]],
    "dependent_arms": [True, 1],
    "rounds": [True, None],
    "policy": ["lucb", "best"],
    "max_pulls": [0, -1, 1.5],
    "seed": [3, -1, True],
    "passive": [True],
    "lease": [0, "1"],
    "unknown": [1],
}


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    with hosting(tmp_path_factory.mktemp("words") / "s.db") as host:
        yield host


def problem(host, body):
    """Return the problem that a new study meets, None if there is none."""
    try:
        host.create(convert(body, NewStudy))
    except ValidationError as error:
        return models.explain_invalid(error, json.encode(body)).problem
    except TruearmError as error:
        return models.from_error(error)
    return None


def test_no_pair_of_odd_values_is_answered_in_python(host):
    """Every field with every odd value, and with each of another field: no error of ours, no word of Python."""
    plain, found = {"arms": ["A", "B"]}, set()
    single = [{name: value} for name, values in ODD.items() for value in values]
    pairs = [{**a, **b} for a, b in itertools.combinations(single, 2) if a.keys() != b.keys()]
    for odd in single + pairs:
        said = problem(host, {**plain, **odd})
        if said is not None:
            found.add(re.sub(r"\d", "", said.detail))
            assert not PYTHON.search(said.detail), said.detail
            assert said.status == 422
            assert said.field, said.detail
    assert len(found) > 40


DEEP = b"[" * 5000 + b"]" * 5000
BODIES = [  # a body, its status, the field that is wrong, and part of the message
    (DEEP, 422, None, "the body must be an object; see"),
    (b'{"worker": %b}' % DEEP, 422, "worker", "worker must be text; see"),
    (b'{"worker": "a", "n": %b}' % DEEP, 422, "n", "n must be an integer; see"),
    (b'{"worker": "\\ud800"}', 400, None, "without lone surrogates"),
    (b'{"worker": "a', 400, None, "truncated"),
    (b'{"worker": NaN}', 400, None, "invalid character"),
]


@pytest.mark.parametrize(("body", "status", "field", "words"), BODIES, ids=lambda value: str(value)[:30])
def test_an_unreadable_body_is_refused_with_its_reason(http, body, status, field, words):
    http.post("/studies", json={"arms": ["A", "B"], "id": "unreadable"})
    answer = http.post("/studies/unreadable/ask", content=body, headers={"Content-Type": "application/json"})
    found = answer.json()
    assert (answer.status_code, found.get("field"), found.get("value")) == (status, field, None)
    assert words in found["detail"]
