"""`truearm verify` through its real entry point: words and exit codes."""

import contextlib
import json
import os
import sqlite3

import numpy as np
import pytest
from click.testing import CliRunner

import forging
from truearm.cli import main
from truearm.run import log_to
from truearm.store import Store
from truearm.study import Study


def run(*words):
    return CliRunner().invoke(main, ["verify", *map(str, words)])


def written(path, data):
    path.write_text(json.dumps(data))
    return path


def save_result(path, *words):
    """Write the JSON that a verb prints to a file, and return it."""
    path.write_text(CliRunner().invoke(main, [*map(str, words), "--json"]).stdout)
    return json.loads(path.read_text())


def test_verified_is_0_and_not_verified_is_1(tmp_path):
    data = forging.genuine("within a ratio")
    found = run(written(tmp_path / "r.json", data))
    assert (found.exit_code, found.stdout) == (0, f"Verified: {tmp_path}/r.json follows from its readings.\n")
    data["best"] = "C"
    found = run(written(tmp_path / "r.json", data))
    assert found.exit_code == 1
    assert found.stdout.startswith("Not verified: best is 'C', but the readings give ")
    found = run(tmp_path / "r.json", "--json")
    assert (found.exit_code, json.loads(found.stdout)["verified"]) == (1, False)


def test_trust_is_3_and_what_cannot_be_repeated_is_2(tmp_path):
    data = forging.genuine("within a ratio")
    data["assumptions"][0] = "Nothing is assumed."
    found = run(written(tmp_path / "r.json", data))
    assert found.exit_code == 3
    assert found.stdout.startswith("Verified with trust in: the wording of assumptions[0]")
    found = run(written(tmp_path / "r.json", forging.genuine("late")))
    assert (found.exit_code, "give its log" in " ".join(found.stderr.split())) == (2, True)


@pytest.mark.parametrize("first", ['{"best": "B", ', '{"machine": {"cpu": 1, "cpu": 2}, '])
def test_a_key_that_is_there_twice_is_2(tmp_path, first):
    """What a person or another program reads first was not what was verified."""
    text = json.dumps(forging.genuine("within a ratio"))
    (tmp_path / "r.json").write_text(first + text[1:])
    found = run(tmp_path / "r.json")
    assert found.exit_code == 2
    assert "2 columns are named" in found.stderr


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100_000, '{"certificate": {}}', "\xff", "1" * 5000])
def test_a_broken_file_is_2(tmp_path, text):
    (tmp_path / "r.json").write_bytes(text.encode("latin-1"))
    found = run(tmp_path / "r.json")
    assert found.exit_code == 2, found.output
    assert "Traceback" not in found.output
    assert run(tmp_path / "none.json").exit_code == 2


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_what_a_shell_made_of_the_text_is_read_also_through_a_pipe(tmp_path, encoding):
    """A shell of Windows writes what it redirects in UTF-16; `verify <(...)` gives a pipe."""
    text = json.dumps(forging.genuine("within a ratio")).encode(encoding)
    (tmp_path / "r.json").write_bytes(text)
    assert run(tmp_path / "r.json").exit_code == 0
    reading, writing = os.pipe()
    try:
        assert os.write(writing, text) == len(text)  # a pipe holds so much
        os.close(writing)
        assert run(f"/dev/fd/{reading}").exit_code == 0
    finally:
        os.close(reading)


def test_readings_of_a_table_and_of_a_plain_object(tmp_path):
    tapes, options = forging.ANALYSES["analyzed"]()
    file, columns = tmp_path / "tables" / "data.csv", [tape.tolist() for tape in tapes.values()]
    file.parent.mkdir()
    lines = [",".join(tapes), *(",".join(map(repr, row)) for row in zip(*columns, strict=True))]
    file.write_text("\n".join(lines))
    result = tmp_path / "r.json"
    save_result(result, "analyze", file)
    assert run(result).exit_code == 2
    assert [run(result, named).exit_code for named in (file, file.parent, file.with_stem("*"))] == [0, 0, 0]
    plain = written(tmp_path / "tapes.json", {arm: tape.tolist() for arm, tape in tapes.items()})
    assert run(result, plain).exit_code == 0
    other = written(tmp_path / "other.json", {arm: [1.0] for arm in tapes})
    assert (run(result, other).exit_code, "differs; give the same ones" in run(result, other).stdout) == (1, True)
    ordered = run(result, file, "--order", "rows")
    assert ordered.exit_code == 1
    assert "certificate.origin.options.ordered" in ordered.stdout
    assert options == {}


def saved(path, values=(0.0, 5.0)):
    study = Study(["A", "B"], max_pulls=60)
    with Store(path) as store:
        store.create(study.definition)
        log_to(study, store)
        while pulls := study.ask(4):
            for place, pull in enumerate(pulls[::-1]):
                study.tell(pull, values[pull.arm == "B"] + (7 * study.pulls + place) % 3)
    return study


def test_the_report_of_a_log_is_verified_by_itself_and_by_the_log(tmp_path):
    saved(tmp_path / "run.db")
    save_result(tmp_path / "r.json", "report", tmp_path / "run.db")
    assert run(tmp_path / "r.json").exit_code == 2
    assert run(tmp_path / "r.json", tmp_path / "run.db").exit_code == 0
    found = run(tmp_path / "run.db")
    assert found.exit_code == 0
    words = found.stdout.split()
    assert words[:3] == ["Verified:", f"{tmp_path}/run.db", "holds"]
    head = words[-1]
    assert run(tmp_path / "run.db", "--head", head).exit_code == 0
    assert run(tmp_path / "run.db", "--head", "0" * 64).exit_code == 1
    assert run(tmp_path / "r.json", tmp_path / "run.db", "--head", head).exit_code == 0
    assert run(tmp_path / "r.json", tmp_path / "run.db", "--head", "0" * 64).exit_code == 1
    for words, said in (
        ((tmp_path / "r.json", "--head", head), "--head is that of a log; give the log"),
        (
            (tmp_path / "run.db", tmp_path / "r.json"),
            f"verified alone; to verify a result with it: truearm verify {tmp_path}",
        ),
    ):
        refused = run(*words)
        assert (refused.exit_code, said in " ".join(refused.stderr.split())) == (2, True)


def table(path, columns):
    """Write columns of a CSV file, nothing where a value is None."""
    cells = [["" if x is None else str(x) for x in column] for column in columns.values()]
    path.write_text("\n".join([",".join(columns), *(",".join(row) for row in zip(*cells, strict=True))]))
    return path


def visits(n=240, seed=3):
    """Return rows of users with several readings each, some of them missing."""
    rng = np.random.default_rng(seed)
    user = rng.integers(0, 60, n)
    arm = np.array(["A", "B", "C"])[user % 3]
    ms = [None if i % 37 == 0 else float(x) for i, x in enumerate(rng.normal(5, 1, n) + 2 * (arm == "A"))]
    return {"arm": arm.tolist(), "ms": ms, "user": [f"u{u}" for u in user]}


@pytest.mark.parametrize("asked", [(), ("--at-least", 6), ("--at-most", 6)])
def test_an_analysis_by_unit_is_verified_by_its_own_table(tmp_path, asked):
    """How readings of one unit become one depends on what was asked, which the result says."""
    roles = ("--arm", "arm", "--value", "ms", "--unit", "user")
    file = table(tmp_path / "rows.csv", visits())
    save_result(tmp_path / "r.json", "analyze", file, *roles, *asked)
    assert run(tmp_path / "r.json", file, *roles).exit_code == 0


def test_an_analysis_in_rounds_is_verified_by_its_own_table(tmp_path):
    """Arms that were not in every round: a round without a reading counts, wherever it is."""
    rng = np.random.default_rng(1)
    one, other = rng.normal(2, 1, 60).tolist(), [*rng.normal(0, 1, 50).tolist(), *[None] * 10]
    wide = table(tmp_path / "wide.csv", {"A": one, "B": other})
    items = [f"i{i}" for i in range(60)]
    rows = {"arm": ["A"] * 60 + ["B"] * 50, "ms": [*one, *other[:50]], "item": [*items, *items[10:]]}
    long = table(tmp_path / "long.csv", rows)
    short = written(tmp_path / "short.json", {"A": one, "B": other[:50]})
    nulls = written(tmp_path / "nulls.json", {"A": one, "B": other})
    columns = ("--arm", "arm", "--value", "ms")
    for file, roles, others in ((wide, (), (short, nulls)), (long, columns, ())):
        column = ("--round", "item" if roles else "rows")
        assert save_result(tmp_path / "r.json", "analyze", file, *roles, *column)["status"] == "certified"
        assert run(tmp_path / "r.json", file, *roles, *column).exit_code == 0
        for same in others:
            assert run(tmp_path / "r.json", same).exit_code == 0
    wrong = run(tmp_path / "r.json", long, *columns)
    assert wrong.exit_code == 1
    assert "(such as round)" in " ".join(wrong.stdout.split())
    assert run(tmp_path / "r.json", long, *columns, "--round", "item", "--unit", "item").exit_code == 2


def test_null_is_a_missing_reading_of_a_table_in_json(tmp_path):
    tapes = {arm: [None, *tape.tolist()] for arm, tape in forging.frame().items()}
    file = written(tmp_path / "tapes.json", tapes)
    assert save_result(tmp_path / "r.json", "analyze", file)["missing"]["A"] == 1
    assert run(tmp_path / "r.json", file).exit_code == 0


ROW = (
    "INSERT INTO truearm_event SELECT {}, kind, ticket + 999, arm, draw, value, notes, digest, worker, at "
    "FROM truearm_event WHERE position = {}"
)
DAMAGED_LOGS = {
    "a study before it": (ROW.format("'b', 0", 0), "the log was changed after it was written"),
    "a study after it": (ROW.format("'x', 0", 0), "the log was changed after it was written"),
    "a definition that is not UTF-8": (
        "UPDATE truearm_event SET notes = notes || CAST(x'ff' AS TEXT) WHERE position = 0",
        "text that is not UTF-8",
    ),
}


@pytest.mark.parametrize("damage", DAMAGED_LOGS)
def test_rows_that_no_digest_covers_and_stray_bytes_are_refused(tmp_path, damage):
    statement, message = DAMAGED_LOGS[damage]
    log, result = tmp_path / "run.db", tmp_path / "r.json"
    saved(log)
    save_result(result, "report", log)
    with contextlib.closing(sqlite3.connect(log)) as connection:
        connection.execute("DROP TRIGGER truearm_no_update")
        connection.execute(statement)
        connection.commit()
    for words in ((log,), (result, log)):
        found = run(*words)
        assert (found.exit_code, message in found.stdout) == (1, True), found.output
    found = CliRunner().invoke(main, ["report", str(log)])
    assert (found.exit_code, message in " ".join(found.stderr.split())) == (2, True)


def test_a_result_carries_no_events_and_a_log_says_what_was_known_at_each_decision(tmp_path):
    """What stands under `events` in a document is not looked at, whatever log it is verified by."""
    saved(tmp_path / "run.db")
    data = save_result(tmp_path / "r.json", "report", tmp_path / "run.db")
    assert "events" not in data
    assert data["certificate"]["origin"]["overlapping"]
    data["events"] = [["told", 0, "A", None, 1.0]]
    found = run(written(tmp_path / "r.json", data), tmp_path / "run.db", "--json")
    assert (found.exit_code, "events" in json.loads(found.stdout)["beside"]) == (0, True)
    assert "give its log" in run(tmp_path / "r.json").stderr
