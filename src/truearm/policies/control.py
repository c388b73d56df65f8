"""Pull the control and the most promising variant until it is known which variants beat the control.

Pair evidence decides, and its error probability does not depend on how arms are sampled (extensions D1, D2). Pulls
go to the variant with the highest upper limit, so that a variant that equals the control gets none while others
may still win.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from truearm.claims.certificate import Claim, ControlClaims, Status, Verdict
from truearm.claims.certify import check_control, check_ordered
from truearm.errors import InvalidArgument
from truearm.evidence import Judge
from truearm.evidence.comparison import Method, check_method, false_discovery, not_better
from truearm.policies import FUTILITY, GROWTH, SHARES, START, Eager, Judged, Look, Standing, Told, put
from truearm.problem import Problem, check_count, check_flag

# these three change how many pulls are made, never what is claimed
STALE = 1.1  # growth of a pair after which the evidence of a variant that is not pulled is recomputed
SAFE = 0.3  # log-evidence above the bar before an arm is left alone: its claim may vanish as the control is pulled
STARVED = 16  # a variant with 1/16 of the pulls of the chosen one comes first: it may be settled cheaply


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlState(Judged):
    """The state of the policy; `alive` are the variants not known to beat the control or to lose."""

    control: int
    method: Method
    balanced: bool
    better: tuple[Claim, ...] = ()
    not_better: tuple[Claim, ...] = ()
    hopeless: tuple[int, ...] = ()
    """Variants that more pulls would not settle (evidence T9)."""
    looks: tuple[Look, ...]
    """For each variant the evidence that it beats the control."""
    owed: tuple[float, ...]
    """For each variant the fraction of a pull still owed to it."""
    next_look: float

    @property
    def left(self) -> list[int]:
        """The variants that more pulls may settle."""
        return [i for i in self.alive if i not in self.hopeless]


@dataclass(frozen=True, slots=True)
class AgainstControl(Eager):
    """The policy that finds which arms beat a control: `Result.control` has the answer, besides the best arm.

    Parameters
    ----------
    control
        The arm to compare the others with.
    fdr
        Bound the expected share of false claims that an arm beats it, not the chance of any.
    first
        Pulls of every arm before the first decision.
    balanced
        Pull the control and all remaining variants equally, as in `TopTwo`.
    """

    control: str = ""
    fdr: bool = False
    first: int = START
    balanced: bool = False
    patient: bool = False

    def __post_init__(self) -> None:
        check_count("first", self.first)
        check_flag("fdr", self.fdr)
        check_flag("balanced", self.balanced)
        if not isinstance(self.control, str) or not self.control:
            raise InvalidArgument("policy 'control' needs the name of an arm; write policy=ta.AgainstControl('A')")

    @property
    def alike(self) -> bool:
        return self.balanced

    def start(self, problem: Problem) -> ControlState:
        control = check_control(self.control, problem.arms)
        method: Method = "fdr" if self.fdr else "holm"
        check_ordered(problem, f"AgainstControl({self.control!r})")
        check_method(problem, method)
        k = len(problem.arms)
        state = ControlState(
            judge=Judge.of(problem),
            control=control,
            method=method,
            first=self.first,
            balanced=self.balanced,
            alive=tuple(i for i in range(k) if i != control),
            looks=(Look(),) * k,
            owed=(0.0,) * k,
            next_look=self.first * k,
        )
        return _decide(state)

    def tell(self, state: ControlState, readings: Mapping[str, Told], issued: Mapping[str, int]) -> ControlState:
        return _decide(state.after(readings, issued))

    def standing(self, state: ControlState) -> Standing:
        arms, judge = state.problem.arms, state.judge
        looked = _update_evidence(state, everyone=True) if all(s.n for s in judge.samples) else state
        leader = judge.best_looking(range(len(arms)))
        return Standing(
            None if leader is None else arms[leader],
            tuple(arms[i] for i in (state.control, *looked.alive)),
            {arms[i]: looked.looks[i].log_evidence for i in range(len(arms)) if i != state.control},
            _bar(looked),
            _verdict(looked, Status.EXHAUSTED),
        )


def _decide(state: ControlState) -> ControlState:
    """Return the state with the next batch or the verdict chosen."""
    arms, samples = state.problem.arms, state.judge.samples
    if state.judge.is_hopeless:
        return replace(state, decision=_verdict(state, Status.INDISTINGUISHABLE))
    if (short := state.lacking) and not any(look.size for look in state.looks):
        return replace(state, decision=short)
    state = _update_evidence(state, everyone=state.balanced)
    if (pulls := state.pulls) >= state.next_look:
        state = _give_up(replace(state, next_look=FUTILITY * pulls))
    if state.method == "fdr" and not state.left:  # claims are made by the evidence at the stop
        state = _update_evidence(state, everyone=True)
    if not (left := state.left):
        status = Status.INDISTINGUISHABLE if state.alive else Status.EXHAUSTED
        return replace(state, decision=_verdict(state, status))
    if state.balanced:
        size = max(1, int(GROWTH * min(samples[i].n for i in (state.control, *left))))
        return replace(state, decision=dict.fromkeys((arms[i] for i in sorted((state.control, *left))), size))
    hope = {i: state.judge.target.optimism(samples[i], pulls) for i in left}
    chosen = max(left, key=lambda i: hope[i])
    starved = [i for i in left if STARVED * samples[i].n < samples[chosen].n]
    return _split_batch(state, max(starved, key=lambda i: hope[i]) if starved else chosen)


def _bar(state: ControlState) -> float:
    left = len(state.problem.arms) - 1 - len(state.better) if state.method == "holm" else 1
    return state.judge.log_bar(max(1, left))


def _update_evidence(state: ControlState, *, everyone: bool = False) -> ControlState:
    """Recompute the evidence of variants whose pairs have grown, and claim winners."""
    pulled = state.decision if isinstance(state.decision, dict) else {}
    for i in _open_variants(state):
        size = state.samples[i].n + state.samples[state.control].n
        if everyone or state.problem.arms[i] in pulled or size >= STALE * state.looks[i].size:
            state = _weigh(state, i, size)
    return _step_down(state) if state.method == "holm" else _claim_together(state, exactly=everyone)


def _weigh(state: ControlState, variant: int, size: int) -> ControlState:
    """Recompute the evidence of a variant at its cut, or at all cuts if that may claim it or is old."""
    judge, (cut, _, _, searched) = state.judge.after(leader=variant), state.looks[variant]
    value = math.inf if math.isnan(cut) else judge.evidence_at(state.control, cut)
    if value >= _bar(state) or size >= STALE * searched:
        value, cut = judge.least(state.control, cut)
        searched = size
    return replace(state, looks=put(state.looks, variant, Look(cut, value, size, searched)))


def _open_variants(state: ControlState) -> tuple[int, ...]:
    """Return the variants whose evidence still matters: claims of the step-down rule are final."""
    if state.method == "holm":
        return state.alive
    return tuple(i for i in range(len(state.problem.arms)) if i != state.control)


def _step_down(state: ControlState) -> ControlState:
    """Claim every variant that has enough evidence, the strongest first (extensions D1)."""
    while state.alive:
        strongest = max(state.alive, key=lambda i: state.looks[i].log_evidence)
        if state.looks[strongest].log_evidence < (bar := _bar(state)):
            break
        found = state.judge.better(strongest, state.control).log_value
        state = _set_evidence(state, {strongest: found})
        if found >= bar:
            better = (*state.better, state.claim(state.control, strongest, found))
            state = replace(state, alive=tuple(i for i in state.alive if i != strongest), better=better)
    return state


def _claim_together(state: ControlState, *, exactly: bool) -> ControlState:
    """Return the state with the claims that could be made now (extensions D2); later ones may differ.

    While the study continues a claim is only a reason not to pull an arm; those of a verdict are computed exactly.
    """
    variants, bar = _open_variants(state), state.judge.log_bar() + (0.0 if exactly else SAFE)
    found = {i: state.looks[i].log_evidence for i in variants}
    exact = set() if exactly else set(variants)
    while new := set(claimed := false_discovery(found, bar)) - exact:
        found.update((i, state.judge.better(i, state.control).log_value) for i in new)
        exact |= new
    out = {claim.arm for claim in state.not_better}
    alive = tuple(i for i in variants if i not in claimed and state.problem.arms[i] not in out)
    state = _set_evidence(replace(state, alive=alive), found)
    return replace(state, better=tuple(state.claim(state.control, i, found[i]) for i in claimed))


def _set_evidence(state: ControlState, found: Mapping[int, float]) -> ControlState:
    values = enumerate(state.looks)
    return replace(state, looks=tuple(look._replace(log_evidence=found.get(i, look[1])) for i, look in values))


def _give_up(state: ControlState) -> ControlState:
    """Drop variants that do not win, and mark those that more pulls would not settle."""
    beaten = not_better(state.judge, state.control, list(state.alive))
    claims = tuple(state.claim(i, state.control, value, tolerant=True) for i, value in beaten.items())
    alive = tuple(i for i in state.alive if i not in beaten)
    hopeless = tuple(i for i in alive if _is_futile(state, i))
    return replace(state, alive=alive, not_better=state.not_better + claims, hopeless=hopeless)


def _is_futile(state: ControlState, variant: int) -> bool:
    """Return True if more pulls would not show which of a variant and the control is better (evidence T9)."""
    problem, pair = state.problem, (state.control, variant)
    arms, share = tuple(problem.arms[i] for i in pair), problem.delta / (len(problem.arms) - 1)
    alone = replace(problem, arms=arms, delta=share, handicap=None)
    return Judge.of(alone, [state.judge.samples[i] for i in pair]).is_futile((0, 1))


def _verdict(state: ControlState, status: Status) -> Verdict:
    arms = state.problem.arms
    claims = ControlClaims(arms[state.control], state.method, state.better, state.not_better)
    return Verdict(status=status, candidates=arms, control=claims)


def _split_batch(state: ControlState, variant: int) -> ControlState:
    """Return the state with the next batch, split by what each arm's pulls add at the least convincing cut."""
    arms, samples, control = state.problem.arms, state.judge.samples, state.control
    gain, other = state.judge.after(leader=variant).gains(control, state.looks[variant].cut)
    share = 0.5 if gain + other == 0 else min(max(gain / (gain + other), SHARES[0]), SHARES[1])
    size = max(1, int(GROWTH * min(samples[variant].n / share, samples[control].n / (1 - share))))
    exact = size * share + state.owed[variant]
    own = min(size, max(0, math.floor(exact + 0.5)))
    batch = {arms[i]: n for i, n in ((variant, own), (control, size - own)) if n > 0}
    return replace(state, owed=put(state.owed, variant, exact - own), decision=batch)
