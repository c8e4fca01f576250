"""Reports that hold a subset of the values of a block: their bytes and their counts."""

from abc import abstractmethod
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.channels.channel import refuse_large
from ldpstream.mechanisms.families.subset.subsets import SubsetLayout, Subsets
from ldpstream.mechanisms.interface.mechanism import Mechanism, Reports, Statistic


class SubsetReports(Mechanism):
    """Encoding and statistic shared by all mechanisms that report a block and a subset of it."""

    @property
    @abstractmethod
    def subsets(self) -> Sequence[Subsets]:
        """The subsets of each different size of block, by ascending size."""

    @property
    @abstractmethod
    def layout(self) -> SubsetLayout:
        """The form of reports and statistics."""

    @property
    @abstractmethod
    def entries(self) -> int:
        """Number of probabilities of the channel, which may exceed the range of floats."""

    @property
    def report_bytes(self) -> int:
        """Length of a report: the block's number, and a bit for each value of the largest block."""
        return self.layout.report_bytes

    @property
    def report_bits(self) -> int:
        """Number of bits in use: those of the block's number, and one for each value."""
        return (self.layout.blocks.count - 1).bit_length() + int(self.layout.blocks.sizes.max())

    @property
    def statistic_size(self) -> int:
        """Length of the statistic: one count for each value and one for each block."""
        return self.size + self.layout.blocks.count

    def possible_reports(self) -> Reports:
        """Return all reports, block by block, with subsets in lexicographic order of their places.

        Raises:
            ValueError: if the channel holds more than 2^20 probabilities.
        """
        refuse_large(self.size, self.entries)
        rows = []
        for block, kind in enumerate(self.layout.kinds.tolist()):
            subsets = self.subsets[kind]
            members = np.array(list(combinations(range(subsets.size), subsets.chosen)))
            taken = np.zeros((len(members), subsets.size), dtype=np.bool_)
            np.put_along_axis(taken, members, values=True, axis=1)
            numbers = np.full(len(members), block, dtype=np.int64)
            rows.append(self.layout.write(numbers, self.layout.pack(taken)))
        return np.concatenate(rows)

    def encode(self, reports: Reports) -> NDArray[np.uint8]:
        encoded: NDArray[np.uint8] = reports
        return encoded

    def decode(self, payload: NDArray[np.uint8]) -> tuple[Reports, NDArray[np.bool_]]:
        """Return the rows unchanged, and which of them are reports, bool `(n,)`.

        In a report the block exists, and the mask holds d bits, all of values of the block.
        """
        return payload, self.layout.valid(payload)

    def accumulate(self, statistic: Statistic, reports: Reports) -> None:
        if len(reports):
            statistic += self.layout.count(reports)
