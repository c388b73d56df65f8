"""The command line. Each verb is a module of this package, imported when it is called."""

import re
import sys
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from typing import Any

import click

from truearm import __version__
from truearm.cli import errors
from truearm.errors import TruearmError

_MODULES = {"report": "reports", "ledger": "reports", "serve": "service", "work": "service"}
"""Modules of the verbs that share one."""
_VERBS = {  # with their line in the help, which is shown without importing them
    "race": "Which command is best?",
    "time": "Which Python statement is fastest?",
    "analyze": "Which arm is best in a file of readings?",
    "evaluate": "Which command has the highest mean score on a list of items?",
    "ledger": "Which changes did a loop accept, and at what error rate?",
    "plan": "Can arms be told apart, and how many readings will it take?",
    "simulate": "How well do policies do where the truth is known?",
    "report": "Print what is known from a saved study or race.",
    "verify": "Does a result follow from its readings?",
    "serve": "Host studies for many people and machines.",
    "work": "Run measurements for a study on a server.",
}


class _Verbs(click.Group):
    """A group that imports a verb only when it is named, so that the first answer comes quickly."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(_VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _VERBS:
            return None
        module = import_module(f"truearm.cli.{_MODULES.get(cmd_name, cmd_name)}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(_VERBS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest the nearest verb if this one does not exist; --html works for one release."""
        end = args.index("--") if "--" in args else len(args)
        args[:end] = [re.sub(r"^--html(?==|$)", "--export-html", word) for word in args[:end]]
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = get_close_matches(args[0], _VERBS, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"the commands are {', '.join(_VERBS)}"
            raise click.UsageError(f"{error.message.rstrip('.')}; {hint}", ctx) from None

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's signature
        """Run a verb; an error about an argument names its option."""
        try:
            return super().invoke(ctx)
        except TruearmError as error:
            command = self.get_command(ctx, ctx.invoked_subcommand or "")
            assert command is not None
            raise errors.Failure(errors.as_options(str(error), command, error.argument)) from error

    def main(self, *args: Any, **extra: Any) -> Any:  # noqa: ANN401 - click's signature
        """Run a verb; an error becomes one sentence and exit code 2, which no gate uses."""
        sys.exit(errors.run_verb(partial(super().main, *args, **{**extra, "standalone_mode": False})))


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="truearm")
def main() -> None:
    """Find the best of several arms, even when some readings are wrong, and say how sure you are.

    \b
    truearm race 'gzip -kf data' 'xz -kf data'         which command is fastest?
    truearm time 'sorted(x)' 'x.sort()' -s 'x = [2]'   which code is fastest?
    truearm analyze data.csv --arm variant --value ms  which group is best?
    truearm plan --arms 5 --gap 0.5                    how many readings to take?
    """  # noqa: D301 - click wants the real backspace
