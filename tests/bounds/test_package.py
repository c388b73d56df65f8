"""The package as a whole: names, refusals, the table of theorems."""

import inspect
import re
from pathlib import Path

import pytest

from truearm import bounds
from truearm.bounds import lower as lower_bounds
from truearm.errors import OutOfReach

TESTS = Path(__file__).parents[1]
TABLE = (TESTS.parent / "docs" / "bounds.md").read_text()
PROMISE = {"eps": 0.1, "B": 4.0, "m2": 0.25, "reach": 0.4, "adversary": "prescient"}
RUN = PROMISE | {"tolerance": 0.1, "k": 3, "delta": 0.1}
MAD = {"eps": 0.1, "B": 4.0, "m2": 0.25, "adversary": "malicious"}
REFUSALS = {
    "eps=0.1 is too large for reach=0.05": lambda: bounds.median_sample_size(
        0.1, 0.1, **PROMISE | {"reach": 0.05}
    ),
    "show that the reach exceeds": lambda: bounds.elimination_constant(0.3, 0.2, "malicious"),
    "take n >= ": lambda: bounds.median_error(10, 0.1, **PROMISE),
    "kappa >= 1": lambda: bounds.mad_sample_size(0.1, 0.1, **MAD, kappa=0.7),
    "< 1/B": lambda: bounds.mad_sample_size(0.1, 0.1, **MAD | {"eps": 0.3}),
    "s < n/2": lambda: bounds.contaminated_order_bounds(6, 3),
    "use n > ": lambda: bounds.malicious_attained_radius(10, 0.1, 0.1),
    "has no bound beyond": lambda: bounds.quality_bound(0.45, 0.0, 1.0, **RUN),
    "delta < 3/20": lambda: lower_bounds.contaminated_lower_bound([0.1], 0.0, 0.2, eps=0.01, reach=0.1),
    "eps < 1/15": lambda: lower_bounds.contaminated_lower_bound([0.1], 0.0, 0.1, eps=0.1, reach=0.1),
    "reach < 1/4": lambda: lower_bounds.contaminated_lower_bound([0.1], 0.0, 0.1, eps=0.01, reach=0.3),
    "< 7/45": lambda: lower_bounds.contaminated_lower_bound([0.1], 0.1, 0.1, eps=0.01, reach=0.1),
    "positive tolerance": lambda: lower_bounds.contaminated_lower_bound([0.0], 0.0, 0.1, eps=0.01, reach=0.1),
    r"leave \[eta": lambda: lower_bounds.bernoulli_lower_bound([0.1], 0.2, 0.1, best=0.6, eta=1 / 3),
    "p=0.9": lambda: lower_bounds.lifting(0.9, 0.05, "malicious", best=True),
    "eps=0.2": lambda: lower_bounds.lifting(0.5, 0.2, "malicious", best=True),
    "weight=0.2": lambda: lower_bounds.smoothed_bernoulli_median(0.5, 0.2),
}


@pytest.mark.parametrize("message", REFUSALS)
def test_a_failed_condition_is_named_with_its_remedy(message):
    with pytest.raises(OutOfReach, match=message):
        REFUSALS[message]()


def test_the_table_of_theorems_is_complete_and_true():
    named = set(re.findall(r"`(lower_bounds|bounds)\.(\w+)", TABLE))
    public = {("bounds", name) for name in bounds.__all__ if inspect.isfunction(getattr(bounds, name))} | {
        ("lower_bounds", name)
        for name, thing in vars(lower_bounds).items()
        if inspect.isfunction(thing) and thing.__module__ == lower_bounds.__name__ and not name.startswith("_")
    }
    assert len(public) > 40
    assert public <= named
    assert all(hasattr({"bounds": bounds, "lower_bounds": lower_bounds}[m], name) for m, name in named)


@pytest.mark.parametrize("page", ["bounds", "assumptions"])
def test_tables_name_tests_that_exist(page):
    sources = "".join(path.read_text() for path in TESTS.rglob("test_*.py"))
    tests = set(re.findall(r"`(test_\w+)`", (TESTS.parent / f"docs/{page}.md").read_text()))
    assert tests
    assert all(f"def {name}(" in sources for name in tests)
