"""The one way in: open a table, choose its columns, and return the readings of each arm."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from truearm.data.cells import PLAIN, Form
from truearm.data.columns import NO_COLUMNS, Columns
from truearm.data.dataset import Dataset
from truearm.errors import InvalidArgument
from truearm.evidence.counts import Counts
from truearm.evidence.units import MEDIANS, Reduction


def load(
    source: Any,  # noqa: ANN401 - a frame, a path or several, or readings loaded before
    columns: Columns = NO_COLUMNS,
    reduction: Reduction = MEDIANS,
    form: Form = PLAIN,
    query: str | None = None,
) -> Dataset:
    """Return the readings of each arm in a frame, a file, several files or a database.

    Parameters
    ----------
    source
        A dict of sequences, a frame that narwhals understands, a path, a pattern, a folder, the address of a
        database, "-" for standard input, or a list of paths.
    query
        The rows to read, in SQL; a file is called `data` in it.
    """
    if isinstance(source, Dataset):
        named = [*columns.named, *(["round"] if columns.round == "rows" else [])]
        if named and columns.round != "rows":
            msg = f"{named[0]} is given, but these readings are loaded already; remove it, or give the table"
            raise InvalidArgument(msg, named[0])
        return source.align() if columns.round == "rows" else source
    if isinstance(source, Counts):
        return Dataset({}, counted=source)
    several = isinstance(source, Sequence) and bool(source) and all(isinstance(one, str | Path) for one in source)
    if isinstance(source, str | Path) or several:
        from truearm.data.files import load_files

        paths = [str(source)] if isinstance(source, str | Path) else [str(path) for path in source]
        return load_files(paths, columns, reduction, form, query)
    if query is not None:
        raise InvalidArgument("query is for files and databases; remove it for data in memory", "query")
    if form.given:
        name, value = next(iter(form.given.items()))
        msg = f"{name}={value!r} says how a file is written; remove it for data in memory"
        raise InvalidArgument(msg, name, value)
    from truearm.data.frames import load_frame

    return load_frame(source, columns, reduction, form)
