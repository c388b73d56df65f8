"""Numbers that other programs computed: the files in `vectors`."""

import json
from pathlib import Path

FOLDER = Path(__file__).parent / "vectors"


def vectors(*files):
    """Return the vectors of these files by their names."""
    read = (json.loads((FOLDER / f"{file}.json").read_text())["vectors"] for file in files)
    return {vector["id"]: vector for part in read for vector in part}
