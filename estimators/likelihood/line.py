"""The likelihood of counts over one dimension of the clamped geometric channel.

`Q[x, y] = s_y A[x, y]`, `A[x, y] = alpha^|x - y|`, whose inverse B is tridiagonal (Kac, Murdock,
Szego 1953). With `u = A p`, the log-likelihood of shares p is `sum_y N[y] log u[y]` up to a
constant, one term for each output, and `p = B u` takes three terms for each value. Products with A
add only positive numbers, so that all their digits are accurate.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import scipy

from ldpstream.estimators.likelihood.mechanisms import SUPPORTED, has_likelihood
from ldpstream.mechanisms.base.arrays import Floats
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from ldpstream.mechanisms.families.l1.geometric_decoder import GeometricAxis
from ldpstream.mechanisms.interface.mechanism import Mechanism, Statistic


@dataclass(frozen=True)
class Line:
    """The likelihood of `counts`, float64 `(k,)`, >= 0, of the reports of the channel `axis`."""

    axis: GeometricAxis
    counts: Floats

    @classmethod
    def of(cls, mechanism: Mechanism, statistic: Statistic) -> Self:
        """Return the likelihood of a statistic."""
        if not (isinstance(mechanism, L1Geometric) and has_likelihood(mechanism)):
            raise ValueError(f"likelihood: expected {SUPPORTED}, got {mechanism.id}")
        return cls(mechanism.axes[0], np.asarray(statistic, dtype=np.float64))

    @cached_property
    def n(self) -> float:
        """Number of reports."""
        return float(self.counts.sum())

    @property
    def size(self) -> int:
        """Number of values k."""
        return self.counts.size

    @cached_property
    def bands(self) -> tuple[Floats, float]:
        """The diagonal of B, float64 `(k,)`, and the entry next to it."""
        alpha = self.axis.alpha
        gap = self.axis.beta * (1.0 + alpha)
        diagonal = np.full(self.size, (1.0 + alpha**2) / gap)
        diagonal[[0, -1]] = 1.0 / gap
        return diagonal, -alpha / gap

    @cached_property
    def _factors(self) -> tuple[Floats, Floats]:
        main, beside = self.bands
        diagonal, off, _ = scipy.linalg.lapack.dpttrf(main, np.full(self.size - 1, beside))
        return diagonal, off

    def mix(self, function: Floats) -> Floats:
        """Return `A f`."""
        out: Floats = scipy.linalg.lapack.dpttrs(*self._factors, function)[0]
        return out

    def unmix(self, function: Floats) -> Floats:
        """Return `B f`."""
        diagonal, beside = self.bands
        out = diagonal * function
        out[1:] += beside * function[:-1]
        out[:-1] += beside * function[1:]
        return out

    def value(self, u: Floats) -> float:
        """Return `sum N log u`."""
        nonzero = self.counts > 0.0
        return float(self.counts[nonzero] @ np.log(u[nonzero]))

    def gradient(self, u: Floats) -> Floats:
        """Return the derivative of the log-likelihood in each share, `A (N/u)`.

        Since the log-likelihood is concave, that of any shares p is at most
        `value(u) - n + gradient(u) @ p` for any u above 0. All proofs here rest on this.
        """
        return self.mix(self.counts / u)
