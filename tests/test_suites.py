"""Suites: many metrics of the same runs judged together, and `race --metrics json` by its real entry point."""

import json
import math
import re
import shlex
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest

import truearm as ta
from entry import truearm
from truearm.bounds.mixture import log_mixture
from truearm.claims.suite import Progress, Suite, judge_suite
from truearm.commands.command import Command
from truearm.commands.measure import MAX_METRICS, Conditions, measure
from truearm.commands.measure import runs_of as runs_of_log
from truearm.errors import CommandFailed, InvalidArgument, OutOfReach
from truearm.events import Noted
from truearm.evidence.metrics import BETTER, WITHIN, WORSE, MetricEvidence, discover, step_down
from truearm.evidence.metrics import breakdown_of_rounds as suite_breakdown
from truearm.evidence.wins import PRIOR, win_level
from truearm.problem import Adversary, Contamination, Problem, Tolerance
from truearm.report import tables
from truearm.report.pages import suite_page as page
from truearm.report.summaries import suite_headline as headline
from truearm.report.summaries import suite_summary as paragraph
from truearm.study import Study
from truearm.verification import VerificationError, verify

ROUNDS = Problem(arms=("old", "new"), goal="min", rounds=True)
SUITE = Suite(problem=ROUNDS, reference="old")


def tolerant(much, **more):
    return replace(SUITE, problem=replace(ROUNDS, tolerance=Tolerance.of(much)), **more)


def runs_of(old, new):
    """Return runs of two arms from columns of readings by metric."""
    return {
        arm: [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        for arm, columns in (("old", old), ("new", new))
    }


def standings(suite, old, new):
    found = judge_suite(suite, runs_of(old, new))
    return {one.metric: one.standing for one in found.compared}


# What is claimed


@pytest.mark.parametrize("seed", range(12))
def test_a_claim_withstands_what_the_same_rounds_reach_at_another_eps(seed):
    """At every eps up to the breakdown point, and at none beyond it, evidence has ever reached 2P/delta."""
    rng = np.random.default_rng(seed)
    wins = rng.random((1, 1, 60)) < rng.choice([0.6, 0.8, 0.95])
    found, bar = suite_breakdown(wins[0, 0], np.log(2 * 7 / 0.05)), np.log(2 * 7 / 0.05)
    for adversary, point in zip(Adversary, found, strict=True):
        for eps in np.linspace(0, 0.24, 40):
            level = win_level(eps, adversary)
            reached = MetricEvidence.begin(1, level).after(np.repeat(wins, 3, axis=0)).highest[0, 0] >= bar
            if point is None or abs(eps - point) > 2e-4:
                assert reached == (point is not None and eps <= point)


# From a table


def table(n=60, seed=4):
    rng = np.random.default_rng(seed)
    load = np.repeat(rng.normal(size=n), 2)
    new = np.tile([0.0, 1.0], n)
    return {
        "rev": ["old", "new"] * n,
        "run": np.repeat(np.arange(n), 2),
        "ms": 20 + load + 3 * new + 0.1 * rng.normal(size=2 * n),
        "qps": 900 + load + 0.1 * rng.normal(size=2 * n),
    }


TABLE = {"arm": "rev", "round": "run", "reference": "old"}


@pytest.mark.parametrize("of", [dict, pl.DataFrame, pd.DataFrame])
def test_a_table_of_runs_is_judged_as_the_runs_are_in_any_frame_and_order(of):
    frame = table()
    columns = [{name: frame[name][i::2].tolist() for name in ("ms", "qps")} for i in (0, 1)]
    same = judge_suite(tolerant("5%", higher=("qps",)), runs_of(*columns))
    mixed = np.random.default_rng(1).permutation(118) + 2  # the first round stays the first
    order = [0, 1, *sorted(mixed.tolist(), key=lambda i: (i % 2, i))]
    shuffled = of({name: [column[i] for i in order] for name, column in frame.items()})
    found = ta.suite(shuffled, **TABLE, metrics=["ms", "qps"], higher=["qps"], tolerance="5%")
    assert found == same
    assert {one.metric: one.standing for one in found.compared} == {"ms": "worse", "qps": "not worse"}
    assert str(found).startswith("2 metrics: 1 is worse than in old by more than 5%: ms (1.15x)")


@pytest.mark.parametrize(
    ("frame", "given", "message"),
    [
        (table(), {"reference": "x"}, "reference must name an arm, but got 'x'"),
        (table(), {"metrics": "ms"}, r"write \['ms'\]"),
        (table(), {"metrics": []}, "no column to compare"),
        (table(), {"metrics": ["ms", "zz"]}, "metrics='zz' is not a column"),
        (table(), {"higher": ["no"]}, "higher names 'no'"),
        (7, {}, "frame must be"),
        (table(), {"fdr": True, "contamination": Contamination(0.02, "malicious")}, "remove fdr"),
    ],
)
def test_invalid_tables_of_runs_are_refused(frame, given, message):
    with pytest.raises((InvalidArgument, OutOfReach), match=message):
        ta.suite(frame, **{**TABLE, **given})


def test_a_document_is_verified_by_itself_and_by_its_log(tmp_path):
    study = Study(ROUNDS, max_pulls=60)
    while pulls := study.ask():
        for pull in pulls:
            study.tell(pull, Noted(1.0, {"metrics": {"a": 2.0 + (pull.arm == "old")}}))
    found = judge_suite(SUITE, runs_of_log(study.log))
    found.save_html(tmp_path / "suite.html")
    assert "up to" in (tmp_path / "suite.html").read_text(encoding="utf-8")

    def check(change, error, message, *logs):
        data = json.loads(json.dumps(found.to_dict(runs=True)))
        assert verify(data, *logs)
        change(data)
        with pytest.raises(error, match=message):
            verify(data, *logs)

    def change_point(data):
        data["metrics"][0]["breakdown"]["malicious"] = 0.01

    check(change_point, VerificationError, r"metrics\[0\].breakdown.malicious")
    both = {"certificate": {"best": "new"}}
    check(lambda data: data.update(both), VerificationError, "a suite and a certificate")
    check(lambda data: data["suite"]["problem"].update(rounds=False), InvalidArgument, "rounds=True")
    changed = r"^runs\.old\[1\]\.a is 1\.0, but the readings give 3\.0$"
    check(lambda data: data["runs"]["old"][1].update(a=1.0), VerificationError, changed, study)


N = 40
STEADY = {"ms": [2.0] * N}


@pytest.mark.parametrize(
    ("new", "suite", "standing"),
    [
        (3.0, SUITE, "worse"),
        (1.0, SUITE, "better"),
        (2.0, SUITE, "not worse"),
        (2.1, tolerant("10%"), "not worse"),
        (2.3, tolerant("10%"), "worse"),
        (2.1, tolerant("0.05"), "worse"),
        (1.9, tolerant("10%"), "better"),
        (3.0, replace(SUITE, higher=("ms",)), "better"),
        (1.9, tolerant("10%", higher=("ms",)), "not worse"),
        (1.7, tolerant("10%", higher=("ms",)), "worse"),
        (None, SUITE, "indistinguishable"),
    ],
)
def test_a_metric_stands_where_its_readings_are(new, suite, standing):
    assert standings(suite, STEADY, {"ms": [2.0, *[new] * (N - 1)]}) == {"ms": standing}


@pytest.mark.parametrize(
    ("old", "new", "standing"), [(0.0, 0.0, "not worse"), (0.0, 1.0, "worse"), (-3.0, -2.99, "indistinguishable")]
)
def test_percent_of_nothing_are_nothing_and_of_what_is_negative_mean_nothing(old, new, standing):
    found = judge_suite(tolerant("10%"), runs_of({"x": [old] * N}, {"x": [new] * N}))
    assert found.compared[0].standing == standing
    assert ("mean nothing; pass a tolerance in their unit for x." in paragraph(found)) == (old < 0)


def test_what_was_worse_and_then_was_not_is_doubtful():
    rng = np.random.default_rng(2)
    new = np.where(np.arange(2 * N) < N, 3.0, 1.0) + rng.random(2 * N) / 10
    assert standings(SUITE, {"ms": 2 + rng.random(2 * N) / 10}, {"ms": new}) == {"ms": "doubtful"}


def test_what_a_command_does_by_itself_over_time_is_doubtful():
    """A metric that wanders in one arm only, as with a cache that fills; its neighbor keeps its standing."""
    rng = np.random.default_rng(3)
    steady = {"mb": [1.0] * 150}
    old = {"ms": np.exp(0.01 * rng.normal(size=150)), **steady}
    new = {"ms": np.exp(np.cumsum(0.05 * rng.normal(size=150))), **steady}
    found = judge_suite(SUITE, runs_of(old, new))
    assert [one.standing for one in found.compared] == ["doubtful", "not worse"]
    assert found.status == "doubtful"
    assert "1 is doubtful: ms" in paragraph(found)
    assert "Nothing is claimed about doubtful metrics" in page(found)


def test_equal_metrics_end_where_contamination_hides_more_and_that_is_not_part_of_what_is_sure():
    """Giving up has an error probability of its own."""
    rng = np.random.default_rng(4)
    suite = replace(SUITE, problem=replace(ROUNDS, contamination=Contamination(0.15)))
    old, new = ({"ms": rng.random(1500), "mb": np.full(1500, size)} for size in (1.0, 2.0))
    assert Progress(suite).after(runs_of(old, new)).done
    said = paragraph(judge_suite(suite, runs_of(old, new)))
    assert "1 is too close for more rounds like these to tell: ms" in said
    assert "95% sure of what is worse, better or not worse, assuming" in said


def test_doubtful_metrics_do_not_lower_the_bar_of_others():
    """Nine metrics that drift away by themselves; the tenth, slower in 3 of 4 rounds, was the only one named."""
    suite = replace(SUITE, fdr=True, problem=replace(ROUNDS, contamination=Contamination(0.0)))
    rng, n = np.random.default_rng(3), 61
    old = {f"m{i}": 10 + rng.random(n) for i in range(9)} | {"last": np.full(n, 10.0)}
    new = {f"m{i}": 12 + rng.random(n) + 0.5 * np.arange(n) for i in range(9)}
    new["last"] = np.where(rng.permutation(n) % 4, 12.0, 9.0)
    alone = standings(suite, {"last": old["last"]}, {"last": new["last"]})
    assert alone == {"last": "worse"}
    found = standings(suite, old, new)
    assert {found[f"m{i}"] for i in range(9)} == {"doubtful"}
    assert found["last"] == "open"


# Which metrics there are


def test_the_first_round_in_which_all_print_calls_the_roll():
    one, two, late = {"ms": 1.0}, {"ms": 2.0, "mb": 1.0}, {"ms": 1.0, "kb": 9.0}
    found = judge_suite(SUITE, {"old": [None, one, *[late] * N], "new": [two, two, *[two] * N]})
    assert (found.uncounted, found.rounds) == (2, N)
    assert [(one.metric, one.arms) for one in found.only] == [("mb", ("new",))]
    assert [(one.metric, one.arms) for one in found.late] == [("kb", ("old",))]
    assert [one.metric for one in found.compared] == ["ms"]
    assert "Not compared, because it was not in the first round: kb (old)." in paragraph(found)
    with pytest.raises(InvalidArgument, match=re.escape("(old: ms; new: mb); use the same names")):
        judge_suite(SUITE, runs_of(STEADY, {"mb": [1.0] * N}))


def test_several_commands_are_compared_with_the_reference():
    problem = replace(ROUNDS, arms=("a", "b", "c"))
    runs = {arm: [{"ms": ms, "mb": 1.0}] * N for arm, ms in (("a", 1.0), ("b", 2.0), ("c", 1.0))}
    found = judge_suite(Suite(problem=problem, reference="a"), runs)
    assert {(one.metric, one.arm): one.standing for one in found.compared} == {
        ("ms", "b"): "worse",
        ("ms", "c"): "not worse",
        ("mb", "b"): "not worse",
        ("mb", "c"): "not worse",
    }
    assert headline(found) == "1 of 4 comparisons is worse than in a"
    titles = ("metric", "command", "a", "median", "ratio per round", "standing", "up to")
    assert tables.suite_rows(found)[0] == titles


# What a run prints


def printing(text):
    return Command(f"printf %s {shlex.quote(text)}", shell="/bin/sh")


@pytest.mark.parametrize(
    ("printed", "why"),
    [
        ("", "but printed ''"),
        ("[1, 2]", "but printed '[1, 2]'"),
        ('{"a": {"p50": 1}}', "'a' is not a number"),
        ('{"a": true}', "'a' is not a number"),
        ('{"a": 1, "a": 2}', "printed 2 metrics under 1 names"),
        ('{"": 1}', "'' is empty"),
        ('{"a\\u0000": 1}', "characters that do not print"),
        ("[" * 90_000, "but printed '[[["),
        (json.dumps({str(i): 1 for i in range(MAX_METRICS + 1)}), "printed 1,001 metrics"),
    ],
)
def test_what_is_no_object_of_numbers_is_an_error_that_says_so(printed, why):
    with pytest.raises(CommandFailed, match=re.escape(why)) as raised:
        measure(printing(printed), "json")
    assert 'must print one flat JSON object of at most 1,000 numbers, such as {"parse": 1.5}' in str(raised.value)
    missing = measure(printing(printed), "json", Conditions(ignore_failure=True))
    assert np.isnan(missing.value)
    assert missing.metrics is None


def test_a_huge_output_is_cut_before_its_last_line_and_what_is_not_a_number_is_missing():
    flood = "head -c 3000000 /dev/zero | tr '\\0' x"
    assert measure(Command(f"{flood}; echo; echo '{{\"a\": 1}}'"), "json").metrics == {"a": 1.0}
    with pytest.raises(CommandFailed, match="must print one flat JSON object"):
        measure(Command(flood), "json")
    printed = '{"a": NaN, "b": null, "c": Infinity, "d": 1e999, "e": 1, "f": 1%s}' % ("0" * 400)
    assert measure(printing(printed), "json").metrics == {**dict.fromkeys("abcdf"), "e": 1.0}


# The command


def race(*words, **more):
    return truearm("race", "--metrics", "json", *words, **more)


def arm(name, **metrics):
    return "-n", name, f"echo '{json.dumps(metrics)}'"


GATE = ("--fail-if-worse-than", "old", "--tolerance", "5%", "--seed", "1")
SLOWER = (*arm("old", ms=2.0, mb=1.0, gone=1), *arm("new", ms=2.2, mb=1.0, added=1))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("suite")


@pytest.fixture(scope="module")
def failed(folder):
    exports = [f"--export-{kind}={kind}.out" for kind in ("json", "csv", "markdown", "html")]
    return race(*SLOWER, *GATE, *exports, "--save", "run.db", cwd=folder)


def test_a_metric_that_is_worse_fails_the_gate_and_is_named(failed):
    assert failed.returncode == 1, failed.stderr
    words = failed.stdout.replace("\n", " ")
    assert "2 metrics: 1 is worse than in old by more than 5%: ms (1.1x); 1 is not worse by more than 5%" in words
    assert "95% sure of all of it" in words
    assert "Only in old: gone. Only in new: added." in words
    assert re.search(r"^ms +2 +2\.2 +1\.1 \(1\.1 to 1\.1\) +worse +[\d.]+%$", failed.stdout, re.MULTILINE)
    assert failed.stderr == ""


def test_every_file_says_the_same(failed, folder):  # noqa: ARG001 - has written the files
    html = (folder / "html.out").read_text()
    assert "1 of 2 metrics is worse than in old by more than 5%</h1>" in html
    assert not re.search(r'(?:src|href)="(?!data:)', html)  # nothing is fetched
    assert "| `ms` | 2 | 2.2 | 1.1 (1.1 to 1.1) | worse |" in (folder / "markdown.out").read_text()
    assert (folder / "csv.out").read_text().splitlines()[1].startswith("ms,new,min,worse,2.0,2.2,ratio,1.1")
    found = json.loads((folder / "json.out").read_text())
    assert (found["status"], found["failed"], found["verdict"], found["seed"]) == ("decided", True, "FAIL", 1)
    assert found["runs"]["new"][0] == {"ms": 2.2, "mb": 1.0, "added": 1.0}


def test_a_stranger_recomputes_the_suite(failed, folder):  # noqa: ARG001
    for words in (["json.out"], ["json.out", "run.db"], ["run.db"]):
        done = truearm("verify", *words, cwd=folder)
        assert done.returncode == 0, done.stdout
    found = json.loads((folder / "json.out").read_text())
    with pytest.raises(
        VerificationError, match=re.escape("metrics[0].standing is 'better', but the readings give")
    ):
        verify(found | {"metrics": [found["metrics"][0] | {"standing": "better"}, *found["metrics"][1:]]})
    faster = [dict(run, ms=1.0) for run in found["runs"]["new"]]
    with pytest.raises(VerificationError):
        verify(found | {"runs": found["runs"] | {"new": faster}})


def test_a_suite_goes_on_from_its_log_and_is_reported(failed, folder):  # noqa: ARG001
    again = truearm("race", "--resume", "run.db", "-q", cwd=folder)
    assert again.returncode == 1
    assert again.stdout == truearm("report", "run.db", cwd=folder).stdout
    assert truearm("report", "run.db", "--csv", cwd=folder).returncode == 1
    other = truearm("race", "--resume", "run.db", "--fail-if-worse-than", "new", cwd=folder)
    assert (other.returncode, "compares with old" in other.stderr) == (2, True)


def test_a_limit_leaves_it_open_and_the_log_goes_on_to_the_end(tmp_path):
    early = race(*SLOWER, *GATE, "-M", "5", "--save", "run.db", cwd=tmp_path)
    assert early.returncode == 3
    assert "2 are open" in early.stdout.replace("\n", " ")
    assert truearm("race", "--resume", "run.db", "-q", cwd=tmp_path).returncode == 1


def test_equal_metrics_pass_the_gate_and_more_may_be_better():
    commands = (*arm("old", ms=2.0, mb=1.0, qps=9), *arm("new", ms=2.05, mb=0.5, qps=9))
    done = race(*commands, *GATE, "--higher", "qps")
    assert done.returncode == 0, done.stderr
    words = done.stdout.replace("\n", " ")
    assert "1 is better: mb (0.5x); 2 are not worse than in old by more than 5%" in words
    assert race(*arm("old", ms=2.0, gone=1), *arm("new", ms=2.0), *GATE, "--strict").returncode == 4


def test_a_run_that_times_out_has_no_metrics(tmp_path):
    slow = "sh -c 'cat new.json; test -e again && sleep 9; touch again'"
    (tmp_path / "new.json").write_text('{"ms": 1}')
    done = race(
        "-n", "old", "cat new.json", "-n", "new", slow, "-M", "3", "--timeout", "0.5", "-w", "0", cwd=tmp_path
    )
    assert done.returncode == 3, done.stderr
    assert "2 runs of new timed out: all metrics of it are missing." in done.stdout.replace("\n", " ")
    assert "Missing in some rounds, which count against any claim: ms (2 of 2)." in done.stdout.replace("\n", " ")


@pytest.mark.parametrize("near", [0.99, 1.01])
def test_every_bar_of_a_suite_pays_for_its_claims(near):
    """Extensions D4, of 2 pairs: 2P places, P separate statements, and both directions of giving up.

    A claim of worse or of better takes a place, so the next one needs less; one within the tolerance takes none.
    """
    enough = near > 1
    nothing = MetricEvidence.begin(2, 0.45)
    last, highest = np.full((3, 2), -9.0), np.full((3, 2), -9.0)
    last[WORSE, 0], highest[WITHIN, 1] = math.log(near * 4 / 0.05), math.log(near * 2 / 0.05)
    assert discover(replace(nothing, last=last), 0.05)[WORSE, 0] == enough
    assert discover(replace(nothing, highest=highest), 0.05)[WITHIN, 1] == enough
    highest[WITHIN, 1], highest[BETTER, 0] = -9.0, math.log(near * 4 / 0.05)
    assert step_down(highest, 0.05)[BETTER, 0] == enough
    highest[WITHIN, 0], highest[WORSE, 1] = math.log(5 / 0.05), math.log(near * 3 / 0.05)
    assert step_down(highest, 0.05)[WORSE, 1] == enough
    even = replace(nothing, rounds=1500, wins=np.full((3, 2), 750))
    chance = math.exp(-float(log_mixture(750, 1500, 0.55, PRIOR)))
    assert even.is_futile(near * 4 * chance).tolist() == [enough] * 2
