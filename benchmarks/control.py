"""Measure pulls until all true winners against a control are claimed, by allocation and by error rate.

Normal readings of standard deviation 1, none bad, delta 0.05. "Separated" assumes the observed order,
"certified" allows for 5% bad readings. Limits are the pulls of a prototype of the same rules, separated.
"""

import sys
from pathlib import Path

import numpy as np

from truearm.policies import Told
from truearm.policies.control import AgainstControl
from truearm.problem import Contamination, Problem

CASES = {
    "9 variants, 3 win by 0.6, 6 equal": (0.0, *[0.6] * 3, *[0.0] * 6),
    "49 variants, 5 win by 0.8, 44 lose by 0.2": (0.0, *[0.8] * 5, *[-0.2] * 44),
    "9 variants, all win by 0.5 to 1": (0.0, *np.linspace(0.5, 1, 9).tolist()),
}
LIMITS = {False: (1206, 1574, 1369), True: (1137, 1499, 1304)}
LONGEST = 30_000


def pulls(means, seed, *, fdr, contamination, balanced=False):
    """Return the pulls until all winners are claimed, and whether a claim was false."""
    arms, rng = tuple(map(str, range(len(means)))), np.random.default_rng(seed)
    winners = {arm for arm, mean in zip(arms, means, strict=True) if mean > 0}
    policy = AgainstControl("0", fdr=fdr, balanced=balanced)
    state = policy.start(Problem(arms=arms, contamination=contamination))
    issued = dict.fromkeys(arms, 0)
    while True:
        batch = policy.ask(state)
        claims = policy.standing(state).so_far.control if _claimed_winners(state) >= winners else None
        claimed = set() if claims is None else {claim.leader for claim in claims.better}
        if claimed >= winners or not isinstance(batch, dict) or sum(issued.values()) > LONGEST:
            return sum(issued.values()), bool(claimed - winners)
        readings = {}
        for arm, n in batch.items():
            readings[arm] = Told(np.arange(issued[arm], issued[arm] + n), rng.normal(means[int(arm)], 1, n))
            issued[arm] += n
        state = policy.tell(state, readings, issued)


def _claimed_winners(state):
    return {claim.leader for claim in state.better}


def row(case, runs, **how):
    found = [pulls(CASES[case], seed, **how) for seed in range(runs)]
    counts = np.array([n for n, _ in found])
    return counts.mean(), counts.std() / np.sqrt(runs), sum(false for _, false in found)


def main(runs):
    few = max(4, runs // 4)
    lines = [
        "# Arms against a control",
        "",
        f"Mean pulls until all true winners are claimed, and standard errors; {runs} runs of each separated case,",
        f"{few} of each other one. Delta 0.05, normal readings of standard deviation 1. Limit: the pulls of a",
        "prototype with the same rules. Rounds pull all variants that are left alike.",
        "",
        "| | rule | limit | separated | of the limit | separated, rounds | certified at 5% | false claims |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for place, case in enumerate(CASES):
        for fdr in (False, True):
            limit = LIMITS[fdr][place]
            mean, error, false = row(case, runs, fdr=fdr, contamination=None)
            rounds, rounds_error, more = row(case, few, fdr=fdr, contamination=None, balanced=True)
            sure, sure_error, most = row(case, few, fdr=fdr, contamination=Contamination(0.05))
            figures = (
                f"{m:.0f} ± {e:.0f}" for m, e in ((mean, error), (rounds, rounds_error), (sure, sure_error))
            )
            first, second, third = figures
            rule, share = "e-BH" if fdr else "Holm", f"{mean / limit:.2f}"
            cells = (case, rule, limit, first, share, second, third, false + more + most)
            lines.append(f"| {' | '.join(map(str, cells))} |")
            print(lines[-1], flush=True)
    path = Path(__file__).parent / "results" / "control.md"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
