import gzip
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from truearm import Study
from truearm.errors import InvalidArgument
from truearm.report.export import document, json_text
from truearm.world import duck_files, files
from truearm.world.files import collect, read

ROWS = {"site": ["B", "A", "B", "A"], "ms": [3.0, None, 5.25, 2.5], "other": ["x", "y", "z", ""]}
TEXT = "site,ms,other\nB,3,x\nA,,y\nB,5.25,z\nA,2.5,\n"


def _csv(path):
    path.write_text(TEXT)


def _tsv(path):
    path.write_text(TEXT.replace(",", "\t"))


def _gzipped(path):
    path.write_bytes(gzip.compress(TEXT.encode()))


def _parquet(path):
    parquet.write_table(pa.table(ROWS), path)


def _jsonl(path):
    path.write_text("".join(json.dumps(row) + "\n" for row in pa.table(ROWS).to_pylist()))


def _json(path):
    path.write_text(json.dumps(pa.table(ROWS).to_pylist()))


def _arrow(path):
    feather.write_feather(pa.table(ROWS), str(path))


def _excel(path):
    pd.DataFrame(ROWS).to_excel(path, index=False)


WRITERS = {
    "a.csv": _csv,
    "a.tsv": _tsv,
    "a.csv.gz": _gzipped,
    "a.parquet": _parquet,
    "a.jsonl": _jsonl,
    "a.json": _json,
    "a.arrow": _arrow,
    "a.xlsx": _excel,
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_tapes(tmp_path, name):
    WRITERS[name](tmp_path / name)
    tapes = read(tmp_path / name, arm="site", value="ms")
    assert list(tapes) == ["B", "A"]  # by first row
    np.testing.assert_array_equal(tapes["B"], [3.0, 5.25])
    np.testing.assert_array_equal(tapes["A"], [np.nan, 2.5])


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet", "a.arrow"])
def test_many_rows_come_by_way_of_arrow_and_are_the_same(tmp_path, monkeypatch, name):
    monkeypatch.setattr(duck_files, "_MANY", 1)
    test_every_format_gives_the_same_tapes(tmp_path, name)


@pytest.mark.parametrize("rows", [1 << 20, (1 << 20) - 1])
def test_millions_of_rows_keep_their_order(tmp_path, rows):
    arms, values = np.arange(rows) * 7 % 11, np.arange(rows, dtype=float)
    values[:: 1 << 15] = np.nan
    parquet.write_table(pa.table({"arm": arms, "x": pa.array(values, from_pandas=True)}), tmp_path / "a.parquet")
    tapes = read(tmp_path / "a.parquet", arm="arm", value="x")
    assert list(tapes) == [str(i * 7 % 11) for i in range(11)]
    for name, tape in tapes.items():
        np.testing.assert_array_equal(tape, values[arms == int(name)])


@pytest.mark.parametrize("name", WRITERS)
def test_an_unknown_column_is_named_in_every_format(tmp_path, name):
    WRITERS[name](tmp_path / name)
    with pytest.raises(InvalidArgument, match="value='mss' is not a column; did you mean 'ms'"):
        read(tmp_path / name, arm="site", value="mss")


@pytest.mark.parametrize(
    ("name", "row"), [("a.csv", 1), ("a.tsv", 1), ("a.jsonl", 1), ("a.xlsx", 1), ("a.parquet", 1)]
)
def test_a_column_of_words_is_named_by_row_and_column(tmp_path, name, row):
    WRITERS[name](tmp_path / name)
    with pytest.raises(InvalidArgument, match=f"row {row} of column 'other' must be a number, but got 'x'"):
        read(tmp_path / name, arm="site", value="other")


def test_one_word_far_down_is_found(tmp_path):
    rows = [f"A,{i}" for i in range(50_000)]
    rows[43_210] = "A,oops"
    (tmp_path / "a.csv").write_text("arm,x\n" + "\n".join(rows) + "\n")
    with pytest.raises(InvalidArgument, match="row 43211 of column 'x' must be a number, but got 'oops'"):
        read(tmp_path / "a.csv", arm="arm", value="x")


def test_a_row_without_an_arm_is_named(tmp_path):
    (tmp_path / "a.csv").write_text("arm,x\nA,1\n,2\n")
    with pytest.raises(InvalidArgument, match="row 2 of column 'arm' names no arm"):
        read(tmp_path / "a.csv", arm="arm", value="x")


def test_the_marks_of_a_missing_number_and_infinities(tmp_path):
    cells = ["NA", "n/a", "nan", "NULL", "None", "", "inf", "-Infinity", "1e3"]
    (tmp_path / "a.csv").write_text("arm,x\n" + "".join(f"A,{cell}\n" for cell in cells))
    found = read(tmp_path / "a.csv", arm="arm", value="x")["A"]
    np.testing.assert_array_equal(found, [np.nan] * 6 + [np.inf, -np.inf, 1000.0])


@pytest.mark.parametrize("name", ["w.csv", "w.parquet"])
def test_a_wide_file_has_one_column_per_arm(tmp_path, name):
    frame = pd.DataFrame({"A": [1.0, 2.0, None], "B": [None, 2.0, 3.0]})
    frame.to_csv(tmp_path / name, index=False) if name.endswith("csv") else frame.to_parquet(tmp_path / name)
    tapes = read(tmp_path / name)
    assert tapes["A"].tolist() == [1.0, 2.0]
    np.testing.assert_array_equal(tapes["B"], [np.nan, 2.0, 3.0])


def test_numbers_and_odd_names_as_arms(tmp_path):
    names = ["it's", 'say "hi"', "semi;colon", "ünï"]
    parquet.write_table(pa.table({'a "b"': names, "x'y": [1, 2, 3, 4]}), tmp_path / "a.parquet")
    assert list(read(tmp_path / "a.parquet", arm='a "b"', value="x'y")) == names
    parquet.write_table(pa.table({"arm": [10, 9], "x": [True, False]}), tmp_path / "b.parquet")
    assert list(read(tmp_path / "b.parquet", arm="arm", value="x")) == ["10", "9"]


def test_many_arms(tmp_path):
    codes = np.arange(5000) % 700
    parquet.write_table(pa.table({"arm": codes, "x": np.arange(5000.0)}), tmp_path / "a.parquet")
    tapes = read(tmp_path / "a.parquet", arm="arm", value="x")
    assert list(tapes) == [str(i) for i in range(700)]
    np.testing.assert_array_equal(tapes["300"], np.arange(300.0, 5000, 700))


def test_what_hyperfine_exports(tmp_path):
    results = [
        {"command": "old", "times": [0.2, 0.3], "exit_codes": [0, 0]},
        {"command": "new", "times": [0.1, 0.1], "exit_codes": [0, 1]},
    ]
    (tmp_path / "h.json").write_text(json.dumps({"results": results}))
    tapes = read(tmp_path / "h.json")
    assert tapes["old"].tolist() == [0.2, 0.3]
    np.testing.assert_array_equal(tapes["new"], [0.1, np.nan])


def test_two_results_of_one_name_are_not_one_command(tmp_path):
    twice = [{"command": "x", "times": [0.1, 0.2]}, {"command": "x", "times": [9.0, 9.1]}]
    (tmp_path / "h.json").write_text(json.dumps({"results": twice}))
    with pytest.raises(InvalidArgument, match="two results of this export are called 'x'"):
        read(tmp_path / "h.json")


def test_our_own_exports_are_read_as_what_was_measured(tmp_path):
    """A race for memory holds wall times beside its readings; those are not what was compared."""
    study = Study(["A", "B"], goal="min", max_pulls=4)
    for pull in study.ask():
        study.tell(pull, 5.0 if pull.arm == "A" else math.inf)
    times = [{"command": arm, "times": [0.1, 0.2], "exit_codes": [0, 0]} for arm in "AB"]
    found = {**document(study.result, study.readings, metric="memory"), "results": times}
    (tmp_path / "own.json").write_text(json_text(found))
    tapes = read(tmp_path / "own.json")
    assert {arm: tape.tolist() for arm, tape in tapes.items()} == {"A": [5.0, 5.0], "B": [math.inf, math.inf]}


def test_what_pyperf_exports(tmp_path):
    runs = [{"metadata": {}, "warmups": [[1, 0.9]]}, {"values": [0.5, 0.6]}, {"values": [0.7]}]
    named = {"benchmarks": [{"metadata": {"name": "join"}, "runs": runs}], "version": "1.0"}
    (tmp_path / "p.json").write_text(json.dumps(named))
    assert read(tmp_path / "p.json")["join"].tolist() == [0.55, 0.7]
    common = {"benchmarks": [{"runs": runs}], "metadata": {"name": "split"}}
    (tmp_path / "p.json").write_text(json.dumps(common))
    assert list(read(tmp_path / "p.json")) == ["split"]


def test_columns_by_name_in_json(tmp_path):
    (tmp_path / "c.json").write_text('{"A": [1, 2], "B": [3, null]}')
    assert read(tmp_path / "c.json")["A"].tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", "", "ending '.txt' of 'a.txt' is unknown"),
        ("a.json", "{", "is not JSON"),
        ("a.json", "[1, 2]", "must hold columns by name"),
        ("a.parquet", "no", "cannot be read as parquet"),
        ("a.jsonl", "no\n", "cannot be read as JSON lines"),
        ("a.arrow", "no", "cannot be read as arrow"),
    ],
)
def test_files_that_cannot_be_read_say_why(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(InvalidArgument, match=message):
        read(tmp_path / name, arm="a", value="b")


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_a_file_without_rows_says_so(tmp_path, name):
    empty = pd.DataFrame({"arm": pd.Series(dtype=str), "x": pd.Series(dtype=float)})
    empty.to_csv(tmp_path / name, index=False) if name == "a.csv" else empty.to_parquet(tmp_path / name)
    with pytest.raises(InvalidArgument, match="the file has no rows of data"):
        read(tmp_path / name, arm="arm", value="x")


def test_a_file_that_is_not_there():
    with pytest.raises(InvalidArgument, match=r"there is no file 'gone.csv'"):
        read("gone.csv")


def test_the_kind_may_be_said(tmp_path):
    (tmp_path / "data.txt").write_text(TEXT)
    assert list(read(tmp_path / "data.txt", arm="site", value="ms", kind="csv")) == ["B", "A"]
    with pytest.raises(InvalidArgument, match="kind must be one of"):
        read(tmp_path / "data.txt", kind="word")


def test_half_of_the_columns_is_not_enough(tmp_path):
    _csv(tmp_path / "a.csv")
    with pytest.raises(InvalidArgument, match="arm is given but value is not"):
        read(tmp_path / "a.csv", arm="site")


def test_without_duckdb_the_error_says_what_to_install(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"site": "A", "ms": 3}\n')
    code = (
        "import sys; sys.modules['duckdb'] = None\nfrom truearm.world.files import read\n"
        f"read({str(tmp_path / 'a.jsonl')!r}, arm='site', value='ms')"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'truearm[data]'" in ended.stderr


def test_an_empty_sheet_has_no_rows(tmp_path):
    openpyxl.Workbook().save(Path(tmp_path, "e.xlsx"))
    with pytest.raises(InvalidArgument, match="has no rows of data"):
        read(tmp_path / "e.xlsx", arm="a", value="b")


def _lists(tapes):
    return {name: [None if np.isnan(x) else x for x in tape.tolist()] for name, tape in tapes.items()}


@pytest.mark.parametrize("name", ["i.xlsx", "i.csv"])
def test_a_column_without_a_name_shifts_nothing_and_is_no_arm(tmp_path, name):
    frame = pd.DataFrame({"A": [1.0, 2.0], "B": [3.0, 4.0]}, index=[70, 80])
    frame.to_csv(tmp_path / name) if name == "i.csv" else frame.to_excel(tmp_path / name)
    assert _lists(read(tmp_path / name)) == {"A": [1.0, 2.0], "B": [3.0, 4.0]}


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet", "csv.gz", "arrow"])
@pytest.mark.parametrize("stem", ["g*", "star*[1]", "q?", "b]r[", r"back\s", "run=1/x"])
def test_a_name_stands_for_one_file_only(tmp_path, kind, stem):
    file = tmp_path / f"{stem}.{kind}"
    file.parent.mkdir(exist_ok=True)
    for other in ("gZZ1", "star21", "qq"):
        WRITERS[f"a.{kind}"](tmp_path / f"{other}.{kind}")
    WRITERS[f"a.{kind}"](file)
    assert _lists(read(file, arm="site", value="ms")) == {"B": [3.0, 5.25], "A": [None, 2.5]}
    with pytest.raises(InvalidArgument, match=r"columns are 'site', 'ms', 'other'$"):
        read(file, arm="run", value="ms")


@pytest.mark.parametrize("name", ["w.csv", "w.xlsx", "w.json", "w.jsonl", "w.parquet"])
def test_the_foot_of_a_shorter_column_is_no_reading_in_any_format(tmp_path, name):
    rows, path = [{"A": 1.0, "B": None}, {"A": None, "B": 2.0}, {"A": 2.0, "B": 3.0}, {"B": 4.0}], tmp_path / name
    frame = pd.DataFrame(rows)
    {
        "csv": lambda: frame.to_csv(path, index=False),
        "xlsx": lambda: frame.to_excel(path, index=False),
        "json": lambda: path.write_text(json.dumps(rows)),
        "jsonl": lambda: path.write_text("".join(json.dumps(row) + "\n" for row in rows)),
        "parquet": lambda: frame.to_parquet(path),
    }[name[2:]]()
    assert _lists(read(path)) == {"A": [1.0, None, 2.0], "B": [None, 2.0, 3.0, 4.0]}


def _two(path, names):
    table = pa.table([["x", "y"], [1.0, 2.0], ["u", "v"]], names=names)
    if path.suffix == ".csv":
        path.write_text(",".join(names) + "\nx,1,u\ny,2,v\n")
    elif path.suffix == ".parquet":
        parquet.write_table(table, path)
    elif path.suffix == ".arrow":
        feather.write_feather(table, str(path))
    elif path.suffix == ".jsonl":
        path.write_text(json.dumps(dict(zip(names, (1, 2, 3), strict=True))) + "\n")
    else:
        book = openpyxl.Workbook()
        for row in (names, ["x", 1.0, "u"], ["y", 2.0, "v"]):
            book.active.append(row)
        book.save(path)


@pytest.mark.parametrize("name", ["d.csv", "d.xlsx", "d.parquet", "d.arrow"])
def test_two_columns_of_one_name_are_refused_if_they_are_asked_for(tmp_path, name):
    _two(tmp_path / name, ["s", "A", "A"])
    with pytest.raises(InvalidArgument, match="2 columns are named 'A'"):
        read(tmp_path / name)
    with pytest.raises(InvalidArgument, match="2 columns are named 'A'"):
        read(tmp_path / name, arm="s", value="A")


def test_two_columns_of_one_name_do_not_matter_if_nobody_asks_for_them(tmp_path):
    (tmp_path / "d.csv").write_text("s,A,A,x\nB,1,2,3\n")
    assert _lists(read(tmp_path / "d.csv", arm="s", value="x")) == {"B": [3.0]}


@pytest.mark.parametrize("name", ["d.csv", "d.parquet", "d.arrow", "d.jsonl"])
def test_names_that_differ_in_case_only_are_refused_and_not_renamed(tmp_path, name):
    _two(tmp_path / name, ["s", "A", "a"])
    with pytest.raises(InvalidArgument, match="columns 'A' and 'a' differ only in case"):
        read(tmp_path / name, arm="s", value="a")


@pytest.mark.parametrize("name", ["d.csv", "d.parquet", "d.arrow", "d.jsonl", "d.xlsx"])
def test_names_that_only_look_renamed_are_read(tmp_path, name):
    _two(tmp_path / name, ["A", "A_1", "a_2_1"])
    assert sum(tape.size for tape in read(tmp_path / name, arm="A", value="A_1").values()) >= 1


def test_a_name_twice_in_one_object_is_refused(tmp_path):
    (tmp_path / "d.json").write_text('{"A": [1], "A": [2]}')
    with pytest.raises(InvalidArgument, match="2 columns are named 'A'"):
        read(tmp_path / "d.json")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.xlsx", "no", "'a.xlsx' is not an Excel workbook"),
        ("a.xlsx.gz", "no", "'a.xlsx.gz' is packed"),
        ("a.json", '{"results": "abc"}', "column 'results' must be a list of readings, but got 'abc'"),
        ("a.json", '{"results": [{"command": "x", "mean": 1.0}]}', "holds no single times of 'x'"),
        ("a.json", '{"results": [{"command": "x", "times": [1, "b"]}]}', "row 2 of column 'x' must be a number"),
        ("a.json", '{"benchmarks": [{"metadata": {"name": "x"}}]}', "holds no runs of 'x'"),
        ("a.json", '{"benchmarks": [{"metadata": 3, "runs": 4}]}', "looks like an export of pyperf, but is none"),
        ("a.json", '{"A": [1' + "0" * 400 + "]}", "row 1 of column 'A' is beyond the largest number"),
        ("empty.csv", "", "'empty.csv' is empty"),
        ("blank.csv", "  \n\n", "the file has no rows of data"),
        ("packed.csv.gz", "A,B\n1,2\n", "'packed.csv.gz' cannot be read as CSV"),
        ("head.csv", "A,B\n", "the file has no rows of data"),
        (
            "long.csv",
            "variant,ms\nx,1\ny,2\n",
            "'variant' holds words; name the columns: arm='variant', value='ms'",
        ),
        ("slip.csv", "A,B\nx,1\n2,2\n", "row 1 of column 'A' must be a number, but got 'x'"),
        ("once.csv", "A,B\nx,1\n", "row 1 of column 'A' must be a number, but got 'x'"),
        ("day.csv", "A,B\n1,2024-01-31\n2,2024-02-01\n", "row 1 of column 'B' is a date, '2024-01-31'"),
        ("more.csv", "A,B\n1,2\n3,4,5\n6,7\n", "line 3 of 'more.csv' has 3 cells, but the first line has 2"),
        ("top.csv", "\nA,B\n1,2,3\n4,5,6\n", "line 3 of 'top.csv' has 3 cells, but the first line has 2"),
        ("less.tsv", "A\tB\n1\t2\n3\n", "line 3 of 'less.tsv' has 1 cell, but the first line has 2"),
        ("deep.csv", "A,B\n" + "1,2\n" * 60_000 + "1,2,3\n", "line 60002 of 'deep.csv' has 3 cells"),
        ("latin.csv", b"A,B\n1,2\n3,\xe4\n", "line 3 of 'latin.csv' is not UTF-8; save the file as UTF-8"),
        ("side.csv", ",".join(map(str, range(10_001))) + "\n", "there are 10,001 columns"),
    ],
)
def test_what_is_wrong_with_a_wide_file_is_said(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InvalidArgument, match=message):
        read(tmp_path / name)


def test_columns_may_be_named_as_exports_name_theirs(tmp_path):
    (tmp_path / "c.json").write_text('{"results": [1, 2], "x": [3, 4]}')
    assert _lists(read(tmp_path / "c.json")) == {"results": [1.0, 2.0], "x": [3.0, 4.0]}


def test_blank_lines_above_the_names_are_passed_over(tmp_path):
    (tmp_path / "b.csv").write_text("\n\nA,B\n1,2\n")
    assert _lists(read(tmp_path / "b.csv")) == {"A": [1.0], "B": [2.0]}


def test_lists_and_numbers_that_are_none_in_parquet(tmp_path):
    parquet.write_table(pa.table({"s": [1.0, np.nan], "x": [[1], [2]], "y": [1, 2]}), tmp_path / "l.parquet")
    with pytest.raises(InvalidArgument, match=r"row 1 of column 'x' must be a number, but got \[1\]"):
        read(tmp_path / "l.parquet", arm="y", value="x")
    with pytest.raises(InvalidArgument, match="row 2 of column 's' names no arm"):
        read(tmp_path / "l.parquet", arm="s", value="y")


@pytest.mark.parametrize("name", ["id.csv", "id.parquet"])
def test_an_id_taken_for_the_arm_is_refused_with_the_count(tmp_path, name):
    frame = pd.DataFrame({"id": range(20_000), "x": range(20_000)})
    frame.to_csv(tmp_path / name, index=False) if name == "id.csv" else frame.to_parquet(tmp_path / name)
    with pytest.raises(InvalidArgument, match="arm='id' names 20,000 arms, but at most 10,000"):
        read(tmp_path / name, arm="id", value="x")


def test_a_workbook_may_have_any_name(tmp_path):
    _excel(tmp_path / "a.xlsx")
    (tmp_path / "a.xlsx").rename(tmp_path / "a.data")
    assert list(read(tmp_path / "a.data", arm="site", value="ms", kind="excel")) == ["B", "A"]


UNITS = {
    "site": ["B", "A", "B", "A", "B", "A", "B"],
    "user": [1, 2, 1, 3, 4, 2, 1],
    "ms": [3.0, 1.0, 5.0, 2.0, 8.0, 4.0, 4.0],
    "at": [17, 16, 15, 14, 13, 12, 9],
    "day": [f"2026-01-{day:02}" for day in range(7, 0, -1)],
}
TEXTS = "a.csv", "a.tsv", "a.csv.gz"


@pytest.fixture(params=WRITERS)
def with_units(request, tmp_path, monkeypatch):
    frame = pd.DataFrame(UNITS)
    monkeypatch.setitem(globals(), "ROWS", UNITS)
    monkeypatch.setitem(globals(), "TEXT", frame.to_csv(index=False))
    WRITERS[request.param](tmp_path / request.param)
    return tmp_path / request.param


def test_readings_of_one_unit_become_one_in_every_format(with_units):
    found = collect(with_units, arm="site", value="ms", unit="user")
    assert {name: tape.tolist() for name, tape in found.tapes.items()} == {"B": [4.0, 8.0], "A": [2.5, 2.0]}
    assert found.units == ("user", {"B": 4, "A": 3}, {"B": 2, "A": 2}, 0)
    assert found.suspects == ()


@pytest.mark.parametrize("column", ["at", "day"])
def test_a_column_puts_readings_in_order_in_every_format(with_units, column):
    found = collect(with_units, arm="site", value="ms", order=column)
    assert {name: tape.tolist() for name, tape in found.tapes.items()} == {"B": [4, 8, 5, 3], "A": [4, 2, 1]}
    assert (list(found.tapes), found.ordered) == (["B", "A"], True)
    assert found.suspects[0].column == "user"


def test_columns_named_like_units_are_suspected_in_every_format(with_units):
    found = collect(with_units, arm="site", value="ms")
    assert [suspect.column for suspect in found.suspects] == ["user", "day"]
    user = found.suspects[0]
    assert user.units.tolist() == [0, 1, 0, 2, 3, 1, 0]
    assert user.values.tolist() == UNITS["ms"]
    assert len({*zip(user.arms.tolist(), UNITS["site"], strict=True)}) == 2
    assert not found.ordered
    assert collect(with_units, arm="site", value="ms", order="rows").ordered


def test_what_is_wrong_with_units_is_said_in_every_format(with_units):
    with pytest.raises(InvalidArgument, match="unit='usr' is not a column; did you mean 'user'"):
        read(with_units, arm="site", value="ms", unit="usr")
    with pytest.raises(InvalidArgument, match="order='site' is the column of the arms"):
        read(with_units, arm="site", value="ms", order="site")
    with pytest.raises(InvalidArgument, match=r"column 'site' holds words|column 'day' is a date"):
        read(with_units, unit="user")


def test_rows_without_a_unit_or_a_place_are_named(tmp_path):
    (tmp_path / "a.csv").write_text("arm,x,user,at\nA,1,u,1\nA,2,,2\nA,3,v,\n")
    with pytest.raises(InvalidArgument, match="row 2 of column 'user' names no unit"):
        read(tmp_path / "a.csv", arm="arm", value="x", unit="user")
    with pytest.raises(InvalidArgument, match="row 3 of column 'at' is empty"):
        read(tmp_path / "a.csv", arm="arm", value="x", order="at")
    (tmp_path / "b.csv").write_text("arm,x,user\nA,1,u\nA,2,v\n")
    with pytest.raises(InvalidArgument, match="order='user' must hold numbers or times"):
        read(tmp_path / "b.csv", arm="arm", value="x", order="user")


def test_an_arm_with_one_unit_is_refused_in_a_file(tmp_path):
    (tmp_path / "a.csv").write_text("arm,x,pid\nA,1,7\nA,2,7\nB,1,8\nB,2,9\n")
    with pytest.raises(InvalidArgument, match="arm 'A' has one unit only: its 2 readings are of a single 'pid'"):
        read(tmp_path / "a.csv", arm="arm", value="x", unit="pid")


def test_a_unit_may_be_any_number_in_parquet(tmp_path):
    rows = {"arm": ["A"] * 4, "x": [1, 2, 3, 4], "u": [0.5, float("nan"), 0.5, 2.0]}
    parquet.write_table(pa.table(rows), tmp_path / "a.parquet")
    with pytest.raises(InvalidArgument, match="row 2 of column 'u' names no arm"):
        read(tmp_path / "a.parquet", arm="u", value="x")
    with pytest.raises(InvalidArgument, match="row 2 of column 'u' names no unit"):
        read(tmp_path / "a.parquet", arm="arm", value="x", unit="u")
    for u in ([0.5, 2.0, 0.5, 2.0], [-7, 2**40, -7, 2**40], [True, False, True, False], [b"x", b"y", b"x", b"y"]):
        parquet.write_table(pa.table({**rows, "u": u}), tmp_path / "a.parquet")
        assert read(tmp_path / "a.parquet", arm="arm", value="x", unit="u")["A"].tolist() == [2.0, 3.0]
    parquet.write_table(pa.table({**rows, "u": [1, 2, 1, None]}), tmp_path / "a.parquet")
    with pytest.raises(InvalidArgument, match="row 4 of column 'u' names no unit"):
        read(tmp_path / "a.parquet", arm="arm", value="x", unit="u")


def test_times_with_a_zone_and_large_numbers_order_parquet(tmp_path):
    times = [pa.array([3, 2, 1], pa.timestamp(*kind)) for kind in (("us", "UTC"), ("ns",), ("ms",), ("s",))]
    for at in (*times, pa.array([2**62 + i for i in (2, 1, 0)]), pa.array([3, 2, 1], pa.date32())):
        parquet.write_table(pa.table({"arm": ["A"] * 3, "x": [1, 2, 3], "at": at}), tmp_path / "a.parquet")
        assert read(tmp_path / "a.parquet", arm="arm", value="x", order="at")["A"].tolist() == [3, 2, 1]


def test_a_process_of_pyperf_is_a_unit_and_its_order_is_known(tmp_path):
    runs = [{"values": [0.5, 0.9, 0.7]}, {"warmups": [[1, 0.9]]}, {"values": [0.6, 0.6]}]
    (tmp_path / "p.json").write_text(
        json.dumps({"benchmarks": [{"metadata": {"name": "join"}, "runs": runs}] * 2})
    )
    found = collect(tmp_path / "p.json")
    assert found.tapes["join"].tolist() == [0.7, 0.6, 0.7, 0.6]
    assert (found.ordered, found.units) == (True, ("process", {"join": 10}, {"join": 4}, 0))


def test_a_run_of_hyperfine_is_a_unit_of_its_own_in_order(tmp_path):
    (tmp_path / "h.json").write_text('{"results": [{"command": "true", "times": [0.3, 0.1]}]}')
    found = collect(tmp_path / "h.json", order="rows")
    assert (found.ordered, found.units, found.tapes["true"].tolist()) == (True, None, [0.3, 0.1])


def test_an_export_knows_its_unit_better_than_the_user(tmp_path):
    (tmp_path / "h.json").write_text('{"results": [{"command": "true", "times": [0.3, 0.1]}]}')
    with pytest.raises(InvalidArgument, match="unit='pid' is given, but an export of hyperfine knows its own"):
        collect(tmp_path / "h.json", arm="a", value="x", unit="pid")


def test_of_an_export_that_is_none_no_more_than_a_line_is_printed(tmp_path):
    runs = [{"values": ["x" * 10_000 + "\n"]}]
    (tmp_path / "p.json").write_text(json.dumps({"benchmarks": [{"metadata": {"name": "join"}, "runs": runs}]}))
    with pytest.raises(InvalidArgument) as error:
        read(tmp_path / "p.json")
    assert len(str(error.value)) < 250
    assert "\n" not in str(error.value)


def outcome(path):
    try:
        found = read(path, arm="arm", value="x")
    except InvalidArgument as error:
        return str(error)
    return [(name, tape.tobytes()) for name, tape in found.items()]


@pytest.mark.parametrize(
    "text",
    [
        "arm,x\nA,1\nB,\nA,nan\n1.1,-inf\n1.10, 7\n",
        "arm,x\nA,1\nB,NA\nA,true\n",
        "arm,x\nA,1\nB,fast\n",
        "arm,x\n A,1\nA,2\n",
        "arm,x\nA,1\n,2\n",
        "arm,x\n",
        "arm,x\nA,1\n" + "B,2\n" * (1 << 16) + "C,3\n",
        "arm,x\nA,1\n" + "B,2\n" * (1 << 16) + "B,true\n",
        "arm,x\nA,1\n" + "B,2\n" * (1 << 16) + ",4\n",
        "arm,x\nA,1\n" + "B,2\n" * (1 << 16) + "B,4,5\n",
    ],
)
def test_a_large_file_is_read_as_a_small_one(tmp_path, monkeypatch, text):
    path = tmp_path / "rows.csv"
    path.write_text(text, encoding="utf-8")
    small = outcome(path)
    monkeypatch.setattr(duck_files, "_LARGE", 0)
    assert outcome(path) == small


def of_row_groups(*dictionaries):
    """Return a table of chunks that name their arms by dictionaries of their own."""
    codes = pa.array([0, 1, 0], pa.int8())
    arms = [pa.DictionaryArray.from_arrays(codes, pa.array(names)) for names in dictionaries]
    return pa.table({"arm": pa.chunked_array(arms), "x": pa.array(range(3 * len(arms)), pa.int16())})


PARQUETS = {
    "numbers": ({"arm": ["B", "A", "B"], "x": [1.5, math.inf, -0.0]}, {}),
    "missing": ({"arm": ["B", "A", "B"], "x": [None, math.nan, 3.0]}, {}),
    "none at all": ({"arm": ["B", "A"], "x": pa.nulls(2, pa.float64())}, {}),
    "large numbers": ({"arm": ["B", "A", "B"], "x": [2**63 - 1, 2**53 + 1, None]}, {}),
    "without sign": ({"arm": ["B", "A"], "x": pa.array([2**64 - 1, 3], pa.uint64())}, {}),
    "single": ({"arm": ["B", "A"], "x": pa.array([0.1, None], pa.float32())}, {}),
    "half": ({"arm": ["B", "A"], "x": pa.array(np.array([0.5, 2], np.float16))}, {}),
    "yes and no": ({"arm": ["B", "A"], "x": [True, None]}, {}),
    "decimal": ({"arm": ["B", "A"], "x": pa.array([1, 2]).cast(pa.decimal128(21, 2))}, {}),
    "long": ({"arm": ["B", "A"], "x": pa.array([1, 2], pa.duration("s"))}, {}),
    "when": ({"arm": ["B", "A"], "x": pa.array([1, 2], pa.timestamp("s"))}, {}),
    "words": ({"arm": ["B", "A"], "x": ["1", "fast"]}, {}),
    "no dictionary": ({"arm": ["B", "A", "B"], "x": [1, 2, 3]}, {"use_dictionary": False}),
    "spaces": ({"arm": [" A", "A ", "nan"], "x": [1, 2, 3]}, {}),
    "other letters": ({"arm": ["ünï", "it's", "\U0001f600"], "x": [1, 2, 3]}, {}),
    "large words": ({"arm": pa.array(["B", "A"], pa.large_string()), "x": [1, 2]}, {}),
    "bytes": ({"arm": [b"B", b"A"], "x": [1, 2]}, {}),
    "numbers for names": ({"arm": [1, 2, 1], "x": [1, 2, 3]}, {}),
    "nameless": ({"arm": ["B", None, "A"], "x": [1, 2, 3]}, {}),
    "empty name": ({"arm": ["B", "", "A"], "x": [1, 2, 3]}, {}),
    "no rows": ({"arm": pa.array([], pa.string()), "x": pa.array([], pa.float64())}, {}),
    "an id": ({"arm": [f"u{i}" for i in range(10_001)], "x": [0] * 10_001}, {}),
    "row groups": ({"arm": ["B", "A", "C", "C", "A"], "x": [1, 2, 3, 4, 5]}, {"row_group_size": 2}),
    "dictionaries": (of_row_groups(["B", "A"], ["A", "B"], ["C", "A"]), {"row_group_size": 3}),
    "unused names": (of_row_groups(["B", "A"]).slice(0, 1), {}),
    "a column inside": ({"arm": ["B", "A"], "x": [1, 2], "y": [{"x": 5}, {"x": 6}]}, {}),
}


@pytest.mark.parametrize("name", PARQUETS)
def test_a_large_parquet_file_is_read_as_a_small_one(tmp_path, monkeypatch, name):
    path = tmp_path / "rows.parquet"
    columns, options = PARQUETS[name]
    parquet.write_table(columns if isinstance(columns, pa.Table) else pa.table(columns), path, **options)
    small = outcome(path)
    monkeypatch.setattr(duck_files, "_MANY", 0)
    assert outcome(path) == small


def test_columns_of_parquet_with_dots_in_their_names_are_those_outside(tmp_path, monkeypatch):
    rows = {"a": [{"arm": "X", "x": 7}] * 2, "a.arm": ["B", "A"], "a.x": [1.0, 2.0]}
    parquet.write_table(pa.table(rows), tmp_path / "rows.parquet")
    monkeypatch.setattr(duck_files, "_MANY", 0)
    tapes = read(tmp_path / "rows.parquet", arm="a.arm", value="a.x")
    assert {name: tape.tolist() for name, tape in tapes.items()} == {"B": [1.0], "A": [2.0]}


def test_a_large_parquet_file_is_read_column_by_column(tmp_path, monkeypatch):
    _parquet(tmp_path / "a.parquet")
    monkeypatch.setattr(duck_files, "_MANY", 0)
    monkeypatch.setattr(duck_files.Table, "_chosen", None)  # reads a row at a time
    assert read(tmp_path / "a.parquet", arm="site", value="ms")["B"].tolist() == [3.0, 5.25]


def test_a_damaged_page_of_parquet_is_an_error_and_the_next_file_is_read(tmp_path, monkeypatch):
    rows = {"arm": ["A", "B"] * 500, "x": np.random.default_rng(0).normal(size=1000)}
    parquet.write_table(pa.table(rows), tmp_path / "a.parquet", compression="zstd")
    whole = outcome(tmp_path / "a.parquet")
    content = bytearray((tmp_path / "a.parquet").read_bytes())
    content[4:40] = bytes(36)
    (tmp_path / "b.parquet").write_bytes(content)
    for many in (duck_files._MANY, 0):
        monkeypatch.setattr(duck_files, "_MANY", many)
        assert "'b.parquet' cannot be read as parquet" in outcome(tmp_path / "b.parquet")
        assert outcome(tmp_path / "a.parquet") == whole


def test_a_large_file_is_read_in_one_pass(tmp_path, monkeypatch):
    path = tmp_path / "rows.csv"
    path.write_text("arm,x\n" + "A,1.5\nB,2\n" * 100, encoding="utf-8")
    monkeypatch.setattr(duck_files, "_LARGE", 0)
    monkeypatch.setattr(duck_files.Table, "_chosen", None)  # parses a file into a table of names and numbers
    assert files.read(path, arm="arm", value="x")["A"].tolist() == [1.5] * 100


def test_a_wide_file_of_many_columns_takes_few_queries(tmp_path, monkeypatch):
    """Several queries for each column took half a minute for 3,000 of them, and one plan of all as long."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(30, 300)).round(3)
    rows = [[str(x) for x in row] for row in values]
    rows[3][7], rows[29][9], rows[4][200] = "NA", "", "inf"
    names = [f"c{i}" for i in range(300)]
    (tmp_path / "a.csv").write_text("\n".join(",".join(row) for row in [names, *rows]))
    asked, run = [], duck_files.Table.__init__

    def counting(self, connection, *rest):
        run(self, connection, *rest)
        kept = self._run
        self._run = lambda query: asked.append(query) or kept(query)

    monkeypatch.setattr(duck_files.Table, "__init__", counting)
    tapes = files.read(tmp_path / "a.csv")
    assert len(asked) < 20
    assert np.isnan(tapes["c7"][3])
    assert (tapes["c9"].size, tapes["c200"][4]) == (29, np.inf)
    assert all((tapes[name] == values[:, i]).all() for i, name in enumerate(names) if i not in (7, 9, 200))
    rows[5][250] = "fast"
    (tmp_path / "a.csv").write_text("\n".join(",".join(row) for row in [names, *rows]))
    with pytest.raises(InvalidArgument, match="row 6 of column 'c250' must be a number, but got 'fast'"):
        files.read(tmp_path / "a.csv")
