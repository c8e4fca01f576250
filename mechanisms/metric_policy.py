"""The L1 metric on ordered domains: the further two values are apart, the less is hidden.

Metric-based local differential privacy ([ML] Definition 1; docs/theory.md sections 5 and 8).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import ClassVar

from ldpstream.mechanisms.canonical import Json
from ldpstream.mechanisms.dyadic import budget
from ldpstream.mechanisms.policy import Policy


@dataclass(frozen=True)
class MetricPolicy(Policy):
    """`E[x, x'] = epsilon * |x - x'|_1`, distances in steps of the index, in D dimensions.

    `shape` holds the number of values of each dimension, values in row-major order. `widths` are
    the widths of each dimension's bins where the values are bins of real numbers, or the distances
    of neighbouring values where numbers are `rounded` to these at random.
    """

    metric: ClassVar[str] = "l1"
    epsilon: float
    shape: tuple[int, ...]
    widths: tuple[float, ...] | None = None
    rounded: bool = False

    @property
    def size(self) -> int:
        """Number of values k."""
        return prod(self.shape)

    def entry(self, value: int, other: int) -> Fraction:
        """Return `E[value, other]`, which is never infinite; 0 on the diagonal."""
        return self.step * self.distance(value, other)

    @property
    def step(self) -> Fraction:
        """The budget of two values one step apart, of which all others are multiples."""
        return budget(self.epsilon)

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Yield the neighbours, one step apart in one dimension: the others are sums of steps."""
        stride = 1
        for extent in reversed(self.shape):
            for value in range(self.size):
                if value // stride % extent + 1 < extent:
                    yield value, value + stride
                    yield value + stride, value
            stride *= extent

    def distance(self, value: int, other: int) -> int:
        """Return the L1 distance of two values in steps."""
        steps = 0
        for extent in reversed(self.shape):
            value, coordinate = divmod(value, extent)
            other, opposite = divmod(other, extent)
            steps += abs(coordinate - opposite)
        return steps

    @property
    def diameter(self) -> int:
        """The largest distance of two values in steps."""
        return sum(extent - 1 for extent in self.shape)

    @property
    def unprotected_pairs(self) -> int:
        """Number of pairs with an infinite budget: none."""
        return 0

    @property
    def unprotected(self) -> None:
        """Return None: every pair has a finite budget."""
        return

    def describe(self) -> dict[str, Json]:
        """Return the metric, epsilon per step, the shape, and what that guarantees in words."""
        return {
            "kind": "metric",
            "metric": self.metric,
            "size": self.size,
            "epsilon": self.epsilon,
            "shape": list(self.shape),
            "diameter": self.diameter,
            "guarantee": self._guarantee(),
        }

    def _guarantee(self) -> str:
        steps = "epsilon for each index step between two values, added over the dimensions"
        if self.widths is None:
            return steps
        widths = ", ".join(repr(width) for width in self.widths)
        if self.rounded:
            return (
                f"{steps}; numbers are rounded at random to one of the two values beside them, so "
                f"that any two numbers u and v are hidden from each other by "
                f"(e^epsilon - 1)/width * |u - v| in each dimension, width {widths}"
            )
        return (
            f"{steps}; two different numbers u and v are hidden from each other by at most "
            f"epsilon/width * (|u - v| + width) in each dimension, bins of width {widths}: "
            "neighbours on the two sides of a bin's edge lose a whole step, epsilon"
        )
