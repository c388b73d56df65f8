"""CSV files as DuckDB and the base install read them: the same tapes, or both refuse."""

import gzip
import random
import sys

import numpy as np
import polars as pl
import pytest

import truearm as ta
from truearm.errors import InvalidArgument
from truearm.world import duck_files, files, frames, lazy, scans
from truearm.world.roles import Roles
from truearm.world.written import _AROUND, Form

SAMPLED = 20_480  # rows by which DuckDB guesses how a file is written
EXPORTED = "# exported 2024-05-01\n"


@pytest.fixture
def both(monkeypatch):
    """Return what both readers make of a file: tapes, or what they say."""
    found = files.find_spec

    def read(file, **asked):
        told = []
        for hidden in ((), ("duckdb",)):
            with monkeypatch.context() as patch:
                patch.setattr(
                    files, "find_spec", lambda name, hidden=hidden: None if name in hidden else found(name)
                )
                for name in hidden:
                    patch.setitem(sys.modules, name, None)
                try:
                    tapes = files.collect(file, **asked).tapes
                    told.append({arm: [None if np.isnan(x) else float(x) for x in t] for arm, t in tapes.items()})
                except InvalidArgument as error:
                    told.append(str(error))
        return told

    return read


LONG = {"arm": "arm", "value": "v"}


def rows(names, n=100, seed=1):
    rng = random.Random(seed)
    return [(name, rng.gauss(middle, 10)) for _ in range(n) for name, middle in names.items()]


def text(readings, first="arm,v\n"):
    return first + "".join(f"{arm},{x:.2f}\n" for arm, x in readings)


@pytest.mark.parametrize("name", ["a.csv", "*.csv"])
def test_a_mark_above_the_names_hides_no_arm_that_begins_with_it(tmp_path, name):
    """# was taken for the mark of a comment, and the best arm vanished."""
    (tmp_path / "a.csv").write_text(text(rows({"#A": 130, "B": 120, "C": 100}), EXPORTED + "arm,v\n"))
    found = ta.analyze(str(tmp_path / name), **LONG)
    assert (found.best, len(found.problem.arms)) == ("#A", 3)


@pytest.mark.parametrize("name", ["a.csv", "*.csv"])
@pytest.mark.parametrize("late", ['"A",5.0\n', 'A,"5.0"\n', '"A, x",5.0\n', '"A ""x""",5.0\n', '"A\nx",5.0\n'])
def test_a_quote_is_a_quote_however_late_the_first_one_comes(tmp_path, name, late):
    """Behind what DuckDB guesses by, a quoted name was another arm, and a quoted comma the end of a cell."""
    (tmp_path / "a.csv").write_text("arm,v\n" + "A,1\nB,2\n" * SAMPLED + late)
    found = ta.analyze(str(tmp_path / name), **LONG)
    assert sum(found.pulls.values()) == 2 * SAMPLED + 1
    assert found.pulls["A"] == SAMPLED + late.startswith(('"A",', 'A,"'))


ODD = {
    "late quote": ("arm,v\n" + "A,1\nB,2\n" * SAMPLED + '"A, x",3\n', ["A", "B", "A, x"]),
    "marks above": (EXPORTED + "\n# by me, today\narm,v\n#A,1\nB,2\n", ["#A", "B"]),
    "marked names": ("#arm,v\nA,1\n", None),
    "mark further down": ("arm,v\nA,1\n# pause\nB,2\n", None),
    "mark and two cells": ("arm,v\nA,1\n# pause,2\n", ["A", "# pause"]),
    "mark behind a number": (EXPORTED + "arm,v\nA,1 # slow\nB,2\n", None),
    "single quotes": ("arm,v\n'A',1\nB,2\n", ["'A'", "B"]),
    "comma in single quotes": ("arm,v\n'A,x',1\nB,2\n", None),
    "comma at the end": ("arm,v\nA,1,\nB,2,\n", ["A", "B"]),
    "comma at some ends": ("arm,v\nA,1,\nB,2\n", ["A", "B"]),
    "two commas at the end": ("arm,v\nA,1,,\nB,2,,\n", ["A", "B"]),
    "blank lines": ("\n\narm,v\n\nA,1\n\n\nB,2\n\n", ["A", "B"]),
    "blanks before quotes": ('arm, v\n"A", "1"\n "B", 2\n', ["A", "B"]),
    "backslash": ('arm,v,note\nA,1,"a\\"b"\n"B\\"c",2,x\n', ["A", 'B"c']),
    "late backslash": ("arm,v\n" + "A,1\nB,2\n" * (1 << 18) + '"B\\"c",2\n', None),
    "path": ('arm,v\n"C:\\",1\nB\\n,2\n', ["C:\\", "B\\n"]),
    "quote inside": ('arm,v\n5" disk,1\nB,2\n', ['5" disk', "B"]),
    "quote and more": ('arm,v\n"A"x,1\nB,2\n', None),
    "open quote": ('arm,v\nA,1\n"B,2\n', None),
    "quoted separators above": ('"arm";"v, in s; or ms"\nA;1\n', None),
    "windows": ("arm,v\r\nA,1\r\n\r\nB,2\r\n", ["A", "B"]),
    "old mac": ("arm,v\rA,1\rB,2\r", ["A", "B"]),
    "mark of utf-8": ("\ufeff" + EXPORTED + "arm,v\nA,1\nB,2\n", ["A", "B"]),
    "underscore": ("arm,v\nA,1_0108\nB,2\n", ["A", "B"]),
}


@pytest.mark.parametrize("case", ODD)
def test_both_readers_read_alike(tmp_path, both, case):
    content, arms = ODD[case]
    (tmp_path / "a.csv").write_text(content, newline="")
    with_duckdb, without = both(tmp_path / "a.csv", **LONG)
    if arms is None:
        assert isinstance(with_duckdb, str)
        assert isinstance(without, str)
    else:
        assert list(with_duckdb) == arms
        assert with_duckdb == without


def test_marked_names_are_names_if_they_are_asked_for(tmp_path, both):
    (tmp_path / "a.csv").write_text("# old\n#arm,v\nA,1\nB,2\n")
    assert both(tmp_path / "a.csv", arm="#arm", value="v") == [{"A": [1.0], "B": [2.0]}] * 2


def test_names_behind_a_mark_are_not_made_of_the_first_readings(tmp_path, both):
    (tmp_path / "a.csv").write_text("# A,B\n1.5,2\n3,4\n")
    for told in both(tmp_path / "a.csv"):
        assert "if columns are named in '# A,B', take the # away" in told


def cell(rng, plain):
    """Return a cell of a file as somebody may write it."""
    word = rng.choice(["A", "B", "#A", "it's", "'q'", "x y", "5 in", "a#b", "", "a,b", 'say "x"', "a\nb", "B "])
    if plain or rng.random() < 0.5:
        return word if not set(word) & set(',"\n') else '"' + word.replace('"', '""') + '"'
    return '"' + word.replace('"', '""') + '"'


def written(seed):
    """Return a random file: quotes that come late, marks above and in names, blank lines, separators at ends."""
    rng = random.Random(seed)
    end, tail = rng.choice(["\n", "\r\n"]), rng.choice(["", "", ",", "sometimes"])
    lines = [rng.choice(["# made by x", "#", "", "# a, b"]) for _ in range(rng.choice([0, 0, 1, 3]))]
    lines.append("arm,v,note" + (tail if tail == "," else ""))
    late = rng.choice([0, 30])
    for i in range(60):
        number = rng.choice(["1.5", " 2", "-3e2", "", "NA", "inf"] + ["#1"] * (rng.random() < 0.005))
        arm = rng.choice(["A", "B", "#C"]) if i < late else cell(rng, plain=False) or "A"
        row = ",".join((arm or "A", number, "n" if i < late else cell(rng, plain=True)))
        lines.append(row + (rng.choice(["", ","]) if tail == "sometimes" else tail))
        lines += [""] * (rng.random() < 0.05)
        lines += ["# pause"] * (rng.random() < 0.002)
    return end.join([*lines, ""])


@pytest.mark.parametrize("seed", range(60))
def test_both_readers_read_random_files_alike(tmp_path, both, seed):
    (tmp_path / "a.csv").write_text(written(seed), newline="")
    with_duckdb, without = both(tmp_path / "a.csv", **LONG)
    assert isinstance(with_duckdb, str) == isinstance(without, str), (with_duckdb, without)
    if not isinstance(with_duckdb, str):
        assert with_duckdb == without
        assert list(with_duckdb) == list(without)


FORMS = {  # cells of the best arm and the other, what reads them, and what the best is then
    "decimal comma": ('"13,5"', '"12,25"', {"decimal": ","}),
    "thousands": ('"13,500"', '"12,250"', {"thousands": ","}),
    "money": ("$13.5", "$12", {"strip": "$"}),
    "words": ("yes", "no", {"true": "yes"}),
    "durations": ("00:10:13", "00:09:59", {"durations": True}),
    "nameless": ("13.5", "12", {"drop_unnamed": True}),
}


@pytest.mark.parametrize("name", ["a.csv", "*.csv", "."])
@pytest.mark.parametrize("small", [True, False])
@pytest.mark.parametrize("case", FORMS)
def test_what_an_error_names_reads_files_folders_and_patterns(monkeypatch, tmp_path, name, small, case):
    """Folders refused every form without a remedy, and `analyze` did not take what its errors named."""
    if not small:
        monkeypatch.setattr(lazy, "SMALL", 50)
    best, other, form = FORMS[case]
    nameless = f",{other}\n" if case == "nameless" else ""
    content = "arm,v\n" + nameless + f"A,{best}\nB,{other}\n" * 100
    (tmp_path / "a.csv").write_text(content)
    source = str(tmp_path / name)
    with pytest.raises(InvalidArgument, match=f"{next(iter(form))}="):
        ta.analyze(source, **LONG)
    found = ta.analyze(source, **LONG, **form)
    assert (found.best, found.pulls) == ("A", {"A": 100, "B": 100})


def test_a_file_in_another_encoding_among_several_says_how_to_convert_it(tmp_path):
    (tmp_path / "a.csv").write_text("arm,v\nA,1\n", encoding="utf-16")
    with pytest.raises(InvalidArgument, match="convert it, such as by: iconv -f utf-16 -t utf-8 a"):
        ta.analyze(str(tmp_path), **LONG)
    (tmp_path / "a.csv").write_text("arm,v\nK\u00f6ln,1\n", encoding="cp1252")
    with pytest.raises(InvalidArgument, match=r"line 2 of a file is not UTF-8; convert it, such as by iconv"):
        ta.analyze(str(tmp_path), **LONG)
    with pytest.raises(InvalidArgument, match="iconv -f cp1252"):
        ta.analyze(str(tmp_path), **LONG, encoding="cp1252")


def test_a_large_file_in_another_encoding_is_read(monkeypatch, tmp_path):
    monkeypatch.setattr(scans, "_LARGE", {"csv": 1})
    for encoding, said in (("utf-16", {}), ("cp1252", {"encoding": "cp1252"})):
        (tmp_path / "a.csv").write_text("arm,v\n" + "K\u00f6ln,1\nBonn,2\n" * 100, encoding=encoding)
        assert ta.analyze(tmp_path / "a.csv", **LONG, **said).best == "Bonn"


def test_forms_are_of_files():
    with pytest.raises(
        InvalidArgument, match="decimal=',' says how a file is written; leave it out for data at hand"
    ):
        ta.analyze({"A": [1.0]}, decimal=",")
    with pytest.raises(TypeError, match="unexpected keyword argument 'decimals'"):
        ta.analyze({"A": [1.0]}, decimals=",")
    frame = {"arm": ["A", None, "B"] * 50, "v": [2.0, 9.0, 1.0] * 50}
    with pytest.raises(InvalidArgument, match="leave such rows out with drop_unnamed=True"):
        ta.analyze(frame, **LONG)
    assert ta.analyze(frame, **LONG, drop_unnamed=True).best == "A"


def test_files_of_a_folder_may_be_written_differently(tmp_path):
    (tmp_path / "a.csv").write_text("arm,v\n" + "A,3\nB,1\n" * 40)
    (tmp_path / "b.csv").write_text("# later\nv;arm\n" + '3;"A"\n1;B\n' * 40)
    (tmp_path / "c.tsv").write_text("arm\tv\n" + "A\t3\nB\t1\n" * 40)
    (tmp_path / "d.csv").write_text("")
    found = ta.analyze(str(tmp_path), **LONG)
    assert (found.best, found.pulls) == ("A", {"A": 120, "B": 120})


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_folders_may_name_the_arm(tmp_path, ending):
    for version, middle in (("1.1", 3.0), ("1.10", 1.0)):
        rows = pl.DataFrame(
            {"v": np.arange(100) % 7 + middle, "when": [f"2024-05-01T00:00:{i % 60:02}" for i in range(100)]}
        )
        folder = tmp_path / f"arm={version}"
        folder.mkdir()
        {"csv": rows.write_csv, "parquet": rows.write_parquet, "jsonl": rows.write_ndjson}[ending](
            folder / f"x.{ending}"
        )
    for source in (tmp_path, tmp_path / "**" / f"*.{ending}"):
        found = ta.analyze(str(source), **LONG)
        assert (found.best, found.pulls) == ("1.1", {"1.1": 100, "1.10": 100})


@pytest.mark.parametrize(
    "time",
    [lambda i: i, lambda i: i / 2, lambda i: f"2024-05-01 00:{i // 60:02}:{i % 60:02}"],
    ids=["n", "x", "t"],
)
def test_the_order_of_several_files_is_a_time(monkeypatch, tmp_path, time):
    monkeypatch.setattr(lazy, "SMALL", 100)
    (tmp_path / "a.csv").write_text(
        "arm,v,t\n" + "".join(f"{'AB'[i % 2]},{i % 7 + i},{time(i)}\n" for i in range(2000))
    )
    assert ta.analyze(str(tmp_path), **LONG, order="t").status.value == "doubtful"


AROUND = [chr(i) for i in range(0x110000) if chr(i).isspace()]


def by_pattern(file, **asked):
    roles = Roles(asked.pop("arm"), asked.pop("value"))
    drop = asked.get("drop_unnamed", False)
    try:
        head = lazy.opened(str(file.with_name("*.csv")), roles, form=Form.of(asked))
        tapes = frames.collect(head, *roles[:2], drop_unnamed=drop).tapes
        return {arm: [None if np.isnan(x) else float(x) for x in tape] for arm, tape in tapes.items()}
    except InvalidArgument as error:
        return str(error)


ALIKE = {
    "blanks around names": ("arm,v\n" + "".join(f"{x}A{x},1\n" for x in AROUND if x not in "\r\n"), ["A"]),
    "blanks around numbers": ("arm,v\nA,\u00a01\u00a0\nA,\t2\t\nA,\u20073\n", ["A"]),
    "no name, no number": ("arm,v\nA,1\n,fast\n\u00a0,fast\n", ["A"]),
    "case": ("arm,v,ARM\nA,1,B\n", None),
    "case of readings": ("arm,v,V\nA,1,2\n", None),
    "an escape outside quotes": ('arm,v\nA\\"b,1\n', ['A\\"b']),
    "an escape at the beginning": ('arm,v\n\\"A,1\nB,2\n', ['\\"A', "B"]),
    "two escapes outside quotes": ('arm,v\n"z\\"z",1\nA\\\\b,2\n', ['z"z', "A\\\\b"]),
    "an escaped letter": ('arm,v\n"z\\"z",1\n"A\\b",2\n', ['z"z', "Ab"]),
    "two kinds of quotes in quotes": ('arm,v\n"z\\"z",1\n"a""b",2\n', None),
    "one blank before a quote": ('arm,v\n "A", "1"\nA,2\n', ["A"]),
    "two blanks before a quote": ('arm,v\n  "A",1\nA,2\n', ['"A"', "A"]),
    "blanks behind a quote": ('arm,v\n"A"  ,"1" \nA,2\n', ["A"]),
    "an escaped end of a line": ('arm,v\n"z\\"z",1\n"a\\\nb",2\n', ['z"z', "a\nb"]),
    "a separator said": ("sep=;\narm;v\nA;1\nB;2\n", ["A", "B"]),
    "a tab said": ("sep=\t\r\narm\tv\r\nA\t1\r\nB, x\t2\r\n", ["A", "B, x"]),
    "a column called sep": ("sep=,v,arm\n1,2,A\n", ["A"]),
    "an open quote": ('arm,v\n"z\\"z",1\n"a\\', None),
}


@pytest.mark.parametrize("name", ALIKE)
def test_what_stands_around_names_and_in_quotes_is_read_alike(tmp_path, monkeypatch, both, name):
    """Blanks of other kinds made arms of their own, in one reader, in another, or in an engine."""
    content, arms = ALIKE[name]
    file = tmp_path / "a.csv"
    file.write_bytes(content.encode())
    asked = LONG | {"drop_unnamed": True}
    told = [*both(file, **asked), by_pattern(file, **asked)]
    monkeypatch.setattr(duck_files, "_LARGE", 0)
    told.append(both(file, **asked)[0])
    if arms is None:
        assert all(isinstance(found, str) for found in told), told
    else:
        assert told == [told[0]] * 4
        assert list(told[0]) == arms


def test_what_is_trimmed_is_what_python_trims():
    assert set(_AROUND) == set(AROUND)


def test_no_table_of_a_folder_is_left_out_unseen(tmp_path):
    """Files in capitals, packed ones and other endings were skipped, and half of the data with them."""
    (tmp_path / "a.csv").write_text("arm,v\nA,1\n")
    (tmp_path / "b.CSV").write_text("arm,v\nA,2\n")
    (tmp_path / "c.tab").write_text("arm\tv\nA\t3\n")
    (tmp_path / "d.csv.gz").write_bytes(gzip.compress(b"arm,v\nA,4\n"))
    (tmp_path / "notes.txt").write_text("of no account")
    assert sorted(by_pattern(tmp_path / "a.csv", **LONG)["A"]) == [1.0]
    assert ta.analyze(str(tmp_path), **LONG).pulls == {"A": 4}
    for packed in ("e.csv.zst", "e.csv.bz2", "e.parquet.gz"):
        (tmp_path / packed).write_bytes(b"packed")
        with pytest.raises(
            InvalidArgument, match=f"{packed}' is packed, and of several files .*; unpack it first"
        ):
            ta.analyze(str(tmp_path), **LONG)
        (tmp_path / packed).unlink()


def test_packed_json_lines_are_json_lines(tmp_path):
    line = b'{"arm": "A", "v": 1}\n'
    (tmp_path / "a.jsonl").write_bytes(line)
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(line))
    assert ta.analyze(str(tmp_path), **LONG).pulls == {"A": 2}
    assert ta.analyze(str(tmp_path / "*.jsonl.gz"), **LONG).pulls == {"A": 1}


def test_a_parquet_file_without_the_column_of_the_others_is_refused(tmp_path):
    """Its rows were missing readings of arms that it may know nothing of; of CSV files it was an error before."""
    pl.DataFrame({"arm": ["A"], "v": [1.0]}).write_parquet(tmp_path / "a.parquet")
    pl.DataFrame({"arm": ["A"], "w": [1.0]}).write_parquet(tmp_path / "b.parquet")
    with pytest.raises(InvalidArgument, match=r"b.parquet' has no column 'v', which other files here have; give"):
        ta.analyze(str(tmp_path), **LONG)


def test_how_a_file_is_packed_is_no_kind(tmp_path):
    (tmp_path / "a.csv.bz2").write_bytes(b"BZh")
    with pytest.raises(InvalidArgument, match=r"'a.csv.bz2' is packed .*; unpack it, or pack it as .gz"):
        ta.analyze(str(tmp_path / "a.csv.bz2"), **LONG)


@pytest.mark.parametrize("few", [1, 64])
@pytest.mark.parametrize("suspect", [{}, {"user": [1, 2, 3, 4] * 50}])
def test_rows_left_out_by_an_engine_are_counted(monkeypatch, suspect, few):
    """None was said to be left out, and a column named like a unit made such rows an error."""
    monkeypatch.setattr(lazy, "SMALL", 50)
    monkeypatch.setattr(lazy, "_FEW", few)
    rows = pl.LazyFrame({"arm": ["A", "B", None, ""] * 50, "v": range(200), **suspect})
    source = lazy.opened(rows, Roles("arm", "v"), form=Form.of({"drop_unnamed": True}))
    found = source.collected() if few > 1 else frames.collect(source, "arm", "v", drop_unnamed=True)
    assert found.dropped == 100


@pytest.mark.parametrize("content", ["#arm,v\nA,1\n", "# arm,v\nA,1\nB,2\n"])
def test_names_behind_a_mark_are_an_error_that_says_so(tmp_path, both, content):
    """The error told the first readings as names of columns."""
    file = tmp_path / "a.csv"
    file.write_text(content)
    for said in (*both(file, **LONG), by_pattern(file, **LONG)):
        assert said.endswith("which begins with a #; take the # away")
