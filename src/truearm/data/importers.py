"""Exports as readings: hyperfine, pyperf, pytest-benchmark, google-benchmark, criterion, and truearm itself.

An export knows what was drawn independently: for hyperfine a run, for pyperf a process. The others measure in one
process: a reading is a round, a repetition or a sample of it. Times become seconds, in order of measurement, and
less is better. A file with statistics alone is refused: nothing follows from those that holds for bad readings.
"""

import csv
import gzip
import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from truearm.claims.certificate import Certificate
from truearm.claims.plain import from_plain
from truearm.data.columns import Columns, Dataset, Floats, check_distinct
from truearm.errors import InvalidArgument, TruearmError, first_line
from truearm.evidence.sample import as_readings
from truearm.evidence.units import Reduction, Units, by_unit
from truearm.problem import refuse

Runs = Iterator[tuple[str, list[float] | None]]
"""The name of a benchmark and the readings of one unit of it; None if there are only statistics."""

_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
_RAW = {"group", "function", "value", "iteration_count"}  # columns of criterion's raw.csv in all of its versions
_CARRIED = (
    *("delta", "contamination", "tolerance", "quantile", "goal", "at_least", "at_most", "between"),
    *("score_range", "items"),
)


def _hyperfine(data: Mapping[str, Any]) -> Runs:
    _check_names(str(run["command"]) for run in data["results"])
    for run in data["results"]:
        times = run.get("times") or []
        codes = run.get("exit_codes") or [0] * len(times)
        if not times or len(codes) != len(times):
            yield str(run["command"]), None
        for time, code in zip(times, codes, strict=False):
            yield str(run["command"]), [math.nan if code else time]


def _pyperf(data: Mapping[str, Any]) -> Runs:
    common = data.get("metadata", {}).get("name", "benchmark")
    for bench in data["benchmarks"]:
        name = str(bench.get("metadata", {}).get("name", common))
        for run in bench.get("runs", [None]):
            if run is None or run.get("values"):
                yield name, None if run is None else run["values"]


def _pytest(data: Mapping[str, Any]) -> Runs:
    tests = data["benchmarks"]
    name = "name" if len({test["name"] for test in tests}) == len(tests) else "fullname"
    _check_names(str(test[name]) for test in tests)
    for test in tests:
        for time in test["stats"].get("data") or [None]:
            yield str(test[name]), None if time is None else [time]


def _google(data: Mapping[str, Any]) -> Runs:
    runs = [run for run in data["benchmarks"] if run.get("run_type", "iteration") != "aggregate"]
    for run in sorted(runs, key=lambda run: run.get("repetition_index", 0)):
        failed = run.get("error_occurred") or run.get("skipped")
        time = math.nan if failed else float(run["real_time"]) * _SECONDS[run.get("time_unit", "ns")]
        yield str(run.get("run_name") or run["name"]), [time]
    names = {str(run.get("run_name") or run["name"]) for run in runs}
    for run in data["benchmarks"]:
        if (name := str(run.get("run_name") or run["name"])) not in names:
            yield name, None


def _criterion(data: Mapping[str, Any]) -> Runs:
    times, counts = data["times"], data["iters"]
    if not times or len(times) != len(counts) or not all(n > 0 for n in counts):
        msg = f"the samples of {data['name']!r} are not one time for each count of iterations"
        raise InvalidArgument(f"{msg}; run cargo bench again", "file")
    for time, n in zip(times, counts, strict=True):
        yield data["name"], [time / n * _SECONDS["ns"]]


def _check_names(names: Iterable[str]) -> None:
    """Raise if two benchmarks of an export have one name."""
    name, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise InvalidArgument(f"{times} benchmarks of this export are called {name!r}; name each of them", "file")


class _Tool(NamedTuple):
    """A benchmark tool: how its exports are known and read, and what each of its readings is."""

    name: str
    key: str
    """The key of the list of records."""
    marks: frozenset[str]
    """Keys of which a record has one."""
    runs: Callable[[Mapping[str, Any]], Runs]
    unit: str
    remedy: str
    """How to write an export with single readings."""
    several: str = ""
    """How to write one with several units, where one alone says nothing about others."""


_ONE_PROCESS = " of one process"
_CRITERION = _Tool("criterion", "times", frozenset(), _criterion, "sample" + _ONE_PROCESS, "run cargo bench again")
_TOOLS = (
    _Tool("hyperfine", "results", frozenset({"command"}), _hyperfine, "", "use: hyperfine --export-json FILE"),
    _Tool(
        *("pyperf", "benchmarks", frozenset({"metadata", "runs"}), _pyperf, "process"),
        *("use pyperf's option -o FILE", "use pyperf's option --processes 20"),
    ),
    _Tool(
        *("pytest-benchmark", "benchmarks", frozenset({"stats"}), _pytest, "round" + _ONE_PROCESS),
        "add --benchmark-save-data to what saves it, and run pytest again",
    ),
    _Tool(
        *("google-benchmark", "benchmarks", frozenset({"real_time", "run_type"}), _google),
        *("repetition" + _ONE_PROCESS, "use: --benchmark_repetitions=20 --benchmark_report_aggregates_only=false"),
        "use: --benchmark_repetitions=20",
    ),
)


class _Scored:
    """The scores of one model on the items of one task."""

    def __init__(self, model: str, task: str) -> None:
        self.model, self.task = model, task
        self.items: dict[str, None] = {}
        """All items in order, also those without a score."""
        self.scores: dict[str, dict[str, list[float]]] = {}
        """By metric and item; several of an item are epochs, of which the mean counts."""

    def add(self, metric: str, item: str, value: Any) -> None:  # noqa: ANN401 - whatever a file holds
        """Add a score that is a number or a grade; other values cannot be compared."""
        if isinstance(value, str):
            value = _GRADES.get(value, _GRADES.get(value.lower(), value))
        with suppress(TypeError, ValueError):
            number = float(value)
            self.scores.setdefault(metric, {}).setdefault(item, []).append(number)


_SAMPLE_KEYS = {  # of a record of lm-evaluation-harness besides its metrics
    *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
    *("doc_hash", "prompt_hash", "target_hash"),
}
_GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}  # of Inspect


def _read_harness(path: Path) -> _Scored | None:
    """Return the samples that lm-evaluation-harness logged; None if the first line is not one of them."""
    task = re.sub(r"^samples_|(_\d{4}-\d\d-\d\dT[^_]*)?\.jsonl(\.gz)?$", "", path.name)
    found = _Scored(path.absolute().parent.name.replace("__", "/"), task)
    with (gzip.open if path.suffix.lower() == ".gz" else open)(path, "rt", encoding="utf-8") as lines:
        first = lines.readline()
        if '"doc_id"' not in first or '"filtered_resps"' not in first:
            return None
        for line in filter(str.strip, chain([first], lines)):
            sample = json.loads(line)
            kind, item = sample.get("filter", "none"), str(sample["doc_id"])  # one record for each filter
            found.items[item] = None
            for metric in sample.get("metrics") or sorted(sample.keys() - _SAMPLE_KEYS):
                found.add(metric if kind == "none" else f"{metric},{kind}", item, sample.get(metric))
    return found


def _read_inspect(data: Mapping[str, Any]) -> _Scored:
    """Return the scores in a log of Inspect."""
    found = _Scored(str(data["eval"]["model"]), str(data["eval"]["task"]))
    for sample in data["samples"]:
        item = str(sample["id"])
        found.items[item] = None
        for scorer, score in (sample.get("scores") or {}).items():
            value = score["value"]
            for part, number in value.items() if isinstance(value, Mapping) else [("", value)]:
                found.add(f"{scorer}/{part}".rstrip("/"), item, number)
    return found


def _compare_scores(files: Sequence[Path], found: Sequence[_Scored], metric: str | None) -> Dataset:
    """Return one arm per file, its scores by item; different tasks are never rivals."""
    tasks = sorted({one.task for one in found})
    msg = f"the files are of different tasks, which are not compared: {', '.join(tasks):.200}; choose one"
    refuse(len(tasks) > 1, msg, "file")
    refuse(len(found) == 1, f"{files[0].name!r} is of one model; give a file of each model", "file")
    shared = [name for name in found[0].scores if all(one.scores.get(name) for one in found)]
    chosen = shared if metric is None else [name for name in shared if name == metric]
    if len(chosen) != 1:
        what = "no metric in common" if not shared else f"the metrics {', '.join(map(repr, shared)):.300}"
        raise InvalidArgument(f"the files have {what}; choose one with value=", "value", metric)
    labels = [one.model for one in found]
    labels = labels if len(set(labels)) == len(files) else _labels(files)
    items = dict.fromkeys(chain(*(one.items for one in found)))
    tapes = {
        label: np.array([np.mean(one.scores[chosen[0]].get(item) or math.nan) for item in items])
        for label, one in zip(labels, found, strict=True)
    }
    known = np.concatenate(list(tapes.values()))
    is_share = bool(np.all((known >= 0) & (known <= 1) | np.isnan(known)))
    return Dataset(tapes, options={"rounds": True, "score_range": (0.0, 1.0) if is_share else None})


def read(files: Sequence[Path], columns: Columns, reduction: Reduction) -> Dataset | None:
    """Return the readings in exports, one arm per benchmark, or per file if there are several; None for tables."""
    found = [_read(file, reduction) for file in files]
    known = [data for data in found if data is not None]
    if not known:
        return None
    if len(known) < len(found):
        name = files[found.index(None)].name
        msg = f"{name!r} is not an export of a benchmark tool, but other files are; remove it"
        raise InvalidArgument(msg, "file")
    for argument in ("unit", "order", "round"):
        column = getattr(columns, argument)
        msg = f"{argument}={column!r} is given, but an export of a benchmark tool knows it; remove {argument}"
        refuse(column not in (None, "rows"), msg, argument, column)
    scored = [one for one in known if isinstance(one, _Scored)]
    timed = [one for one in known if isinstance(one, Dataset)]
    refuse(scored and timed, "some files are scores and others are times; give files of one kind", "file")
    if scored:
        return _compare_scores(files, scored, columns.value)
    data = timed[0] if len(timed) == 1 else _compare(files, timed, columns.value)
    return data.align() if columns.round == "rows" else data


def _compare(files: Sequence[Path], known: Sequence[Dataset], benchmark: str | None) -> Dataset:
    """Return one arm per file, of the benchmark that all of them have: different ones are never rivals."""
    shared = [name for name in known[0].tapes if all(name in data.tapes for data in known)]
    if benchmark is not None:
        shared = [name for name in shared if name == benchmark]
    names = ", ".join(map(repr, shared))
    msg = f"the files have {len(shared)} benchmarks in common; choose one with value=: {names:.300}"
    refuse(len(shared) > 1, msg, "value")
    commands = benchmark is None and all(len(data.tapes) == 1 and data.units is None for data in known)
    names = ", ".join(repr(name) for data in known for name in data.tapes)
    msg = f"no benchmark is in all files, and different ones are not compared; they have {names:.300}"
    refuse(not shared and not commands, msg, "value", benchmark)  # single commands differ by what they run
    parts = {
        label: (data, shared[0] if shared else next(iter(data.tapes)))
        for label, data in zip(_labels(files), known, strict=True)
    }
    units = [(label, data.units, name) for label, (data, name) in parts.items() if data.units is not None]
    rows = {label: of.rows[name] for label, of, name in units}
    counts = {label: of.counts[name] for label, of, name in units}
    return Dataset(
        {label: data.tapes[name] for label, (data, name) in parts.items()},
        True,
        Units(units[0][1].name, rows, counts, shared=0) if len(units) == len(known) else None,
        timed=all(data.timed for data in known),
        unit="s" if all(data.unit == "s" for data in known) else "",
    )


def _labels(files: Sequence[Path]) -> list[str]:
    """Return a name for each file."""
    labels = [file.name.partition(".")[0] for file in files]
    return labels if len(set(labels)) == len(files) else [str(file) for file in files]


def _read(path: Path, reduction: Reduction) -> "Dataset | _Scored | None":  # noqa: PLR0911 - one for each kind
    if path.is_dir():
        return _read_folder(path, reduction)
    if path.suffix.lower() == ".csv":
        return _read_table(path, reduction)
    if path.name.lower().endswith((".jsonl", ".jsonl.gz")):
        with _explain("lm-evaluation-harness", path):
            return _read_harness(path)
    data = read_json(path) if ".json" in (ending.lower() for ending in path.suffixes[-2:]) else None
    if not isinstance(data, Mapping):
        return None
    if isinstance(data.get("certificate"), Mapping) and isinstance(data.get("readings"), Mapping):
        with _explain("truearm", path):
            return _read_own(data)
    if isinstance(data.get("eval"), Mapping) and "samples" in data:
        with _explain("Inspect", path):
            return _read_inspect(data)
    if {"iters", "times"} <= data.keys():
        with _explain("criterion", path):
            runs = _criterion({**data, "name": path.absolute().parent.parent.name})
            return _dataset(_CRITERION, runs, reduction)
    for tool in _TOOLS:
        records = data.get(tool.key)
        if not isinstance(records, list) or not all(isinstance(one, Mapping) for one in records):
            continue
        if any(tool.marks & one.keys() for one in records):
            metadata = data.get("metadata")  # of pyperf, which may measure other things than times
            timed = not isinstance(metadata, Mapping) or metadata.get("unit", "second") == "second"
            with _explain(tool.name, path):
                return _dataset(tool, tool.runs(data), reduction, timed=timed)
    return None


@contextmanager
def _explain(tool: str, path: Path) -> Iterator[None]:
    """Turn errors in the body into one sentence: a file that only looks like an export."""
    try:
        yield
    except TruearmError:
        raise
    except (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError) as error:
        what = f"{path.name!r} looks like an export of {tool}, but is not"
        raise InvalidArgument(f"{what}: {' '.join(repr(error).split()):.120}; export it again", "file") from None


def _dataset(tool: _Tool, runs: Runs, reduction: Reduction, *, timed: bool = True) -> Dataset:
    units: dict[str, list[Floats]] = {}
    for name, values in runs:
        if values is None:
            msg = f"this export of {tool.name} holds statistics of {name!r}, and no single readings; {tool.remedy}"
            raise InvalidArgument(msg, "file")
        units.setdefault(name, []).append(as_readings(values, name))
    tapes, rows = {}, {}
    for name, parts in units.items():
        msg = f"this export holds one {tool.unit} of {name!r}, which says nothing about others; {tool.several}"
        refuse(len(parts) == 1 and tool.several, msg, "file")
        sizes = [part.size for part in parts]
        codes = np.repeat(np.arange(len(parts)), sizes)
        tapes[name], rows[name] = by_unit(np.concatenate(parts), codes, reduction), sum(sizes)
    counts = {name: tape.size for name, tape in tapes.items()}
    known = Units(tool.unit, rows, counts, shared=0) if tool.unit else None
    return Dataset(tapes, True, known, timed=timed, unit="s" * timed)


def _read_own(data: Mapping[str, Any]) -> Dataset:
    """Return the readings in an export of truearm, in order of pull, with what was asked."""
    tapes = {
        str(arm): np.array([math.nan if value is None else float(value) for value in tape])
        for arm, tape in data["readings"].items()
    }
    problem = from_plain(Certificate, data["certificate"], "certificate").problem
    options = {name: getattr(problem, name) for name in _CARRIED if getattr(problem, name) is not None}
    if "at_least" in options or "at_most" in options:
        del options["goal"]
    options["rounds"] = problem.rounds
    unit = "s" if data.get("metric") in ("wall", "cpu") else ""
    known = Dataset(tapes, True, timed=problem.goal == "min", unit=unit, options=options)
    if problem.target == "mean":
        return known._replace(ordered=False)  # an arm that was dropped has fewer scores, and no missing ones
    return known.align() if problem.rounds else known


def _read_folder(folder: Path, reduction: Reduction) -> Dataset | None:
    """Return the newest samples of every benchmark below a folder of criterion, such as target/criterion."""
    files = sorted(folder.rglob("new/sample.json"))
    if not files:
        return None
    runs = []
    for file in files:
        name = file.parent.parent.relative_to(folder).as_posix()
        data = read_json(file)
        if not isinstance(data, Mapping) or not {"iters", "times"} <= data.keys():
            raise InvalidArgument(f"{str(file)!r} is not a sample of criterion; run cargo bench again", "file")
        runs.append(_criterion({**data, "name": name}))
    return _dataset(_CRITERION, chain(*runs), reduction)


def _read_table(file: Path, reduction: Reduction) -> Dataset | None:
    """Return the samples in a raw.csv of criterion; None if it is another file."""
    with file.open(encoding="utf-8", errors="replace", newline="") as lines:
        rows = csv.DictReader(lines)
        try:
            if not _RAW.issubset(rows.fieldnames or ()):
                return None
        except csv.Error:  # such as a line without end, which the reader of tables explains
            return None
        return _dataset(_CRITERION, _raw_runs(rows, file), reduction)


def _raw_runs(rows: "csv.DictReader[str]", file: Path) -> Runs:
    for row in rows:
        if row["iteration_count"] == "iteration_count":  # the heading of the next file
            continue
        try:
            name = "/".join(row[part] for part in ("group", "function", "value") if row[part])
            time = float(row.get("sample_measured_value") or row["sample_time_nanos"])
            yield name, [time * _SECONDS[row.get("unit") or "ns"] / float(row["iteration_count"])]
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            what = f"line {rows.line_num} of {file.name!r} is not a sample of criterion"
            raise InvalidArgument(f"{what}: {' '.join(repr(error).split()):.120}; run cargo bench again") from None


def distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; a name twice in it is refused."""
    check_distinct(name for name, _ in pairs)
    return dict(pairs)


def read_json(file: Path) -> Any:  # noqa: ANN401 - whatever the file holds
    """Return what a JSON file holds, packed or not; a name twice in one object is refused."""
    try:
        content = file.read_bytes()
        text = gzip.decompress(content) if file.suffix.lower() == ".gz" else content
        return json.loads(text, object_pairs_hook=distinct_keys)
    except InvalidArgument:
        raise
    except RecursionError:
        msg = f"{file.name!r} is nested too deeply to hold readings; save them as columns by name, or as records"
        raise InvalidArgument(msg, "file") from None
    except (ValueError, OSError, EOFError, zlib.error) as error:
        msg = f"{file.name!r} is not JSON: {first_line(error)}; one record per line is kind='jsonl'"
        raise InvalidArgument(msg, "file") from None
