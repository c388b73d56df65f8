import csv
import json
import math

import pytest

from entry import told
from truearm.claims.result import Result
from truearm.commands.command import Command
from truearm.report.export import csv_text, document, hyperfine_results, json_text
from truearm.study import Study

DETAILS = {"wall": 0.5, "user": 0.25, "system": 0.125, "peak_memory": 4096, "exit_code": 0, "timed_out": False}


@pytest.fixture(scope="module")
def study():
    values = {"A": 1.0, "B": math.inf, "=C": math.nan}
    study = Study(list(values), goal="min", max_pulls=60)
    while counts := study.ask_counts():
        study.tell_arrays({arm: [values[arm]] * n for arm, n in counts.items()})
    return study


def test_the_document_is_strict_json_and_comes_back_as_a_result(study):
    found = json.loads(json_text(document(study.result, study.readings, metric="wall", seed=3)))
    assert Result.from_dict(found).to_dict() == study.result.to_dict()
    assert (found["unit"], found["seed"]) == ("second", 3)
    readings = {arm: [None if x is None else float(x) for x in tape] for arm, tape in found["readings"].items()}
    Result.from_dict(found).certificate.verify(readings)


def test_hyperfine_finds_its_statistics():
    runs = [
        told(0, "A", 0.5, DETAILS),
        told(0, "A", 1.5, {**DETAILS, "wall": 1.5}),
        told(0, "B", math.nan, {}),
    ]
    first, second = hyperfine_results(
        [Command("true", name="A", parameters={"n": "1"}), Command("b", name="B")], runs
    )
    assert (first["mean"], first["median"], first["min"], first["max"]) == (1.0, 1.5, 0.5, 1.5)
    assert first["stddev"] == pytest.approx(math.sqrt(0.5))
    assert first["memory_usage_byte"] == [4096, 4096]
    assert first["parameters"] == {"n": "1"}
    assert (second["times"], second["mean"]) == ([], None)


@pytest.mark.parametrize(
    ("late", "median", "least"), [(0, 0.5, 0.5), (1, 0.5, 0.5), (2, None, 0.5), (3, None, None)]
)
def test_time_outs_leave_no_statistics_that_they_would_spoil(late, median, least):
    """Three runs, some killed after 0.25 seconds: their own times say nothing of the command's."""
    killed = {**DETAILS, "wall": 0.25, "exit_code": -9, "timed_out": True}
    runs = [told(0, "A", math.inf, killed)] * late + [told(0, "A", 0.5, DETAILS)] * (3 - late)
    [found] = hyperfine_results([Command("true", name="A")], runs)
    assert (found["median"], found["min"]) == (median, least)
    assert (found["mean"], found["max"]) == ((None, None) if late else (0.5, 0.5))
    assert found["timed_out"] == [True] * late + [False] * (3 - late)
    assert len(found["times"]) == 3
    assert found["exit_codes"] == [None] * late + [0] * (3 - late)  # a signal has none


def test_no_cell_of_the_table_is_a_formula(study):
    commands = [Command("true", name=arm, parameters={"v": "+1+A1"}) for arm in study.problem.arms]
    text = csv_text(study.result, hyperfine_results(commands, [told(0, "A", 1.0, DETAILS)]))
    rows = list(csv.DictReader(text.splitlines()))
    assert [row["command"] for row in rows] == ["A", "B", "'=C"]
    assert {row["parameter_v"] for row in rows} == {"'+1+A1"}
    assert (rows[0]["mean"], rows[1]["mean"]) == ("0.5", "")
