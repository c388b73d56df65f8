"""Results in words."""

from typing import TYPE_CHECKING

from truearm.certificate import Verdict
from truearm.problem import Problem

if TYPE_CHECKING:
    from truearm.result import Result


def summary(result: "Result") -> str:
    """Return a paragraph."""
    return f"{result.status}: {result.best}"


def html(result: "Result") -> str:
    """Return HTML."""
    return f"<p>{summary(result)}</p>"


def assumptions(problem: Problem, verdict: Verdict, design: str) -> tuple[str, ...]:
    """Return the assumptions."""
    return ()
