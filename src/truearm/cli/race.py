"""`truearm race`: which command is best, with an error probability."""

import re
from contextlib import ExitStack
from typing import Any

import click

from truearm.cli import race_runner
from truearm.cli.answer import show
from truearm.cli.options import TIMES, declare, exit_codes, explicit_options
from truearm.cli.race_options import RaceOptions, check
from truearm.commands.measure import SUITE
from truearm.commands.process import check_posix
from truearm.policies import START

_OPTIONS = f"""
-n, --command-name NAME...  Name of a command; repeatable.
--rev REV...  Run the one command in this revision of the git repository, in its own worktree; repeatable. '.' is
    the working tree as it is; {{rev}} and {{dir}} in the command are its name and folder.
--build CMD  Run once in each revision before the race; built files are kept in a cache.
--builds N  Build each revision again for every round, N rounds at most, with another {{seed}} in --build (also
    $TRUEARM_SEED) to change its memory layout: the answer is about revisions, not about two binaries.
--runs-per-build N  With --builds: the reading of a build is the median of N runs, of all builds in turn; 5 by
    default.
--best-of N  The reading of a command in a round is the best of N runs, of all commands in turn: fewer rounds
    where a load disturbs many runs. Slowness that only some runs have is not seen. [default: 1]
--metric wall|cpu|memory|stdout  What is measured: wall time, user and system time (cpu), peak memory (of the
    command itself; less than about 4.9 MiB cannot be shown), or the number on the last line a command
    prints (stdout). [default: wall]
--metrics json  A suite: one run prints a flat JSON object of numbers, and every number is compared with that of
    one command (--fail-if-worse-than, --control, or the first), error controlled over all of them.
--higher METRIC...  A metric where higher is better; repeatable.
--goal min|max  Whether smaller or larger readings are better; min by default, required for stdout.
--quantile QUANTILE  Compare this quantile of each command (0.5 is the median, 0.95 the 95th percentile) instead
    of which wins more rounds side by side.
+ at-least at-most delta
{TIMES.strip()}
-w, --warmup COUNT  Runs of each command that do not count. [default: 0]
--warmup-every-run  Precede every run by an unmeasured run of the same command, hooks included: what the run
    before left behind is then the same for all. Takes twice as long.
-r, --runs N  Exactly this many runs of each command: -m N -M N.
-m, --min-runs N  Runs of each command before the first decision; 1 by default, {START} for quantiles and shares.
-M, --max-runs N  Stop when a command has had this many runs.
--max-time SECONDS  Stop after this many seconds (or 5m, 1h); 3 minutes by default, unless -M or -r set a limit.
+ control fdr
-s, --setup CMD...  Run once before the race.
-p, --prepare CMD...  Run before every run, not measured.
-C, --conclude CMD...  Run after every run, not measured.
-c, --cleanup CMD...  Undo the setup; run once after the race.
-P, --parameter-scan VAR MIN MAX...  Race all numbers for {{VAR}}.
-D, --parameter-step-size STEP  Step of the scans; 1 by default.
-L, --parameter-list VAR A,B...  Race all values for {{VAR}}.
-S, --shell auto|default|none|PATH  One shell for all if one needs it, /bin/sh, none, or this. [default: auto]
-N  The same as --shell none.
--env NAME=VALUE...  Set a variable for the commands; repeatable.
--cwd DIRECTORY  Directory to run the commands in.
--input null|FILE  Standard input of the commands. [default: null]
--output null|pipe|inherit|FILE  Where their standard output goes; null by default.
--show-output  Show what commands print: --output inherit.
--timeout SECONDS  Kill a run after this many seconds. It counts as worse than any run that ended. A hook (-s, -p,
    -C, -c) that takes longer is killed too, and ends the race.
-i, --ignore-failure  Count failed runs as missing readings, at their worst, instead of stopping. -i=1,2 means
    that these exit codes are not failures: such runs count as measured. 126 and 127 (not run, not found) stop
    unless named.
+ seed
--ledger FILE  Decide whether a command is better than --base, as one of many gates with one error rate.
--base NAME  With --ledger: the command in use now; the other is the candidate.
--expected N  Gates expected in a new ledger; 100 by default.
--save FILE  Log every reading in FILE.
--resume PATH  Continue the race in this file.
-y, --yes  Run the commands of the file even if you did not start it.
+ json quiet verbose
-u, --time-unit microsecond|millisecond|second  Unit of times shown.
--export-json FILE|-  Everything, with hyperfine's `results` in it; - is standard output.
--export-csv FILE|-  One row per command, hyperfine's columns first.
--export-markdown FILE|-  The table in Markdown.
+ export-html
--github-summary  In a GitHub job: append the table to its summary, and annotate a failed gate.
--fail-unless-best NAME  Exit with 1 if NAME is not the best.
--fail-if-worse-than NAME  Exit with 1 if a command (with --metrics: one of its metrics) is worse than NAME by
    more than the tolerance.
--strict  Exit with 4 also after an alarm.
"""
_MORE: dict[str, dict[str, Any]] = {
    "metric": {"is_eager": True},  # the type of a tolerance depends on it
    "metrics": {"is_eager": True, "type": click.Choice([SUITE]), "metavar": None},
    "contamination": {"default": "auto"},
}


class _Race(click.Command):
    """A command whose -i may have a value, only after an equals sign: in `-i true` the word is a command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; `-i=1,2` names exit codes that are not failures."""
        end = args.index("--") if "--" in args else len(args)
        accepted, words = list[int](), list[str]()
        for word in args[:end]:
            found = re.fullmatch(r"(?:-i|--ignore-failure)=(.*)", word, re.DOTALL)
            if found and found[1] != "all-non-zero":
                accepted += exit_codes(found[1])
            else:
                words.append("-i" if found else word)
        rest = super().parse_args(ctx, [*words, *args[end:]])
        ctx.params |= {"accepted": tuple(accepted)} if accepted else {}
        return rest


@click.command("race", cls=_Race)
@click.argument("commands", nargs=-1, metavar="COMMAND...")
@declare(_OPTIONS, **_MORE)
@click.pass_context
def race_command(ctx: click.Context, /, **chosen: Any) -> None:  # noqa: ANN401 - those of `RaceOptions`
    """Find the best command: run all of them in rounds, side by side, until the winner is certain.

    \b
    truearm race 'gzip -kf data' 'zstd -kf data'          which is faster?
    truearm race 'sort data'                              one alone: its median
    truearm race -w 3 -L n 1,6,9 'gzip -{n} -kf data'     which level is fastest?
    truearm race --tolerance 2% 'sort a' 'sort -S1G a'    within 2% is good enough
    truearm race --metric memory './old' './new'          which needs less memory?
    truearm race --metric stdout --goal max './train --lr 0.1' './train --lr 0.3'
    truearm race --save r.db 'cmd1' 'cmd2'                after Ctrl-C or a crash:
    truearm race --resume r.db
    truearm race --rev main --rev . --build make -- ./bench    two revisions
    truearm race --rev main --rev . --builds 20 --build 'make N={seed}' -- ./bench
    truearm race -n old ./old -n a ./a -n b ./b --control old  better than old?
    truearm race -n old ./old -n new ./new --fail-if-worse-than old --tolerance 3%
    truearm race --ledger loop.db --base old -n old ./old -n new ./new
    truearm race --metrics json --rev main --rev . --control main -- ./bench

    A round runs every command that is left once, in random order, so a changing load affects all of them alike
    and does not spoil the answer (--contamination). Commands run without a shell unless one of them uses shell
    syntax; then all run through the same shell.

    Exit codes: 0 decided; 1 a gate failed; 2 usage, or a command failed; 3 not decided; 4 doubtful. With --ledger:
    0 accepted; 1 certified not better; 3 the budget ended, not accepted; 4 doubtful, not accepted.
    """  # noqa: D301 - click wants the control character
    check_posix()
    flags = {parameter.name or "": "/".join(parameter.opts) for parameter in ctx.command.params}
    flags |= {"commands": "commands", "accepted": "-i"}
    options = check(RaceOptions(**chosen), {name: flags[name] for name in explicit_options(ctx)})
    with ExitStack() as stack:
        race = race_runner.resume(options, stack) if options.resume else race_runner.start(options, stack)
        answer, failure = race_runner.run(race, options)
        code = show(ctx, answer, silent=failure is not None)
    if failure is not None:
        raise failure
    ctx.exit(code)
