"""Whatever is sent, the server answers with what it published and never breaks."""

import json
import random

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from truearm.service.app import openapi_schema

SCHEMA = schemathesis.openapi.from_dict(openapi_schema()).exclude(path_regex="/events$")  # a stream without end
CHECKS = [not_a_server_error, response_schema_conformance, content_type_conformance, status_code_conformance]
_QUIET = {"deadline": None, "database": None, "derandomize": True, "suppress_health_check": list(HealthCheck)}


@SCHEMA.parametrize()
@settings(max_examples=8, phases=[Phase.explicit, Phase.generate], **_QUIET)
def test_answers_are_as_published(case, server):
    case.call_and_validate(base_url=server.url, checks=CHECKS)


@pytest.mark.slow
@SCHEMA.parametrize()
@settings(max_examples=500, **_QUIET)
def test_many_answers_are_as_published(case, server):
    case.call_and_validate(base_url=server.url, checks=CHECKS)


VALID = [
    (
        "/studies",
        {"arms": ["A", "B"], "id": "fuzz", "goal": "min", "contamination": {"eps": 0.1}, "tolerance": "2%"},
    ),
    ("/studies/fuzz/ask", {"worker": "ann", "n": 2}),
    ("/studies/fuzz/tell", {"readings": [{"ticket": 0, "value": 1.5, "notes": {"host": "a"}}], "worker": "ann"}),
    ("/studies/fuzz/release", {"tickets": [0, 1]}),
    ("/studies/fuzz/readings", {"key": "k", "readings": [{"arm": "A", "value": "inf"}]}),
]
ODD = [
    *("null", "true", '""', "[]", "{}", "-1", "1e400", "-0.0", "NaN", "0.1", '"=1+1"', '{"__class__": 1}'),
    *('"\\u0000"', '"\\ud800"', '"\\uD83D"', "9" * 400, "1" + "0" * 30, '"' + "x" * 5000 + '"'),
    *("[" * 2000, '{"a":' * 2000),
]


def malformed(draw, body):
    """Return a valid body with something wrong somewhere, as bytes."""
    text = json.dumps(body)
    how = draw.randrange(5)
    if how == 0:  # cut
        return text[: draw.randrange(len(text))].encode()
    if how == 1:  # bytes that are no text
        raw = bytearray(text.encode())
        for _ in range(draw.randint(1, 4)):
            raw[draw.randrange(len(raw))] = draw.randrange(256)
        return bytes(raw)
    if how == 2:  # noise
        return draw.randbytes(draw.randrange(64))
    words = text.replace("[", " [ ").replace("]", " ] ").replace("{", " { ").replace("}", " } ").split()
    words[draw.randrange(len(words))] = draw.choice(ODD)
    if how == 3:
        draw.shuffle(words)
    return " ".join(words).encode()


@pytest.mark.parametrize("number", [400, pytest.param(100_000, marks=pytest.mark.slow)])
def test_malformed_bodies_are_refused_in_words(server, number):
    draw, answered = random.Random(1), set()
    with server.client() as http:
        http.post(VALID[0][0], json=VALID[0][1])
        for _ in range(number):
            path, body = draw.choice(VALID)
            sent = malformed(draw, body)
            answer = http.post(path, content=sent, headers={"Content-Type": "application/json"})
            assert answer.status_code < 500, sent
            if answer.status_code >= 400:
                assert answer.headers["content-type"] == "application/problem+json"
                assert answer.json()["detail"]
            answered.add(answer.status_code)
        assert http.get("/healthz").status_code == 200
    assert answered >= {400, 422}
