"""Linear queries of blocks whose designs have more reports than values.

There the reports support different numbers of values, their *loads*. Since the mean of the weights
over a block is known without the report, a query is split into that mean and the deviations u from
it: `h_w(y) = mean + step sum_(x supported by y) u_x`. This is without bias for all weights, the
whole block is exact, and values have less noise than by the decoder of `DesignDecoder`.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Final

import numpy as np

from ldpstream.mechanisms.base.arrays import Floats, Indices, Integers
from ldpstream.mechanisms.families.design.decoder import DesignDecoder
from ldpstream.mechanisms.families.design.design import DesignLayout, SymmetricDesign
from ldpstream.mechanisms.families.design.incidence import Incidence
from ldpstream.mechanisms.interface.decoder import Decoded, SingleValues, Statistic

_MOST_LEVELS: Final = 64
"""Number of loads that are tried for the extremes of values."""
_MOST_PAIRS: Final = 512
"""Up to this many values, every pair of them is compared for the extremes of their noise."""


class CentredDesign:
    """`h_x(y) = (1 - step load_y)/s + step 1{y supports x}` in one block of s values.

    This is the two-valued decoder, plus what is `moved`, which is the same for all values and 0
    where all loads are equal.

    Sums over reports are made of these: the total is a step for each report that supports x, plus
    `of_reports[:, 0]` of each report; the sum of squares is `slope` times the total, plus `of_load`
    times the loads of reports that support x, plus `of_reports[:, 1]` of each report.
    """

    def __init__(self, design: SymmetricDesign, incidence: Incidence, size: int) -> None:
        self._design, self._size = design, size
        self._to_values, self._to_reports = incidence.to_values, incidence.to_reports
        support = design.support
        self.step, self.low = float(1 / support.gap), float(support.low)
        values = (np.arange(design.order) < size).astype(np.int64)
        self.load: Indices = self._to_reports(values[None])[0].astype(np.int64)
        unsupported: Floats = (1.0 - self.step * self.load) / size
        self._unsupported = unsupported
        alike = design.order == size
        self.moved: Floats = unsupported - (unsupported if alike else self.low)
        self.slope = float(support.high + support.low) if alike else self.step + 2.0 / size
        self.of_load = -2.0 * self.step**2 / size
        squares = unsupported * (unsupported - self.slope)
        self.of_reports: Floats = np.stack([unsupported, squares], axis=1)

    @cached_property
    def ends(self) -> Floats:
        """The least and the largest `h_x` of each value, `(2, s)`.

        The larger the load, the smaller is `h`. Loads are tried from either end, a transform each,
        until all values have a report that supports them and one that does not. Beyond
        `_MOST_LEVELS` the last one tried is a bound.
        """
        load, levels = self.load, np.unique(self.load)
        bounds = np.empty((2, 2, self._size))
        for end, order in enumerate((levels[::-1], levels)):
            within = np.ones((2, self._size), dtype=np.bool_)
            for level in order[:_MOST_LEVELS].tolist():
                bounds[end][within] = level
                reached = load >= level if end == 0 else load <= level
                supporting = self._to_values(reached[None].astype(np.int64))[0, : self._size]
                within &= np.stack([supporting == 0, reached.sum() == supporting])
                if not within.any():
                    break
        ends = (1.0 - self.step * bounds) / self._size
        ends[:, 0] += self.step
        return np.stack([ends[0].min(axis=0), ends[1].max(axis=0)])

    @cached_property
    def noise(self) -> Floats:
        """The `noise_levels` of all values, `(3, s)`.

        A user of x' adds `likely A + unlikely (sum_y h^2 - A)`, A being the sum of `h^2` over the
        reports that support x'. A depends on the loads of the reports that support both values;
        of many values only the least and the largest possible sum of these is known.
        """
        design, size, step, load = self._design, self._size, self.step, self.load
        squares = self._unsupported**2
        of_value = self._to_values(squares[None])[0, :size]
        added = step**2 * design.inside + 2.0 * step * self._supported_sum
        unlikely = float(design.unlikely) * (float(squares.sum()) + added)
        gain = float(design.likely - design.unlikely)
        at_value = gain * (of_value + added) + unlikely - 1.0
        if size == 1:
            return np.stack([at_value] * 3)
        both = design.overlap
        if size <= _MOST_PAIRS:
            rows = self._to_reports(np.eye(size, design.order))
            common = (rows * load) @ rows.T
            elsewhere = of_value + step**2 * both + 2.0 * step * (both - step * common) / size
            np.fill_diagonal(elsewhere, np.nan)
            least, largest = np.nanmin(elsewhere, axis=1), np.nanmax(elsewhere, axis=1)
        else:
            ascending = np.sort(load)
            sums = np.array([ascending[load.size - both :].sum(), ascending[:both].sum()])
            ends = step**2 * both + 2.0 * step * (both - step * sums) / size
            least = np.full(size, of_value.min() + ends[0])
            largest = np.full(size, of_value.max() + ends[1])
        return np.stack([at_value, gain * least + unlikely, gain * largest + unlikely])

    @property
    def _supported_sum(self) -> float:
        """The sum of `_unsupported` over the reports that support a value, any one."""
        design = self._design
        loads = design.inside + (self._size - 1) * design.overlap
        return (design.inside - self.step * loads) / self._size

    @property
    def uniform_moment(self) -> float:
        """The mean of `h_x^2` over uniform reports."""
        step, inside = self.step, self._design.inside
        every = float((self._unsupported**2).sum()) + step**2 * inside
        return (every + 2.0 * step * self._supported_sum) / self._design.order


class CentredDecoder(DesignDecoder):
    """The decoder of blocks whose designs, by kind, have `CentredDesign`."""

    def __init__(self, layout: DesignLayout, incidences: Sequence[Incidence]) -> None:
        super().__init__(layout, incidences)
        self.step = None
        kinds, blocks = layout.kinds, layout.blocks
        sizes = [int(blocks.sizes[kinds == kind][0]) for kind in range(len(layout.designs))]
        each = zip(layout.designs, incidences, sizes, strict=True)
        self._centred = [CentredDesign(*design) for design in each]
        self._is_moved = np.array([design.moved.any() for design in self._centred])
        first = np.cumsum([0, *sizes[:-1]])
        self._row: Indices = first[self._kind(slice(None))] + blocks.position
        by_block = np.argsort(blocks.of_value, kind="stable")
        ends = np.cumsum(blocks.sizes)
        # Each design that is moved, with its blocks, their reports, and their values.
        self._moved: list[tuple[CentredDesign, Indices, Indices, Indices]] = []
        for kind in np.flatnonzero(self._is_moved).tolist():
            here, size = np.flatnonzero(kinds == kind), sizes[kind]
            reports = layout.starts[here][:, None] + np.arange(layout.designs[kind].order)
            values = by_block[ends[here][:, None] - size + np.arange(size)]
            self._moved.append((self._centred[kind], here, reports, values))
        self._slope = np.array([design.slope for design in self._centred])
        self._load: Indices = np.zeros(layout.outputs, dtype=np.int64)
        for design, _, reports, _ in self._moved:
            self._load[reports] = design.load
        # What `quadratic` is for each report of a block whose design is not moved.
        self._constant: Floats = -self._tables.high * self._tables.low
        self._all_moved = not self._constant[~self._is_moved].any()

    @cached_property
    def _ends(self) -> Floats:
        """The `CentredDesign.ends` of all kinds, `(2, rows)`."""
        return np.concatenate([design.ends for design in self._centred], axis=1)

    @cached_property
    def _noise(self) -> Floats:
        """The `CentredDesign.noise` of all kinds, `(3, rows)`."""
        return np.concatenate([design.noise for design in self._centred], axis=1)

    def decode_each(self, weights: Floats) -> Floats:
        decoded: Floats = super().decode_each(weights)
        for design, _, reports, values in self._moved:
            decoded[:, reports] += weights[:, values].sum(axis=2)[..., None] * design.moved
        return decoded

    def decode_values(self, statistic: Statistic) -> Decoded:
        """Return the totals, and what their squares have beside `slope` times these.

        With u for what a report that does not support x decodes to, `h_x` is u, or `u + step` at
        reports that support x. How many of these there are follows from the total; the sum of their
        loads takes a transform, exact like that of the counts.
        """
        layout, reports = self._layout, self.group_reports(statistic)
        rows = np.stack([statistic, statistic * self._load])
        supporting, loads = self._sum(self._to_values, rows)
        starts: Floats = self._tables.low[layout.kinds] * reports
        if self._all_moved:
            quadratic = np.zeros(self._row.size)
        else:
            quadratic = self._in_block(self._constant[layout.kinds] * reports, slice(None))
        for design, blocks, of_blocks, values in self._moved:
            started, squares = (statistic[of_blocks] @ design.of_reports).T
            starts[blocks] = started
            of_values = design.of_load * loads[of_blocks[:, : values.shape[1]]]
            quadratic[values] = of_values + squares[:, None]
        return Decoded(statistic, self._totals(supporting, starts), reports, quadratic)

    def moments(self, decoded: Decoded, at: slice | Integers) -> Floats:
        """Return the sums of the squares, which need no transform beside that of `Decoded`."""
        assert decoded.quadratic is not None, "decode_values computes it"
        moments: Floats = self._slope[self._kind(at)] * decoded.totals[at]
        moments += decoded.quadratic[at]
        return moments

    def single_values(self, decoded: Decoded, at: slice | Integers) -> SingleValues:
        moments = self.moments(decoded, at)
        least, largest = self._ends[:, self._row[at]]
        at_value, *extremes = self.noise_levels(at)
        quietest, noisiest = np.minimum(at_value, extremes[0]), np.maximum(at_value, extremes[1])
        return SingleValues(moments, least, largest, quietest, noisiest)

    def extremes(self) -> tuple[Floats, Floats]:
        least, largest = self._ends[:, self._row]
        return least, largest

    def noise_extremes(self) -> tuple[Floats, Floats]:
        at_value, least, largest = self.noise_levels(slice(None))
        return np.minimum(at_value, least), np.maximum(at_value, largest)

    def noise_levels(self, at: slice | Integers) -> tuple[Floats, Floats, Floats]:
        at_value, least, largest = self._noise[:, self._row[at]]
        return at_value, least, largest

    def uniform_moments(self, at: slice | Integers) -> Floats:
        moments = np.array([design.uniform_moment for design in self._centred])
        return np.asarray(moments[self._kind(at)])

    def output_mass(self, ones: Floats) -> Floats:
        plain = ones.copy()
        for design, _, reports, values in self._moved:
            plain[reports] -= values.shape[1] * design.moved
        return super().output_mass(plain)
