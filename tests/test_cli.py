"""The command line as a whole: verbs are found, near misses are named."""

import subprocess
import sys

import pytest
from click.testing import CliRunner

from entry import truearm
from truearm.cli import main


@pytest.mark.parametrize(
    ("verb", "words"), [("analize", "did you mean 'analyze'?"), ("xyz", "the commands are race, time, analyze")]
)
def test_a_verb_that_is_none_gets_a_hint(verb, words):
    result = CliRunner().invoke(main, [verb])
    assert result.exit_code == 2
    assert words in result.output


@pytest.mark.parametrize(
    "words",
    [
        ("race", "true", "--save", "none/x.db"),
        ("report", "x.db", "--export-html", "none/x.html"),
        ("plan", "--plot", "none/x.png"),
    ],
)
def test_a_folder_that_is_not_there_is_told_before_the_work(words):
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 2
    assert "the folder 'none' does not exist; make it first" in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("race", "--tollerance", "2%", "true"), "no option '--tollerance'; did you mean --tolerance?"),
        (("race", "--eps", "5", "true"), "no option '--eps'; did you mean --contamination?"),
        (("analyze", "x.csv", "--alpha", "0.05"), "no option '--alpha'; did you mean --delta?"),
        (("race", "gzip", "-kf", "data"), "no option '-k'; put each command in quotes, such as 'gzip -kf data'"),
        (("race", "ls", "--zzz"), "no option '--zzz'; put each command in quotes"),
        (("plan", "--zzz"), "no option '--zzz'; `main plan --help` lists the options"),
        (("race", "--baseline", "a", "true"), "no option '--baseline'; did you mean --control?"),
        (("race", "--reps", "3", "true"), "no option '--reps'; did you mean --runs?"),
        (
            ("race", "--export-asciidoc", "x", "true"),
            "no option '--export-asciidoc'; did you mean --export-markdown?",
        ),
        (("race", "--style", "full", "true"), "such as 'gzip -kf data'; `main race --help` lists the options"),
    ],
)
def test_an_option_that_is_none_gets_a_hint(words, said):
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("work",), "'URL'; for example: truearm work http://server:8000 tuning -- ./train --rate {arm}"),
        (("report",), "'FILE'; for example: truearm report run.db"),
        (("race",), "such as truearm race 'gzip -kf data' 'zstd -kf data'"),
        (("race", "-r", "0", "true"), "must be a whole number of at least 1, but got '0'"),
        (("serve", "--port", "x"), "must be a whole number from 0 to 65535, but got 'x'"),
        (("serve", "--patience", "0"), "must be a number above 0, but got '0'"),
        (("race", "--cwd", "nowhere", "true"), "nowhere'; make it first"),
    ],
)
def test_what_is_missing_or_wrong_is_told_with_the_next_step(words, said, tmp_path):
    ended = truearm(*words, cwd=tmp_path)
    assert ended.returncode == 2
    assert said in " ".join(ended.stderr.split())


def test_a_role_that_is_none_is_told_with_those_there_are(tmp_path):
    pytest.importorskip("uvicorn")  # of the extra `serve`
    ended = truearm("serve", "--database", "x.db", "--new-token", "boss", cwd=tmp_path)
    assert ended.returncode == 2
    assert "a machine that measures is a worker" in " ".join(ended.stderr.split())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--fdr",), "--fdr needs the arm to compare with; add --control 'NAME'"),
        (("--round", "rows", "--tiers"), "--tiers needs arms in one order"),
        (("--round", "rows", "--control", "A"), "--control needs arms in one order"),
        (("--design", "fixed", "--dependent-arms"), "--design 'fixed' needs independent arms"),
    ],
)
def test_what_does_not_go_together_is_told_in_options(options, said, tmp_path):
    (tmp_path / "wide.csv").write_text("A,B\n" + "1,2\n2,3\n" * 20)
    ended = truearm("analyze", "wide.csv", *options, cwd=tmp_path)
    assert ended.returncode == 2
    assert said in " ".join(ended.stderr.split())
    assert "=" not in ended.stderr


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (("serve",), "serve"),
        (("plan", "--plot", "x.png"), "plot"),
    ],
)
def test_an_extra_that_is_not_installed_is_told_by_its_command(words, extra, tmp_path):
    blocked = ["matplotlib", "uvicorn", "litestar"]
    code = f"import sys\nfor name in {blocked!r}: sys.modules[name] = None\nfrom truearm.cli import main\nmain()"
    ended = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert ended.returncode == 2
    assert f"install it with: pip install 'truearm[{extra}]'" in " ".join(ended.stderr.split())


@pytest.mark.parametrize("delta", ["95%", "0.9", "51%"])
def test_an_error_probability_is_not_taken_for_its_contrary(delta):
    result = CliRunner().invoke(main, ["race", "--delta", delta, "true", "false"])
    assert result.exit_code == 2
    assert "delta is the chance to be wrong, at most 0.5" in " ".join(result.output.split())
    assert "to be 95% sure write --delta 5%" in " ".join(result.output.split())


def test_help_calls_a_number_by_a_letter():
    for verb in main.list_commands(None):
        shown = CliRunner().invoke(main, [verb, "--help"]).output
        assert "INTEGER" not in shown
        assert "FLOAT" not in shown
