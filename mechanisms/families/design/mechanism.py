"""Base class of mechanisms that realise a symmetric design inside each block."""

from abc import abstractmethod
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Self

import numpy as np

from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.base.lazy import locked_cached_property
from ldpstream.mechanisms.channels.blanket import MOST_BLANKETS, Blanket, of_supports
from ldpstream.mechanisms.channels.permanent_draw import Blend
from ldpstream.mechanisms.families.block.mechanism import BlockSymbols
from ldpstream.mechanisms.families.design.decoder import DesignDecoder
from ldpstream.mechanisms.families.design.design import SINGLE, DesignLayout, SymmetricDesign
from ldpstream.mechanisms.families.design.incidence import Incidence
from ldpstream.mechanisms.interface.chain import BlockChain, blend_of, read_larger


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
        return DesignLayout(self.blocks, of_size)

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
        pairs = zip(self.layout.designs, permanent.layout.designs, strict=True)
        return permanent, BlockChain(self.layout.starts, self.layout.orders, blends_of(pairs))

    @locked_cached_property
    def decoder(self) -> DesignDecoder:
        return DesignDecoder(self.layout, [self.incidence(size) for size in self.sizes])


def blends_of(pairs: Iterable[tuple[SymmetricDesign, SymmetricDesign]]) -> dict[int, Blend]:
    """Return, by order, the blends of `(once, held)` designs that differ only in their budgets."""
    return {
        once.order: blend_of((once.order, once.inside), (held.likely, held.unlikely), once.likely)
        for once, held in pairs
        if once.outside
    }
