import math
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from truearm.claims.certificate import Status, Verdict
from truearm.claims.certify import certify
from truearm.claims.wording import (
    assumptions,
    html,
    interval_ends,
    name_of,
    number,
    percent,
    quantile_name,
    summary,
)
from truearm.problem import Contamination, Problem, Regularity

STEADY = np.arange(1000) * 0.618 % 1
GOOD, FAIR, POOR = 12 + STEADY, 11.6 + STEADY, 9 + STEADY


def result_of(status, *, best=None, candidates=None, tapes=None, **promises):
    tapes = {"A": GOOD, "B": FAIR, "C": POOR} if tapes is None else tapes
    problem = Problem(arms=promises.pop("arms", ("A", "B", "C")), **promises)
    candidates = candidates or ((best,) if best else problem.arms)
    return certify(problem, tapes, Verdict(status=status, best=best, candidates=candidates))


def words(status, **kwargs):
    return summary(result_of(status, **kwargs))


def test_certified_names_the_best_its_interval_the_error_and_the_limit():
    result = result_of(Status.CERTIFIED, best="A")
    text = summary(result)
    assert text.startswith("A has the highest median: 12.5, true median between 12.")
    assert "certified with error probability 5 % as long as at most 5 % of the readings are bad" in text
    assert f"it holds up to {percent(result.breakdown.oblivious, 'ROUND_FLOOR')} (prescient " in text
    assert text.endswith("3,000 pulls of 3 arms.")


def test_what_is_certified_at_eps_is_said_to_hold_at_eps():
    # breakdown points are found from the safe side and may end a hair below the declared eps
    result = result_of(Status.CERTIFIED, best="A", contamination=0.44)
    assert result.breakdown.oblivious < 0.44
    assert "it holds up to 44 %" in summary(result)


@pytest.mark.parametrize(
    ("adversary", "words_for_it"),
    [
        ("prescient", "even if whoever makes them sees the true readings"),
        ("malicious", "an adversary chooses which"),
    ],
)
def test_the_declared_adversary_is_named(adversary, words_for_it):
    text = words(Status.CERTIFIED, best="A", contamination=Contamination(0.03, adversary))
    assert words_for_it in text
    assert "(oblivious " in text


def test_a_clean_promise_is_said_to_be_one():
    assert "5 % as long as no reading is bad;" in words(Status.CERTIFIED, best="A", contamination=0.0)


def test_breakdown_points_nobody_reached_are_called_so():
    tapes = {"A": 3 + STEADY[:18], "B": STEADY[:18]}
    text = words(Status.CERTIFIED, best="A", arms=("A", "B"), tapes=tapes, contamination=0.01)
    assert "(prescient and malicious: not certified)" in text


def test_quantile_and_goal_are_said():
    text = words(Status.CERTIFIED, best="C", quantile=0.95, goal="min")
    assert text.startswith("C has the lowest 95th percentile: 9.9")


def test_tolerable_says_how_close_and_who_may_be_better():
    text = words(Status.TOLERABLE, best="B", candidates=("A", "B"), tolerance=0.6)
    assert text.startswith("B is within 0.5")
    assert "(0.6 was asked for)" in text
    assert "A may be better by that much." in text


def test_a_relative_tolerance_is_said_in_percent():
    assert "B is within 4.39 % of the highest median of all arms (6 % was asked for)" in words(
        Status.TOLERABLE, best="B", candidates=("A", "B"), tolerance="6%"
    )


def test_separated_rests_on_the_promise_of_the_paper():
    text = words(Status.SEPARATED, best="A", contamination=None)
    assert text.startswith("A has the highest observed median: 12.5, true median between ")
    assert (
        "if no reading is bad. It is the best arm with error probability 5 % if bad readings do not hide" in text
    )
    assert re.search(r"Without that promise it holds up to [\d.]+ % bad readings", text)
    assert "(an estimate)" in text


def test_separated_without_certified_contamination_says_so():
    tapes = {"A": 3 + STEADY[:4], "B": STEADY[:4]}
    text = words(Status.SEPARATED, best="A", arms=("A", "B"), tapes=tapes, contamination=None)
    assert "not certified for any share of bad readings" in text


def test_indistinguishable_says_who_how_far_and_its_own_error():
    tapes = {"A": GOOD, "B": GOOD - 0.01, "C": POOR}
    text = words(Status.INDISTINGUISHABLE, candidates=("A", "B"), tapes=tapes, delta=0.1)
    assert text.startswith("A and B cannot be told apart while 5 % of the readings may be bad")
    assert "its own error probability of 10 %, and supposes that the readings go on as they were" in text
    assert re.search(r"A looks best \(median 12.5.*\): it is at most 0\.\d+ from the best", text)
    assert re.search(r"would decide below about [\d.]+ % \(an estimate\)", text)


def test_indistinguishable_says_at_which_contamination_it_is_decided():
    result = result_of(Status.INDISTINGUISHABLE, candidates=("A", "B"), contamination=0.47)
    assert "A would be certified as best if at most 32.5 %" in summary(result)


def test_a_hopeless_question_says_why_without_a_pull():
    hopeless = {"contamination": Contamination(0.3, "malicious"), "quantile": 0.75}
    for tapes in ({}, None):
        text = words(Status.INDISTINGUISHABLE, tapes=tapes, **hopeless)
        assert "when 30 % of the readings may be bad, and which of them is up to an adversary" in text
        assert "no number of readings decides about the 75th percentile" in text


def test_exhausted_says_what_is_known_so_far():
    text = words(Status.EXHAUSTED, candidates=("A", "B"), contamination=0.44)
    assert text.startswith(
        "The readings ended before a decision: A and B may have the highest median; 1 other excl"
    )
    assert "A looks best (median 12.5" in text


def test_exhausted_with_few_readings_bounds_nothing():
    text = words(Status.EXHAUSTED, tapes={"A": [1.0], "B": [2.0], "C": []})
    assert "B looks best (median 2, too few readings to bound the true one): nothing yet bounds" in text


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


def test_a_contradiction_is_not_dressed_up_as_an_interval():
    tapes = {"A": np.where(STEADY < 0.7, np.nan, STEADY), "B": STEADY}
    text = words(Status.EXHAUSTED, arms=("A", "B"), tapes=tapes)
    assert "contradict the declared contamination" in text
    assert "contradictory" in html(result_of(Status.EXHAUSTED, arms=("A", "B"), tapes=tapes))


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
    told = float(percent(share, "ROUND_FLOOR").removesuffix(" %"))
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


def promises(design="sequential", status=Status.CERTIFIED, best="A", **kwargs):
    problem = Problem(arms=("A", "B"), **kwargs)
    return " ".join(assumptions(problem, Verdict(status=status, best=best, candidates=("A",)), design))


@pytest.mark.parametrize(
    ("contamination", "said", "unsaid"),
    [
        (None, "all effective gaps are positive", "at most"),
        (0.0, "No reading is bad.", "causal"),
        (0.05, "(oblivious)", "causal"),
        (Contamination(0.05, "prescient"), "(clairvoyant)", "(causal)"),
        (Contamination(0.05, "malicious", causal=True), "(causal)", "(clairvoyant)"),
    ],
)
def test_assumptions_name_the_contamination(contamination, said, unsaid):
    text = promises(contamination=contamination).split("Four statements")[0]
    assert said in text
    assert unsaid not in text


def test_assumptions_name_the_tape_rule_the_missing_and_the_four_statements():
    text = promises(delta=0.01)
    assert "n-th pull of an arm is the n-th draw of that arm" in text
    assert "A NaN is a bad reading" in text
    assert "Four statements are each wrong with probability at most 1 %" in text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"dependent_arms": True}, "Arms may move together"),
        ({"design": "fixed"}, "fixed before the first of them"),
        ({"status": Status.INDISTINGUISHABLE, "best": None}, "supposes stationary readings"),
        ({"regularity": Regularity(B=4.7, m2=0.7, reach=0.25)}, "B = 4.7, m2 = 0.7"),
    ],
)
def test_assumptions_are_named_only_where_they_are_made(change, said):
    assert said in promises(**change)
    assert said not in promises()
