"""What a run prints as metrics, read off its output, and how a log holds it: beside the reading, in its notes.

A metric without a number (null, NaN, an infinity, a number beyond all floats) is a missing reading, None here.
"""

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from truearm.claims.suites import Run
from truearm.errors import InvalidArgument
from truearm.events import Event, Issued, Reading

NOTE = "metrics"
"""Under which name notes hold what a run printed."""
MOST = 1000  # metrics of a run: more are a slip, such as a list of raw samples with a name each
_KINDS = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}


def parsed(text: str) -> dict[str, float | None]:
    r"""Return the metrics in a run's output: all of it is one JSON object of numbers, or its last line is."""
    found = _loaded(text)
    if not isinstance(found, dict):
        msg = f"printed {_KINDS.get(type(found), 'a number')}"
        raise InvalidArgument(msg)
    if len(found) > MOST:
        msg = f"printed {len(found):,} metrics, and {MOST:,} are the most"
        raise InvalidArgument(msg)
    return {name: _number(name, value) for name, value in found.items()}


def _loaded(text: str) -> Any:  # noqa: ANN401 - whatever JSON holds
    whole = text.strip()
    if not whole:
        msg = "printed nothing"
        raise InvalidArgument(msg)
    last = whole.rpartition("\n")[2]
    for part in dict.fromkeys((whole, last)):
        try:
            return json.loads(part, object_pairs_hook=_once)
        except InvalidArgument:
            raise
        except (ValueError, RecursionError):
            continue
    msg = f"printed {last[-80:]!r}, which is not JSON"
    raise InvalidArgument(msg)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        msg = f"printed {next(name for name in names if names.count(name) > 1)!r} twice"
        raise InvalidArgument(msg)
    return found


def _number(name: str, value: Any) -> float | None:  # noqa: ANN401
    if isinstance(value, bool) or not isinstance(value, int | float | None):
        msg = f"{name!r:.80} is {_KINDS[type(value)]}"
        raise InvalidArgument(msg)
    if not name.isprintable() or not 0 < len(name) <= 200:
        msg = f"{name!r:.80} is not a name: it is empty, long, or holds letters that do not print"
        raise InvalidArgument(msg)
    try:
        number = math.nan if value is None else float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def runs_of(arms: Iterable[str], events: Iterable[Event]) -> dict[str, list[Run]]:
    """Return what the runs of a log printed, per arm in order of round, None for those not told."""
    runs: dict[str, list[Run]] = {arm: [] for arm in arms}
    places = {}
    for event in events:
        if isinstance(event, Issued):
            places[event.ticket] = event.draw
            runs[event.arm] += [None] * (event.draw + 1 - len(runs[event.arm]))
        elif isinstance(event, Reading):
            runs[event.arm][places[event.ticket]] = _noted(event.notes)
    return runs


def _noted(notes: Mapping[str, Any] | None) -> Run:
    """Return the metrics in notes, which somebody else may have written."""
    found = (notes or {}).get(NOTE)
    return {name: _number(name, value) for name, value in found.items()} if isinstance(found, Mapping) else None
