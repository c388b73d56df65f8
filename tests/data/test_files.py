"""Files of every kind give the same readings, and say what is wrong with them."""

import gzip
import json
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor

import duckdb
import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, parquet
from reading import tapes, write

import truearm as ta
from entry import truearm
from truearm.errors import InvalidArgument

ROWS = {"site": ["B", "A", "B", "A"], "ms": [3.0, None, 5.25, 2.5], "other": ["x", "y", "z", ""]}


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "xlsx", "json"])
def test_a_cell_that_is_not_a_number_is_named_or_missing(tmp_path, ending):
    cells = ["1.5", "oops", "2.5", "4"] + ["3"] * (50_000 if ending == "csv" else 0)
    cells[-1 if ending == "csv" else 1] = "oops"
    path = write(tmp_path / f"b.{ending}", {"site": ["A", "B"] * (len(cells) // 2), "ms": cells})
    with pytest.raises(InvalidArgument, match=r"row 2 of column 'ms' must be a number, but got 'oops'"):
        tapes(path, "site", "ms")
    found = ta.analyze(path, arm="site", value="ms", unreadable="missing")
    n = cells.count("oops")
    assert found.missing == {"A": 0, "B": n}
    assert any(note.startswith(f"In ms, {n} cell") for note in found.notes)


NAMES = {  # names of columns, the columns asked for, what is wrong with them
    "twice": ("s,A,A", (None, None), "2 columns are named 'A'"),
    "twice, asked for": ("s,A,A", ("s", "A"), "2 columns are named 'A'"),
    "twice, not asked for": ("s,A,x,x", ("s", "A"), ""),
    "case": ("s,A,a", ("s", "a"), "columns 'A' and 'a' differ only in case"),
    "as if renamed": ("A,A_1,a_2_1", ("A", "A_1"), ""),
}


@pytest.mark.parametrize("case", NAMES)
@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow", "xlsx", "jsonl"])
def test_names_of_columns_are_never_changed(tmp_path, ending, case):
    header, asked, message = NAMES[case]
    names, path = header.split(","), tmp_path / f"d.{ending}"
    if (ending, case) == ("arrow", "twice, not asked for") or (ending == "jsonl" and "twice" in case):
        pytest.skip("an Arrow file is read whole; JSON has no two keys of one name")
    rows = [["x", 1.0, 3.0, 4.0], ["y", 2.0, 5.0, 6.0]]
    cells = [[row[i] for row in rows] for i in range(len(names))]
    if ending == "csv":
        path.write_text("\n".join(",".join(map(str, row[: len(names)])) for row in [names, *rows]))
    elif ending == "jsonl":
        path.write_text("".join(json.dumps(dict(zip(names, row, strict=False))) + "\n" for row in rows))
    elif ending == "xlsx":
        pd.DataFrame(dict(enumerate(cells))).to_excel(path, header=names, index=False)
    else:
        table = pa.table(cells, names=names)
        parquet.write_table(table, path) if ending == "parquet" else feather.write_feather(table, str(path))
    if not message:
        assert tapes(path, *asked) == {"x": [1.0], "y": [2.0]}
        return
    with pytest.raises(InvalidArgument, match=message):
        tapes(path, *asked)


def test_unreadable_cells_are_counted_on_the_command_line(tmp_path):
    (tmp_path / "a.csv").write_text("site,ms\n" + "A,1\nB,306k\nA,2\nB,3\n" * 30)
    columns = (tmp_path / "a.csv", "--arm", "site", "--value", "ms")
    assert "must be a number, but got '306k'" in truearm("analyze", *columns).stderr
    ended = truearm("analyze", *columns, "--unreadable", "missing")
    assert "30 cells are not numbers and count as missing" in " ".join(ended.stdout.split())


def test_the_marks_of_a_missing_number_and_infinities(tmp_path):
    cells = ["NA", "n/a", "nan", "NULL", "None", "", '""', " ", "inf", "-Infinity", "1e3", "TRUE", " 7 ", "\xa08"]
    (tmp_path / "a.csv").write_text("arm,x\n" + "".join(f"A,{cell}\n" for cell in cells), encoding="utf-8")
    found = tapes(tmp_path / "a.csv", "arm", "x")["A"]
    assert found == [None] * 8 + [np.inf, -np.inf, 1000.0, 1.0, 7.0, 8.0]


@pytest.mark.parametrize("cell", ["1e400", "1_000", "1__0", "0x1f", "--5", "12%", "$3", "(5)", "1 000", "٣"])
def test_no_cell_is_read_as_another_number(tmp_path, cell):
    (tmp_path / "a.csv").write_text(f"arm,x\nA,{cell}\n", encoding="utf-8")
    with pytest.raises(InvalidArgument, match="row 1 of column 'x'"):
        tapes(tmp_path / "a.csv", "arm", "x")
    (tmp_path / "a.json").write_text(json.dumps({"arm": ["A"], "x": [cell]}))
    with pytest.raises(InvalidArgument, match="row 1 of column 'x'"):
        tapes(tmp_path / "a.json", "arm", "x")


MARKS = {  # text, the options that the error names, what it then holds
    "decimal comma": ("site;ms\nA;3,5\nB;4,25\n", {"decimal": ","}, {"A": [3.5], "B": [4.25]}),
    "thousands": ('site,ms\nA,"1,234,567"\nB,3\n', {"thousands": ","}, {"A": [1234567.0], "B": [3.0]}),
    "both": ("site;ms\nA;1.234,5\nB;3\n", {"decimal": ",", "thousands": "."}, {"A": [1234.5], "B": [3.0]}),
    "narrow blank": ("site,ms\nA,1\u202f234\nB,2\u00a0345\n", {"thousands": " "}, {"A": [1234.0], "B": [2345.0]}),
    "separator": ("site~ms\nA~1\nB~2\n", {"sep": "~"}, {"A": [1.0], "B": [2.0]}),
}


@pytest.mark.parametrize("case", MARKS)
def test_the_error_names_the_option_that_reads_the_file(tmp_path, case):
    text, options, expected = MARKS[case]
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    with pytest.raises(InvalidArgument) as caught:
        tapes(tmp_path / "a.csv", "site", "ms")
    assert all(f"{name}=" in str(caught.value) for name in options)
    assert tapes(tmp_path / "a.csv", "site", "ms", **options) == expected
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    ended = truearm("analyze", tmp_path / "a.csv", "--arm", "site", "--value", "ms", *words)
    assert ended.returncode == 3, ended.stderr


def test_a_mark_between_thousands_stands_before_three_digits(tmp_path):
    """Else 12,5 would be read as 125."""
    (tmp_path / "a.csv").write_text("site;ms\nA;13,865\nB;12,5\n")
    with pytest.raises(InvalidArgument, match="row 1 of column 'ms' must be a number, but got '13,865'"):
        tapes(tmp_path / "a.csv", "site", "ms")
    with pytest.raises(InvalidArgument, match="row 2 of column 'ms' must be a number, but got '12,5'"):
        tapes(tmp_path / "a.csv", "site", "ms", thousands=",")


@pytest.mark.parametrize("ending", ["xlsx", "json", "jsonl"])
def test_marks_apply_to_text_and_not_to_numbers(tmp_path, ending):
    """A number 1.234 in JSON lines was read as 1234 if thousands='.'."""
    path = write(tmp_path / f"a.{ending}", {"site": ["A", "B"], "ms": [1.234, 5.0]})
    assert tapes(path, "site", "ms", decimal=",", thousands=".") == {"A": [1.234], "B": [5.0]}


def test_arms_are_text_as_written_without_blanks_around_them(tmp_path):
    (tmp_path / "a.csv").write_text("site , ms\n1.1 , 1\n1.10,2\n 1.1,3\nB b,4\nb B,5\n")
    found = ta.analyze(tmp_path / "a.csv", arm="site", value="ms")
    assert {name: tape.tolist() for name, tape in found.readings.items()} == {
        "1.1": [1.0, 3.0],
        "1.10": [2.0],
        "B b": [4.0],
        "b B": [5.0],
    }
    assert any("'B b' and 'b B' differ only in case or blanks" in note for note in found.notes)
    for name, text in (("a.jsonl", '{"site": 1.10, "ms": 1}\n'), ("a.json", '[{"site": 1.10, "ms": 1}]')):
        (tmp_path / name).write_text(text)  # JSON does not keep the digits
        with pytest.raises(InvalidArgument, match="write names as strings"):
            tapes(tmp_path / name, "site", "ms")


def test_names_with_quotes_are_names(tmp_path):
    names = ["it's", 'say "hi"', "semi;colon", "ünï"]
    parquet.write_table(pa.table({'a "b"': names, "x'y": [1, 2, 3, 4]}), tmp_path / "a.parquet")
    assert list(tapes(tmp_path / "a.parquet", 'a "b"', "x'y")) == names


@pytest.mark.parametrize("rows", [1 << 20, (1 << 20) - 1])
def test_millions_of_rows_keep_their_order(tmp_path, rows):
    arms, values = np.arange(rows) * 7 % 11, np.arange(rows, dtype=float)
    values[:: 1 << 15] = np.nan
    parquet.write_table(pa.table({"arm": arms, "x": pa.array(values, from_pandas=True)}), tmp_path / "a.parquet")
    found = ta.analyze(tmp_path / "a.parquet", arm="arm", value="x").readings
    assert list(found) == [str(i * 7 % 11) for i in range(11)]
    for name, tape in found.items():
        np.testing.assert_array_equal(tape, values[arms == int(name)])


@pytest.mark.parametrize("name", ["i.xlsx", "i.csv"])
def test_a_column_without_a_name_shifts_nothing_and_is_no_arm(tmp_path, name):
    frame = pd.DataFrame({"A": [1.0, 2.0], "B": [3.0, 4.0]}, index=[70, 80])
    frame.to_csv(tmp_path / name) if name == "i.csv" else frame.to_excel(tmp_path / name)
    assert tapes(tmp_path / name) == {"A": [1.0, 2.0], "B": [3.0, 4.0]}


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet", "csv.gz", "arrow"])
@pytest.mark.parametrize("stem", ["g*", "star*[1]", "q?", "b]r[", r"back\s", "run=1/x"])
def test_a_name_stands_for_one_file_only(tmp_path, kind, stem):
    file = tmp_path / f"{stem}.{kind}"
    file.parent.mkdir(exist_ok=True)
    for other in ("gZZ1", "star21", "qq"):
        write(tmp_path / f"{other}.{kind}", {**ROWS, "ms": [9.0] * 4})
    write(tmp_path / f"plain.{kind}", ROWS).rename(file)
    assert tapes(file, "site", "ms") == {"B": [3.0, 5.25], "A": [None, 2.5]}
    with pytest.raises(InvalidArgument, match=r"columns are 'site', 'ms', 'other'$"):
        tapes(file, "run", "ms")


WRONG = [
    ("a.txt", "A,B\n1,2\n", "ending '.txt' of 'a.txt' is unknown; use kind='csv'"),
    ("a.json", "{", "is not JSON"),
    ("a.json", "[1, 2]", "must hold columns by name"),
    ("a.json", '{"A": [1], "A": [2]}', "2 columns are named 'A'"),
    ("a.json", '{"results": "abc"}', "column 'results' must be a list of readings, but got 'abc'"),
    ("a.json", '{"A": [1' + "0" * 400 + "]}", "row 1 of column 'A' must be a number, but got 10000"),
    ("huge.json", '{"A": [1e400, 2]}', "row 1 of column 'A' must be a number, but got '1e400'"),
    ("twice.jsonl", '{"A": 1}\n{"A": 1, "A": 2}\n', "2 columns are named 'A'"),
    ("ends.csv", "A,B\r\n1,2\n3,4\r\n", "'ends.csv' cannot be read, perhaps because its lines end in different"),
    ("a.json.gz", "no", "'a.json.gz' cannot be read"),
    ("a.parquet", "no", "'a.parquet' cannot be read"),
    ("a.jsonl", "no\n", "'a.jsonl' cannot be read"),
    ("latin.jsonl", b'{"A": "\xe4"}\n', "'latin.jsonl' cannot be read"),
    ("a.arrow", "no", "cannot be read as arrow"),
    ("a.xlsx", "no", "'a.xlsx' is not an Excel workbook"),
    ("a.csv.bz2", "no", "ending '.bz2' of 'a.csv.bz2' is unknown; .*or unpack it"),
    ("empty.csv", "", "'empty.csv' is empty"),
    ("head.csv", "A,B\n", "the data have no rows"),
    ("packed.csv.gz", "A,B\n1,2\n", "'packed.csv.gz' cannot be read"),
    ("long.csv", "variant,ms\nx,1\ny,2\n", "'variant' holds words; name the columns: arm='variant', value='ms'"),
    ("slip.csv", "A,B\nx,1\n2,2\n", "row 1 of column 'A' must be a number, but got 'x'"),
    ("day.csv", "A,B\n1,2024-01-31\n2,2024-02-01\n", "row 1 of column 'B' must be a number, but got '2024-01-31'"),
    ("more.csv", "A,B\n1,2\n3,4,5\n6,7\n", "line 3 of 'more.csv' has 3 cells, but the first line has 2"),
    ("less.tsv", "A\tB\n1\t2\n3\n", "line 3 of 'less.tsv' has 1 cell, but the first line has 2"),
    ("deep.csv", "A,B\n" + "1,2\n" * 60_000 + "1,2,3\n", "line 60002 of 'deep.csv' has 3 cells"),
    ("latin.csv", b"A,B\n1,2\n3,\xe4\n", "line 3 of 'latin.csv' is not UTF-8; convert it by: iconv -f cp1252"),
    ("quote.csv", 'A,B\n1,"2\n3,4\n', "line 2 of 'quote.csv' has a quote that does not end"),
    ("side.csv", ",".join(map(str, range(1_001))) + "\n", "there are 1,001 columns"),
    ("numbers.csv", "1.5,2.5\n3,4\n", "the first line of 'numbers.csv' holds numbers .*add a line above it"),
    ("count.csv", "id,A,B\n1,1,5\n2,,6\n3,3,7\n", "column 'id' counts the rows.*round='id'"),
    ("sum.csv", "command,mean,stddev,median,user,system,min,max\na,1,1,1,1,1,1,1\n", "no single times; export"),
]


@pytest.mark.parametrize(("name", "content", "message"), WRONG)
def test_what_is_wrong_with_a_file_is_said(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InvalidArgument, match=message) as caught:
        tapes(tmp_path / name)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "cp1252", "utf-8-sig"])
def test_other_encodings_are_read(tmp_path, encoding):
    text = "städte;ms\nKöln;1\nBonn;2\n"
    (tmp_path / "a.csv").write_bytes(text.encode(encoding))
    named = {"encoding": "cp1252"} if encoding == "cp1252" else {}
    assert tapes(tmp_path / "a.csv", "städte", "ms", **named) == {"Köln": [1.0], "Bonn": [2.0]}
    for word in ("word", 5, "a\0b"):
        with pytest.raises(InvalidArgument, match=r"encoding=.* is unknown"):
            tapes(tmp_path / "a.csv", "städte", "ms", encoding=word)
    (tmp_path / "a.jsonl").write_text('{"A": 1, "B": 2}\n', encoding="utf-8-sig")  # as PowerShell writes it
    assert tapes(tmp_path / "a.jsonl") == {"A": [1.0], "B": [2.0]}


def test_lines_above_the_header(tmp_path):
    for above in ("\n\n", "# made by a tool\n#\n", "sep=,\n"):
        (tmp_path / "b.csv").write_text(f"{above}A,B\n1,2\n")
        assert tapes(tmp_path / "b.csv") == {"A": [1.0], "B": [2.0]}
    for end in ("\n", "\r\n"):  # surveys have names and cells with line breaks
        (tmp_path / "b.csv").write_bytes(end.join(['A,"B\n2"', "1,2", '"3","4"', ""]).encode())
        assert tapes(tmp_path / "b.csv") == {"A": [1.0, 3.0], "B\n2": [2.0, 4.0]}
    (tmp_path / "b.csv").write_text('arm,x\n#A,1\n"B, ""b""",2\n')  # below it # is a letter
    assert tapes(tmp_path / "b.csv", "arm", "x") == {"#A": [1.0], 'B, "b"': [2.0]}


def test_folders_patterns_and_several_files_are_one_table(tmp_path):
    for i, day in enumerate(("mo", "tu")):
        folder = tmp_path / "logs" / f"day={day}"
        folder.mkdir(parents=True)
        (folder / "x.csv").write_text(f"site,ms\nA,{i}\nB,{i + 5}\n")
    expected = {"A": [0.0, 1.0], "B": [5.0, 6.0]}
    files = sorted(map(str, (tmp_path / "logs").rglob("*.csv")))
    for source in (tmp_path / "logs", str(tmp_path / "logs" / "*" / "*.csv"), files):
        assert tapes(source, "site", "ms") == expected
    assert tapes(tmp_path / "logs", "day", "ms") == {"mo": [0.0, 5.0], "tu": [1.0, 6.0]}
    (tmp_path / "logs" / "day=mo" / "x.csv").write_text("ms;site\n0;A\n5;B\n")  # another order and separator
    assert tapes(tmp_path / "logs", "site", "ms") == expected
    (tmp_path / "logs" / "day=mo" / "x.csv").write_text("who,ms\nann,3\n")
    with pytest.raises(InvalidArgument, match=r"'x.csv' has no column 'site', which other files have"):
        tapes(tmp_path / "logs", "site", "ms")
    for path in (str(tmp_path / "*.parquet"), "", "site,ms\n" + "A,1\n" * 999, "a\0b"):
        with pytest.raises(InvalidArgument, match="there is no file"):
            tapes(path, "site", "ms")


@pytest.mark.parametrize("headers", [("site,ms",), ("site,ms", "site;ms")], ids=["alike", "in turn"])
def test_rows_keep_the_order_of_the_files(tmp_path, headers):
    for i in range(40):
        header = headers[i % len(headers)]
        (tmp_path / f"{i:02}.csv").write_text(f"{header}\nA{header[4]}{i}\nB{header[4]}{i}\n")
    for _ in range(3):
        assert tapes(tmp_path, "site", "ms") == {"A": [*range(40)], "B": [*range(40)]}


def test_parquet_files_of_a_folder_lose_nothing(tmp_path):
    """Whole numbers in one file do not round those of another, and a column that lacks is not missing readings."""
    parquet.write_table(pa.table({"site": ["A", "B"], "ms": [1, 2]}), tmp_path / "a.parquet")
    parquet.write_table(pa.table({"ms": [1.5, 2.5], "site": ["A", "B"]}), tmp_path / "b.parquet")
    assert tapes(tmp_path, "site", "ms") == {"A": [1.0, 1.5], "B": [2.0, 2.5]}
    parquet.write_table(pa.table({"site": ["A", "B"]}), tmp_path / "c.parquet")
    with pytest.raises(InvalidArgument, match=r"'c.parquet' has no column 'ms'"):
        tapes(tmp_path, "site", "ms")
    (tmp_path / "c.parquet").rename(tmp_path / "c.csv")
    with pytest.raises(InvalidArgument, match=r"'a.parquet' is parquet; give files of one kind"):
        tapes(tmp_path, "site", "ms")


def test_a_long_table_without_named_columns_is_refused_before_it_is_read(tmp_path):
    """The last rows are broken: whoever reads them fails otherwise."""
    rows = {"site": ["A", "B"] * (1 << 19), "ms": np.random.default_rng(1).random(1 << 20)}
    parquet.write_table(pa.table(rows), tmp_path / "a.parquet", row_group_size=1 << 16)
    content = bytearray((tmp_path / "a.parquet").read_bytes())
    content[-400_000:-100_000] = bytes(300_000)
    (tmp_path / "a.parquet").write_bytes(content)
    for columns, says in (
        ((), "'site' holds words; name the columns"),
        (("ms", "site"), "must be a number, .* 'A'"),
    ):
        with pytest.raises(InvalidArgument, match=says):
            tapes(tmp_path / "a.parquet", *columns)
    with pytest.raises(InvalidArgument, match="cannot be read"):
        tapes(tmp_path / "a.parquet", "site", "ms")


def test_parquet_of_every_type(tmp_path):
    columns = {
        "numbers": [1.5, np.inf, -0.0],
        "missing": [None, np.nan, 3.0],
        "large": [2**63 - 1, 2**53 + 1, None],
        "unsigned": pa.array([2**64 - 1, 3, 4], pa.uint64()),
        "single": pa.array([0.5, None, 2], pa.float32()),
        "booleans": [True, None, False],
        "decimals": pa.array([1, 2, 3]).cast(pa.decimal128(21, 2)),
    }
    for name, column in columns.items():
        table = pa.table({"arm": ["A"] * 3, "x": column})
        parquet.write_table(table, tmp_path / f"{name}.parquet")
        expected = [None if x is None or np.isnan(float(x)) else float(x) for x in table["x"].to_pylist()]
        assert tapes(tmp_path / f"{name}.parquet", "arm", "x")["A"] == expected
    for column in (pa.array([1, 2], pa.timestamp("s")), [[1], [2]], ["1", "b"]):
        parquet.write_table(pa.table({"arm": ["A", "B"], "x": column}), tmp_path / "wrong.parquet")
        with pytest.raises(InvalidArgument, match="row 1 of column 'x'"):
            tapes(tmp_path / "wrong.parquet", "arm", "x")
    rows = {"a": [{"arm": "X", "x": 7}] * 2, "a.arm": ["B", "A"], "a.x": [1.0, 2.0]}
    parquet.write_table(pa.table(rows), tmp_path / "dots.parquet")
    assert tapes(tmp_path / "dots.parquet", "a.arm", "a.x") == {"B": [1.0], "A": [2.0]}


def test_a_query_reads_a_database_or_a_file(tmp_path):
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        connection.execute("CREATE TABLE visits AS SELECT 'AB'[1 + i % 2] AS site, i AS ms FROM range(6) t(i)")
    query = "select * from visits where ms > 1"
    for address in (tmp_path / "shop.duckdb", f"duckdb://{tmp_path / 'shop.duckdb'}"):
        assert tapes(address, "site", "ms", query=query) == {"A": [2.0, 4.0], "B": [3.0, 5.0]}
    with pytest.raises(InvalidArgument, match="is a database; say which rows to analyze: query="):
        tapes(tmp_path / "shop.duckdb", "site", "ms")
    with pytest.raises(InvalidArgument, match="name gone does not exist; correct it, or use a query"):
        tapes(tmp_path / "shop.duckdb", "site", "ms", query="select * from gone")
    (tmp_path / "a.csv").write_text("site,ms\nA,306k\nB,2k\n")
    query = "select site, replace(ms, 'k', '')::double * 1000 as ms from data"
    assert tapes(tmp_path / "a.csv", "site", "ms", query=query) == {"A": [306000.0], "B": [2000.0]}
    ended = truearm("analyze", tmp_path / "a.csv", "--arm", "site", "--value", "ms", "--query", query)
    assert ended.returncode == 3, ended.stderr
    for ending in ("xlsx", "json", "jsonl", "parquet"):
        path = write(tmp_path / f"q.{ending}", {"site": ["A", "B"], "ms": [3.5, 2.0]})
        assert tapes(path, "site", "ms", query="select * from data where ms::double > 3") == {"A": [3.5]}
    with pytest.raises(InvalidArgument, match="a file is called data, and its columns are text"):
        tapes(tmp_path / "a.csv", "site", "ms", query="select * from data where ms > 1")
    with pytest.raises(InvalidArgument, match=r"query must be SQL, such as .*, but got 5"):
        tapes(tmp_path / "a.csv", "site", "ms", query=5)
    with pytest.raises(InvalidArgument, match="query is for files and databases"):
        tapes({"A": [1]}, query=query)
    with pytest.raises(InvalidArgument, match="is not on this computer"):
        tapes("s3://bucket/a.parquet", "site", "ms")


def test_an_excel_sheet_with_a_cell_far_away_is_refused_at_once(tmp_path):
    book = openpyxl.Workbook()
    book.active.append(["A", "B"])
    book.active.append([1, 2])
    book.save(tmp_path / "a.xlsx")
    assert tapes(tmp_path / "a.xlsx") == {"A": [1.0], "B": [2.0]}
    book.create_sheet("data").append(["group", "ms"])
    book.save(tmp_path / "two.xlsx")
    assert tapes(tmp_path / "two.xlsx", "arm", "B", query="select 'x' as arm, B from data") == {"x": [2.0]}
    with pytest.raises(InvalidArgument, match=r"first sheet .*, 'Sheet', has no column 'group'; move .*'data'"):
        tapes(tmp_path / "two.xlsx", "group", "ms")
    for row, cell in ((99_999_999, "A99999999"), (1_048_576, "XFD1048576")):
        with zipfile.ZipFile(tmp_path / "a.xlsx") as old, zipfile.ZipFile(tmp_path / "b.xlsx", "w") as new:
            for name in old.namelist():
                content = old.read(name)
                if name.startswith("xl/worksheets/"):
                    far = f'<row r="{row}"><c r="{cell}"><v>3</v></c></row></sheetData>'
                    content = content.replace(b"</sheetData>", far.encode())
                new.writestr(name, content)
        with pytest.raises(InvalidArgument, match=r"has a cell in row .* which no workbook fills"):
            tapes(tmp_path / "b.xlsx")


def test_files_read_at_once_do_not_see_each_other(tmp_path):
    for i in range(6):
        (tmp_path / f"{i}.csv").write_text("arm,x\n" + "".join(f"A,{x + i}\nB{i},{x}\n" for x in range(50)))
    names = [tmp_path / f"{i}.csv" for i in range(6)]
    one_by_one = [tapes(name, "arm", "x") for name in names]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda name: tapes(name, "arm", "x"), names * 3)) == one_by_one * 3


def test_the_settings_of_other_connections_are_left_alone(tmp_path):
    write(tmp_path / "a.parquet", ROWS)
    tapes(tmp_path / "a.parquet", "site", "ms")
    assert duckdb.sql("SELECT current_setting('disabled_optimizers')").fetchall() == [("",)]


@pytest.mark.parametrize("ending", ["csv", "jsonl", "json", "parquet"])
def test_standard_input_is_known_by_its_beginning(tmp_path, ending):
    rows = {"site": ["A", "B"] * 40, "ms": [float(i % 2 * 100 + i) for i in range(80)]}
    content = write(tmp_path / f"a.{ending}", rows).read_bytes()
    command = [sys.executable, "-m", "truearm", "analyze", "-", "--arm", "site", "--value", "ms"]
    for text in (content, gzip.compress(content)):
        ended = subprocess.run(command, input=text, capture_output=True, check=False, timeout=120)
        assert (ended.returncode, ended.stdout.split(b":")[0]) == (0, b"B has the highest median"), ended.stderr
    for text, says in ((b"", b"standard input is empty"), (gzip.compress(b"x" * 999)[:20], b"cannot be unpacked")):
        ended = subprocess.run(command, input=text, capture_output=True, check=False, timeout=120)
        assert ended.returncode == 2
        assert says in ended.stderr
