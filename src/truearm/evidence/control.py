"""Which arms beat a control: all pairs with one arm, judged together (extensions D1, D2).

A variant is an arm other than the control. Both rules make one-sided claims, "better than the control", by strict
evidence of pairs; that a variant is not better is a statement of its own, with its own error probability.
"""

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

import numpy as np

from truearm.errors import OutOfReach
from truearm.evidence.judge import Judge
from truearm.problem import Design, Problem

Method = Literal["holm", "fdr"]
"""What error is bounded: that of any false claim (step-down), or the mean share of false ones among the claims."""


def step_down(log_evidence: Mapping[int, float], log_bar: Callable[[int], float]) -> tuple[int, ...]:
    """Return the variants that are claimed one after the other, the most evidence first (extensions D1).

    Parameters
    ----------
    log_bar
        How much evidence the next claim needs, by the number of variants that are not yet claimed.
    """
    claimed: list[int] = []
    for variant in sorted(log_evidence, key=lambda i: -log_evidence[i]):
        if log_evidence[variant] < log_bar(len(log_evidence) - len(claimed)):
            break
        claimed.append(variant)
    return tuple(claimed)


def false_discovery(log_evidence: Mapping[int, float], log_bar: float) -> tuple[int, ...]:
    """Return the variants with the most evidence that are claimed together (extensions D2).

    Parameters
    ----------
    log_bar
        How much evidence one claim alone needs; r of them need the r-th part of it each.
    """
    order = sorted(log_evidence, key=lambda i: -log_evidence[i])
    enough = [r for r, i in enumerate(order, 1) if log_evidence[i] >= log_bar - np.log(r)]
    return tuple(order[: max(enough, default=0)])


def check_method(problem: Problem, method: Method, design: Design = "sequential") -> None:
    """Raise if the false discovery rate is asked for where the mean of the evidence is not bounded."""
    if method != "fdr":
        return
    if design == "fixed":
        msg = (
            "the false discovery rate needs design='sequential', whose evidence may be averaged; use it, or leave "
            "fdr out"
        )
        raise OutOfReach(msg)
    if (
        rule := Judge.of(problem, ()).rule
    ) != "causal":  # extensions D2: the mean of the product is then not at most 1
        why = "dependent arms" if rule == "dependent" else "adversaries that see readings not yet taken"
        msg = f"the false discovery rate is not bounded for {why}; leave fdr out, which bounds any false claim"
        raise OutOfReach(msg)


class Standing(NamedTuple):
    """All variants against the control, by the readings at hand."""

    log_evidence: Mapping[int, float]
    """That the variant is better than the control."""
    better: tuple[int, ...]
    """The variants that beat the control, in the order of the claims."""
    not_better: tuple[int, ...]
    """The variants that are not better than the control, or not by more than the tolerance."""


def against_control(judge: Judge, control: int, method: Method = "holm") -> Standing:
    """Return which arms beat the control, and which do not (extensions D1, D2)."""
    check_method(judge.problem, method, judge.design)
    variants = [i for i in range(len(judge.samples)) if i != control]
    if judge.is_hopeless:
        return Standing(dict.fromkeys(variants, 0.0), (), ())
    found = {i: judge.better(i, control).log_value for i in variants}
    better = step_down(found, judge.log_bar) if method == "holm" else false_discovery(found, judge.log_bar())
    return Standing(found, better, not_better(judge, control, [i for i in variants if i not in better]))


def not_better(judge: Judge, control: int, variants: list[int]) -> tuple[int, ...]:
    """Return which variants are not better than the control by more than the tolerance (extensions D1)."""
    bar, reference = judge.log_bar(), judge.after(leader=control)
    return tuple(i for i in variants if reference.within(i).log_value >= bar)
