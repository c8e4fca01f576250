"""Decoders: unbiased estimates of linear queries from a statistic, and their noise.

A linear query `w` (the indicator of a value or a set, or any weights) has a decoder `h` with
`Q h = w`: the sum of `h` over the reports estimates the sum of `w` over the users without bias
(docs/theory.md section 0). There are two kinds: `symbols.CountDecoder` if the statistic counts
symbols, so that `h` is a vector; `LinearDecoder` if it holds sums, of which `h` is a linear
function.

All methods are deterministic functions of their arguments, and none builds a dense `k x k` inverse
of a large channel. Decoders use the realised channel (rounded outward), so that estimates stay
exactly unbiased.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Floats, Indices, Integers

Statistic = NDArray[np.int64]

ROUNDING = 1e-12
"""Below this fraction of the second moment, noise is float64 rounding."""
PART = 1 << 17
"""Number of values or reports processed at a time, which bounds temporary memory."""


@dataclass(frozen=True, eq=False)
class Decoded:
    """A statistic with the `totals` of all values, float64 `(k,)`, n times their estimated shares.

    `reports` is the number of reports of each group, int64 `(groups,)`. `quadratic`, float64
    `(k,)`, is what second moments have beside a multiple of the totals, where it takes another
    transform; and `parts` is the same of each decoder that this one is made of.
    """

    statistic: Statistic
    totals: Floats
    reports: Integers
    quadratic: Floats | None = None
    parts: "tuple[Decoded, ...]" = ()


@dataclass(frozen=True)
class SingleValues:
    """What bounds for q single values are computed from, float64 `(q,)` each.

    `second_moments` as in `Decoder.moments`, `least` and `largest` as in `Decoder.extremes`,
    `quietest` and `noisiest` as in `Decoder.noise_extremes`.
    """

    second_moments: Floats
    least: Floats
    largest: Floats
    quietest: Floats
    noisiest: Floats


class Decoder(ABC):
    """The interface of all decoders, whatever the statistic holds.

    `scratch` is the memory that decoding takes besides the result, in float64 arrays as long as the
    statistic; it decides which requests are refused for lack of memory. If the decoders of all
    values take the same two numbers and are equally noisy, `step` is the difference between these
    numbers: estimates are then whole steps apart, and everything else that is known of a value
    follows from its share. Otherwise `step` is None. Where that is true of some values alone, they
    are `in_steps`, ascending.
    """

    scratch: float = 4.0
    step: float | None = None
    in_steps: Indices | None = None

    @abstractmethod
    def totals(self, statistic: Statistic) -> Floats:
        """Return the sums `sum_i h_x(y_i)` of every single value, float64 of shape `(k,)`.

        Divided by `n` this is the unbiased estimate of every value's share.
        """

    def decode_values(self, statistic: Statistic) -> Decoded:
        """Return the totals, and what else takes time that grows with the number of reports."""
        return Decoded(statistic, self.totals(statistic), self.group_reports(statistic))

    @abstractmethod
    def moments(self, decoded: Decoded, at: slice | Integers) -> Floats:
        """Return `sum_i h_x(y_i)^2` of a slice of the values, or of those with indices `(q,)`.

        If the statistic does not determine it, an unbiased estimate of its mean,
        `sum_i (Q h_x^2)[x_i]`. What follows from the totals is not decoded again.
        """

    @abstractmethod
    def extremes(self) -> tuple[Floats, Floats]:
        """Return `(min_y h_x(y), max_y h_x(y))` of every single value, float64 of shape `(k,)`."""

    def single_values(self, decoded: Decoded, at: slice | Integers) -> SingleValues:
        """Return what bounds are computed from, for a slice of the values or for indices `(q,)`.

        The result equals, bit for bit, these entries of the result for all values. This general
        form computes all of them; mechanisms for large domains override it, so that few values cost
        little.
        """
        of_all = (*self.extremes(), *self.noise_extremes())
        return SingleValues(self.moments(decoded, at), *(column[at] for column in of_all))

    @abstractmethod
    def noise(self, weights: Floats) -> Floats:
        """Return what a user of each value adds to a query's variance: float64 `(k,)`, >= 0.

        `v(x) = (Q h^2)[x] - w[x]^2`, up to float64; entries that are only rounding are 0.
        """

    def groups(self) -> Integers | None:
        """Return the group of each value that a report discloses: int64 `(k,)`, numbered from 0.

        The share of a group among the respondents is known without error. None, the default, if
        nothing is disclosed.
        """
        return None

    @abstractmethod
    def group_reports(self, statistic: Statistic) -> Integers:
        """Return the exact number of reports of each group, int64 `(groups,)`."""

    def noise_extremes(self) -> tuple[Floats, Floats]:
        """Return the least and the largest noise that one user adds to each single value.

        The user's value ranges over the value's own group (over all values if nothing is
        disclosed), since `h` vanishes at other groups' reports. Two float64 arrays `(k,)`. This
        general form costs k calls of `noise`; mechanisms for large domains override it.
        """
        size = self.extremes()[0].size
        disclosed = self.groups()
        group = np.zeros(size, dtype=np.int64) if disclosed is None else disclosed
        least, largest = np.empty(size), np.empty(size)
        for value in range(size):
            weights = np.zeros(size)
            weights[value] = 1.0
            of_group = self.noise(weights)[group == group[value]]
            least[value], largest[value] = of_group.min(), of_group.max()
        return least, largest


@dataclass(frozen=True)
class PrefixNoise:
    """What is known of the prefixes of an order, if their noise is the same for every value.

    `noise` of each prefix, and the extremes `least` and `largest` of its `h`: float64 `(m,)` each.
    """

    noise: Floats
    least: Floats
    largest: Floats


class LinearDecoder(Decoder):
    """Decoders that are linear functions of a statistic of sums."""

    def noise_each(self, weights: Floats) -> Floats:
        """Return `noise` of each row, float64 `(q, k)` -> `(q, k)`."""
        return np.stack([self.noise(row) for row in weights])

    @abstractmethod
    def total(self, weights: Floats, statistic: Statistic) -> float:
        """Return `sum_i h_w(y_i)` of a query, weights float64 `(k,)`: linear in both arguments."""

    @abstractmethod
    def span(self, weights: Floats) -> tuple[float, float]:
        """Return `(least, largest)` of `h_w` over all reports, or a wider interval."""

    def deviation(self, weights: Floats) -> float:
        """Return the M that tail bounds use: by default the most that a report is off.

        The noise d of a report with variance v satisfies
        `log E e^(t d) <= t^2 v / (2 (1 - M |t|/3))` for `M |t| < 3`. Bernstein proved this for
        noise of at most M, the default. Sums of independent noise satisfy it with the largest M of
        their parts, however large the sum may be.
        """
        least, largest = self.span(weights)
        return max(largest - float(weights.min()), float(weights.max()) - least)

    def value_deviations(self) -> Floats | None:
        """Return `deviation` of every single value, float64 `(k,)`; None for the default."""
        return None

    def prefix_noise(self, positions: Integers) -> PrefixNoise | None:
        """Return what is known of the m prefixes `{x : positions[x] <= i}`.

        None, the default, if nothing is known of them: they are then decoded like any other sets.
        """
        del positions
        return None


def parts(size: int) -> list[slice]:
    """Return consecutive slices of at most `PART` places that cover `0..size-1`."""
    return [slice(first, min(first + PART, size)) for first in range(0, size, PART)]
