"""Linear queries of symmetric designs inside blocks, by one transform and two-valued decoders."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Floats, Indices, Integers
from ldpstream.mechanisms.exact.walsh import Number
from ldpstream.mechanisms.families.block.decoder import DisclosedBlocks
from ldpstream.mechanisms.families.design.design import DesignLayout, SupportTables
from ldpstream.mechanisms.families.design.incidence import Incidence, IncidenceProduct
from ldpstream.mechanisms.interface.decoder import Decoded, SingleValues, Statistic, parts
from ldpstream.mechanisms.interface.symbols import MassDecoder

_MAX_BATCH = 1 << 22
_FEW = 1 << 31


class DesignDecoder(DisclosedBlocks, MassDecoder):
    """`h_x` is `high` at reports that support x, `low` at the rest of x's block, 0 elsewhere.

    The value at place i of a block has number i among the block's reports. `incidences` holds one
    incidence for each design of the layout.
    """

    def __init__(self, layout: DesignLayout, incidences: Sequence[Incidence]) -> None:
        # Only designs other than randomised response need memory for their transforms.
        self.scratch = 2.0 if all(d.inside == 1 for d in layout.designs) else 8.0
        self._layout = self.reports = layout
        self._to_values: list[IncidenceProduct] = [incidence.to_values for incidence in incidences]
        self._to_reports: list[IncidenceProduct] = [
            incidence.to_reports for incidence in incidences
        ]
        self._place = layout.blocks.position
        self._tables = SupportTables.of([d.support for d in layout.designs])
        self._unlikely = np.array([float(d.unlikely) for d in layout.designs])
        self._excess = np.array([float(d.likely - d.unlikely) for d in layout.designs])
        # A block of one report is its own sum.
        self._starts = {
            kind: layout.starts[layout.kinds == kind]
            for kind, design in enumerate(layout.designs)
            if design.order > 1
        }
        if layout.blocks.count == 1:
            self.step = float(self._tables.step[0])

    def _kind(self, at: slice | Integers) -> Indices:
        """Return the number of each value's design."""
        return self._layout.kinds[self._layout.blocks.of_value[at]]

    def _slot(self, at: slice | Integers) -> Indices:
        """Return the report with the same place in its block as each value."""
        return self._layout.offset[at] + self._place[at]

    def _batches(
        self, each: Sequence[IncidenceProduct]
    ) -> Iterator[tuple[IncidenceProduct, Indices, int]]:
        """Yield each transform with the first reports of its blocks, and their order, above 1."""
        for kind, starts in self._starts.items():
            order = self._layout.designs[kind].order
            step = max(1, _MAX_BATCH // order)
            for first in range(0, len(starts), step):
                yield each[kind], starts[first : first + step], order

    def _sum(self, each: Sequence[IncidenceProduct], vector: NDArray[Number]) -> NDArray[Number]:
        """Return the sums of all blocks, each by the transform of its design."""
        if self.step is not None:
            (alone,) = each[0](vector[None])
            return np.asarray(alone)
        out = vector.copy()
        for sums, starts, reports in self._batches(each):
            if len(starts) == 1:
                block = slice(int(starts[0]), int(starts[0]) + reports)
                out[block] = sums(vector[None, block])[0]
            else:
                places = starts[:, None] + np.arange(reports)
                out[places] = sums(vector[places])
        return out

    def _in_block(self, sums: NDArray[Number], at: slice | Integers) -> NDArray[Number]:
        """Return the entry of each value's block: `(blocks,)` -> `(q,)`."""
        return sums[self._layout.blocks.of_value[at]]

    def totals(self, statistic: Statistic) -> Floats:
        """Return `(S_x - other N_j)/(own - other)`, S_x the exact number of supporting reports."""
        supporting = self._sum(self._to_values, statistic)
        in_block, tables = self.group_reports(statistic), self._tables
        if self.step is not None:
            alike: Floats = tables.step[0] * supporting[: self._place.size]
            alike += tables.low[0] * in_block[0]
            return alike
        sums = np.empty(self._place.size)
        for at in parts(sums.size):
            of_block = self._in_block(in_block, at)
            sums[at] = tables.totals(self._kind(at), supporting[self._slot(at)], of_block)
        return sums

    def second_moments(self, statistic: Statistic) -> Floats:
        """Return `high^2 S_x + low^2 (N_j - S_x)`."""
        supporting = self._sum(self._to_values, statistic)
        in_block = self.group_reports(statistic)
        every = slice(None)
        counts, of_block = supporting[self._slot(every)], self._in_block(in_block, every)
        return self._tables.single_values(self._kind(every), counts, of_block).second_moments

    def single_values(self, decoded: Decoded, at: slice | Integers) -> SingleValues:
        """Return what bounds are computed from; S_x follows from shares without a transform."""
        kinds, in_block = self._kind(at), self._in_block(decoded.reports, at)
        supporting = self._tables.supporting(kinds, decoded.shares[at], in_block)
        return self._tables.single_values(kinds, supporting, in_block)

    def extremes(self) -> tuple[Floats, Floats]:
        """Return `low` and `high`; 0 and 1 for a value alone in its block."""
        kinds = self._kind(slice(None))
        return self._tables.low[kinds], self._tables.high[kinds]

    def decode_each(self, weights: Floats) -> Floats:
        """Return `decode` of each row; a block takes one transform for all rows."""
        if self.step is None:
            return self._decode_in_blocks(weights)
        whole = _whole(weights)
        placed = np.zeros((len(weights), self._layout.outputs), whole.dtype)
        placed[:, : self._place.size] = whole
        decoded: Floats = self._tables.step[0] * self._to_reports[0](placed)
        decoded += (self._tables.low[0] * weights).sum(axis=1)[:, None]
        return decoded

    def expect_each(self, functions: Floats) -> Floats:
        """Return `expect` of each row; a block takes one transform for all rows."""
        if self.step is None:
            return self._expect_in_blocks(functions)
        supporting = self._to_values[0](functions)[:, : self._place.size]
        means: Floats = self._excess[0] * supporting
        means += self._unlikely[0] * functions.sum(axis=1)[:, None]
        return means

    def _sum_rows(self, each: Sequence[IncidenceProduct], rows: Floats) -> Floats:
        """Do the same as `_sum` for several vectors, `(r, outputs)`."""
        out = rows.copy()
        for sums, starts, reports in self._batches(each):
            places = starts[:, None] + np.arange(reports)
            summed = sums(rows[:, places].reshape(-1, reports))
            out[:, places] = summed.reshape(len(rows), len(starts), reports)
        return out

    def _decode_in_blocks(self, weights: Floats) -> Floats:
        if len(weights) == 1:
            return super().decode_each(weights)
        layout, every = self._layout, slice(None)
        kinds, count = self._kind(every), layout.blocks.count
        placed = np.zeros((len(weights), layout.outputs))
        placed[:, self._slot(every)] = self._tables.step[kinds] * weights
        # One count for all rows, each with blocks of its own.
        blocks = layout.blocks.of_value + count * np.arange(len(weights))[:, None]
        moved = (self._tables.low[kinds] * weights).ravel()
        of_block = np.bincount(blocks.ravel(), moved, count * len(weights))
        decoded = self._sum_rows(self._to_reports, placed)
        decoded += np.repeat(of_block.reshape(len(weights), count), layout.orders, axis=1)
        return decoded

    def _expect_in_blocks(self, functions: Floats) -> Floats:
        if len(functions) == 1:
            return super().expect_each(functions)
        every = slice(None)
        kinds = self._kind(every)
        in_block = np.add.reduceat(functions, self.reports.starts, axis=1)
        means: Floats = self._unlikely[kinds] * in_block[:, self._layout.blocks.of_value]
        supporting = self._sum_rows(self._to_values, functions)
        means += self._excess[kinds] * supporting[:, self._slot(every)]
        return means

    def decode(self, weights: Floats) -> Floats:
        """Return `h` with `Q h = weights`, from the weights that each report supports and all."""
        layout = self._layout
        if self.step is not None:
            (alike,) = self.decode_each(weights[None])
            return np.asarray(alike)
        placed, moved = np.zeros(layout.outputs), np.empty(weights.size)
        for at in parts(weights.size):
            kinds = self._kind(at)
            placed[self._slot(at)] = self._tables.step[kinds] * weights[at]
            moved[at] = self._tables.low[kinds] * weights[at]
        of_block = np.bincount(layout.blocks.of_value, moved, layout.blocks.count)
        decoded: Floats = self._sum(self._to_reports, placed)
        decoded += np.repeat(of_block, layout.orders)
        return decoded

    def expect(self, function: Floats) -> Floats:
        """Return `Q f`, from the sums over each block and over the reports that support a value."""
        reports = np.asarray(function, dtype=np.float64)
        if self.step is not None:
            (alike,) = self.expect_each(reports[None])
            return np.asarray(alike)
        supporting = self._sum(self._to_values, reports)
        in_block = np.add.reduceat(reports, self.reports.starts)
        means = np.empty(self._place.size)
        for at in parts(means.size):
            kinds, sums = self._kind(at), supporting[self._slot(at)]
            of_block = self._in_block(in_block, at)
            means[at] = self._unlikely[kinds] * of_block + self._excess[kinds] * sums
        return means

    def noise_levels(self, at: slice | Integers) -> tuple[Floats, Floats, Floats]:
        """Return the noise of users of each value, and the least and largest of its block's."""
        return self._tables.noise_levels(self._kind(at))

    def uniform_moments(self, at: slice | Integers) -> Floats:
        """Return the mean of `h_x^2` over the reports of the block of each value."""
        shares = [design.inside / design.order for design in self._layout.designs]
        return self._tables.uniform_moments(self._kind(at), shares)

    def output_mass(self, ones: Floats) -> Floats:
        """Return each report's mass, from the number of values that it supports."""
        layout, tables = self._layout, self._tables
        kinds, sizes = layout.kinds, layout.blocks.sizes
        # `ones` is low + step for each value that the report supports, and low for each other.
        each = self._excess[kinds] / tables.step[kinds]
        least: Floats = (self._unlikely[kinds] - each * tables.low[kinds]) * sizes
        if self.step is not None:
            alike: Floats = each[0] * ones
            alike += least[0]
            return alike
        return np.repeat(least, layout.orders) + np.repeat(each, layout.orders) * ones

    def noise_extremes(self) -> tuple[Floats, Floats]:
        """Return the smaller and the larger of the noise of the value's own users and of others."""
        return self._tables.noise_extremes(self._kind(slice(None)))


def _whole(weights: Floats) -> NDArray[Any]:
    """Return weights as int32, which takes half the memory, if they are whole with small sums."""
    if weights.min() < 0.0 or weights.sum(axis=1).max() >= _FEW:
        return weights
    whole = weights.astype(np.int32)
    return whole if (whole == weights).all() else weights
