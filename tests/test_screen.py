"""Many arms: cheap bounds leave every decision as it is, and work grows with the arms, not with their pairs."""

import json

import numpy as np
import pytest

from truearm.analysis import analyze
from truearm.bounds import mixture
from truearm.bounds.search import last_true
from truearm.claims.certify import judge_of
from truearm.errors import InvalidArgument, VerificationError
from truearm.evidence import Judge, Trust, best_looking, by_looks, cuts, screen
from truearm.evidence.sample import Sample
from truearm.evidence.screen import Screen
from truearm.evidence.shares import counted
from truearm.evidence.wins import Taped, leading, led
from truearm.problem import Adversary, Contamination, Problem
from truearm.report import html
from truearm.verification import verify

CASES = 60


def drawn(seed):
    """Return a few arms: smooth or tied, of one size or several, with infinities and missing readings."""
    rng = np.random.default_rng(seed)
    tapes = {}
    for i in range(int(rng.integers(2, 9))):
        tape = rng.normal(rng.choice([0.0, 0.3, 1.0]), size=int(rng.integers(5, 90)))
        if seed % 3 == 0:
            tape = np.round(tape)
        if seed % 4 == 0:
            tape[rng.random(tape.size) < 0.1] = rng.choice([np.nan, np.inf, -np.inf])
        tapes[f"a{i}"] = tape
    options = {
        "design": ("sequential", "fixed")[seed % 2],
        "goal": ("max", "min")[seed // 2 % 2],
        "delta": 0.2,
        "contamination": (0.02, None, Contamination(0.01, "prescient"))[seed % 3],
        "quantile": (0.5, 0.3)[seed % 5 == 0],
    }
    return tapes, options


def judged(tapes, options):
    """Return the judge and the ranking of an analysis."""
    found = analyze(tapes, **options)
    judge = judge_of(found.certificate, tapes)
    ranking = by_looks(judge.samples, judge.problem.level)
    return found, judge.after(leader=ranking[0]), ranking


def evidence(judge, i, j):
    return judge.after(leader=i).against(j).log_value


@pytest.mark.parametrize("seed", range(CASES))
def test_arms_are_rejected_and_excluded_by_whom_comparing_all_pairs_names(seed):
    tapes, options = drawn(seed)
    found, judge, ranking = judged(tapes, options)
    if found.status.value == "doubtful":
        return
    arms, rejected, excluded = judge.problem.arms, {}, {}
    for place, worse in enumerate(ranking):
        by = [i for i in ranking[:place] if evidence(judge, i, worse) >= judge.log_threshold]
        strictly = [i for i in ranking[:place] if judge.better(i, worse).log_value >= judge.log_strict]
        rejected |= {arms[worse]: arms[by[0]]} if by else {}
        excluded |= {arms[worse]: arms[strictly[0]]} if by and strictly else {}
    assert {claim.arm: claim.leader for claim in found.certificate.claims if not claim.tolerant} == rejected
    assert dict(found.excluded) == excluded


@pytest.mark.parametrize("seed", range(CASES))
def test_the_screen_is_a_bound_of_the_evidence_of_every_pair(seed):
    _, judge, ranking = judged(*drawn(seed))
    screen = Screen.of(judge, ranking)
    for place, worse in enumerate(ranking):
        for i in ranking[:place]:
            for closed, found in ((False, evidence(judge, i, worse)), (True, judge.better(i, worse).log_value)):
                if found > 0:
                    assert i in screen.accusers(place, found, closed=closed)


@pytest.mark.parametrize("seed", range(CASES))
def test_the_ranking_is_that_of_taking_the_best_looking_arm_again_and_again(seed):
    rng = np.random.default_rng(seed)
    samples = [Sample.of(rng.integers(0, 3, size=int(rng.integers(0, 6))).astype(float)) for _ in range(7)]
    left, taken = [i for i, sample in enumerate(samples) if sample.size], []
    while left:
        taken.append(best_looking(samples, left, 0.5))
        left.remove(taken[-1])
    assert by_looks(samples, 0.5) == taken + [i for i, sample in enumerate(samples) if not sample.size]


@pytest.mark.parametrize("seed", range(60))
def test_pulls_are_futile_where_each_arm_is_overlapped_by_some_other(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 5))
    samples = [Sample.of(rng.normal(rng.choice([0.0, 0.1, 5.0]), size=2000)) for _ in range(k)]
    judge = Judge.of(Problem(arms=tuple("ABCDE"[:k]), contamination=0.2), samples)
    alive = tuple(range(k))
    alone = {
        i: any(
            Judge.of(
                Problem(arms=judge.problem.arms, contamination=0.2), [samples[i]] + [samples[j]] * (k - 1)
            ).futile((0,))
            for j in alive
            if j != i
        )
        for i in alive
    }
    assert judge.futile(alive) == all(alone.values())


def test_the_evidence_looked_at_grows_with_the_arms_and_not_with_their_pairs(monkeypatch):
    rng, looks, beta = np.random.default_rng(1), [], mixture._log_partial_beta
    monkeypatch.setattr(
        mixture, "_log_partial_beta", lambda *given: looks.append(np.size(given[0])) or beta(*given)
    )
    worked = []
    for k in (60, 240):
        looks.clear()
        analyze({f"a{i}": rng.normal(size=40) for i in range(k)})
        worked.append(sum(looks))
    assert worked[1] < 6 * worked[0]  # pairs would be sixteen times as many


@pytest.mark.parametrize("seed", range(CASES))
def test_margins_searched_in_step_are_those_searched_one_by_one(seed):
    tapes, options = drawn(seed)
    _, judge, ranking = judged(tapes, options)
    others = [i for i in ranking[1:] if judge.samples[i].size]
    ratios = [judge._is_ratio(i) for i in others]
    found = judge.margins(others, ratios)
    assert found == [judge.margin(i, relative=ratio) for i, ratio in zip(others, ratios, strict=True)]


@pytest.mark.parametrize("seed", range(8))
def test_margins_of_many_readings_are_those_searched_one_by_one(seed):
    rng = np.random.default_rng(seed)
    shapes = [(0.3, 0.0), (0.1, 8.0), (0.0, 8.0)][seed % 3]
    arms = [np.round(rng.normal(shapes[0] * i + shapes[1], size=1500 + 100 * i), 3 - seed % 2) for i in range(5)]
    problem = Problem(arms=tuple("ABCDE"), contamination=0.01, goal=("max", "min")[seed % 2])
    judge = Judge.of(problem, [Sample.of(problem.sign * arm) for arm in arms])
    judge = judge.after(leader=judge.ranked()[0])
    others = [i for i in range(5) if i != judge.leader]
    for ratio in (False, True):
        found = judge.margins(others, [ratio] * 4)
        assert found == [judge.margin(i, relative=ratio) for i in others]


def bisected(evidences, bar, limit):
    """Return up to which eps all evidences reach the bar, by bisection alone."""
    certified = limit
    for evidence in evidences:
        if certified < limit and evidence(certified) >= bar:
            continue
        if evidence(0.0) < bar:
            return None
        certified = last_true(lambda eps, e=evidence: e(eps) >= bar, 0.0, certified, accuracy=1e-10, relative=1e-7)
    return certified


@pytest.mark.parametrize("seed", range(CASES))
def test_breakdown_points_are_those_of_bisection(seed):
    tapes, options = drawn(seed)
    _, judge, ranking = judged(tapes, options)
    share = seed % 4 == 3
    if share:
        problem = Problem(arms=judge.problem.arms, at_least=1.0, delta=0.2)
        judge = Judge.of(problem, [counted(tape, problem) for tape in tapes.values()])
        judge = judge.after(leader=judge.ranked()[0])
    others = [i for i in ranking if i != judge.leader]
    for adversary in Adversary:
        under, most = judge.under(adversary), 0.5 if share else min(options["quantile"], 1 - options["quantile"])
        evidences = [
            lambda eps, i=i, u=under, a=adversary: u.against(i, levels=Trust(eps, a)).log_value for i in others
        ]
        limit = most if adversary is Adversary.MALICIOUS else 1.0
        found = under.breakdown(others, adversary)
        assert found == bisected(evidences, under.log_threshold, limit)


@pytest.mark.parametrize("seed", range(6))
def test_evidence_and_breakdown_points_are_those_of_every_cut(seed):
    """Cuts are tried one by one; all arms are rejected up to the breakdown point, and not beyond it."""
    rng = np.random.default_rng(seed)
    tapes = [
        np.round(rng.normal(gap, 1, int(rng.integers(400, 900))), 1 + seed % 2) for gap in (0.9, 0.4, 0.0, -0.9)
    ]
    order = rng.permutation(4).tolist()
    problem = Problem(arms=tuple("ABCD"), contamination=0.02, quantile=(0.5, 0.4)[seed % 2])
    judge = Judge.of(problem, [Sample.of(tapes[i]) for i in order], leader=order.index(0))
    arms, head, others = [tapes[i] for i in order], tapes[0], [i for i in range(4) if i != order.index(0)]

    def least(i, levels, closed):
        values = np.unique(arms[i])
        above = [(arms[i] >= cut).sum() for cut in values] + [0]
        below = [((head <= cut) if closed else (head < cut)).sum() for cut in values] + [head.size]
        own = mixture.log_mixture(above, arms[i].size, levels.high)
        return float((own + mixture.log_mixture(below, head.size, levels.low)).min())

    for closed in (False, True):
        one_by_one = [least(i, judge.levels, closed or judge.leader > i) for i in others]
        assert judge.against_each(others, closed=closed) == one_by_one
        reached = judge.against_each(others, closed=closed, enough=9.0)
        assert [x >= 9.0 for x in reached] == [x >= 9.0 for x in one_by_one]
    for adversary in Adversary:
        under = judge.under(adversary)

        def hold(eps, under=under, adversary=adversary):
            levels = Trust(eps, adversary).levels(problem.level)
            return all(least(i, levels, judge.leader > i) >= under.log_threshold for i in others)

        point = under.breakdown(others, adversary)
        assert hold(point)
        assert not hold(point * (1 + 2e-7))


def test_readings_are_shifted_where_they_are_looked_at_only():
    """The evidence and its cut are those of readings that were all shifted before."""
    rng = np.random.default_rng(7)
    for _ in range(40):
        a, b = (Sample.of(np.round(rng.normal(size=int(rng.integers(1, 80))), 1)) for _ in range(2))
        by = float(rng.normal())
        levels = cuts.Levels(0.45, 0.5)
        assert cuts.pair(a, b, levels, lift=lambda x, by=by: x + by) == cuts.pair(
            a, b.mapped(lambda x, by=by: x + by), levels
        )


@pytest.mark.parametrize("seed", range(12))
def test_the_screen_of_shares_is_a_bound_of_the_evidence_of_every_pair(seed):
    rng = np.random.default_rng(seed)
    tapes = {f"a{i}": rng.random(int(rng.integers(5, 90))) for i in range(int(rng.integers(2, 9)))}
    options = {
        "at_least": 0.6,
        "design": ("sequential", "fixed")[seed % 2],
        "contamination": (0.02, None)[seed % 3 > 0],
    }
    found = analyze(tapes, **options)
    judge = judge_of(found.certificate, tapes)
    ranking = judge.ranked()
    screen = Screen.of(judge, ranking)
    for place, worse in enumerate(ranking):
        for i in ranking[:place]:
            evident = judge.better(i, worse).log_value
            if evident > 0:
                assert i in screen.accusers(place, evident)


@pytest.mark.parametrize("seed", range(8))
def test_shares_are_ranked_rejected_and_futile_as_by_comparing_all_pairs(seed):
    rng = np.random.default_rng(seed)
    tapes = {f"a{i}": (rng.random(80) < rng.choice([0.2, 0.6, 0.9])).astype(float) for i in range(6)}
    found = analyze(tapes, at_least=1, delta=0.2)
    judge = judge_of(found.certificate, tapes)
    left, ranking = list(range(6)), []
    while left:
        ranking.append(left.pop(left.index(judge.best_looking(left))))
    assert judge.ranked() == ranking
    rejected = {}
    for place, worse in enumerate(ranking):
        by = [i for i in ranking[:place] if evidence(judge, i, worse) >= judge.log_threshold]
        rejected |= {worse: by[0]} if by else {}
    arms = judge.problem.arms
    assert {claim.arm: claim.leader for claim in found.certificate.claims} == {
        arms[worse]: arms[by] for worse, by in rejected.items()
    }


def test_accusers_are_those_of_a_screen_without_groups(monkeypatch):
    """Groups of two rows, and as many levels as there are: the same arms in the same order as row by row."""
    rng = np.random.default_rng(3)
    tapes = {f"a{i}": rng.normal(rng.choice([0.0, 0.5, 1.0]), size=30) for i in range(70)}
    _, judge, ranking = judged(tapes, {"delta": 0.2})
    flat = Screen.of(judge, ranking)
    monkeypatch.setattr("truearm.evidence.screen._GROUP", 2)
    deep = Screen.of(judge, ranking)
    assert len(deep.groups) > 4
    found = [list(deep.accusers(place, 2.0)) for place in range(70)]
    monkeypatch.setattr("truearm.evidence.screen._GROUP", 128)
    assert found == [list(Screen.of(judge, ranking).accusers(place, 2.0)) for place in range(70)]
    assert any(found)
    assert len(flat.groups) == 2


def arms_of(kind, k):
    """Return many arms: one is best, all are equal, they stand on a ladder, they pass or fail, they time out."""
    rng = np.random.default_rng(5)
    means = {"one": np.where(np.arange(k) == 7, 3.0, 0.0), "ladder": np.linspace(0, 5, k)}.get(kind, np.zeros(k))
    tapes = {f"arm{i:04}": rng.normal(mean, size=40) for i, mean in enumerate(means.tolist())}
    if kind == "time-outs":
        tapes = {arm: np.where(np.arange(40) % 3 == 1, np.inf, tape) for arm, tape in tapes.items()}
        tapes["arm0007"] = np.arange(40.0) / 40 - 9
    return tapes, {"at_least": 0.0} if kind == "shares" else {"goal": "min"} if kind == "time-outs" else {}


def work(kind, k, monkeypatch):
    """Return what an analysis of k arms and its check cost per arm: looks at a mixture, rows screened, bytes."""
    looks, rows, beta, may = [], [], mixture._log_partial_beta, screen._may
    monkeypatch.setattr(
        mixture, "_log_partial_beta", lambda *given: looks.append(np.size(given[0])) or beta(*given)
    )
    monkeypatch.setattr(screen, "_may", lambda *given: rows.append(len(given[0])) or may(*given))
    tapes, options = arms_of(kind, k)
    found = analyze(tapes, **options)
    text = json.dumps(found.to_dict())
    verify(json.loads(text), tapes)
    monkeypatch.undo()
    return np.array([sum(looks), sum(rows), len(text)]) / k


@pytest.mark.parametrize("kind", ["one", "equal", "ladder", "shares", "time-outs"])
def test_an_arm_costs_as_much_among_many_as_among_few(kind, monkeypatch):
    """From 50 to 200 arms: pairs would cost four times as much per arm; log k may cost a third more.

    Where the leader rejects everyone no row is looked at; pairs would be 100 rows per arm.
    """
    few, many = (work(kind, k, monkeypatch) for k in (50, 200))
    assert (many <= 1.5 * np.maximum(few, [0, 2, 0])).all(), (few, many)


def test_the_page_grows_with_the_arms_and_the_words_do_not():
    sizes = []
    for k in (50, 200):
        found = analyze(arms_of("one", k)[0])
        sizes.append((len(str(found)), len(html.page(found, found.readings)) / k))
    assert sizes[1][0] < 1.2 * sizes[0][0]
    assert sizes[1][1] < 1.2 * sizes[0][1]


def test_a_claim_of_an_analysis_has_no_date():
    tapes = {"A": np.arange(100.0, 300.0), "B": np.arange(200.0), "C": np.arange(50.0)}
    data = analyze(tapes).to_dict()
    assert all(claim["counts"] is None for claim in data["certificate"]["claims"])
    data["certificate"]["claims"][0]["counts"] = [200, 200, 50]
    with pytest.raises(VerificationError, match=r"certificate.claims\[0\].counts"):
        verify(data, tapes)


@pytest.mark.parametrize("seed", range(CASES))
def test_arms_in_rounds_are_ranked_as_taking_the_leader_again_and_again(seed):
    rng = np.random.default_rng(seed)
    tapes = rng.integers(0, 4, size=(7, 9)).astype(float)
    tapes[rng.random(tapes.shape) < 0.1] = np.nan
    samples = [Taped.in_rounds(tape[: int(rng.integers(0, 10))]) for tape in tapes]
    left, taken = [i for i, sample in enumerate(samples) if sample.size], []
    while left:
        taken.append(leading(samples, left))
        left.remove(taken[-1])
    assert led(samples) == taken + [i for i, sample in enumerate(samples) if not sample.size]


@pytest.mark.parametrize("asked", [{"pairs": True}, {"tiers": True}, {"round": "rows"}])
def test_all_pairs_of_too_many_arms_are_refused_before_any_work(asked):
    tapes = {str(i): [1.0, 2.0] for i in range(1001)}
    with pytest.raises(InvalidArgument, match="ends with 1,000 arms; there are 1,001: leave some out"):
        analyze(tapes, **asked)
