"""Many arms: cheap bounds leave every decision as it is, and work grows with the arms, not with their pairs."""

import numpy as np
import pytest

from truearm.analysis import analyze
from truearm.claims.certify import judge_of
from truearm.evidence import Judge, best_looking, by_looks, cuts
from truearm.evidence.sample import Sample
from truearm.evidence.screen import Screen
from truearm.problem import Contamination, Problem

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
    rng, looks, least = np.random.default_rng(1), [], cuts._least
    monkeypatch.setattr(cuts, "_least", lambda *given: looks.append(1) or least(*given))
    worked = []
    for k in (60, 240):
        looks.clear()
        analyze({f"a{i}": rng.normal(size=40) for i in range(k)})
        worked.append(len(looks))
    assert worked[1] < 6 * worked[0]  # pairs would be sixteen times as many
