"""Base classes of mechanisms that protect values inside blocks ([CA] Section 6).

The block is reported exactly; inside it the value is protected by epsilon. A single block is
classical local differential privacy (docs/theory.md section 3).
"""

from abc import abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Self

from ldpstream.mechanisms.base.checks import read_epsilon
from ldpstream.mechanisms.base.errors import SpecError, within
from ldpstream.mechanisms.base.texts import count
from ldpstream.mechanisms.channels.blanket import Blanket, any_channel
from ldpstream.mechanisms.channels.certificate import (
    ENUMERATION_LIMIT,
    Certificate,
    certify_by_enumeration,
    certify_by_structure,
)
from ldpstream.mechanisms.channels.channel import Channel, refuse_large
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.exact.dyadic import budget
from ldpstream.mechanisms.families.block.decoder import ReportLayout
from ldpstream.mechanisms.interface.mechanism import Json, Mechanism
from ldpstream.mechanisms.interface.settings import Settings
from ldpstream.mechanisms.interface.symbols import SymbolMechanism
from ldpstream.mechanisms.policies.policy import BlockPolicy


@dataclass(frozen=True)
class BlockMechanism(Mechanism):
    """A budget `epsilon` inside each block of a partition.

    Raises:
        SpecError: if epsilon is not a finite number above 0, or every block holds a single value,
            so that nothing is protected.
    """

    epsilon: float
    blocks: Blocks

    def __post_init__(self) -> None:
        read_epsilon(self.epsilon, "epsilon")
        if self.blocks.sizes.max() < 2:
            raise SpecError("domain.blocks", "a block of two or more values: none is protected now")

    @classmethod
    def configure(cls, settings: Settings) -> Self:
        """Build the mechanism from a collection's keys; without `blocks` all values are in one."""
        settings.only(cls.id, "epsilon", "blocks")
        epsilon = settings.read_epsilon()
        blocks = settings.blocks or Blocks.one(settings.domain.size)
        with within(settings.path):
            return cls(epsilon, blocks)

    @cached_property
    def size(self) -> int:
        return self.blocks.size

    @property
    def policy(self) -> BlockPolicy:
        """Epsilon inside blocks, infinity between them."""
        return BlockPolicy(self.epsilon, self.blocks)

    def tables(self) -> Mapping[str, Json]:
        """Return the block of every value as runs of neighbours; nothing if there is one block."""
        return self.blocks.tables()

    @abstractmethod
    def worst_ratio(self) -> Fraction:
        """Return the largest ratio of two values of a block that the construction can produce."""

    @property
    def listable(self) -> bool:
        """Whether certificates enumerate the channel: up to 64 values."""
        return self.size <= ENUMERATION_LIMIT

    def certify(self) -> Certificate:
        """Prove the realised loss: by enumeration if the channel is small, else by structure.

        By structure: blocks own disjoint reports, and `worst_ratio` covers the inside of a block.
        """
        if self.listable:
            return certify_by_enumeration(self.id, self.policy, self.channel(), self.disclosed())
        ratios = {budget(self.epsilon): self.worst_ratio()}
        return certify_by_structure(self.id, self.policy, ratios, self.disclosed())

    def blankets(self) -> Mapping[Fraction, Collection[Blanket]]:
        """Return the blankets of two values of a block, under the one budget epsilon."""
        return {budget(self.epsilon): self.block_blankets()}

    def block_blankets(self) -> Collection[Blanket]:
        """Return the different blankets of blocks; by default the one that hides least."""
        return [any_channel(self.worst_ratio())]

    def disclosed(self) -> list[str]:
        if self.blocks.count == 1:
            return []
        phrases = [f"the value's block, one of {self.blocks.count}"]
        alone = int((self.blocks.sizes == 1).sum())
        if alone:
            whose = "alone in its block" if alone == 1 else "alone in their blocks"
            phrases.append(f"the value itself, for {count(alone, 'value')} {whose}")
        return phrases


class BlockSymbols(BlockMechanism, SymbolMechanism):
    """Block mechanisms whose report is a symbol; each block owns consecutive symbols."""

    @property
    @abstractmethod
    def layout(self) -> ReportLayout:
        """The numbering of each block's reports."""

    @abstractmethod
    def row(self, value: int) -> dict[int, Fraction]:
        """Return the probability of each report of a value, exactly."""

    @cached_property
    def outputs(self) -> int:
        return self.layout.outputs

    def channel(self) -> Channel:
        refuse_large(self.size, int((self.layout.orders * self.blocks.sizes).sum()))
        return Channel(tuple(self.row(value) for value in range(self.size)), self.outputs)
