"""The policy of values with a public weight: values are protected only under the same weight."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.policies.policy import Policy


@dataclass(frozen=True)
class PublicWeightPolicy(Policy):
    """`E[(x, v), (x', v)] = values.E[x, x']`, infinity between different weights.

    The pair of value x and weight v in `0..weights - 1` is numbered `weights * x + v`.
    """

    values: Policy
    weights: int

    @property
    def size(self) -> int:
        return self.values.size * self.weights

    def entry(self, value: int, other: int) -> Fraction | None:
        (x, weight), (z, another) = divmod(value, self.weights), divmod(other, self.weights)
        return self.values.entry(x, z) if weight == another else None

    @property
    def unprotected_pairs(self) -> int:
        across = self.values.size**2 * self.weights * (self.weights - 1)
        return across + self.weights * self.values.unprotected_pairs

    @property
    def unprotected(self) -> str:
        own = self.values.unprotected
        across = "values with different weights: a report reveals the weight"
        return across if own is None else f"{across}; {own}"

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Yield the values' pairs under each weight; between two weights there is no budget."""
        for value, other in self.values.pairs():
            for weight in range(self.weights):
                yield value * self.weights + weight, other * self.weights + weight

    def describe(self) -> dict[str, Json]:
        return {
            "kind": "public weights",
            "size": self.size,
            "largest_weight": self.weights - 1,
            "values": self.values.describe(),
        }
