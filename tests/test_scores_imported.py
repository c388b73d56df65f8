"""Scores of models that evaluation tools logged: one file per model, the same items (extensions B)."""

import gzip
import json
import pathlib

import numpy as np
import pytest

import truearm as ta
from entry import truearm as run

RNG = np.random.default_rng(4)
RIGHT = {"org/good": RNG.random(250) < 0.85, "org/bad": RNG.random(250) < 0.6}


def harness(folder, model, right, *, packed=False, **changed):
    """Write samples as lm-evaluation-harness logs them: a record per document and filter."""
    records = [
        {"doc_id": i, "doc": {"question": f"question {i}"}, "target": "4", "resps": [["It is 4"]]}
        | {"filtered_resps": ["4"], "filter": kind, "metrics": ["exact_match"], "doc_hash": f"{i:x}"}
        | {"exact_match": float(score) if kind == "flexible-extract" else 0.0, **changed}
        for kind in ("strict-match", "flexible-extract")
        for i, score in enumerate(right.tolist())
    ]
    place = folder / model.replace("/", "__")
    place.mkdir(exist_ok=True)
    text = "".join(json.dumps(record) + "\n" for record in records).encode()
    path = place / f"samples_gsm8k_2026-01-05T10-00-00.123456.jsonl{'.gz' if packed else ''}"
    path.write_bytes(gzip.compress(text) if packed else text)
    return str(path)


def inspect(folder, model, right, *, task="arc", grade=lambda x: "C" if x else "I", epochs=1):
    """Write a log as Inspect does with --log-format json."""
    samples = [
        {"id": i, "epoch": epoch, "input": f"question {i}", "target": "A"}
        | ({"error": {"message": "no answer"}} if i == 3 else {"scores": {"match": {"value": grade(x)}}})
        for epoch in range(1, epochs + 1)
        for i, x in enumerate(right.tolist())
    ]
    spec = {"task": task, "model": model, "dataset": {"name": task, "samples": right.size}, "config": {}}
    path = folder / f"{model.replace('/', '-')}_{task}.json"
    path.write_text(json.dumps({"version": 2, "status": "success", "eval": spec, "samples": samples}))
    return str(path)


@pytest.mark.parametrize("packed", [False, True])
def test_samples_of_the_harness(tmp_path, packed):
    files = [harness(tmp_path, model, right, packed=packed) for model, right in RIGHT.items()]
    found = ta.analyze(files, value="exact_match,flexible-extract", of=1000)
    assert (found.best, found.status.value, found.items) == ("org/good", "certified", (250, 1000))
    assert found.problem.contamination.eps == 0
    assert found.arms[0].observed == pytest.approx(RIGHT["org/good"].mean())
    ended = run("analyze", *files, "--value", "exact_match,flexible-extract")
    assert (ended.returncode, "org/good has the highest mean score" in ended.stdout) == (0, True)
    with pytest.raises(ta.InvalidArgument, match="'exact_match,strict-match', 'exact_match,flexible-extract'"):
        ta.analyze(files)


@pytest.mark.parametrize("grade", [lambda x: "C" if x else "I", bool, float, lambda x: {"a": x, "b": "text"}])
def test_logs_of_inspect(tmp_path, grade):
    files = [inspect(tmp_path, model, right, grade=grade, epochs=2) for model, right in RIGHT.items()]
    found = ta.analyze(files)
    assert (found.best, found.items) == ("org/good", (250, None))
    assert found.missing == {"org/good": 1, "org/bad": 1}  # item 3


def test_other_ranges_are_asked_for(tmp_path):
    files = [inspect(tmp_path, m, right, grade=lambda x: 100.0 * x) for m, right in RIGHT.items()]
    with pytest.raises(ta.InvalidArgument, match="score_range is missing"):
        ta.analyze(files)
    assert ta.analyze(files, score_range=(0, 100)).best == "org/good"


def test_what_is_not_compared(tmp_path):
    (good, right), (bad, wrong) = RIGHT.items()
    one = inspect(tmp_path, good, right[:20])
    cases = {
        "different tasks, which are not compared: arc, mmlu": [one, inspect(tmp_path, bad, wrong, task="mmlu")],
        "is of one model; give a file of each": [one],
        "there are 1,001 files, but at most 1,000 arms can be compared; choose fewer": [one] * 1_001,
        "looks like an export of lm-evaluation-harness, but is not": [harness(tmp_path, bad, wrong, metrics=3)],
    }
    packed = harness(tmp_path, good, right, packed=True)
    pathlib.Path(packed).write_bytes(pathlib.Path(packed).read_bytes()[:-40])
    cases["an export of lm-evaluation-harness, but is not: EOFError"] = [packed]
    for message, files in cases.items():
        with pytest.raises(ta.InvalidArgument, match=message):
            ta.analyze(files)
    same = [one, inspect(tmp_path, "copy", wrong)]
    (tmp_path / "copy_arc.json").write_text((tmp_path / "org-good_arc.json").read_text())
    assert set(ta.analyze(same).pulls) == {"org-good_arc", "copy_arc"}  # one model twice: by file
