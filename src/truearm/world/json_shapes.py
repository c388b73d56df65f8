"""The shapes in which pandas writes a table as JSON, told apart by what is in them: columns by name come out."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

Columns = dict[str, list[Any]]


def columns_in(data: object, wanted: Collection[str] = ()) -> Columns | None:
    """Return the columns of a table that was written as rows, None if it was not.

    Parameters
    ----------
    data
        What `json.loads` made of "records", "split", "table", "columns", "index" or "values" of
        `pandas.DataFrame.to_json`; of the last, columns are called "0", "1" and so on.
    wanted
        Names of columns: they tell "columns" from "index".
    """
    if isinstance(data, list):
        return _of_list(data)
    if not isinstance(data, Mapping):
        return None
    inner, names = data.get("data"), data.get("columns")
    if {"columns", "data"} <= data.keys() <= {"columns", "data", "index"} and isinstance(names, list):
        return _of_lists(inner, [str(name) for name in names])
    if {"schema", "data"} == data.keys() and isinstance(data["schema"], Mapping):
        fields = data["schema"].get("primaryKey", [])
        keys = {fields} if isinstance(fields, str) else set(fields)
        found = _of_list(inner) if isinstance(inner, list) else None
        return found and {name: cells for name, cells in found.items() if name not in keys or name in wanted}
    if data and all(isinstance(part, Mapping) for part in data.values()):
        return _of_mappings(data, wanted)
    return None


def _of_list(rows: Sequence[Any]) -> Columns | None:
    if rows and all(isinstance(row, Mapping) for row in rows):
        names = list(dict.fromkeys(name for row in rows for name in row))
        return {str(name): [row.get(name) for row in rows] for name in names}
    width = len(rows[0]) if rows and isinstance(rows[0], list) else 0
    return _of_lists(rows, [str(i) for i in range(width)]) if width else None


def _of_lists(rows: object, names: Sequence[str]) -> Columns | None:
    if not isinstance(rows, list) or not all(isinstance(row, list) and len(row) == len(names) for row in rows):
        return None
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def _of_mappings(data: Mapping[str, Mapping[str, Any]], wanted: Collection[str]) -> Columns:
    """Return the columns of a table by column and row, or by row and column if the names say so."""
    within = list(dict.fromkeys(name for part in data.values() for name in part))
    by_row = set(wanted) <= set(within) if wanted else _are_numbers(data) and not _are_numbers(within)
    if by_row and not (wanted and set(wanted) <= data.keys()):
        return {name: [part.get(name) for part in data.values()] for name in within}
    return {name: [part.get(row) for row in within] for name, part in data.items()}


def _are_numbers(names: Collection[str]) -> bool:
    return all(name.isdecimal() for name in names)
