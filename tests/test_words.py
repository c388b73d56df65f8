"""The sentences about results, as a table: tests/words.txt has what each of these results says.

To see what changes, run this file as a program: it prints the table anew.
"""

import math
import re
import sys
from decimal import ROUND_CEILING
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import truearm as ta
from truearm.report import words
from truearm.report.numbers import (
    Unit,
    amount,
    distance,
    ends,
    least_factor,
    name_of,
    number,
    percent,
    quantile_name,
)

TABLE = Path(__file__).with_name("words.txt")
STEADY = np.arange(1000) * 0.618 % 1
N = 300
GOOD, FAIR, POOR = 12 + STEADY, 11.6 + STEADY, 9 + STEADY
ONES, FEW = (STEADY[:N] < 0.7) * 1.0, (STEADY[:N] < 0.25) * 1.0
LOAD = 10 + 5 * (np.arange(60) * 0.382 % 1)
TURNS = np.where(np.arange(60) % 2, 1.01, 0.99)
USERS = {
    "arm": ["A", "B"] * 400,
    "ms": np.tile([12.0, 9.0], 400) + np.repeat(STEADY[:200], 4),
    "user": np.repeat(np.arange(200), 4),
}
SECONDS = words.Terms("run", "command", "fastest", "faster", "slower", Unit("ms", "milliseconds", 1e-3), True)


def analyze(*tapes, **options):
    return ta.analyze(dict(zip("ABCDEFGHI", tapes, strict=False)), **options)


def rounds(*tapes, goal="min", **options):
    return analyze(*tapes, goal=goal, round="rows", **options)


def study(*tapes, **options):
    """Return the result of a study that was stopped when the readings ended."""
    arms = "ABCDEFGHI"[: len(tapes)]
    made = ta.Study(list(arms), seed=1, **options)
    left = {arm: list(tape) for arm, tape in zip(arms, tapes, strict=True)}
    while not made.done and all(left.values()):
        for pull in made.ask():
            made.tell(pull, left[pull.arm].pop(0))
    made.stop()
    return made.result


def spoil(tape, n, value=math.nan):
    """Return a tape with its first readings replaced."""
    return np.concatenate((np.full(n, value), tape[n:]))


MALICIOUS, PRESCIENT = ta.Contamination(0.03, "malicious"), ta.Contamination(0.03, "prescient")
CASES = {
    "certified": lambda: analyze(GOOD, FAIR, POOR),
    "certified, min": lambda: analyze(GOOD, FAIR, POOR, goal="min"),
    "certified, quantile": lambda: analyze(GOOD, FAIR, POOR, quantile=0.95),
    "certified, differences": lambda: analyze(GOOD - 12, POOR - 12),
    "certified, many arms": lambda: analyze(*(20 - 2 * i + STEADY for i in range(6))),
    "certified, clean": lambda: analyze(GOOD, POOR, contamination=0),
    "certified, prescient": lambda: analyze(GOOD, POOR, contamination=PRESCIENT),
    "certified, malicious": lambda: analyze(GOOD, POOR, contamination=MALICIOUS),
    "certified, fixed design": lambda: analyze(GOOD, POOR, design="fixed"),
    "certified, other delta": lambda: analyze(GOOD, POOR, delta=0.07),
    "certified, audited": lambda: analyze(GOOD, POOR, contamination=ta.Contamination(0.12368, error=1 / 30)),
    "certified, study": lambda: study(GOOD, POOR),
    "certified, share": lambda: analyze(ONES, FEW, at_least=1),
    "certified, share at most": lambda: analyze(GOOD, POOR, at_most=10),
    "certified, time-outs": lambda: analyze(POOR, np.full(1000, math.inf), goal="min"),
    "certified, seconds": (lambda: analyze(GOOD / 1000, FAIR / 1000, goal="min"), SECONDS),
    "separated": lambda: analyze(GOOD, FAIR, POOR, contamination=None),
    "separated, rounds": lambda: rounds(LOAD, LOAD * 1.1, contamination=None),
    "separated, little certified": lambda: study(GOOD[:40], FAIR[:40], contamination=None),
    "tolerable": lambda: analyze(GOOD[:N], GOOD[:N] - 0.01, tolerance=0.6),
    "tolerable, percent": lambda: analyze(GOOD[:N], GOOD[:N] - 0.01, tolerance="6%"),
    "tolerable, share": lambda: analyze(ONES, ONES, at_least=1, tolerance=0.3),
    "tolerable, rounds": lambda: rounds(LOAD, LOAD * TURNS, tolerance="5%"),
    "tie": lambda: analyze(np.full(N, 3.0), np.full(N, 3.0), np.full(N, 1.0)),
    "tie of all": lambda: analyze(np.full(N, 3.0), np.full(N, 3.0)),
    "may tie": lambda: analyze((STEADY < 0.56) * 1.0 + 5, (STEADY < 0.48) * 1.0 + 5, STEADY, contamination=0),
    "rounds": lambda: rounds(LOAD, LOAD * 1.1, LOAD * 2),
    "rounds, max": lambda: rounds(LOAD, LOAD * 1.1, goal="max"),
    "rounds, differences": lambda: rounds(LOAD - 12, LOAD - 11, goal="max"),
    "rounds, seconds": (lambda: rounds(LOAD, LOAD * 1.1, LOAD * 2), SECONDS._replace(elapsed=2.13)),
    "rounds, time limit": (lambda: rounds(LOAD, LOAD * TURNS), SECONDS._replace(elapsed=180.4, time_limit=180)),
    "rounds, the same": lambda: rounds(LOAD, LOAD),
    "rounds, one": lambda: rounds(LOAD[:1], LOAD[1:2]),
    "undecided": lambda: analyze(GOOD[:N], GOOD[:N] - 0.1),
    "undecided, three": lambda: analyze(GOOD[:N], GOOD[:N] - 0.1, GOOD[:N] - 0.2),
    "undecided, one ruled out": lambda: analyze(GOOD[:N], GOOD[:N] - 0.1, POOR),
    "undecided, command line": (lambda: analyze(GOOD[:N], GOOD[:N] - 0.3, contamination=0.3), SECONDS),
    "undecided, no bound": lambda: analyze(GOOD[:5], POOR[:5]),
    "undecided, not in practice": lambda: analyze(GOOD[:100], GOOD[:100] - 0.00001, contamination=0),
    "undecided, contamination none": lambda: analyze(GOOD[:150], GOOD[:150] - 0.01, contamination=None),
    "undecided, share": lambda: analyze(FEW, np.roll(FEW, 7), at_least=1),
    "undecided, ended": (lambda: study(GOOD[:20], GOOD[:20]), words.PLAIN._replace(ended=True)),
    "undecided, time-outs": lambda: analyze(*(np.full(N, math.inf) for _ in range(2)), goal="min"),
    "too close": lambda: analyze(GOOD, GOOD - 0.001, contamination=0.2),
    "too close, share": lambda: analyze(np.tile(ONES, 30), np.tile(ONES, 30), at_least=1, contamination=0.2),
    "too close, hopeless": lambda: analyze(
        GOOD, POOR, contamination=ta.Contamination(0.3, "malicious"), quantile=0.75
    ),
    "doubtful": lambda: analyze(np.sort(GOOD[:N]), np.sort(POOR[:N]), order="rows"),
    "doubtful, outside": lambda: analyze(spoil(GOOD, 400, 99.0), POOR, between=(0, 20)),
    "alarm, missing": lambda: analyze(spoil(GOOD, 200), POOR),
    "alarm, outliers": lambda: analyze(spoil(GOOD, 200, 1e6), POOR),
    "alarm, units": lambda: analyze(spoil(GOOD, 30, 0.0) + np.r_[GOOD[:30] * 1000, np.zeros(970)], POOR),
    "alarm, zeros and ones": lambda: analyze(ONES, np.roll(ONES, 7)),
    "alarm, coarse": lambda: analyze(np.round(3 * GOOD[:N]), np.round(3 * GOOD[:N])),
    "control": lambda: analyze(FAIR, GOOD, POOR, control="A"),
    "control, none better": lambda: analyze(GOOD, FAIR, POOR, control="A"),
    "control, open": lambda: analyze(GOOD[:N], GOOD[:N] + 0.1, control="A"),
    "control, false discoveries": lambda: analyze(FAIR, GOOD, POOR, control="A", fdr=True),
    "tiers": lambda: analyze(GOOD, GOOD - 0.01, POOR, tiers=True),
    "units": lambda: ta.analyze(USERS, arm="arm", value="ms", unit="user"),
    "missing values": lambda: analyze(*(spoil(GOOD[:20], 1) for _ in range(7))),
    "one arm": lambda: analyze(GOOD[:N]),
    "one arm, seconds": (lambda: analyze(GOOD[:N] / 1000, goal="min"), SECONDS),
    "one arm, one reading": lambda: analyze(GOOD[:1]),
    "one arm, time-outs": lambda: analyze(np.full(N, math.inf), goal="min"),
    "no readings": lambda: study([], []),
    "no readings, one arm": lambda: study([]),
}  # fmt: skip


def say(label):
    case = CASES[label]
    make, terms = case if isinstance(case, tuple) else (case, None)
    return words.summarize(make(), terms=terms)


def read_table():
    return {
        label: text.strip("\n")
        for label, text in re.findall(r"^== (.+?)\n(.*?)(?=^== |\Z)", TABLE.read_text(), re.MULTILINE | re.DOTALL)
    }


@pytest.mark.parametrize("label", CASES)
def test_a_result_is_summarized_as_in_the_table(label):
    assert say(label) == read_table()[label]


def test_the_table_has_no_other_rows():
    assert list(read_table()) == list(CASES)


def test_no_summary_has_odd_words_or_numbers():
    odd = re.compile(
        r"\d %|promise|nobody|whoever|endless|anew|meanwhile|beside|\bwho\b|\b1 (others|rounds|runs|readings)\b"
        r"|\bunknown, |  |\.\.|\bseed\b|^it\b|any load(?! that treats)",
        re.IGNORECASE | re.MULTILINE,
    )
    for label, text in read_table().items():
        assert not odd.search(text), (label, odd.search(text))


def test_verbose_adds_the_exact_claim():
    found = rounds(LOAD, LOAD * 1.1, LOAD * 2)
    exact = "Certified: A wins more than half of the rounds against every other arm."
    assert exact in words.summarize(found, verbose=True)
    assert str(found) == words.summarize(found)
    assert exact not in str(found)


def test_one_warning_of_a_kind_is_shown_and_all_with_verbose():
    found = analyze(*(np.round(3 * STEADY[:N]) for _ in range(3)))
    assert words.summarize(found).count("Warning: ") == 1
    assert words.summarize(found).endswith("2 more warnings.")
    assert words.summarize(found, verbose=True).count("Warning: ") == 3
    assert "Warning" not in words.summarize(found, alarms=False)


@given(st.text(min_size=1).filter(lambda name: name not in ("B", "\ud800")))
@example("it. 95% sure")
@example("' onload='x\x00\x1b[2J")
def test_names_stay_on_their_line(name):
    found = ta.analyze({name: [1.0, 2.0], "B": [1.0, 3.0]})
    assert all(c.isprintable() for line in words.lines(found) for c in line)
    assert name_of(name) in words.summarize(found)
    assert name_of("größe 速度 \u202e") == "größe 速度 \\u202e"


@given(
    st.lists(st.lists(st.floats(), min_size=1, max_size=30), min_size=1, max_size=4),
    st.sampled_from([None, 0.0, 0.05, MALICIOUS]),
    st.sampled_from([{}, {"at_least": 1.0}, {"goal": "min"}, {"round": "rows"}]),
)
def test_every_result_has_words_and_a_fragment(tapes, eps, options):
    try:
        found = analyze(*tapes, contamination=eps, **options)
    except ta.InvalidArgument:
        return
    assert all(line.strip() and line[-1] in ".)" for line in words.lines(found, verbose=True))
    assert found._repr_html_().endswith("</div>")
    assert words.headline(found)
    assert all(words.standing(found, arm) for arm in found.problem.arms)


# Assumptions


@pytest.mark.parametrize(
    ("options", "said", "unsaid"),
    [
        ({"contamination": None}, "all effective gaps are positive", "chance of being bad"),
        ({"contamination": None}, "do not depend on readings not yet taken (causal)", "(oblivious)"),
        ({"contamination": 0}, "No reading is bad.", "causal"),
        ({}, "at most a 5% chance of being bad, whatever its true value and whatever happened before", "causal"),
        ({}, "(oblivious)", "causal"),
        ({"contamination": PRESCIENT}, "(clairvoyant)", "(causal)"),
        ({"contamination": ta.Contamination(0.05, "malicious", causal=True)}, "(causal)", "(clairvoyant)"),
        ({"dependent_arms": True}, "Arms may move together", "Draws of different arms are independent"),
        ({"design": "fixed"}, "fixed before the first of them", "move together"),
        ({}, "n-th pull of an arm is the n-th draw of that arm", "Arms may move together"),
        ({}, "A missing reading counts at its worst", "side by side"),
        ({}, "A time-out is a reading worse than every value", "audit"),
        ({"delta": 0.01}, "probability at most 1%, each on its own: the decision, its breakdown", "tiers"),
        ({"tiers": True}, "all places and tiers", "control"),
        ({"control": "A"}, "all arms named better than the control", "tiers"),
        ({"round": "rows"}, "A round measures all arms that are left once each, side by side", "n-th draw"),
        ({"between": (0, 20)}, "True readings are in 0 to 20, so one outside is bad", "audit"),
        ({}, "arms that tie with it, or may, are listed", "behave the same"),
    ],
)
def test_assumptions_are_named_where_they_are_made(options, said, unsaid):
    text = " ".join(analyze(GOOD, POOR, **options).assumptions)
    assert said in text
    assert unsaid not in text


def test_a_bound_from_an_audit_is_rounded_to_the_safe_side():
    """Certified at 12.368% it said 12.4%; wrong with a chance of 1/12 it said 8.33%."""
    found = analyze(GOOD, POOR, contamination=ta.Contamination(0.12368, error=1 / 30))
    assert found.assumptions[0].startswith("Each reading has at most a 12.3% chance of being bad,")
    assert found.assumptions[-1].startswith("Each of these is wrong with probability at most 8.34%,")
    assert percent(0.1 + 0.2, ROUND_CEILING) == "30%"


# Numbers


@given(st.floats(1, 1e6))
def test_certified_factors_are_rounded_down(factor):
    told = re.search(r"at least ([\d.,]+)x", least_factor(factor))
    assert told is None or 1 < float(told[1].replace(",", "")) <= factor * (1 + 1e-12)
    assert told is not None or factor < 1.00001


def test_a_factor_that_is_hardly_certain_to_be_above_1_is_not_shown():
    """A race said "1.14x faster (at least 1.00005x)"."""
    assert least_factor(1.00005, 1.14) == ""
    assert least_factor(1.00005, 1.0001) == " (at least 1.00005x)"


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(min_value=0, max_value=1e300))
def test_ends_of_intervals_are_rounded_outward(low, width):
    high = low + width
    first, last = (float(end.replace(",", "")) for end in ends(low, high))
    assert first <= low
    assert last >= high


@given(st.floats(min_value=1e-12, max_value=1))
def test_breakdown_points_are_rounded_down(share):
    told = float(percent(share, "ROUND_FLOOR").removesuffix("%"))
    assert 0.989 * share <= told / 100 <= share * (1 + 1e-12)


def test_numbers_are_short_and_quantiles_have_their_ordinals():
    shown = [number(x) for x in (0.0, -12.3456, 1e6, 0.1, math.nan, 123456.0)]
    assert shown == ["0", "-12.35", "1,000,000", "0.1", "-", "123,456"]
    ordinals = [quantile_name(q).split()[0] for q in (0.5, 0.22, 0.13, 0.03, 0.999)]
    assert ordinals == ["median", "22nd", "13th", "3rd", "99.9th"]


def test_a_tolerance_is_shown_as_it_was_passed():
    """A gate at 1.25 said "worse by more than 1.3", which was not shown."""
    said = [amount(ta.Tolerance.of(given)) for given in (1.25, 0.256, "5.1234%", 1234.5, 3e-9)]
    assert said == ["1.25", "0.256", "5.1234%", "1,234.5", "3e-09"]
    problem = analyze(GOOD, POOR, tolerance=1.25).problem
    assert [distance(x, problem) for x in (1.25, 1.249)] == ["1.25", "1.3"]
    assert amount(ta.Tolerance.of(0.0125), Unit("ms", "milliseconds", 1e-3)) == "12.5 ms"
    assert distance(0.0256, analyze(ONES, FEW, at_least=1, tolerance=0.0256).problem) == "2.56 points"


if __name__ == "__main__":
    sys.stdout.write("\n\n".join(f"== {label}\n{say(label)}" for label in CASES) + "\n")
