"""Decoders: unbiased estimates of linear queries from a statistic, and the noise they carry.

A linear query `w` (an indicator of a value or a set, any weights) has a decoder `h` with
`Q h = w`: the sum of `h` over the reports estimates the sum of `w` over the users without bias
(docs/theory.md section 0). Two kinds: `CountDecoder` where the statistic counts symbols, so that
`h` is a vector; `LinearDecoder` where the statistic holds sums, of which `h` is a linear function.

All methods are deterministic functions of their arguments; none ever builds a dense `k x k`
inverse of a large channel. Decoders use the realised channel (rounded outward), so estimates stay
exactly unbiased.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Floats, Integers

Statistic = NDArray[np.int64]

# Noise below this part of the second moment is rounding in float64, not noise.
ROUNDING = 1e-12


PART = 1 << 17
"""Values, or reports, processed at a time, which bounds a step's temporary memory."""


def parts(size: int) -> list[slice]:
    """Return consecutive slices of at most `PART` places that cover `0..size-1`."""
    return [slice(first, min(first + PART, size)) for first in range(0, size, PART)]


@dataclass(frozen=True)
class Decoded:
    """A statistic, with what its decoder makes of it.

    `shares` are those of every value, float64 `(k,)`, `reports` those of each group, int64.
    """

    statistic: Statistic
    shares: Floats
    reports: Integers


@dataclass(frozen=True)
class SingleValues:
    """What the bounds of some single values are made of, float64 `(q,)` each.

    `second_moments`, `least` and `largest` (of `Decoder.extremes`), `quietest` and `noisiest` (of
    `Decoder.noise_extremes`), as the methods of these names return them for all values.
    """

    second_moments: Floats
    least: Floats
    largest: Floats
    quietest: Floats
    noisiest: Floats


class Decoder(ABC):
    """What every decoder gives, whatever the statistic holds.

    `scratch` is how much memory decoding takes besides a result for each value, in arrays of
    float64 as long as the statistic; it decides which answers are refused for lack of memory.
    `step` is None, or where the decoders of all values take the same two numbers, and are equally
    noisy, the difference of these: shares are whole steps apart, and all else that is known of a
    value follows from its share.
    """

    scratch: float = 4.0
    step: float | None = None

    @abstractmethod
    def totals(self, statistic: Statistic) -> Floats:
        """Return the sums `sum_i h_x(y_i)` of every single value, float64 of shape `(k,)`.

        Divided by `n` this is the unbiased estimate of every value's share.
        """

    @abstractmethod
    def second_moments(self, statistic: Statistic) -> Floats:
        """Return, of every single value, `sum_i h_x(y_i)^2` or an unbiased estimate: `(k,)`.

        An estimate of its mean, `sum_i (Q h_x^2)[x_i]`, where the statistic does not hold it.
        """

    @abstractmethod
    def extremes(self) -> tuple[Floats, Floats]:
        """Return `(min_y h_x(y), max_y h_x(y))` of every single value, float64 of shape `(k,)`."""

    def single_values(self, decoded: Decoded, at: slice | Integers) -> SingleValues:
        """Return what bounds of values are made of: of all, or of some by index, int64 `(q,)`.

        Those of some are, bit for bit, these entries of all. This general form takes them out of
        all: mechanisms of large domains override it, so that a short list costs little.
        """
        moments = self.second_moments(decoded.statistic)
        of_all = (moments, *self.extremes(), *self.noise_extremes())
        return SingleValues(*(column[at] for column in of_all))

    @abstractmethod
    def noise(self, weights: Floats) -> Floats:
        """Return what a user of each value adds to a query's variance: float64 `(k,)`, >= 0.

        `v(x) = (Q h^2)[x] - w[x]^2`, exact up to float64: entries of rounding are 0.
        """

    def groups(self) -> Integers | None:
        """Return the group of each value, int64 `(k,)`, numbered from 0, as a report discloses it.

        A group's share among the respondents is then known without error. None, as by default,
        where nothing is disclosed: one group.
        """
        return None

    @abstractmethod
    def group_reports(self, statistic: Statistic) -> Integers:
        """Return the number of reports of each group, int64 of shape `(groups,)`: exact."""

    def noise_extremes(self) -> tuple[Floats, Floats]:
        """Return the least and the largest noise that one user adds to each single value.

        x ranges over the value's own group (over all values where nothing is disclosed), since
        `h` vanishes at other groups' reports. Two float64 arrays of shape `(k,)`. This general
        form costs k calls of `noise`: large mechanisms override it.
        """
        size = self.extremes()[0].size
        disclosed = self.groups()
        group = np.zeros(size, dtype=np.int64) if disclosed is None else disclosed
        least, largest = np.empty(size), np.empty(size)
        for value in range(size):
            weights = np.zeros(size)
            weights[value] = 1.0
            own = self.noise(weights)[group == group[value]]
            least[value], largest[value] = own.min(), own.max()
        return least, largest


class CountDecoder(Decoder):
    """Decoders over a statistic `N` that counts symbols `y = 0..outputs-1`."""

    @abstractmethod
    def decode(self, weights: Floats) -> Floats:
        """Return `h` with `Q h = weights`: float64 `(k,)` -> float64 `(outputs,)`.

        `h` is the sum of the single values' decoders, weighted: linear in `weights`.
        """

    @abstractmethod
    def expect(self, function: Floats) -> Floats:
        """Return `Q f`, the mean of a function of the report for a user of each value.

        float64 `(outputs,)` -> float64 `(k,)`; with `f = h^2` this gives every variance.
        """

    def decode_each(self, weights: Floats) -> Floats:
        """Return `decode` of each row, `(q, k)` -> `(q, outputs)`; by default one by one."""
        return np.stack([self.decode(row) for row in weights])

    def expect_each(self, function: Floats) -> Floats:
        """Return `expect` of each row, float64 `(q, outputs)` -> `(q, k)`."""
        return np.stack([self.expect(row) for row in function])

    def output_groups(self) -> Integers | None:
        """Return the group of each output, int64 `(outputs,)`; None if `groups` is."""
        return None

    def noise(self, weights: Floats) -> Floats:
        """Return `(Q h^2)[x] - w[x]^2` of the plain decoder: float64 `(k,)`."""
        return self.noise_of(self.decode(weights), weights)

    def noise_of(self, decoded: Floats, weights: Floats) -> Floats:
        """Return the noise of any `h` with `Q h = weights`: float64 `(k,)`, >= 0."""
        return remove_rounding(self.expect(decoded**2), weights)

    def group_reports(self, statistic: Statistic) -> Integers:
        """Return the number of reports of each group: sums of counts."""
        group = self.output_groups()
        if group is None:
            return np.array([statistic.sum()], dtype=np.int64)
        reports = np.zeros(int(group.max()) + 1, dtype=np.int64)
        np.add.at(reports, group, statistic)
        return reports


class MassDecoder(CountDecoder):
    """Counts whose outputs' masses are known without the whole channel."""

    @abstractmethod
    def output_mass(self, ones: Floats) -> Floats:
        """Return `sum_x Q[x, y]` of each output, `(outputs,)`, `ones` being `decode(1)`."""


@dataclass(frozen=True)
class Chain:
    """Prefixes of an order whose noise is the same for users of every value.

    `noise` is that noise, `least` and `largest` are the extremes of `h`: float64 `(m,)` each.
    """

    noise: Floats
    least: Floats
    largest: Floats


class LinearDecoder(Decoder):
    """Decoders that are linear functions of a statistic of sums, with known noise."""

    def noise_each(self, weights: Floats) -> Floats:
        """Return `noise` of each row, `(q, k)` -> `(q, k)`; by default one by one."""
        return np.stack([self.noise(row) for row in weights])

    @abstractmethod
    def total(self, weights: Floats, statistic: Statistic) -> float:
        """Return `sum_i h_w(y_i)` of a query, weights float64 `(k,)`: linear in both arguments."""

    @abstractmethod
    def span(self, weights: Floats) -> tuple[float, float]:
        """Return `(least, largest)` of `h_w` over all reports; where inexact, too wide."""

    def deviation(self, weights: Floats) -> float:
        """Return M, the most that a report is off, or what stands for it in every bound of tails.

        Noise d of a report of variance v has `log E e^(t d) <= t^2 v / (2 (1 - M |t|/3))` where
        `M |t| < 3`: proved by Bernstein of what is never off by more than M, as by default. Sums of
        independent noise keep this with the largest M of their parts, however far they reach.
        """
        least, largest = self.span(weights)
        return max(largest - float(weights.min()), float(weights.max()) - least)

    def value_deviations(self) -> Floats | None:
        """Return the same of every single value, float64 `(k,)`; None: the most it is off."""
        return None


class ChainDecoder(LinearDecoder):
    """Sums of which the prefixes of an order are known without a query each."""

    @abstractmethod
    def chain(self, positions: Integers) -> Chain | None:
        """Return what is known of the m prefixes `{x : position of x <= i}`.

        None of positions of which nothing is known: their prefixes are sets like any other.
        """


def remove_rounding(moments: Floats, weights: Floats) -> Floats:
    """Return `moments - weights^2` of shape `(k,)`, exactly 0 where only rounding is left.

    So a value that is reported exactly has no noise. Rounding is relative to the largest weight,
    whatever the weights' unit.
    """
    squares = weights**2
    noise = moments - squares
    noise[noise <= ROUNDING * np.maximum(moments, squares.max(initial=0.0))] = 0.0
    return noise
