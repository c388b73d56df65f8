import math
import re
from dataclasses import replace
from decimal import ROUND_CEILING
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from truearm.analysis import analyze
from truearm.claims.certificate import DECIDED, SIDE_BY_SIDE, Alarm, Status, Verdict
from truearm.claims.certify import certify
from truearm.claims.result import Lead
from truearm.problem import Contamination, Problem, Regularity, Tolerance
from truearm.report import wording
from truearm.report.notebook import html
from truearm.report.promises import alarm
from truearm.report.summary import summary
from truearm.report.wording import interval_ends, least_factor, name_of, number, percent, quantile_name

STEADY = np.arange(1000) * 0.618 % 1
GOOD, FAIR, POOR = 12 + STEADY, 11.6 + STEADY, 9 + STEADY


def result_of(status, *, best=None, candidates=None, tapes=None, **promises):
    tapes = {"A": GOOD, "B": FAIR, "C": POOR} if tapes is None else tapes
    problem = Problem(arms=promises.pop("arms", ("A", "B", "C")), **promises)
    candidates = candidates or ((best,) if best else problem.arms)
    return certify(problem, tapes, Verdict(status=status, best=best, candidates=candidates))


def words(status, **kwargs):
    return summary(result_of(status, **kwargs))


def test_certified_says_who_by_how_much_how_sure_and_how_far_it_reaches():
    result = result_of(Status.CERTIFIED, best="A")
    text = summary(result)
    assert text.startswith(
        "A has the highest median: 1.03x B's (at least 1.02x) and 1.32x C's (at least 1.29x). 95% sure, "
    )
    assert "as long as each reading is bad with a chance of at most 5%, whatever its true value." in text
    assert f"support it for up to {percent(result.breakdown.oblivious, 'ROUND_FLOOR')} bad readings." in text
    assert text.endswith("3,000 pulls of 3 arms.")


def test_what_is_certified_at_eps_is_said_to_hold_at_eps():
    # breakdown points are found from the safe side and would end a hair below the declared eps
    result = result_of(Status.CERTIFIED, best="A", contamination=0.44)
    assert result.breakdown.oblivious == 0.44
    assert "These readings support it for up to 44% bad readings." in summary(result)


@pytest.mark.parametrize(
    ("adversary", "words_for_it"),
    [
        ("oblivious", "each reading is bad with a chance of at most 3%, whatever its true value."),
        ("prescient", "whatever its true value, even if whoever makes them sees the true ones."),
        ("malicious", "at most 3% of the readings are bad, even if an adversary picks which."),
    ],
)
def test_the_declared_adversary_is_described(adversary, words_for_it):
    assert words_for_it in words(Status.CERTIFIED, best="A", contamination=Contamination(0.03, adversary))


def test_a_clean_promise_is_said_to_be_one():
    assert "95% sure, as long as no reading is bad." in words(Status.CERTIFIED, best="A", contamination=0.0)


def test_certified_never_stands_beside_unknown():
    tapes = {"A": 3 + STEADY[:16], "B": STEADY[:16]}
    result = result_of(Status.CERTIFIED, best="A", arms=("A", "B"), tapes=tapes, contamination=0.01)
    assert result.arms[0].mad_high == math.inf
    assert not re.search("unknown|infinity|true median", summary(result))


def test_quantile_and_goal_are_said():
    text = words(Status.CERTIFIED, best="C", quantile=0.95, goal="min")
    assert text.startswith("C has the lowest 95th percentile: B's is 1.26x as high")


@pytest.mark.parametrize(
    ("lead", "goal", "said"),
    [
        (Lead("B", "ratio", 1.414, 1.0666), "max", "1.41x B's (at least 1.06x)"),
        (Lead("B", "ratio", 1.414, 1.0666), "min", "B's is 1.41x as high (at least 1.06x)"),
        (Lead("B", "ratio", 1.41, 1.0049), "max", "1.41x B's (at least 1.004x)"),
        (Lead("B", "ratio", 1.41, None), "max", "1.41x B's"),
        (Lead("B", "difference", 5.12, 3.99), "max", "5.12 above B's (at least 3.9)"),
        (Lead("B", "difference", 5.12, None), "min", "5.12 below B's"),
    ],
)
def test_at_least_is_said_only_of_what_is_certain_and_above_nothing(lead, goal, said):
    assert wording.lead(lead, goal) == said


@given(st.floats(1, 1e6))
def test_certain_factors_are_rounded_down(factor):
    told = re.search(r"at least ([\d.,]+)x", least_factor(factor))
    assert told is None or 1 < float(told[1].replace(",", "")) <= factor * (1 + 1e-12)
    assert told is not None or factor < 1.00001


def test_only_the_nearest_rivals_are_told_and_the_others_counted():
    tapes = {name: 20 - 2 * i + STEADY for i, name in enumerate("ABCDEF")}
    text = words(Status.CERTIFIED, best="A", arms=tuple("ABCDEF"), tapes=tapes)
    assert re.match(
        r"A has the highest median: 1\.1\dx B's .*, .* C's .* and .* D's .*; 2 others are further", text
    )
    assert "E's" not in text


def tied(ties=("B",), c=1.0):
    tapes = {"A": [3.0] * 200, "B": [3.0] * 200, "C": [c] * 200}
    return replace(result_of(Status.CERTIFIED, best="A", candidates=("A", "B"), tapes=tapes), ties=ties)


def test_ties_are_told_as_ties():
    text = summary(tied())
    assert text.startswith("A and B tie for the highest observed median: 3x C's (at least 2.9")
    assert "B's" not in text


def test_a_tie_of_all_arms_compares_with_nobody():
    assert summary(tied(("B", "C"), c=3.0)).startswith("A, B and C tie for the highest observed median. 95% sure")


def test_tolerable_says_how_close_and_who_may_be_better():
    text = words(Status.TOLERABLE, best="B", candidates=("A", "B"), tolerance=0.6)
    assert text.startswith("B is within 0.5")
    assert "of the highest median (0.6 was asked for). 95% sure, as long as each reading" in text
    assert "A may be better by that much." in text


def test_a_relative_tolerance_is_said_in_percent():
    said = words(Status.TOLERABLE, best="B", candidates=("A", "B"), tolerance="6%", contamination=0.05)
    assert said.startswith("B is within 4.39% of the highest median (6% was asked for).")


def test_separated_rests_on_the_promise_of_the_paper_all_of_it():
    text = words(Status.SEPARATED, best="A", contamination=None)
    assert text.startswith("A has the highest observed median: 1.03x B's ")
    assert (
        "95% sure that no arm is better, as long as bad readings do not reverse the true order and whoever "
        "makes them does not see the future." in text
    )
    assert re.search(r"Without that promise these readings support it for up to [\d.]+% bad readings\.", text)


def test_separated_without_certified_contamination_says_so():
    tapes = {"A": 3 + STEADY[:4], "B": STEADY[:4]}
    text = words(Status.SEPARATED, best="A", arms=("A", "B"), tapes=tapes, contamination=None)
    assert "not certified for any share of bad readings" in text


def test_indistinguishable_says_who_how_far_and_its_own_error():
    tapes = {"A": GOOD, "B": GOOD - 0.01, "C": POOR}
    text = words(Status.INDISTINGUISHABLE, candidates=("A", "B"), tapes=tapes, delta=0.1)
    assert text.startswith(
        "Not decided: A and B are too close to tell which has the highest median: 5% bad readings"
    )
    assert "More readings would not help (90% sure, if they keep behaving the same)." in text
    assert re.search(r"A looks best \(12\.5\) and is at most 0\.\d+ from the best \(90% sure\)\.", text)
    assert re.search(r"would decide only below about [\d.]+% bad readings \(an estimate\)", text)


def test_more_readings_cannot_help_is_never_said_without_its_error():
    for eps in (0.01, 0.05, 0.47):
        text = words(
            Status.INDISTINGUISHABLE, tapes={"A": GOOD, "B": GOOD, "C": GOOD}, contamination=eps, delta=0.2
        )
        assert re.search(r"would not help \(80% sure", text)


def test_indistinguishable_says_at_which_contamination_it_is_decided():
    result = result_of(Status.INDISTINGUISHABLE, candidates=("A", "B"), contamination=0.47)
    assert "These readings support it for up to 32.5% bad readings." in summary(result)


def test_a_hopeless_question_says_why_without_a_pull():
    hopeless = {"contamination": Contamination(0.3, "malicious"), "quantile": 0.75}
    for tapes in ({}, None):
        text = words(Status.INDISTINGUISHABLE, tapes=tapes, **hopeless)
        assert (
            "when an adversary may pick 30% of the readings and change them, no number of readings tells" in text
        )
        assert "has the highest 75th percentile. Allow for fewer bad readings." in text


def test_exhausted_says_what_is_known_so_far():
    text = words(Status.EXHAUSTED, candidates=("A", "B"), contamination=0.44)
    assert text.startswith(
        "Not decided yet: A or B may have the highest median; 1 other ruled out. A looks best (12.5)"
    )


def test_exhausted_with_few_readings_bounds_nothing():
    text = words(Status.EXHAUSTED, tapes={"A": [1.0], "B": [2.0], "C": []})
    assert text == "Not decided yet: A, B or C may have the highest median. B looks best (2). 2 pulls of 3 arms."


def test_who_was_measured_alone_does_not_look_best():
    text = words(Status.EXHAUSTED, tapes={"A": [1.0], "B": [], "C": []})
    assert text == "Not decided yet: A, B or C may have the highest median. 1 pull of 3 arms."


DOUBT = Alarm("dependence", "A")


def test_doubtful_says_what_is_wrong_what_to_do_and_claims_nothing():
    problem = Problem(arms=("A", "B", "C"))
    result = certify(problem, {"A": GOOD, "B": FAIR, "C": POOR}, Verdict.doubtful((DOUBT,), problem.arms))
    text = summary(result)
    assert text.startswith("Doubtful, so nothing is certified. The readings of A depend on when they were taken")
    assert "Measure the arms side by side" in text
    assert "A looks best." in text
    assert not re.search(r"\bsure\b|support|has the|better|x B's", text)


def test_drift_beside_a_result_does_not_advise_what_was_done():
    problem = Problem(arms=("A", "B"))
    text = alarm(DOUBT._replace(detail=SIDE_BY_SIDE), problem)
    assert "Measure the arms side by side" not in text
    assert "All arms were measured side by side" in text


def test_many_doubts_are_counted():
    problem = Problem(arms=("A", "B", "C"))
    verdict = Verdict.doubtful(tuple(Alarm("dependence", arm) for arm in "ABC"), problem.arms)
    assert "1 more doubt." in summary(certify(problem, {"A": GOOD}, verdict))


KINDS = ("dependence", "missing", "contradiction", "clusters", "confounded", "outliers", "units", "ties")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("eps", [None, 0.0, 0.05, Contamination(0.05, "malicious")])
def test_every_alarm_is_one_whole_sentence_about_its_arm(kind, eps):
    one = Alarm(kind, "" if kind in ("clusters", "confounded") else "x%{}", 20, 100, (3.0,), "day")
    text = alarm(one, Problem(arms=("x%{}", "B"), contamination=eps))
    assert text[0].isupper() or text[0].isdigit()
    assert text.endswith(".")
    assert ("day" if kind in ("clusters", "confounded") else "x%{}") in text


def test_an_arm_that_sounds_like_our_own_sentences_keeps_its_whole_summary():
    for name in ("a Alarm: b", "highest median", "it. 95% sure", "Readings are in seconds."):
        tapes = {name: np.round(3 * GOOD), "B": POOR}
        for status, eps in ((Status.CERTIFIED, 0.05), (Status.SEPARATED, None)):
            result = result_of(
                status, best=name, candidates=(name, "B"), arms=(name, "B"), tapes=tapes, contamination=eps
            )
            plain = result_of(
                status,
                best="Q",
                candidates=("Q", "B"),
                arms=("Q", "B"),
                tapes={"Q": tapes[name], "B": POOR},
                contamination=eps,
            )
            assert result.alarms
            for alarms in (True, False):
                assert summary(result, alarms=alarms) == re.sub(r"\bQ\b", name, summary(plain, alarms=alarms))


def test_percent_has_no_space_and_nothing_is_mended():
    odd = re.compile(r"\d %|mend|supposes|cries|by hand|stands alone|none of the two|\b1 others")
    for status in Status:
        best = "A" if status in DECIDED else None
        for eps in (None, 0.0, 0.05, 0.44, Contamination(0.05, "malicious"), Contamination(0.05, "prescient")):
            result = result_of(status, best=best, contamination=eps, tolerance=0.1)
            assert not odd.search(" ".join((summary(result), *result.assumptions)))


def test_no_data_is_said_plainly():
    assert words(Status.EXHAUSTED, tapes={}) == (
        "No readings yet: nothing is known about which of A, B and C has the highest median. 0 pulls of 3 arms."
    )


@pytest.mark.parametrize(
    ("tapes", "said"), [({}, "no readings yet"), ({"A": GOOD}, "its observed median is 12.5")]
)
def test_one_arm_is_the_only_arm(tapes, said):
    text = words(Status.CERTIFIED, best="A", arms=("A",), tapes=tapes)
    assert text.startswith("A is the only arm")
    assert said in text


def test_alarms_are_told_and_the_rest_counted():
    tied = {arm: np.round(3 * STEADY) for arm in "ABC"}
    text = words(Status.EXHAUSTED, tapes=tied)
    assert text.count("Alarm: ") == 2
    assert text.endswith("1 more alarm.")


def test_many_arms_are_counted_not_listed():
    arms = tuple(f"arm {i}" for i in range(30))
    text = words(Status.EXHAUSTED, arms=arms, tapes={})
    assert "arm 0, arm 1, arm 2, arm 3, arm 4 and 25 others" in text


statuses = st.sampled_from(list(Status))
readings = st.lists(st.one_of(st.none(), st.floats()), max_size=30)


@settings(max_examples=60, deadline=None)
@given(statuses, st.lists(readings, min_size=1, max_size=4), st.sampled_from([None, 0.0, 0.05]), st.booleans())
def test_every_result_has_words_and_a_picture(status, tapes, eps, decided):
    arms = tuple("ABCD"[: len(tapes)])
    best = "A" if decided else None
    result = result_of(
        status, best=best, candidates=arms, arms=arms, tapes=dict(zip(arms, tapes, strict=True)), contamination=eps
    )
    assert summary(result).endswith(".")
    assert "nan" not in summary(result).lower().split()
    assert WellFormed.of(html(result)).open == []


class WellFormed(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.tags = [], []

    @classmethod
    def of(cls, text):
        parser = cls()
        parser.feed(text)
        parser.close()
        return parser

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.append((tag, dict(attrs)))

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_a_notebook_shows_that_html():
    result = result_of(Status.CERTIFIED, best="A")
    assert result._repr_html_() == html(result)


def test_html_draws_both_parts_of_every_interval():
    page = WellFormed.of(html(result_of(Status.CERTIFIED, best="A")))
    drawn = [tag for tag, _ in page.tags if tag in ("svg", "rect")]
    assert drawn == ["svg", "rect"] * 3
    rect = next(attrs for tag, attrs in page.tags if tag == "rect")
    line = next(attrs for tag, attrs in page.tags if tag == "line")
    assert float(line["x1"]) < float(rect["x"])
    assert float(rect["x"]) + float(rect["width"]) < float(line["x2"])


def test_html_needs_no_script_and_no_network():
    page = html(result_of(Status.CERTIFIED, best="A"))
    assert not re.search(r"<script|<link|<img|https?:|url\(|@import|on\w+=", page)


KNOWN = {"div", "style", "p", "table", "thead", "tr", "th", "tbody", "td", "svg", "line", "rect"}


@settings(max_examples=50)
@given(st.text(min_size=1).filter(lambda name: name != "B"))
@example("</td><script>alert(1)</script>")
@example("' onload='x\x00\x1b[2J")
def test_arm_names_cannot_break_out(name):
    result = result_of(Status.EXHAUSTED, arms=(name, "B"), tapes={name: [1.0, 2.0]})
    page = WellFormed.of(html(result))
    assert page.open == []
    assert {tag for tag, _ in page.tags} <= KNOWN | {"details", "summary", "ul", "li"}
    assert all(c.isprintable() for c in summary(result))


def test_infinite_and_huge_readings_are_drawn_inside_the_picture():
    tapes = {"A": [math.inf] * 50, "B": [-1.7e308, 1.7e308] * 40, "C": [-math.inf] * 50}
    page = WellFormed.of(html(result_of(Status.EXHAUSTED, tapes=tapes)))
    places = [float(attrs[key]) for tag, attrs in page.tags for key in ("x1", "x2", "x") if key in attrs]
    assert all(0 <= place <= 260 for place in places)


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(min_value=0, max_value=1e300))
def test_ends_of_intervals_are_rounded_outward(low, width):
    high = low + width
    ends = interval_ends(low, high)
    told = [
        float(end.replace(",", "").replace("minus infinity", "-inf").replace("infinity", "inf")) for end in ends
    ]
    assert told[0] <= low
    assert told[1] >= high


@given(st.floats(min_value=1e-12, max_value=1))
def test_breakdown_points_are_rounded_down(share):
    told = float(percent(share, "ROUND_FLOOR").removesuffix("%"))
    assert 0.989 * share <= told / 100 <= share * (1 + 1e-12)


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (0.0, "0"),
        (-12.3456, "-12.35"),
        (1e6, "1,000,000"),
        (0.1, "0.1"),
        (math.nan, "unknown"),
        (123456.0, "123,456"),
    ],
)
def test_numbers_are_short(x, text):
    assert number(x) == text


@pytest.mark.parametrize(
    ("q", "text"), [(0.22, "22nd percentile"), (0.13, "13th percentile"), (0.03, "3rd percentile")]
)
def test_quantiles_have_their_ordinals(q, text):
    assert quantile_name(q) == text


def test_names_keep_letters_of_every_script():
    assert name_of("größe 速度 \u202e") == "größe 速度 \ufffd"


def promises(design="sequential", status=Status.EXHAUSTED, best=None, **kwargs):
    problem = Problem(arms=("A", "B"), **kwargs)
    verdict = Verdict(status=status, best=best, candidates=problem.arms)
    return " ".join(certify(problem, {}, verdict, design=design).assumptions)


@pytest.mark.parametrize(
    ("contamination", "said", "unsaid"),
    [
        (None, "all effective gaps are positive", "a chance of at most"),
        (None, "does not see readings not yet taken (causal)", "(oblivious)"),
        (0.0, "No reading is bad.", "causal"),
        (0.05, "a chance of at most 5%, whatever its true value and whatever happened before", "causal"),
        (0.05, "(oblivious)", "causal"),
        (Contamination(0.05, "prescient"), "(clairvoyant)", "(causal)"),
        (Contamination(0.05, "malicious", causal=True), "(causal)", "(clairvoyant)"),
    ],
)
def test_assumptions_name_the_contamination(contamination, said, unsaid):
    text = promises(contamination=contamination)
    assert said in text
    assert unsaid not in text


def test_assumptions_name_the_tape_rule_the_missing_the_time_outs_and_how_delta_is_spent():
    text = promises(delta=0.01)
    assert "n-th pull of an arm is the n-th draw of that arm" in text
    assert "A missing reading counts at its worst" in text
    assert "A time-out is a reading worse than every value" in text
    assert (
        "Each of these is wrong with probability at most 1%, each on its own: the decision, its breakdown" in text
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"dependent_arms": True}, "Arms may move together"),
        ({"design": "fixed"}, "fixed before the first of them"),
        ({"status": Status.INDISTINGUISHABLE}, "assumes that future readings behave the same"),
        ({"status": Status.INDISTINGUISHABLE}, "has its own error probability of 5%"),
        ({"status": Status.CERTIFIED, "best": "A"}, "arms that tie with it, or may, are listed"),
        ({"regularity": Regularity(B=4.7, m2=0.7, reach=0.25)}, "B = 4.7, m2 = 0.7"),
    ],
)
def test_assumptions_are_named_only_where_they_are_made(change, said):
    assert said in promises(**change)
    assert said not in promises()


def test_notes_count_the_arms_with_missing_values_wherever_they_are_listed():
    found = analyze({arm: [1.0, math.nan if arm in "FG" else 2.0] for arm in "ABCDEFG"})
    assert "2 missing values count at their worst (F 1, G 1)." in found.notes
    many = analyze({arm: [1.0, math.nan] for arm in "ABCDEFG"})
    assert any(note.endswith("(A 1, B 1, C 1, D 1, E 1, 2 other arms).") for note in many.notes)


def test_one_reading_does_not_bound():
    assert "1 reading does not bound the true one" in summary(analyze({"a": [1.0]}))


def test_a_tolerance_is_told_as_it_was_given():
    """A gate at 1.25 said "worse by more than 1.3", which nobody had shown."""
    said = [wording.amount(Tolerance.of(given)) for given in (1.25, 0.256, "5.1234%", 1234.5, 3e-9)]
    assert said == ["1.25", "0.256", "5.1234%", "1,234.5", "3e-09"]
    assert wording.distance(1.25, Problem(arms=("A",), tolerance=1.25)) == "1.25"
    assert wording.distance(1.249, Problem(arms=("A",), tolerance=1.25)) == "1.3"
    assert wording.distance(0.0256, Problem(arms=("A",), at_least=1, tolerance=0.0256)) == "2.56 points"


def test_promises_and_errors_are_rounded_to_the_safe_side():
    """Certified at 12.368% it said 12.4%; wrong with a chance of 1/12 it said 8.33%."""
    result = result_of(Status.CERTIFIED, best="A", contamination=Contamination(0.12368, error=1 / 30))
    assert "91.66% sure, as long as each reading is bad with a chance of at most 12.3%," in summary(result)
    assert result.assumptions[0].startswith("Each reading is bad with a chance of at most 12.3%,")
    assert result.assumptions[-1].startswith("Each of these is wrong with probability at most 8.34%,")
    assert "93% sure" in words(Status.CERTIFIED, best="A", delta=0.07)
    assert percent(0.1 + 0.2, ROUND_CEILING) == "30%"


def test_how_near_the_best_an_arm_is_says_what_it_rests_on():
    """Without a bound on bad readings what is known of true medians is known if there are none."""
    tapes = {"A": GOOD[:150], "B": GOOD[:150] - 0.01}
    said = str(analyze(tapes, contamination=None))
    assert "from the best (95% sure, if no reading is bad)" in said
    assert "if no reading is bad" not in str(analyze(tapes))
