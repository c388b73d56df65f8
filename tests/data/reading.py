"""Files of rows, and readings through the public entry point."""

import gzip
import json
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import feather, parquet

import truearm as ta


class Found(NamedTuple):
    """What an analysis says about its data; the readings of each arm as lists, None where one is missing."""

    tapes: dict
    units: object
    ordered: bool


def found(source, arm=None, value=None, **options):
    """Return what an analysis says about its data."""
    result = ta.analyze(source, arm=arm, value=value, **options)
    tapes = {name: [None if np.isnan(x) else float(x) for x in tape] for name, tape in result.readings.items()}
    return Found(tapes, result.units, result.certificate.origin.options["ordered"])


def tapes(source, arm=None, value=None, **options):
    """Return the readings of each arm as lists, None where one is missing."""
    return found(source, arm, value, **options).tapes


def write(path, rows):
    """Write rows in the format that the ending names."""
    table, (kind, *packing) = pa.table(rows), path.name.split(".")[1:]
    if kind == "parquet":
        parquet.write_table(table, path)
    elif kind == "arrow":
        feather.write_feather(table, str(path))
    elif kind == "xlsx":
        table.to_pandas().to_excel(path, index=False)
    else:
        records = table.to_pylist() if "json" in kind else []
        text = {
            "json": lambda: json.dumps(records),
            "jsonl": lambda: "".join(json.dumps(row) + "\n" for row in records),
        }.get(kind, lambda: table.to_pandas().to_csv(index=False, sep="\t" if kind == "tsv" else ","))()
        pack = {"gz": gzip.compress, "zst": lambda raw: pa.compress(raw, codec="zstd", asbytes=True)}
        path.write_bytes(pack.get("".join(packing), bytes)(text.encode()))
    return path
