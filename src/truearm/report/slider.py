"""Who remains a candidate, against a slider of the contamination.

The markup stands at the declared contamination and is complete by itself; `view` holds, for every position of
the slider, what the script puts in its place.
"""

import math
from collections.abc import Sequence
from decimal import ROUND_FLOOR
from typing import Any

from truearm.claims.certificate import Status
from truearm.problem import Adversary, Interval
from truearm.report import charts
from truearm.report.charts import at, axis
from truearm.report.markup import note, section, text
from truearm.report.numbers import (
    MAX_LISTED,
    ON_PAGES,
    count,
    interval,
    name_of,
    names,
    percent,
    target_name,
    value,
)
from truearm.report.picture import Picture
from truearm.report.words import is_tie_by_handicap


def candidates(picture: Picture) -> str:
    """Return the section with the slider, the intervals and who remains a candidate."""
    result, declared = picture.result, picture.declared
    title = "Who remains a candidate, by how many readings may be bad"
    if picture.leader is None:
        return section("candidates", title, f"<p>{_nothing(picture)}</p>")
    said, decided = _sentence(picture, declared.eps, declared.adversary)
    ends = picture.intervals(declared.eps, declared.adversary)
    left = set(picture.candidates(declared.eps, declared.adversary))
    rows = "".join(
        _row(
            picture,
            i,
            _cell(picture, ends[i]),
            decided=decided,
            is_out=arm.name not in left,
        )
        for i, arm in enumerate(result.arms)
    )
    ruler = axis(charts.ticks(picture.window, picture.unit.size))
    return section(
        "candidates",
        title,
        _controls(picture),
        '<p class="scriptless note">Without scripts this picture stands at the declared contamination.</p>',
        f'<p id="standing" class="standing" role="status" aria-live="polite">'
        f"{_opening(declared.eps, declared.adversary)}{text(said)}</p>",
        f'<ol class="arms" id="intervals">{rows}'
        f'<li class="row axis"><span></span><span class="picture">{ruler}</span></li></ol>',
        "" if result.problem.rounds else _legend(),
        note(_explanation(picture)),
    )


def _nothing(picture: Picture) -> str:
    """Return why there is nothing to compare."""
    if picture.result.status is Status.DOUBTFUL:
        return "The readings contradict a promise, so every arm remains a candidate, however few of them are bad."
    if picture.result.certificate.estimated:
        return "Arms were compared by an estimator of the user's own, of which this picture says nothing."
    return "There are no readings yet."


def _opening(eps: float, adversary: Adversary) -> str:
    return (
        f"If each reading is bad with a chance of at most {percent(eps)} ({adversary}): "
        if eps
        else "If no reading is bad: "
    )


def _explanation(picture: Picture) -> str:
    problem, unit = picture.result.problem, picture.unit.name or _PLAINLY
    better = "larger" if problem.goal == "max" else "smaller"
    tolerant = (
        " The study asked for an arm within a tolerance; this picture asks which arm is the best itself."
        if picture.result.status is Status.TOLERABLE
        else ""
    )
    if problem.rounds:
        return (
            f"The observed median in {unit}; {better} is better. At the one true contamination, "
            "whatever it is, the best arm is not among the excluded, with error probability "
            f"{percent(problem.delta)}: "
            "who wins side by side decides, and nothing is claimed of an arm by itself." + tolerant
        )
    where = "" if problem.target == "share" else f" in {unit}"
    return (
        f"The true {target_name(problem)}{where}; {better} is better. At the one "
        "true contamination, whatever it is, two statements hold, each with error probability "
        f"{percent(problem.delta)}: all true values lie in their intervals, and the best arm is not among the "
        "excluded. An arrow says that an interval goes on." + tolerant
    )


_PLAINLY = "units of the readings"


def _legend() -> str:
    samples = (
        (
            '<rect class="core" x="4" width="32" y="1" height="14"/>',
            "contamination alone leaves this open (an estimate)",
        ),
        ('<rect class="sampling" x="1" width="38" y="6.5" height="3"/>', "more readings would remove this"),
        ('<line class="observed" x1="20" x2="20" y1="1" y2="15"/>', "observed"),
        ('<g class="excluded"><rect class="core" x="4" width="32" y="1" height="14"/></g>', "excluded"),
    )
    items = (
        f'<li><svg viewBox="0 0 40 16" aria-hidden="true">{shape}</svg>{text(words)}</li>'
        for shape, words in samples
    )
    return f'<ul class="legend">{"".join(items)}</ul>'


def _controls(picture: Picture) -> str:
    declared = picture.declared
    radios = "".join(
        f'<label><input type="radio" name="adversary" value="{a}"{" checked" * (a is declared.adversary)}>'
        f"{a}</label>"
        for a in Adversary
    )
    return (
        f'<div class="controls" hidden><fieldset><legend>Adversary</legend>{radios}</fieldset>'
        '<label class="eps-label" for="eps">Share of readings that may be bad: '
        f'<output id="eps-chosen" for="eps">{percent(declared.eps)}</output></label>'
        '<div class="marks above" aria-hidden="true"></div>'
        f'<input type="range" id="eps" min="0" max="{len(picture.eps) - 1}" step="1" '
        f'value="{picture.eps.index(declared.eps)}" autocomplete="off">'
        '<div class="marks below" aria-hidden="true"></div></div>'
    )


def _sentence(picture: Picture, eps: float, adversary: Adversary) -> tuple[str, bool]:
    """Return who remains at a contamination in words, and whether that is one arm."""
    left = picture.candidates(eps, adversary)
    remaining = set(left)
    out = [arm for arm in picture.result.problem.arms if arm not in remaining]
    if len(left) == 1:
        return f"{name_of(left[0])} is the best arm; no other is a candidate.", True
    excluded = f"Excluded: {_listed(out)}." if out else "None is excluded."
    return f"{count(len(left))} candidates remain: {_listed(left)}. {excluded}", False


def _listed(arms: Sequence[str]) -> str:
    return ", ".join(map(name_of, arms)) if len(arms) <= MAX_LISTED else names(arms)  # all are in the rows below


def _cell(picture: Picture, ends: tuple[Interval, Interval]) -> list[Any]:
    """Return an arm's interval in words and as places on the board: all of it, then contamination's part."""
    (whole, core), problem, window, unit = ends, picture.result.problem, picture.window, picture.unit
    if math.isnan(whole.low):  # in rounds an arm that only failed, or was not measured yet, has no place
        return [value(whole.low, problem, ON_PAGES, unit), 0, 0, 0, 0]
    if whole.low > whole.high:
        return [interval(*whole, problem, ON_PAGES, unit), 0, 0, 0, 0]
    if whole.low == whole.high:
        return [value(whole.low, problem, ON_PAGES, unit), *(at(whole.low, window),) * 4]
    inner = sorted(min(max(end, whole.low), whole.high) for end in core)
    return [interval(*whole, problem, ON_PAGES, unit), *(at(end, window) for end in (*whole, *inner))]


def _states(picture: Picture, arm: str, adversary: Adversary) -> tuple[str, str]:
    """Return what is said of an arm while it is a candidate among others, and once that is settled."""
    if arm in picture.result.ties and not is_tie_by_handicap(picture.result):
        return "tied", ""
    if arm == picture.result.leader:
        return "looks best", "the best arm"
    point = picture.points[adversary].get(arm)
    if point is None:
        return "candidate", ""
    upto = percent(point, ROUND_FLOOR)
    return f"candidate beyond {upto}", f"excluded up to {upto}"


def _row(picture: Picture, i: int, cell: list[Any], *, decided: bool, is_out: bool) -> str:
    arm, declared = picture.result.arms[i], picture.declared
    words, *ends = cell
    is_best = decided and arm.name == picture.result.leader
    kinds = {
        "excluded": is_out,
        "best": is_best,
        "open-low": ends[0] < 0,
        "open-high": ends[1] > charts.WIDTH,
    }
    label = f"{_what(picture)}: {words}"
    drawn = charts.bar(ends, at(arm.observed, picture.window) if arm.n else -1.0, label)
    state = _states(picture, arm.name, declared.adversary)[is_out or is_best]
    return (
        f'<li class="{" ".join(["row", *(kind for kind, holds in kinds.items() if holds)])}" data-arm="{i}">'
        f'<span class="name">{text(arm.name)}</span><span class="picture">{drawn}</span>'
        f'<span class="where">{text(words)}</span><span class="state">{text(state)}</span></li>'
    )


def _what(picture: Picture) -> str:
    """Return what is drawn of an arm: of an arm by itself rounds claim nothing."""
    problem = picture.result.problem
    return "observed median" if problem.rounds else f"true {target_name(problem)}"


def view(picture: Picture) -> dict[str, Any]:
    """Return all that the script draws: per contamination every arm's interval, and who is a candidate."""
    result = picture.result
    if picture.leader is None:
        return {}
    return {
        "eps": picture.eps,
        "percent": [percent(eps) for eps in picture.eps],
        "what": _what(picture),
        "leader": result.problem.arms.index(picture.leader),
        "declared": _declared_mark(picture),
        "intervals": {  # the oblivious and the prescient adversary leave the same interval (audit 2.A)
            a.value: [[_cell(picture, ends) for ends in picture.intervals(eps, a)] for eps in picture.eps]
            for a in (Adversary.OBLIVIOUS, Adversary.MALICIOUS)
        },
        "adversaries": {a.value: _under(picture, a) for a in Adversary},
    }


def _under(picture: Picture, adversary: Adversary) -> dict[str, Any]:
    arms, points = picture.result.problem.arms, picture.points[adversary]
    sentences: dict[tuple[str, bool], int] = {}
    chosen = [sentences.setdefault(_sentence(picture, eps, adversary), len(sentences)) for eps in picture.eps]
    return {
        "intervals": "malicious" if adversary is Adversary.MALICIOUS else "oblivious",
        "points": [points.get(arm) for arm in arms],
        "states": [_states(picture, arm, adversary) for arm in arms],
        "sentences": [{"text": said, "decided": decided} for said, decided in sentences],
        "sentence": chosen,
        "openings": [_opening(eps, adversary) for eps in picture.eps],
        "breakdown": _breakdown_mark(picture, adversary),
    }


def _declared_mark(picture: Picture) -> dict[str, Any] | None:
    if picture.result.problem.contamination is None:
        return None
    eps = picture.declared.eps
    return {"at": picture.eps.index(eps), "text": f"declared {percent(eps)}"}


def _breakdown_mark(picture: Picture, adversary: Adversary) -> dict[str, Any] | None:
    ties = picture.result.ties
    points = [point for arm, point in picture.points[adversary].items() if arm not in ties]
    if not points:
        return None
    known = [point for point in points if point is not None]
    if len(known) < len(points):
        return {"at": 0, "text": "not certified at any share"}
    label = f"breakdown point {percent(min(known), ROUND_FLOOR)}"
    if min(known) > picture.eps[-1]:
        return {"at": len(picture.eps) - 1, "text": f"{label}, beyond this scale"}
    return {"at": max(i for i, eps in enumerate(picture.eps) if eps <= min(known)), "text": label}
