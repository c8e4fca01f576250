"""Symmetric designs inside blocks, and the numbering of their reports.

A block has `order` reports, of which `inside` support each value and `overlap` support both of any
two values. A report supports its user's value with probability `T / 2^64`, and is uniform over the
reports that do, or over those that do not. Randomised response is the design `(k, 1, 0)`;
projective geometry response is that of points and hyperplanes (docs/theory.md section 8).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from ldpstream.mechanisms.base.arrays import Indices
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.exact.entropy import WORD, Words
from ldpstream.mechanisms.families.block.layout import ReportLayout
from ldpstream.mechanisms.families.design.support import ALONE, Support


@dataclass(frozen=True)
class SymmetricDesign:
    """A design with its realised threshold T: `order`, `inside` and `overlap` as above."""

    order: int
    inside: int
    overlap: int
    threshold: int

    @property
    def outside(self) -> int:
        """Number of reports that do not support a given value."""
        return self.order - self.inside

    @cached_property
    def support(self) -> Support:
        """How often a report supports its user's value, and any other value."""
        if self.outside == 0:
            return ALONE
        own = Fraction(self.threshold, WORD)
        kept = Fraction(self.overlap, self.inside)
        won = Fraction(self.inside - self.overlap, self.outside)
        return Support(own, own * kept + (1 - own) * won)

    @property
    def likely(self) -> Fraction:
        """Probability of each report that supports the user's value."""
        return Fraction(self.threshold, WORD * self.inside)

    @property
    def unlikely(self) -> Fraction:
        """Probability of each report that does not support it; 0 if there is none."""
        return Fraction(WORD - self.threshold, WORD * max(1, self.outside))

    @property
    def ratio(self) -> Fraction:
        """The largest ratio of the probabilities of a report for two values."""
        return self.likely / self.unlikely


SINGLE = SymmetricDesign(order=1, inside=1, overlap=0, threshold=WORD)
"""A value alone in its block: one report, no noise."""


class DesignLayout(ReportLayout):
    """The tables with which reports are drawn and decoded.

    `designs` are the different designs, by ascending size of block. For each block, `kinds`, int64
    `(blocks,)`, is the number of its design, and `thresholds`, uint64 `(blocks,)`, its T (2^64 - 1
    for a value alone, where it is never used). For each value, `offset`, int64 `(k,)`, is its
    block's first report.
    """

    def __init__(self, blocks: Blocks, of_size: Mapping[int, SymmetricDesign]) -> None:
        sizes = sorted(of_size)
        self.designs = tuple(of_size[size] for size in sizes)
        self.kinds: Indices = np.searchsorted(np.array(sizes), blocks.sizes)
        orders = np.array([d.order for d in self.designs], dtype=np.int64)
        super().__init__(blocks, orders[self.kinds])
        self.offset: Indices = self.starts[blocks.of_value]
        thresholds = [min(d.threshold, WORD - 1) for d in self.designs]
        self.thresholds: Words = np.array(thresholds, dtype=np.uint64)[self.kinds]

    def check(self) -> None:
        """Check what the proof by structure assumes of the tables.

        Raises:
            ValueError: if blocks overlap, or one has fewer reports than values.
        """
        sound = (
            self.apart
            and bool(np.all(self.orders >= self.blocks.sizes))
            and bool(np.all((self.orders == 1) == (self.blocks.sizes == 1)))
            and bool(np.all(self.offset == self.starts[self.blocks.of_value]))
        )
        if not sound:
            raise ValueError("the tables of the designs are not what their proof assumes")
