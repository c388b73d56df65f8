"""Pull the leader and its strongest challenger, and reject an arm when the evidence against it suffices.

The default policy (evidence sections 2, 4, 8 and 11). Evidence decides, and its error probability does not
depend on how arms are sampled; sampling only has to be quick. Against an adversary that cannot see the future one
e-process per arm follows the leader with all its capital (T5); otherwise arms are compared in pairs (T4).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from truearm.claims.certificate import Status
from truearm.evidence import Entry, Judge
from truearm.policies import FUTILITY, GROWTH, SHARES, START, Eager, Judged, Look, Standing, Told, put
from truearm.problem import Problem, check_count, check_flag

EARLY = (0.75, 60.0)  # its upper limit at first, and how it opens with the pulls; evidence section 4
SWITCH = 1.3  # growth of the pulls before another arm is followed; evidence section 4
# growth of a pair of arms after which its evidence is recomputed, and its cut is searched again; 1 needs about
# 1% fewer pulls and more than twice the time (benchmarks/freshness.py)
STALE = 1.2
TIE = 1e-9  # scores of challengers this close tie, and the first listed is taken


@dataclass(frozen=True, slots=True, kw_only=True)
class TopTwoState(Judged):
    """The state of the policy."""

    looks: tuple[Look, ...]
    """For each arm the evidence against it."""
    carries: tuple[tuple[int, float], ...]
    """For each challenger its last leader and the fraction of a pull still owed to that one."""
    balanced: bool
    next_switch: float = 0.0
    """The number of pulls at which another arm may be followed, even if this one is not rejected."""
    next_futility: float

    @property
    def leader(self) -> int:
        return self.judge.leader


@dataclass(frozen=True, slots=True)
class TopTwo(Eager):
    """The default policy: certified, separated, tolerable or indistinguishable, as early as evidence allows.

    Parameters
    ----------
    first
        Pulls of every arm before the first decision.
    balanced
        Pull all remaining arms equally instead of two: more pulls, but conditions that change over time, such as
        the load of a machine, then affect all arms equally.
    """

    patient: bool = False
    first: int = START
    balanced: bool = False

    def __post_init__(self) -> None:
        check_count("first", self.first)
        check_flag("balanced", self.balanced)

    @property
    def alike(self) -> bool:
        return self.balanced

    def start(self, problem: Problem) -> TopTwoState:
        k = len(problem.arms)
        state = TopTwoState(
            judge=Judge.of(problem, ordered=True),
            alive=tuple(range(k)),
            looks=(Look(),) * k,
            carries=((-1, 0.0),) * k,
            first=self.first,
            balanced=self.balanced,
            next_futility=self.first * k,
        )
        return _decide(state)

    def tell(self, state: TopTwoState, readings: Mapping[str, Told], issued: Mapping[str, int]) -> TopTwoState:
        return _decide(state.after(readings, issued))

    def standing(self, state: TopTwoState) -> Standing:
        arms = state.problem.arms
        is_open = state.judge.entries and len(state.alive) > 1
        tested = _test(state, everyone=True)[0] if is_open else state
        done = {claim.arm: claim.log_evidence for claim in tested.claims}
        against_each = {arm: done.get(arm, e.log_evidence) for arm, e in zip(arms, tested.looks, strict=True)}
        leader = arms[state.leader] if any(s.size for s in state.samples) else None
        is_futile = leader is not None and tested.judge.is_futile(tested.alive)
        status = Status.INDISTINGUISHABLE if is_futile else Status.EXHAUSTED
        alive = tuple(arms[i] for i in state.alive)
        return Standing(leader, alive, against_each, state.judge.log_threshold, tested.verdict(status))


def _follow(state: TopTwoState, leader: int) -> TopTwoState:
    """Return the state with the leader as the arm that is followed, if it is time to (evidence T5).

    The entry that ends includes all pulls issued up to now, even those that made its arm lose the lead.
    """
    entries, pulls = state.judge.entries, state.pulls
    last = entries[-1].arm if entries else None
    if leader == last or (last in state.alive and pulls < state.next_switch):
        return replace(state, judge=state.judge.after(leader=leader))
    if last is not None:
        entries = (*entries[:-1], Entry(last, entries[-1].before, state.samples[last]))
    entries = (*entries, Entry(leader, state.samples[leader]))
    return replace(state, judge=state.judge.after(leader=leader, entries=entries), next_switch=SWITCH * pulls)


def _decide(state: TopTwoState) -> TopTwoState:
    """Return the state with the next batch or the verdict chosen."""
    arms = state.problem.arms
    if len(state.alive) == 1 or state.judge.is_hopeless:
        return _stop(state)
    if not state.judge.entries and (short := state.lacking):
        return replace(state, decision=short)
    leader = state.judge.best_looking(state.alive)
    if leader is None:  # no reading of any arm has a value: nothing to decide by, perhaps forever
        if state.judge.implausible_arms or state.judge.is_futile(state.alive):
            return _stop(state)
        return replace(state, decision=dict.fromkeys((arms[i] for i in state.alive), 1))
    before, state = state, _follow(state, leader)
    due = state.balanced or leader != before.leader or len(state.judge.entries) != len(before.judge.entries)
    state, challenger = _test(state, everyone=due)
    return _stop(state) if challenger is None else _choose_challenger(state, challenger)


def _choose_challenger(state: TopTwoState, challenger: int) -> TopTwoState:
    """Return the state after looking at the strongest challenger: tolerable, hopeless, or worth a batch."""
    others = (challenger, *(i for i in state.alive if i not in (challenger, state.leader)))
    if claims := state.tolerance_claims(others):
        return _stop(replace(state, claims=state.claims + claims), Status.TOLERABLE)
    if (pulls := state.pulls) >= state.next_futility:
        state = replace(state, next_futility=FUTILITY * pulls)
        if state.judge.is_futile(state.alive):
            return _stop(state, Status.INDISTINGUISHABLE)
    return _split_batch(state, challenger)


def _stop(state: TopTwoState, status: Status | None = None) -> TopTwoState:
    alive, best = state.alive, state.alive[0] if len(state.alive) == 1 else state.leader
    status = status or (Status.INDISTINGUISHABLE if len(alive) > 1 else Status.strict(state.problem))
    if status is Status.INDISTINGUISHABLE:
        return replace(state, decision=state.verdict(status))
    return replace(state, decision=state.verdict(status, best, [best]))


def _test(state: TopTwoState, *, everyone: bool) -> tuple[TopTwoState, int | None]:
    """Return the state after rejecting arms by the evidence at all cuts, and the strongest challenger left.

    Pulls go to the leader and the strongest challenger, so other evidence is recomputed only now and then.
    """
    samples, leader = state.samples, state.leader
    sizes = {i: samples[i].n for i in state.alive}
    head = sizes.pop(leader)
    seen = {i for i, n in sizes.items() if everyone or head + n >= STALE * state.looks[i].size}
    for i in sorted(seen):
        state = _update_evidence(state, i)
    logs = {i: math.log(n) for i, n in sizes.items()}
    while scores := {i: max(state.looks[i].log_evidence, 0.0) + logs[i] for i in state.alive if i != leader}:
        least = min(scores.values())  # evidence section 4: the arm doubted least for its pulls
        challenger = next(i for i, score in scores.items() if score <= least + TIE)
        if challenger in seen:
            return state, challenger
        seen.add(challenger)
        state = _update_evidence(state, challenger)
    return state, None


def _update_evidence(state: TopTwoState, i: int) -> TopTwoState:
    """Recompute the evidence against an arm and drop the arm if it reaches the threshold.

    The last cut is tried first, after a new search of the pair of leader and arm if they have grown. All cuts are
    searched only if that value could reject the arm.
    """
    judge, (cut, _, _, searched) = state.judge, state.looks[i]
    size = state.samples[state.leader].n + state.samples[i].n
    if size >= STALE * searched:
        found, searched = judge.least_of_pair(i, near=cut), size
        cut = found.at
        value = judge.evidence_at(i, cut) if judge.rule == "pooled" else found.log_value
    else:
        value = judge.evidence_at(i, cut)
    is_candidate = value >= judge.log_threshold
    if is_candidate:
        found, searched = judge.least(i, near=cut), size
        value, cut = found.log_value, found.at
    state = replace(state, looks=put(state.looks, i, Look(cut, value, size, searched)))
    if not is_candidate or value < judge.log_threshold:
        return state
    alive = tuple(j for j in state.alive if j != i)
    return replace(state, alive=alive, claims=(*state.claims, state.claim(i, judge.leader, value)))


def _split_batch(state: TopTwoState, challenger: int) -> TopTwoState:
    """Return the state with the next batch, split by what each arm's pulls add at the least convincing cut."""
    if state.balanced:
        each = max(1, int(GROWTH * min(state.samples[i].n for i in state.alive)))
        return replace(state, decision={state.problem.arms[i]: each for i in state.alive})
    leader = state.leader
    head, rival = state.samples[leader], state.samples[challenger]
    gains = state.judge.gains(challenger, state.looks[challenger].cut)
    last, owed = state.carries[challenger]
    owed = owed if last == leader else 0.0
    size, for_leader, owed = split(head.n, rival.n, gains[0], gains[1], owed, len(state.samples))
    counts = {leader: for_leader, challenger: size - for_leader}
    batch = {state.problem.arms[i]: n for i, n in counts.items() if n > 0}
    return replace(state, carries=put(state.carries, challenger, (leader, owed)), decision=batch)


def split(  # noqa: PLR0917 - compiled code runs it, which knows no keyword-only arguments
    head: float, rival: float, gain: float, other: float, owed: float, arms: int
) -> tuple[int, int, float]:
    """Return the size of the next batch of two arms, the leader's part of it, and what it is still owed.

    The leader's share is its share of the evidence (evidence section 11). Compiled code runs this function too.

    `head` and `rival` are the pulls of the leader and of its challenger, `gain` and `other` the evidence in the
    readings of each at the least convincing cut. With two arms neither is neglected at first.
    """
    share = 0.5 if gain + other == 0 else gain / (gain + other)
    most = min(SHARES[1], max(EARLY[0], 1 - EARLY[1] / min(head, rival)))
    share = min(max(share, 1 - most if arms == 2 else SHARES[0]), most)
    size = max(1, int(GROWTH * min(head / share, rival / (1 - share))))
    exact = size * share + owed
    for_leader = min(size, math.floor(exact + 0.5))
    return size, for_leader, exact - for_leader
