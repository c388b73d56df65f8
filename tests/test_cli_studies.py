"""`truearm next`, `tell`, `status` and `report` through their real entry point, and what the docs say of them."""

import json
import random
import subprocess
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

from entry import TRUEARM, truearm
from truearm.cli import _VERBS, main
from truearm.events import Issued
from truearm.run import find_best
from truearm.store import Store

DOCS = Path(__file__).parent.parent / "docs" / "cli.md"
ARMS = ("--arm", "A", "--arm", "B")


def handed(found):
    return [(int(line.split("\t")[0]), line.split("\t")[1]) for line in found.stdout.splitlines()]


@pytest.fixture
def begun(tmp_path):
    found = truearm("next", "run.db", *ARMS, "--goal", "min", "-n", "40", cwd=tmp_path)
    return tmp_path, handed(found)


def answers(pulls):
    return "".join(f"{ticket} {1 if arm == 'A' else 2}.{37 * ticket % 101:03d}\n" for ticket, arm in pulls)


def test_next_hands_out_every_ticket_once(begun):
    folder, pulls = begun
    more = handed(truearm("next", "run.db", "-n", "3", cwd=folder))
    assert [ticket for ticket, _ in (*pulls, *more)] == list(range(43))


def test_a_study_by_hand_ends_with_a_winner(begun):
    folder, pulls = begun
    truearm("tell", "run.db", cwd=folder, input=answers(pulls))
    while pulls := handed(truearm("next", "run.db", "-n", "8", cwd=folder)):
        truearm("tell", "run.db", cwd=folder, input=answers(pulls))
    found = json.loads(truearm("report", "run.db", "--json", cwd=folder).stdout)
    assert (found["best"], found["status"], found["metric"]) == ("A", "certified", None)
    assert "The study is done" in truearm("next", "run.db", cwd=folder).stderr


def test_taking_pulls_twice_before_telling_keeps_the_log_readable(begun):
    folder, pulls = begun
    truearm("tell", "run.db", cwd=folder, input="".join(f"{t} {37 * t % 101}\n" for t, _ in pulls))
    taken = [handed(truearm("next", "run.db", "-n", n, cwd=folder)) for n in ("8", "3", "1")]
    assert [len(part) for part in taken] == [8, 3, 1]
    assert truearm("report", "run.db", cwd=folder).returncode in (3, 4)  # undecided, or in doubt


def test_telling_again_changes_nothing_and_telling_otherwise_is_refused(begun):
    folder, _ = begun
    assert truearm("tell", "run.db", "0", "1.5", cwd=folder).returncode == 0
    assert truearm("tell", "run.db", "0", "1.5", cwd=folder).returncode == 0
    other = truearm("tell", "run.db", "0", "1.7", cwd=folder)
    assert other.returncode == 2
    assert "the first value is kept" in other.stderr
    with Store(folder / "run.db") as store:
        assert sum(not isinstance(entry.event, Issued) for entry in store.events()) == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("0",), "pairs of ticket and value"),
        (("0", "fast"), "a value a number"),
        (("99", "1"), "ticket 99 was never handed out; `truearm next` hands one out, and `truearm status` lists"),
        (("--release", "99"), "was never handed out"),
    ],
)
def test_nonsense_is_refused_and_not_logged(begun, words, says):
    folder, _ = begun
    found = truearm("tell", "run.db", *words, cwd=folder)
    assert found.returncode == 2
    assert says in found.stderr
    with Store(folder / "run.db") as store:
        assert all(isinstance(entry.event, Issued) for entry in store.events())


def test_odd_values_are_readings(begun):
    folder, pulls = begun
    first = {arm: ticket for ticket, arm in reversed(pulls)}
    told = truearm("tell", "run.db", str(first["A"]), "nan", str(first["B"]), "-1e3", cwd=folder)
    assert told.returncode == 0, told.stderr
    readings = json.loads(truearm("report", "run.db", "--json", cwd=folder).stdout)["readings"]
    assert (readings["A"][0], readings["B"][0], readings["A"][1]) == ("nan", -1000.0, None)


def test_a_released_pull_goes_out_again(begun):
    folder, pulls = begun
    truearm("tell", "run.db", "--release", "3", cwd=folder)
    [(ticket, arm)] = handed(truearm("next", "run.db", cwd=folder))
    assert (ticket, arm) == (40, pulls[3][1])
    assert "was released" in truearm("tell", "run.db", "3", "1.0", cwd=folder).stderr


def test_status_shows_who_is_out(begun):
    folder, pulls = begun
    truearm("tell", "run.db", cwd=folder, input=answers(pulls[:-2]))
    found = json.loads(truearm("status", "run.db", "--json", cwd=folder).stdout)
    assert [out["ticket"] for out in found["out"]] == [38, 39]
    assert found["pulls"]["total"] == 40
    shown = truearm("status", "run.db", cwd=folder).stdout
    assert "out: ticket 39" in shown
    with Store(folder / "run.db") as store:
        assert f"head of the log: {store.head}" in shown
        assert found["head"] == store.head


def test_report_prints_text_markdown_and_csv_and_writes_nothing(begun):
    folder, pulls = begun
    truearm("tell", "run.db", cwd=folder, input=answers(pulls[:20]))
    before = (folder / "run.db").read_bytes()
    assert "Not decided yet" in truearm("report", "run.db", cwd=folder).stdout
    assert "| `A` |" in truearm("report", "run.db", "--markdown", cwd=folder).stdout
    assert truearm("report", "run.db", "--csv", cwd=folder).stdout.startswith("command,mean,")
    assert (folder / "run.db").read_bytes() == before


def test_report_writes_a_page(begun):
    folder, _ = begun
    found = truearm("report", "run.db", "--html", "page.html", cwd=folder)
    if find_spec("truearm.report.html") is None:
        assert "no HTML report" in found.stderr
    else:
        assert "<html" in (folder / "page.html").read_text()


def test_report_knows_the_units_of_a_race(tmp_path):
    truearm("race", "-r", "3", "--save", "run.db", "true", "sleep 0.01", cwd=tmp_path)
    assert "median [ms]" in truearm("report", "run.db", cwd=tmp_path).stdout
    results = json.loads(truearm("report", "run.db", "--json", cwd=tmp_path).stdout)["results"]
    assert [len(result["times"]) for result in results] == [3, 3]


def test_the_budget_of_a_log_holds_on_the_command_line(tmp_path):
    # a log that the library wrote: its budget is spent after 40 pulls, which a report must know
    draw = random.Random(1).random
    find_best({"A": draw, "B": draw}, max_pulls=40, contamination=None, store=tmp_path / "run.db")
    found = json.loads(truearm("report", "run.db", "--json", cwd=tmp_path).stdout)
    assert (found["status"], found["pulls"]["total"]) == ("exhausted", 40)
    assert "The study is done" in truearm("next", "run.db", cwd=tmp_path).stderr


def test_several_processes_take_different_tickets(begun):
    folder, _ = begun
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda _: handed(truearm("next", "run.db", "-n", "2", cwd=folder)), range(6)))
    tickets = [ticket for pulls in found for ticket, _ in pulls]
    assert sorted(tickets) == list(range(40, 52))


def test_files_that_are_missing_or_others_are_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    assert "there is no file 'run.db'; `truearm race --save" in truearm("status", "run.db", cwd=tmp_path).stderr
    assert "not a truearm log" in truearm("report", "notes.txt", cwd=tmp_path).stderr
    (tmp_path / "empty.db").touch()  # what a crash may leave before anything is in it
    for words in (("status", "empty.db"), ("race", "--resume", "empty.db")):
        said = truearm(*words, cwd=tmp_path).stderr
        assert "empty.db holds no study yet; `truearm race --save empty.db` or" in said
    assert "fixed when the study began" in truearm("next", "x.db", "--delta", "0.1", cwd=tmp_path).stderr


def test_the_version_is_told(tmp_path):
    found = truearm("--version", cwd=tmp_path)
    assert found.stdout.startswith("truearm, version ")


def test_completion_is_there(tmp_path):
    script = subprocess.run(
        [TRUEARM], env={"_TRUEARM_COMPLETE": "bash_source", "PATH": "/usr/bin:/bin"}, cwd=tmp_path, text=True,
        capture_output=True, check=False,
    )  # fmt: skip
    assert "_TRUEARM_COMPLETE" in script.stdout


def documented_verbs():
    return [verb for verb, module in _VERBS.items() if find_spec(f"truearm.cli.{module}")]


@pytest.mark.parametrize("verb", documented_verbs())
def test_every_verb_and_option_is_in_the_docs(verb):
    words = DOCS.read_text().replace("\n", " ")
    command = main.get_command(click.Context(main), verb)
    options = [name for parameter in command.params for name in parameter.opts if name.startswith("-")]
    assert f"truearm {verb}" in words or f"{verb}," in words
    missing = [name for name in options if f"`{name}" not in words and f" {name}" not in words]
    assert not missing


@pytest.mark.parametrize("verb", documented_verbs())
def test_every_help_begins_with_an_example(verb):
    command = main.get_command(click.Context(main), verb)
    assert f"truearm {verb}" in command.help


def test_words_fit_their_numbers(tmp_path):
    truearm("next", "run.db", *ARMS, "-n", "2", "--seed", "1", cwd=tmp_path)
    assert "but got 1 word;" in truearm("tell", "run.db", "0", cwd=tmp_path).stderr
    shown = truearm("status", "run.db", cwd=tmp_path).stdout
    assert shown.startswith("2 pulls, 2 out: nobody leads yet, 2 candidates.\n")
    assert "A: candidate, 0 pulls, 0% of the evidence that would exclude it\n" in shown
    truearm("next", "run.db", "-n", "1", cwd=tmp_path)
    assert "A: candidate, 1 pull, 0%" in truearm("status", "run.db", cwd=tmp_path).stdout


def test_to_begin_a_study_again_says_how_to_go_on(tmp_path):
    truearm("next", "run.db", *ARMS, cwd=tmp_path)
    again = truearm("next", "run.db", *ARMS, cwd=tmp_path)
    assert again.stderr == (
        "Error: run.db holds a study already; leave --arm out to go on with it, or choose another file\n"
    )


def test_a_study_of_one_arm_is_not_begun(tmp_path):
    lonely = truearm("next", "run.db", "--arm", "A", cwd=tmp_path)
    assert lonely.returncode == 2
    assert "a study compares arms, but got 'A' alone; give another --arm" in lonely.stderr
    assert not (tmp_path / "run.db").exists()


def test_the_database_of_a_server_is_known_as_such(tmp_path):
    pytest.importorskip("uvicorn")  # of the extra `serve`
    truearm("serve", "--database", "s.db", "--new-token", "admin", cwd=tmp_path)
    for words in (("report", "s.db"), ("status", "s.db"), ("verify", "s.db"), ("race", "--resume", "s.db")):
        found = truearm(*words, cwd=tmp_path)
        assert found.returncode == 2
        assert "s.db holds the studies of a server; `truearm serve --database" in found.stderr
