"""What a job on GitHub is told beside its summary: one line, which the page of the job shows."""

from truearm.cli import gates
from truearm.cli.telling import Outcome, sentences
from truearm.errors import printable

_TITLES = {
    gates.FAILED: "A gate failed",
    gates.UNDECIDED: "Not decided",
    gates.DOUBTFUL: "Doubtful",
}


def annotation(outcome: Outcome, code: int) -> str:
    """Return the line that annotates a job; "" if there is nothing to look at."""
    if code == gates.GOOD:
        return ""
    quiet = outcome.given_up and not outcome.result.alarms
    level = "error" if code == gates.FAILED else "notice" if quiet else "warning"
    return command(level, _TITLES[code], sentences(outcome))


def command(level: str, title: str, message: str) -> str:
    r"""Return a workflow command of GitHub's; nothing in the message becomes another one."""
    coded = printable(message, lines=True).replace("%", "%25").replace("\n", "%0A")
    return f"::{level} title={title}::{coded}"
