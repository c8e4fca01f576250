"""Linear queries of symmetric designs inside blocks, by one transform and two-valued decoders."""

from collections import defaultdict
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
        # Blocks with the same sums are summed together; one of one report is its own sum.
        alike: dict[tuple[Incidence, int], list[int]] = defaultdict(list)
        for kind, (design, incidence) in enumerate(zip(layout.designs, incidences, strict=True)):
            alike[incidence, design.order].append(kind)
        self._starts = {
            kinds[0]: layout.starts[np.isin(layout.kinds, kinds)]
            for (_, order), kinds in alike.items()
            if order > 1
        }
        self._same_sums = len(alike) == 1
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

    def _sum(self, each: Sequence[IncidenceProduct], rows: NDArray[Number]) -> NDArray[Number]:
        """Return the sums of all blocks, each by the transform of its design: `(r, outputs)`."""
        if self._same_sums:
            blocks = rows.reshape(-1, self._layout.designs[0].order)
            return each[0](blocks).reshape(rows.shape)
        out = rows.copy()
        for sums, starts, reports in self._batches(each):
            if len(starts) == 1:
                block = slice(int(starts[0]), int(starts[0]) + reports)
                out[:, block] = sums(rows[:, block])
                continue
            places = starts[:, None] + np.arange(reports)
            summed = sums(rows[:, places].reshape(-1, reports))
            out[:, places] = summed.reshape(len(rows), len(starts), reports)
        return out

    def _in_block(self, sums: NDArray[Number], at: slice | Integers) -> NDArray[Number]:
        """Return the entry of each value's block: `(blocks,)` -> `(q,)`."""
        return sums[self._layout.blocks.of_value[at]]

    def totals(self, statistic: Statistic) -> Floats:
        """Return `(S_x - other N_j)/(own - other)`, S_x the exact number of supporting reports."""
        return self.decode_values(statistic).totals

    def decode_values(self, statistic: Statistic) -> Decoded:
        (supporting,) = self._sum(self._to_values, statistic[None])
        reports = self.group_reports(statistic)
        starts: Floats = self._tables.low[self._layout.kinds] * reports
        return Decoded(statistic, self._totals(supporting, starts), reports)

    def _totals(self, supporting: Statistic, starts: Floats) -> Floats:
        """Return `step S_x` plus what the totals of a block start from, float64 `(blocks,)`."""
        if self._layout.blocks.count == 1:
            alike: Floats = self._tables.step[0] * supporting[: self._place.size]
            alike += starts[0]
            return alike
        step, sums = self._tables.step[self._layout.kinds], np.empty(self._place.size)
        for at in parts(sums.size):
            sums[at] = self._in_block(step, at) * supporting[self._slot(at)]
            sums[at] += self._in_block(starts, at)
        return sums

    def moments(self, decoded: Decoded, at: slice | Integers) -> Floats:
        """Return `high^2 S_x + low^2 (N_j - S_x)`, which needs no transform beside the totals."""
        in_block = self._in_block(decoded.reports, at)
        return self._tables.moments(self._kind(at), decoded.totals[at], in_block)

    def single_values(self, decoded: Decoded, at: slice | Integers) -> SingleValues:
        return self._tables.single_values(self._kind(at), self.moments(decoded, at))

    def extremes(self) -> tuple[Floats, Floats]:
        """Return `low` and `high`; 0 and 1 for a value alone in its block."""
        kinds = self._kind(slice(None))
        return self._tables.low[kinds], self._tables.high[kinds]

    def decode_each(self, weights: Floats) -> Floats:
        """Return `h` with `Q h = w` of each row, from the weights that a report supports and all.

        A block takes one transform for all rows.
        """
        layout, tables = self._layout, self._tables
        if layout.blocks.count == 1:
            whole = _whole(weights)
            placed = np.zeros((len(weights), layout.outputs), whole.dtype)
            placed[:, : self._place.size] = whole
            decoded: Floats = tables.step[0] * self._to_reports[0](placed)
            decoded += (tables.low[0] * weights).sum(axis=1)[:, None]
            return decoded
        placed, moved = np.zeros((len(weights), layout.outputs)), np.empty_like(weights)
        for at in parts(weights.shape[1]):
            kinds = self._kind(at)
            placed[:, self._slot(at)] = tables.step[kinds] * weights[:, at]
            moved[:, at] = tables.low[kinds] * weights[:, at]
        decoded = self._sum(self._to_reports, placed)
        for row, of_values in zip(decoded, moved, strict=True):
            of_block = np.bincount(layout.blocks.of_value, of_values, layout.blocks.count)
            row += np.repeat(of_block, layout.orders)
        return decoded

    def expect_each(self, function: Floats) -> Floats:
        """Return `Q f` of each row, from its sums over a block and over what supports a value.

        A block takes one transform for all rows.
        """
        supporting = self._sum(self._to_values, function)
        if self._layout.blocks.count == 1:
            alike: Floats = self._excess[0] * supporting[:, : self._place.size]
            alike += self._unlikely[0] * function.sum(axis=1)[:, None]
            return alike
        in_block = np.add.reduceat(function, self.reports.starts, axis=1)
        means = np.empty((len(function), self._place.size))
        for at in parts(means.shape[1]):
            kinds, of_block = self._kind(at), in_block[:, self._layout.blocks.of_value[at]]
            sums = self._excess[kinds] * supporting[:, self._slot(at)]
            means[:, at] = self._unlikely[kinds] * of_block + sums
        return means

    def decode(self, weights: Floats) -> Floats:
        (decoded,) = self.decode_each(weights[None])
        return np.asarray(decoded)

    def expect(self, function: Floats) -> Floats:
        (means,) = self.expect_each(np.asarray(function, dtype=np.float64)[None])
        return np.asarray(means)

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
