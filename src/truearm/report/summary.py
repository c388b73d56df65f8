"""Results in words: the answer first, then what it rests on. Values become sentences here and nowhere below.

Nothing is computed.
"""

import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_FLOOR

from truearm.claims.analysis import Analysis
from truearm.claims.certificate import DECIDED, Status
from truearm.claims.result import Arm, Lead, Result
from truearm.evidence import Judge
from truearm.problem import Adversary, Contamination, Handicap, Problem
from truearm.report.promises import alarm, handed_on
from truearm.report.wording import (
    LISTED,
    PLAIN,
    TIMED,
    Voice,
    amount,
    bad,
    count,
    distance,
    in_points,
    interval_ends,
    lead,
    name_of,
    names,
    number,
    percent,
    target_name,
    value,
    value_ends,
)

_COMPARED = 3  # rivals whose distance is told in the headline, the nearest
_TOLD = 2  # alarms told in the paragraph; the others are in `result.alarms`


def is_made_equal(result: Result) -> bool:
    """Tell whether arms tie only because a gate's baseline is judged as worse than it is."""
    given = result.problem.handicap
    return given is not None and bool(result.ties) and given.arm in (result.best, *result.ties)


def _much(result: Result, given: Handicap, voice: Voice) -> str:
    """Return a gate's tolerance; a percentage is of positive readings only."""
    seen = next(arm.observed for arm in result.arms if arm.name == given.arm)
    return "0%" if given.tolerance.relative and seen <= 0 else voice.measured(amount(given.tolerance))


def _asked(result: Result, given: Handicap, voice: Voice) -> str:
    """Return what a gate with a tolerance asks: of one other arm a yes or a no, of several who is best."""
    others, base = [arm for arm in result.problem.arms if arm != given.arm], name_of(given.arm)
    much = _much(result, given, voice)
    if len(others) == 1:
        return f"whether {name_of(others[0])} is worse than {base} by more than {much}"
    return f"best when {base} counts as {much} worse than it is"


def _is_best(result: Result, seen: str, voice: Voice) -> tuple[str, str]:
    """Return what the best arm is or has, and what arms tie for."""
    if not voice.best or result.problem.target != "quantile":
        return f"has the {_goal(result, seen)}", f"the {_goal(result, seen)}"
    level = "" if result.problem.quantile == 0.5 else f" at the {target_name(result.problem)}"
    return f"is {voice.best}{level}", f"{voice.best}{level}"


def _goal(result: Result, seen: str = "") -> str:
    """Return what the best arm has; `seen` is "observed " where the readings are taken as they are."""
    problem = result.problem
    if problem.target == "wins":
        return "most wins side by side"
    name = "estimate" if result.certificate.estimated else f"{seen}{target_name(problem)}"
    return f"{'highest' if problem.goal == 'max' else 'lowest'} {name}"


def summary(result: Result, *, alarms: bool = True, voice: Voice = PLAIN) -> str:
    """Return a paragraph a manager can read: what was found, how sure it is, and what it rests on.

    Parameters
    ----------
    alarms
        Whether the alarms are told too; pages show them apart.
    voice
        What readings and better arms are called.
    """
    return " ".join(sentences(result, alarms=alarms, voice=voice))


def sentences(result: Result, *, alarms: bool = True, voice: Voice = PLAIN) -> list[str]:
    """Return the same piece by piece, the answer first."""
    beside = _alarmed(result) if alarms else ()
    told = [*_answer(result, voice), _effort(result, voice), *beside]
    return [sentence for sentence in told if sentence]


def _answer(result: Result, voice: Voice) -> list[str]:
    if not result.total:
        return _no_readings(result)
    if len(result.problem.arms) == 1:
        return _only_arm(result, voice)
    if result.status is Status.DOUBTFUL:
        return _doubtful(result)
    if result.control is not None:
        from truearm.report import answers  # a friend: it says the rest in the words that are here

        asked = answers.control(result, voice)
        if result.status is Status.CERTIFIED and result.control.named("better"):  # what it rests on is told
            return [
                *asked,
                _head(result, voice),
                f"{_sure(result.problem)} sure{_no_better(result, voice)} too, by itself.",
            ]
        return [*asked, *(_decided(result, voice) if result.status in DECIDED else ())]
    return _decided(result, voice)


def _decided(result: Result, voice: Voice) -> list[str]:
    if result.best is None and result.ties:
        return _all_the_same(result, voice)
    said = {
        Status.CERTIFIED: _certified,
        Status.TOLERABLE: _tolerable,
        Status.SEPARATED: _separated,
        Status.INDISTINGUISHABLE: _indistinguishable,
    }
    return said.get(result.status, _exhausted)(result, voice)


def _no_readings(result: Result) -> list[str]:
    problem = result.problem
    if len(problem.arms) == 1:
        return [f"{name_of(problem.arms[0])} is the only arm; it has no readings yet."]
    if result.status is Status.INDISTINGUISHABLE:
        return [_hopeless(result)]
    return [f"No readings yet: nothing is known about which of {names(problem.arms)} has the {_goal(result)}."]


def _hopeless(result: Result) -> str:
    problem = result.problem
    eps = percent(problem.contamination.eps) if problem.contamination else "this many"
    return (
        f"Not decided: when an adversary may pick {eps} of the readings and change them, no number of readings "
        f"tells which of {names(result.candidates)} has the {_goal(result)}. Allow for fewer bad readings."
    )


def _effort(result: Result, voice: Voice) -> str:
    """Return how much was measured, and what the way in which code was timed leaves open."""
    told = _pulled(result, voice)
    if (result.conditions or {}).get("process") != "shared":
        return told
    return (
        f"{told} All was timed in one process, because a function could not be imported by another: its hash seed "
        "and its place in memory are part of the answer."
    )


def _pulled(result: Result, voice: Voice) -> str:
    arms, what = len(result.problem.arms), getattr(result, "counted", voice.pull)
    total = f"{count(result.total)} {what}{'' if result.total == 1 else 's'}"
    many = f"{count(arms)} {voice.arm}{'s' * (arms > 1)}"
    units = getattr(result, "units", None)
    each = "" if units is None else f", one per {name_of(units.name)}"
    if result.problem.target == "wins" and result.total:
        rounds = max(result.pulls.values())
        return f"{count(rounds)} round{'s' * (rounds > 1)} of {many}, {total}."
    return f"{total} of {many}{each}." if arms > 1 or voice.reading == PLAIN.reading else f"{total}."


def _alarmed(result: Result) -> list[str]:
    told = [f"Alarm: {alarm(one, result.problem)}" for one in result.alarms[:_TOLD]]
    more = len(result.alarms) - _TOLD
    return [*told, f"{count(more)} more alarm{'s' * (more > 1)}."] if more > 0 else told


def _doubtful(result: Result) -> list[str]:
    told = [alarm(doubt, result.problem) for doubt in result.doubts[:_TOLD]]
    more = len(result.doubts) - _TOLD
    return [
        "Doubtful, so nothing is certified.",
        *told,
        f"{count(more)} more doubt{'s' * (more > 1)}." if more > 0 else "",
        f"{name_of(result.leader)} looks best." if result.leader is not None else "",
    ]


def _only_arm(result: Result, voice: Voice) -> list[str]:
    arm, problem = result.arms[0], result.problem
    name, what = target_name(problem), f"{voice.reading}s"
    plain = voice.reading == PLAIN.reading
    alone = " is the only arm: its observed" if plain else ": observed"
    if arm.n and _is_lost(arm, problem):
        return [
            f"{name_of(arm.name)}: half or more of {count(arm.n)} {what} timed out or failed, so it has no {name}."
        ]
    head = f"{name_of(arm.name)}{alone} {name} {'is ' * plain}{_standing(result, arm, voice)}"
    if result.status is Status.DOUBTFUL:
        return [
            f"{head}. Doubtful, so nothing is certified of the true one.",
            *(alarm(doubt, problem) for doubt in result.doubts[:_TOLD]),
        ]
    if not (arm.low <= arm.high and (math.isfinite(arm.low) or math.isfinite(arm.high))):
        few = f"1 {voice.reading} does" if arm.n == 1 else f"{count(arm.n)} {what} do"
        return [f"{head}; {few} not bound the true one."]
    declared = problem.contamination or Contamination(0.0)
    how = f"the number of {what} was fixed in advance" if result.design == "fixed" else "whenever one stops"
    spread = (
        f"The median absolute deviation is {voice.measured(number(arm.mad))}, the true one "
        f"between {voice.measured(' and '.join(interval_ends(arm.mad_low, arm.mad_high)))}."
        if math.isfinite(arm.mad_high)
        else ""
    )
    return [f"{head}.", f"{_sure(problem)} sure, {bad(declared, voice.reading)}; {how}.", spread]


def _sure(problem: Problem) -> str:
    return percent(1 - problem.error, ROUND_FLOOR, 4)


def _standing(result: Result, arm: Arm, voice: Voice) -> str:
    """Return the observed quantile and where the true one lies."""
    low, high = value_ends(arm.low, arm.high, result.problem)
    seen = voice.measured(value(arm.observed, result.problem))
    match math.isinf(arm.low), math.isinf(arm.high):
        case True, True:
            return seen
        case True, False:
            where = f"at most {voice.measured(high)}"
        case False, True:
            where = f"at least {voice.measured(low)}"
        case _:
            where = f"between {low} and {voice.measured(high)}"
    clean = " if no reading is bad" if result.problem.contamination is None else ""
    return f"{seen}, true {target_name(result.problem)} {where}{clean}"


def _against_baseline(result: Result, given: Handicap, voice: Voice) -> str:
    """Return how arms stand to one that is judged as worse than it is; ratios are to positive readings only."""
    others, base = [arm for arm in result.problem.arms if arm != given.arm], name_of(given.arm)
    much = _much(result, given, voice)
    if result.best == given.arm:
        behind = [arm for arm in others if arm not in result.ties]
        told = (
            f"{names(behind)} {'is' if len(behind) == 1 else 'are'} worse than {base} by {much} or more"
            if behind
            else ""
        )
        tied = f"{names(result.ties)} may be worse than {base} by exactly {much}" if result.ties else ""
        return f"{'; '.join(part for part in (told, tied) if part)}."
    if len(others) == 1:
        return f"{name_of(others[0])} is not worse than {base} by more than {much}."
    winners = [arm for arm in (result.best or "", *result.ties) if arm != given.arm]
    verb = "is" if len(winners) == 1 else "are"
    return f"{names(winners)} {verb} best when {base} counts as {much} worse than it is."


def _head(result: Result, voice: Voice, seen: str = "") -> str:
    """Return who is best and by how much; arms that tie with it are named with it (evidence T11)."""
    if result.problem.handicap is not None:
        return _against_baseline(result, result.problem.handicap, voice)
    tied = result.ties
    alike = (*tied, *result.may_tie)  # how far apart they are is not known
    near = [lead for lead in result.better_by if lead.than not in alike and math.isfinite(lead.observed)]
    best, tie = _is_best(result, seen or "observed " * bool(tied), voice)
    who = names([result.best or "", *tied])
    head = f"{who} tie for {tie}" if tied else f"{who} {best}"
    head += f", though {names(result.may_tie)} may tie with {'them' if tied else 'it'}" if result.may_tie else ""
    told = _leads(result, near, voice)
    lost = [a.name for a in result.arms if a.name != result.best and _is_lost(a, result.problem)]
    late = f"; {names(lost)} timed out or failed too often" if lost else ""
    if result.problem.target == "wins":
        head = f"{who} is {voice.best or 'best'}"
    return f"{head}: {told}{late}." if told else f"{head}{late}."


def _leads(result: Result, leads: Sequence[Lead], voice: Voice) -> str:
    """Return the distances to the nearest rivals."""
    nearest = sorted(leads, key=lambda lead: lead.observed)[:_COMPARED]
    points = result.problem.target == "share"
    of_readings = result.problem.target == "wins"  # side by side, and not of something that each arm has
    told = [lead(one, result.problem.goal, voice, points=points, plain=of_readings) for one in nearest]
    more = len(leads) - len(nearest)
    text = told[0] if len(told) == 1 else f"{', '.join(told[:-1])} and {told[-1]}" if told else ""
    rest = f"; {count(more)} other{'s are' if more > 1 else ' is'} further behind"
    return text + rest if more else text


def _certified(result: Result, voice: Voice) -> list[str]:
    declared = result.problem.contamination or Contamination(0.0)
    better = _no_better(result, voice)
    sure = f"{_sure(result.problem)} sure{_wins(result, voice)}{better}, {bad(declared, voice.reading)}."
    return [_head(result, voice), sure, _up_to(result, declared, voice)]


def _no_better(result: Result, voice: Voice) -> str:
    """Return what is sure where arms tie: that they tie is what was observed."""
    return f" that no {voice.arm} is better" * bool(result.ties)


def _wins(result: Result, voice: Voice) -> str:
    """Return what is sure of the best arm in rounds; elsewhere the answer says it."""
    if result.problem.target != "wins":
        return ""
    each = "" if len(result.arms) == 2 else f" against every other {voice.arm}"
    each += f", if any {voice.arm} does" if handed_on(result) else ""
    # of a gate the answer says who is worse than a baseline, which wins although it is judged as worse than it is
    who = "it" if result.problem.handicap is None else f"{name_of(result.best or '')}, counted as worse,"
    return f" that {who} wins more than half of the rounds side by side{each},{_in_rounds(result, voice)}"


def _in_rounds(result: Result, voice: Voice) -> str:
    """Return what rounds side by side do not depend on."""
    if result.problem.target != "wins":
        return ""
    return " under any load" if voice.better else f" whatever a round does to all {voice.arm}s alike"


def _up_to(result: Result, declared: Contamination, voice: Voice) -> str:
    """Return how much contamination the readings at hand bear."""
    point = getattr(result.breakdown, declared.adversary.value)
    if point is None:
        return ""
    what = f"{voice.reading}s"
    return f"These {what} support it for up to {percent(min(point, 0.5), ROUND_FLOOR)} bad {what}."


def breakdowns(result: Result) -> str:
    """Return up to which share of bad readings the leader is certified, by what whoever makes them may know."""
    found = [0.0 if point is None else point for point in result.breakdown]
    if not found[0] or result.leader is None or len(result.arms) == 1:
        return ""
    first, second, third = (percent(min(point, 0.5), ROUND_FLOOR) for point in found)
    return (
        f"These readings put {name_of(result.leader)} first for up to {first} bad readings ({second} if an "
        f"adversary sees the true readings; {third} if it also picks which to spoil)."
    )


def _tolerable(result: Result, voice: Voice) -> list[str]:
    problem = result.problem
    tolerance, declared = problem.tolerance, problem.contamination or Contamination(0.0)
    if problem.handicap is not None:
        sure = f"{_sure(problem)} sure, {bad(declared, voice.reading)}."
        return [_against_baseline(result, problem.handicap, voice), sure, _up_to(result, declared, voice)]
    best, asked = name_of(result.best or ""), voice.measured(distance(tolerance.amount, problem))
    if result.tolerance < math.inf:
        within = voice.measured(distance(result.tolerance, problem))
        asked_for = "" if within == asked or not tolerance else f" ({asked} was asked for)"
        if problem.target == "wins":
            # of an arm that another one ruled out the best says nothing: side by side arms may go in a circle
            circle = handed_on(result)
            whom = f"the best {voice.arm}" if circle else f"every other {voice.arm}"
            if_any = f", if any {voice.arm} wins at least half of the rounds against each other one,"
            under = f"{if_any * circle}{_in_rounds(result, voice)}"
            head = f"{best} is within {within} of {whom} in more than half of the rounds{asked_for}."
            return [head, f"{_sure(problem)} sure{under}, {bad(declared, voice.reading)}.", _best_itself(result)]
        head = f"{best} is within {within} of the {_goal(result)}{asked_for}."
    elif tolerance:  # bounds on effective gaps alone (E3): what contamination hides comes on top
        head = f"{best} is within {asked} of the {_goal(result)}, beside what bad readings hide."
    else:
        head = f"{best} is best up to the allowed quantile slack."
    return [head, f"{_sure(problem)} sure, {_kept(result)}{bad(declared, voice.reading)}.", _best_itself(result)]


def _best_itself(result: Result) -> str:
    others = [arm for arm in result.candidates if arm != result.best]
    return f"{names(others)} may be better by that much." if others else ""


def _kept(result: Result) -> str:
    """Return the promise about the user's own estimator, where there is one."""
    return "as long as the estimator errs by no more than its radius and bias, and " * result.certificate.estimated


def _separated(result: Result, voice: Voice) -> list[str]:
    future = "" if result.certificate.estimated else " and whoever makes them does not see the future"
    if result.problem.target == "wins":
        return [
            _head(result, voice),
            f"{_sure(result.problem)} sure{_wins(result, voice)}, as long as bad {voice.reading}s do not "
            "reverse who wins more rounds.",
            _certified_besides(result),
        ]
    return [
        _head(result, voice, "observed "),
        f"{_sure(result.problem)} sure that no {voice.arm} is better, {_kept(result)}as long as bad readings do "
        f"not reverse the true order{future}.",
        _certified_besides(result),
    ]


def _certified_besides(result: Result) -> str:
    if result.certificate.estimated:
        return ""
    point = result.breakdown.oblivious
    if not point:
        return "Without that promise it is not certified for any share of bad readings."
    share = percent(min(point, 0.5), ROUND_FLOOR)
    return f"Without that promise these readings support it for up to {share} bad readings."


def _indistinguishable(result: Result, voice: Voice) -> list[str]:
    problem = result.problem
    declared = problem.contamination or Contamination(0.0)
    if Judge.of(problem, ()).hopeless:
        return [_hopeless(result)]
    within = f" within {voice.measured(distance(problem.tolerance.amount, problem))}"
    hidden = f": {percent(declared.eps)} bad {voice.reading}s could hide the difference" if declared.eps else ""
    failing = {alarm.arm for alarm in result.alarms if alarm.kind == "missing"}
    left = [arm for arm in result.arms if arm.name in result.candidates]
    lost = [arm.name for arm in left if arm.name in failing or _is_lost(arm, problem)]
    why = f": {names(lost)} timed out or failed too often" if lost else hidden
    best = f"which {_is_best(result, '', voice)[0]}{within if problem.tolerance else ''}"
    close = f"{names(result.candidates)} are"
    if problem.handicap is not None:
        asked = _asked(result, problem.handicap, voice)
        best, close = (asked, "it is") if len(problem.arms) == 2 else (f"which is {asked}", close)
    return [
        f"Not decided: {close} too close to tell {best}{why}." if not lost else f"Not decided {best}{why}.",
        f"More {voice.reading}s would not help ({_sure(problem)} sure, if they keep behaving the same).",
        _best_looking(result, voice),
        _decided_at(result, declared, voice),
    ]


def _all_the_same(result: Result, voice: Voice) -> list[str]:
    """Return that arms measured the same in every round, which is a tie in words, and decides nothing."""
    rounds, out = max(result.pulls[arm] for arm in result.ties), len(result.problem.arms) - len(result.candidates)
    every = f"each of {count(rounds)} rounds" if rounds > 1 else "the only round"
    alike = f"{names(result.ties)} tie: they measured the same"
    if (given := result.problem.handicap) is not None and is_made_equal(result):
        others, much = [arm for arm in result.ties if arm != given.arm], _much(result, given, voice)
        alike = f"Not decided: {names(others)} measured worse than {name_of(given.arm)} by exactly {much}"
    ruled_out = f"; {count(out)} other{'s' * (out > 1)} ruled out" if out else ""
    left = [arm for arm in result.candidates if arm not in result.ties]
    if result.status is not Status.INDISTINGUISHABLE:
        ruled_out += f"; {names(left)} {'is' if len(left) == 1 else 'are'} not ruled out yet" if left else ""
        return [f"{alike} in {every}{ruled_out}."]
    # what is known is that nobody would be certified; who is only behind may still be ruled out (extensions E6)
    rest = f", but might rule out {names(left)}" if left else ""
    help_ = f"would not tell which {_is_best(result, '', voice)[0]}" if left else "would not help"
    return [
        f"{alike} in {every}{ruled_out}.",
        f"More {voice.reading}s {help_} ({_sure(result.problem)} sure, if they keep behaving the same){rest}.",
    ]


def _is_lost(arm: Arm, problem: Problem) -> bool:
    """Tell whether an arm has no value at its quantile: it timed out there, or all its readings are missing."""
    return math.isnan(arm.observed) or arm.observed == problem.censored


def _best_looking(result: Result, voice: Voice) -> str:
    arm = next((arm for arm in result.arms if arm.name == result.leader), None)
    if arm is None or _is_lost(arm, result.problem) or getattr(result, "coarse", None):
        return ""  # counts that are so coarse do not tell who looks best
    others = [other for other in result.candidates if other != arm.name]
    if others and not any(result.pulls[other] for other in others):
        return ""  # it was measured alone
    if (given := result.problem.handicap) is not None and len(result.arms) == 2:
        hidden = any(_is_lost(other, result.problem) for other in result.arms)  # how much worse it is
        return "" if hidden else "It seems to be." if arm.name == given.arm else "It does not seem to be."
    then = "" if given is None else "Then "  # as it is judged
    head = f"{then}{name_of(arm.name)} looks best ({voice.measured(value(arm.observed, result.problem))})"
    if math.isinf(result.tolerance):
        return f"{head}."
    sure = f"{_sure(result.problem)} sure{', if no reading is bad' * (result.problem.contamination is None)}"
    if result.tolerance == 0:
        return f"{head}; no {voice.arm} is better ({sure})."
    far = voice.measured(distance(result.tolerance, result.problem))
    return f"{head} and is at most {far} from the best ({sure})."


def _decided_at(result: Result, declared: Contamination, voice: Voice) -> str:
    """Return at which contamination the leader would be certified, now or with endless readings."""
    point = getattr(result.breakdown, declared.adversary.value)
    estimate = getattr(result.breakdown_estimate, declared.adversary.value)
    what = f"{voice.reading}s"
    near = _too_near(result, declared, voice) if estimate and estimate < declared.eps else ""
    if point:
        held = f"These {what} support it for up to {percent(min(point, 0.5), ROUND_FLOOR)} bad {what}."
        return f"{held} {near}" if near else held
    if near:
        return near
    if estimate and estimate < declared.eps:
        share = percent(estimate, digits=2)
        return f"Endless {what} like these would decide only below about {share} bad {what} (an estimate)."
    return ""


def _too_near(result: Result, declared: Contamination, voice: Voice) -> str:
    """Return that two shares are nearer than what bad readings can move them, where shares are compared."""
    if result.problem.target != "share":
        return ""
    gap = getattr(result.breakdown_estimate, declared.adversary.value)
    apart = 2 * gap if declared.adversary is Adversary.MALICIOUS else gap  # extensions 1.2
    bears = f"cannot survive {percent(declared.eps)} bad {voice.reading}s, however many there are (an estimate)"
    return f"Two {voice.arm}s {in_points(apart)} apart {bears}."


def _exhausted(result: Result, voice: Voice) -> list[str]:
    problem, left = result.problem, len(result.candidates)
    out = len(problem.arms) - left
    if not left:
        return [f"{voice.undecided}."]
    excluded = f"; {count(out)} other{'s' * (out > 1)} ruled out" if out else ""
    open_ = [arm for arm in result.arms if arm.name in result.candidates]
    if left > 1 and all(arm.n and _is_lost(arm, problem) for arm in open_):
        who = names(result.candidates)
        lost = f"Not decided: {who} timed out or failed too often{excluded}."
        return [f"{lost} Allow them more time, or find out why they fail."]
    who = f"{names(result.candidates, 'or')} may {_may_be(result, voice)}"
    if problem.handicap is not None:
        asked = _asked(result, problem.handicap, voice)
        who = asked if len(problem.arms) == 2 else f"{names(result.candidates, 'or')} may be {asked}"
    return [
        f"{voice.undecided}: {who}{excluded}.",
        _best_looking(result, voice),
        _decided_at(result, problem.contamination or Contamination(0.0), voice),
    ]


def _may_be(result: Result, voice: Voice) -> str:
    return f"be {voice.best}" if voice.best else f"have the {_goal(result)}"


def text(result: Result) -> str:
    """Return what `str(result)` says."""
    code = (result.conditions or {}).get("process") in ("fresh", "shared")  # Python that was timed
    said = summary(result, voice=TIMED._replace(unit="s") if code else PLAIN)
    return " ".join((said, *result.notes)) if isinstance(result, Analysis) else said


def notes(result: Analysis) -> tuple[str, ...]:
    """Return what a reader of an analysis should know besides the answer, one sentence each."""
    from truearm.report import answers

    asked = answers.tiers(result.tiers, result.problem.error)
    outside = answers.outside(result.outside, result.problem.between)
    return (*asked, *outside, *_notes(result))


def _notes(result: Analysis) -> list[str]:
    missing, few, needed, units, coarse = result.missing, result.few, result.needed, result.units, result.coarse
    told = []
    if units is not None:
        rows, name = sum(units.rows.values()), name_of(units.name)
        is_share, paired = result.problem.target == "share", result.problem.rounds
        half = f"A {name} succeeds if at least half of its readings do" if is_share else ""
        half = f"A round is one {name}, and a reading the median of an arm's rows in it" if paired else half
        told.append(f"{half or f'A reading is the median of one {name}'}; there were {count(rows)} rows.")
        if units.shared and not result.problem.dependent_arms and not paired:
            told.append(
                f"Several arms share values of {name} ({count(units.shared)} in all), which count as different "
                f"ones; if they are the same person or item, compare arms inside them "
                f"(round={units.name!r})."
            )
    if total := sum(missing.values()):
        told.append(_cells(missing, total))
    if few:
        most = max(few.values())
        each = " each" * (len(few) > 1) if min(few.values()) == most else " or less"
        has, it = ("has", "it") if len(few) == 1 else ("have", "them")
        told.append(
            f"{names(list(few))} {has} {count(most)} reading{'s' * (most != 1)}{each}: too few to rule {it} out, "
            "whatever they say."
        )
    if coarse:
        told.append(_wide_buckets(coarse, result.problem))
    elif result.best is None and result.status is not Status.DOUBTFUL:
        told.append(
            "Readings like these would not decide, however many there are (an estimate)."
            if needed is None
            else f"About {count(sum(needed.values()))} more readings like these would decide (an estimate)."
        )
    told.append(
        "Valid if the number of readings of every arm was chosen in advance (fixed design)."
        if result.design == "fixed"
        else "Valid however often the data were looked at (sequential design)."
    )
    return told


def _wide_buckets(coarse: Mapping[str, float], problem: Problem) -> str:
    where = "are somewhere in buckets that hold" if len(coarse) > 1 else "is somewhere in a bucket that holds"
    return (
        f"The {target_name(problem)}{'s' * (len(coarse) > 1)} of {names(list(coarse))} {where} up to "
        f"{percent(max(coarse.values()))} of the readings, so which arm looks best, at what value, and how many "
        "more readings would decide is not known: count the readings again, or begin a new table."
    )


def _cells(missing: Mapping[str, int], total: int) -> str:
    lost = [(name, n) for name, n in missing.items() if n]
    where = [f"{name_of(name)} {count(n)}" for name, n in lost[:LISTED]]
    if (more := len(lost) - LISTED) > 0:
        where.append(f"{count(more)} other arm{'s' * (more > 1)}")
    fate = f"at {'its' if total == 1 else 'their'} worst"
    return (
        f"{count(total)} missing value{'s' * (total > 1)} count{'s' * (total == 1)} {fate} ({', '.join(where)})."
    )
