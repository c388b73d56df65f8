"""Numbers that other programs computed: the files in `vectors`."""

import json
from pathlib import Path

import numpy as np

from truearm.evidence.counts import Counts

FOLDER = Path(__file__).parent / "vectors"


def vectors(*files):
    """Return the vectors of these files by their names."""
    read = (json.loads((FOLDER / f"{file}.json").read_text())["vectors"] for file in files)
    return {vector["id"]: vector for part in read for vector in part}


def count_tapes(tapes, edges=None):
    """Return the counts of readings by arm, by default in buckets of one value each."""
    known = {
        arm: np.asarray(np.ma.filled(np.ma.asarray(tape, dtype=float), np.nan)) for arm, tape in tapes.items()
    }
    values = {arm: tape[~np.isnan(tape)] for arm, tape in known.items()}
    edges = np.concatenate(list(values.values())) if edges is None else edges
    lumps = {arm: (x, x, np.ones(x.size, dtype=np.int64), known[arm].size - x.size) for arm, x in values.items()}
    return Counts.from_lumps(edges, lumps)
