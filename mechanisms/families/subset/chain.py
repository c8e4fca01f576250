"""Chains that keep the permanent subset, or draw a uniform subset of its block."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.channels.held import Blend
from ldpstream.mechanisms.exact.entropy import Entropy, bernoulli_rational
from ldpstream.mechanisms.families.subset.layout import Payload, SubsetLayout
from ldpstream.mechanisms.families.subset.subsets import Subsets, draw_subsets
from ldpstream.mechanisms.interface.chain import Chain


@dataclass(frozen=True, eq=False)
class SubsetChain(Chain):
    """The chain of `subset-selection`: a report stays, or becomes a uniform subset of its block.

    `subsets` are those of each different size of block, ascending, and `blends` belong to them, by
    size; a value alone in its block has one report.
    """

    layout: SubsetLayout
    subsets: Sequence[Subsets]
    blends: Mapping[int, Blend]

    def again(self, reports: Payload, entropy: Entropy) -> Payload:
        """Return the reports that are sent for permanent ones, uint8 `(n, report_bytes)` both.

        By ascending size of block: all reports decide whether they stay, then whether a new subset
        holds the first value of the block, with probability d / size. Then the subsets are drawn,
        also for reports that stay.
        """
        sent, blocks = reports.copy(), self.layout.block_of(reports)
        kinds = self.layout.kinds[blocks]
        for kind in np.unique(kinds).tolist():
            here, subsets = np.flatnonzero(kinds == kind), self.subsets[kind]
            if subsets.size == 1:
                continue
            stays = bernoulli_rational(entropy, self.blends[subsets.size].keep, here.size)
            first = bernoulli_rational(entropy, Fraction(subsets.chosen, subsets.size), here.size)
            places = np.zeros(here.size, dtype=np.int64)
            masks = self.layout.pack(draw_subsets(entropy, subsets, places, first))
            drawn = self.layout.write(blocks[here], masks)
            sent[here] = np.where(stays[:, None], reports[here], drawn)
        return sent

    def canonical(self) -> Sequence[Json]:
        return [[size, str(blend.keep)] for size, blend in sorted(self.blends.items())]

    def ratio(self, reports: int) -> Fraction:
        """Return the exact largest ratio of two values of a block over m >= 1 reports."""
        return max(blend.ratio(reports) for blend in self.blends.values())
