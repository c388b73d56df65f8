"""Frames of every kind give the same readings, and say what is wrong with them."""

import datetime
from typing import NamedTuple

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import truearm as ta
from truearm.errors import InvalidArgument


class Found(NamedTuple):
    """What an analysis says about its data."""

    tapes: dict
    units: object
    ordered: bool


def collect(frame, arm=None, value=None, **options):
    found = ta.analyze(frame, arm=arm, value=value, **options)
    return Found(found.readings, found.units, found.certificate.origin.options["ordered"])


def tapes_of(frame, arm=None, value=None, **options):
    return collect(frame, arm, value, **options).tapes


LONG = {"site": ["B", "A", "B", "A"], "ms": [3.0, None, 5.0, 2.5], "other": ["x"] * 4}
FRAMES = {
    "dict": lambda columns: columns,
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "lazy polars": lambda columns: pl.DataFrame(columns).lazy(),
    "pyarrow": pa.table,
    "duckdb": lambda columns: duckdb.from_arrow(pa.table(columns)),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_every_frame_gives_the_same_tapes(kind):
    tapes = tapes_of(FRAMES[kind](LONG), "site", "ms")
    assert list(tapes) == ["B", "A"]  # by first row
    np.testing.assert_array_equal(tapes["B"], [3.0, 5.0])
    np.testing.assert_array_equal(tapes["A"], [np.nan, 2.5])


@pytest.mark.parametrize("kind", ["pandas", "polars", "lazy polars", "pyarrow", "duckdb"])
def test_the_foot_of_a_shorter_column_is_no_reading(kind):
    tapes = tapes_of(FRAMES[kind]({"A": [1.0, 2.0, None], "B": [None, 2.0, 3.0]}))
    assert tapes["A"].tolist() == [1.0, 2.0]
    np.testing.assert_array_equal(tapes["B"], [np.nan, 2.0, 3.0])


@pytest.mark.parametrize(
    "codes",
    [pd.Series([1, 2, 1]), pd.Categorical(["1", "2", "1"]), pd.array([1, 2, 1], dtype="Int64")],
)
def test_names_become_strings(codes):
    tapes = tapes_of(pd.DataFrame({"arm": codes, "x": pd.array([1, None, 3], dtype="Int64")}), "arm", "x")
    assert list(tapes) == ["1", "2"]
    assert tapes["1"].tolist() == [1.0, 3.0]


@pytest.mark.parametrize("frame", [{"A": [1.0], "a": [2.0]}, pd.DataFrame({"A": [1.0], "a": [2.0]})])
def test_names_that_differ_in_case_are_different(frame):
    assert {name: tape.tolist() for name, tape in tapes_of(frame).items()} == {"A": [1.0], "a": [2.0]}


def test_a_frame_on_its_side_is_refused_with_the_count():
    with pytest.raises(InvalidArgument, match="there are 10,001 columns"):
        tapes_of({str(i): [1.0] for i in range(10_001)})
    assert len(tapes_of({str(i): [1.0] for i in range(1000)})) == 1000


@pytest.mark.parametrize("cell", ["2024-01-31", pd.Timestamp("2024-01-31"), np.datetime64("2024-01-31")])
def test_a_date_is_called_one(cell):
    with pytest.raises(InvalidArgument, match=r"row 1 of column 'A' is a date, '2024-01-31.*'; convert it"):
        tapes_of({"A": [cell]})


SITES = {
    "site": ["B", "A", "B", "A", "B", "A", "B"],
    "user": [1, 2, 1, 3, 4, 2, 1],
    "ms": [3.0, 1.0, 5.0, 2.0, 8.0, 4.0, 4.0],
    "at": [7, 6, 5, 4, 3, 2, 1],
}


@pytest.mark.parametrize("kind", FRAMES)
def test_readings_of_one_unit_become_one_in_every_frame(kind):
    found = collect(FRAMES[kind](SITES), "site", "ms", unit="user")
    assert {name: tape.tolist() for name, tape in found.tapes.items()} == {"B": [4.0, 8.0], "A": [2.5, 2.0]}
    assert (found.units.name, found.units.rows, found.units.counts) == ("user", {"B": 4, "A": 3}, {"B": 2, "A": 2})
    assert not found.ordered


@pytest.mark.parametrize("kind", FRAMES)
def test_a_column_puts_readings_in_order_in_every_frame(kind):
    found = collect(FRAMES[kind](SITES), "site", "ms", order="at")
    assert {name: tape.tolist() for name, tape in found.tapes.items()} == {"B": [4, 8, 5, 3], "A": [4, 2, 1]}
    assert found.ordered
    both = collect(FRAMES[kind](SITES), "site", "ms", unit="user", order="at")
    assert both.tapes["A"].tolist() == [2.5, 2.0]
    assert both.ordered


@pytest.mark.parametrize("kind", FRAMES)
def test_rows_are_in_order_if_the_user_says_so(kind):
    assert collect(FRAMES[kind](SITES), "site", "ms", order="rows").ordered
    assert collect(FRAMES[kind]({"A": [1.0], "B": [2.0]}), order="rows").ordered
    assert not collect(FRAMES[kind](SITES), "site", "ms").ordered


HOUR = datetime.timedelta(hours=1)
NOON = datetime.datetime(2026, 1, 1, 12)


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize(
    "cells",
    [
        ["10", "9", "8"],
        ["2026-01-03", "2026-01-02", "2026-01-01"],
        [NOON + 2 * HOUR, NOON + HOUR, NOON],
        [datetime.date(2026, 1, 3), datetime.date(2026, 1, 2), datetime.date(2026, 1, 1)],
        [2**62 + 2, 2**62 + 1, 2**62],
        [0.5, -0.5, float("-inf")],
    ],
)
def test_order_by_numbers_and_times(kind, cells):
    frame = FRAMES[kind]({"arm": ["A"] * 3, "x": [1.0, 2.0, 3.0], "at": cells})
    assert tapes_of(frame, "arm", "x", order="at")["A"].tolist() == [3.0, 2.0, 1.0]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_order_by_times_of_every_kind(unit, zone):
    table = pa.table({"arm": ["A"] * 3, "x": [1, 2, 3], "at": pa.array([9, 8, 7], pa.timestamp(unit, zone))})
    for frame in (table, table.to_pandas(), pl.from_arrow(table)):
        assert tapes_of(frame, "arm", "x", order="at")["A"].tolist() == [3, 2, 1]


@pytest.mark.parametrize("kind", FRAMES)
def test_equal_places_stay_as_they_stand(kind):
    rows = {"arm": ["A", "B"] * 50, "x": list(range(100)), "at": [1, 0] * 50}
    found = tapes_of(FRAMES[kind](rows), "arm", "x", order="at")
    assert found["A"].tolist() == list(range(0, 100, 2))
    assert list(found) == ["A", "B"]  # arms stay where they first stand in the file


WIDE = {"item": ["x", "y", "x", "z"], "A": [1.0, 2.0, 3.0, 4.0], "B": [5.0, None, 7.0, 8.0]}


@pytest.mark.parametrize("kind", FRAMES)
def test_a_column_of_a_wide_frame_may_name_the_units(kind):
    assert collect(FRAMES[kind](WIDE), unit="item").units.counts == {"A": 3, "B": 3}
    found = tapes_of(FRAMES[kind](WIDE), round="item")
    assert found["A"].tolist() == [2.0, 2.0, 4.0]
    np.testing.assert_array_equal(found["B"], [6.0, np.nan, 8.0])


@pytest.mark.parametrize("kind", [kind for kind in FRAMES if kind != "dict"])
@pytest.mark.parametrize("name", ["id", "user", "Index", "#"])
def test_a_column_that_counts_rows_is_no_arm(kind, name):
    """A dict of sequences is what a program has at hand, where no column numbers the rows."""
    with pytest.raises(
        InvalidArgument, match=f"column '{name}' counts the rows, so it is not an arm; .*round='{name}'"
    ):
        collect(FRAMES[kind]({name: [1, 2, 3], "A": [4.0, 5.0, 4.0]}))
    assert list(collect(FRAMES[kind]({name: [1, 3, 2], "A": [4.0, 5.0, 4.0]})).tapes) == [name, "A"]


@pytest.mark.parametrize("kind", FRAMES)
def test_units_named_alike_in_different_arms_are_counted(kind):
    rows = {"arm": list("AABBCC"), "run": [1, 2, 1, 2, 2, 3], "x": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]}
    assert collect(FRAMES[kind](rows), "arm", "x", unit="run").units.shared == 2


def test_an_arm_that_first_rows_do_not_name_is_found():
    late = (1 << 16) + 3
    rows = pl.DataFrame({"arm": ["B", "A"] * (late // 2) + ["C", "A"], "ms": np.arange(late // 2 * 2 + 2.0)})
    found = collect(rows, "arm", "ms").tapes
    assert list(found) == ["B", "A", "C"]
    assert found["C"].tolist() == [late // 2 * 2]
    assert found["A"].tolist() == rows.filter(pl.col("arm") == "A")["ms"].to_list()


def test_what_is_under_a_mask_is_no_reading_and_names_no_arm():
    """A masked array keeps a number under its mask, which was taken for a reading."""
    masked = np.ma.masked_array([1.0, 999.0, 3.0], mask=[False, True, False])
    for column in (masked, masked.astype(int), masked.astype(object)):
        np.testing.assert_array_equal(tapes_of({"A": column})["A"], [1.0, np.nan, 3.0])
        found = tapes_of({"arm": ["A", "A", "B"], "ms": column}, "arm", "ms")
        np.testing.assert_array_equal(found["A"], [1.0, np.nan])
    names = np.ma.masked_array(["A", "B", "A"], mask=[False, True, False])
    with pytest.raises(InvalidArgument, match="row 2 of column 'arm' names no arm"):
        collect({"arm": names, "ms": [1.0, 2.0, 3.0]}, "arm", "ms")


@pytest.mark.parametrize("kind", FRAMES)
def test_whole_numbers_beyond_all_floats_are_rounded_in_every_frame(kind):
    found = tapes_of(FRAMES[kind]({"site": ["A", "A", "B"], "ns": [2**60 + 300, None, -(2**60)]}), "site", "ns")
    np.testing.assert_array_equal(found["A"], [2.0**60 + 256, np.nan])
    assert found["B"].tolist() == [-(2.0**60)]


@pytest.mark.parametrize("kind", ["polars", "lazy polars", "pyarrow", "duckdb"])
@pytest.mark.parametrize("cell", [["A"], {"k": "A"}], ids=["list", "record"])
def test_lists_and_records_name_no_arm_and_no_unit(kind, cell):
    rows = {"site": [cell, cell], "ms": [1.0, 2.0], "plain": ["x", "y"]}
    for roles in ({"arm": "site", "value": "ms"}, {"arm": "plain", "value": "ms", "unit": "site"}):
        with pytest.raises(InvalidArgument, match="column 'site' must hold names, but its type is"):
            collect(FRAMES[kind](rows), **roles)


def test_types_of_names_that_few_know_are_read_or_refused():
    rows = pa.table({"site": pa.array(["B", "A", "B"]).cast(pa.string_view()), "ms": [1.0, 2.0, 3.0]})
    assert tapes_of(rows, "site", "ms")["B"].tolist() == [1.0, 3.0]
    objects = pl.DataFrame({"site": pl.Series(["A", "B"], dtype=pl.Object), "ms": [1.0, 2.0]})
    with pytest.raises(InvalidArgument, match="column 'site' must hold names, but its type is Object"):
        collect(objects, "site", "ms")


BY = {"arm": "site", "value": "ms"}
MANY = 10_001
REFUSED = [  # columns, roles, message: the same in every frame
    ({"site": ["A", None], "ms": [1.0, 2.0]}, BY, "row 2 of column 'site' names no arm"),
    ({"site": [1.0, np.nan], "ms": [1.0, 2.0]}, BY, "row 2 of column 'site' names no arm"),
    ({"site": list(range(MANY)), "ms": [1.0] * MANY}, BY, "arm='site' names 10,001 arms, but at most 10,000"),
    ({"site": ["x", "y"], "ms": [1.0, 2.0]}, {}, "'site' holds words; name the columns: arm='site', value='ms'"),
    (LONG, {**BY, "arm": "sit"}, "arm='sit' is not a column; did you mean 'site'"),
    (LONG, {**BY, "value": "zzz"}, "value='zzz' is not a column; columns are 'site', 'ms', 'other'"),
    (SITES, {**BY, "unit": "usr"}, "unit='usr' is not a column; did you mean 'user'?"),
    (SITES, {**BY, "unit": "site"}, "unit='site' is the column of the arms"),
    (SITES, {**BY, "order": "ms"}, "order='ms' is the column of the readings"),
    (SITES, {**BY, "unit": 3}, "unit must be the name of a column, a string, but got 3"),
    (SITES, {"unit": "user"}, "column 'site' holds words; name the columns: arm='site'"),
    (SITES, {"order": "at"}, "order='at' needs a long table"),
    ({**SITES, "user": [1, 2, None, 3, 4, 2, 1]}, {**BY, "unit": "user"}, "row 3 of column 'user' names no unit"),
    (
        {**SITES, "at": [1, 2, None, 4, 5, 6, 7]},
        {**BY, "order": "at"},
        "row 3 of column 'at' is empty, so its place",
    ),
    (
        {"site": ["A", "A", "B", "B"], "pid": [1, 1, 2, 3], "ms": [1.0, 2.0, 3.0, 4.0]},
        {**BY, "unit": "pid"},
        r"arm 'A' has one unit only: its 2 readings .*single 'pid'.* more",
    ),
]


@pytest.mark.parametrize("kind", FRAMES)
def test_every_frame_is_refused_in_the_same_words(kind):
    for columns, roles, message in REFUSED:
        with pytest.raises(InvalidArgument, match=message):
            ta.analyze(FRAMES[kind](columns), **roles)


TWICE = r"named '1'|'1' 2 times"
OWN_ROWS = {"site": ["A", "B"], "ms": [1.0, 2.0]}


@pytest.mark.parametrize(
    ("frame", "roles", "message"),
    [
        ({"site": ["A", "B"], "ms": ["1", "fast"]}, BY, "row 1 of column 'ms' is the text '1'"),
        (pd.DataFrame({"site": ["A", "B"], "ms": [1, "fast"]}), BY, "row 2 .* must be a number, but got 'fast'"),
        ({"A": [1.0, "oops"], "B": [1.0, 2.0]}, {}, "row 2 of column 'A' must be a number, but got 'oops'"),
        ({"A": ["oops"], "B": [1.0]}, {}, "row 1 of column 'A' must be a number, but got 'oops'"),
        ({"A": [1, 10**400]}, {}, "row 2 of column 'A' is beyond the largest number"),
        ({"A": ["x" * 10_000]}, {}, "^.{1,200}$"),
        (pl.DataFrame({"site": ["A"], "ms": [NOON]}), BY, "row 1 of column 'ms' is a date, .*; convert it"),
        ({1: [1.0], "1": [2.0]}, {}, TWICE),
        (pd.DataFrame([[1.0, 2.0]], columns=["1", "1"]), {}, TWICE),
        (pa.table([[1.0], [2.0]], names=["1", "1"]), {}, TWICE),
        (pd.DataFrame([["A", 1.0, 2.0]], columns=["site", "ms", "ms"]), BY, "'ms' 2 times"),
        (pd.DataFrame([[1, 2]]), {}, r"must be strings, but got 0; use frame.rename\(columns=str\)"),
        (LONG, {**BY, "arm": 0}, "arm must be the name of a column, a string, but got 0"),
        (
            OWN_ROWS,
            {**BY, "arm": pd.Series(["A", "B"])},
            "arm must be the name of a column, a string, but got 0 A",
        ),
        ({**OWN_ROWS, "at": [1, NOON]}, {**BY, "order": "at"}, "must hold numbers or times, all of one kind"),
        (pd.DataFrame({"site": [], "ms": []}), BY, "the data have no rows"),
        ({"site": [], "ms": []}, BY, "the data have no rows"),
        (pd.Series([1.0, 2.0]), BY, r"but got Series; write \{'A': \[1, 2\], 'B': \[3, 4\]\}, or the path"),
        ([1.0, 2.0], BY, "frame must be .* but got"),
    ],
)
def test_what_is_wrong_is_said_with_the_remedy(frame, roles, message):
    with pytest.raises(InvalidArgument, match=message):
        ta.analyze(frame, **roles)
