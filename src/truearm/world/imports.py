"""What benchmark tools write, as readings: pytest-benchmark, google-benchmark and criterion.

Times become seconds, in order of measurement, and less is better. These tools measure in one process: a reading is
a round, a repetition or a sample of it, and what differs from process to process (hashes, addresses) is in none. A
file with statistics alone is refused, because nothing can be said from those that holds for bad readings too.
"""

import csv
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from truearm.errors import InvalidArgument
from truearm.evidence.units import MEDIANS, Reduction, Units
from truearm.world import frames
from truearm.world.frames import Collected, Floats

_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
_RAW = {"group", "function", "value", "iteration_count"}
"""Columns of criterion's raw.csv in all of its versions."""


def pytest_benchmark(data: Mapping[str, Any], how: Reduction = MEDIANS) -> Collected:  # noqa: ARG001 - as all exports
    """Return the rounds of each test in what pytest-benchmark wrote: seconds per iteration.

    Examples
    --------
    >>> stats = {"data": [2e-6, 3e-6], "iterations": 5, "median": 2.5e-6}
    >>> pytest_benchmark({"benchmarks": [{"name": "test_join", "stats": stats}]}).tapes
    {'test_join': array([2.e-06, 3.e-06])}
    """
    tests = data["benchmarks"]
    name = "name" if len({test["name"] for test in tests}) == len(tests) else "fullname"
    tapes: dict[str, Floats] = {}
    for test in tests:
        if not test["stats"].get("data"):
            raise _only_statistics(test[name], "add --benchmark-save-data to what saves it, and run pytest again")
        _add(tapes, str(test[name]), frames.numbers(test["stats"]["data"], str(test[name])))
    return _known(tapes, "round")


def google_benchmark(data: Mapping[str, Any], how: Reduction = MEDIANS) -> Collected:  # noqa: ARG001 - as all exports
    """Return the repetitions of each benchmark in what google-benchmark wrote: real time per iteration.

    A repetition that failed is a missing reading.

    Examples
    --------
    >>> one = {"run_name": "BM_sort", "run_type": "iteration", "real_time": 12.5, "time_unit": "us"}
    >>> again = one | {"repetition_index": 1, "real_time": 25}
    >>> google_benchmark({"benchmarks": [one, again]}).tapes
    {'BM_sort': array([1.25e-05, 2.50e-05])}
    """
    remedy = "write it anew with: --benchmark_repetitions=20 --benchmark_out=FILE"
    found: dict[str, list[tuple[int, float]]] = {}
    for run in data["benchmarks"]:
        times = found.setdefault(str(run.get("run_name") or run["name"]), [])
        if run.get("run_type", "iteration") != "aggregate":
            times.append((run.get("repetition_index", len(times)), _real_time(run)))
    for name, times in found.items():
        if not times:
            aggregates = "--benchmark_report_aggregates_only=false"
            raise _only_statistics(name, f"{remedy} {aggregates}")
        if len(times) == 1:
            msg = f"this export holds one reading of {name!r}, which says nothing of others; {remedy}"
            raise InvalidArgument(msg)
    return _known(
        {name: np.array([time for _, time in sorted(times)]) for name, times in found.items()}, "repetition"
    )


def _real_time(run: Mapping[str, Any]) -> float:
    if run.get("error_occurred") or run.get("skipped"):
        return float("nan")
    return float(run["real_time"]) * _SECONDS[run.get("time_unit", "ns")]


def criterion(data: Mapping[str, Any], how: Reduction = MEDIANS) -> Collected:  # noqa: ARG001 - as all exports
    """Return the samples of one benchmark in criterion's sample.json: seconds per iteration.

    Examples
    --------
    >>> criterion({"sampling_mode": "Linear", "iters": [10.0, 20.0], "times": [1000.0, 1500.0]}).tapes
    {'benchmark': array([1.0e-07, 7.5e-08])}
    """
    name = str(data.get("name", "benchmark"))
    return _known({name: _per_iteration(data["times"], data["iters"], name)}, "sample")


def criterion_files(path: Path) -> Collected | None:
    r"""Return the samples in a folder of criterion or in its raw.csv; None if a file is neither.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as root:
    ...     for name in ("fast", "slow"):
    ...         place = Path(root, "fib", name, "new")
    ...         place.mkdir(parents=True)
    ...         _ = (place / "sample.json").write_text('{"iters": [1, 2], "times": [3e9, 8e9]}')
    ...     criterion_files(Path(root)).tapes
    {'fib/fast': array([3., 4.]), 'fib/slow': array([3., 4.])}
    """
    if path.is_dir():
        return _folder(path)
    return _table(path) if path.suffix.lower() == ".csv" and path.is_file() else None


def _folder(folder: Path) -> Collected:
    """Return the newest samples of every benchmark below a folder, such as target/criterion."""
    tapes: dict[str, Floats] = {}
    for file in sorted(folder.rglob("new/sample.json")):
        name = file.parent.parent.relative_to(folder).as_posix()
        try:
            data = json.loads(file.read_text(encoding="utf-8"))
            _add(tapes, name, _per_iteration(data["times"], data["iters"], name))
        except (OSError, LookupError, TypeError, ValueError) as error:
            msg = f"{str(file)!r} is not a sample of criterion: {error!r:.120}; run cargo bench again"
            raise InvalidArgument(msg) from None
    if not tapes:
        msg = f"{str(folder)!r} is a folder without samples of criterion (new/sample.json); give a file"
        raise InvalidArgument(msg)
    return _known(tapes, "sample")


def _table(file: Path) -> Collected | None:
    """Return the samples in a raw.csv, or in several put one after the other; None if it is another file."""
    with file.open(encoding="utf-8", errors="replace", newline="") as lines:
        rows = csv.DictReader(lines)
        try:
            if not _RAW.issubset(rows.fieldnames or ()):
                return None
        except csv.Error:  # such as a line without end, of which others tell
            return None
        times: dict[str, list[tuple[float, float]]] = {}
        for row in rows:
            if row["iteration_count"] != "iteration_count":  # the heading of the next file
                try:
                    name = "/".join(row[part] for part in ("group", "function", "value") if row[part])
                    size = _SECONDS[row.get("unit") or "ns"] / _SECONDS["ns"]
                    time = float(row.get("sample_measured_value") or row["sample_time_nanos"])
                    times.setdefault(name, []).append((time * size, float(row["iteration_count"])))
                except (LookupError, TypeError, ValueError) as error:
                    msg = f"line {rows.line_num} of {file.name!r} is not a sample of criterion: {error!r:.120}; "
                    raise InvalidArgument(f"{msg}run cargo bench again") from None
    tapes = {
        name: _per_iteration([time for time, _ in pairs], [n for _, n in pairs], name)
        for name, pairs in times.items()
    }
    return _known(tapes, "sample")


def _per_iteration(nanoseconds: Iterable[Any], iterations: Iterable[Any], name: str) -> Floats:
    times, counts = frames.numbers(list(nanoseconds), name), frames.numbers(list(iterations), name)
    if not times.size or times.size != counts.size or not np.all(counts > 0):
        msg = f"the samples of {name!r} are not one time for each count of iterations; run cargo bench again"
        raise InvalidArgument(msg)
    return np.asarray(times / counts * _SECONDS["ns"], dtype=np.float64)


def _add(tapes: dict[str, Floats], name: str, tape: Floats) -> None:
    if name in tapes:
        msg = f"two benchmarks of this export are called {name!r}; give each a name of its own"
        raise InvalidArgument(msg)
    tapes[name] = tape


def _only_statistics(name: str, remedy: str) -> InvalidArgument:
    msg = f"this export holds statistics of {name!r}, and no single readings to make anything of; {remedy}"
    return InvalidArgument(msg)


def _known(tapes: dict[str, Floats], each: str) -> Collected:
    counts = {name: tape.size for name, tape in tapes.items()}
    return Collected(tapes, True, Units(f"{each} of one process", counts, counts, shared=0), timed=True)


EXPORTS: tuple[tuple[str, tuple[set[str], Callable[[Mapping[str, Any], Reduction], Collected]]], ...] = (
    ("benchmarks", ({"stats"}, pytest_benchmark)),
    ("benchmarks", ({"real_time", "run_type"}, google_benchmark)),
)
"""Key of the list of records, keys that tell such records from others, and who reads them."""
