"""Read the metrics that a run prints, one flat JSON object of numbers, and find them in a log.

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
"""The key of a run's metrics in the notes of its reading."""
MAX_METRICS = 1000  # of a run: more are a slip, such as a list of raw samples with a name each
_KINDS = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}


def parse_metrics(text: str) -> dict[str, float | None]:
    """Return the metrics in a run's output: all of it is one JSON object of numbers, or its last line is."""
    found = _load(text)
    if not isinstance(found, dict):
        msg = f"printed {_KINDS.get(type(found), 'a number')}"
        raise InvalidArgument(msg)
    if len(found) > MAX_METRICS:
        msg = f"printed {len(found):,} metrics, and {MAX_METRICS:,} are the most"
        raise InvalidArgument(msg)
    return {name: _number(name, value) for name, value in found.items()}


def _load(text: str) -> Any:  # noqa: ANN401 - whatever JSON holds
    whole = text.strip()
    if not whole:
        msg = "printed nothing"
        raise InvalidArgument(msg)
    last = whole.rpartition("\n")[2]
    for part in dict.fromkeys((whole, last)):
        try:
            return json.loads(part, object_pairs_hook=_unique)
        except InvalidArgument:
            raise
        except (ValueError, RecursionError):
            continue
    msg = f"printed {last[-80:]!r}, which is not JSON"
    raise InvalidArgument(msg)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        msg = f"printed {next(name for name in names if names.count(name) > 1)!r} twice"
        raise InvalidArgument(msg)
    return dict(pairs)


def _number(name: str, value: Any) -> float | None:  # noqa: ANN401
    if isinstance(value, bool) or not isinstance(value, int | float | None):
        msg = f"{name!r:.80} is {_KINDS[type(value)]}"
        raise InvalidArgument(msg)
    if not name.isprintable() or not 0 < len(name) <= 200:
        msg = f"{name!r:.80} is not a name: it is empty, long, or has characters that do not print"
        raise InvalidArgument(msg)
    try:
        number = math.nan if value is None else float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def runs_of(arms: Iterable[str], events: Iterable[Event]) -> dict[str, list[Run]]:
    """Return the metrics of all runs in a log, per arm in order of round, None for a run without them."""
    runs: dict[str, list[Run]] = {arm: [] for arm in arms}
    places = {}
    for event in events:
        if isinstance(event, Issued):
            places[event.ticket] = event.draw
            runs[event.arm] += [None] * (event.draw + 1 - len(runs[event.arm]))
        elif isinstance(event, Reading):
            noted = (event.notes or {}).get(NOTE)  # another program may have written it
            metrics = (
                {name: _number(name, value) for name, value in noted.items()}
                if isinstance(noted, Mapping)
                else None
            )
            runs[event.arm][places[event.ticket]] = metrics
    return runs
