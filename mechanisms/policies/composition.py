"""What reports lose: the policies of several add up, and so do budgets along a chain of values.

Several reports of one person ([CA] Proposition 2) are drawn independently, so that their joint
probability is a product and the losses of two sequences of values add up:
`sum_t E_t[x_t, x'_t]`. This holds however the values depend on each other, and also for one value
reported again and again, where every term is of the same pair. All sums are exact rationals.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.policies.budgets import shortest_paths
from ldpstream.mechanisms.policies.matrix import MatrixPolicy
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
        text = self.values.unprotected
        across = "values with different weights: a report reveals the weight"
        return across if text is None else f"{across}; {text}"

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Yield the values' pairs under each weight; between two weights there is no budget."""
        for value, other in self.values.pairs():
            for weight in range(self.weights):
                yield value * self.weights + weight, other * self.weights + weight

    def least_budgets(self) -> Iterator[Fraction]:
        return self.values.least_budgets()

    def largest_loss(self) -> Fraction:
        return self.values.largest_loss()

    def describe(self) -> dict[str, Json]:
        return {
            "kind": "public weights",
            "size": self.size,
            "largest_weight": self.weights - 1,
            "values": self.values.describe(),
        }


def compose(*policies: Policy) -> MatrixPolicy:
    """Return the sum of policies over the same values as a matrix ([CA] Proposition 2).

    Several reports of one value, randomised independently by channels that satisfy one policy each,
    together form a channel that satisfies the sum. A sum with an infinite term is infinite.

    Raises:
        SpecError: if there is no policy, the numbers of values differ, or exceed 1000.

    >>> twice = compose(*[MatrixPolicy.of([[0, 0.5], ["inf", 0]])] * 2)
    >>> twice.entry(0, 1), twice.entry(1, 0)
    (Fraction(1, 1), None)
    """
    sizes = sorted({policy.size for policy in policies})
    if len(sizes) != 1:
        raise SpecError("policy", f"policies of one number of values, got {sizes}")
    tables = [policy.listed() for policy in policies]
    return MatrixPolicy(
        tuple(tuple(map(_sum, zip(*rows, strict=True))) for rows in zip(*tables, strict=True))
    )


def _sum(budgets: Iterable[Fraction | None]) -> Fraction | None:
    """Return the sum of one pair's budgets, infinite (None) if one of them is."""
    total = Fraction(0)
    for entry in budgets:
        if entry is None:
            return None
        total += entry
    return total


def closure(policy: Policy) -> MatrixPolicy:
    """Return the shortest-path closure: the least budgets that a policy implies.

    Ratios multiply along a chain of values, so that a channel that satisfies E also satisfies
    `min(E[x, x1] + E[x1, x2] + ... + E[xr, x'])` over all chains ([ML] I-A states this for
    symmetric metrics; it holds equally for asymmetric E and infinite entries).

    Raises:
        SpecError: for more than 1000 values.

    >>> policy = MatrixPolicy.of([[0, 1, 5], [1, 0, 1], ["inf", 1, 0]])
    >>> [str(entry) for entry in closure(policy).entries[2]]
    ['2', '1', '0']
    """
    return MatrixPolicy(tuple(map(tuple, shortest_paths(policy.listed()))))
