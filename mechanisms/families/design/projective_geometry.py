"""Projective geometry response inside blocks (docs/theory.md section 8).

Feldman, Nelson, Nguyen, Talwar 2022, *Private Frequency Estimation via Projective Geometry*. The
block is reported exactly; its values and reports are points of a projective space (`geometry`).
With probability `T / 2^64` a report is uniform over the points orthogonal to the value's, otherwise
over all others. The variance is close to the least that epsilon allows, in `log2 K` bits, with K a
little above k.

Two differences from the paper: values' coordinates are read backward, and the exact variance of the
realised channel decides which space is used (`choose_geometry`). The paper (Section 3) takes a
prime near `e^eps + 1` and at least three coordinates. Here every prime is tried with the fewest
coordinates, two or more, that give k points; with two, a space is randomised response on `q + 1`
points, which is best in small blocks.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np

from ldpstream.mechanisms.base.arrays import Bools, Floats, Integers
from ldpstream.mechanisms.exact.dyadic import budget, exp_floor, set_threshold
from ldpstream.mechanisms.exact.entropy import Entropy, bernoulli_each, uniform_below
from ldpstream.mechanisms.families.design.design import SymmetricDesign
from ldpstream.mechanisms.families.design.geometry_transform import Geometry
from ldpstream.mechanisms.families.design.incidence import OWN, Hyperplanes, Incidence
from ldpstream.mechanisms.families.design.mechanism import DesignMechanism
from ldpstream.mechanisms.interface.mechanism import Json, Reports

_MOST_POINTS = 32
"""Most points for each value of the block; two coordinates or q = 2 always need fewer."""
_TOLERANCE = Fraction(103, 100)
_SCREEN = 1e-9
"""Variances in floats order the candidates; those closer than this are compared in rationals."""
_LARGEST_BUDGET = 64


@dataclass(frozen=True)
class ProjectiveGeometry(DesignMechanism):
    """Projective geometry response with budget `epsilon` inside each block of a partition."""

    id: ClassVar[str] = "projective-geometry"

    def geometry(self, size: int) -> Geometry:
        """Return the space for blocks of this many values, two or more."""
        return choose_geometry(budget(self.epsilon), size)

    def design(self, size: int) -> SymmetricDesign:
        return hyperplane_design(budget(self.epsilon), self.geometry(size))

    def stronger(self, epsilon: float) -> "PermanentProjectiveGeometry":
        return PermanentProjectiveGeometry(epsilon, self.blocks, self)

    def incidence(self, size: int, /) -> Incidence:
        """Return points and hyperplanes; a block of one value has one report."""
        return OWN if size == 1 else Hyperplanes(self.geometry(size), size)

    def parameters(self) -> Mapping[str, Json]:
        spaces: list[Json] = [
            {
                "size": size,
                "q": self.geometry(size).q,
                "dimension": self.geometry(size).dimension,
                "threshold": hex(design.threshold),
            }
            for size, design in zip(self.sizes, self.layout.designs, strict=True)
            if size > 1
        ]
        return {
            "epsilon": float(self.epsilon),
            "spaces": spaces,
            "blocks": {"count": self.blocks.count, "sha256": self.blocks.digest},
        }

    def randomise(self, values: Integers, entropy: Entropy) -> Reports:
        """Randomise values, int64 of shape `(n,)` in `0..k-1`, into reports of shape `(n,)`.

        n words decide which reports are orthogonal points. Then, by ascending size of block, the
        points of all values in blocks of that size are drawn.
        """
        layout, block = self.layout, self.blocks.of_value[values]
        supporting = bernoulli_each(entropy, layout.thresholds[block])
        place = self.blocks.position[values]
        points = np.zeros(len(values), dtype=np.int64)
        kinds = layout.kinds[block]
        for kind in np.unique(kinds).tolist():
            if self.sizes[kind] > 1:
                here = np.flatnonzero(kinds == kind)
                geometry = self.geometry(self.sizes[kind])
                points[here] = draw_points(geometry, entropy, place[here], supporting[here])
        return layout.starts[block] + points


@dataclass(frozen=True)
class PermanentProjectiveGeometry(ProjectiveGeometry):
    """The mechanism of a permanent draw: a larger budget with the spaces of `like`."""

    like: ProjectiveGeometry

    def geometry(self, size: int) -> Geometry:
        return self.like.geometry(size)


def draw_points(geometry: Geometry, source: Entropy, values: Reports, supporting: Bools) -> Reports:
    """Return a uniform point for each value, orthogonal to it where `supporting`, else not.

    The former are drawn by number in the hyperplane, the latter by rejection, round by round: at
    least half of all points are not orthogonal to a given one.
    """
    points = np.empty_like(values)
    inside = np.flatnonzero(supporting)
    lower = uniform_below(source, geometry.inside, len(inside))
    points[inside] = geometry.complete(values[inside], lower)
    open_places = np.flatnonzero(~supporting)
    while open_places.size:
        drawn = uniform_below(source, geometry.points, open_places.size)
        points[open_places] = drawn
        open_places = open_places[geometry.orthogonal(values[open_places], drawn)]
    return points


def hyperplane_design(epsilon: Fraction, geometry: Geometry) -> SymmetricDesign:
    """Return the design of points and hyperplanes, with its threshold for this budget."""
    inside = geometry.inside
    threshold = set_threshold(epsilon, inside, geometry.points - inside)
    return SymmetricDesign(geometry.points, inside, geometry.overlap, threshold)


@lru_cache(maxsize=1024)
def choose_geometry(epsilon: Fraction, size: int) -> Geometry:
    """Return the space for a block of `size` >= 2 values, the same on every machine.

    The variance is averaged over uniform users of the block. Of the spaces within 3% of the least,
    the one with the fewest points is chosen: the statistic counts points, and the best prime may
    need q times as many for hardly less variance.
    """
    primes = primes_up_to(2 * size)
    # With two coordinates, no prime is better than the first that gives `size` points.
    primes = primes[: int(np.searchsorted(primes, size - 1)) + 1]
    dimensions, points = _fewest_coordinates(primes, size)
    allowed = points <= _MOST_POINTS * size
    primes, dimensions, points = primes[allowed], dimensions[allowed], points[allowed]
    if exp_floor(epsilon) == 1:
        return _listed(primes, dimensions, 0)  # the caller refuses such an epsilon
    noise = _mean_noise(epsilon, size, primes, points)
    ranking = np.lexsort((points, noise))
    best = noise[ranking[0]]
    leaders = [i for i in ranking.tolist() if noise[i] <= best * (1 + _SCREEN)]
    limit = min(_exact_noise(epsilon, size, _listed(primes, dimensions, i)) for i in leaders)
    near = np.flatnonzero(noise <= best * float(_TOLERANCE) * (1 + _SCREEN))
    for i in near[np.lexsort((primes[near], points[near]))].tolist():
        geometry = _listed(primes, dimensions, i)
        if _exact_noise(epsilon, size, geometry) <= limit * _TOLERANCE:
            return geometry
    # No candidate carries information: the caller refuses such an epsilon.
    return _listed(primes, dimensions, int(ranking[0]))


def _listed(primes: Integers, dimensions: Integers, i: int) -> Geometry:
    return Geometry(int(primes[i]), int(dimensions[i]))


def _fewest_coordinates(primes: Integers, size: int) -> tuple[Integers, Integers]:
    """Return, for each prime, the fewest coordinates that give `size` points, and the points."""
    dimensions = np.full(len(primes), 2, dtype=np.int64)
    points = primes + 1
    while (short := points < size).any():
        dimensions[short] += 1
        points[short] = points[short] * primes[short] + 1
    return dimensions, points


def _exact_noise(epsilon: Fraction, size: int, geometry: Geometry) -> Fraction:
    support = hyperplane_design(epsilon, geometry).support
    # A channel without information is worse than any other.
    return support.mean_noise(size) if support.gap > 0 else Fraction(1 << 1000)


def _mean_noise(epsilon: Fraction, size: int, primes: Integers, points: Integers) -> Floats:
    """Return `Support.mean_noise` of the unrounded channels, in floating point."""
    favour = exp_floor(min(epsilon, Fraction(_LARGEST_BUDGET)))
    e, gain = float(favour), float(favour - 1)
    q, K = primes.astype(np.float64), points.astype(np.float64)
    d = (K - 1) / q
    overlap = (d - 1) / q
    Z = e * d + K - d
    support, miss = e * d / Z, (K - d) / Z
    other = (e * overlap + d - overlap) / Z
    gap = (d - overlap) * gain / Z
    noise: Floats = (support * miss + (size - 1) * other * (1 - other)) / gap**2 / size
    return noise


def primes_up_to(limit: int) -> Integers:
    """Return the primes up to a limit >= 2, by Eratosthenes' sieve."""
    sieve = np.ones(limit + 1, dtype=np.bool_)
    sieve[:2] = False
    for candidate in range(2, int(limit**0.5) + 1):
        if sieve[candidate]:
            sieve[candidate * candidate :: candidate] = False
    return np.flatnonzero(sieve).astype(np.int64)
