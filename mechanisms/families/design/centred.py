"""Linear queries of one block whose design has more reports than values.

There the reports support different numbers of values, their *loads*. Since the mean of the weights
over the block is known without the report, a query is split into that mean and the deviations u
from it: `h_w(y) = mean + step sum_(x supported by y) u_x`. This is without bias for all weights,
the whole block is exact, and values have less noise than by the decoder of `DesignDecoder`.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Final

import numpy as np

from ldpstream.mechanisms.base.arrays import Floats, Indices, Integers
from ldpstream.mechanisms.families.design.decoder import DesignDecoder
from ldpstream.mechanisms.families.design.design import DesignLayout
from ldpstream.mechanisms.families.design.incidence import Incidence
from ldpstream.mechanisms.interface.decoder import Decoded, SingleValues, Statistic

_MOST_LEVELS: Final = 64
"""Number of loads that are tried for the extremes of values."""
_MOST_PAIRS: Final = 512
"""Up to this many values, every pair of them is compared for the extremes of their noise."""


class CentredDecoder(DesignDecoder):
    """`h_x(y) = (1 - step load_y)/s + step 1{y supports x}`, s being the number of values.

    This is the two-valued decoder, plus what is *moved*, which is the same for all values.
    """

    def __init__(self, layout: DesignLayout, incidences: Sequence[Incidence]) -> None:
        super().__init__(layout, incidences)
        self.step = None
        (self._design,), self._size = layout.designs, layout.blocks.size
        self._step = float(self._tables.step[0])
        values = (np.arange(self._design.order) < self._size).astype(np.int64)
        self._load: Indices = self._to_reports[0](values[None])[0].astype(np.int64)
        self._unsupported: Floats = (1.0 - self._step * self._load) / self._size
        self._moved = self._unsupported - self._tables.low[0]

    def decode(self, weights: Floats) -> Floats:
        decoded: Floats = super().decode(weights) + weights.sum() * self._moved
        return decoded

    def totals(self, statistic: Statistic) -> Floats:
        return super().totals(statistic) + float((statistic * self._moved).sum())

    def second_moments(self, statistic: Statistic) -> Floats:
        """Return `sum (h + moved)^2`, h being the two-valued decoder."""
        moved = statistic * self._moved
        supporting = self._to_values[0](moved[None])[0, : self._size]
        crossed = self._step * supporting + self._tables.low[0] * moved.sum()
        squares = float((moved * self._moved).sum())
        moments: Floats = super().second_moments(statistic) + 2.0 * crossed + squares
        return moments

    def single_values(self, decoded: Decoded, at: slice | Integers) -> SingleValues:
        moments = self.second_moments(decoded.statistic)
        ends = *self.extremes(), *self.noise_extremes()
        return SingleValues(moments[at], *(column[at] for column in ends))

    def extremes(self) -> tuple[Floats, Floats]:
        least, largest = self._ends
        return least, largest

    @cached_property
    def _ends(self) -> Floats:
        """The least and the largest `h_x` of each value, `(2, s)`.

        The larger the load, the smaller is `h`. Loads are tried from either end, a transform each,
        until all values have a report that supports them and one that does not. Beyond
        `_MOST_LEVELS` the last one tried is a bound.
        """
        load, levels = self._load, np.unique(self._load)
        found = np.empty((2, 2, self._size))
        for end, order in enumerate((levels[::-1], levels)):
            left = np.ones((2, self._size), dtype=np.bool_)
            for level in order[:_MOST_LEVELS].tolist():
                found[end][left] = level
                reached = load >= level if end == 0 else load <= level
                supporting = self._to_values[0](reached[None].astype(np.int64))[0, : self._size]
                left &= np.stack([supporting == 0, reached.sum() == supporting])
                if not left.any():
                    break
        ends = (1.0 - self._step * found) / self._size
        ends[:, 0] += self._step
        return np.stack([ends[0].min(axis=0), ends[1].max(axis=0)])

    def noise_extremes(self) -> tuple[Floats, Floats]:
        own, least, largest = self._noise
        return np.minimum(own, least), np.maximum(own, largest)

    def noise_levels(self, at: slice | Integers) -> tuple[Floats, Floats, Floats]:
        own, least, largest = self._noise
        return own[at], least[at], largest[at]

    @cached_property
    def _noise(self) -> Floats:
        """The `noise_levels` of all values, `(3, s)`.

        A user of x' adds `likely A + unlikely (sum_y h^2 - A)`, A being the sum of `h^2` over the
        reports that support x'. A depends on the loads of the reports that support both values;
        of many values only the least and the largest possible sum of these is known.
        """
        design, size, step, load = self._design, self._size, self._step, self._load
        squares = self._unsupported**2
        of_value = self._to_values[0](squares[None])[0, :size]
        added = step**2 * design.inside + 2.0 * step * self._supported_sum
        unlikely = float(design.unlikely) * (float(squares.sum()) + added)
        gain = float(design.likely - design.unlikely)
        own = gain * (of_value + added) + unlikely - 1.0
        if size == 1:
            return np.stack([own] * 3)
        both = design.overlap
        if size <= _MOST_PAIRS:
            rows = self._to_reports[0](np.eye(size, design.order))
            common = (rows * load) @ rows.T
            others = of_value + step**2 * both + 2.0 * step * (both - step * common) / size
            np.fill_diagonal(others, np.nan)
            least, largest = np.nanmin(others, axis=1), np.nanmax(others, axis=1)
        else:
            ascending = np.sort(load)
            sums = np.array([ascending[load.size - both :].sum(), ascending[:both].sum()])
            ends = step**2 * both + 2.0 * step * (both - step * sums) / size
            least = np.full(size, of_value.min() + ends[0])
            largest = np.full(size, of_value.max() + ends[1])
        return np.stack([own, gain * least + unlikely, gain * largest + unlikely])

    @property
    def _supported_sum(self) -> float:
        """The sum of `_unsupported` over the reports that support a value, any one."""
        design = self._design
        loads = design.inside + (self._size - 1) * design.overlap
        return (design.inside - self._step * loads) / self._size

    def uniform_moments(self, at: slice | Integers) -> Floats:
        step, inside = self._step, self._design.inside
        every = float((self._unsupported**2).sum()) + step**2 * inside
        mean = (every + 2.0 * step * self._supported_sum) / self._design.order
        return np.full(self._size, mean)[at]

    def output_mass(self, ones: Floats) -> Floats:
        return super().output_mass(ones - self._size * self._moved)
