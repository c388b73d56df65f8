"""Bad hands at the command line: damaged logs, malformed files, odd arguments and full disks end in words.

Each fuzz has a fixed seed; the small sizes run in the suite, those of the first destructive trial in `make
statistical`. What must never be seen: a traceback, the words for an error of our own, a gate's exit code.
"""

import contextlib
import gzip
import json
import os
import random
import shlex
import shutil
import sqlite3
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from truearm.cli import main
from truearm.cli.answer import write
from truearm.cli.errors import INTERNAL_ERROR
from truearm.run import find_best

openpyxl = pytest.importorskip("openpyxl")
pa = pytest.importorskip("pyarrow")


def ran(*words, stdin=None):
    """Run a verb in this process; fail if anything but words and an exit code comes out."""
    found = CliRunner().invoke(main, list(words), input=stdin)
    assert found.exception is None or isinstance(found.exception, SystemExit), (words, found.exception)
    assert INTERNAL_ERROR not in found.output, (words, found.output)
    assert found.exit_code in (0, 2, 3, 4), (words, found.exit_code, found.output)
    assert found.exit_code != 2 or found.stderr.strip(), words
    return found


# Logs


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    study, race = str(folder / "study.db"), str(folder / "race.db")
    draw = random.Random(3).random
    find_best(dict.fromkeys("ABC", draw), max_pulls=48, store=study, progress=False)
    ran("race", "--save", race, "-r", "5", "-q", "true", "echo")
    return Path(study), Path(race)


def flipped(rng, data):
    some = bytearray(data)
    for _ in range(rng.choice([1, 1, 4, 30])):
        some[rng.randrange(len(some))] = rng.choice([0, 255, rng.randrange(256)])
    return bytes(some)


def reworded(rng, data):
    some = bytearray(data)
    places = [i for i, byte in enumerate(some) if chr(byte).isalnum()]
    for _ in range(rng.choice([1, 2, 5])):
        some[rng.choice(places)] = rng.choice(b'0123456789-.einfax"{}[],:')
    return bytes(some)


def cut_off(rng, data):
    return data[: rng.randrange(len(data))]


def noise(rng, _):
    return rng.randbytes(rng.randrange(1, 4000))


WRONG = [None, "", "x", -1, 10**18, 1.5, b"\xff\xfe", "[", "{}", "1e999", "nan", "told", "9" * 5000, "[" * 5000]


def edited(rng, source, target):
    """Change a log by SQL: what its tables hold, or the tables."""
    shutil.copy(source, target)
    connection = sqlite3.connect(target)
    for name in ("truearm_no_update", "truearm_no_delete"):
        connection.execute(f"DROP TRIGGER IF EXISTS {name}")
    column = rng.choice(["kind", "ticket", "arm", "draw", "value", "notes"])
    defined = "UPDATE truearm_event SET notes = ? WHERE position = 0"
    broken = rng.choice(["", "{}", "[]", "null", "{", '"x"', "[" * 5000])
    other = (f"UPDATE truearm_event SET {column} = ? WHERE position = ?", (rng.choice(WRONG), rng.randrange(60)))
    distortion = (defined, (json.dumps(distorted(rng, definition_of(connection))),))
    statement, values = rng.choice(
        [
            *((defined, (broken,)), distortion, distortion, other, other),
            ("DROP TABLE truearm_event", ()),
            ("DELETE FROM truearm_event WHERE position = 0", ()),
            ("DELETE FROM truearm_event WHERE position = ?", (rng.randrange(1, 60),)),
            ("UPDATE truearm_event SET arm = 'Z' WHERE arm = 'A'", ()),
            ("ALTER TABLE truearm_event RENAME COLUMN value TO other", ()),
            (f"PRAGMA user_version = {rng.choice([0, 1, 99])}", ()),
            ("UPDATE truearm_event SET notes = CAST(x'fffe00' AS TEXT) WHERE position = 0", ()),
        ]
    )
    with contextlib.suppress(sqlite3.Error):
        connection.execute(statement, values)
        connection.commit()
    connection.close()


def definition_of(connection):
    return json.loads(connection.execute("SELECT notes FROM truearm_event WHERE position = 0").fetchone()[0])


def distorted(rng, data):
    """Change something somewhere in plain values."""
    if isinstance(data, dict | list) and data:
        key = rng.choice(list(data) if isinstance(data, dict) else range(len(data)))
        if isinstance(data, dict) and rng.random() < 0.25:
            return {name: value for name, value in data.items() if name != key}
        data[key] = distorted(rng, data[key])
        return data
    return rng.choice([None, -1, 1e308, "x", [], {}, True, 10**30, [1], "inf"])


ASKED = (
    *(("report",), ("report", "--json"), ("report", "--csv")),
    *(("report", "--export-html", "page.html"), ("race",)),
)


def damaged_logs(logs, folder, seed, cases):
    rng, target, runs = random.Random(seed), folder / "damaged.db", 0
    for _ in range(cases):
        source = rng.choice([logs[0], *logs])
        how = rng.choice([flipped, flipped, reworded, reworded, cut_off, noise, edited, edited, edited])
        for path in folder.glob("damaged.db*"):
            path.unlink()
        if how is edited:
            edited(rng, source, target)
        else:
            target.write_bytes(how(rng, source.read_bytes()))
        kept = target.read_bytes()
        for verb, *more in rng.sample(ASKED, 3):
            for path in folder.glob("damaged.db*"):
                path.unlink()
            target.write_bytes(kept)
            again = ("race", "--resume", str(target), "-M", "6", "--max-time", "0.5", "-q")
            ran(*(again if verb == "race" else (verb, str(target), *more)))
            runs += 1
    return runs


@pytest.mark.parametrize(("seed", "cases"), [(1, 30), pytest.param(2, 576, marks=pytest.mark.slow)])
def test_damaged_logs_are_told_in_words(logs, tmp_path, monkeypatch, seed, cases):
    monkeypatch.chdir(tmp_path)
    assert damaged_logs(logs, tmp_path, seed, cases) == 3 * cases


# Files to analyze

DIGITS = "9" * 5000
TEXTS = {
    "deep.json": "[" * 100_000 + "]" * 100_000,
    "deep.jsonl": '{"arm":"A","value":' + "[" * 5000 + "]" * 5000 + "}\n",
    "digits.json": f'{{"A":[{DIGITS},1],"B":[2,3]}}',
    "digits.csv": f"arm,value\nA,{DIGITS}\nB,2\n",
    "digits.jsonl": f'{{"arm":"A","value":{DIGITS}}}\n{{"arm":"B","value":1}}\n',
    "half.json": '{"\\ud800":[1,2],"B":[2,3]}',
    "half.jsonl": '{"arm":"\\ud800","value":1}\n{"arm":"B","value":1}\n',
    "types.json": '{"A":[{"x":1}],"B":[true,null,"x"]}',
    "nested.json": '{"A":{"b":[1]},"B":[1]}',
    "lists.json": "[[1,2],[3,4]]",
    "hyperfine.json": '{"results":[{"command":["a"],"times":[1,2],"exit_codes":[0,[1,2]]}]}',
    "pyperf.json": f'{{"benchmarks":[{{"metadata":{{"name":{{}}}},"runs":[{{"values":[{DIGITS[:400]}]}}]}}]}}',
    "own.json": '{"certificate":1,"readings":{"A":["x"]}}',
    "quotes.csv": 'a,"b\n1,2\n',
    "blank.csv": "\n\n\n",
    "wide.csv": ",".join(f"c{i}" for i in range(200)) + "\n" + ",".join("1" * 200) + "\n",
    "name.csv": "a" * 100_000 + ",b\n1,2\n",
}
OURS = ("code", "value", "arm", "unit", "place", "row_of_file", "kept", "rows", "cell0", "json", "filename")


@pytest.mark.parametrize("name", TEXTS)
def test_malformed_text_is_told_in_words(name, tmp_path):
    file = tmp_path / name
    file.write_text(TEXTS[name], encoding="utf-8")
    for columns in ((), ("--arm", "arm", "--value", "value")):
        assert len(ran("analyze", str(file), *columns).stderr) < 10_000


@pytest.mark.parametrize("name", OURS)
def test_a_column_may_be_named_like_one_of_ours(name, tmp_path):
    file = tmp_path / "ours.csv"
    file.write_text(f"{name},x,v\n" + "A,1,2\nB,2,3\nA,3,bad\nB,4,5\n" * 4)
    assert ran("analyze", str(file), "--arm", name, "--value", "x").exit_code == 3
    found = ran("analyze", str(file), "--arm", name, "--value", "v")
    assert "row 3 of column 'v' must be a number, but got 'bad'" in found.stderr
    file.write_text(f"x,{name},v\nA,1,2\nB,bad,3\n")
    found = ran("analyze", str(file), "--arm", "x", "--value", name)
    assert (
        f"row 2 of column {name!r} must be a number, but got 'bad'; correct it; for a file, name" in found.stderr
    )


def test_broken_packing_is_told_in_words(tmp_path):
    whole = gzip.compress(b"arm,value\n" + b"A,1\nB,2\n" * 5000)
    flips = bytes(byte ^ 255 if place == 40 else byte for place, byte in enumerate(whole))
    for data in (whole[:60], b"none", gzip.compress(b""), flips):
        (tmp_path / "x.csv.gz").write_bytes(data)
        assert ran("analyze", str(tmp_path / "x.csv.gz"), "--arm", "arm", "--value", "value").exit_code == 2


@pytest.fixture(scope="module")
def workbook(tmp_path_factory):
    file = tmp_path_factory.mktemp("books") / "ok.xlsx"
    book = openpyxl.Workbook()
    for row in [("arm", "value"), *((arm, i) for i, arm in enumerate("ABAB" * 5))]:
        book.active.append(row)
    book.save(file)
    return file


def broken_workbooks(rng, workbook, cases):
    """Yield workbooks with a broken part, or with broken bytes."""
    parts = {name: zipfile.ZipFile(workbook).read(name) for name in zipfile.ZipFile(workbook).namelist()}
    wrong = (None, b"", b"<a><b>", b"<a>" * 20_000 + b"</a>" * 20_000, b"<worksheet>&b;</worksheet>")
    for _ in range(cases):
        if rng.random() < 0.5:
            yield flipped(rng, workbook.read_bytes())
            continue
        name, instead = rng.choice(list(parts)), rng.choice(wrong)
        file = workbook.with_name("made.xlsx")
        with zipfile.ZipFile(file, "w") as made:
            for part, data in parts.items():
                if part != name or instead is not None:
                    made.writestr(part, data if part != name else instead)
        yield file.read_bytes()


@pytest.mark.parametrize(("seed", "cases"), [(1, 30), pytest.param(2, 500, marks=pytest.mark.slow)])
def test_broken_workbooks_are_told_in_words(workbook, tmp_path, seed, cases):
    for data in broken_workbooks(random.Random(seed), workbook, cases):
        (tmp_path / "x.xlsx").write_bytes(data)
        ran("analyze", str(tmp_path / "x.xlsx"), "--arm", "arm", "--value", "value")
    (tmp_path / "x.csv").write_bytes(workbook.read_bytes())
    assert "--kind 'excel'" in ran("analyze", str(tmp_path / "x.csv"), "--arm", "arm", "--value", "value").stderr


# Arrow and Parquet: in processes of their own, because what goes wrong there ends a process

ANALYZE = """
import sys
from test_bad_input import ran
for file in sys.argv[1:]:
    print(file, flush=True)
    ran("analyze", file, "--arm", "arm", "--value", "value")
"""


def broken_tables(folder, seed, cases):
    from pyarrow import feather, parquet

    rng = random.Random(seed)
    words = pa.array(["A", "B", "A", "C"] * 60)
    numbers = [float(i % 13) for i in range(240)]
    feather.write_feather(
        pa.table({"arm": words, "value": numbers}), folder / "a.arrow", compression="uncompressed"
    )
    feather.write_feather(pa.table({"arm": words, "value": numbers}), folder / "b.arrow", compression="lz4")
    coded = pa.table({"arm": words.dictionary_encode(), "value": numbers})
    feather.write_feather(coded, folder / "c.arrow", compression="uncompressed")
    parquet.write_table(pa.table({"arm": words, "value": numbers}), folder / "d.parquet")
    for name in ("a.arrow", "b.arrow", "c.arrow", "d.parquet"):
        data = (folder / name).read_bytes()
        for i in range(cases):
            broken = folder / f"{i}-{name}"
            broken.write_bytes((cut_off if rng.random() < 0.15 else flipped)(rng, data))
            yield str(broken)


def crashes(files):
    here = str(Path(__file__).parent)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([here, *filter(None, sys.path)])}
    found = subprocess.run(
        [sys.executable, "-c", ANALYZE, *files], capture_output=True, text=True, check=False, env=environment
    )
    return (
        ""
        if found.returncode == 0
        else f"{found.stdout.splitlines()[-1:]} {found.returncode} {found.stderr[-500:]}"
    )


@pytest.mark.parametrize(("seed", "cases"), [(1, 8), pytest.param(2, 210, marks=pytest.mark.slow)])
def test_broken_tables_end_no_process(tmp_path, seed, cases):
    assert not crashes(broken_tables(tmp_path, seed, cases))


# Places that cannot be written


@pytest.mark.parametrize("place", ["/dev/full", "pipe", "dangling", "folder"])
def test_an_export_that_cannot_be_written_does_not_swallow_the_result(place, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere" / "x")
    where = place if place.startswith("/") else str(tmp_path / place)
    if place == "folder":
        where = "/proc/nothing.html"
    data = tmp_path / "x.csv"
    data.write_text("A,B\n" + "1,2\n3,4\n" * 30)
    race = ("race", "-q", "-r", "2", "true", "echo", "--export-json", str(tmp_path / "x.json"))
    for words in (("analyze", str(data)), race):
        found = ran(*words, "--export-html", where)
        assert (found.exit_code, "cannot be written" in found.stderr) == (2, True)
        assert "median" in found.stdout
    assert json.loads((tmp_path / "x.json").read_text())["status"] == "exhausted"


def test_a_pipe_that_is_read_takes_an_export(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write(pipe, "words")
    assert os.read(reader, 99) == b"words"
    os.close(reader)


def truearm(*words, **more):
    return subprocess.run(
        [sys.executable, "-m", "truearm.cli", *words], stderr=subprocess.PIPE, text=True, check=False, **more
    )


@pytest.mark.parametrize("words", [("--help",), ("report", "x.db")])
def test_a_full_standard_output_is_an_error_in_words(words, tmp_path):
    ran("race", "-q", "-r", "2", "--save", str(tmp_path / "x.db"), "true", "echo")
    with Path("/dev/full").open("w") as full:
        found = truearm(*words, stdout=full, cwd=tmp_path)
    assert found.returncode == 2
    assert found.stderr == "Error: No space left on device; choose another file, or make room\n"


def test_a_reader_who_went_away_is_no_failed_gate():
    away, writing = os.pipe()
    os.close(away)
    found = truearm("plan", "--arms", "2", stdout=writing)
    os.close(writing)
    assert (found.returncode, found.stderr) == (2, "")


def test_a_closed_standard_error_is_no_failed_gate():
    for words, code in ((("-r", "2", "true", "echo"), 3), (("nope", "echo"), 2)):
        line = shlex.join([sys.executable, "-m", "truearm.cli", "race", *words])
        assert subprocess.run(["sh", "-c", f"{line} 2>&-"], capture_output=True, check=False).returncode == code


def test_a_full_disk_ends_a_study_in_words(tmp_path):
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))"
    code = f"{limit}; from truearm.cli import main; main(['race', '--save', 'x.db', '-r', '500', 'true', 'echo'])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert found.returncode == 2
    assert "Traceback" not in found.stderr
    assert "disk" in found.stderr
