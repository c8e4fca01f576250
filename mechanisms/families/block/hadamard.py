"""Hadamard response inside blocks ([CA] Section 6; docs/theory.md section 3).

The block is reported exactly. Inside block j of k_j values there are `K_j = 2^ceil(log2(k_j + 1))`
positions; the value at place i reports a uniform position of sign +1 in Sylvester's row i + 1 with
probability `e^eps / (e^eps + 1)`, and of sign -1 otherwise. A block of one value needs no noise:
K_j = 1. With a single block this is classical local differential privacy.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.base.lazy import locked_cached_property
from ldpstream.mechanisms.channels.blanket import Blanket, of_supports
from ldpstream.mechanisms.exact.dyadic import SMALLEST_EPSILON, budget, sign_threshold
from ldpstream.mechanisms.exact.entropy import WORD, Entropy
from ldpstream.mechanisms.exact.walsh import move_to_sign, positive
from ldpstream.mechanisms.families.block.decoder import BlockDecoder, BlockLayout
from ldpstream.mechanisms.families.block.mechanism import BlockSymbols
from ldpstream.mechanisms.interface.chain import BlockChain, blend_of, read_larger
from ldpstream.mechanisms.interface.mechanism import Json, Reports


@dataclass(frozen=True)
class BlockHadamard(BlockSymbols):
    """Hadamard response with budget `epsilon` inside each block of a partition.

    Raises:
        SpecError: as for every `BlockMechanism`, and if epsilon is so small that reports carry no
            information.
    """

    id: ClassVar[str] = "block-hadamard"

    def __post_init__(self) -> None:
        super().__post_init__()
        if 2 * self.threshold <= WORD:
            raise SpecError("epsilon", f"a number of at least {SMALLEST_EPSILON}")

    @cached_property
    def threshold(self) -> int:
        """Probability of a position with sign +1, in units of 2^-64, rounded toward 1/2."""
        return sign_threshold(budget(self.epsilon))

    @cached_property
    def layout(self) -> BlockLayout:
        return BlockLayout(self.blocks)

    def parameters(self) -> Mapping[str, Json]:
        return {
            "epsilon": float(self.epsilon),
            "threshold": hex(self.threshold),
            "blocks": {"count": self.blocks.count, "sha256": self.blocks.digest},
        }

    def row(self, value: int) -> dict[int, Fraction]:
        layout = self.layout
        order = int(layout.mask[value]) + 1
        first = int(layout.offset[value])
        if order == 1:
            return {first: Fraction(1)}
        signs = positive(layout.row[value], np.arange(order))
        high, low = self.levels(order)
        return {first + y: high if sign else low for y, sign in enumerate(signs)}

    def worst_ratio(self) -> Fraction:
        """Return `threshold / (2^64 - threshold)`.

        Different values of a block have different rows above 0, so that each position has one of
        two probabilities with this ratio, and some position attains it.
        """
        self.layout.check()
        return Fraction(self.threshold, WORD - self.threshold)

    def block_blankets(self) -> Collection[Blanket]:
        """Return the blanket of all blocks: two rows share a quarter of the positions as +1."""
        return [of_supports(self.worst_ratio(), Fraction(1, 2), Fraction(1, 4))]

    def randomise(self, values: NDArray[np.int64], entropy: Entropy) -> Reports:
        """Randomise values, int64 of shape `(n,)` in `0..k-1`, into reports of shape `(n,)`.

        Takes two words for each value: n for the signs, then n for the positions. Sharing a word
        would leave the sign fewer than 64 bits. K_j is a power of two, so that masking a word draws
        uniformly.
        """
        signs, positions = entropy.words(2 * len(values)).reshape(2, -1)
        positive = signs < np.uint64(self.threshold)
        layout = self.layout
        drawn = positions.view(np.int64) & layout.mask[values]
        return layout.offset[values] + move_to_sign(layout.row[values], drawn, positive)

    def chain(self, epsilon: object) -> tuple[Self, BlockChain]:
        permanent = replace(self, epsilon=read_larger(epsilon, self.epsilon))
        orders = {order for order in self.layout.orders.tolist() if order > 1}
        blends = {
            order: blend_of((order, order // 2), permanent.levels(order), self.levels(order)[0])
            for order in orders
        }
        shared = max((blend.shared_noise for blend in blends.values()), default=0.0)
        return permanent, BlockChain(self.layout.starts, self.layout.orders, blends, shared)

    def levels(self, order: int) -> tuple[Fraction, Fraction]:
        """Return the probability of a position with sign +1, and of one with sign -1."""
        high, low = Fraction(2 * self.threshold, WORD * order), Fraction(2, order)
        return high, low - high

    @locked_cached_property
    def decoder(self) -> BlockDecoder:
        return BlockDecoder(self.layout, self.threshold)
