"""What a server sends about a study: its state, line in a list, page, log, readings and events."""

import csv
import io
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Raw

from truearm.claims.certificate import Status
from truearm.claims.plain import to_plain
from truearm.claims.result import Result
from truearm.report.export import cell, document
from truearm.report.numbers import name_of, names
from truearm.report.pages import parts
from truearm.report.words import PLAIN
from truearm.service import models
from truearm.service.studies import HostedStudy
from truearm.store import Database, Row

_TABLE = ("ticket", "arm", "draw", "value", "worker", "at")
_PART_ROWS = 5000
_READINGS = (  # in order of issue; the first condition is that of an index
    "SELECT told.ticket, told.ticket, told.arm, issued.draw, told.value, told.worker, told.at "
    "FROM truearm_event told JOIN truearm_event issued ON issued.study = told.study "
    "AND issued.ticket = told.ticket AND issued.kind IN ('issued', 'counted') "
    "WHERE told.study = %s AND told.kind IN ('told', 'released') "
    "AND told.kind = 'told' AND told.ticket > %s AND told.position <= %s ORDER BY told.ticket LIMIT %s"
)
_GIVEN = (
    "SELECT position, ticket, arm, draw, value, worker, at FROM truearm_event WHERE study = %s AND position > %s "
    "AND position <= %s AND kind = 'given' ORDER BY position LIMIT %s"
)
Reading = tuple[Any, ...]  # the columns of `_TABLE`


def state(hosted: HostedStudy) -> models.State:
    """Return the state of a study."""
    study, standing = hosted.study, hosted.study.standing
    result = hosted.result() if hosted.is_known else None
    arms = []
    for arm, (pulls, arrived) in hosted.counts().items():
        candidate = arm in (result.candidates if result is not None else standing.alive)
        shown = arm != standing.leader and not hosted.passive
        against = to_plain(standing.against.get(arm), null=True) if shown else None
        share = to_plain(standing.share(arm), null=True) if shown else None
        arms.append(models.Standing(arm, pulls, arrived, candidate, against, share))
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
        pulls=sum(arm.pulls for arm in arms),
        arms=arms,
        log_threshold=to_plain(standing.log_threshold, null=True),
        out=hosted.pending(study.out),
        result=None if result is None else document(result, {}),
    )


def summary(hosted: HostedStudy) -> models.Summary:
    """Return the line of a study in a list."""
    study, (pulls, arrived) = hosted.study, map(sum, zip(*hosted.counts().values(), strict=True))
    result = hosted.result() if arrived and hosted.is_known else None  # an only arm is done before its first pull
    leader = study.standing.leader if arrived else None
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


def live(hosted: HostedStudy) -> models.Live:
    """Return what the page of a study shows; a study that still runs is shown as if it were stopped now."""
    study, arms = hosted.study, hosted.study.problem.arms
    pulls, arrived = map(sum, zip(*hosted.counts().values(), strict=True))
    done, status, sections, picture = study.done, None, "", dict[str, Any]()
    if not arrived or (hosted.passive and not hosted.is_known):
        answer = "Ended without a reading" if study.done and len(arms) > 1 else "No reading yet"
        answer = "Some arms have no reading yet" if arrived else answer
        words = f"Comparing {names(arms)}." if len(arms) > 1 else ""
    else:
        done, result = study.done or hosted.passive, hosted.result()
        ended = study.done and result.status is Status.EXHAUSTED
        title, terms = ("Ended without a decision", PLAIN._replace(ended=True)) if ended else (None, PLAIN)
        found = parts(result, hosted.readings, certificate=done, title=title, terms=terms)
        # the pages of the service allow no inline styles: their script sets them
        sections, picture = found.sections.replace(' style="', ' data-style="'), found.picture
        answer, words = (found.title, found.summary) if done else (_so_far(hosted), "")
        status = _status(hosted, result) if done else None
    return models.Live(
        position=hosted.position,
        done=done,
        passive=hosted.passive,
        status=status,
        title=hosted.title,
        answer=answer,
        summary=words,
        pulls=pulls,
        out=hosted.pending(study.out),
        sections=sections,
        picture=picture,
    )


def _status(hosted: HostedStudy, result: Result | None) -> str | None:
    """Return the status of a study, None while it runs, as a passive one does until it is decided."""
    if result is None or (hosted.passive and result.status is Status.EXHAUSTED):
        return None
    return result.status.value


def _so_far(hosted: HostedStudy) -> str:
    standing = hosted.study.standing
    if standing.leader is None:
        return "Too early to tell"
    left = [arm for arm in standing.alive if arm != standing.leader]
    return f"{name_of(standing.leader)} leads; {names(left)} may still be better"


def log_entry(row: Row) -> models.Logged:
    """Return a row of the log as a server sends it."""
    notes = None if row.notes is None else Raw(row.notes.encode())  # byte for byte, for the digest
    return models.Logged(*row[:6], notes, row.digest.hex(), *row[8:])


def readings(database: Database, study: str, upto: int, *, passive: bool) -> Iterator[list[Reading]]:
    """Iterate over parts of the readings up to a position in the log, in order of issue.

    In order of arrival the quick ones would come first, but no order of readings may depend on their values.
    """
    statement, last = (_GIVEN, 0) if passive else (_READINGS, -1)
    while rows := database.execute(statement, (study, last, upto, _PART_ROWS)):
        yield [(ticket, arm, draw, float(value or "nan"), *rest) for _, ticket, arm, draw, value, *rest in rows]
        last = rows[-1][0]


def as_csv(found: Iterable[list[Reading]]) -> Iterator[bytes]:
    """Iterate over parts of a CSV in which no cell starts a formula."""
    yield (",".join(_TABLE) + "\n").encode()
    for part in found:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([cell(one) for one in row] for row in part)
        yield text.getvalue().encode()


def as_parquet(found: Iterable[list[Reading]]) -> Iterator[bytes]:
    """Return a Parquet file as one part."""
    try:
        import pyarrow as pa  # type: ignore[import-untyped]
        import pyarrow.parquet as pq  # type: ignore[import-untyped]
    except ModuleNotFoundError:
        msg = "Parquet needs pyarrow; install pyarrow on the server, or request readings.csv"
        raise models.Refused(501, "Not implemented", msg) from None
    kinds = (pa.int64(), pa.string(), pa.int64(), pa.float64(), pa.string(), pa.float64())
    file, schema = pa.BufferOutputStream(), pa.schema(list(zip(_TABLE, kinds, strict=True)))
    with pq.ParquetWriter(file, schema) as writer:
        for part in found:
            columns = list(zip(*part, strict=True)) or [()] * len(_TABLE)
            writer.write_table(pa.table([list(column) for column in columns], schema=schema))
    yield file.getvalue().to_pybytes()


def event_message(row: Row) -> bytes:
    """Return a row of the log as a server-sent event."""
    body = msgspec.json.encode(log_entry(row))
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (row.position, row.kind.encode(), body)
