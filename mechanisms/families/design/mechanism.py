"""Mechanisms that realise a symmetric design inside each block, and the simplest of them.

Randomised response among all values of a block (docs/theory.md section 8) reports the block
exactly. Inside it the value itself is reported with probability `T / 2^64`,
and the other values of the block are equally likely: k-ary randomised response (Kairouz, Bonawitz,
Ramage 2016, Section 2), with `T / (2^64 - T) * (k_j - 1) <= e^eps`. It is best if blocks are small
compared with `e^eps`; a block of two values is Warner's channel.
"""

from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.base.lazy import locked_cached_property
from ldpstream.mechanisms.channels.blanket import MOST_BLANKETS, Blanket, of_supports
from ldpstream.mechanisms.channels.permanent_draw import Blend
from ldpstream.mechanisms.exact.dyadic import budget, set_threshold
from ldpstream.mechanisms.exact.entropy import Entropy, bernoulli_each, uniform_below_each
from ldpstream.mechanisms.families.block.mechanism import BlockSymbols
from ldpstream.mechanisms.families.design.decoder import DesignDecoder
from ldpstream.mechanisms.families.design.design import SINGLE, DesignLayout, SymmetricDesign
from ldpstream.mechanisms.families.design.incidence import OWN, Incidence, Own
from ldpstream.mechanisms.interface.chain import BlockChain, blend_of, read_larger
from ldpstream.mechanisms.interface.mechanism import Json, Reports


@dataclass(frozen=True)
class DesignMechanism(BlockSymbols):
    """A mechanism with one design for each size of block; a value alone has one report, no noise.

    Raises:
        SpecError: as for every `BlockMechanism`, and if epsilon is so small that, at the resolution
            of 2^-64, the reports of a block would carry no information.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(design.support.gap <= 0 for design in self.layout.designs):
            raise SpecError("epsilon", "a larger number: at this one reports carry no information")

    @abstractmethod
    def design(self, size: int) -> SymmetricDesign:
        """Return the design for blocks of this many values, two or more."""

    @abstractmethod
    def incidence(self, size: int, /) -> Incidence:
        """Return which reports support which values in blocks of this size."""

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The different sizes of blocks, ascending."""
        return tuple(np.unique(self.blocks.sizes).tolist())

    @cached_property
    def layout(self) -> DesignLayout:
        of_size = {size: self.design(size) if size > 1 else SINGLE for size in self.sizes}
        return DesignLayout.by_size(self.blocks, of_size)

    def row(self, value: int) -> dict[int, Fraction]:
        first, block = int(self.layout.offset[value]), self.blocks.of_value[value]
        design, size = self.layout.designs[self.layout.kinds[block]], int(self.blocks.sizes[block])
        if size == 1:
            return {first: Fraction(1)}
        row = dict.fromkeys(range(first, first + design.order), design.unlikely)
        for report in self.incidence(size).supporting(int(self.blocks.position[value])).tolist():
            row[first + report] = design.likely
        return row

    def worst_ratio(self) -> Fraction:
        """Return the largest `likely / unlikely` of the designs.

        Every value of a block gives each report one of these two probabilities, and a report that
        supports one value but not another attains their ratio.
        """
        self.layout.check()
        return max(design.ratio for design in self.layout.designs if design.outside)

    def block_blankets(self) -> Collection[Blanket]:
        """Return the blankets of the different designs; of too many, one that bounds them all."""
        designs = [design for design in self.layout.designs if design.outside]
        if len(designs) > MOST_BLANKETS:
            return super().block_blankets()
        return [
            of_supports(d.ratio, Fraction(d.inside, d.order), Fraction(d.overlap, d.order))
            for d in designs
        ]

    def stronger(self, epsilon: float) -> Self:
        """Return the mechanism with another budget and the designs of this one."""
        return replace(self, epsilon=epsilon)

    def chain(self, epsilon: object) -> tuple[Self, BlockChain]:
        permanent = self.stronger(read_larger(epsilon, self.epsilon))
        blends = blends_of(zip(self.layout.designs, permanent.layout.designs, strict=True))
        shared = max((blend.shared_noise for blend in blends.values()), default=0.0)
        return permanent, BlockChain(self.layout.starts, self.layout.orders, blends, shared)

    @locked_cached_property
    def decoder(self) -> DesignDecoder:
        return DesignDecoder(self.layout, [self.incidence(size) for size in self.sizes])


def blends_of(pairs: Iterable[tuple[SymmetricDesign, SymmetricDesign]]) -> dict[int, Blend]:
    """Return, by order, the blends of `(single, permanent)` designs of different budgets."""
    return {
        single.order: blend_of(
            (single.order, single.inside), (permanent.likely, permanent.unlikely), single.likely
        )
        for single, permanent in pairs
        if single.outside
    }


@dataclass(frozen=True)
class RandomizedResponse(DesignMechanism):
    """k-ary randomised response with budget `epsilon` inside each block of a partition."""

    id: ClassVar[str] = "randomized-response"

    def design(self, size: int) -> SymmetricDesign:
        """Return the design in which each report supports only its own value."""
        return SymmetricDesign(size, 1, 0, set_threshold(budget(self.epsilon), 1, size - 1))

    def incidence(self, _: int, /) -> Own:
        """Return `OWN` for every size, since reports are values."""
        return OWN

    def parameters(self) -> Mapping[str, Json]:
        thresholds: list[Json] = [
            {"size": size, "threshold": hex(design.threshold)}
            for size, design in zip(self.sizes, self.layout.designs, strict=True)
            if size > 1
        ]
        return {
            "epsilon": float(self.epsilon),
            "thresholds": thresholds,
            "blocks": {"count": self.blocks.count, "sha256": self.blocks.digest},
        }

    def randomise(self, values: NDArray[np.int64], entropy: Entropy) -> Reports:
        """Randomise values, int64 of shape `(n,)` in `0..k-1`, into reports of shape `(n,)`.

        n words decide which reports are the value itself; n more, and another one for each
        rejection, draw one of the other values of the block.
        """
        layout, block = self.layout, self.blocks.of_value[values]
        keeps = bernoulli_each(entropy, layout.thresholds[block])
        alternatives = layout.orders[block] - 1
        drawn = uniform_below_each(entropy, np.maximum(alternatives, 1))
        place = self.blocks.position[values]
        other = drawn + (drawn >= place)
        return layout.starts[block] + np.where(keeps | (alternatives == 0), place, other)
