"""A hosted study as the models that a server sends: its state, its line in a list, its page, its log."""

import math
from functools import partial

from msgspec import Raw

from truearm.claims.certificate import Status
from truearm.claims.result import Result
from truearm.report.export import document
from truearm.report.numbers import count, name_of, names
from truearm.report.pages import parts
from truearm.report.words import PLAIN
from truearm.service import models
from truearm.service.studies import HostedStudy
from truearm.store import Row

_MAX_NAMED = 3  # arms
_ENDED = "Ended without a decision"
_ENDED_VOICE = PLAIN._replace(ended=True)


def state(hosted: HostedStudy) -> models.State:
    """Return the state of a study."""
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
        arms.append(models.Standing(arm, pulls, told, candidate, _finite(against) if shown else None, share))
    return models.State(
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
        out=hosted.pending(hosted.study.out),
        result=None if result is None else document(result, {}),
    )


def live(hosted: HostedStudy) -> models.Live:
    """Return what the page of a study shows; of one that still runs, as if it were stopped now."""
    study, tapes = hosted.study, hosted.given if hosted.passive else hosted.study.readings
    shown = partial(
        models.Live,
        hosted.position,
        passive=hosted.passive,
        title=hosted.title,
        out=hosted.pending(hosted.study.out),
    )
    pulls = sum(map(len, hosted.given.values())) if hosted.passive else study.pulls
    if not _count_told(hosted) or (hosted.passive and not _is_known(hosted)):
        empty = "Ended without a reading" if study.done and len(study.problem.arms) > 1 else "No reading yet"
        answer = "Some arms have no reading yet" if _count_told(hosted) else empty
        summary = f"Comparing {names(study.problem.arms)}." if len(study.problem.arms) > 1 else ""
        return shown(
            done=study.done, status=None, answer=answer, summary=summary, pulls=pulls, sections="", picture={}
        )
    done, result = study.done or hosted.passive, hosted.result()
    ended = study.done and result.status is Status.EXHAUSTED
    found = parts(
        result, tapes, certificate=done, title=_ENDED if ended else None, voice=_ENDED_VOICE if ended else PLAIN
    )
    # the pages of the service allow no inline styles: their script sets them
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


def _status(hosted: HostedStudy, result: Result | None) -> str | None:
    """Return the status of a study, None while it runs, as a passive one does until it is decided."""
    if result is None or (hosted.passive and result.status is Status.EXHAUSTED):
        return None
    return result.status.value


def _count_told(hosted: HostedStudy) -> int:
    return sum(map(len, hosted.given.values())) if hosted.passive else hosted.study.pulls - hosted.study.in_flight


def _so_far(hosted: HostedStudy) -> str:
    standing = hosted.study.standing
    if standing.leader is None:
        return "Too early to tell"
    left = [arm for arm in standing.alive if arm != standing.leader]
    others = names(left) if len(left) <= _MAX_NAMED else f"{count(len(left))} others"
    return f"{name_of(standing.leader)} leads; {others} may still be better"


def _is_known(hosted: HostedStudy) -> bool:
    return hosted.study.done if not hosted.passive else all(hosted.given.values())


def _counts(hosted: HostedStudy) -> dict[str, tuple[int, int]]:
    return hosted.study.log.counts()


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def summary(hosted: HostedStudy) -> models.Summary:
    """Return the line of a study in a list."""
    study, standing = hosted.study, hosted.study.standing
    pulls = sum(map(len, hosted.given.values())) if hosted.passive else study.pulls
    told = _count_told(hosted)
    result = hosted.result() if told and _is_known(hosted) else None  # an only arm is done before its first pull
    leader = standing.leader if told else None
    return models.Summary(
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


def log_entry(row: Row) -> models.Logged:
    """Return a row of the log as a server sends it."""
    notes = None if row.notes is None else Raw(row.notes.encode())  # byte for byte, for the digest
    return models.Logged(*row[:6], notes, row.digest.hex(), *row[8:])
