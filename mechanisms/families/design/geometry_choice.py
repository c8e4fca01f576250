"""Choice of the projective space for a block of k values.

Feldman et al. 2022 (Section 3) take a prime near `e^eps + 1` and at least three coordinates. Here
every prime is tried with the fewest coordinates, two or more, that give k points. The exact
variance of the realised channel decides, averaged over uniform users of the block. With two
coordinates a space is randomised response on `q + 1` points, which is best in small blocks.

Of the spaces within 3% of the least variance, the one with the fewest points is chosen: the
statistic counts points, and the best prime may need q times as many for hardly less variance. No
space may have more than 32 times as many points as the block has values.
"""

from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.exact.dyadic import exp_floor, set_threshold
from ldpstream.mechanisms.families.design.design import SymmetricDesign
from ldpstream.mechanisms.families.design.geometry import Geometry

_MOST_POINTS = 32
"""Most points for each value of the block; two coordinates or q = 2 always need fewer."""
_TOLERANCE = Fraction(103, 100)
_LARGEST_BUDGET = 64
# Variances in floats order the candidates; those closer than this are compared in rationals.
_SCREEN = 1e-9


def realise(epsilon: Fraction, geometry: Geometry) -> SymmetricDesign:
    """Return the design of points and hyperplanes, with its threshold for this budget."""
    inside = geometry.inside
    threshold = set_threshold(epsilon, inside, geometry.points - inside)
    return SymmetricDesign(geometry.points, inside, geometry.overlap, threshold)


@lru_cache(maxsize=1024)
def choose(epsilon: Fraction, size: int) -> Geometry:
    """Return the space for a block of `size` >= 2 values, the same on every machine."""
    primes = primes_up_to(2 * size)
    # With two coordinates, no prime is better than the first that gives `size` points.
    primes = primes[: int(np.searchsorted(primes, size - 1)) + 1]
    dimensions, points = _fewest_coordinates(primes, size)
    allowed = points <= _MOST_POINTS * size
    primes, dimensions, points = primes[allowed], dimensions[allowed], points[allowed]
    if exp_floor(epsilon) == 1:
        return _geometry(primes, dimensions, 0)  # the caller refuses such an epsilon
    noise = _mean_noise(epsilon, size, primes, points)
    order = np.lexsort((points, noise))
    best = noise[order[0]]
    leaders = [i for i in order.tolist() if noise[i] <= best * (1 + _SCREEN)]
    limit = min(_exact(epsilon, size, _geometry(primes, dimensions, i)) for i in leaders)
    near = np.flatnonzero(noise <= best * float(_TOLERANCE) * (1 + _SCREEN))
    for i in near[np.lexsort((primes[near], points[near]))].tolist():
        geometry = _geometry(primes, dimensions, i)
        if _exact(epsilon, size, geometry) <= limit * _TOLERANCE:
            return geometry
    # No candidate carries information: the caller refuses such an epsilon.
    return _geometry(primes, dimensions, int(order[0]))


def _geometry(primes: NDArray[np.int64], dimensions: NDArray[np.int64], i: int) -> Geometry:
    return Geometry(int(primes[i]), int(dimensions[i]))


def _fewest_coordinates(
    primes: NDArray[np.int64], size: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return, for each prime, the fewest coordinates that give `size` points, and the points."""
    dimensions = np.full(len(primes), 2, dtype=np.int64)
    points = primes + 1
    while (short := points < size).any():
        dimensions[short] += 1
        points[short] = points[short] * primes[short] + 1
    return dimensions, points


def _exact(epsilon: Fraction, size: int, geometry: Geometry) -> Fraction:
    support = realise(epsilon, geometry).support
    # A channel without information is worse than any other.
    return support.mean_noise(size) if support.gap > 0 else Fraction(1 << 1000)


def _mean_noise(
    epsilon: Fraction, size: int, primes: NDArray[np.int64], points: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return `Support.mean_noise` of the unrounded channels, in floating point."""
    favour = exp_floor(min(epsilon, Fraction(_LARGEST_BUDGET)))
    e, gain = float(favour), float(favour - 1)
    q, K = primes.astype(np.float64), points.astype(np.float64)
    d = (K - 1) / q
    overlap = (d - 1) / q
    Z = e * d + K - d
    own, lost = e * d / Z, (K - d) / Z
    other = (e * overlap + d - overlap) / Z
    gap = (d - overlap) * gain / Z
    noise: NDArray[np.float64] = (own * lost + (size - 1) * other * (1 - other)) / gap**2 / size
    return noise


def primes_up_to(limit: int) -> NDArray[np.int64]:
    """Return the primes up to a limit >= 2, by Eratosthenes' sieve."""
    sieve = np.ones(limit + 1, dtype=np.bool_)
    sieve[:2] = False
    for candidate in range(2, int(limit**0.5) + 1):
        if sieve[candidate]:
            sieve[candidate * candidate :: candidate] = False
    return np.flatnonzero(sieve).astype(np.int64)
