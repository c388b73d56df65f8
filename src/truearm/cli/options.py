"""Options that several verbs share, declared once, and the types of their values."""

import math
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from truearm.data.cells import KINDS, Form
from truearm.errors import InvalidArgument
from truearm.problem import Adversary, Contamination, Tolerance, check_delta, check_quantile

_MIN_DELTA = 1e-30  # smaller shares of it underflow
_MAX_DELTA = 0.5  # 95% was meant as confidence


class _Checked(click.ParamType):  # type: ignore[type-arg]  # older clicks take none
    """A value that a function reads and checks; its error becomes a usage error."""

    def __init__(self, name: str, check: Callable[[str], Any], kind: type | tuple[type, ...]) -> None:
        self.name = name
        self._check, self._kind = check, kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        if isinstance(value, self._kind):
            return value
        try:
            return self._check(value)
        except InvalidArgument as error:
            self.fail(str(error), param, ctx)


class _TimeTolerance(click.ParamType):  # type: ignore[type-arg]  # older clicks take none
    """A tolerance of times: a share, or a time; a bare number of 1 or more was meant as percent."""

    name = "TOLERANCE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        if isinstance(value, Tolerance):
            return value
        chosen = {} if ctx is None else ctx.params
        timed = chosen.get("metric", "wall") in ("wall", "cpu") and chosen.get("metrics") != "json"
        try:
            if timed and re.search(r"\d\s*(ms|s|m|h)\s*$", value):
                return Tolerance(seconds(value))
            found = Tolerance.of(value)
        except InvalidArgument as error:
            self.fail(str(error), param, ctx)
        if timed and not found.relative and found.amount >= 1:
            much = value.strip()
            self.fail(f"{much} alone is {much} seconds; for {much} percent write {much}%, or {much}s", param, ctx)
        return found


class _Ranged:
    """Says in an error between which limits a number has to be."""

    min: Any
    max: Any
    min_open: bool
    kind: str

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        """Return the number, which is finite."""
        try:
            found = super().convert(value, param, ctx)  # type: ignore[misc]
        except click.BadParameter:
            found = math.nan
        if math.isfinite(found):
            return found
        limits = f"above {self.min:g}" if self.min_open else f"of at least {self.min:g}"
        limits = limits if self.max is None else f"from {self.min} to {self.max}"
        msg = f"must be a {self.kind} {limits}, but got {value!r:.60}"
        raise click.BadParameter(msg, ctx, param)


class Whole(_Ranged, click.IntRange):
    """A whole number."""

    name, kind = "n", "whole number"


class Real(_Ranged, click.FloatRange):
    """A number."""

    name, kind = "x", "number"


class NewFile(click.Path):
    """The path of a file to write; its folder is checked before any work is done."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        """Return the path."""
        path = super().convert(value, param, ctx)
        folder = Path(os.fsdecode(path)).parent
        if not folder.is_dir():
            self.fail(f"the folder {str(folder)!r} does not exist; make it first, or name another", param, ctx)
        return path


def fraction(text: str) -> float:
    """Return a fraction written as 0.05 or as 5%."""
    stripped = text.strip()
    try:
        if stripped.endswith("%"):
            return float(stripped.removesuffix("%")) / 100
        return float(stripped)
    except ValueError:
        msg = f"a number is written like 0.05 or 5%, but got {text!r}"
        raise InvalidArgument(msg) from None


def read_contamination(text: str) -> Contamination | str | None:
    """Return the contamination that EPS, EPS:ADVERSARY or none says."""
    if text.strip().lower() == "none":
        return None
    if text.strip().lower() in ("blind", "auto"):
        return text.strip().lower()
    eps, colon, adversary = (part.strip() for part in text.partition(":"))
    if eps.lower() in tuple(Adversary):
        msg = f"the fraction comes first: write {adversary or '0.05'}:{eps.lower()}, not {text}"
        raise InvalidArgument(msg)
    share = fraction(eps)
    if not eps.endswith("%") and 1 <= share < 50:
        msg = f"{eps} is not a fraction of the readings; for {eps} percent write {eps}% or {share / 100:g}"
        raise InvalidArgument(msg)
    return Contamination(share, adversary.lower()) if colon else Contamination(share)  # type: ignore[arg-type]


def seconds(text: str) -> float:
    """Return a length of time in seconds: 90, 90s, 200ms, 2m or 1.5h."""
    found = re.fullmatch(r"\s*([0-9.]+(?:e[-+]?[0-9]+)?)\s*(ms|s|m|h|)\s*", text)
    try:
        number = float(found[1]) if found else 0.0
    except ValueError:
        number = 0.0
    if not found or not 0 < number < math.inf:
        msg = f"a length of time is a positive number such as 90, 90s, 200ms, 2m or 1.5h, but got {text!r}"
        raise InvalidArgument(msg)
    return number * {"ms": 0.001, "m": 60.0, "h": 3600.0}.get(found[2], 1.0)


def _share(text: str) -> float:
    share = fraction(text)
    if not text.strip().endswith("%") and 1 < share < 100:
        msg = f"a share is at most 1, but got {share:g}; for {share:g} percent write {share:g}%"
        raise InvalidArgument(msg)
    return share


def _delta(share: float) -> float:
    if 0 < share < _MIN_DELTA:
        msg = f"delta must be at least {_MIN_DELTA:g}, but got {share:g}; nothing is more certain than that"
        raise InvalidArgument(msg)
    if _MAX_DELTA < share < 1:
        wrong = f"delta is the chance to be wrong, at most {_MAX_DELTA:g}, but got {share:g}"
        msg = f"{wrong}; to be 95% sure write --delta 5%"
        raise InvalidArgument(msg)
    return check_delta(share)


def exit_codes(text: str) -> tuple[int, ...]:
    """Return exit codes separated by commas."""
    codes = text.split(",")
    if not all(re.fullmatch("[0-9]{1,3}", code) and 1 <= int(code) <= 255 for code in codes):
        msg = f"exit codes to ignore are numbers from 1 to 255 such as -i=1,2, but got {text!r}"
        raise InvalidArgument(msg)
    return tuple(map(int, codes))


DELTA = _Checked("DELTA", lambda text: _delta(fraction(text)), float)
DURATION = _Checked("SECONDS", seconds, float)
GAP = _Checked("GAP", lambda text: (fraction(text), text.strip().endswith("%")), tuple)
READING = click.FLOAT
SHARE = _Checked("SHARE", _share, float)
QUANTILE = _Checked("QUANTILE", lambda text: check_quantile(fraction(text)), float)

_SHARED: dict[str, dict[str, Any]] = {
    "goal": {
        "type": click.Choice(["max", "min"]),
        "help": "Whether larger or smaller readings are better; max by default. Not with a share.",
    },
    "quantile": {
        "type": QUANTILE,
        "default": "0.5",
        "show_default": True,
        "help": "What is compared: 0.5 is the median, 0.95 the 95th percentile.",
    },
    "at_least": {
        "type": READING,
        "metavar": "X",
        "help": "Compare the share of readings that are at least X (passed, converted) instead of a quantile.",
    },
    "at_most": {
        "type": READING,
        "metavar": "X",
        "help": "Compare the share of readings that are at most X (answered in time) instead of a quantile.",
    },
    "delta": {
        "type": DELTA,
        "default": "0.05",
        "show_default": True,
        "help": "Error probability of the decision.",
    },
    "contamination": {
        "type": _Checked("EPS[:ADVERSARY]", read_contamination, Contamination),
        "default": "0.05",
        "show_default": True,
        "help": "At most this fraction of the readings may be bad: 0.05 or 5%, with :prescient or :malicious for "
        "stronger adversaries than an oblivious one; 'none' asks for the observed order instead.",
    },
    "race_contamination": {
        "type": _Checked("blind|EPS[:ADVERSARY]", read_contamination, Contamination),
        "default": "auto",
        "show_default": "blind in rounds, else 5%",
        "help": "'blind': disturbances do not know the random order of rounds. Or at most this fraction of the "
        "runs may be bad: 0.05 or 5%, with :prescient or :malicious for stronger adversaries; or 'none' for the "
        "observed order.",
    },
    "evaluate_contamination": {
        "type": _Checked("EPS", read_contamination, Contamination),
        "default": "0",
        "show_default": True,
        "help": "At most this fraction of the scores of each arm may be wrong, fixed before items are drawn.",
    },
    "tolerance": {
        "type": _Checked("TOLERANCE", Tolerance.of, Tolerance),
        "default": "0",
        "show_default": True,
        "help": "Also accept an arm that is provably within this of the best: 2% is relative, 0.1 is in units of "
        "the readings.",
    },
    "time_tolerance": {
        "type": _TimeTolerance(),
        "default": "0",
        "show_default": True,
        "help": "Also accept an arm that is provably within this of the best: 2% is relative, 5ms a time; for "
        "readings that are not times, a number in their unit.",
    },
    "between": {
        "type": READING,
        "nargs": 2,
        "metavar": "LOW HIGH",
        "help": "Readings outside this range are known to be bad, assuming that they left it for reasons not "
        "related to their true value; not for readings cut off at a limit.",
    },
    "score_range": {
        "type": READING,
        "nargs": 2,
        "metavar": "LOW HIGH",
        "help": "Compare the mean of scores in this range on the same items, which are the rounds; the scores are "
        "taken as given unless --contamination allows for wrong ones.",
    },
    "unit": {
        "metavar": "COLUMN",
        "help": "The column of what was drawn independently (process, user, item): readings of one unit become "
        "one, their median.",
    },
    "round": {
        "metavar": "COLUMN|rows",
        "help": "The column of what arms were measured in side by side (item, person, day), or 'rows' of a wide "
        "file: compares which arm wins more than half of the rounds.",
    },
    "order": {
        "metavar": "COLUMN|rows",
        "help": "'rows' if rows are in order of measurement, or the column to sort them by; otherwise their order "
        "says nothing.",
    },
    "sep": {"metavar": "MARK", "help": "The separator of cells, if it is not one of , ; | and tab."},
    "encoding": {"metavar": "NAME", "help": "Of the text, such as cp1252; UTF-8 and UTF-16 are detected."},
    "decimal": {"metavar": "MARK", "help": "The mark of decimals: --decimal ,"},
    "thousands": {"metavar": "MARK", "help": "The mark between thousands: --thousands ,"},
    "unreadable": {
        "type": click.Choice(["error", "missing"]),
        "help": "Count cells that are not numbers as missing instead of stopping at the first.",
    },
    "kind": {
        "type": click.Choice(sorted(set(KINDS.values()))),
        "help": "What the file is, if neither its ending nor, on standard input, its beginning says.",
    },
    "export_html": {"type": NewFile(dir_okay=False), "metavar": "FILE", "help": "Write a self-contained page."},
    "json": {"is_flag": True, "help": "Print the result as JSON."},
    "verbose": {"is_flag": True, "help": "Also print what the answer assumes, and what else is known."},
}
_PARAMETERS = {
    "export_html": "html",
    "json": "as_json",
    "time_tolerance": "tolerance",
    "race_contamination": "contamination",
    "evaluate_contamination": "contamination",
}
QUESTION = ("goal", "quantile", "at_least", "at_most", "delta", "contamination", "tolerance")
"""What is asked of readings, and how sure the answer has to be."""
FORM = Form._fields
"""How a file is written."""


def shared(*names: str) -> Callable[[Any], Any]:
    """Return the decorator that adds shared options to a verb."""

    def add(command: Any) -> Any:  # noqa: ANN401 - a function, or a click command
        for name in reversed(names):
            flag = f"--{re.sub('^(time|race|evaluate)_', '', name).replace('_', '-')}"
            command = click.option(flag, _PARAMETERS.get(name, name), **_SHARED[name])(command)
        return command

    return add
