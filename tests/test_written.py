"""Everyday files: numbers as people write them, with DuckDB and without; each error names what reads the file."""

import gzip
import json
import subprocess
import sys

import duckdb
import numpy as np
import pandas as pd
import pytest

from truearm.errors import InvalidArgument
from truearm.world import files
from truearm.world.json_shapes import columns_in
from truearm.world.written import Written, remedy

CELLS = (
    "1",
    " 2.5 ",
    "-3e2",
    "+.5",
    "5.",
    "inf",
    "-Infinity",
    "nan",
    "NA",
    "",
    "true",
    "FALSE",
    "yes",
    "No",
    "$12",
    "-$1,234.50",
    "12%",
    "1.234,5",
    "1,234",
    "1,5",
    "1'234",
    "00:10:13",
    "-1:02.5",
    "10:13",
    "1:2:3:4",
    "fast",
    "2024-01-01",
    "1 000",
    "--1",
    "1.2.3",
    "1,23",
    "12,34,567",
    "1,2345",
    "1,234,5",
    ",123",
    "1,234.5",
    "1.23,4",
    *("1_000", "1_0108", "1__0", "_1", "1_", "1.0_5", "1._5", "1_.5", "1e1_0", "+1_0.5e3", "._5", "1_0."),
    *(
        "0 days 00:02:12",
        "1 day, 2:03:04.5",
        "12 days 1:02",
        "-1 days +23:57:48",
        "1\u202f234",
        "1\u00a0234\u00a0567.5",
    ),
)
FORMS = (
    Written(),
    Written(decimal=","),
    Written(decimal=",", thousands="."),
    Written(thousands=","),
    Written(thousands="'"),
    Written(thousands=" "),
    Written(strip="$", thousands=","),
    Written(strip="%"),
    Written(true="Yes"),
    Written(durations=True),
)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_sql_reads_every_cell_as_python_does(form):
    """Cells without a number are NULL, as are the empty ones; all others are equal to the last bit."""
    with duckdb.connect() as connection:
        for cell in CELLS:
            [(found,)] = connection.execute(f"SELECT {form.sql('c')} FROM (SELECT ? AS c)", [cell]).fetchall()
            number = form.number(cell)
            absent = number is None or np.isnan(number)
            assert (found is None or np.isnan(found)) if absent else found == number, cell


@pytest.fixture(params=["duckdb", "base install"])
def collect(request, monkeypatch):
    """Return `files.collect` as it is with DuckDB and without."""
    if request.param == "base install":
        found = files.find_spec
        monkeypatch.setattr(files, "find_spec", lambda name: None if name == "duckdb" else found(name))
        monkeypatch.setitem(sys.modules, "duckdb", None)
    return files.collect


def told(tapes):
    return {name: [None if np.isnan(x) else float(x) for x in tape] for name, tape in tapes.items()}


EVERYDAY = {  # text, the argument its error asks for, what it then holds
    "decimal comma": ("site;ms\nA;3,5\nB;4,25\n", {"decimal": ","}, {"A": [3.5], "B": [4.25]}),
    "thousands": ('site,ms\nA,"1,234,567"\nB,3\n', {"thousands": ","}, {"A": [1234567.0], "B": [3.0]}),
    "both": ("site;ms\nA;1.234,5\nB;3\n", {"decimal": ",", "thousands": "."}, {"A": [1234.5], "B": [3.0]}),
    "money": ("site,ms\nA,$12\nB,-$3\n", {"strip": "$"}, {"A": [12.0], "B": [-3.0]}),
    "percent": ("site,ms\nA,12%\nB,\n", {"strip": "%"}, {"A": [12.0], "B": [None]}),
    "unit": ("site,ms\nA,12ms\nB,NA\n", {"strip": "ms"}, {"A": [12.0], "B": [None]}),
    "words": ("site,ms\nA,yes\nB,no\nA,\n", {"true": "yes"}, {"A": [1.0, None], "B": [0.0]}),
    "durations": ("site,ms\nA,00:10:13\nB,1:02:03.5\n", {"durations": True}, {"A": [613.0], "B": [3723.5]}),
    "days": (
        "site,ms\nA,0 days 00:10:13\nB,1 days 00:00:01\n",
        {"durations": True},
        {"A": [613.0], "B": [86401.0]},
    ),
    "narrow blank": ("site,ms\nA,1\u202f234\nB,2\u00a0345\n", {"thousands": " "}, {"A": [1234.0], "B": [2345.0]}),
    "separator": ("site~ms\nA~1\nB~2\n", {"sep": "~"}, {"A": [1.0], "B": [2.0]}),
    "nameless": ('site,ms\nA,1\n,2\n"",3\nB,4\n', {"drop_unnamed": True}, {"A": [1.0], "B": [4.0]}),
}


@pytest.mark.parametrize("case", EVERYDAY)
def test_the_error_names_what_reads_the_file(tmp_path, collect, case):
    text, asked, expected = EVERYDAY[case]
    file = tmp_path / "a.csv"
    file.write_text(text)
    with pytest.raises(InvalidArgument) as caught:
        collect(file, arm="site", value="ms")
    for name, argument in asked.items():
        assert f"{name}={argument!r}" in str(caught.value)
    found = collect(file, arm="site", value="ms", **asked)
    assert told(found.tapes) == expected
    assert found.dropped == (2 if case == "nameless" else 0)


def test_a_mark_between_thousands_stands_before_three_digits(tmp_path, collect):
    """Else 12,5 would be read as 125."""
    file = tmp_path / "a.csv"
    file.write_text("site;ms\nA;13,865\nB;12,5\n")
    with pytest.raises(InvalidArgument, match=r"thousands=',' if it is 13865, decimal=',' if it is 13\.865"):
        collect(file, arm="site", value="ms")
    with pytest.raises(InvalidArgument, match=r"row 2 of column 'ms' is '12,5'.*decimal=','"):
        collect(file, arm="site", value="ms", thousands=",")


def test_a_word_that_is_not_there_does_not_count_all_as_failures(tmp_path, collect):
    file = tmp_path / "a.csv"
    file.write_text("site,won\nA,no\nB,ja\nA,\n")
    with pytest.raises(InvalidArgument, match=r"row 1 of column 'won' is 'no'.*true='yes'"):
        collect(file, arm="site", value="won")
    with pytest.raises(InvalidArgument, match=r"true='yes' is in no cell of column 'won'.* 'ja', 'no'"):
        collect(file, arm="site", value="won", true="yes")
    file.write_text("A,B\nno,no\nno,\n")
    assert told(collect(file, true="yes").tapes) == {"A": [0.0, 0.0], "B": [0.0]}


def test_blanks_around_a_name_are_no_part_of_it(tmp_path, collect):
    (tmp_path / "a.csv").write_text("site , ms\nA , 1\nA,2\n B,3\n")
    assert told(collect(tmp_path / "a.csv", arm="site", value="ms").tapes) == {"A": [1.0, 2.0], "B": [3.0]}


def test_a_wide_file_may_name_its_rows(tmp_path, collect):
    (tmp_path / "a.csv").write_text("item,A,B\nq1,1,5\nq2,,6\nq3,3,7\n")
    found = collect(tmp_path / "a.csv", unit="item")
    assert told(found.side_by_side().tapes) == {"A": [1.0, None, 3.0], "B": [5.0, 6.0, 7.0]}
    (tmp_path / "a.csv").write_text("id,A,B\n1,1,5\n2,,6\n3,3,7\n")
    with pytest.raises(InvalidArgument, match=r"column 'id' counts the rows.*round='id'"):
        collect(tmp_path / "a.csv")


def test_the_summary_of_a_benchmark_is_no_file_of_readings(tmp_path, collect):
    names = "command,mean,stddev,median,user,system,min,max"
    (tmp_path / "a.csv").write_text(f"{names}\nsort,1,1,1,1,1,1,1\ncat,1,1,1,1,1,1,1\n")
    for columns in ({}, {"arm": "command", "value": "mean"}):
        with pytest.raises(InvalidArgument, match="no single times; export them with --export-json"):
            collect(tmp_path / "a.csv", **columns)


def test_booleans_are_numbers_without_asking(tmp_path, collect):
    (tmp_path / "a.csv").write_text("site,won\nA,true\nA,False\nB,TRUE\nB,\n")
    assert told(collect(tmp_path / "a.csv", arm="site", value="won").tapes) == {"A": [1.0, 0.0], "B": [1.0, None]}


def test_a_long_file_without_its_columns_says_which_to_name(tmp_path, collect):
    (tmp_path / "a.csv").write_text("variant,ms\nv1,3\nv2,4\n")
    with pytest.raises(InvalidArgument, match="name the columns: arm='variant', value='ms'"):
        collect(tmp_path / "a.csv")


def test_wide_files_of_other_numbers(tmp_path, collect):
    (tmp_path / "a.csv").write_text("A;B\n1,5;2,5\n3,5;\n")
    with pytest.raises(InvalidArgument, match=r"row 1 of column 'A' is '1,5'.*decimal=','"):
        collect(tmp_path / "a.csv")
    assert told(collect(tmp_path / "a.csv", decimal=",").tapes) == {"A": [1.5, 3.5], "B": [2.5]}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "cp1252", "utf-8-sig"])
@pytest.mark.parametrize("packed", [False, True])
def test_every_encoding_is_found_by_its_mark_or_named(tmp_path, collect, encoding, packed):
    text = "Läden,ms\nKöln,1\nBonn,2\n".encode(encoding)
    file = tmp_path / ("a.csv.gz" if packed else "a.csv")
    file.write_bytes(gzip.compress(text) if packed else text)
    named = {} if encoding in ("utf-16", "utf-32", "utf-8-sig") else {"encoding": encoding}
    assert told(collect(file, arm="Läden", value="ms", **named).tapes) == {"Köln": [1.0], "Bonn": [2.0]}


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_needs_no_mark(tmp_path, collect, encoding):
    (tmp_path / "a.csv").write_bytes("site,ms\nA,1\nB,2\n".encode(encoding))
    assert told(collect(tmp_path / "a.csv", arm="site", value="ms").tapes) == {"A": [1.0], "B": [2.0]}


def test_a_number_in_brackets_asks_for_a_minus(tmp_path, collect):
    (tmp_path / "a.csv").write_text("site,ms\nA,1\nB,(12.50)\n")
    with pytest.raises(InvalidArgument, match="write a number below zero with a minus before it"):
        collect(tmp_path / "a.csv", arm="site", value="ms")


def test_text_that_is_not_utf8_asks_for_its_encoding(tmp_path, collect):
    (tmp_path / "a.csv").write_bytes("site,ms\nA,1\nKöln,2\n".encode("cp1252"))
    with pytest.raises(InvalidArgument, match=r"line 3 of 'a.csv' is not UTF-8; .*encoding='cp1252'"):
        collect(tmp_path / "a.csv", arm="site", value="ms")
    with pytest.raises(InvalidArgument, match=r"'a\.csv' is not ascii"):
        collect(tmp_path / "a.csv", arm="site", value="ms", encoding="ascii")


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"decimal": ";"}, "decimal must be '.' or ','"),
        ({"sep": "::"}, "sep must be one character"),
        ({"thousands": "."}, "thousands='.' cannot be told from the rest"),
        ({"encoding": "klingon"}, "encoding='klingon' is unknown"),
    ],
)
def test_what_cannot_be_is_said(tmp_path, collect, form, message):
    (tmp_path / "a.csv").write_text("A,B\n1,2\n")
    with pytest.raises(InvalidArgument, match=message):
        collect(tmp_path / "a.csv", **form)


def test_a_word_stays_a_word(tmp_path, collect):
    (tmp_path / "a.csv").write_text("site,ms\nA,1\nB,fast\n")
    with pytest.raises(InvalidArgument, match=r"row 2 of column 'ms' must be a number, but got 'fast'"):
        collect(tmp_path / "a.csv", arm="site", value="ms")
    assert remedy("fast") is None


@pytest.mark.parametrize("seed", range(5))
def test_the_base_install_reads_what_duckdb_reads(tmp_path, monkeypatch, seed):
    """Quoted names, units, an order, missing cells, CRLF and blank lines: the same tapes in the same order."""
    rng = np.random.default_rng(seed)
    sep, end = rng.choice([",", ";", "\t", "|"]), rng.choice(["\n", "\r\n"])
    names = ['"x, y; z"', "B", '"say ""b"""', "7"]
    rows = [
        sep.join(
            (
                str(rng.choice(names)),
                str(rng.choice([f"{rng.normal():.6g}", "", "NA", "inf"])),
                f"u{rng.integers(9)}",
                str(rng.integers(1000)),
            )
        )
        for _ in range(200)
    ]
    file = tmp_path / "a.csv"
    file.write_text(end.join(["", sep.join(("arm", "value", "user", "at")), *rows, ""]), newline="")
    options = ({}, {"unit": "user"}, {"order": "at"}, {"unit": "user", "order": "at"})
    with_duckdb = [files.collect(file, arm="arm", value="value", **more) for more in options]
    monkeypatch.setattr(files, "find_spec", lambda _: None)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    for more, expected in zip(options, with_duckdb, strict=True):
        found = files.collect(file, arm="arm", value="value", **more)
        assert told(found.tapes) == told(expected.tapes)
        assert list(found.tapes) == list(expected.tapes)
        assert found[1:3] == expected[1:3]
        assert [s.column for s in found.suspects] == [s.column for s in expected.suspects]


def test_plain_csv_needs_nothing_but_the_base_install(tmp_path):
    (tmp_path / "a.csv").write_text("site,ms\n" + "A,3\nB,1\nA,4\nB,2\n" * 40)
    blocked = ["duckdb", "pyarrow", "pandas", "polars", "numba", "matplotlib", "openpyxl", "ibis"]
    code = (
        f"import sys\nfor name in {blocked!r}: sys.modules[name] = None\n"
        "from truearm.cli import main\n"
        f"sys.argv = ['truearm', 'analyze', {str(tmp_path / 'a.csv')!r}, '--arm', 'site', '--value', 'ms']\n"
        "main()"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("A has the highest median")


FRAME = pd.DataFrame({"site": ["A", "B", "A"], "ms": [1.5, 2.0, None]})


@pytest.mark.parametrize("shape", ["records", "columns", "index", "split", "table"])
def test_every_shape_of_json_that_pandas_writes(tmp_path, shape):
    (tmp_path / "a.json").write_text(FRAME.to_json(orient=shape))
    found = files.read(tmp_path / "a.json", arm="site", value="ms")
    assert told(found) == {"A": [1.5, None], "B": [2.0]}


@pytest.mark.parametrize("shape", ["records", "columns", "index", "split", "table"])
def test_wide_tables_in_every_shape(tmp_path, shape):
    wide = pd.DataFrame({"A": [1.0, 2.0, 3.0], "B": [4.0, 5.0, None]})
    (tmp_path / "a.json").write_text(wide.to_json(orient=shape))
    assert told(files.read(tmp_path / "a.json")) == {"A": [1.0, 2.0, 3.0], "B": [4.0, 5.0]}


def test_values_without_names_are_columns_by_number(tmp_path):
    (tmp_path / "a.json").write_text(FRAME.to_json(orient="values"))
    assert told(files.read(tmp_path / "a.json", arm="0", value="1")) == {"A": [1.5, None], "B": [2.0]}
    assert columns_in([[1, 2], [3]]) is None
    assert columns_in(json.loads('{"a": [1], "b": [2, 3]}')) is None


def test_numbers_in_json_may_be_text(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps([{"site": "A", "ms": "1,5"}, {"site": "B", "ms": "2"}]))
    with pytest.raises(InvalidArgument, match=r"row 1 of column 'ms' is '1,5'.*decimal=','"):
        files.read(tmp_path / "a.json", arm="site", value="ms")
    assert told(files.collect(tmp_path / "a.json", arm="site", value="ms", decimal=",").tapes) == {
        "A": [1.5],
        "B": [2.0],
    }
