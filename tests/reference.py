"""Numbers that other programs computed: the files in `vectors`."""

import json
from pathlib import Path

import numpy as np

from truearm.bounds.search import last_true
from truearm.evidence import Portfolio, Stake, Trust, least_evidence
from truearm.evidence.counts import Counts
from truearm.evidence.targets import PLAIN, Query
from truearm.problem import Adversary

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


def pair(better, worse, levels, *, closed=False, query=PLAIN):
    """Return the evidence that one arm is better than another: E_ij of evidence section 2."""
    return least_evidence(worse, Portfolio(Stake(better, closed)), levels, query)


def breakdown_point(better, rivals, log_bar, adversary, accuracy=1e-13):
    """Return up to which eps one arm's evidence over each of some rivals reaches a bar (evidence T6)."""

    def holds(eps):
        query, levels = Query(enough=log_bar), Trust(eps, adversary).levels(0.5)
        return all(pair(better, r, levels, query=query).log_value >= log_bar for r in rivals)

    limit = 0.5 if adversary is Adversary.MALICIOUS else 1.0
    return last_true(holds, 0.0, limit, accuracy=1e-3 * accuracy, relative=accuracy) if holds(0.0) else None
