"""Sentences about results: answers, alarms, gates. Nothing is computed here.

A summary has three parts: the answer with its size; how sure it is, what it assumes and when it breaks down; the
effort. What else a reader may want to know follows with `verbose`.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR
from typing import Any, NamedTuple

from truearm.claims.certificate import DECIDED, SIDE_BY_SIDE, Alarm, Status
from truearm.claims.certify import ratios
from truearm.claims.gates import Gate, is_hidden, is_meaningless, judge_gate
from truearm.claims.result import Analysis, Arm, Control, Lead, Result, Tiers
from truearm.errors import printable
from truearm.evidence import Judge
from truearm.evidence.judge import UNDECLARED
from truearm.evidence.units import Units
from truearm.problem import Adversary, Contamination, Handicap, Problem
from truearm.report.numbers import (
    MAX_LISTED,
    PLAIN_UNIT,
    Unit,
    amount,
    breakdown_percent,
    count,
    distance,
    ends,
    factor,
    is_or_are,
    join,
    least_factor,
    name_of,
    names,
    number,
    percent,
    plural,
    points,
    seconds,
    span,
    target_name,
    unit_for,
    value,
)

_MAX_RIVALS = 3  # nearest rivals whose distance from the best arm is in the answer
_MAX_ALARMS = 2  # shown without `verbose`
_MAX_TIERS = 8
_QUALITY_SHARES = (0.5, 0.75, 0.9, 0.95)  # of the leader's true readings
_MAX_FACTOR = 1000  # times the present readings: more than that is not useful advice


class Terms(NamedTuple):
    """The words for a result: for a reading, an arm and a better arm, and the unit of readings."""

    reading: str = "reading"
    arm: str = "arm"
    best: str = ""
    better: str = ""
    worse: str = ""
    unit: Unit = PLAIN_UNIT
    options: bool = False  # spell arguments as options of the command line, not as in Python
    elapsed: float | None = None  # seconds that the readings took, if known
    time_limit: float | None = None  # seconds after which a time limit ended the readings; None if it did not
    ended: bool = False  # no more readings will follow

    def measure(self, x: float, quantum: float | None = None) -> str:
        """Return a reading, or a difference of two, with its unit."""
        size = self.unit.size
        return self.unit.attach(number(x / size, None if quantum is None else quantum / size))

    @property
    def no_winner(self) -> str:
        """The first words of an answer without a best arm."""
        if self.time_limit is not None:
            return f"No winner after {seconds(self.time_limit)}"
        return "No winner" if self.ended else "No winner yet"

    def option(self, name: str, text: str = "") -> str:
        """Return an argument as the reader writes it, with its value if given."""
        name, sign = (f"--{name.replace('_', '-')}", " ") if self.options else (name, "=")
        return f"{name}{sign}{text}" if text else name


PLAIN = Terms()
_RUN = Terms("run", "command")
_TIME = _RUN._replace(best="fastest", better="faster", worse="slower")
_METRICS = {
    "wall": _TIME,
    "cpu": _TIME,
    "memory": _RUN._replace(best="smallest", better="smaller", worse="larger"),
}


def terms_for(result: Result, metric: str, unit: Unit = PLAIN_UNIT) -> Terms:
    """Return the words for a metric of commands or Python statements."""
    terms = _METRICS.get(metric, _RUN) if result.problem.goal == "min" else _RUN
    conditions = result.conditions or {}
    arm = "statement" if "statements" in conditions else "revision" if "builds" in conditions else "command"
    several = conditions.get("builds") == "random" or "best_of" in conditions  # runs for one reading
    reading = "reading" if several else terms.reading
    return terms._replace(reading=reading, arm=arm, unit=unit)


def default_terms(result: Result) -> Terms:
    """Return the words for a result: of Python functions that were timed, or of readings with their unit."""
    conditions, unit = result.conditions or {}, unit_for("wall", result.arms, target=result.problem.target)
    if conditions.get("process") in ("fresh", "shared"):
        return _TIME._replace(arm="function", unit=unit)
    return PLAIN._replace(unit=unit) if conditions.get("unit") == "s" else PLAIN


def scope(conditions: Mapping[str, object] | None) -> str:
    """Return the words that limit an answer to random builds; "" for other answers (extensions U)."""
    return " over random builds" if (conditions or {}).get("builds") == "random" else ""


def summarize(result: Result, **options: Any) -> str:  # noqa: ANN401 - those of `lines`
    """Return the summary of a result, a line for each part."""
    return "\n".join(lines(result, **options))


def lines(
    result: Result,
    *,
    terms: Terms | None = None,
    verbose: bool = False,
    alarms: bool = True,
    gate: Gate | None = None,
) -> list[str]:
    """Return the lines of the summary, the answer first; the verdict of a gate is its answer.

    `verbose` adds what the answer means exactly and what else is known; pages show `alarms` apart.
    """
    terms = default_terms(result) if terms is None else terms
    summary = _Summary(result, terms)
    gate = gate or judge_gate(result)
    answer, support = summary.parts() if gate is None or not result.total else summary.gate(gate)
    notes = _notes(result, terms) if isinstance(result, Analysis) else ()
    effort, details = [summary.effort()] if result.total else [], summary.details() if verbose else []
    parts = (answer, support, effort, [note for note, matters in notes if verbose or matters], details)
    paragraphs = [" ".join(filter(None, part)) for part in parts]
    return [*filter(None, paragraphs), *(summary.alarms(verbose=verbose) if alarms else ())]


def standing(result: Result, arm: str, *, by: bool = False) -> str:
    """Return in a word or two where an arm stands, with the arm that excludes it if `by` is true."""
    handicap, tolerable = result.problem.handicap, result.status is Status.TOLERABLE
    if handicap is not None and arm == handicap.arm:
        return "baseline"
    if arm == result.best:
        return "good enough" if tolerable else "best"
    if arm in result.may_tie or (arm in result.ties and handicap is None):  # a handicap makes equals of others
        return "may tie" if arm in result.may_tie else "tied"
    if arm in result.candidates or (tolerable and arm not in result.certificate.rejected):
        return "candidate"  # also arms behind by the order of listing only (evidence T11)
    accuser = result.excluded.get(arm) if by and isinstance(result, Analysis) else None
    return "excluded" if accuser is None else f"excluded by {name_of(accuser)}"


def headline(result: Result, terms: Terms = PLAIN, gate: Gate | None = None) -> str:
    """Return the answer in a few words."""
    gate = gate or judge_gate(result)
    if gate is not None:
        return " ".join(_Summary(result, terms).gate(gate)[0])
    best, tie = name_of(result.best or ""), f", {names(result.may_tie)} may tie" * bool(result.may_tie)
    if result.control is not None:
        better, control = result.control.named("better"), name_of(result.control.arm)
        verb = "beats" if len(better) == 1 else "beat"
        return f"{names(better)} {verb} {control}" if better else f"No arm is shown to beat {control}"
    if result.ties and result.problem.handicap is None:
        return f"{names([*([result.best] if result.best else []), *result.ties])} tie"
    return {
        Status.DOUBTFUL: "Doubtful: nothing is certified",
        Status.TOLERABLE: f"{best} is good enough",
        Status.INDISTINGUISHABLE: "Too close to call",
        Status.EXHAUSTED: terms.no_winner,
    }.get(result.status, f"{best} is {terms.best or 'best'}{tie}")


def is_unmeasured(arm: Arm, problem: Problem) -> bool:
    """Return True if an arm has no value at its quantile: it timed out there, or all its readings are missing."""
    return math.isnan(arm.observed) or arm.observed == problem.time_out


def is_handed_on(result: Result) -> bool:
    """Return True if some arm was rejected by an arm other than the best (extensions E1)."""
    return any(claim.leader != result.best and not claim.tolerant for claim in result.certificate.claims)


def confidence(problem: Problem) -> str:
    """Return one minus the error probability, rounded down."""
    return percent(1 - problem.error, ROUND_FLOOR, 4)


def assuming(contamination: Contamination | None, reading: str = "reading") -> str:
    """Return what is assumed about bad readings, as the object of "assuming"."""
    if contamination is None:
        return f"bad {reading}s neither reverse the true order nor depend on later {reading}s"
    if contamination.blind:
        return f"disturbances do not depend on which arm runs, and {reading}s were taken in random order"
    if contamination.eps == 0:
        return f"no {reading} is bad"
    share = percent(contamination.eps, ROUND_FLOOR)  # claim no more than was assumed
    if contamination.adversary is Adversary.MALICIOUS:
        return f"at most {share} of the {reading}s are bad, even if an adversary picks which"
    sees = ", even if the bad values are chosen by an adversary that sees the true ones"
    is_seen = contamination.adversary is Adversary.PRESCIENT
    return f"each {reading} has at most a {share} chance of being bad{sees * is_seen}"


Paragraphs = tuple[list[str], list[str]]  # sentences of the answer, and of what it rests on


class _Summary:
    """The sentences about one result."""

    def __init__(self, result: Result, terms: Terms) -> None:
        self.result, self.terms, self.problem = result, terms, result.problem
        self.conditions = result.conditions or {}
        self.scope, self.readings = scope(self.conditions), f"{terms.reading}s"
        self.lost = "failed, got lost or timed out" if terms.reading == "run" else "are missing or timed out"
        builds = f" of these {'two ' * (len(self.problem.arms) == 2)}builds"
        self.sure = f"{confidence(self.problem)} sure" + builds * (self.conditions.get("builds") == "one")
        items, self.is_final = result.items, result.status is Status.INDISTINGUISHABLE
        self.is_list_over = items is not None and items.scored == items.all  # nothing is left to measure

    def parts(self) -> Paragraphs:
        result = self.result
        if not result.total:
            return [self._without_readings()], []
        if len(self.problem.arms) == 1:
            return self._only_arm()
        if result.status is Status.DOUBTFUL:
            looks = "" if result.leader is None else f"{name_of(result.leader)} looks best."
            return ["Doubtful, so nothing is certified.", *self.doubts()], [looks]
        if result.control is not None:
            return self._against_control(result.control)
        return self._decision()

    def _decision(self) -> Paragraphs:
        result, handicap = self.result, self.problem.handicap
        if result.best is None:
            return self._tie_of_all() if result.ties else self._open()
        support = [f"{self.sure}{self._no_better()}, {self._basis()}.", self._breakdown()]
        if handicap is not None:
            return [self._against_handicap(handicap)], support
        if result.status is Status.TOLERABLE:
            return self._tolerable(), support[:1]
        if result.status is not Status.SEPARATED:
            return [self._head()], support
        without = self._breakdown("Without that assumption the answer holds")
        nothing = f"Without that assumption nothing is certified, however few {self.readings} were bad."
        return [self._head("observed ")], [support[0], without or nothing * (not result.certificate.estimated)]

    def _no_better(self) -> str:
        is_weak = self.result.status is Status.SEPARATED and self.problem.target != "wins"
        return f" that no {self.terms.arm} is better" * (bool(self.result.ties) or is_weak)

    # The effort, details, alarms and doubts

    def effort(self) -> str:
        result, units = self.result, getattr(self.result, "units", None)
        best_of = self.conditions.get("best_of")
        if result.items is not None:
            of = "" if result.items.all is None else f" of {count(result.items.all)}"
            return " ".join([f"{count(result.items.scored)}{of} items scored.", *_failures(result)])
        shared = (
            " Timed in one process, because a function could not be imported by another: the hash seed and the "
            "memory layout are part of the answer."
        ) * (self.conditions.get("process") == "shared")
        parts = [
            plural(max(result.pulls.values()), "round") if self.problem.rounds else "",
            plural(result.total, "build" if self.scope else self.terms.reading),
            plural(result.total * self.conditions["runs_per_build"], "run") if self.scope else "",
            f"each the {self.terms.best or 'best'} of {best_of} runs" if best_of and not self.scope else "",
            "" if units is None else f"one per {name_of(units.name)}",
            "" if self.terms.elapsed is None else seconds(self.terms.elapsed),
        ]
        return f"{', '.join(filter(None, parts))}.{shared}"

    def details(self) -> list[str]:
        """Return what exactly is certified in rounds."""
        best, is_strict = self.result.best, self.result.status in (Status.CERTIFIED, Status.SEPARATED)
        if self.problem.target != "wins" or best is None or self.problem.handicap is not None or not is_strict:
            return []
        rivals = [name_of(arm) for arm in self.problem.arms if arm != best]
        against = rivals[0] if len(rivals) == 1 else f"every other {self.terms.arm}"
        return [f"Certified: {name_of(best)} wins more than half of the rounds against {against}."]

    def alarms(self, *, verbose: bool) -> list[str]:
        return [f"Warning: {sentence}" for sentence in self._first(self.result.alarms, "warning", verbose=verbose)]

    def doubts(self) -> list[str]:
        """Return why nothing is certified."""
        return self._first(self.result.doubts, "doubt")

    def _first(self, alarms: Sequence[Alarm], noun: str, *, verbose: bool = False) -> list[str]:
        """Return the first alarm of each kind and the number of the others; all with `verbose`."""
        kinds = {a.kind: a for a in reversed(alarms)}
        shown = list(alarms) if verbose else list(kinds.values())[::-1][:_MAX_ALARMS]
        sentences = [alarm(a, self.problem, self.terms) for a in shown]
        if more := len(alarms) - len(shown):
            sentences[-1] += f" {plural(more, f'more {noun}')}."
        return sentences

    # One arm, or none

    def _without_readings(self) -> str:
        if len(self.problem.arms) == 1:
            return f"{name_of(self.problem.arms[0])} has no readings yet."
        if self.is_final:
            return self._hopeless()
        return f"No readings yet: which of {names(self.problem.arms)} has the {self._goal()} is unknown."

    def _hopeless(self) -> str:
        return (
            f"No winner: if an adversary may pick {percent(self.problem.declared.eps)} of the {self.readings} and "
            f"change them, no number of {self.readings} shows which of {names(self.result.candidates)} has the "
            f"{self._goal()}. Allow for fewer bad ones."
        )

    def _only_arm(self) -> Paragraphs:
        arm, problem, total = self.result.arms[0], self.problem, plural(self.result.total, self.terms.reading)
        name = target_name(problem)
        if arm.n and is_unmeasured(arm, problem):
            return [f"{name_of(arm.name)} has no {name}: half or more of {total} {self.lost}."], []
        answer = f"{name_of(arm.name)}: observed {name} {self._interval(arm)}."
        if self.result.status is Status.DOUBTFUL:
            return [answer, "Doubtful, so nothing is certified about the true one."], self.doubts()
        if not (arm.low <= arm.high and (math.isfinite(arm.low) or math.isfinite(arm.high))):
            return [answer, f"{total} {'does' if arm.n == 1 else 'do'} not bound the true one."], []
        how, assumed = " no matter when you stop", assuming(problem.declared, self.terms.reading)
        if self.result.design == "fixed":
            how, assumed = "", f"{assumed} and the number of {self.readings} was fixed in advance"
        return [answer], [f"{self.sure}{how}, assuming {assumed}."]

    def _show_value(self, arm: Arm) -> str:
        return self.terms.unit.attach(value(arm.observed, self.problem, self.terms.unit))

    def _interval(self, arm: Arm) -> str:
        """Return the observed value and where the true one is."""
        unit = self.terms.unit
        low, high = ends(arm.low, arm.high, self.problem, unit)
        where = {
            (True, True): f"between {low} and {unit.attach(high)}",
            (True, False): f"at least {unit.attach(low)}",
            (False, True): f"at most {unit.attach(high)}",
        }.get((math.isfinite(arm.low), math.isfinite(arm.high)))
        clean = f" if no {self.terms.reading} is bad" * (self.problem.contamination is None)
        return self._show_value(arm) + (f", true {target_name(self.problem)} {where}{clean}" if where else "")

    # What the best arm is called

    def _goal(self, seen: str = "") -> str:
        """Return what the best arm has; `seen` is "observed " where readings count as they are."""
        if self.problem.target == "wins":
            return "most wins side by side"
        name = "estimate" if self.result.certificate.estimated else f"{seen}{target_name(self.problem)}"
        if self.problem.items is not None:
            name += f" on the {count(self.problem.items)} items"
        highest, lowest = ("largest", "smallest") if self.problem.target == "share" else ("highest", "lowest")
        return f"{highest if self.problem.goal == 'max' else lowest} {name}"

    def _is_best(self, seen: str = "", verb: str = "") -> str:
        """Return the predicate of the best arm: is fastest, or has the highest median; "be" after "may"."""
        has, is_ = ("have", "be") if verb else ("has", "is")
        if self.problem.target == "wins":
            return f"{is_} {self.terms.best or 'best'}"
        if not self.terms.best or self.problem.target == "share":
            return f"{has} the {self._goal(seen)}"
        level = "" if self.problem.quantile == 0.5 else f" at the {target_name(self.problem)}"
        return f"{is_} {self.terms.best}{level}"

    # Certified, separated, tolerable

    def _head(self, seen: str = "") -> str:
        """Return which arm is best and by how much; arms that tie with it are named with it (evidence T11)."""
        result, problem = self.result, self.problem
        alike = (*result.ties, *result.may_tie)  # how far apart these are is not known
        near = sorted(
            (x for x in result.better_by if x.than not in alike and math.isfinite(x.observed)),
            key=lambda x: x.observed,
        )
        best = names([result.best or "", *result.ties])
        head = f"{best} {self._is_best(seen)}{self.scope}"
        if result.ties:
            head = f"{best} tie for {self._is_best('observed ').removeprefix('has ').removeprefix('is ')}"
        leads = [lead(one, problem, self.terms) for one in near[:_MAX_RIVALS]]
        more = len(near) - len(leads)
        far = join(leads) + f"; {count(more)} other{'s are' if more > 1 else ' is'} further behind" * (more > 0)
        if problem.target == "mean" and not result.ties:
            mean = next(arm.observed for arm in result.arms if arm.name == result.best)
            far = ", ".join(filter(None, [self.terms.measure(mean, 0.001), far]))
        lost = [a.name for a in result.arms if a.name != result.best and is_unmeasured(a, problem)]
        late = f"; too many {self.readings} of {names(lost)} {self.lost}" if lost else ""
        tie = f" {names(result.may_tie)} may tie with {best}." if result.may_tie else ""
        return f"{head}{': ' * bool(far)}{far}{late}.{tie}"

    def _basis(self) -> str:
        """Return what an answer rests on, as the words after "95% sure,"."""
        problem, arm, wins = self.problem, self.terms.arm, self.problem.target == "wins"
        order = self.conditions.get("order")
        alike = f"for any {'load' if self.terms.better else 'disturbance'} that treats the {arm}s alike"
        bad = self._contamination()
        if wins and problem.contamination is None:
            bad = f"bad {self.readings} do not change which {arm} wins more rounds"
        assumed = {
            bad: not problem.is_blind,
            "the order of a round does not matter": problem.is_blind and order != "drawn",
            "the estimator errs by no more than its radius and bias": self.result.certificate.estimated,
            f"one {arm} wins at least half of the rounds against every other": wins and is_handed_on(self.result),
            f"the number of {self.readings} was fixed in advance": self.result.design == "fixed",
        }
        parts = [part for part, holds in assumed.items() if holds]
        basis = ", ".join([alike] * wins + [f"assuming {join(parts)}"] * bool(parts))
        known = {
            "drawn": "were side by side in random order",
            "parallel": "ran at the same time",
            "seed": "came in an order from a known seed",
        }.get(order or "", "are from an export")
        return f"{basis}: {self.readings} {known}" if problem.is_blind else basis

    def _contamination(self) -> str:
        """Return what is assumed about bad readings, or wrong scores."""
        declared = self.problem.contamination
        if self.problem.target != "mean" or declared is None:
            return assuming(declared, self.terms.reading)
        wrong = f"at most {percent(declared.eps, ROUND_FLOOR)} of the scores of each {self.terms.arm} are wrong"
        return wrong if declared.eps else "the scores are as given"

    def _breakdown(self, opening: str = "Still holds", point: float | None = None) -> str:
        """Return up to which share of bad readings, or wrong scores, the answer holds."""
        if point is None:
            point = getattr(self.result.breakdown, self.problem.declared.adversary.value)
        if point is None:
            return ""
        bad = f"{self.readings} were bad"
        if self.problem.target == "mean":
            bad = f"scores of each {self.terms.arm} are wrong"
        return f"{opening} if up to {breakdown_percent(point)} of the {bad}."

    def _tolerable(self) -> list[str]:
        result, problem, terms = self.result, self.problem, self.terms
        best, asked = name_of(result.best or ""), distance(problem.tolerance.amount, problem, terms.unit)
        within = distance(result.tolerance, problem, terms.unit)
        known = f" (tolerance {asked})" * (within != asked and bool(problem.tolerance))
        head = f"{best} is within {within} of the {self._goal()}{known}."
        if result.tolerance == math.inf:  # bounds on effective gaps alone (extensions E3)
            head = f"{best} is within {asked} of the {self._goal()}, apart from what bad {self.readings} hide."
        elif problem.target == "wins":
            # an arm that another one ruled out may beat the best one: wins in rounds need not be transitive
            rival = f"the best {terms.arm}" if is_handed_on(result) else f"every other {terms.arm}"
            head = f"{best} is within {within} of {rival} in more than half of the rounds{known}."
        others = [arm for arm in result.candidates if arm != result.best]
        return [head, f"{names(others)} may be better, but by no more than that." * bool(others)]

    def _against_handicap(self, handicap: Handicap) -> str:
        """Return how an arm compares with the one that must be better by more than a tolerance."""
        other = next(arm for arm in self.problem.arms if arm != handicap.arm)
        than, much = name_of(handicap.arm), amount(handicap.tolerance, self.terms.unit)
        if self.result.best == handicap.arm:
            return f"{name_of(other)} is worse than {than} by {much} or more."
        return f"{name_of(other)} is not worse than {than} by more than {much}."

    # Gates

    def gate(self, found: Gate) -> Paragraphs:
        """Return the verdict of a gate and what it rests on."""
        result, handicap, base = self.result, self.problem.handicap, name_of(found.baseline)
        if result.status is Status.DOUBTFUL:
            return ["UNSURE: the readings contradict an assumption, so nothing is certified.", *self.doubts()], []
        if is_meaningless(result):
            needs = f"a tolerance in percent needs positive readings; pass it in the unit of those of {base}"
            return [f"UNSURE: {needs}."], []
        others = [arm for arm in self.problem.arms if arm != found.baseline]
        much = "" if handicap is None else f" by more than {amount(handicap.tolerance, self.terms.unit)}"
        if found.verdict != "UNSURE":
            arms, than = others, f"not worse than {base}{much}" if much else f"better than {base}"
            if found.verdict == "FAIL":
                arms, than = list(found.failed), f"worse than {base}{much}"
            support = self._breakdown() if len(others) == 1 and result.best is not None else ""
            answer = f"{found.verdict}: {names(arms)} {is_or_are(arms)} {than}{self.scope}."
            return [answer], [f"{self.sure}, {self._basis()}.", support]
        left = found.undecided
        why = join([x for x in (self._between(arm, found.baseline) for arm in left[:_MAX_RIVALS]) if x])
        why = f": {why} ({self.sure})" if why else ""
        question = f"whether {names(left, 'or')} {is_or_are(left[:1])} worse than {base}{much}{self.scope}"
        answers = {
            f"UNSURE: {question} is not shown{why}.": True,
            f"--timeout ends runs before they can be that much worse than {base}: raise it.": is_hidden(result),
            f"Stopped early: at this rate {plural(found.budget or 0, 'round')} would not show it "
            "either.": found.budget is not None,
        }
        return [answer for answer, holds in answers.items() if holds], self._would_decide()

    # Undecided

    def _open(self) -> Paragraphs:
        result, problem = self.result, self.problem
        if self.is_final and Judge.of(problem, ()).is_hopeless:
            return [self._hopeless()], []
        no_winner = "No winner" if self.is_final or not result.candidates else self.terms.no_winner
        arms, out = names(result.candidates, "or"), len(problem.arms) - len(result.candidates)
        excluded = f"; {plural(out, 'other')} ruled out" * (0 < out < len(problem.arms))
        failing = {alarm.arm for alarm in result.alarms if alarm.kind == "missing" and self.is_final}
        left = [arm for arm in result.arms if arm.name in result.candidates]
        lost = [arm.name for arm in left if arm.name in failing or (arm.n and is_unmeasured(arm, problem))]
        if lost and (self.is_final or len(lost) == len(left)):
            head = f"No winner: too many {self.readings} of {names(lost)} {self.lost}{excluded}."
            why = "Allow more time, or find out why." if self.terms.reading == "run" else "Find out why."
            return [head, why], self._would_decide()
        apart = self._interval_apart()
        if apart and not (out or self.is_final):
            return [f"{no_winner}: {apart}"], self._would_decide()
        head = f"{arms} may {self._is_best(verb='may')}{excluded}" if arms else "no arm is left"
        if self.is_final:
            eps, within = problem.declared.eps, distance(problem.tolerance.amount, problem, self.terms.unit)
            which = f"which {self._is_best()}{f' within {within}' * bool(problem.tolerance)}"
            head = f"{names(result.candidates)} are too close to tell {which}"
            head += f"; {percent(eps)} bad {self.readings} could hide the difference" * bool(eps)
        apart = f"T{apart[1:]}" if apart.startswith("the ") else apart or self._looks_best()
        return [f"{no_winner}: {head}.", apart], self._would_decide()

    def _looks_best(self) -> str:
        """Return which arm looks best and how far it may be from the best."""
        result, problem = self.result, self.problem
        arm = next((arm for arm in result.arms if arm.name == result.leader), None)
        is_alone = not any(result.pulls[other] for other in result.candidates if other != result.leader)
        if arm is None or is_alone or is_unmeasured(arm, problem) or getattr(result, "coarse", None):
            return ""  # coarse counts do not show which arm looks best
        head = f"{name_of(arm.name)} looks best ({self._show_value(arm)})"
        if math.isinf(result.tolerance):
            return f"{head}."
        far = f" and is at most {distance(result.tolerance, problem, self.terms.unit)} from the best"
        far = far if result.tolerance else f", and no other {self.terms.arm} is better"
        clean = f", if no {self.terms.reading} is bad" * (problem.contamination is None)
        return f"{head}{far} ({self.sure}{clean})."

    def _interval_apart(self) -> str:
        """Return by how much the leader and the remaining arms differ at most, where a ratio bounds that."""
        leader, most = self.result.leader, _MAX_RIVALS if self.problem.target == "wins" else 1
        left = [arm for arm in self.result.candidates if arm != leader]
        phrases = [self._between(leader, arm) for arm in left] if leader is not None and len(left) <= most else []
        if not phrases or not all(phrases):
            return ""
        alike = phrases[0].partition(" is ")[0] + " is "
        return f"{join([phrases[0], *(x.removeprefix(alike) for x in phrases[1:])])} ({self.sure})."

    def _between(self, subject: str, rival: str) -> str:
        """Return how far one arm may be ahead of another or behind it, rounded outward; "" if that is open."""
        result, problem, ahead, behind = self.result, self.problem, self.terms.better, self.terms.worse
        if problem.contamination is None or problem.target == "share" or getattr(result, "coarse", None):
            return ""
        ratio = next((r for r in ratios(result, subject) if r.arm == rival), None)
        if ratio is None or not 0 < ratio.low <= ratio.high < math.inf:
            return ""
        if not ahead and max(ratio.high, 1 / ratio.low) >= 2:
            return ""  # both intervals are shorter than any words for it
        least, most = (ratio.low, ratio.high) if problem.goal == "min" else (1 / ratio.high, 1 / ratio.low)
        than = " than" * bool(ahead)
        if not ahead:
            ahead, behind = ("below", "above") if problem.goal == "min" else ("above", "below")
        limits = f"between {excess(most)} {ahead} and {excess(1 / least)} {behind}"
        if least > 1:
            limits = f"between {excess(least, ROUND_FLOOR)} and {excess(most)} {ahead}"
        elif most < 1:
            limits = f"between {excess(1 / most, ROUND_FLOOR)} and {excess(1 / least)} {behind}"
        one, other = name_of(subject), name_of(rival)
        if problem.rounds or than:
            return f"{one} is {limits}{than} {other}"
        return f"the {target_name(problem)} of {one} is {limits} that of {other}"

    def _would_decide(self) -> list[str]:
        """Return what would decide: nothing, another eps, or how many readings."""
        result, declared = self.result, self.problem.declared
        if self.is_list_over and self.is_final:
            return ["All items are scored."]
        sentences = [
            f"More {self.readings} would not help ({self.sure}, if they keep behaving the same)."
        ] * self.is_final
        point = getattr(result.breakdown, declared.adversary.value)
        estimate = getattr(result.breakdown_estimate, declared.adversary.value)
        eps = math.floor(10000 * point) / 10000 if point else 0.0
        if 0 < eps < declared.eps and result.leader is not None and self.problem.handicap is None:
            text = percent(eps, ROUND_FLOOR) if self.terms.options else f"{eps:.4g}"
            option, leader = self.terms.option("contamination", text), name_of(result.leader)
            sentences.append(f"{option} decides this: {leader} {self._is_best()}.")
        if estimate and estimate < declared.eps and not self.is_list_over:
            only = f"only if fewer than {percent(estimate, digits=2)} were bad (an estimate)"
            sentences.append(f"Even unlimited {self.readings} would decide this {only}.")
        elif isinstance(result, Analysis) and not self.is_final and (not sentences or result.needed):
            sentences.append(more_readings(result, self.terms.reading))
        return sentences

    def _tie_of_all(self) -> Paragraphs:
        """Return that arms measured the same in every round, a tie that decides nothing (extensions E6)."""
        result, handicap = self.result, self.problem.handicap
        if self.is_list_over:
            return [f"{names(result.ties)} tie for the {self._goal()}: all of them are scored."], []
        rounds, one = max(result.pulls[arm] for arm in result.ties), "item" if result.items else "round"
        every = f"each of {count(rounds)} {one}s" if rounds > 1 else f"the only {one}"
        worse = f"counted as {amount(handicap.tolerance)} worse" if handicap else ""
        judged = f", with {name_of(handicap.arm)} {worse}" if handicap else ""
        left = [arm for arm in result.candidates if arm not in result.ties]
        rest = f"; {names(left)} {is_or_are(left)} not ruled out yet" if left else ""
        more = f"More {self.readings} would not show which {self._is_best()}"
        sure = f"{more} ({self.sure}, if they keep behaving the same)." * self.is_final
        return [f"{names(result.ties)} tie{judged}: they measured the same in {every}{rest}.", sure], []

    # Control

    def _against_control(self, control: Control) -> Paragraphs:
        result, better, beaten, left = self.result, *map(control.named, ("better", "not better", "open"))
        word, reference = self.terms.better or "better", name_of(control.arm)
        head = f"{names(better)} {is_or_are(better)} {word} than {reference}."
        answer = head if better else f"No {self.terms.arm} is shown to be {word} than {reference}."
        much = f" by more than {amount(self.problem.tolerance, self.terms.unit)}" * bool(self.problem.tolerance)
        support = [
            *(self._control_support(control) if better else ()),
            f"{names(beaten)} {is_or_are(beaten)} not {word}{much} ({self.sure}, on its own)." * bool(beaten),
            f"Whether {names(left, 'or')} {is_or_are(left[:1])} {word} than {reference} is open." * bool(left),
        ]
        also, more = self._decision() if result.status in DECIDED else ([], [])
        if result.status is Status.CERTIFIED and better:  # what it assumes is already there
            more = [f"{self.sure}{self._no_better()} of the best, on its own."]
        return [answer, *also], [*support, *more]

    def _control_support(self, control: Control) -> Iterator[str]:
        better, declared = control.named("better"), self.problem.declared
        sure = f"{self.sure}{' of all of it' * (len(better) > 1)}"
        if control.method == "fdr":
            mean, named = percent(self.problem.error, ROUND_CEILING), self.terms.better or "better"
            sure = f"On average at most {mean} of the {self.terms.arm}s named {named} are not"
        yield f"{sure}, assuming {self._contamination()}."
        found = [getattr(v.breakdown, declared.adversary.value) for v in control.variants if v.arm in better]
        if None not in found and min(found) >= declared.eps:  # step-down may need less at eps than this does
            yield self._breakdown(point=min(found))


def excess(x: float, rounding: str = ROUND_CEILING) -> str:
    """Return how far a factor is above 1: in percent, or as a factor from 2 on."""
    if x >= 2:
        return f"{factor(x, rounding)}x"
    return percent(x - 1, rounding, 2)


def _failures(result: Result) -> Iterator[str]:
    """Yield how many scores of each arm are missing, and why (the first reason)."""
    for arm, kinds in (result.conditions or {}).get("failures", {}).items():
        why = printable(next(iter(kinds)))
        items = plural(sum(kinds.values()), "item")
        yield f"{name_of(arm)} failed on {items} ({why}): missing, counted at the worst."


def lead(one: Lead, problem: Problem, terms: Terms = PLAIN) -> str:
    """Return how far the best arm is from another one, rounded to the safe side."""
    rival, goal = name_of(one.than), problem.goal
    that = {"wins": f"the reading of {rival}", "mean": rival}.get(problem.target, f"that of {rival}")
    if problem.target == "share":
        least = 100 * (one.at_least or 0.0)
        sure = f" (at least {number(least, least / 10, ROUND_FLOOR)})" if least else ""
        return f"{points(one.observed, digits=3)} above {that}{sure}"
    if one.scale == "difference":
        least = one.at_least or 0.0
        sure = f" (at least {number(least / terms.unit.size, least / terms.unit.size / 10, ROUND_FLOOR)})"
        side = "above" if goal == "max" else "below"
        return f"{terms.measure(one.observed, abs(one.observed) / 100)} {side} {that}{sure * bool(least > 0)}"
    times, sure = f"{factor(one.observed)}x", least_factor(one.at_least, one.observed)
    if terms.better:
        return f"{times} {terms.better} than {rival}{sure}"
    return f"{times} {that}{sure}" if goal == "max" else f"{that} is {times} as high{sure}"


# What the readings contradict


def alarm(one: Alarm, problem: Problem, terms: Terms = PLAIN) -> str:
    """Return what in the readings contradicts an assumption, and what to do about it."""
    arm, column, name = name_of(one.arm), name_of(one.detail), target_name(problem)
    some = f"{count(one.found)} of {count(one.n)} readings of {arm} ({percent(one.found / max(1, one.n))})"
    declared = assuming(problem.contamination)
    if problem.contamination is None or problem.is_blind:
        declared = f"{assuming(UNDECLARED)} (the default, because no share was declared)"
    widen = f"widen it ({terms.option('between')})"
    between = "" if problem.between is None else f" {span(problem.between, terms.unit)}"
    lost = f"missing or outside the plausible range{between}: {widen}" if between else "missing: find out why"
    values = "".join(f" {terms.measure(x)}" for x in one.values)
    unit = terms.option("unit", column if terms.options else repr(column))
    return {
        "dependence": _dependence(one, problem),
        "missing": f"{some} are missing, more than chance explains if {declared}. They count at their worst: find "
        "out why they fail.",
        "outside": f"{some} are outside the plausible range{between}, more than chance explains if {declared}: "
        f"find out why, {widen}, or raise eps.",
        "contradiction": f"No true {name} of {arm} fits its readings if {declared}, because {count(one.found)} of "
        f"{count(one.n)} are {lost}, or raise eps.",
        "outliers": f"{some} are more than ten robust standard deviations from its median, more than expected "
        f"if {declared}: check them, and raise eps unless they are true readings with very heavy tails.",
        "units": f"{some} are near {one.detail} its median and hardly any are close to that: if this is a mistake "
        "of units, correct it at the source; nothing was changed here.",
        "clusters": f"Rows with the same {column!r} are alike, so they are not independent readings: name that "
        f"column as the unit ({unit}), and they count as one.",
        "confounded": f"Each arm has its own single {column!r}, so a difference of arms may be one of {column!r}: "
        "measure every arm in several.",
        "unsupported": f"The readings of {arm} changed while they were taken: {count(one.found)} or more of "
        f"{count(one.n)} are bad, or the arm itself changed; but the decision holds only for a share of up to "
        f"{one.detail} bad readings, so it is not supported. Find out what changed.",
        "ties": f"{some} equal its {name}{values}: arms that share this value cannot be told apart"
        f"{_tie_remedy(one.detail, terms)}.",
    }[one.kind]


def _dependence(one: Alarm, problem: Problem) -> str:
    if problem.rounds:
        return (
            "How far apart the arms are depends on when they were measured: what one arm does lasts for several "
            "rounds, or the bad readings changed over time. Leave more time between rounds, or restart every arm "
            "in each."
        )
    whose = f"The readings of {name_of(one.arm)} depend" if one.arm else "Readings depend"
    remedy = "Measure the arms side by side (`truearm race`, or rounds=True), keep"
    if len(problem.arms) == 1 or one.detail == SIDE_BY_SIDE:
        remedy = "Keep"
    return (
        f"{whose} on when they were taken: conditions drift, come and go, readings repeat, or the bad readings "
        f"changed over time. {remedy} conditions the same, or take one reading per independent unit."
    )


def _tie_remedy(decides: str, terms: Terms) -> str:
    """Return what to do about a tie: compare shares if that decides, else measure more finely."""
    if decides == "binary":
        share = terms.option("at_least", "1")
        return f" by their medians: the values are 0 or 1, so compare the share of ones ({share})"
    if not decides:
        return ", so record more digits if the instrument has them"
    name, _, limit = decides.partition("=")
    share = f"the share of readings {name.replace('_', ' ')} {limit}"
    return f" by it, but {share} decides ({terms.option(name, limit)})"


# Analyses


Note = tuple[str, bool]  # a sentence, and whether it is shown without `verbose`


def notes(result: Analysis) -> tuple[str, ...]:
    """Return what a reader of an analysis should know besides the answer, one sentence each."""
    is_open = result.best is None and result.status is not Status.DOUBTFUL
    more = more_readings(result) if is_open else ""
    return (*(note for note, _ in _notes(result, PLAIN)), *([more] if more else []))


def _is_binary(result: Result) -> bool:
    """Return True if all readings are 0 or 1."""
    known = (x for tape in (result.readings or {}).values() for x in tape if x is not None and not math.isnan(x))
    return all(x in (0, 1) for x in known)


def _notes(result: Analysis, terms: Terms) -> Iterator[Note]:
    problem, missing, outside = result.problem, sum(result.missing.values()), sum(result.outside.values())
    yield from ((text, True) for text in tiers(result.tiers, problem))
    if problem.between is not None and outside:
        fate = "count as bad ones" if outside > 1 else "counts as a bad one"
        some = f"{plural(outside, 'reading')} outside {span(problem.between, terms.unit)}"
        yield f"{some} {fate} ({_by_arm(result.outside)}).", True
    if result.units is not None:
        yield from _unit_notes(result.units, problem)
    if problem.target == "wins" and _is_binary(result):
        means = terms.option("score_range", "0 1" if terms.options else "(0, 1)")
        tie = "Readings are 0 or 1, so most rounds tie, which counts against the winner"
        yield f"{tie}: {means} compares means.", True
    if missing:
        fate = "counts at its worst" if missing == 1 else "count at their worst"
        yield f"{plural(missing, 'missing value')} {fate} ({_by_arm(result.missing)}).", True
    if result.few:
        yield f"Too few readings to decide anything ({_by_arm(result.few)}).", True
    if result.coarse:
        most, arms = percent(max(result.coarse.values())), names(list(result.coarse))
        wide = f"The {target_name(problem)} of {arms} is in a bucket with up to {most} of the readings"
        yield f"{wide}, and not known better: count the readings again, or begin a new table.", True
    if result.design == "fixed":
        is_unsaid = result.best is None and result.status is not Status.DOUBTFUL  # a summary with a winner has it
        yield "Valid if the number of readings of every arm was chosen in advance (fixed design).", is_unsaid
    else:
        yield "Valid no matter how often the data were looked at (sequential design).", False


def _by_arm(counts: Mapping[str, int]) -> str:
    listed = [f"{name_of(arm)}: {count(n)}" for arm, n in counts.items() if n]
    more = len(listed) - MAX_LISTED
    return ", ".join([*listed[:MAX_LISTED], *([plural(more, "other arm")] if more > 0 else [])])


def _unit_notes(units: Units, problem: Problem) -> Iterator[Note]:
    name = name_of(units.name)
    made = f"A reading is the median of one {name}"
    if problem.target == "share":
        made = f"A {name} succeeds if at least half of its readings do"
    if problem.rounds:
        made = f"A round is one {name}, and a reading the median of an arm's rows in it"
    yield f"{made}; there were {plural(sum(units.rows.values()), 'row')}.", False
    if units.shared and not problem.dependent_arms and not problem.rounds:
        some = f"Several arms share values of {name} ({count(units.shared)} in all), which count as different ones"
        within = f"compare arms within them (round={units.name!r})"
        yield f"{some}; if they are the same person or item, {within}.", True


def more_readings(result: Analysis, reading: str = "reading") -> str:
    """Return how many more readings would decide, if that is feasible."""
    if result.coarse or (result.needed is not None and not sum(result.needed.values())):
        return ""
    if result.needed is None:
        return f"No number of {reading}s like these would decide this (an estimate)."
    more = sum(result.needed.values())
    if more > _MAX_FACTOR * max(1, result.total):
        return f"More {reading}s like these would not decide this in practice (an estimate)."
    return f"About {number(float(f'{more:.2g}'))} more readings like these would decide this (an estimate)."


def tiers(found: Tiers | None, problem: Problem) -> list[str]:
    """Return the tiers and how much of the order of all arms is certified; empty without tiers."""
    if found is None:
        return []
    groups = [names(tier) for tier in found.tiers]
    if len(groups) > _MAX_TIERS:
        groups[_MAX_TIERS - 1 :] = [f"{count(len(groups) - _MAX_TIERS + 1)} more"]
    head = "One tier: no group of arms is certified to be better than all others"
    if len(groups) > 1:
        listed = f"{count(len(found.tiers))} tiers: {'; then '.join(groups)}"
        head = f"{listed}. Each arm of a tier is better than each arm of every later one"
    order = f"the order of {count(found.claimed)} of {count(found.pairs)} pairs of arms is certified"
    skipped = f"{count(found.skipped)} close pairs were not compared one by one and count as open."
    return [f"{head}; {order} ({confidence(problem)} sure of all of it).", *([skipped] if found.skipped else [])]


def quality(result: Result, terms: Terms = PLAIN) -> str:
    """Return how good most true readings of the leader are."""
    known = {point.share: point.x for point in result.quality}
    better = "or more" if result.problem.goal == "max" else "or less"
    shares = [share for share in _QUALITY_SHARES if share in known]
    if not shares or result.leader is None:
        return ""
    whose = f" of {name_of(result.leader)}'s true readings"
    values = [f"are {terms.measure(known[x])} {better}" for x in shares]
    parts = [f"{percent(x)}{whose * (i == 0)} {values[i]}" for i, x in enumerate(shares)]
    return f"At least {', '.join(parts)}."


def breakdowns(result: Result, terms: Terms = PLAIN) -> str:
    """Return up to which share of bad readings the leader is certified, by adversary."""
    found = [0.0 if point is None else point for point in result.breakdown]
    if not found[0] or result.leader is None or len(result.arms) == 1:
        return ""
    first, second, third = map(breakdown_percent, found)
    return (
        f"{name_of(result.leader)} is first if up to {first} of the {terms.reading}s were bad ({second} if an "
        f"adversary sees the true ones; {third} if it also picks which to change)."
    )
