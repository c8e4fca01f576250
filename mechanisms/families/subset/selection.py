"""Subset selection inside blocks (docs/theory.md section 8).

Ye, Barg 2018, *Optimal Schemes for Discrete Distribution Estimation under Locally Differential
Privacy* (also found by Wang et al. 2016): the block is reported exactly, and inside it a random
subset of `d` values that holds the user's value with probability `T / 2^64`. No channel with the
same epsilon has less variance for a histogram of uniform values. Unlike the paper's, this mechanism
works inside blocks, rounds the probability toward privacy, and chooses d by the exact variance that
follows.
"""

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import comb
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.base.lazy import locked_cached_property
from ldpstream.mechanisms.channels.blanket import MOST_BLANKETS, Blanket, of_supports
from ldpstream.mechanisms.channels.channel import MOST_WORK, Channel, refuse_large
from ldpstream.mechanisms.channels.permanent_draw import Blend
from ldpstream.mechanisms.exact.dyadic import budget
from ldpstream.mechanisms.exact.entropy import Entropy, bernoulli_each, bernoulli_rational
from ldpstream.mechanisms.families.block.mechanism import BlockMechanism
from ldpstream.mechanisms.families.subset.subsets import (
    Payload,
    SubsetDecoder,
    SubsetLayout,
    Subsets,
    best_subsets,
    draw_subsets,
    stronger_subsets,
)
from ldpstream.mechanisms.interface.chain import BlendChain, blend_of, read_larger
from ldpstream.mechanisms.interface.mechanism import Mechanism, Reports, Statistic

MAX_BLOCK = 8192
"""Largest block: a report holds a bit, and a draw takes a random key, for each of its values."""


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
        """Return all reports, block by block, subsets in lexicographic order of their places."""
        refuse_large(self.size, self.entries)
        rows = []
        for block, kind in enumerate(self.layout.kinds.tolist()):
            subsets = self.subsets[kind]
            members = np.array(list(combinations(range(subsets.size), subsets.chosen)))
            chosen = np.zeros((len(members), subsets.size), dtype=np.bool_)
            np.put_along_axis(chosen, members, values=True, axis=1)
            numbers = np.full(len(members), block, dtype=np.int64)
            rows.append(self.layout.write(numbers, self.layout.pack(chosen)))
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

    def accumulate_times(
        self, statistic: Statistic, reports: Reports, times: NDArray[np.int64]
    ) -> None:
        if len(reports):
            statistic += self.layout.count(reports, times)


@dataclass(frozen=True)
class SubsetSelection(BlockMechanism, SubsetReports):
    """Subset selection with budget `epsilon` inside each block of a partition.

    Raises:
        SpecError: as for every `BlockMechanism`, and if a block is too large, or epsilon is so
            small that, at the resolution of 2^-64, the reports of a block carry no information.
    """

    id: ClassVar[str] = "subset-selection"

    def __post_init__(self) -> None:
        super().__post_init__()
        largest = int(self.blocks.sizes.max())
        if largest > MAX_BLOCK:
            raise SpecError(
                "domain.blocks",
                f"blocks of at most {MAX_BLOCK} values with {self.id}, whose reports hold a bit "
                f"for each (projective-geometry sends a number), got one of {largest}",
            )
        if any(subsets.support.gap <= 0 for subsets in self.subsets):
            raise SpecError("epsilon", "a larger number: at this one reports carry no information")

    @cached_property
    def subsets(self) -> tuple[Subsets, ...]:
        sizes = np.unique(self.blocks.sizes).tolist()
        return tuple(best_subsets(budget(self.epsilon), size) for size in sizes)

    @cached_property
    def layout(self) -> SubsetLayout:
        return SubsetLayout(self.blocks, self.subsets)

    def parameters(self) -> Mapping[str, Json]:
        subsets: list[Json] = [
            {"size": s.size, "chosen": s.chosen, "threshold": hex(s.threshold)}
            for s in self.subsets
            if s.size > 1
        ]
        return {
            "epsilon": float(self.epsilon),
            "subsets": subsets,
            "blocks": {"count": self.blocks.count, "sha256": self.blocks.digest},
        }

    def channel(self) -> Channel:
        refuse_large(self.size, self.entries)
        rows: list[dict[int, Fraction]] = [{} for _ in range(self.size)]
        output = 0
        for block, kind in enumerate(self.layout.kinds.tolist()):
            values, subsets = np.flatnonzero(self.blocks.of_value == block), self.subsets[kind]
            # A value alone is in every subset, so that no subset is unlikely.
            unlikely = subsets.unlikely if subsets.size > 1 else Fraction(0)
            for members in combinations(range(subsets.size), subsets.chosen):
                for place, value in enumerate(values.tolist()):
                    rows[value][output] = subsets.likely if place in members else unlikely
                output += 1
        return Channel(tuple(rows), output)

    @property
    def entries(self) -> int:
        blocks = np.bincount(self.layout.kinds).tolist()
        subsets = zip(blocks, self.subsets, strict=True)
        return sum(count * s.size * comb(s.size, s.chosen) for count, s in subsets)

    @property
    def listable(self) -> bool:
        """Whether certificates enumerate the channel: up to 64 values with few enough subsets."""
        return super().listable and self.entries <= MOST_WORK

    def worst_ratio(self) -> Fraction:
        """Return the largest ratio of a subset's two probabilities.

        A subset's probability for a value depends only on whether the subset holds the value, and
        of two values a subset may hold only one.
        """
        return max(subsets.ratio for subsets in self.subsets if subsets.size > 1)

    def block_blankets(self) -> Collection[Blanket]:
        """Return the blankets of all block sizes; of too many, one that bounds them all."""
        several = [one for one in self.subsets if one.size > 1]
        if len(several) > MOST_BLANKETS:
            return super().block_blankets()
        return [of_supports(one.ratio, *one.shares) for one in several]

    def randomise(self, values: NDArray[np.int64], entropy: Entropy) -> Reports:
        """Randomise values, int64 `(n,)` in `0..k-1`, into reports, uint8 `(n, report_bytes)`.

        n words decide which reports hold the user's value. Then, by ascending size of block, the
        subsets of all values in blocks of that size are drawn. The rows are the encoded reports.
        """
        layout, block = self.layout, self.blocks.of_value[values]
        supporting = bernoulli_each(entropy, layout.thresholds[block])
        place, kinds = self.blocks.position[values], layout.kinds[block]
        masks = np.zeros((len(values), layout.mask_bytes), dtype=np.uint8)
        for kind in np.unique(kinds).tolist() if len(self.subsets) > 1 else [0]:
            here, subsets = np.flatnonzero(kinds == kind), self.subsets[kind]
            if subsets.size > 1:
                masks[here] = layout.pack(
                    draw_subsets(entropy, subsets, place[here], supporting[here])
                )
            else:
                masks[here, 0] = 1
        return layout.write(block, masks)

    def chain(self, epsilon: object) -> tuple["SubsetSelection", "SubsetChain"]:
        """Return the mechanism of a permanent draw, and the chain from it to reports.

        Permanent subsets have the same sizes; those that hold the value are the likely ones. A
        report is the permanent subset or a uniform one.
        """
        permanent = PermanentSubsetSelection(read_larger(epsilon, self.epsilon), self.blocks, self)
        blends = {
            single.size: blend_of(
                (comb(single.size, single.chosen), comb(single.size - 1, single.chosen - 1)),
                (stronger.likely, stronger.unlikely),
                single.likely,
            )
            for single, stronger in zip(self.subsets, permanent.subsets, strict=True)
            if single.size > 1
        }
        return permanent, SubsetChain(self.layout, self.subsets, blends)

    @locked_cached_property
    def decoder(self) -> SubsetDecoder:
        return SubsetDecoder(self.layout, self.subsets)


@dataclass(frozen=True)
class PermanentSubsetSelection(SubsetSelection):
    """The mechanism of a permanent draw: a larger budget, subset sizes as in `like`."""

    like: SubsetSelection

    @cached_property
    def subsets(self) -> tuple[Subsets, ...]:
        return tuple(
            stronger_subsets(budget(self.epsilon), subsets) for subsets in self.like.subsets
        )


@dataclass(frozen=True, eq=False)
class SubsetChain(BlendChain):
    """The chain of `subset-selection`: a report stays, or becomes a uniform subset of its block.

    `subsets` are those of each different size of block, ascending, and `blends` belong to them, by
    size; a value alone in its block has one report.
    """

    layout: SubsetLayout
    subsets: Sequence[Subsets]
    blends: Mapping[int, Blend]

    @property
    def shared_noise(self) -> float:
        return max((blend.shared_noise for blend in self.blends.values()), default=0.0)

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
