"""Sections of a page for what is asked besides the best arm: who beats the control, and tiers with a picture."""

from decimal import ROUND_FLOOR

from truearm.claims.analysis import Analysis
from truearm.claims.certificate import Place
from truearm.claims.result import Result
from truearm.problem import Adversary
from truearm.report import charts
from truearm.report.charts import Tick, axis
from truearm.report.markup import note, section, table, text
from truearm.report.numbers import count, name_of, percent
from truearm.report.tables import control_rows
from truearm.report.words import tiers as tier_words

_SHOWN = 200  # arms: more are not read, and all are in the machine-readable part


def control(result: Result) -> str:
    """Return the section about the control; nothing if that was not asked."""
    rows = control_rows(result)
    if not rows or result.control is None:
        return ""
    titles, *body = rows
    return section(
        "control",
        f"Against {name_of(result.control.arm)}",
        table(titles, body[:_SHOWN]),
        note(
            "'Up to' is the largest share of bad readings, by adversary, under which the arm is certified to be "
            "better, for all arms at once. Evidence is that of the pair, by all readings."
        ),
    )


def tiers(found: Analysis) -> str:
    """Return the section that draws the places of all arms; nothing if that was not asked."""
    if found.tiers is None:
        return ""
    k, shown = len(found.tiers.places), found.tiers.places[:_SHOWN]
    spans, first = {}, 1
    for number, arms in enumerate(found.tiers.tiers, 1):
        spans.update(dict.fromkeys(arms, (number, first, first + len(arms) - 1)))
        first += len(arms)
    rows = "".join(_row(place, spans[place.arm], k) for place in shown)
    some = f" The first {count(_SHOWN)} of {count(k)} arms are drawn." if k > _SHOWN else ""
    ends = axis([Tick((place - 0.5) / k, count(place)) for place in _marked(k)])
    return section(
        "tiers",
        "Tiers",
        f"<p>{text(' '.join(tier_words(found.tiers, found.problem.error)))}</p>",
        f'<ol class="arms">{rows}<li class="row axis"><span></span><span class="picture">{ends}</span></li></ol>',
        note(
            "A bar covers the places an arm may have, all arms at once; the shade behind it those of its tier."
            f"{some}"
        ),
        _claims(found),
    )


def _marked(k: int) -> list[int]:
    """Return the places that are labeled: both ends and a few between."""
    return sorted({1, k, *(round(1 + (k - 1) * i / 4) for i in (1, 2, 3))})


def _row(place: Place, span: tuple[int, int, int], k: int) -> str:
    number, first, last = span
    one = place.best == place.worst
    words = f"place {count(place.best)}" if one else f"place {count(place.best)} to {count(place.worst)}"
    drawn = charts.places((place.best, place.worst), (first, last), k, f"{words} of {count(k)}")
    return (
        f'<li class="row"><span class="name">{text(place.arm)}</span><span class="picture">{drawn}</span>'
        f'<span class="where">{words}</span><span class="state">tier {count(number)}</span></li>'
    )


def _claims(found: Analysis) -> str:
    claims = [] if found.tiers is None else [c for c in found.tiers.nearest if c.breakdown is not None]
    if not claims:
        return ""
    rows = (
        (c.better, name_of(c.worse), *("–" if p is None else percent(p, ROUND_FLOOR) for p in c.breakdown or ()))
        for c in claims[:_SHOWN]
    )
    return table(("arm", "is better than", *(f"up to, {a.value}" for a in Adversary)), rows) + note(
        "For each arm the nearest one below and above it that it is certainly told from, and up to which share of "
        "bad readings all such claims hold."
    )
