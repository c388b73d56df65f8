"""Options of all verbs, declared in tables of text that read like their help, and the types of their values."""

import math
import os
import re
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from truearm.data.cells import KINDS, Form
from truearm.errors import InvalidArgument
from truearm.problem import Contamination, Tolerance, check_delta, check_quantile, refuse

_MIN_DELTA = 1e-30  # shares of a smaller one underflow
_MAX_DELTA = 0.5  # 95% was meant as confidence
_SECONDS = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0}


class _CheckedText(click.ParamType):  # type: ignore[type-arg]  # older clicks take none
    """Text that a function parses and checks; its error becomes a usage error."""

    def __init__(self, name: str, check: Callable[[str], Any]) -> None:
        self.name, self._check = name, check

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        try:
            return self._check(value) if isinstance(value, str) else value
        except InvalidArgument as error:
            self.fail(str(error), param, ctx)


class _NewFile(click.Path):
    """The path of a file to write; its folder is checked before any work is done."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        path = super().convert(value, param, ctx)
        folder = Path(os.fsdecode(path)).parent
        if not folder.is_dir():
            self.fail(f"the folder {str(folder)!r} does not exist; create it first, or name another", param, ctx)
        return path


def _number(text: str, read: type, low: float, high: float = math.inf) -> Any:  # noqa: ANN401
    try:
        found = read(text)
    except ValueError:
        found = math.nan
    if low <= found <= high and math.isfinite(found):
        return found
    limits = f"of at least {low:g}" if math.isinf(high) else f"from {low} to {high}"
    raise InvalidArgument(f"must be a {'whole ' * (read is int)}number {limits}, but got {text!r:.60}")


def _fraction(text: str) -> float:
    """Return a fraction written as 0.05 or as 5%."""
    stripped = text.strip()
    try:
        return float(stripped.removesuffix("%")) / (100 if stripped.endswith("%") else 1)
    except ValueError:
        raise InvalidArgument(f"a number is written like 0.05 or 5%, but got {text!r}") from None


def _contamination(text: str) -> Contamination | str | None:
    """Return the contamination written as EPS, EPS:ADVERSARY, blind or none."""
    word = text.strip().lower()
    if word in ("none", "blind", "auto"):
        return None if word == "none" else word
    eps, colon, adversary = (part.strip() for part in word.partition(":"))
    share = _fraction(eps)
    msg = f"{eps} is not a fraction of the readings; for {eps} percent write {eps}% or {share / 100:g}"
    refuse(not eps.endswith("%") and 1 <= share < 50, msg)
    return Contamination(share, adversary) if colon else Contamination(share)  # type: ignore[arg-type]


def _seconds(text: str) -> float:
    """Return a length of time in seconds: 90, 90s, 200ms, 2m or 1.5h."""
    found = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)(e[-+]?\d+)?\s*(ms|s|m|h|)\s*", text, re.ASCII)
    seconds = float(f"{found[1]}{found[2] or ''}") * _SECONDS[found[3]] if found else 0.0
    msg = f"a length of time is a positive number such as 90, 90s, 200ms, 2m or 1.5h, but got {text!r}"
    refuse(not 0 < seconds < math.inf, msg)
    return seconds


def _time_tolerance(text: str) -> Tolerance:
    """Return a tolerance of times: a share, or a time; a bare number of 1 or more was meant as percent."""
    chosen = click.get_current_context().params
    timed = chosen.get("metric", "wall") in ("wall", "cpu") and chosen.get("metrics") != "json"
    if timed and re.search(r"\d\s*(ms|s|m|h)\s*$", text):
        return Tolerance(_seconds(text))
    found, much = Tolerance.of(text), text.strip()
    msg = f"{much} alone is {much} seconds; for {much} percent write {much}%, or {much}s"
    refuse(timed and not found.relative and found.amount >= 1, msg)
    return found


def _delta(text: str) -> float:
    share = _fraction(text)
    is_confidence = _MAX_DELTA < share < 1
    remedy = "to be 95% sure write --delta 5%" if is_confidence else "nothing is more certain than that"
    msg = f"delta is the chance to be wrong, at least {_MIN_DELTA:g} and at most {_MAX_DELTA:g}, but got {share:g}"
    refuse(is_confidence or 0 < share < _MIN_DELTA, f"{msg}; {remedy}")
    return check_delta(share)


def exit_codes(text: str) -> tuple[int, ...]:
    """Return exit codes separated by commas."""
    codes = [int(code) if re.fullmatch("[0-9]{1,3}", code) else 0 for code in text.split(",")]
    is_right = all(1 <= code <= 255 for code in codes)
    refuse(not is_right, f"exit codes to ignore are numbers from 1 to 255 such as -i=1,2, but got {text!r}")
    return tuple(codes)


_TYPES: dict[str, click.ParamType] = {  # type: ignore[type-arg]  # by metavar; others accept any text
    "FILE": _NewFile(dir_okay=False),
    "FILE|-": _NewFile(dir_okay=False, allow_dash=True),
    "PATH": click.Path(dir_okay=False),
    "X": click.FLOAT,
    "LOW HIGH": click.FLOAT,
}
_CHECKS: dict[str, Callable[[str], Any]] = {
    "N": partial(_number, read=int, low=1),
    "COUNT": partial(_number, read=int, low=0),
    "SEED": partial(_number, read=int, low=0),
    "BYTES": partial(_number, read=int, low=1000),
    "PORT": partial(_number, read=int, low=0, high=65535),
    "ARMS": partial(_number, read=int, low=2, high=1000),  # a minute of work
    "RATE": partial(_number, read=float, low=1),
    "DELTA": _delta,
    "QUANTILE": lambda text: check_quantile(_fraction(text)),
    "SHARE": _fraction,
    "GAP": lambda text: (_fraction(text), text.strip().endswith("%")),
    "SECONDS": _seconds,
    "TOLERANCE": Tolerance.of,
    "TOLERANCE|TIME": _time_tolerance,
    "EPS": _contamination,
    "EPS[:ADVERSARY]": _contamination,
    "blind|EPS[:ADVERSARY]": _contamination,
}
_TYPES.update({name: _CheckedText(name, check) for name, check in _CHECKS.items()})

QUESTION = "goal quantile at-least at-most delta contamination tolerance"
"""What is asked of readings, and how sure the answer has to be."""
FORM = Form._fields  # how a file is written
_SHARED = f"""
--goal max|min  Whether larger or smaller readings are better; max by default. Not with a share.
--quantile QUANTILE  What is compared: 0.5 is the median, 0.95 the 95th percentile. [default: 0.5]
--at-least X  Compare the share of readings that are at least X (passed, converted) instead of a quantile.
--at-most X  Compare the share of readings that are at most X (answered in time) instead of a quantile.
--delta DELTA  Error probability of the decision. [default: 0.05]
--contamination EPS[:ADVERSARY]  At most this fraction of the readings may be bad: 0.05 or 5%, with :prescient or
    :malicious for stronger adversaries than an oblivious one; 'none' asks for the observed order instead.
    [default: 0.05]
--tolerance TOLERANCE  Also accept an arm that is provably within this of the best: 2% is relative, 0.1 is in
    units of the readings. [default: 0]
--between LOW HIGH  The plausible range: readings outside it are bad, assuming that they left it for reasons not
    related to their true value. Not for readings cut off at a limit.
--score-range LOW HIGH  Compare the mean of scores in this range on the same items, which are the rounds; the
    scores are taken as given unless --contamination allows for wrong ones.
--control ARM  Compare every arm with this one, such as the one in use: which are better?
--fdr  With --control (or --metrics): bound the expected share of false claims, not the chance of any.
--tiers  Also rank all arms, as far as their order is certain: tiers and places.
--arm COLUMN  The column that names the arm.
--value COLUMN  The column that holds the reading.
--unit COLUMN  The column that names the independent unit (process, user, item): readings of one unit become one,
    their median.
--round COLUMN|rows  The column that names the round (item, person, day), or 'rows' if each row of a wide file
    is one: compares which arm wins more than half of the rounds.
--order COLUMN|rows  'rows' if rows are in order of measurement, or the column to sort them by; by default their
    order is not used.
--sep MARK  The separator of cells, if it is not a comma, a semicolon, a | or a tab.
--encoding NAME  The encoding of the file, such as cp1252; UTF-8 and UTF-16 are detected.
--decimal MARK  The decimal mark: a point by default, or a comma.
--thousands MARK  The thousands separator, such as a comma.
--unreadable error|missing  Stop at the first cell that is not a number (by default), or count such cells as
    missing.
--kind {"|".join(sorted(set(KINDS.values())))}  The format of the file, if its name (on standard input: its
    first bytes) does not show it.
--timeout SECONDS  Kill a run after this many seconds; it counts at its worst.
--seed SEED  The seed of the order; random by default.
--json  Print the result as JSON.
--export-html FILE|-  Write a self-contained page.
-q, --quiet  Print the result only, without progress and notes.
-v, --verbose  Also print what the answer assumes, and what else is known.
"""
TIMES = """
--contamination blind|EPS[:ADVERSARY]  'blind': disturbances do not depend on the random order of rounds. Or at
    most this fraction of the runs may be bad: 0.05 or 5%, with :prescient or :malicious for stronger adversaries;
    or 'none' for the observed order. By default blind in rounds, else 5%.
--tolerance TOLERANCE|TIME  Also accept an arm that is provably within this of the best: 2% is relative, 5ms a
    time; for readings that are not times, a number in their unit. [default: 0]
"""
"""What is asked of times."""


def declare(table: str, **more: dict[str, Any]) -> Callable[[Any], Any]:
    """Return the decorator that adds the options of a table to a verb; `more` is for `click.option`, by parameter.

    An option begins at the start of a line: flags, a metavar for the type of its value, two spaces, the help.
    Lowercase words with | between them are choices, "..." makes an option repeatable. A line that starts with +
    lists options that verbs share.
    """
    options = [_option(entry, more) for entry in _entries(table)]

    def add(command: Any) -> Any:  # noqa: ANN401 - a function
        for option in reversed(options):
            command = option(command)
        return command

    return add


def explicit_options(ctx: click.Context, besides: Collection[str] = ()) -> dict[str, Any]:
    """Return the arguments that the user gave to a verb, by parameter, except those in `besides`."""
    typed = [name for name in ctx.params if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT]
    # click 8.2 reports an argument with any number of words as given, even if it is empty
    return {name: ctx.params[name] for name in typed if name not in besides and ctx.params[name] != ()}


def _entries(table: str) -> list[str]:
    """Return the entries of a table, with shared options in place of their names."""
    shared = {re.findall(r"--([\w-]+)", entry)[0]: entry for entry in re.split(r"\n(?=\S)", _SHARED.strip())}
    found = []
    for entry in re.split(r"\n(?=\S)", table.strip()):
        found += [shared[name] for name in entry[1:].split()] if entry.startswith("+") else [entry]
    return found


def _option(entry: str, more: dict[str, dict[str, Any]]) -> Callable[[Any], Any]:
    declared, _, text = entry.partition("  ")
    flags, metavar = re.fullmatch(r"((?:-\w, )?--?[\w-]+) ?(.*)", declared).groups()  # type: ignore[union-attr]
    names = flags.split(", ")
    settings: dict[str, Any] = {"help": " ".join(text.split())}
    for what, name in (("default", "default"), ("env var", "envvar")):
        if found := re.search(rf" \[{what}: (.*?)\]", settings["help"]):
            settings["help"] = settings["help"].replace(found[0], "")
            settings |= {name: found[1], f"show_{name}": True}
    if metavar.endswith("..."):
        metavar, settings["multiple"] = metavar.removesuffix("..."), True
    if not metavar:
        settings["is_flag"] = True
    elif metavar.islower() and "|" in metavar:
        settings["type"] = click.Choice(metavar.split("|"))
    else:
        settings |= {"metavar": metavar, "nargs": len(metavar.split()), "type": _TYPES.get(metavar)}
    parameter = names[-1].lstrip("-").replace("-", "_")
    return click.option(*names, parameter, **{**settings, **more.get(parameter, {})})
