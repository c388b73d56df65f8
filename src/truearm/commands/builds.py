"""Build revisions again for every round, so that a race is about revisions and not about two binaries.

Where code lands in memory changes how fast it runs. Each build has a seed of its own, which only changes the
layout; the reading of a round is the median of several runs of its build, and a build serves one round
(extensions U1, U2).
"""

import math
import secrets
import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from truearm.commands.metrics import NOTE
from truearm.commands.revisions import SEED, Revision, cache_folder, digest, make, remove
from truearm.errors import InvalidArgument

MAX_SEED = 2**31 - 1  # from 1 on: linkers take 0 and -1 for something else
EQUAL_BUILDS = 4  # with different seeds show that the seed is ignored: two of few layouts may be equal by chance

Run = tuple[float, Mapping[str, Any]]
"""A reading, and what the log notes about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Builds:
    """How the revisions of a race are built.

    Parameters
    ----------
    command
        The build command.
    revisions
        By arm.
    rounds
        The largest number of rounds, each with a new build of every revision; None builds once for all rounds.
    runs
        Runs of a build in its round.
    """

    command: str
    revisions: Mapping[str, Revision]
    rounds: int | None = None
    runs: int = 1

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Remove the folders of the builds when the body ends."""
        tops, cache = [Path(one.top) for one in self.revisions.values()], cache_folder()
        if outside := [top for top in tops if not top.resolve().is_relative_to(cache.resolve())]:
            msg = f"builds of this race are in {str(outside[0])!r}, not in the cache {str(cache)!r}; race again"
            raise InvalidArgument(msg)  # a log may name any folder, and these are removed
        try:
            yield
        finally:
            for top in tops:
                remove(top)


class Builder:
    """Makes the builds of a race; refuses a command that makes the same files for every seed."""

    def __init__(self, builds: Builds) -> None:
        self._builds = builds
        self._digests: dict[str, list[str]] = {arm: [] for arm in builds.revisions}

    @property
    def made(self) -> int:
        """How many builds were made."""
        return sum(map(len, self._digests.values()))

    def build(self, arm: str) -> dict[str, Any]:
        """Build a revision with a new seed, in place of its last build, and return what the log notes."""
        revision, digests = self._builds.revisions[arm], self._digests[arm]
        seed = 1 + secrets.randbelow(MAX_SEED)
        make(revision, self._builds.command, seed)
        digests.append(digest(Path(revision.top)))
        if len(digests) == EQUAL_BUILDS and len(set(digests)) == 1:
            msg = (
                f"--build {self._builds.command!r} made the same files of {revision.name!r} with {EQUAL_BUILDS} "
                f"seeds: the build ignores {{seed}}; let it, or ${SEED}, change the layout (docs/revisions.md)"
            )
            raise InvalidArgument(msg)
        return {"seed": seed, "build": digests[-1]}


def median_run(runs: Sequence[Run]) -> tuple[float, dict[str, Any]]:
    """Return the median of the runs of one build, missing if one is, and what the log notes about them."""
    values, notes = [value for value, _ in runs], [details for _, details in runs]
    details: dict[str, Any] = {name: _median(note.get(name) for note in notes) for name in _MEASURED}
    details["exit_code"] = next((note["exit_code"] for note in notes if note.get("exit_code")), 0)
    details.update({name: True for name in ("timed_out", "left_behind") if any(note.get(name) for note in notes)})
    details["runs"] = [value if math.isfinite(value) else None for value in values]
    if all(NOTE in note for note in notes):
        names = dict.fromkeys(name for note in notes for name in note[NOTE])
        details[NOTE] = {name: _median(note[NOTE].get(name) for note in notes) for name in names}
    return math.nan if any(map(math.isnan, values)) else statistics.median(values), details


_MEASURED = ("wall", "user", "system", "peak_memory")


def _median(values: Iterator[float | None]) -> float | None:
    known = list(values)
    return None if None in known else statistics.median(known)  # type: ignore[type-var]
