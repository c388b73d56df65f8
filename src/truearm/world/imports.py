"""What benchmark tools write, as readings: hyperfine, pyperf, pytest-benchmark, google-benchmark and criterion.

An export knows what was drawn independently: of hyperfine a run, of pyperf a process. The others measure in one
process: a reading is a round, a repetition or a sample of it, and what differs from process to process (hashes,
addresses) is in none. Times become seconds, in order of measurement, and less is better. A file with statistics
alone is refused, because nothing can be said from those that holds for bad readings too.
"""

import csv
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from truearm.errors import InvalidArgument
from truearm.evidence.units import MEDIANS, Reduction, Units, by_unit
from truearm.world.by_arm import Floats
from truearm.world.cells import numbers
from truearm.world.roles import Roles
from truearm.world.tapes import Collected, check_several

Export = Callable[[Mapping[str, Any], Reduction], Collected]

_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
_RAW = {"group", "function", "value", "iteration_count"}
"""Columns of criterion's raw.csv in all of its versions."""


def exported(data: Mapping[str, Any], file: Path, roles: Roles, how: Reduction = MEDIANS) -> Collected | None:
    """Return the readings in what truearm or a benchmark tool exported as JSON; None if it is no such export."""
    if "certificate" in data and isinstance(data.get("readings"), Mapping):
        return _read(truearm, data, file, roles, how)
    if {"iters", "times"} <= data.keys():
        return _read(criterion, {**data, "name": file.absolute().parent.parent.name}, file, roles, how)
    for known, marks, reader in _EXPORTS:
        if _is_records(data.get(known)) and any(marks & record.keys() for record in data[known]):
            return _read(reader, data, file, roles, how)
    return None


def _is_records(data: object) -> bool:
    return isinstance(data, list) and bool(data) and all(isinstance(row, Mapping) for row in data)


def _read(reader: Export, data: Mapping[str, Any], file: Path, roles: Roles, how: Reduction) -> Collected:
    tool = reader.__name__.replace("_", "-")
    for argument, name in (("unit", roles.unit), ("order", roles.order)):
        if name is not None and (argument, name) != ("order", "rows"):
            msg = f"{argument}={name!r} is given, but an export of {tool} knows its own; leave it out"
            raise InvalidArgument(msg)
    try:
        return reader(data, how)
    except InvalidArgument:
        raise
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
        msg = f"{file.name!r} looks like an export of {tool}, but is none: {error!r:.200}; export it again"
        raise InvalidArgument(msg) from None


def truearm(data: Mapping[str, Any], how: Reduction = MEDIANS) -> Collected:  # noqa: ARG001 - as all exports
    """Return the readings in what truearm itself exported as JSON, whatever was measured, in order of pull."""
    tapes = {
        str(arm): np.array([np.nan if value is None else float(value) for value in tape])
        for arm, tape in data["readings"].items()
    }
    return Collected(tapes, ordered=True, timed=data.get("goal") == "min")


def hyperfine(data: Mapping[str, Any], how: Reduction = MEDIANS) -> Collected:  # noqa: ARG001 - as all exports
    """Return the times of each command in what `hyperfine --export-json` wrote; failed runs become NaN.

    Every run is a process of its own, hence a unit of its own, and runs are written in order.
    """
    tapes: dict[str, Floats] = {}
    for run in data["results"]:
        name = str(run["command"])
        times = numbers(run.get("times") or (), name)
        codes = np.array([0 if code is None else code for code in run.get("exit_codes") or np.zeros(times.size)])
        if not times.size or codes.size != times.size:
            msg = (
                f"this export holds no single times of {name!r}; write it anew with: hyperfine --export-json FILE"
            )
            raise InvalidArgument(msg)
        if name in tapes:
            msg = f"two results of this export are called {name!r}; name the commands with: hyperfine -n NAME"
            raise InvalidArgument(msg)
        tapes[name] = np.where(codes == 0, times, np.nan)
    return Collected(tapes, ordered=True, timed=True)


def pyperf(data: Mapping[str, Any], how: Reduction = MEDIANS) -> Collected:
    """Return the median of each process in what pyperf wrote; warm-ups and calibration are no readings.

    A run of pyperf is a process with several values. What differs from process to process (hashes, addresses)
    moves all of them, so that together they are one reading (extensions 2). Runs are written in order.
    """
    common = data.get("metadata", {}).get("name", "benchmark")
    processes: dict[str, list[Floats]] = {}
    for bench in data["benchmarks"]:
        name = str(bench.get("metadata", {}).get("name", common))
        if "runs" not in bench:
            msg = f"this export holds no runs of {name!r}; write it anew with pyperf's option: -o FILE"
            raise InvalidArgument(msg)
        values = [numbers(run.get("values") or (), name) for run in bench["runs"]]
        processes.setdefault(name, []).extend(run for run in values if run.size)
    tapes = {name: _one_each(runs, how) for name, runs in processes.items()}
    units = Units(
        "process",
        {name: sum(run.size for run in runs) for name, runs in processes.items()},
        {name: len(runs) for name, runs in processes.items()},
        shared=0,
    )
    check_several(units, "let pyperf start more processes: --processes 20")
    timed = data.get("metadata", {}).get("unit", "second") == "second"
    return Collected(tapes, ordered=True, units=units, timed=timed)


def _one_each(runs: Sequence[Floats], how: Reduction) -> Floats:
    codes = np.repeat(np.arange(len(runs)), [run.size for run in runs])
    return by_unit(np.concatenate([np.empty(0), *runs]), codes, **how._asdict())[0]


def pytest_benchmark(data: Mapping[str, Any], how: Reduction = MEDIANS) -> Collected:  # noqa: ARG001 - as all exports
    """Return the rounds of each test in what pytest-benchmark wrote: seconds per iteration."""
    tests = data["benchmarks"]
    name = "name" if len({test["name"] for test in tests}) == len(tests) else "fullname"
    tapes: dict[str, Floats] = {}
    for test in tests:
        if not test["stats"].get("data"):
            raise _only_statistics(test[name], "add --benchmark-save-data to what saves it, and run pytest again")
        _add(tapes, str(test[name]), numbers(test["stats"]["data"], str(test[name])))
    return _known(tapes, "round")


def google_benchmark(data: Mapping[str, Any], how: Reduction = MEDIANS) -> Collected:  # noqa: ARG001 - as all exports
    """Return the repetitions of each benchmark in what google-benchmark wrote: real time per iteration.

    A repetition that failed is a missing reading.
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
    """Return the samples of one benchmark in criterion's sample.json: seconds per iteration."""
    name = str(data.get("name", "benchmark"))
    return _known({name: _per_iteration(data["times"], data["iters"], name)}, "sample")


def criterion_files(path: Path) -> Collected | None:
    r"""Return the samples in a folder of criterion or in its raw.csv; None if a file is neither."""
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
    times, counts = numbers(list(nanoseconds), name), numbers(list(iterations), name)
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


_EXPORTS: tuple[tuple[str, set[str], Export], ...] = (
    ("results", {"command"}, hyperfine),
    ("benchmarks", {"metadata", "runs"}, pyperf),
    ("benchmarks", {"stats"}, pytest_benchmark),
    ("benchmarks", {"real_time", "run_type"}, google_benchmark),
)
"""Key of the list of records, keys that tell such records from others, and who reads them."""
