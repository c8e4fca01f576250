"""Bounds by likelihood cover point masses, plateaus and start times.

Of 40 windows a binomial of 0.95 leaves fewer than 26 with probability below 1e-8; most bounds
cover far more. Seeds are fixed.
"""

import numpy as np
import pytest
from benchmarks.accuracy.profiles import DATA, PROBABILITIES, holds, windows
from benchmarks.accuracy.simulate import Case
from numpy.typing import NDArray

from ldpstream.mechanisms.families.l1.geometric import L1Geometric

Floats = NDArray[np.float64]
SIZE = 24
WINDOWS = 40
FEWEST = 26


def inside(name: str, epsilon: float, n: int) -> tuple[Floats, Floats, Floats]:
    """Return how often the quantiles and the shares are covered, and the quantiles' mean width."""
    shares = DATA[name](SIZE)
    sets = [np.array([int(shares.argmax())]), np.arange(SIZE // 2), np.arange(4, SIZE // 2)]
    case = Case(f"test {name}", L1Geometric(epsilon, (SIZE,)), name, shares, n)
    _, found = windows(case, WINDOWS, sets)
    quantiles = np.array([holds(shares, one.quantiles) for one in found])
    truth = np.array([shares[one].sum() for one in sets])
    ends = np.array([one.shares for one in found])
    held = (ends[:, 0] <= truth + 1e-9) & (truth <= ends[:, 1] + 1e-9)
    width = np.array([one.quantiles[1] - one.quantiles[0] for one in found]).mean(axis=0)
    assert found[0].profiled > 0
    return quantiles.sum(axis=0), held.sum(axis=0), width


@pytest.mark.parametrize("name", ["point", "plateau", "start times"])
def test_profiles_cover(name: str) -> None:
    quantiles, shares, width = inside(name, 0.2, 800)
    assert len(quantiles) == len(PROBABILITIES)
    assert min(*quantiles, *shares) >= FEWEST
    # Half of the domain is a plateau of the third.
    assert width.max() < 0.75 * SIZE
