import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import vectors
from truearm.bounds.mixture import DEFAULT_PRIOR, Prior, log_mixture

VECTORS = vectors("vectors", "evidence_vectors")

levels = st.floats(0.001, 0.999)
sizes = st.integers(0, 3000)


@pytest.mark.parametrize("name", ["fs-logM", "fs-logM-mix", "tu-mixture"])
def test_the_mixture_of_the_vector(name):
    x, expected = VECTORS[name]["inputs"], VECTORS[name]["expected"]
    n, s = np.transpose(x["cases"]) if "cases" in x else (x["n"], x["s"])
    prior = Prior(tuple(x.get("cs", [float(x.get("c", x.get("conc", 0)))])), tuple(x.get("ws", [1.0])))
    assert log_mixture(s, n, x["p0"], prior) == pytest.approx(
        expected, rel=1e-10 if name == "tu-mixture" else 1e-12
    )


def partial_beta(a, b, x):
    """Integrate t^(a-1) (1-t)^(b-1) over (0, x): a series of positive terms, from the nearer end."""
    if x > (a + 1) / (a + b + 2):
        return mpmath.beta(a, b) - partial_beta(b, a, 1 - x)
    term, total, k = mpmath.mpf(1), mpmath.mpf(1), 0
    while term > total * mpmath.mpf(10) ** -40:
        term *= x * (a + b + k) / (a + 1 + k)
        total, k = total + term, k + 1
    return x**a * (1 - x) ** b / a * total


def exact(s, n, p0):
    with mpmath.workdps(60):
        p = mpmath.mpf(p0)
        terms = [
            w * partial_beta(c * p + s, c * (1 - p) + n - s, p) / partial_beta(c * p, c * (1 - p), p)
            for c, w in zip(*DEFAULT_PRIOR, strict=True)
        ]
        return float(mpmath.log(sum(terms)) - s * mpmath.log(p) - (n - s) * mpmath.log(1 - p))


@pytest.mark.parametrize(
    ("n", "p0", "deviations"),  # in standard deviations; the incomplete beta function underflows near 37
    [(n, p0, (-8, -3, 0, 2, 36, 38, 1e9)) for n in (1, 10, 1000) for p0 in (1e-4, 0.3, 0.45, 0.5, 0.95)]
    + [(10**6, 0.45, (-3, 1, 36, 38, 1e9)), (10**6, 0.95, (-3, 36, 1e9))],
)
def test_sixty_digits_agree(n, p0, deviations):
    s = np.clip(np.rint(n * p0 + np.array(deviations) * np.sqrt(n * p0 * (1 - p0))), 0, n).astype(int)
    wanted = np.array([exact(int(count), n, p0) for count in s])
    # log M is a difference of terms of size n: that many rounding errors
    assert log_mixture(s, n, p0) == pytest.approx(wanted, abs=1e-11 + 1e-14 * n)


def test_digits_near_underflow_agree():
    s = np.arange(551, 564)  # scipy's incomplete beta function is wrong in the third digit here
    wanted = [exact(int(count), 574, 0.265625) for count in s]
    assert log_mixture(s, 574, 0.265625) == pytest.approx(wanted, abs=1e-11)


@given(sizes, levels)
def test_a_failure_never_lowers_and_a_success_never_raises_it(n, p0):
    s = np.arange(n + 1)
    now = log_mixture(s, n, p0)
    noise = 1e-9
    assert np.all(log_mixture(s, n + 1, p0) >= now - noise)
    assert np.all(log_mixture(s + 1, n + 1, p0) <= now + noise)


@given(st.integers(0, 500), levels)
def test_it_is_a_martingale_at_its_level_and_starts_at_one(n, p0):
    s = np.arange(n + 1)
    next_up, next_stay = log_mixture(s + 1, n + 1, p0), log_mixture(s, n + 1, p0)
    mean = np.logaddexp(np.log(p0) + next_up, np.log1p(-p0) + next_stay)
    assert mean == pytest.approx(log_mixture(s, n, p0), abs=1e-9)
    assert float(log_mixture(0, 0, p0)) == pytest.approx(0.0, abs=1e-12)


@given(st.integers(1, 2000), st.floats(0.02, 0.98), st.floats(0.001, 0.999), st.data())
def test_where_it_is_evidence_it_falls_with_a_lower_level(n, p0, factor, data):
    s = data.draw(st.integers(0, n))
    higher, lower = (float(log_mixture(s, n, p)) for p in (p0, p0 * factor))
    assert lower <= max(higher, 0.0) + 1e-9  # evidence T6: bisection finds the breakdown point


def test_infinite_evidence_never_appears():
    n = 10**7
    values = log_mixture([0, 1, n // 2, n - 1, n], n, 0.5)
    assert np.all(np.isfinite(values))
    assert np.all(np.diff(values) < 0)
