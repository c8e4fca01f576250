"""Likelihoods of small dimensions against all shares of a fine grid, and their bounds."""

from functools import cache
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from ldpstream.estimators.likelihood import solver
from ldpstream.estimators.likelihood.line import Line
from ldpstream.estimators.likelihood.profile import Profile
from ldpstream.estimators.likelihood.solver import maximise
from ldpstream.mechanisms.families.l1.geometric import L1Geometric

Floats = NDArray[np.float64]
STEPS = 100
COUNTS = {
    "spread": (30, 25, 20, 25),
    "one": (80, 12, 5, 3),
    "nobody": (0, 40, 0, 60),
    "few": (2, 0, 1, 0),
    "many": (250_000, 300_000, 0, 41),
}
EVERY = pytest.mark.parametrize("counts", COUNTS.values(), ids=COUNTS.keys())
EPSILON = pytest.mark.parametrize("epsilon", [0.2, 1.5])


def line_of(epsilon: float, counts: tuple[int, ...]) -> Line:
    return Line.of(L1Geometric(epsilon, (len(counts),)), np.array(counts))


@cache
def grid() -> Floats:
    """Return all shares of four values in steps of a hundredth, `(176851, 4)`."""
    found = [
        (a, b, c, STEPS - a - b - c)
        for a, b, c in product(range(STEPS + 1), repeat=3)
        if a + b + c <= STEPS
    ]
    return np.array(found) / STEPS


@cache
def on_grid(epsilon: float, counts: tuple[int, ...]) -> Floats:
    """Return the log-likelihood of each of these by the exact channel, scaled as `Line` does."""
    mechanism = L1Geometric(epsilon, (len(counts),))
    rows = mechanism.channel().rows
    table = np.array([[float(row[y]) for y in range(len(counts))] for row in rows])
    scale = table[0] / table[0, 0] * mechanism.axes[0].alpha ** -np.arange(len(counts), dtype=float)
    scale *= table[0, 0]
    seen = np.array(counts) > 0
    mixed = grid() @ table[:, seen]
    out: Floats = np.log(mixed / scale[seen]) @ np.array(counts)[seen]
    return out


@pytest.mark.grid
@EPSILON
@EVERY
def test_the_largest_likelihood_is_bounded_from_both_sides(epsilon: float, counts: tuple[int, ...]):
    line, every = line_of(epsilon, counts), on_grid(epsilon, counts)
    found = maximise(line)
    assert found.value == pytest.approx(line.value(line.mix(found.shares)), abs=1e-6)
    assert found.shares.min() >= 0.0
    assert found.shares.sum() == pytest.approx(1.0)
    assert found.gap <= solver.CLOSE
    assert every.max() <= found.bound + 1e-9 * line.n
    # A step of the grid moves the likelihood by little where it is largest.
    near = grid()[every.argmax()]
    assert every.max() == pytest.approx(line.value(line.mix(near)), rel=1e-9)
    if line.n <= 100:
        assert found.value >= every.max() - solver.CLOSE


@pytest.mark.grid
@EPSILON
@EVERY
@pytest.mark.parametrize("psi", [0.01, 0.3, 0.5, 0.99])
def test_the_largest_with_a_share_fixed_is_bounded_from_both_sides(
    epsilon: float, counts: tuple[int, ...], psi: float
):
    members = np.array([False, True, True, False])
    line, every = line_of(epsilon, counts), on_grid(epsilon, counts)
    there = np.isclose(grid()[:, members].sum(axis=1), psi)
    found = maximise(line, members, psi)
    assert found.shares[members].sum() == pytest.approx(psi)
    assert found.gap <= solver.CLOSE
    assert every[there].max() <= found.bound + 1e-9 * line.n
    # The tangent holds at every other share as well.
    share = grid()[:, members].sum(axis=1)
    tangents = np.array([found.tangent.at(one) for one in share])
    assert (every <= tangents + 1e-9 * line.n).all()


@pytest.mark.grid
@EPSILON
@EVERY
@pytest.mark.parametrize("members", [(0,), (1, 2), (0, 1, 2)])
def test_bounds_hold_all_shares_that_the_reports_do_not_contradict(
    epsilon: float, counts: tuple[int, ...], members: tuple[int, ...]
):
    line, every = line_of(epsilon, counts), on_grid(epsilon, counts)
    inside = np.isin(np.arange(4), members)
    profile = Profile.of(line, 0.95)
    low, high = profile.share(inside)
    share = grid()[:, inside].sum(axis=1)
    good = share[2.0 * (profile.best.value - every) <= 20.0]
    step = 1.0 / STEPS
    if good.size:
        assert low <= good.min() + 1e-9
        assert good.max() <= high + 1e-9
    if line.n <= 100:
        # Not much wider: by a step of the grid and what an end may be too far out.
        slack = step + 0.05 * (high - low)
        assert good.min() - slack <= low
        assert high <= good.max() + slack


@pytest.mark.grid
@EPSILON
@EVERY
@pytest.mark.parametrize("q", [0.1, 0.5, 0.95])
def test_quantiles_hold_all_that_the_reports_do_not_contradict(
    epsilon: float, counts: tuple[int, ...], q: float
):
    line, every = line_of(epsilon, counts), on_grid(epsilon, counts)
    profile = Profile.of(line, 0.95)
    low, high = profile.position(q, np.arange(4))
    good = 2.0 * (profile.best.value - every) <= 3.84
    cumulative = grid().cumsum(axis=1)[good] + 1e-9
    if len(cumulative):
        quantiles = (cumulative < q).sum(axis=1)
        assert low <= quantiles.min()
        assert high >= quantiles.max()
    if line.n <= 100:
        assert low >= quantiles.min() - 1
        assert high <= quantiles.max() + 1
    turned = Profile.of(line_of(epsilon, counts[::-1]), 0.95)
    assert turned.position(q, np.arange(4)[::-1]) == (low, high)


@pytest.mark.slow
def test_unsolved_shares_count_as_inside(monkeypatch: pytest.MonkeyPatch):
    line = line_of(1.0, (400, 300, 150, 120, 110, 120, 105, 101))
    members, order = np.arange(8) < 3, np.arange(8)
    best = Profile.of(line, 0.95)
    ends, quantiles = best.share(members), best.position(0.4, order)
    assert 0.0 < ends[0] < ends[1] < 1.0
    assert quantiles != (0, 7)
    for steps in (1, 3, 5):
        monkeypatch.setattr(solver, "STEPS", steps)
        poor = Profile.of(line, 0.95)
        low, high = poor.share(members)
        first, last = poor.position(0.4, order)
        assert low <= ends[0] + 1e-3
        assert ends[1] <= high + 1e-3
        assert first <= quantiles[0] <= quantiles[1] <= last
        if steps == 1:
            assert (high - low) > 1.5 * (ends[1] - ends[0])
            assert (first, last) != quantiles


def test_profiles_are_calibrated_up_to_99_percent():
    line, members = line_of(1.0, (300, 200, 100)), np.array([True, False, False])
    ends = [Profile.of(line, one).share(members) for one in (0.5, 0.9, 0.95, 0.99)]
    widths = [high - low for low, high in ends]
    assert 0.0 < widths[0] == widths[1] < widths[2] < widths[3]
    with pytest.raises(ValueError, match=r"confidence: expected at most 0.99, got 0.999"):
        Profile.of(line, 0.999)
