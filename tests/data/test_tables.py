"""Every frame and every file gives the same readings, and says in the same words what is wrong with them."""

import datetime

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from reading import found, tapes, write

import truearm as ta
from truearm.errors import InvalidArgument

FRAMES = {
    "dict": lambda columns: columns,
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "lazy polars": lambda columns: pl.DataFrame(columns).lazy(),
    "pyarrow": pa.table,
    "duckdb": lambda columns: duckdb.from_arrow(pa.table(columns)),
}
FILES = ["csv", "tsv", "parquet", "jsonl", "json", "arrow", "xlsx"]
PACKED = ["csv.gz", "csv.zst", "jsonl.gz", "jsonl.zst", "json.gz"]
KINDS = [*FRAMES, *FILES]


@pytest.fixture
def table(tmp_path):
    """Return what makes columns a frame or a file of some kind."""

    def make(kind, columns):
        return FRAMES[kind](columns) if kind in FRAMES else write(tmp_path / f"a.{kind}", columns)

    return make


LONG = {"site": ["B", "A", "B", "A"], "ms": [3.0, None, 5.25, 2.5], "other": ["x", "y", "z", ""]}
SITES = {
    "site": ["B", "A", "B", "A", "B", "A", "B"],
    "user": [1, 2, 1, 3, 4, 2, 1],
    "ms": [3.0, 1.0, 5.0, 2.0, 8.0, 4.0, 4.0],
    "at": [17, 16, 15, 14, 13, 12, 9],
    "day": [f"2026-01-{day:02}" for day in range(7, 0, -1)],
}
BY = {"arm": "site", "value": "ms"}


@pytest.mark.parametrize("kind", [*KINDS, *PACKED])
def test_every_kind_gives_the_same_readings(table, kind):
    assert list(tapes(table(kind, LONG), **BY).items()) == [("B", [3.0, 5.25]), ("A", [None, 2.5])]  # by first row


@pytest.mark.parametrize("kind", KINDS)
def test_units_orders_and_rounds_in_every_kind(table, kind):
    source = table(kind, SITES)
    by_unit = found(source, **BY, unit="user")
    assert by_unit.tapes == {"B": [4.0, 8.0], "A": [2.5, 2.0]}
    units = by_unit.units
    assert (units.name, units.rows, units.counts) == ("user", {"B": 4, "A": 3}, {"B": 2, "A": 2})
    assert not by_unit.ordered
    for column in ("at", "day"):
        assert found(source, **BY, order=column)[::2] == ({"B": [4, 8, 5, 3], "A": [4, 2, 1]}, True)
    assert found(source, **BY, unit="user", order="at")[::2] == ({"B": [4.0, 8.0], "A": [2.5, 2.0]}, True)
    assert found(source, **BY, order="rows").ordered
    assert tapes(source, **BY, round="user") == {"B": [4.0, None, None, 8.0], "A": [None, 2.5, 2.0, None]}
    shared = {"arm": list("AABBCC"), "run": [1, 2, 1, 2, 2, 3], "x": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]}
    assert found(table(kind, shared), "arm", "x", unit="run").units.shared == 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_wide_table_has_one_column_per_arm_and_perhaps_one_of_rounds(table, kind):
    wide = {"item": ["x", "y", "x", "z"], "A": [1.0, 2.0, 3.0, 4.0], "B": [5.0, None, 7.0, 8.0]}
    assert found(table(kind, wide), unit="item").units.counts == {"A": 3, "B": 3}
    assert tapes(table(kind, wide), round="item") == {"A": [2.0, 2.0, 4.0], "B": [6.0, None, 8.0]}
    padded = table(kind, {"A": [1.0, None, 2.0, None], "B": [None, 2.0, 3.0, 4.0]})
    end = [None] if kind == "dict" else []  # a shorter column; a program's own list is as long as it is
    assert tapes(padded) == {"A": [1.0, None, 2.0, *end], "B": [None, 2.0, 3.0, 4.0]}
    assert tapes(padded, round="rows") == {"A": [1.0, None, 2.0, None], "B": [None, 2.0, 3.0, 4.0]}
    assert found(padded, order="rows").ordered
    counted = {"A": [4.0, 5.0, 4.0]}
    assert list(tapes(table(kind, {"id": [1, 3, 2], **counted}))) == ["id", "A"]
    for name in ("id", "user", "Index") if kind != "dict" else ():
        message = f"column '{name}' counts the rows, so it is not an arm; .*round='{name}'"
        with pytest.raises(InvalidArgument, match=message):
            tapes(table(kind, {name: [1, 2, 3], **counted}))


NOON, HOUR = datetime.datetime(2026, 1, 1, 12), datetime.timedelta(hours=1)


@pytest.mark.parametrize("kind", [*FRAMES, "parquet", "csv"])
def test_order_by_numbers_and_times(table, kind):
    for cells in (
        ["10", "9", "8.5"],
        ["2024-01-03T00:00:00+01:00", "2024-01-02T00:00:00Z", "2024-01-01T00:00:00Z"],
        [NOON + 2 * HOUR, NOON + HOUR, NOON],
        [datetime.date(2026, 1, 3), datetime.date(2026, 1, 2), datetime.date(2026, 1, 1)],
        [2**62 + 2, 2**62 + 1, 2**62],
        [0.5, -0.5, float("-inf")],
    ):
        source = table(kind, {"arm": ["A"] * 3, "x": [1.0, 2.0, 3.0], "at": cells})
        assert tapes(source, "arm", "x", order="at")["A"] == [3.0, 2.0, 1.0], cells
    equal = table(kind, {"arm": ["A", "B"] * 50, "x": list(range(100)), "at": [1, 0] * 50})
    kept = tapes(equal, "arm", "x", order="at")
    assert (list(kept), kept["A"]) == (["A", "B"], list(range(0, 100, 2)))  # equal places stay as they stand


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_order_by_times_of_every_type(tmp_path, unit, zone):
    columns = pa.table({"arm": ["A"] * 3, "x": [1, 2, 3], "at": pa.array([9, 8, 7], pa.timestamp(unit, zone))})
    file = write(tmp_path / "a.parquet", columns)
    for source in (columns, columns.to_pandas(), pl.from_arrow(columns), file):
        assert tapes(source, "arm", "x", order="at")["A"] == [3, 2, 1]


@pytest.mark.parametrize("codes", [pd.Series([1, 2, 1]), pd.Categorical(["1", "2", "1"])], ids=["int", "category"])
def test_names_become_strings(codes):
    cells = {"arm": codes, "x": pd.array([1, None, 3], dtype="Int64")}
    assert tapes(cells, "arm", "x") == tapes(pd.DataFrame(cells), "arm", "x") == {"1": [1.0, 3.0], "2": [None]}


def test_an_arm_that_first_rows_do_not_name_is_found():
    late = (1 << 16) + 2
    rows = pl.DataFrame({"arm": ["B", "A"] * (late // 2) + ["C", "A"], "ms": np.arange(late + 2.0)})
    by_arm = tapes(rows, "arm", "ms")
    assert (list(by_arm), by_arm["C"]) == (["B", "A", "C"], [late])
    assert by_arm["A"] == rows.filter(pl.col("arm") == "A")["ms"].to_list()


def test_what_is_under_a_mask_is_no_reading_and_names_no_arm():
    """A masked array keeps a number under its mask, which was taken for a reading."""
    masked = np.ma.masked_array([1.0, 999.0, 3.0], mask=[False, True, False])
    for column in (masked, masked.astype(int), masked.astype(object)):
        assert tapes({"A": column})["A"] == [1.0, None, 3.0]
        assert tapes({"arm": ["A", "A", "B"], "ms": column}, "arm", "ms")["A"] == [1.0, None]
    names = np.ma.masked_array(["A", "B", "A"], mask=[False, True, False])
    with pytest.raises(InvalidArgument, match="row 2 of column 'arm' names no arm"):
        tapes({"arm": names, "ms": [1.0, 2.0, 3.0]}, "arm", "ms")


@pytest.mark.parametrize("kind", ["polars", "lazy polars", "pyarrow", "duckdb", "parquet"])
@pytest.mark.parametrize("cell", [["A"], {"k": "A"}], ids=["list", "record"])
def test_lists_and_records_name_no_arm_and_no_unit(table, kind, cell):
    source = table(kind, {"site": [cell, cell], "ms": [1.0, 2.0], "plain": ["x", "y"]})
    for roles in (BY, {"arm": "plain", "value": "ms", "unit": "site"}):
        with pytest.raises(InvalidArgument, match="column 'site' must hold names, but its type is"):
            tapes(source, **roles)


MANY = 1_001
REFUSED = [  # columns, roles, message: the same in every kind
    ({"site": ["A", None, None], "ms": [1.0] * 3}, BY, "row 2 of column 'site' names no arm, nor does 1 more"),
    ({"site": list(range(MANY)), "ms": [1.0] * MANY}, BY, "arm='site' names 1,001 arms or more, but at most 1"),
    ({"site": ["x", "y"], "ms": [1.0, 2.0]}, {}, "'site' holds words; name the columns: arm='site', value='ms'"),
    (LONG, {**BY, "value": "other"}, "row 1 of column 'other' must be a number, but got 'x'"),
    (LONG, {**BY, "arm": "sit"}, "arm='sit' is not a column; did you mean 'site'"),
    (LONG, {**BY, "value": "zzz"}, "value='zzz' is not a column; columns are 'site', 'ms', 'other'"),
    (LONG, {"arm": "site"}, r"needs value='...' too"),
    (LONG, {**BY, "order": "other"}, "row 4 of column 'other' is empty|order='other' must hold numbers or times"),
    (SITES, {**BY, "unit": "site"}, "unit='site' is the column of the arms"),
    (SITES, {**BY, "order": "ms"}, "order='ms' is the column of the readings"),
    (SITES, {**BY, "unit": 3}, "unit must be the name of a column, a string, but got 3"),
    (SITES, {"order": "at"}, "order='at' needs a long table"),
    (SITES, {**BY, "round": "rows"}, "round='rows' is for a wide table"),
    ({**SITES, "user": [1, 2, None, 3, 4, 2, 1]}, {**BY, "unit": "user"}, "row 3 of column 'user' names no unit"),
    ({**SITES, "at": [1, 2, None, 4, 5, 6, 7]}, {**BY, "order": "at"}, "row 3 of column 'at' is empty, so its"),
    (
        {"site": ["A", "A", "B", "B"], "pid": [1, 1, 2, 3], "ms": [1.0, 2.0, 3.0, 4.0]},
        {**BY, "unit": "pid"},
        r"arm 'A' has one unit only: its 2 readings .*single 'pid'.* more",
    ),
]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_refused_in_the_same_words(table, kind):
    for columns, roles, message in REFUSED:
        if "user" in roles.values() and None in columns["user"] and kind in ("json", "jsonl"):
            columns = {**columns, "user": [None if x is None else str(x) for x in columns["user"]]}  # noqa: PLW2901
        with pytest.raises(InvalidArgument, match=message):
            ta.analyze(table(kind, columns), **roles)


TWICE = r"named '1'|'1' 2 times"
OWN_ROWS = {"site": ["A", "B"], "ms": [1.0, 2.0]}
DAY = "row 1 of column 'A' must be a number, but got .*2024.*; correct it"


@pytest.mark.parametrize(
    ("frame", "roles", "message"),
    [
        (pd.DataFrame({"site": [1.0, np.nan], "ms": [1.0, 2.0]}), BY, "row 2 of column 'site' names no arm"),
        ({str(i): [1.0] for i in range(MANY)}, {}, "there are 1,001 columns, but at most 1,000 arms"),
        ({"A": [pd.Timestamp("2024-01-31")]}, {}, DAY),
        ({"site": ["A", "B"], "ms": iter(["1", "fast"])}, BY, "row 1 of column 'ms' must be a number, .* '1'"),
        (pd.DataFrame({"site": ["A", "B"], "ms": [1, "fast"]}), BY, "row 2 .* must be a number, but got 'fast'"),
        ({"A": [1, 10**400]}, {}, "row 2 of column 'A' must be a number, but got 1000"),
        ({"A": ["x" * 10_000]}, {}, "^.{1,300}$"),
        (pl.DataFrame({"site": ["A"], "ms": [NOON]}), BY, "row 1 of column 'ms' must be a number, but got .*2026"),
        ({1: [1.0], "1": [2.0]}, {}, TWICE),
        (pd.DataFrame([[1.0, 2.0]], columns=["1", "1"]), {}, TWICE),
        (pd.DataFrame([["A", 1.0, 2.0]], columns=["site", "ms", "ms"]), BY, "'ms' 2 times"),
        (pd.DataFrame([[1, 2]]), {}, r"must be strings, but got 0; use frame.rename\(columns=str\)"),
        (
            {**OWN_ROWS, "at": [1, NOON]},
            {**BY, "order": "at"},
            "must hold numbers or times .*, all of one kind",
        ),
        ({"site": [], "ms": []}, BY, "the data have no rows"),
        (pd.Series([1.0, 2.0]), BY, r"but got Series; write \{'A': \[1, 2\], 'B': \[3, 4\]\}, or the path"),
    ],
)
def test_what_is_wrong_is_said_with_the_remedy(frame, roles, message):
    with pytest.raises(InvalidArgument, match=message):
        ta.analyze(frame, **roles)


@pytest.mark.parametrize("column", [[1 + 2j, 2.0], np.array([1 + 2j, 2.0]), np.array([1, 2], dtype=np.complex64)])
def test_complex_numbers_are_not_readings(column):
    for read in (lambda: ta.analyze({"A": column, "B": [1, 2]}), lambda: ta.median_interval(column)):
        with pytest.raises(InvalidArgument, match="must be a number, but got"):
            read()
    with pytest.raises(InvalidArgument, match="number"):
        ta.analyze(pd.DataFrame({"A": column, "B": [1, 2]}))
    with pytest.raises(InvalidArgument, match="number"):
        ta.analyze(pd.DataFrame({"arm": ["a", "b"], "x": column}), arm="arm", value="x")


def test_readings_of_an_arm_are_a_list_and_not_a_dict():
    with pytest.raises(InvalidArgument, match=r"column 'A' must be a list of readings, but got \{1: 5.0}"):
        ta.analyze({"A": {1: 5.0}, "B": [1, 2]})
    with pytest.raises(InvalidArgument, match="must be a list of readings"):
        ta.median_interval({1: 5.0, 2: 6.0})
