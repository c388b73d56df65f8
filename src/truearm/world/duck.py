"""DuckDB, opened once for the files of a process: to open it takes longer than to read a small file."""

import atexit
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from truearm.errors import InvalidArgument


def duckdb() -> Any:  # noqa: ANN401 - duckdb has no types to speak of
    """Return the module, or say what to install."""
    try:
        import duckdb
    except ImportError:
        msg = "reading this file needs DuckDB; install it with: pip install 'truearm[data]'"
        raise InvalidArgument(msg) from None
    return duckdb


@contextmanager
def connected() -> Iterator[Any]:
    """Yield a connection to an in-memory database with tables and views of its own."""
    connection = _database().cursor()
    try:
        yield connection
    except BaseException:
        forget()  # what DuckDB calls a fatal error spoils a database for all that come after
        raise
    finally:
        connection.close()


def forget() -> None:
    """Close the database as soon as nobody is connected to it, and give back the memory that it keeps."""
    _database.cache_clear()


@cache
def _database() -> Any:  # noqa: ANN401
    database = duckdb().connect()
    database.execute("SET disabled_optimizers = 'statistics_propagation'")  # statistics of Parquet know of no NaN
    database.execute("SET enable_external_file_cache = false")  # a file may change between two looks at it
    return database


atexit.register(forget)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=forget)  # a child has none of its threads, and would wait for them
