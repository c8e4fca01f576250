"""The policy of records with several attributes, only one of which a report is about.

An attribute is drawn with public probabilities `q_j`, then its value is reported by its own
channel: `P(j, y | x) = q_j Q_j[x_j, y]`. In the ratio of two records q_j cancels and leaves a ratio
of the attribute's own channel. However many attributes the records differ in, the largest ratio is
the largest of any one attribute: `E[x, x'] = max_j E_j[x_j, x'_j]`.

A pair of attributes is one more attribute. Its blocks are the products of a block of each, its
epsilon is the smaller one. Records that differ in it differ in one of both, whose own entry is no
smaller, and infinite where the pair's blocks differ: the maximum stays.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

import numpy as np

from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.policies.policy import Policy


@dataclass(frozen=True)
class AttributesPolicy(Policy):
    """A policy over the values of all attributes, one attribute after the other.

    The entry of two values of one attribute is that attribute's own, which is what records lose
    that differ in it alone. Which attribute was drawn is public, so that values of different
    attributes have no budget.
    """

    names: tuple[str, ...]
    parts: tuple[Policy, ...]

    @property
    def size(self) -> int:
        return sum(policy.size for policy in self.parts)

    def entry(self, value: int, other: int) -> Fraction | None:
        starts = self._starts
        (i, j) = (int(np.searchsorted(starts, x, side="right")) - 1 for x in (value, other))
        return self.parts[i].entry(value - starts[i], other - starts[i]) if i == j else None

    @property
    def unprotected_pairs(self) -> int:
        across = self.size**2 - sum(policy.size**2 for policy in self.parts)
        return across + sum(policy.unprotected_pairs for policy in self.parts)

    @property
    def unprotected(self) -> str:
        texts = [
            f"{name}: {policy.unprotected}"
            for name, policy in self.members.items()
            if policy.unprotected is not None
        ]
        return "; ".join(["which attribute was drawn, whatever the values are", *texts])

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Yield the pairs of each attribute; between two attributes there is no budget."""
        for start, policy in zip(self._starts, self.parts, strict=True):
            for value, other in policy.pairs():
                yield start + value, start + other

    @property
    def members(self) -> Mapping[str, Policy]:
        return dict(zip(self.names, self.parts, strict=True))

    def largest_loss(self) -> Fraction:
        return max(policy.largest_loss() for policy in self.parts)

    def describe(self) -> dict[str, Json]:
        return {
            "kind": "attributes",
            "size": self.size,
            "records": "the largest entry of their attributes",
            "attributes": {name: policy.describe() for name, policy in self.members.items()},
        }

    @property
    def _starts(self) -> list[int]:
        return list(accumulate((policy.size for policy in self.parts[:-1]), initial=0))
