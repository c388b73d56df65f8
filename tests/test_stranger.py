"""docs/certificate.md is enough to write a verifier: one made from it agrees with ours, on genuine and forged."""

import ast
import copy
import sys
from pathlib import Path

import pytest

import forging
import stranger


def test_the_strangers_verifier_knows_nothing_of_ours():
    tree = ast.parse(Path(stranger.__file__).read_text(encoding="utf-8"))
    named = [n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
    named += [alias.name for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names]
    assert set(named) <= sys.stdlib_module_names


TRUST = {
    "certified": ["dates", "who led when"],
    "separated": [],
    "five arms": ["dates", "who led when"],
    "tolerable": ["who led when"],
    "clairvoyant": [],
    "dependent": [],
    "handicap": [],
    "rounds": ["dates"],
    "share": [],
    "limited": [],
    "lucb": ["bounds"],
    "elimination": ["bounds"],
}
# what was out has come back: the page lets log_evidence be less, and only the log says by how much
SOUND = [name for name in forging.NAMES if name != "late"]


@pytest.mark.parametrize("name", SOUND)
def test_a_stranger_verifies_genuine_results(name):
    left = stranger.verify(forging.genuine(name))
    assert left == TRUST.get(name, left)
    if name in forging.ANALYSES:
        assert left == []


FORGERIES = {
    "best": lambda d: d.update(best="B"),
    "status": lambda d: d.update(status="tolerable"),
    "digest": lambda d: d["readings"]["A"].__setitem__(0, 9.0),
    "a claim less": lambda d: d["certificate"]["claims"].pop(),
    "a weaker rule": lambda d: d["certificate"].update(rule="pooled"),
    "evidence": lambda d: d["certificate"]["claims"][0].update(log_evidence=99.0),
    "counts": lambda d: d["certificate"]["claims"][0].update(counts=[100] * len(d["arms"])),
    "more than there are": lambda d: d["certificate"]["claims"][0].update(counts=[4000] * len(d["arms"])),
    "delta": lambda d: d["certificate"]["problem"].update(delta=1e-30),
    "candidates": lambda d: d["candidates"].append("B"),
    "low": lambda d: d["arms"][0].update(low=d["arms"][0]["low"] + 0.1),
    "observed": lambda d: d["arms"][1].update(observed=5.0),
    "pulls": lambda d: d["pulls"]["arms"].update(A=3),
}


@pytest.mark.parametrize("forgery", FORGERIES)
@pytest.mark.parametrize("name", ["analyzed", "analyzed, fixed"])
def test_a_stranger_finds_forgeries(name, forgery):
    data = copy.deepcopy(forging.genuine(name))
    assert data["best"] != "B"  # so that each forgery changes something
    FORGERIES[forgery](data)
    with pytest.raises(stranger.Wrong):
        stranger.verify(data)
