"""Exports of benchmark and evaluation tools, and of truearm itself, as readings.

The format determines what was drawn independently: for hyperfine a run, for pyperf a process. The others measure
in one process: a reading is a round, a repetition or a sample. Times become seconds, in order of measurement, and
less is better. A file with statistics alone is refused: nothing certain follows from them if readings may be bad.
Scores of models are compared on the same items.
"""

import csv
import gzip
import io
import json
import math
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from truearm.claims.certificate import Certificate
from truearm.claims.plain import from_plain
from truearm.data.columns import Columns, Dataset, check_distinct, check_number_of_arms
from truearm.errors import InvalidArgument, TruearmError, first_line
from truearm.evidence.sample import as_readings
from truearm.evidence.units import Reduction, Units, by_unit
from truearm.problem import refuse

Document = Mapping[str, Any]
Runs = Iterator[tuple[str, Any, Sequence[Any] | None]]
"""A benchmark or a metric, a unit of it, and the unit's readings; None if there are only statistics.

A unit None is a new one each time; a score without a metric is an item that was not scored.
"""

_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
_RAW = {"group", "function", "value", "iteration_count"}  # columns of criterion's raw.csv in all of its versions
_CARRIED = (
    *("delta", "contamination", "tolerance", "quantile", "goal", "at_least", "at_most", "between"),
    *("score_range", "items"),
)
_SAMPLE_KEYS = {  # of a record of lm-evaluation-harness besides its metrics
    *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
    *("doc_hash", "prompt_hash", "target_hash"),
}
_BROKEN = (ArithmeticError, AttributeError, EOFError, LookupError, OSError, TypeError, ValueError, zlib.error)
_GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}  # of Inspect


def _hyperfine(data: Document) -> Runs:
    check_distinct((str(run["command"]) for run in data["results"]), "benchmarks")
    for run in data["results"]:
        times = run.get("times") or []
        codes = run.get("exit_codes") or [0] * len(times)
        if not times or len(codes) != len(times):
            yield str(run["command"]), None, None
        for time, code in zip(times, codes, strict=False):
            yield str(run["command"]), None, [math.nan if code else time]


def _pyperf(data: Document) -> Runs:
    common = data.get("metadata", {}).get("name", "benchmark")
    for bench in data["benchmarks"]:
        name = str(bench.get("metadata", {}).get("name", common))
        for run in bench.get("runs", [{"values": None}]):
            if run.get("values", ()) != ():
                yield name, None, run["values"]


def _pytest(data: Document) -> Runs:
    names = [str(test["name"]) for test in data["benchmarks"]]
    if len(set(names)) < len(names):
        names = [str(test["fullname"]) for test in data["benchmarks"]]
    check_distinct(names, "benchmarks")
    for name, test in zip(names, data["benchmarks"], strict=True):
        for time in test["stats"].get("data") or [None]:
            yield name, None, None if time is None else [time]


def _google(data: Document) -> Runs:
    runs = sorted(data["benchmarks"], key=lambda run: run.get("repetition_index", 0))
    names = [str(run.get("run_name") or run["name"]) for run in runs]
    single = [run.get("run_type", "iteration") != "aggregate" for run in runs]
    measured = {name for name, is_single in zip(names, single, strict=True) if is_single}
    for run, name, is_single in zip(runs, names, single, strict=True):
        failed = run.get("error_occurred") or run.get("skipped")
        if is_single:
            time = math.nan if failed else float(run["real_time"]) * _SECONDS[run.get("time_unit", "ns")]
            yield name, None, [time]
        elif name not in measured:
            yield name, None, None


def _criterion(data: Document) -> Runs:
    for name, sample in data["criterion samples"].items():
        times, counts = sample["times"], sample["iters"]
        is_whole = times and len(times) == len(counts) and all(n > 0 for n in counts)
        msg = f"the samples of {name!r} are not one time for each count of iterations; run cargo bench again"
        refuse(not is_whole, msg, "file")
        for time, n in zip(times, counts, strict=True):
            yield name, None, [time / n * _SECONDS["ns"]]


def _criterion_rows(data: Document) -> Runs:
    for row in data["raw.csv"]:
        if row["group"] != "group":  # the heading of the next file
            name = "/".join(row[part] for part in ("group", "function", "value") if row[part])
            time = float(row.get("sample_measured_value") or row["sample_time_nanos"])
            yield name, None, [time * _SECONDS[row.get("unit") or "ns"] / float(row["iteration_count"])]


def _inspect(data: Document) -> Runs:
    for sample in data["samples"]:
        yield "", str(sample["id"]), []
        for scorer, score in (sample.get("scores") or {}).items():
            value = score["value"]
            for part, number in value.items() if isinstance(value, Mapping) else [("", value)]:
                yield f"{scorer}/{part}".rstrip("/"), str(sample["id"]), _score(number)


def _harness(data: Document) -> Runs:
    for line in filter(str.strip, data["sample lines"]):
        sample = json.loads(line)
        kind, item = sample.get("filter", "none"), str(sample["doc_id"])  # one record for each filter
        yield "", item, []
        for metric in sample.get("metrics") or sorted(sample.keys() - _SAMPLE_KEYS):
            yield metric if kind == "none" else f"{metric},{kind}", item, _score(sample.get(metric))


def _score(value: Any) -> list[float]:  # noqa: ANN401 - whatever a file holds
    """Return a score that is a number or a grade; other values cannot be compared."""
    if isinstance(value, str):
        value = _GRADES.get(value, _GRADES.get(value.lower(), value))
    with suppress(TypeError, ValueError):
        return [float(value)]
    return []


def _truearm(data: Document) -> Runs:
    for arm, tape in data["readings"].items():
        for value in tape:
            yield str(arm), None, [math.nan if value is None else float(value)]


class _Tool(NamedTuple):
    """A tool: how its documents are recognized and read, and what one reading is."""

    name: str
    runs: Callable[[Any], Runs]
    key: str  # the key of its records
    marks: Set[str]  # keys of which the document or one of its records has one
    unit: str = ""  # what each reading is of; empty if it is drawn independently
    remedy: str = ""  # how to write an export with single readings
    several: str = ""  # how to write one with several units, where one alone says nothing about others


_TRUEARM = _Tool("truearm", _truearm, "readings", {"certificate"})
_TOOLS = (
    _TRUEARM,
    _Tool("Inspect", _inspect, "samples", {"eval"}),
    _Tool("lm-evaluation-harness", _harness, "sample lines", {"eval"}),
    _Tool("criterion", _criterion, "criterion samples", {"criterion samples"}, "sample of one process"),
    _Tool("criterion", _criterion_rows, "raw.csv", {"raw.csv"}, "sample of one process"),
    _Tool("hyperfine", _hyperfine, "results", {"command"}, "", "use: hyperfine --export-json FILE"),
    _Tool(
        *("pyperf", _pyperf, "benchmarks", {"metadata", "runs"}, "process"),
        *("use pyperf's option -o FILE", "use pyperf's option --processes 20"),
    ),
    _Tool(
        *("pytest-benchmark", _pytest, "benchmarks", {"stats"}, "round of one process"),
        "add --benchmark-save-data to what saves it, and run pytest again",
    ),
    _Tool(
        *("google-benchmark", _google, "benchmarks", {"real_time", "run_type"}),
        remedy="use: --benchmark_repetitions=20 --benchmark_report_aggregates_only=false",
        unit="repetition of one process",
        several="use: --benchmark_repetitions=20",
    ),
)


class _Export(NamedTuple):
    """The readings in one file, or in one folder of criterion."""

    tool: _Tool
    readings: dict[str, dict[Any, list[float]]]  # by benchmark or metric, and by unit or item
    model: str = ""
    task: str = ""  # of scores, what was scored
    timed: bool = True
    unit: str = "s"
    options: Mapping[str, Any] = {}


def read(files: Sequence[Path], columns: Columns, reduction: Reduction) -> Dataset | None:
    """Return the readings in exports, one arm per benchmark, or per file if there are several; None for tables."""
    found = [_read(file) for file in files]
    exports = [export for export in found if export is not None]
    if not exports:
        return None
    for file, export in zip(files, found, strict=True):
        msg = f"{file.name!r} is not an export of a benchmark tool, but other files are; remove it"
        refuse(export is None, msg, "file")
    for argument in ("unit", "order", "round"):
        column = getattr(columns, argument)
        msg = f"{argument}={column!r} is given, but an export of a benchmark tool knows it; remove {argument}"
        refuse(column not in (None, "rows"), msg, argument, column)
    tasks = sorted({one.task for one in exports})
    names = ", ".join(task or "times" for task in tasks)
    msg = f"the files are of different tasks, which are not compared: {names:.200}; give one task"
    refuse(len(tasks) > 1, msg, "file")
    is_scored, parts = tasks != [""], {name: (exports[0], name) for name in exports[0].readings}
    msg = f"{files[0].name!r} is of one model; give a file of each model"
    refuse(is_scored and len(files) == 1, msg, "file")
    if len(files) > 1:
        check_number_of_arms(len(files), kind="files")
        # commands differ by what they run, benchmarks by their names
        single = columns.value is None and all(len(one.readings) == 1 and not one.tool.unit for one in exports)
        name = None if single else _common_name(exports, columns.value, "metric" if is_scored else "benchmark")
        pairs = [(one, name or next(iter(one.readings))) for one in exports]
        models = [one.model for one in exports]
        labels = models if len(set(models)) == len(files) else [file.name.partition(".")[0] for file in files]
        labels = labels if len(set(labels)) == len(files) else [str(file) for file in files]
        parts = dict(zip(labels, pairs, strict=True))
    check_number_of_arms(len(parts), kind="benchmarks")
    if is_scored:
        return _scores(parts)
    data = _times(parts, reduction)
    return data.align() if columns.round == "rows" else data


def _common_name(exports: Sequence[_Export], chosen: str | None, kind: str) -> str:
    """Return the benchmark or metric that all files have: different ones are never rivals."""
    shared = [name for name in exports[0].readings if name and all(name in one.readings for one in exports)]
    shared = [name for name in shared if chosen in (None, name)]
    names = ", ".join(map(repr, shared))
    example = f"choose one, such as value={next(iter(shared), None)!r}"
    msg = f"the files have {len(shared)} {kind}s in common; {example}: {names:.300}"
    refuse(len(shared) > 1, msg, "value")
    names = ", ".join(dict.fromkeys(repr(name) for one in exports for name in one.readings if name))
    what = kind if chosen is None else f"{kind} {chosen!r}"
    msg = f"no {what} is in all files, and different ones are not compared; they have {names:.300}"
    refuse(not shared, msg, "value", chosen)
    return shared[0]


def _scores(parts: Mapping[str, tuple[_Export, str]]) -> Dataset:
    """Return the scores of models, by item."""
    items = dict.fromkeys(chain(*(export.readings[""] for export, _ in parts.values())))
    tapes = {  # several scores of an item are epochs, of which the mean counts
        model: np.array([np.mean(export.readings[metric].get(item) or math.nan) for item in items])
        for model, (export, metric) in parts.items()
    }
    known = np.concatenate(list(tapes.values()))
    is_share = bool(np.all((known >= 0) & (known <= 1) | np.isnan(known)))
    return Dataset(tapes, options={"rounds": True, "score_range": (0.0, 1.0) if is_share else None})


def _times(parts: Mapping[str, tuple[_Export, str]], reduction: Reduction) -> Dataset:
    """Return the readings of benchmarks, by the name of the arm."""
    tapes, rows = {}, {}
    for arm, (export, name) in parts.items():
        units, tool = list(export.readings[name].values()), export.tool
        msg = f"this export holds one {tool.unit} of {name!r}, which says nothing about others; {tool.several}"
        refuse(len(units) == 1 and tool.several, msg, "file")
        codes = np.repeat(np.arange(len(units)), list(map(len, units)))
        tapes[arm], rows[arm] = by_unit(np.array([*chain(*units)]), codes, reduction), codes.size
    exports = [export for export, _ in parts.values()]
    drawn, counts = {export.tool.unit for export in exports}, {arm: tape.size for arm, tape in tapes.items()}
    data = Dataset(
        tapes,
        True,
        Units(drawn.pop(), rows, counts, shared=0) if len(drawn) == 1 and "" not in drawn else None,
        timed=all(export.timed for export in exports),
        unit="s" if all(export.unit == "s" for export in exports) else "",
        options=exports[0].options if all(export is exports[0] for export in exports) else {},
    )
    if not data.options.get("rounds"):
        return data
    # an arm that was dropped has fewer scores, and no missing ones
    return data._replace(ordered=False) if "score_range" in data.options else data.align()


def _read(path: Path) -> _Export | None:
    """Return what a file or a folder of an export holds; None if it is a table."""
    data = _document(path)
    for tool in _TOOLS if isinstance(data, Mapping) else ():
        records = data.get(tool.key)
        known = [one for one in records if isinstance(one, Mapping)] if isinstance(records, list) else []
        if tool.key not in data or not any(tool.marks & part.keys() for part in (data, *known)):
            continue
        try:
            readings: dict[str, dict[Any, list[float]]] = {}
            for name, unit, values in tool.runs(data):
                msg = f"this export of {tool.name} holds statistics of {name!r}, but no single readings"
                refuse(values is None, f"{msg}; {tool.remedy}", "file")
                if name and values is not None and not len(values):  # a metric whose scores are not numbers
                    continue
                units = readings.setdefault(name, {})
                units.setdefault(len(units) if unit is None else unit, []).extend(as_readings(values or [], name))
            return _Export(tool, readings, **_read_facts(tool, data))
        except TruearmError:
            raise
        except _BROKEN as error:
            what = f"{path.name!r} looks like an export of {tool.name}, but is not"
            what += f": {' '.join(repr(error).split()):.120}; export it again"
            raise InvalidArgument(what, "file") from None
    return None


def _document(path: Path) -> Any:  # noqa: ANN401 - whatever a file holds
    """Return what a file holds as a JSON document, which folders and lines become; None if no tool writes it."""
    if path.is_dir():
        folders = {file.parent.parent: file for file in sorted(path.rglob("new/sample.json"))}
        found = {folder.relative_to(path).as_posix(): read_json(file) for folder, file in folders.items()}
        return {"criterion samples": found} if found else None
    endings = [ending.lower() for ending in path.suffixes[-2:]]
    if ".json" in endings:
        data = read_json(path)
        is_sample = isinstance(data, Mapping) and {"iters", "times"} <= data.keys()
        return {"criterion samples": {path.absolute().parent.parent.name: data}} if is_sample else data
    with suppress(OSError, EOFError, zlib.error, csv.Error):  # the reader of tables explains them
        if endings[-1:] == [".csv"]:
            rows = csv.DictReader(_lines(path))
            return {"raw.csv": list(rows)} if _RAW.issubset(rows.fieldnames or ()) else None
        first = next(_lines(path), "") if ".jsonl" in endings and ".zst" not in endings else ""
        if '"doc_id"' in first and '"filtered_resps"' in first:
            task = re.sub(r"^samples_|(_\d{4}-\d\d-\d\dT[^_]*)?\.jsonl(\.gz)?$", "", path.name)
            model = path.absolute().parent.name.replace("__", "/")
            return {"eval": {"model": model, "task": task}, "sample lines": _lines(path)}
    return None


def _lines(path: Path) -> Iterator[str]:
    with io.TextIOWrapper(unpack(path), "utf-8", errors="replace", newline="") as lines:
        yield from lines


def unpack(file: Path) -> Any:  # noqa: ANN401 - a binary file
    """Open a file that may be compressed by gzip."""
    return gzip.open(file) if file.suffix.lower() == ".gz" else file.open("rb")


def _read_facts(tool: _Tool, data: Document) -> dict[str, Any]:
    """Return what a document says besides its readings."""
    if "eval" in tool.marks:
        return {"model": str(data["eval"]["model"]), "task": str(data["eval"]["task"])}
    if tool is not _TRUEARM:  # pyperf may measure other things than times
        metadata = data.get("metadata")
        timed = not isinstance(metadata, Mapping) or metadata.get("unit", "second") == "second"
        return {"timed": timed, "unit": "s" * timed}
    problem = from_plain(Certificate, data["certificate"], "certificate").problem
    options = {name: getattr(problem, name) for name in _CARRIED if getattr(problem, name) is not None}
    if "at_least" in options or "at_most" in options:
        del options["goal"]
    unit = "s" if data.get("metric") in ("wall", "cpu") else ""
    return {"timed": problem.goal == "min", "unit": unit, "options": {**options, "rounds": problem.rounds}}


def distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; refuse duplicate names."""
    check_distinct(name for name, _ in pairs)
    return dict(pairs)


def parse_float(text: str) -> float | str:
    """Return the number in JSON text, or the text if it is beyond the largest number: 1e400 is not infinity."""
    return number if math.isfinite(number := float(text)) else text


def read_json(file: Path) -> Any:  # noqa: ANN401 - whatever the file holds
    """Return the content of a JSON file, compressed or not; refuse duplicate names in an object."""
    try:
        with unpack(file) as opened:
            return json.load(opened, object_pairs_hook=distinct_keys, parse_float=parse_float)
    except InvalidArgument:
        raise
    except (ValueError, OSError, EOFError, RecursionError, zlib.error) as error:
        msg = f"{file.name!r} is not JSON: {first_line(error)}; one record per line is kind='jsonl'"
        raise InvalidArgument(msg, "file") from None
