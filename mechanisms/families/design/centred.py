"""Linear queries of designs with more reports than values.

There the reports support different numbers of values, their *loads*. Since the mean of the weights
over a block is known without the report, a query is split into that mean and the deviations u from
it: `h_w(y) = mean + step sum_(x supported by y) u_x`. This is without bias for all weights, whole
blocks are exact, and values have less noise than by the two-valued decoder of `DesignDecoder`.
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
"""Up to this many values of a block, every pair is compared for the extremes of their noise."""


class CentredDecoder(DesignDecoder):
    """`h_x(y) = (1 - step load_y)/s + step 1{y supports x}` in the block of x, 0 elsewhere.

    `h_x` is the two-valued decoder, plus what is *moved*, which is the same for all values of the
    block. `s` is the number of values of the block.
    """

    def __init__(self, layout: DesignLayout, incidences: Sequence[Incidence]) -> None:
        super().__init__(layout, incidences)
        self.step, self.scratch = None, 8.0
        self._moved = np.zeros(layout.outputs)
        for kind, load in enumerate(self._loads):
            if (load != load[0]).any():
                starts = layout.starts[layout.kinds == kind]
                added = self._unsupported(kind) - self._tables.low[kind]
                self._moved[starts[:, None] + np.arange(load.size)] = added

    @cached_property
    def _loads(self) -> list[Indices]:
        """The number of values that each report supports, by kind of block."""
        layout = self._layout
        return [
            sums((np.arange(design.order) < size).astype(np.int64)[None])[0].astype(np.int64)
            for sums, design, size in zip(
                self._to_reports, layout.designs, layout.sizes, strict=True
            )
        ]

    def _unsupported(self, kind: int) -> Floats:
        """Return `h_x` at reports that do not support x, float64 `(order,)`."""
        size, step = self._layout.sizes[kind], self._tables.step[kind]
        unsupported: Floats = (1.0 - step * self._loads[kind]) / size
        return unsupported

    def decode(self, weights: Floats) -> Floats:
        blocks = self._layout.blocks
        sums = np.bincount(blocks.of_value, weights, blocks.count)
        moved = np.repeat(sums, self._layout.orders) * self._moved
        decoded: Floats = super().decode(weights) + moved
        return decoded

    def totals(self, statistic: Statistic) -> Floats:
        sums = super().totals(statistic)
        sums += self._in_block(self._of_blocks(statistic * self._moved), slice(None))
        return sums

    def _of_blocks(self, vector: Floats) -> Floats:
        sums: Floats = np.add.reduceat(vector, self._layout.starts)
        return sums

    def second_moments(self, statistic: Statistic) -> Floats:
        return self._moments(statistic, slice(None))

    def _moments(self, statistic: Statistic, at: slice | Integers) -> Floats:
        """Return `sum (h + moved)^2`, h being the two-valued decoder."""
        kinds, slots = self._kind(at), self._slot(at)
        supporting = self._sum(self._to_values, statistic)[slots]
        in_block = self._in_block(self.group_reports(statistic), at)
        plain = self._tables.single_values(kinds, supporting, in_block).second_moments
        moved = statistic * self._moved
        crossed = self._tables.step[kinds] * self._sum(self._to_values, moved)[slots]
        crossed += self._tables.low[kinds] * self._in_block(self._of_blocks(moved), at)
        squares = self._in_block(self._of_blocks(moved * self._moved), at)
        moments: Floats = plain + 2.0 * crossed + squares
        return moments

    def single_values(self, decoded: Decoded, at: slice | Integers) -> SingleValues:
        moments = self._moments(decoded.statistic, at)
        ends = (*self.extremes(), *self.noise_extremes())
        return SingleValues(moments, *(column[at] for column in ends))

    def extremes(self) -> tuple[Floats, Floats]:
        least, largest = self._of_values(self._ends, slice(None))
        if self._layout.blocks.count > 1:
            # Reports of other blocks.
            return np.minimum(least, 0.0), np.maximum(largest, 0.0)
        return least, largest

    def _of_values(self, columns: Sequence[Floats], at: slice | Integers) -> Floats:
        """Return properties of values by kind and place, `(m, size)` each, of some: `(m, q)`."""
        kinds, place = self._kind(at), self._place[at]
        out = np.empty((len(columns[0]), kinds.size))
        for kind, column in enumerate(columns):
            here = np.flatnonzero(kinds == kind)
            out[:, here] = column[:, place[here]]
        return out

    @cached_property
    def _ends(self) -> list[Floats]:
        """The least and the largest `h_x` in the block of each value, by kind, `(2, size)` each."""
        return [self._ends_of(kind) for kind in range(len(self._layout.designs))]

    def _ends_of(self, kind: int) -> Floats:
        """Return the entry of `_ends`.

        The larger the load, the smaller is `h`. Loads are tried from either end, a transform each,
        until all values have a report that supports them and one that does not. Beyond
        `_MOST_LEVELS` the last one tried is a bound.
        """
        size, load = self._layout.sizes[kind], self._loads[kind]
        some = np.ones((2, size), dtype=np.bool_)
        some[1] = self._layout.designs[kind].outside > 0
        levels = np.unique(load)
        found = np.empty((2, 2, size))
        for end, order in enumerate((levels[::-1], levels)):
            left = some.copy()
            for level in order[:_MOST_LEVELS].tolist():
                found[end][left] = level
                reached = load >= level if end == 0 else load <= level
                supporting = self._to_values[kind](reached[None].astype(np.int64))[0, :size]
                left &= np.stack([supporting == 0, reached.sum() == supporting])
                if not left.any():
                    break
        step = self._tables.step[kind]
        ends = (1.0 - step * found) / size
        ends[:, 0] += step
        ends[:, 1][:, ~some[1]] = ends[:, 0][:, ~some[1]]
        return np.stack([ends[0].min(axis=0), ends[1].max(axis=0)])

    def noise_extremes(self) -> tuple[Floats, Floats]:
        own, least, largest = self.noise_levels(slice(None))
        return np.minimum(own, least), np.maximum(own, largest)

    def noise_levels(self, at: slice | Integers) -> tuple[Floats, Floats, Floats]:
        own, least, largest = self._of_values(self._noise, at)
        return own, least, largest

    @cached_property
    def _noise(self) -> list[Floats]:
        """The `noise_levels` of the values of each kind of block, `(3, size)` each."""
        return [self._noise_of(kind) for kind in range(len(self._layout.designs))]

    def _noise_of(self, kind: int) -> Floats:
        """Return the entry of `_noise`.

        A user of x' adds `likely A + unlikely (sum_y h^2 - A)`, A being the sum of `h^2` over the
        reports that support x'. A depends on the loads of the reports that support both values;
        of many values only the least and the largest possible sum of these is known.
        """
        design, size = self._layout.designs[kind], self._layout.sizes[kind]
        step, load = self._tables.step[kind], self._loads[kind]
        squares = self._unsupported(kind) ** 2
        of_value = self._to_values[kind](squares[None])[0, :size]
        own = of_value + step**2 * design.inside + 2.0 * step * self._supported_sum(kind)
        every = squares.sum() + own - of_value
        gain = float(design.likely - design.unlikely)

        def noise(supported: Floats) -> Floats:
            out: Floats = gain * supported + float(design.unlikely) * every[0]
            return out

        own_noise = noise(own) - 1.0
        if size == 1:
            return np.stack([own_noise] * 3)
        both = design.overlap
        if size <= _MOST_PAIRS:
            rows = np.zeros((size, design.order))
            np.fill_diagonal(rows, 1.0)
            rows = self._to_reports[kind](rows)
            common = (rows * load) @ rows.T
            others = of_value + step**2 * both + 2.0 * step * (both - step * common) / size
            np.fill_diagonal(others, np.nan)
            least, largest = np.nanmin(others, axis=1), np.nanmax(others, axis=1)
        else:
            ascending = np.sort(load)
            fewest, most = ascending[:both].sum(), ascending[load.size - both :].sum()
            ends = step**2 * both + 2.0 * step * (both - step * np.array([most, fewest])) / size
            least = np.full(size, of_value.min() + ends[0])
            largest = np.full(size, of_value.max() + ends[1])
        return np.stack([own_noise, noise(least), noise(largest)])

    def _supported_sum(self, kind: int) -> float:
        """Return the sum of `_unsupported` over the reports that support a value, any one."""
        design, size = self._layout.designs[kind], self._layout.sizes[kind]
        loads = design.inside + (size - 1) * design.overlap
        return float(design.inside - self._tables.step[kind] * loads) / size

    def uniform_moments(self, at: slice | Integers) -> Floats:
        moments = []
        for kind, design in enumerate(self._layout.designs):
            step = self._tables.step[kind]
            every = (self._unsupported(kind) ** 2).sum() + step**2 * design.inside
            every += 2.0 * step * self._supported_sum(kind)
            moments.append(every / design.order)
        return np.array(moments)[self._kind(at)]

    def output_mass(self, ones: Floats) -> Floats:
        sizes = np.repeat(self._layout.blocks.sizes, self._layout.orders)
        return super().output_mass(ones - sizes * self._moved)
