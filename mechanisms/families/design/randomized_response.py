"""Randomised response among all values of a block (docs/theory.md section 8).

The block is reported exactly. Inside it the value itself is reported with probability `T / 2^64`,
and the other values of the block are equally likely: k-ary randomised response (Kairouz, Bonawitz,
Ramage 2016, Section 2), with `T / (2^64 - T) * (k_j - 1) <= e^eps`. It is best if blocks are small
compared with `e^eps`; a block of two values is Warner's channel.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.exact.dyadic import budget, set_threshold
from ldpstream.mechanisms.exact.entropy import Entropy, bernoulli_each, uniform_below_each
from ldpstream.mechanisms.families.design.design import SymmetricDesign
from ldpstream.mechanisms.families.design.incidence import OWN, Own
from ldpstream.mechanisms.families.design.mechanism import DesignMechanism
from ldpstream.mechanisms.interface.mechanism import Json, Reports


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
        own = bernoulli_each(entropy, layout.thresholds[block])
        others = layout.orders[block] - 1
        drawn = uniform_below_each(entropy, np.maximum(others, 1))
        place = self.blocks.position[values]
        other = drawn + (drawn >= place)
        return layout.starts[block] + np.where(own | (others == 0), place, other)
