import html.parser
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truearm import Contamination, InvalidArgument, Study, VerificationError
from truearm.analysis import analyze
from truearm.claims.certificate import Alarm, Status, Verdict
from truearm.claims.certify import certify
from truearm.policies.paired import Paired
from truearm.problem import Adversary, Handicap, Problem, Tolerance
from truearm.report.numbers import TIMES, number
from truearm.report.pages import page, result_in
from truearm.report.slider import Slider
from truearm.report.tables import arm_rows
from truearm.report.words import PLAIN, terms_for

STEADY = np.arange(1000) * 0.618 % 1
VOID = {"meta", "link", "input", "br"}


class Outline(html.parser.HTMLParser):
    """Collects text and attributes, and insists that elements close in order."""

    def __init__(self, written):
        super().__init__()
        self.open, self.text, self.ids, self.addresses = [], [], [], []
        self.feed(written)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        given_ = dict(attrs)
        self.ids += [given_["id"]] if "id" in given_ else []
        self.addresses += [given_[name] for name in ("src", "href") if name in given_]

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"script", "style"} & set(self.open):
            self.text.append(data)


def certified(arms=("A", "B", "C"), **problem):
    draw = np.random.default_rng(2)
    study = Study(arms, **problem)
    while counts := study.ask_counts():
        worse = {arm: study.problem.sign * study.problem.arms.index(arm) for arm in counts}
        study.tell_arrays({arm: draw.normal(10 - worse[arm], size=n) for arm, n in counts.items()})
    return study


@pytest.fixture(scope="module")
def study():
    return certified()


@pytest.fixture(scope="module")
def written(study):
    return page(study.result, study.readings)


def embedded(written, name):
    return json.loads(re.search(f'id="{name}">(.*?)</script>', written, re.DOTALL)[1])


def test_the_page_holds_the_result_for_machines(study, written):
    assert embedded(written, "result") == study.result.to_dict()
    assert result_in(written) == study.result


def test_the_snippet_on_the_page_verifies_it(study, written, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("report.html").write_text(written, encoding="utf-8")
    snippet = html.unescape(re.search("<pre><code>(.*?)</code></pre>", written, re.DOTALL)[1])
    exec(snippet, {"readings": study.readings})
    with pytest.raises(VerificationError):
        exec(snippet, {"readings": {**study.readings, "A": [0.0]}})


def text_of(written):
    return "".join(Outline(written).text)


def test_the_page_says_all_and_asks_nothing_from_elsewhere(study, written):
    outline, words = Outline(written), text_of(written)
    assert len(outline.ids) == len(set(outline.ids))
    assert outline.addresses == ["data:,"]
    assert not re.search(r"https?:|@import|url\(", written)
    assert "default-src 'none'" in written
    assert all(line in words for line in (*str(study.result).split("\n"), *study.result.assumptions))
    assert study.result.certificate.digest in words


def test_readings_of_another_study_are_refused(study):
    with pytest.raises(InvalidArgument, match="digest"):
        page(study.result, certified(contamination=0.01).readings)


@given(st.lists(st.text(min_size=1, max_size=12).filter(str.isprintable), min_size=2, max_size=3, unique=True))
def test_no_name_becomes_markup(names):
    problem = Problem(arms=("a\x00\n\u202eb", *(f"</script><b onload=x>{name}" for name in names)))
    readings = {arm: [float(i) for i in range(6)] for arm in problem.arms}
    result = certify(problem, readings, Verdict(status=Status.EXHAUSTED, candidates=problem.arms))
    written = page(result, readings)
    assert "<b onload" not in written
    assert result_in(written) == result
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", written)
    words = text_of(written)
    assert all(name in words for name in ("a\\x00\\x0a\\u202eb", *problem.arms[1:]))


@pytest.mark.parametrize(
    "readings",
    [
        {"A": [], "B": []},
        {"A": [1.0], "B": []},
        {"A": [None, 1.0], "B": [float("nan")] * 3},
        {"A": [float("inf")] * 9, "B": [-float("inf")] * 9},
        {"A": [1e307, -1e307] * 9, "B": [0.0] * 9},
        {"A": [5e-324] * 40, "B": [0.0] * 40},
        {"A": [7.0] * 500, "B": [7.0] * 500},
    ],
)
def test_odd_readings_make_a_page_too(readings):
    problem = Problem(arms=("A", "B"))
    verdict = Verdict(status=Status.EXHAUSTED, candidates=problem.arms)
    written = page(certify(problem, readings, verdict), readings)
    Outline(written)
    assert not re.search(r'="-?(nan|inf)', written)


@pytest.mark.parametrize(
    "problem",
    [
        {"arms": ("only",)},
        {"contamination": None},
        {"contamination": Contamination(0.0)},
        {"quantile": 0.95, "contamination": Contamination(0.01, "malicious")},
        {"goal": "min", "tolerance": "30%"},
        {"dependent_arms": True},
        {"policy": "lucb"},
    ],
)
def test_every_kind_of_problem_makes_a_page(problem):
    study = certified(**problem)
    Outline(page(study.result, study.readings))


def test_the_slider_begins_at_the_declared_eps_with_what_the_markup_says(study, written):
    view = embedded(written, "picture")
    at = view["percent"].index("5%")
    frame = view["frames"]["oblivious"][at]
    assert f'value="{at}"' in written
    assert frame["sentence"] in text_of(written)
    for arm, (_, where, state, *_) in zip(study.problem.arms, frame["rows"], strict=True):
        assert f'<span class="name">{arm}</span>' in written
        assert f'<span class="where">{where}</span><span class="state">{state}</span>' in written


@pytest.fixture(scope="module")
def data():
    draw = np.random.default_rng(5)
    readings = {arm: draw.normal(3 - 1.5 * i, size=100) for i, arm in enumerate(["A", "B", "C"])}
    readings["B"][:2] = np.nan
    return readings


def cells(written, section):
    """Return the rows of the tables of a section, as texts of their cells."""
    part = re.search(f'<section aria-labelledby="{section}-title">(.*?)</section>', written, re.DOTALL)[1]
    rows = re.findall("<tr>(.*?)</tr>", part, re.DOTALL)
    return [[re.sub("<.*?>", "", cell) for cell in re.findall("<t[hd].*?</t[hd]>", row)] for row in rows]


def test_a_page_of_an_analysis_has_its_notes_and_its_table(data):
    turned = {arm: data[arm] for arm in ("B", "C", "A")}
    found = analyze(turned)
    written = page(found, turned)
    words = text_of(written)
    assert all(note in words for note in found.notes)
    assert "2 missing values count at their worst" in words
    assert [tuple(row) for row in cells(written, "arms")] == arm_rows(found, PLAIN)
    assert [row[0] for row in cells(written, "arms")] == ["arm", "A", "B", "C"]
    assert [row[-1] for row in cells(written, "arms")] == ["standing", "best", "excluded by A", "excluded by A"]


def test_a_page_has_all_pairs_if_they_were_asked_for(data):
    asked, found = page(analyze(data, pairs=True), data), page(analyze(data), data)
    rows = cells(asked, "pairs")
    assert len(rows) == 1 + 6
    assert rows[1][:2] == ["A", "C"]
    assert rows[1][-1] == "yes"
    assert "Every arm against every other" not in found


def test_a_doubtful_page_excludes_no_arm_and_names_the_remedy():
    rng = np.random.default_rng(4)
    readings = {"A": rng.normal(5, 1, 200), "B": rng.normal(0, 1, 200)}
    problem = Problem(arms=("A", "B"))
    result = certify(problem, readings, Verdict.doubtful((Alarm("dependence", "A"),), problem.arms))
    written = page(result, readings)
    words = text_of(written)
    assert "<h1>Doubtful: nothing is certified</h1>" in written
    assert words.count("Measure the arms side by side") == 2  # the answer, and among the alarms
    assert "every arm could be best" in words
    assert not re.search(r"is the best arm|excluded up to|is better|\bsure\b", words)
    assert result_in(written) == result


def test_in_rounds_the_page_shows_what_was_observed_and_no_interval_of_an_arm():
    rng = np.random.default_rng(5)
    tapes = {"A": rng.normal(2.0, 0.1, 60), "B": rng.normal(2.5, 0.1, 60)}
    found = analyze(tapes, round="rows", goal="min")
    written = page(found, tapes)
    shown = re.findall(r'<span class="where">([^<]*)</span>', written)
    assert shown[-2:] == [number(arm.observed) for arm in found.arms]
    assert written.index('id="ratios"') < written.index('id="arms-title"') < written.index('id="intervals"')
    ratio = cells(written, "arms")[2][4]
    assert shown[:2] == ["1", ratio]
    assert "observed median: " in written
    assert "true median: " not in written


def test_readings_are_shown_in_the_unit_that_was_asked_for():
    """The result for machines stays in the unit of the readings, and so does its digest."""
    tapes = {"A": [2.2e-6 + i * 1e-8 for i in range(60)], "B": [4.4e-6 + i * 1e-8 for i in range(60)]}
    found = analyze(tapes, goal="min", tolerance=1.5e-6)
    written = page(found, tapes, terms=terms_for(found, "wall", TIMES[1]))
    assert result_in(written).arms[0].observed == found.arms[0].observed
    text = " ".join(Outline(written).text)
    assert "median [us]" in text
    assert "in microseconds; smaller is better" in text
    assert "A is fastest" in text
    assert "0.0000" not in text


@pytest.mark.parametrize("told", [6, 0])
@pytest.mark.parametrize("gate", [None, Handicap("A", Tolerance.of("5%"))])
def test_an_arm_without_a_value_in_rounds_has_a_page(told, gate):
    """It failed in every round, or the race was stopped before its first run."""
    study = Study(Problem(arms=("A", "B"), goal="min", rounds=True, handicap=gate))
    for _ in range(max(1, told)):
        for pull in study.ask(2):
            if pull.arm == "A":
                study.tell(pull, 5.0)
            elif told:
                study.tell(pull, math.nan)
    study.stop()
    assert "NaN" not in page(study.result, study.readings)


def test_the_page_of_a_gate_does_not_call_the_arm_that_passes_the_best():
    """Judged as 10% worse than it is, the baseline was "excluded" on the page of a PASS."""
    problem = Problem(
        arms=("base", "new"), goal="min", rounds=True, handicap=Handicap("base", Tolerance.of("10%"))
    )
    study, draw = Study(problem, policy=Paired(guard="base")), np.random.default_rng(1)
    while pulls := study.ask(2):
        for pull in pulls:
            study.tell(pull, draw.normal(10, 0.1))
    words = text_of(page(study.result, study.readings))
    assert "PASS: new is not worse than base by more than 10%." in words
    assert not re.search("best arm|excluded", words, re.IGNORECASE)


def test_one_page_tells_one_story_about_ties():
    """A page said "may tie" and "no other is a candidate", and struck the arm out."""
    tapes = {"A": (STEADY < 0.56) * 1.0 + 5, "B": (STEADY < 0.48) * 1.0 + 5, "C": STEADY}
    found = analyze(tapes, contamination=0)
    assert found.may_tie == ("B",)
    written = page(found, tapes)
    assert "<h1>A is best, B may tie</h1>" in written
    assert "A is the best arm. B may tie with A. Excluded: C." in written
    rows = re.findall(
        r'<li class="row ([^"]*)"><span class="name">.</span>.*?<span class="state">(.*?)</span>',
        written,
        re.DOTALL,
    )
    assert [("excluded" in kind, state.split(" up ")[0]) for kind, state in rows] == [
        (False, "the best arm"),
        (False, "may tie"),
        (True, "excluded"),
    ]
    assert [row[-1] for row in cells(written, "arms")[1:]] == ["best", "may tie", "excluded by A"]


@pytest.mark.parametrize("adversary", ["oblivious", "prescient", "malicious"])
def test_the_slider_excludes_what_an_analysis_at_that_contamination_excludes(data, adversary):
    found = analyze(data)
    points = Slider(found, data, PLAIN).points[Adversary(adversary)]
    assert min(points.values()) == getattr(found.breakdown, adversary)
    for arm, point in points.items():
        if 0.001 < point < 0.48 and arm == "B":
            below, above = (
                analyze(data, contamination=Contamination(point + d, adversary)) for d in (-1e-3, 1e-3)
            )
            assert arm not in below.candidates
            assert arm in above.candidates


def test_a_plot_is_one_figure(study):
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    assert study.result.plot(ax) is ax
    assert [label.get_text() for label in ax.get_yticklabels()] == ["A", "B", "C"]
    assert [bar.get_facecolor()[3] > 0 for bar in ax.patches] == [True, False, False]


@pytest.mark.parametrize("name", ["</td><script>alert(1)</script>", "' onload='x\x00\x1b[2J"])
def test_a_fragment_for_notebooks_is_well_made(name):
    found = analyze({name: [1.0, 2.0, 3.0], "B": [4.0, 5.0, 6.0]}, round="rows")
    fragment = found._repr_html_()
    Outline(fragment)
    assert not re.search(r"<script|<link|<img|https?:|url\(|@import", fragment)
    assert fragment.count("<svg") == 2
    assert fragment.count("<td") == 2 * fragment.count("<th>")  # a cell for each title


def test_a_page_before_its_first_reading_says_so():
    study = Study(["A", "B"])
    study.ask()
    study.stop()
    shown = page(study.result, study.readings)
    assert "There are no readings yet." in shown
    assert "estimator" not in shown
