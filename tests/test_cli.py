"""The command line as a whole: what is wrong with it is said in a sentence with a remedy, before any work."""

import random
import shlex
import subprocess
import sys

import pytest
from click.testing import CliRunner

import truearm as ta
from truearm.cli import main
from truearm.cli.errors import INTERNAL_ERROR

SUITE = """--metrics json -n old 'echo {"ms": 1}' -n new 'echo {"ms": 2}'"""
READ = "--arm variant --value x"
UNITS = "analyze timed.csv --arm code --value ms"
WRONG = {
    "analize": "did you mean 'analyze'?",
    "xyz": "the commands are race, time, analyze",
    # options that do not exist
    "race --tollerance 2% true": "no option '--tollerance'; did you mean --tolerance?",
    "race --eps 5 true": "no option '--eps'; did you mean --contamination?",
    "analyze x.csv --alpha 0.05": "no option '--alpha'; did you mean --delta?",
    "race --junit x true": "no option '--junit'; put each command in quotes",  # not --quiet
    "race gzip -kf data": "no option '-k'; put each command in quotes, such as 'gzip -kf data'",
    "race --baseline a true": "no option '--baseline'; did you mean --control?",
    # values
    "work http://127.0.0.1:1 late -- true": "write {arm} where",
    "work": "'URL'; for example: truearm work http://server:8000 tuning -- ./train --rate {arm}",
    "ledger": "'FILE'; for example: truearm ledger loop.db",
    "serve --port x": "must be a whole number from 0 to 65535, but got 'x'",
    "serve --database x.db --new-token boss": "role must be one of viewer, worker, admin, but got 'boss'",
    "report x.db --export-html none/x.html": "the folder 'none' does not exist; create it first",
    "report 'x\0.db'": "NUL",
    "report /dev/null": "not an ordinary file",
    "simulate D22": "instance must be one of G2, ",
    "simulate D2 --policy toptow": "toptow",
    # race
    "race": "such as truearm race 'gzip -kf data' 'zstd -kf data'",
    "race -r 0 true": "must be a whole number of at least 1, but got '0'",
    "race --delta 95% true false": "at most 0.5, but got 0.95; to be 95% sure",
    "race --cwd nowhere true": "nowhere'; create it first",
    "race --save a true false --export-html a": "write to the same file",
    "race --json true echo --export-csv -": "--export-csv and --json",
    "race --save /dev/full true echo": "not an ordinary file",
    "race --yes true false": "-y/--yes goes with --resume; add it, or remove -y/--yes",
    "race true --control true": "--control compares commands, and there is one",
    "race true true": "different names with -n",
    "race true false --control x": "'x' is not in this race",
    "race true false --fdr": "--fdr goes with --control or --metrics or --resume",
    "race true false --metric stdout": "needs --goal",
    "race true false --max-time soon": "a length of time",
    "race --shell /no-such true false": "check the program '/no-such' and the directory '.'",
    "race true no-such-program-1": "is not on the PATH; check the program, and put each command in quotes",
    "race 'true; no-such-program' true": "ended with exit code 127: the shell did not find a program; fix it",
    "race true false -r 3 -m 2": "-r/--runs cannot be combined with -m/--min-runs",
    "race true false --github-summary": "GITHUB_STEP_SUMMARY",
    "race true false --timeout 0.1 --at-most 0.2": "would end runs that count as good; remove it",
    "race true false --timeout 0.1 --at-least 0.05": "would end runs that count as good; remove it",
    "race true false --tolerance 5": "for 5 percent write 5%, or 5s",  # a gate of 5 seconds would always pass
    "race -L a 1,2,3 -n one -n two 'echo {a}'": "2 names were given for 3 commands; give one -n for each",
    "race -L rev 1,2 -s 'echo {rev}' -n 'v{rev}' cat": "use --prepare",  # the last setup would serve all
    **{f"race -i={codes} true false": "1 to 255 such as -i=1,2" for codes in ("", "x", "1,", "0", "256", "1\\;2")},
    "race -n A\udcff true echo": "must be valid Unicode",
    "race -r 2 'echo \udcff' true": "must be valid Unicode",
    "race -P x 1e1000000 1e1000000 'echo {x}'": "decimal numbers up to 1e300",
    "race -P x 1 500 -P y 1 500 'echo {x} {y}'": "a race takes 1,000 commands at most, but got 250,000",
    "race -P x 3 1 'echo {x}'": "scan must rise from MIN to MAX",
    "race --env 'A=\0' true false": "without NUL",
    'race --shell "\'" true false': "cannot be split into words",
    "race --best-of 4 -M 3 true 'true -'": "-M 3 is less than --best-of 4",
    "race --best-of 4 true": "--best-of compares commands",
    "race --best-of 4 --quantile 0.9 true 'true -'": "cannot be combined with --quantile",
    "race --best-of 4 --metrics json true 'true -'": "remove --best-of",
    f"race {SUITE} --quantile 0.9": "remove --quantile",
    f"race {SUITE} --metric cpu": "remove --metric",
    f"race {SUITE} --fail-unless-best old": "remove --fail-unless-best",
    f"race {SUITE} --control old --fail-if-worse-than new": "two commands to compare the others with",
    f"race {SUITE} --higher ms --goal max": "exceptions from --goal min",
    f"race {SUITE} --fail-if-worse-than main": "'main' is not in this race",
    # time
    "time": "Missing argument 'STATEMENT...'; for example: truearm time 'sorted(x)' 'x.sort()'",
    "time nope": "statement 'nope' failed: NameError: name 'nope' is not defined; define it: --setup",
    "time 1 1": "two statements are called '1'; give them different names with -n",
    "time 1 -n a -n b": "there are 2 names for 1 statement; give one -n for each",
    "time 1 --python python9": "--python 'python9' cannot be started: No such file or directory",
    "time '1 +' --python python3": "statement '1 +' is not Python in python3: invalid syntax (statement, line 1)",
    "time 1 --python false": "exit code 1 in false, which must be Python 3.8 or later",
    "time 1 --python true": "does not answer as Python does; name another interpreter",
    "time 'import os; os._exit(0)'": "unless statement 'import os; os._exit(0)' ends its own process",
    "time 'while True: pass' 1 --max-time 2": "did not end within 2 s; allow more time",
    # serve
    "serve --database s.db --port 0 --proxy nonsense": "proxy must be an address or a network",
    "serve --database s.db --port 0 --proxy 127.0.0.1,*": "proxy must be an address or a network",
    "serve --database s.db --port 0 --proxy 10.0.0.1/8": "10.0.0.1/8 has host bits set",
    "serve --database s.db --port 0 --rate nan": "must be a number of at least 1, but got 'nan'",
    "serve --database s.db --port 0 --patience inf": "200ms, 2m or 1.5h, but got 'inf'",
    "serve --database s.db --port 0 --host ''": "host '' can be reached from other machines",
    "serve --database '' --port 0": "cannot be a file",
    # plan
    "plan --delta 1e-300": "at least 1e-30 and at most 0.5, but got 1e-300",
    "plan --arms 100000": "must be a whole number from 2 to 1000, but got '100000'",
    "plan --contamination 5": "write 5% or 0.05",
    "plan --contamination malicious:0.5": "written like 0.05 or 5%",
    "plan --arms 3 --gap 1 --gap 1 --gap 1": "--gap must be one number or 2 of them",
    "plan --gap 5%": "--gap 5% is a ratio, but the family has unit scale; write --gap 0.05 for",
    "plan --gap -1": "Error: --gap must be positive",
    "plan --tolerance 2%": "--tolerance 2% is relative; a plan needs units of the readings",
    "plan --pilot data.csv --arms 3": "--arms and --pilot exclude each other",
    "plan --share 0.6 --gap 0.7": "--gap must be at most the share of the best arm, 0.6, but got 0.7",
    "plan --at-least 3": "--at-least 3 needs the readings of a pilot",
    "plan --decimal ,": "--decimal says how a pilot file is read; give one with --pilot FILE",
    # analyze
    "analyze data.csv --arm varient --value x": "--arm 'varient' is not a column; did you mean 'variant'",
    "analyze data.csv": "column 'variant' holds words; name the columns: --arm 'variant' --value 'x'",
    "analyze data.csv --arm x --value x": "--value 'x' is the column of the arms",
    f"analyze data.csv {READ} --control zz": "--control must name an arm, but got 'zz'",
    f"analyze data.csv {READ} --at-most 3 --goal min": "remove --goal",
    f"{UNITS} --unit proces": "--unit 'proces' is not a column; did you mean",
    "analyze big.duckdb --arm a --value b": "--query",
    "analyze data.txt": "use --kind 'csv' or another of",
    "analyze - --arm a --value b": "standard input is empty",
    "analyze /dev/null": "there is no file",
    "analyze wide.csv --fdr": "--fdr needs the arm to compare with; add --control 'NAME'",
    "analyze wide.csv --round rows --tiers": "--tiers needs arms in one order",
    "analyze wide.csv --design fixed --dependent-arms": "--design 'fixed' needs independent arms",
    "verify data.csv": "data.csv is not JSON (line 1); give what --json printed, or a log",
    "verify none.json": "none.json: No such file or directory; give the path of a file",
}
FILES = {
    "big.duckdb": "x",
    "data.csv": "variant,x\n" + "A,1\nB,2\n" * 20,
    "data.txt": "A,B\n1,2\n",
    "timed.csv": "code,process,i,ms\n" + "A,A0,1,2\nA,A0,2,3\nB,B0,1,4\nB,B0,2,5\n",
    "wide.csv": "A,B\n" + "1,2\n2,3\n" * 20,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("files")
    for name, text in FILES.items():
        (path / name).write_text(text)
    return path


@pytest.mark.parametrize("line", WRONG)
def test_what_is_wrong_is_told_with_a_remedy(line, folder, monkeypatch):
    monkeypatch.chdir(folder)
    if line.startswith("serve"):
        pytest.importorskip("uvicorn")  # of the extra `serve`
    done = CliRunner().invoke(main, shlex.split(line), env={"GITHUB_STEP_SUMMARY": ""})
    assert (done.exit_code, done.stdout) == (2, "")
    assert WRONG[line] in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert INTERNAL_ERROR not in done.stderr


@pytest.mark.parametrize(
    ("words", "extra"),
    [(("serve",), "serve"), (("plan", "--plot", "x.png"), "plot")],
)
def test_an_extra_that_is_not_installed_is_told_by_its_command(words, extra, tmp_path):
    blocked = ["matplotlib", "uvicorn", "litestar"]
    code = f"import sys\nfor name in {blocked!r}: sys.modules[name] = None\nfrom truearm.cli import main\nmain()"
    ended = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert ended.returncode == 2
    assert f"install it with: pip install 'truearm[{extra}]'" in " ".join(ended.stderr.split())


def test_what_an_alarm_advises_can_be_typed_where_it_is_read(tmp_path):
    draw = random.Random(3)
    passed = [(arm, int(draw.random() < share)) for _ in range(200) for arm, share in (("a", 0.1), ("b", 0.35))]
    path = tmp_path / "passed.csv"
    path.write_text("variant,passed\n" + "".join(f"{arm},{x}\n" for arm, x in passed))
    output = CliRunner().invoke(main, ["analyze", str(path), "--arm", "variant", "--value", "passed"]).output
    assert "decides (--at-least 1)." in " ".join(output.split())
    assert "at_least" not in output
    told = str(ta.analyze({"v": [arm for arm, _ in passed], "x": [x for _, x in passed]}, arm="v", value="x"))
    assert "decides (at_least=1)." in told
    assert "--" not in told
