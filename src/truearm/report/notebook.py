"""A result as a table for notebooks: a fragment of HTML without scripts and without anything from elsewhere."""

import math
from html import escape

from truearm.claims.result import Arm, Result
from truearm.report.numbers import ON_PAGES, column_name, count, ends, interval, name_of, number, value
from truearm.report.words import alarm, standing, summarize

_STYLE = """<style>
.truearm{font:14px/1.45 system-ui,sans-serif;color:inherit;max-width:62em}
.truearm table{border-collapse:collapse;margin:.6em 0;font:inherit}
.truearm th,.truearm td{padding:.2em .7em;text-align:right;border-bottom:1px solid rgba(128,128,128,.35);
white-space:nowrap;background:none;color:inherit}
.truearm th:first-child,.truearm td:first-child{text-align:left;white-space:normal;overflow-wrap:anywhere;
min-width:7em}
.truearm .best td:first-child{font-weight:600}
.truearm .out{opacity:.6}
.truearm svg{vertical-align:middle;color:#4a90d9}
.truearm .alarm{border-left:3px solid #d08000;padding-left:.6em}
.truearm .note{opacity:.75;font-size:12px}
</style>"""
_HUGE = math.nextafter(math.inf, 0.0)
_WIDTH, _HEIGHT = 260, 18  # pixels of one arm's picture


def html(result: Result) -> str:
    """Return a self-contained HTML fragment for notebooks: no scripts, nothing from elsewhere."""
    span = _span(result)
    rows = "".join(_row(result, arm, span) for arm in result.arms)
    told = (*result.doubts, *result.alarms)
    alarms = "".join(f'<p class="alarm">{escape(alarm(one, result.problem))}</p>' for one in told)
    promises = "".join(f"<li>{escape(sentence)}</li>" for sentence in result.assumptions)
    head = "".join(f"<th>{escape(title)}</th>" for title in _titles(result))
    return (
        f'<div class="truearm">{_STYLE}<p>{escape(summarize(result, alarms=False))}</p>{alarms}'
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        f'<p class="note">{_LEGEND}</p>'
        f"<details><summary>What this rests on</summary><ul>{promises}</ul></details></div>"
    )


_LEGEND = (
    "Tick: observed. Thick bar: what contamination alone leaves open, whatever the number of readings (an "
    "estimate). Thin line: what more readings would remove. Grayed: excluded."
)


def _titles(result: Result) -> tuple[str, ...]:
    name = column_name(result.problem)
    where = "if none is bad" if result.problem.contamination is None else f"true {name}"
    what = "readings" if result.certificate.analyzed else "pulls"
    return ("arm", what, f"observed {name}", where, "MAD", "")


def _row(result: Result, arm: Arm, span: tuple[float, float]) -> str:
    kind = {"best": "best", "excluded": "out"}.get(standing(result, arm.name).split(" by ")[0], "")
    where = interval(arm.low, arm.high, result.problem)
    texts = (
        name_of(arm.name),
        count(arm.n),
        value(arm.observed, result.problem, ON_PAGES),
        where,
        number(arm.mad, signs=ON_PAGES),
    )
    cells = "".join(f"<td>{escape(text)}</td>" for text in texts)
    return f'<tr class="{kind}">{cells}<td>{_picture(arm, span)}</td></tr>'


def _span(result: Result) -> tuple[float, float]:
    """Return the stretch the pictures show: all observed quantiles, and the intervals of arms still in play."""
    shown = [
        x
        for arm in result.arms
        for x in (arm.observed, *((arm.low, arm.high) if arm.name in result.candidates else ()))
        if math.isfinite(x)
    ]
    if not shown:
        return 0.0, 1.0
    low, high = min(shown), max(shown)
    room = (high / 2 - low / 2) / 10 or abs(low) / 10 or 1.0  # halves, so that huge readings do not overflow
    return max(low - room, -_HUGE), min(high + room, _HUGE)


def _picture(arm: Arm, span: tuple[float, float]) -> str:
    """Return the interval of one arm: a thin line, the contamination part thick, the observed value a tick."""
    if math.isnan(arm.observed) or arm.low > arm.high:
        return ""
    half = _HEIGHT / 2
    left, right = _at(arm.low, span), _at(arm.high, span)
    inner = sorted(min(max(_at(x, span), left), right) for x in (arm.contamination_low, arm.contamination_high))
    tick = (
        f'<line x1="{_at(arm.observed, span):.1f}" x2="{_at(arm.observed, span):.1f}" y1="1" y2="{_HEIGHT - 1}" '
        'stroke="currentColor" stroke-width="2"/>'
        if math.isfinite(arm.observed)
        else ""
    )
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="interval from {" to ".join(ends(arm.low, arm.high))}">'
        f'<line x1="{left:.1f}" x2="{right:.1f}" y1="{half}" y2="{half}" stroke="currentColor" '
        'stroke-width="1.5"/>'
        f'<rect x="{inner[0]:.1f}" y="{half - 4}" width="{inner[1] - inner[0]:.1f}" height="8" rx="2" '
        f'fill="currentColor" fill-opacity=".5"/>{tick}</svg>'
    )


def _at(x: float, span: tuple[float, float]) -> float:
    low, high = span
    if math.isinf(x):
        return 0.0 if x < 0 else float(_WIDTH)
    place = (x / 2 - low / 2) / (high / 2 - low / 2)
    return _WIDTH * min(max(place, 0.0), 1.0)
