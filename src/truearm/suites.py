"""Many metrics of the same runs, from a table: every metric is compared, with one error probability for all."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack

from truearm.claims.suite import Run, Suite, SuiteResult, judge_suite
from truearm.data.columns import Columns
from truearm.data.tables import load
from truearm.errors import InvalidArgument
from truearm.problem import Problem, ProblemOptions, check_flag, check_names, fix_options, refuse, require


def suite(
    frame: Any,  # noqa: ANN401 - whatever narwhals understands
    *,
    arm: str,
    round: str,
    reference: str,
    metrics: Sequence[str] | None = None,
    higher: Sequence[str] = (),
    fdr: bool = False,
    **options: Unpack[ProblemOptions],
) -> SuiteResult:
    """Compare every metric of every arm with that of a reference, round by round.

    Parameters
    ----------
    frame
        A pandas, polars or pyarrow table or a dict of sequences: one row per run.
    arm, round
        The columns that name the arm, and the round in which arms were measured side by side. Rounds are
        ordered by first appearance; rows of one arm and round are replaced by their medians.
    reference
        The arm to compare the others with.
    metrics
        The columns to compare; all others if None. The first round does not count: it shows what each arm has.
    higher
        The metrics for which higher is better. For the others lower is better, unless `goal` is "max".
    fdr
        Bound the expected share of false claims that a metric is worse or better, not the chance of any.
    **options
        delta, contamination, tolerance and goal, as in `Study`; the default goal is "min". The tolerance says by
        how much a metric may be worse: "5%", or in the units of the metrics.

    Returns
    -------
    SuiteResult
        `str(result)` is a paragraph, `compared` lists the metrics, and `verify` takes `to_dict(runs=True)`.

    Examples
    --------
    >>> n = list(range(40))
    >>> runs = {"rev": ["old", "new"] * 40, "run": [i for i in n for _ in "ab"], "ms": [], "qps": []}
    >>> for i in n:
    ...     runs["ms"] += [20 + i % 7, 24 + i % 7]
    ...     runs["qps"] += [900 + i % 5, 900 + i % 5]
    >>> found = suite(runs, arm="rev", round="run", reference="old", higher=["qps"], tolerance="5%")
    >>> [(one.metric, one.standing, round(one.breakdown.oblivious, 2)) for one in found.compared]
    [('ms', 'worse', 0.35), ('qps', 'not worse', 0.35)]
    """
    check_names(options)
    check_flag("fdr", fdr)
    for name, columns_of in (("metrics", () if metrics is None else metrics), ("higher", higher)):
        is_list = isinstance(columns_of, Iterable) and not isinstance(columns_of, str)
        require(is_list, name, columns_of, "be a list of columns", f"write [{columns_of!r:.80}]")
    names = _metrics(frame, metrics, (arm, round))
    columns = {name: load(frame, Columns(arm, name, round=round)).tapes for name in names}
    arms = next(iter(columns.values()))
    runs = {one: [_run(columns, one, place) for place in range(tape.size)] for one, tape in arms.items()}
    problem = Problem.of(runs, default_goal="min", **fix_options(options, rounds=True))
    return judge_suite(Suite(problem=problem, reference=reference, higher=tuple(higher), fdr=fdr), runs)


def _metrics(frame: Any, metrics: Sequence[str] | None, others: tuple[str, str]) -> list[str]:  # noqa: ANN401
    import narwhals as nw

    try:
        known = list(frame) if isinstance(frame, Mapping) else nw.from_native(frame, eager_only=True).columns
    except TypeError:
        msg = f"frame must be a data frame or a dict of sequences, but got {type(frame).__name__}"
        raise InvalidArgument(msg) from None
    found = [name for name in known if name not in others] if metrics is None else list(dict.fromkeys(metrics))
    msg = f"there is no column to compare besides {', '.join(map(str, others))}; name some in metrics"
    refuse(not found, msg)
    for name in found:
        msg = f"metrics={name!r} is not a column; columns are {', '.join(map(repr, known))}"
        refuse(name not in known, msg, "metrics", name)
    return found


def _run(columns: Mapping[str, Mapping[str, Any]], arm: str, place: int) -> Run:
    """Return the metrics of one run, None if it has none."""
    values = {name: float(tapes[arm][place]) for name, tapes in columns.items()}
    found = {name: value if math.isfinite(value) else None for name, value in values.items()}
    return found if any(value is not None for value in found.values()) else None
