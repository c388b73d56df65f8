"""A hosted study as what travels: its state, its line in a list, its log."""

import math
from functools import partial

from msgspec import Raw

from truearm.claims.certificate import Status
from truearm.claims.result import Result
from truearm.report.export import document
from truearm.report.numbers import count, name_of, names
from truearm.report.pages import parts
from truearm.report.words import PLAIN
from truearm.service import wire
from truearm.service.database import Row
from truearm.service.hosted import Hosted

_FEW = 3  # arms that are named one by one
_ENDED = "Ended without a decision"
_LAST = PLAIN._replace(ended=True)  # and nothing will follow


def state(hosted: Hosted) -> wire.State:
    """Return where a study stands."""
    study, standing = hosted.study, hosted.study.standing
    result = hosted.result() if _is_known(hosted) else None
    tapes = (
        {arm: (len(told), len(told)) for arm, told in hosted.given.items()} if hosted.passive else _counts(hosted)
    )
    arms = []
    for arm, (pulls, told) in tapes.items():
        against = standing.against.get(arm)
        candidate = arm in (result.candidates if result is not None else standing.alive)
        shown = arm != standing.leader and not hosted.passive
        share = _finite(standing.share(arm)) if shown else None
        arms.append(wire.Standing(arm, pulls, told, candidate, _finite(against) if shown else None, share))
    return wire.State(
        id=hosted.name,
        title=hosted.title,
        began=hosted.began,
        position=hosted.position,
        head=hosted.digest.hex(),
        passive=hosted.passive,
        definition=hosted.definition,
        done=study.done,
        leader=standing.leader if result is None else result.leader,
        candidates=list(standing.alive if result is None else result.candidates),
        pulls=sum(pulls for pulls, _ in tapes.values()),
        arms=arms,
        log_threshold=_finite(standing.log_threshold),
        out=_out(hosted),
        result=None if result is None else document(result, {}),
    )


def live(hosted: Hosted) -> wire.Live:
    """Return what the page of a study shows; of one that goes on, as if it were stopped here."""
    study, tapes = hosted.study, hosted.given if hosted.passive else hosted.study.readings
    shown = partial(wire.Live, hosted.position, passive=hosted.passive, title=hosted.title, out=_out(hosted))
    pulls = sum(map(len, hosted.given.values())) if hosted.passive else study.pulls
    if not _told(hosted) or (hosted.passive and not _is_known(hosted)):
        empty = "Ended without a reading" if study.done and len(study.problem.arms) > 1 else "No reading yet"
        answer = "Some arms have no reading yet" if _told(hosted) else empty
        summary = f"Compared are {names(study.problem.arms)}." if len(study.problem.arms) > 1 else ""
        return shown(
            done=study.done, status=None, answer=answer, summary=summary, pulls=pulls, sections="", picture={}
        )
    done, result = study.done or hosted.passive, hosted.result()
    ended = study.done and result.status is Status.EXHAUSTED
    found = parts(
        result, tapes, certificate=done, title=_ENDED if ended else None, voice=_LAST if ended else PLAIN
    )
    # a page of the service allows no style in its text: its script puts these where they belong
    sections = found.sections.replace(' style="', ' data-style="')
    answer, summary = (found.title, found.summary) if done else (_so_far(hosted), "")
    return shown(
        done=done,
        status=_status(hosted, result) if done else None,
        answer=answer,
        summary=summary,
        pulls=pulls,
        sections=sections,
        picture=found.picture,
    )


def _status(hosted: Hosted, result: Result | None) -> str | None:
    """Return what became of a study, None while it goes on, as one that only takes readings does if undecided."""
    if result is None or (hosted.passive and result.status is Status.EXHAUSTED):
        return None
    return result.status.value


def _told(hosted: Hosted) -> int:
    return sum(map(len, hosted.given.values())) if hosted.passive else hosted.study.pulls - hosted.study.in_flight


def _out(hosted: Hosted) -> list[wire.Out]:
    """Return the pulls that are out, with who has them."""
    nobody = None, None
    return [wire.Out(p.ticket, p.arm, *hosted.holders.get(p.ticket, nobody)) for p in hosted.study.out]


def _so_far(hosted: Hosted) -> str:
    standing = hosted.study.standing
    if standing.leader is None:
        return "Too early to tell"
    left = [arm for arm in standing.alive if arm != standing.leader]
    others = names(left) if len(left) <= _FEW else f"{count(len(left))} others"
    return f"{name_of(standing.leader)} leads; {others} may still be better"


def _is_known(hosted: Hosted) -> bool:
    return hosted.study.done if not hosted.passive else all(hosted.given.values())


def _counts(hosted: Hosted) -> dict[str, tuple[int, int]]:
    return hosted.study.log.counts()


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def summary(hosted: Hosted) -> wire.Summary:
    """Return the line of a study in a list."""
    study, standing = hosted.study, hosted.study.standing
    pulls = sum(map(len, hosted.given.values())) if hosted.passive else study.pulls
    told = _told(hosted)
    result = hosted.result() if told and _is_known(hosted) else None  # an only arm is done before its first pull
    leader = standing.leader if told else None
    return wire.Summary(
        id=hosted.name,
        title=hosted.title,
        began=hosted.began,
        arms=len(study.problem.arms),
        pulls=pulls,
        out=study.in_flight,
        done=study.done,
        status=_status(hosted, result),
        best=None if result is None else result.best,
        leader=leader if result is None else result.leader,
    )


def logged(row: Row) -> wire.Logged:
    r"""Return a row of the log as it travels."""
    notes = None if row.notes is None else Raw(row.notes.encode())  # word for word, for the digest
    return wire.Logged(*row[:6], notes, row.digest.hex(), *row[8:])
