"""Simulated values of any domain: a crowd around a centre that wanders."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.domains.attributes import Attributes
from ldpstream.mechanisms.exact.entropy import SystemEntropy

PERIOD_SECONDS: Final = 600.0
"""After this time the crowd is where it started."""
_STRAYS: Final = 0.1
"""Share of values that are uniform over the domain."""


class Crowd:
    """Draws values of a domain of this shape, numbered in row-major order; all from a seed."""

    def __init__(self, shape: tuple[int, ...], *, seed: int) -> None:
        self._shape = shape
        self._rng = np.random.default_rng(seed)

    def draw(self, n: int, *, seconds: float) -> NDArray[np.int64]:
        """Return the values of n people at a time: int64 of shape `(n,)`."""
        columns = []
        strays = self._rng.random(n) < _STRAYS
        for axis, size in enumerate(self._shape):
            phase = 2 * np.pi * seconds / PERIOD_SECONDS + axis
            centre = size * (0.5 + 0.3 * np.sin(phase))
            near = np.floor(self._rng.normal(centre, size / 8, n))
            anywhere = self._rng.integers(size, size=n)
            columns.append(np.where(strays, anywhere, np.clip(near, 0, size - 1)))
        flat = np.ravel_multi_index(tuple(c.astype(np.int64) for c in columns), self._shape)
        return flat.astype(np.int64)


class CrowdOfRecords:
    """The same for records: a crowd per attribute; one attribute is drawn and reported."""

    def __init__(self, domain: Attributes, *, seed: int) -> None:
        self._domain = domain
        given = domain.given.values()
        self._crowds = [Crowd(one.shape, seed=seed + j) for j, one in enumerate(given)]

    def draw(self, n: int, *, seconds: float) -> NDArray[np.int64]:
        """Return the values of n people at a time, each of one random attribute: int64 `(n,)`."""
        values = [crowd.draw(n, seconds=seconds) for crowd in self._crowds]
        return self._domain.drawn(values, SystemEntropy())
