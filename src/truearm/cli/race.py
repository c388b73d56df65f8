"""`truearm race`: which command is best, with an error probability."""

from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import click

from truearm.cli import follower, gates, options, racing
from truearm.cli.asked import Asked, check, check_name
from truearm.cli.outcome import write_exports
from truearm.commands.measure import METRICS, SUITE
from truearm.policies.toptwo import START

# Options that may change when a saved race continues; all others are fixed in the file.
_AGAIN = {
    *("resume", "yes", "max_runs", "max_time", "fail_unless_best", "fail_if_worse_than", "strict", "as_json"),
    *(
        "quiet",
        "verbose",
        "time_unit",
        "export_json",
        "export_csv",
        "export_markdown",
        "export_html",
        "github_summary",
    ),
}
# Options that ask another question than a gate of a ledger, or would let it be decided twice.
_NOT_IN_GATES = {
    *("delta", "quantile", "at_least", "at_most", "control", "fdr", "metrics", "fail_unless_best"),
    *("fail_if_worse_than", "strict", "seed", "save", "resume"),
}
_NEW_FILE = options.NewFile(dir_okay=False)
_EXPORT = options.NewFile(dir_okay=False, allow_dash=True)


class _Race(click.Command):
    """A command whose -i may have a value, after an equals sign only: in `-i true` the word is a command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words; `-i=1,2` names exit codes that are no failures."""
        end = args.index("--") if "--" in args else len(args)
        accepted: list[int] = []
        words = [word for word in args[:end] if not _is_named(word, accepted)]
        rest = super().parse_args(ctx, [*map(_plain, words), *args[end:]])
        ctx.params["accepted"] = tuple(accepted)
        return rest


def _is_named(word: str, accepted: list[int]) -> bool:
    """Return True if a word names exit codes, and add them to the list."""
    option, equals, codes = word.partition("=")
    if option not in ("-i", "--ignore-failure") or not equals or codes == "all-non-zero":
        return False
    accepted.extend(options.exit_codes(codes))
    return True


def _plain(word: str) -> str:
    return "-i" if word in ("-i=all-non-zero", "--ignore-failure=all-non-zero") else word


@click.command("race", cls=_Race, context_settings={"max_content_width": 100})
@click.argument("commands", nargs=-1, metavar="COMMAND...")
@click.option(
    "-n", "--command-name", "names", multiple=True, metavar="NAME", help="Name of a command; repeatable."
)
@click.option(
    "--rev",
    "revisions",
    multiple=True,
    metavar="REV",
    help="Run the one command in this revision of the git repository, in its own worktree; repeatable. "
    ". is the working tree as it is; {rev} and {dir} in the command are its name and folder.",
)
@click.option("--build", metavar="CMD", help="Run once in each revision before the race; kept in a cache.")
@click.option(
    "--builds",
    type=options.Whole(1),
    metavar="N",
    help="Build each revision again for every round, N rounds at most, with another {seed} in --build (also "
    "$TRUEARM_SEED) to change its memory layout: the answer is about revisions, not about two binaries.",
)
@click.option(
    "--runs-per-build",
    type=options.Whole(1),
    metavar="R",
    help="With --builds: the reading of a build is the median of R runs, of all builds in turn; 5 by default.",
)
@click.option(
    "--best-of",
    type=options.Whole(1),
    default=1,
    metavar="N",
    help="The reading of a command in a round is the best of N runs, of all commands in turn: fewer rounds where "
    "a load disturbs many runs. Slowness that only some runs have is not seen.",
)
@click.option(
    "--metric",
    type=click.Choice(METRICS),
    is_eager=True,  # a tolerance is read by it
    default="wall",
    show_default=True,
    help="What is measured: wall time, user and system time (cpu), peak memory (of the command itself, from about "
    "4.9 MiB on, the least that can be shown), or the number on the last line a command prints (stdout).",
)
@click.option(
    "--metrics",
    type=click.Choice([SUITE]),
    is_eager=True,
    help="A suite: one run prints a flat JSON object of numbers, and every number is compared with that of one "
    "command (--fail-if-worse-than, --control, or the first), error controlled over all of them.",
)
@click.option("--higher", multiple=True, metavar="METRIC", help="A metric of which more is better; repeatable.")
@click.option(
    "--goal", type=click.Choice(["min", "max"]), help="Which is better; min by default, required for stdout."
)
@click.option(
    "--quantile",
    type=options.QUANTILE,
    help="Compare this quantile of each command (0.5 is the median, 0.95 the 95th percentile) instead "
    "of which wins more rounds side by side.",
)
@options.shared("at_least", "at_most", "delta", "race_contamination", "time_tolerance")
@click.option("-w", "--warmup", type=options.Whole(0), default=0, help="Runs of each command that do not count.")
@click.option(
    "--warmup-every-run",
    is_flag=True,
    help="Precede every run by an unmeasured run of the same command, hooks included: what the run before left "
    "behind is then the same for all. Takes twice as long.",
)
@click.option("-r", "--runs", type=options.Whole(1), help="Exactly this many runs of each command: -m N -M N.")
@click.option(
    "-m",
    "--min-runs",
    type=options.Whole(1),
    help=f"Runs of each command before the first decision; 1 by default, {START} for quantiles and shares.",
)
@click.option("-M", "--max-runs", type=options.Whole(1), help="Stop when a command has had this many runs.")
@click.option(
    "--max-time",
    type=options.DURATION,
    help="Stop after this many seconds (or 5m, 1h); 3 minutes by default, unless -M or -r set a limit.",
)
@click.option(
    "--control",
    metavar="NAME",
    help="The one you have: which others are better than it? Ratios are relative to it.",
)
@click.option(
    "--fdr",
    is_flag=True,
    help="With --control or --metrics: bound the mean share of false ones among what is named, not the chance of "
    "any.",
)
@click.option(
    "-s",
    "--setup",
    multiple=True,
    metavar="CMD",
    help="Run once before the race.",
)
@click.option("-p", "--prepare", multiple=True, metavar="CMD", help="Run before every run, not measured.")
@click.option("-C", "--conclude", multiple=True, metavar="CMD", help="Run after every run, not measured.")
@click.option("-c", "--cleanup", multiple=True, metavar="CMD", help="Undo the setup; run once after the race.")
@click.option(
    "-P", "--parameter-scan", nargs=3, multiple=True, metavar="VAR MIN MAX", help="Race all numbers for {VAR}."
)
@click.option("-D", "--parameter-step-size", metavar="STEP", help="Step of the scans; 1 by default.")
@click.option(
    "-L", "--parameter-list", nargs=2, multiple=True, metavar="VAR A,B,...", help="Race all values for {VAR}."
)
@click.option(
    "-S",
    "--shell",
    default="auto",
    metavar="auto|default|none|PATH",
    help="One shell for all if one needs it, /bin/sh, none, or this.",
)
@click.option("-N", "no_shell", is_flag=True, help="The same as --shell none.")
@click.option("--env", multiple=True, metavar="NAME=VALUE", help="Set a variable for the commands; repeatable.")
@click.option("--cwd", metavar="DIRECTORY", help="Directory to run the commands in.")
@click.option("--input", "stdin", default="null", metavar="null|FILE", help="Standard input of the commands.")
@click.option(
    "--output",
    "stdout",
    metavar="null|pipe|inherit|FILE",
    help="Where their standard output goes; null by default.",
)
@click.option("--show-output", is_flag=True, help="Show what commands print: --output inherit.")
@click.option(
    "--timeout",
    type=options.DURATION,
    help="Kill a run after this many seconds. It counts as worse than any run that ended. A hook (-s, -p, -C, -c) "
    "that takes longer is killed too, and ends the race.",
)
@click.option(
    "-i",
    "--ignore-failure",
    is_flag=True,
    help="Count failed runs as missing readings, at their worst, instead of stopping. -i=1,2 says that these exit "
    "codes are not failures: such runs count as measured. 126 and 127 (not run, not found) stop unless named.",
)
@click.option(
    "--seed", type=options.Whole(0), help="Seed of the order of runs inside a batch; recorded in any case."
)
@click.option(
    "--ledger",
    type=_NEW_FILE,
    metavar="FILE",
    help="Decide whether a command is better than --base, as one of many gates with one error rate.",
)
@click.option("--base", metavar="NAME", help="With --ledger: the command in use now; the other is the candidate.")
@click.option("--expected", type=options.Whole(1), help="Gates expected in a new ledger; 100 by default.")
@click.option("--save", type=_NEW_FILE, metavar="FILE", help="Log every reading in FILE.")
@click.option("--resume", type=click.Path(dir_okay=False), metavar="FILE", help="Continue the race in FILE.")
@click.option("-y", "--yes", is_flag=True, help="Run the commands of FILE even if you did not start it.")
@options.shared("json")
@click.option("-q", "--quiet", is_flag=True, help="No live table, and no text but the result.")
@click.option(
    "-v", "--verbose", is_flag=True, help="Also mean, deviation and range, and what the answer rests on."
)
@click.option(
    "-u", "--time-unit", type=click.Choice(["microsecond", "millisecond", "second"]), help="Unit of times shown."
)
@click.option(
    "--export-json",
    type=_EXPORT,
    metavar="FILE",
    help="Everything, with hyperfine's `results` in it; - is standard output.",
)
@click.option("--export-csv", type=_EXPORT, metavar="FILE", help="One row per command, hyperfine's columns first.")
@click.option("--export-markdown", type=_EXPORT, metavar="FILE", help="The table in Markdown.")
@click.option("--export-html", type=_EXPORT, metavar="FILE", help="A self-contained page.")
@click.option(
    "--github-summary",
    is_flag=True,
    help="In a GitHub job: append the table to its summary, and annotate it with what failed.",
)
@click.option("--fail-unless-best", metavar="NAME", help="Exit with 1 if NAME is not the best.")
@click.option(
    "--fail-if-worse-than",
    metavar="NAME",
    help="Exit with 1 if a command (with --metrics: one of its metrics) is worse than NAME by more than the "
    "tolerance.",
)
@click.option("--strict", is_flag=True, help="Exit with 4 also after an alarm.")
@click.pass_context
def race_command(ctx: click.Context, /, **chosen: Any) -> None:  # noqa: ANN401 - the attributes of `Asked`
    """Find the best command: run all of them in rounds, side by side, until the winner is certain.

    \b
    truearm race 'gzip -kf data' 'zstd -kf data'          which is faster?
    truearm race 'sort data'                              one command alone: its median, and how sure
    truearm race -w 3 -L n 1,6,9 'gzip -{n} -kf data'     which level is fastest?
    truearm race --tolerance 2% 'sort a' 'sort -S1G a'    within 2% is good enough
    truearm race --metric memory './old' './new'          which needs less memory?
    truearm race --metric stdout --goal max './train --lr 0.1' './train --lr 0.3'
    truearm race --save r.db 'cmd1' 'cmd2'                and after Ctrl-C or a crash:
    truearm race --resume r.db
    truearm race --rev main --rev . --build make -- ./bench --size 10    two revisions of a repository
    truearm race --rev main --rev . --builds 20 --build 'make SEED={seed}' -- ./bench    ... over random builds
    truearm race -n old './old' -n a './a' -n b './b' --control old        which are better than old?
    truearm race -n old './old' -n new './new' --fail-if-worse-than old --tolerance 3%
    truearm race --ledger loop.db --base old -n old './old' -n new './new'   accept new? (docs/ledger.md)
    truearm race --metrics json --rev main --rev . --fail-if-worse-than main --tolerance 5% -- ./bench

    A round runs every command that is left once, in random order, so a changing load affects all of them alike
    and does not spoil the answer (--contamination). Commands run without a shell unless one of them uses shell
    syntax; then all run through the same shell.

    Exit codes: 0 decided; 1 a gate failed; 2 usage, or a command failed; 3 not decided; 4 doubtful. With --ledger:
    0 accepted; 1 certified not better; 3 the budget ended, not accepted; 4 doubtful, not accepted.
    """  # noqa: D301 - click wants the control character
    if chosen["ledger"] is not None and (given := _list_given(ctx, _NOT_IN_GATES)):
        msg = f"--ledger decides in rounds, in one race, at a level of its own; remove {', '.join(given)}"
        raise click.UsageError(msg)
    asked = check(Asked(**chosen))
    with ExitStack() as stack:
        if asked.resume:
            _check_nothing_new(ctx, asked)
            race = racing.resume(asked.resume, stack, yes=asked.yes)
            asked.builds = race.setting.random_builds and race.setting.random_builds.rounds
            asked.best_of = race.setting.best_of
        else:
            race = racing.start(asked, stack)
        if race.follower is not None:
            if asked.fail_if_worse_than is not None:
                race.follower.guard(asked.fail_if_worse_than)
            failure, late = racing.run_commands(race, asked)
            code = follower.show(race, race.follower, asked, late=late)
            if failure is not None:
                raise failure
            ctx.exit(code)
        outcome = racing.run_race(race, asked)
        if race.gate is not None and race.ledger is not None:
            outcome = replace(outcome, decision=race.ledger.record(race.gate, outcome.result))
    if outcome.failure is None:
        aside = "-" in asked.exports.values()  # a document has standard output for itself
        click.echo(outcome.document() if asked.as_json else outcome.text(err=aside), err=aside)
    exports = write_exports(outcome.makers(), asked)
    if outcome.failure is not None:
        raise outcome.failure
    best = check_name(asked.fail_unless_best, outcome.setting)
    code = gates.exit_code(outcome.result, unless_best=best, gate=outcome.verdict, strict=asked.strict)
    if outcome.decision is not None:
        code = gates.VERDICT_CODES[outcome.decision.verdict]
    notice = outcome.budget is not None and not outcome.result.alarms
    if asked.github_summary and (line := gates.annotation(code, outcome.sentences, notice=notice)):
        click.echo(line, err=True)
    ctx.exit(exports.code(code))


def _check_nothing_new(ctx: click.Context, asked: Asked) -> None:
    others = {parameter.name or "" for parameter in ctx.command.params} - {*_AGAIN, "commands", ""}
    given = [*_list_given(ctx, others), *(["-i"] if asked.accepted else [])]
    if asked.commands or given:
        what = "commands" if asked.commands else ", ".join(given)
        msg = f"--resume takes {what} from the file, where they were fixed; remove them"
        raise click.UsageError(msg)


def _list_given(ctx: click.Context, names: Collection[str]) -> list[str]:
    """Return which of these options are on the command line."""
    return [
        parameter.opts[-1]
        for parameter in ctx.command.params
        if parameter.name in names
        and ctx.get_parameter_source(parameter.name or "") is click.core.ParameterSource.COMMANDLINE
    ]
