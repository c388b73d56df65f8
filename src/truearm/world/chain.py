"""The chain over a log: every event has a digest that covers the digest before it. Bytes in, bytes out.

The first digest covers the definition of the study, the last one (the head) everything. Whoever changes an event
has to compute all digests after it anew; who does that is found out only by a head that was noted elsewhere.
docs/log.md says it for other languages.
"""

from collections.abc import Iterable
from hashlib import sha256

_NAME = b"truearm log 3\0"


def first(definition: str) -> bytes:
    """Return the digest that a log begins with."""
    return sha256(_NAME + definition.encode(errors="surrogateescape")).digest()


def linked(before: bytes, row: Iterable[object]) -> bytes:
    """Return the digest of an event: its position and columns as text, nothing for None, apart by NUL."""
    position, kind, ticket, arm, draw, value, notes = row
    text = (  # faster than a join
        f"{position}\0{kind}\0{'' if ticket is None else ticket}\0{'' if arm is None else arm}\0"
        f"{'' if draw is None else draw}\0{'' if value is None else value}\0{'' if notes is None else notes}"
    )
    return sha256(before + text.encode(errors="surrogateescape")).digest()
