"""The total error of a workload under `matrix`: closed forms, and which strategy is best."""

from collections.abc import Callable

import numpy as np
import pytest

from ldpstream.mechanisms.families.matrix.strategy import STRATEGIES, WORKLOADS
from tests.exact.specs import SIZES, built, classical, line


def queries(workload: str, size: int) -> np.ndarray:
    ends = [(i, j) for i in range(size) for j in range(i, size)]
    kept = {"values": lambda i, j: i == j, "prefixes": lambda i, _: i == 0}
    rows = [pair for pair in ends if kept.get(workload, lambda *_: True)(*pair)]
    return np.array([[i <= x <= j for x in range(size)] for i, j in rows], dtype=float)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("workload", WORKLOADS)
def test_grams_are_those_of_the_queries(workload: str, size: int):
    listed = queries(workload, size)
    assert np.array_equal(WORKLOADS[workload](size), listed.T @ listed)
    if workload == "ranges":
        assert len(listed) == size * (size + 1) // 2


def waves(k: int, norm: Callable[[int], float]) -> Callable[[np.ndarray], float]:
    """The noise, in units of a row's, of queries decoded wavelet by wavelet; k a power of two."""

    def total(listed: np.ndarray) -> float:
        products = listed @ STRATEGIES["haar"](k).T
        supports = np.abs(STRATEGIES["haar"](k)).sum(axis=1)
        return float((products**2 / np.array([norm(int(s)) for s in supports])).sum())

    return total


K = 16
CLOSED: dict[str, Callable[[np.ndarray], float]] = {
    # Each query is a difference of two prefixes; the whole is exact.
    "prefix": lambda w: float((np.diff(w, axis=1) ** 2).sum()),
    # With the known total, a set of t values of k: t (k - t)/k.
    "identity": lambda w: float((w.sum(axis=1) * (K - w.sum(axis=1)) / K).sum()),
    # Rows are orthogonal, with norms of their support's size.
    "haar": waves(K, lambda support: support**2),
    # A^T A has the wavelets as eigenvectors: sizes 1 + 2 + 4 + ... below the support.
    "hierarchical": waves(K, lambda support: support * (support - 1)),
}


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("workload", WORKLOADS)
def test_total_errors_have_closed_forms(name: str, workload: str):
    mechanism = built(name, line(0.8, K))
    listed = queries(workload, K)
    noise = float(mechanism.rows.variances[0])
    found = mechanism.decoder.total_error(WORKLOADS[workload](K))
    assert found == pytest.approx(noise * CLOSED[name](listed))
    by_query = [mechanism.decoder.noise(w) for w in listed]
    assert found == pytest.approx(sum(float(noise[0]) for noise in by_query))
    assert all(np.ptp(noise) == 0.0 for noise in by_query)
    # All ranges by prefixes: every cut ends k of them ([ML] III-B).
    if (name, workload) == ("prefix", "ranges"):
        assert found == pytest.approx(noise * K * (K - 1))


def test_the_best_strategy_depends_on_the_metric():
    for policy, best in ((line(1.0, 32), "prefix"), (classical(1.0, 32), "identity")):
        errors = {
            name: built(name, policy).decoder.total_error(WORKLOADS["ranges"](32))
            for name in STRATEGIES
        }
        assert min(errors, key=lambda name: errors[name]) == best
