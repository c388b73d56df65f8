"""Names, words and addresses of files as DuckDB has to be told them, and columns that folders name."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from truearm.errors import InvalidArgument
from truearm.world.roles import Roles
from truearm.world.written import ABSENT


def quoted(column: str) -> str:
    """Return the name of a column for SQL."""
    return '"' + column.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return text for SQL."""
    return "'" + text.replace("'", "''") + "'"


def marks() -> str:
    """Return all marks of a missing number for SQL."""
    return ", ".join(map(literal, ABSENT))


def address(file: Path) -> str:
    """Return a path as DuckDB has to be told it: absolute, and with nothing that stands for other names."""
    return literal(re.sub(r"([*?\[])", r"[\1]", file.absolute().as_posix()))


def addresses(files: Iterable[Path]) -> str:
    """Return several paths as DuckDB has to be told them."""
    return f"[{', '.join(map(address, files))}]"


def text_address(file: Path) -> str:
    """Return the path of a text file and how it is packed: DuckDB does not see the ending behind a ?."""
    packing = {".gz": "gzip", ".zst": "zstd"}.get(file.suffix.lower(), "uncompressed")
    return f"{address(file)}, compression = '{packing}', hive_partitioning = false"


def hive_keys(files: Sequence[Path]) -> list[str]:
    """Return the columns that folders name, as in variant=A/1.parquet; none unless those of all files do."""
    keys = {tuple(part.partition("=")[0] for part in file.parent.parts if "=" in part) for file in files}
    return list(keys.pop()) if len(keys) == 1 else []


def check_hive(files: Sequence[Path], columns: Iterable[str]) -> None:
    """Raise if folders name a column that the files have too: one of the two would be overlooked."""
    for key in hive_keys(files):
        if key in columns:
            both = f"the folders name a column {key!r}, and the files have one of that name too"
            msg = f"{both}; rename the folders, or give the files by a pattern of their own"
            raise InvalidArgument(msg)


def hive_options(files: Sequence[Path], roles: Roles) -> str:
    """Return options of DuckDB for columns that folders name: names stay words."""
    words = [f"{literal(key)}: VARCHAR" for key in hive_keys(files) if key in (roles.arm, roles.unit)]
    types = f", hive_types = {{{', '.join(words)}}}" if words else ""
    return f"hive_partitioning = {'true' if hive_keys(files) else 'false'}{types}"
