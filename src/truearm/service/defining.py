"""Arms and options of a study as a server takes them, after the checks that `Study` makes. No transport."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from truearm.claims.plain import to_plain
from truearm.errors import InvalidArgument
from truearm.policies import by_name
from truearm.problem import Contamination, Tolerance, check_positive
from truearm.study import Study

SERVED = ("toptwo", "lucb")
"""Policies that a server runs."""
_STUDY = tuple(Study.__init__.__kwdefaults__ or ())
_SERVICE: dict[str, Any] = {"title": "", "passive": False, "lease": 3600.0}  # as a server has them


class Defined(NamedTuple):
    """A study that is to be begun or joined: what is sent, and the definition that a server makes of it."""

    sent: dict[str, Any]
    definition: dict[str, Any]

    def difference(self, there: Mapping[str, Any]) -> str:
        """Return the first difference from a study's definition in words, or ""."""
        known, own = _flat(there), _flat(self.definition)
        for name, value in own.items():
            if value != known.get(name):
                return f"{name} is {known.get(name)!r} there and {value!r} here"
        return ""


def defined(arms: Sequence[str], options: Mapping[str, Any]) -> Defined:
    """Return a study as it is sent, after the checks that `Study` makes."""
    _check_known(options)
    service = {name: _checked(name, options.get(name, default)) for name, default in _SERVICE.items()}
    given = {name: value for name, value in options.items() if name in _STUDY}
    for name, change in (("tolerance", _tolerance), ("policy", _policy)):
        if name in given:
            given[name] = change(given[name])
    study = Study(arms, **given)
    plain = {**given, **_plain(study)}
    sent = {name: (plain if name in given else service)[name] for name in options if name != "regularity"}
    return Defined({"arms": list(study.problem.arms), **sent}, {**study.definition, "service": service})


def _check_known(options: Mapping[str, Any]) -> None:
    known = [name for name in (*_STUDY, *_SERVICE) if name != "regularity"]
    if unknown := [name for name in options if name not in (*_STUDY, *_SERVICE)]:
        msg = f"{unknown[0]!r} is not an option; the options are {', '.join(known)}"
        raise InvalidArgument(msg, unknown[0], options[unknown[0]])
    if options.get("regularity") is not None:
        msg = "regularity is for policies 'elimination' and 'uniform', which no server runs; leave it out"
        raise InvalidArgument(msg, "regularity", options["regularity"])


def _checked(name: str, value: Any) -> Any:  # noqa: ANN401 - of any option
    if name == "lease":
        return check_positive(name, value)
    if not isinstance(value, type(_SERVICE[name])):
        what = "text" if name == "title" else "True or False"
        msg = f"{name} must be {what}, but got {value!r:.80}"
        raise InvalidArgument(msg, name, value)
    return value


def _tolerance(given: Any) -> float | str:  # noqa: ANN401
    tolerance = Tolerance.of(given)
    return f"{100 * tolerance.amount:.15g}%" if tolerance.relative else tolerance.amount


def _policy(given: Any) -> str:  # noqa: ANN401 - a name or a policy
    for name in SERVED:
        if given in (name, by_name(name)):
            return name
    msg = f"policy must be 'toptwo' or 'lucb' on a server, but got {given!r:.80}; leave it out, or use a Study"
    raise InvalidArgument(msg, "policy", given)


def _plain(study: Study) -> dict[str, Any]:
    """Return what may come as a number or a record of many kinds as what JSON holds."""
    problem = study.problem
    return {
        "delta": problem.delta,
        "contamination": _bound(problem.contamination),
        "quantile": problem.quantile,
        "at_least": problem.at_least,
        "at_most": problem.at_most,
        "between": None if problem.between is None else [to_plain(end) for end in problem.between],
        "dependent_arms": bool(problem.dependent_arms),
        "rounds": problem.rounds,
        "max_pulls": study.max_pulls,
        "seed": study.seed,
    }


def _bound(contamination: Contamination | None) -> dict[str, Any] | None:
    if contamination is None:
        return None
    usual = to_plain(Contamination(contamination.eps))
    parts: dict[str, Any] = to_plain(contamination)
    return {name: part for name, part in parts.items() if name in ("eps", "adversary") or part != usual[name]}


def _flat(definition: Mapping[str, Any]) -> dict[str, Any]:
    groups = ("problem", "service")
    parts = [definition, *(definition.get(group, {}) for group in groups)]
    return {name: value for part in parts for name, value in part.items() if name not in groups}
