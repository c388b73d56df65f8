"""Arms and options of a study as a server takes them, after the checks of `Study`."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from truearm.claims.plain import to_plain
from truearm.errors import InvalidArgument
from truearm.policies import by_name
from truearm.problem import Contamination, Problem, ProblemOptions, Tolerance, check_names, check_positive
from truearm.study import Study

POLICIES = ("toptwo", "lucb")
_STUDY = (*ProblemOptions.__annotations__, "policy", "max_pulls", "seed")
_SERVICE: dict[str, Any] = {"title": "", "passive": False, "lease": 3600.0}  # the defaults of a server


class Definition(NamedTuple):
    """A study to create or join: what is sent, and the definition that a server makes of it."""

    sent: dict[str, Any]
    definition: dict[str, Any]

    def difference(self, other: Mapping[str, Any]) -> str:
        """Return the first difference from another definition as text, or ""."""
        known, own = _flatten(other), _flatten(self.definition)
        for name, value in own.items():
            if value != known.get(name):
                return f"{name} is {known.get(name)!r} there and {value!r} here"
        return ""


def define(arms: Sequence[str], options: Mapping[str, Any]) -> Definition:
    """Return a study as it is sent."""
    check_names(options, (*_STUDY, *_SERVICE))
    if options.get("regularity") is not None:
        msg = "regularity is for policies 'elimination' and 'uniform', which no server runs; remove it"
        raise InvalidArgument(msg, "regularity", options["regularity"])
    service = {name: _check_service(name, options.get(name, default)) for name, default in _SERVICE.items()}
    given = {name: value for name, value in options.items() if name in _STUDY}
    if "policy" in given:
        given["policy"] = _policy_name(given["policy"])
    study = Study(arms, **given)
    plain = _plain(study.problem) | {"max_pulls": study.max_pulls, "seed": study.seed}
    plain["policy"] = given.get("policy")
    sent = {name: (plain if name in given else service)[name] for name in options if name != "regularity"}
    return Definition({"arms": list(study.problem.arms), **sent}, {**study.definition, "service": service})


def _check_service(name: str, value: Any) -> Any:  # noqa: ANN401 - of any option
    if name == "lease":
        return check_positive(name, value)
    if not isinstance(value, type(_SERVICE[name])):
        what = "text" if name == "title" else "True or False"
        msg = f"{name} must be {what}, but got {value!r:.80}"
        raise InvalidArgument(msg, name, value)
    return value


def _policy_name(policy: Any) -> str:  # noqa: ANN401 - a name or a policy
    for name in POLICIES:
        if policy in (name, by_name(name)):
            return name
    msg = f"policy must be 'toptwo' or 'lucb' on a server, but got {policy!r:.80}; remove it, or use a Study"
    raise InvalidArgument(msg, "policy", policy)


def _plain(problem: Problem) -> dict[str, Any]:
    """Return the arguments of a problem as JSON values."""
    is_share = problem.at_least is not None or problem.at_most is not None
    return {
        "delta": problem.delta,
        "contamination": _bound(problem.contamination),
        "tolerance": _tolerance(problem.tolerance),
        "quantile": problem.quantile,
        "goal": None if is_share else problem.goal,
        "at_least": problem.at_least,
        "at_most": problem.at_most,
        "between": None if problem.between is None else [to_plain(end) for end in problem.between],
        "dependent_arms": bool(problem.dependent_arms),
        "rounds": problem.rounds,
    }


def _tolerance(tolerance: Tolerance) -> float | str:
    return f"{100 * tolerance.amount:.15g}%" if tolerance.relative else tolerance.amount


def _bound(contamination: Contamination | None) -> dict[str, Any] | str | None:
    if contamination is None:
        return None
    if contamination.blind:
        return "blind"
    usual: dict[str, Any] = to_plain(Contamination(contamination.eps))
    parts: dict[str, Any] = to_plain(contamination)
    return {name: part for name, part in parts.items() if name in ("eps", "adversary") or part != usual[name]}


def _flatten(definition: Mapping[str, Any]) -> dict[str, Any]:
    groups = ("problem", "service")
    parts = [definition, *(definition.get(group, {}) for group in groups)]
    return {name: value for part in parts for name, value in part.items() if name not in groups}
