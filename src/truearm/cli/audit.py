"""`truearm audit`: how many readings are bad at most, from some that were checked at the source."""

import click

from truearm.claims.audit import audit
from truearm.claims.plain import to_plain
from truearm.cli import options
from truearm.cli.screen import Screen
from truearm.problem import Adversary
from truearm.report.export import json_text


@click.command("audit")
@click.argument("checked", type=options.Whole(1))
@click.argument("bad", type=options.Whole(0))
@click.option(
    "--arms", type=options.Whole(1), default=1, show_default=True, help="How many arms were checked so, each."
)
@click.option(
    "--delta", type=options.DELTA, default="0.05", show_default=True, help="The chance that the bound is wrong."
)
@click.option(
    "--design",
    type=click.Choice(["sequential", "fixed"]),
    default="sequential",
    show_default=True,
    help="'fixed' if the number of checks was chosen in advance; 'sequential' holds however you stop.",
)
@click.option(
    "--adversary", type=click.Choice([a.value for a in Adversary]), default="oblivious", show_default=True
)
@options.json_option
def audit_command(
    checked: int, bad: int, *, arms: int, delta: float, design: str, adversary: str, as_json: bool
) -> None:
    """Return a valid --contamination from readings that were checked: CHECKED of each arm, BAD of them bad.

    \b
    truearm audit --arms 3 100 1               100 readings of each of 3 arms checked, 1 of them bad
    truearm audit --design fixed 59 0          59 were to be checked, and all were good

    Draw the readings to check at random after they were recorded.
    """  # noqa: D301 - click wants the control character
    found = audit(checked, bad, arms=arms, delta=delta, design=design, adversary=adversary)  # type: ignore[arg-type]
    click.echo(json_text(to_plain(found)) if as_json else Screen.here().filled(str(found)))
