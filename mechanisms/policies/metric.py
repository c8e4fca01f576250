"""L^p metrics on ordered domains: the farther apart two values, the weaker their protection.

Metric-based local differential privacy ([ML] Definition 1; docs/theory.md sections 5 and 8).
Irrational lengths are rounded down to multiples of 2^-128, so that budgets err on the side of
privacy.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import permutations
from math import prod

import numpy as np

from ldpstream.mechanisms.base.canonical import Json, json_number
from ldpstream.mechanisms.base.checks import describe, is_whole
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.exact.dyadic import budget
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.policies.budgets import BlockBudget, unit_strides
from ldpstream.mechanisms.policies.policy import Policy

_BITS = 128
"""Binary digits after the point of an irrational length."""
_LARGEST_P = 64


@dataclass(frozen=True)
class MetricPolicy(Policy):
    """`E[x, x'] = epsilon * |x - x'|_p`, distances in steps of the index, in D dimensions.

    `shape` holds the number of values of each dimension; values are in row-major order. `widths`
    are the widths of each dimension's bins if the values are bins of real numbers, or the distances
    between neighbouring values if numbers are `rounded` to these at random (p = 1 only). `p` is a
    whole number or infinity. With `scale`, a step in dimension d counts as `scale[d]` steps.
    Irrational budgets are rounded down (`lp_length`).

    Raises:
        SpecError: if p is invalid, or `scale` does not hold one finite number above 0 for each
            dimension.
    """

    epsilon: float
    shape: tuple[int, ...]
    widths: tuple[float, ...] | None = None
    rounded: bool = False
    p: float = 1
    scale: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", check_p(self.p))
        if self.rounded and (self.p != 1 or self.scale is not None):
            raise SpecError("p", "1, without a scale, where numbers are rounded at random")
        if self.scale is None:
            return
        if len(self.scale) != len(self.shape):
            expected = f"{len(self.shape)} numbers, one a dimension, got {len(self.scale)}"
            raise SpecError("scale", expected)
        for axis, factor in enumerate(self.scale):
            if not (math.isfinite(factor) and factor > 0):
                raise SpecError(f"scale[{axis}]", f"a finite number above 0, got {factor}")

    @property
    def metric(self) -> str:
        """The metric's name, such as `l1`."""
        return f"l{self.p}"

    @property
    def size(self) -> int:
        return prod(self.shape)

    def entry(self, value: int, other: int) -> Fraction:
        return self.budget_of(self.steps(value, other))

    def budget_of(self, steps: tuple[int, ...]) -> Fraction:
        """Return the budget of two values that are `steps[d]` index steps apart in dimension d."""
        lengths = [step * weight for step, weight in zip(steps, self._weights, strict=True)]
        return self._unit * lp_length(lengths, self.p)

    @cached_property
    def _weights(self) -> tuple[int, ...]:
        """The scale times its common denominator, so that lengths of steps are integers."""
        return tuple(int(factor * self._denominator) for factor in self._factors)

    @cached_property
    def _factors(self) -> tuple[Fraction, ...]:
        return tuple(budget(factor) for factor in self.scale or (1.0,) * len(self.shape))

    @cached_property
    def _denominator(self) -> int:
        return math.lcm(*(factor.denominator for factor in self._factors))

    @cached_property
    def _unit(self) -> Fraction:
        return budget(self.epsilon) / self._denominator

    @cached_property
    def step(self) -> Fraction:
        """The budget per index step with which an L1 mechanism keeps this policy.

        Epsilon for p = 1, and less for other p in D > 1 dimensions (`l1_epsilon`; a dimension with
        a single value does not count). With a scale, the dimension with the smallest factor
        decides.
        """
        extents = [extent for extent in self.shape if extent > 1]
        epsilon = l1_epsilon(self._unit, dimensions=max(len(extents), 1), p=self.p)
        return epsilon * min(self._weights)

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Yield pairs whose budgets imply all others, which are sums along a straight line.

        For p = 1 these are neighbours, one step apart in one dimension; otherwise the pairs with no
        other value on the line between them.
        """
        if self.p == 1:
            yield from self._neighbours()
            return
        for value, other in permutations(range(self.size), 2):
            if math.gcd(*self.steps(value, other)) == 1:
                yield value, other

    def _neighbours(self) -> Iterator[tuple[int, int]]:
        stride = 1
        for extent in reversed(self.shape):
            for value in range(self.size):
                if value // stride % extent + 1 < extent:
                    yield value, value + stride
                    yield value + stride, value
            stride *= extent

    def steps(self, value: int, other: int) -> tuple[int, ...]:
        """Return by how many index steps two values differ in each dimension."""
        steps = []
        for extent in reversed(self.shape):
            value, coordinate = divmod(value, extent)
            other, opposite = divmod(other, extent)
            steps.append(abs(coordinate - opposite))
        return tuple(reversed(steps))

    @property
    def diameter(self) -> int:
        """The largest L1 distance of two values in steps."""
        return sum(extent - 1 for extent in self.shape)

    @property
    def unprotected_pairs(self) -> int:
        return 0

    @property
    def unprotected(self) -> None:
        return

    @property
    def few_pairs(self) -> bool:
        return self.p == 1

    def largest_loss(self) -> Fraction:
        return self.entry(0, self.size - 1)  # opposite corners

    def least_budgets(self) -> Iterator[Fraction]:
        yield min(self.entry(0, stride) for stride in unit_strides(self.shape))

    def block_budget(self) -> BlockBudget:
        return BlockBudget(min(self.least_budgets()), Blocks.one(self.size), np.arange(self.size))

    def l1_budget(self, shape: Sequence[int]) -> Fraction:
        return self.step if self.shape == tuple(shape) else super().l1_budget(shape)

    def _times(self, factor: float | Fraction) -> Policy:
        return replace(self, epsilon=self.epsilon * float(factor))

    def describe(self) -> dict[str, Json]:
        document: dict[str, Json] = {
            "kind": "metric",
            "metric": self.metric,
            "size": self.size,
            "epsilon": self.epsilon,
            "shape": list(self.shape),
            "diameter": self.diameter,
            "guarantee": self._guarantee(),
        }
        if self.scale is not None:
            document["scale"] = [json_number(factor) for factor in self.scale]
        return document

    def _guarantee(self) -> str:
        scaled = "" if self.scale is None else ", each dimension's steps times its scale"
        if self.p == 1:
            steps = (
                f"epsilon for each index step between two values, added over the dimensions{scaled}"
            )
            loss = "epsilon/width * (|u - v| + width) in each dimension"
        else:
            steps = (
                f"epsilon times the L{self.p} norm of the index steps between two values{scaled}"
            )
            loss = f"epsilon times the L{self.p} norm of (|u - v| + width)/width"
        if self.widths is None:
            return steps
        widths = ", ".join(repr(width) for width in self.widths)
        if self.rounded:
            return (
                f"{steps}; numbers are rounded at random to one of the two nearest values, so "
                f"that any two numbers u and v are hidden from each other by "
                f"(e^epsilon - 1)/width * |u - v| in each dimension, width {widths}"
            )
        return (
            f"{steps}; two different numbers u and v are hidden from each other by at most "
            f"{loss}{scaled and ', scaled'}, bins of width {widths}: "
            "neighbours on the two sides of a bin's edge lose a whole step"
            f"{', epsilon' if self.scale is None else ''}"
        )


def check_p(p: object) -> int | float:
    """Return the p of a norm: a whole number in 1..64, or infinity.

    Raises:
        SpecError: naming `p`, for anything else.
    """
    if isinstance(p, float) and (p == math.inf or p.is_integer()):
        p = p if p == math.inf else int(p)
    if p == math.inf or (is_whole(p) and 1 <= p <= _LARGEST_P):
        assert isinstance(p, int | float)
        return p
    raise SpecError("p", f"a whole number in 1..{_LARGEST_P}, or inf, got {describe(p)}")


def lp_length(steps: Sequence[int], p: float) -> Fraction:
    """Return the L^p norm of a vector of integers, exactly for p = 1 and inf, else rounded down.

    It is rounded to a multiple of 2^-128, so that norms that are integers are exact.

    >>> lp_length([3, -4], 2), lp_length([3, -4], 1), float(lp_length([1, 1], 2))
    (Fraction(5, 1), Fraction(7, 1), 1.4142135623730951)
    """
    sizes = [abs(step) for step in steps]
    if p == math.inf:
        return Fraction(max(sizes, default=0))
    degree = int(p)
    if degree == 1:
        return Fraction(sum(sizes))
    total = sum(size**degree for size in sizes)
    return Fraction(_integer_root(total << (_BITS * degree), degree), 1 << _BITS)


def _integer_root(number: int, degree: int) -> int:
    """Return the largest integer whose power of this degree is at most `number` >= 0.

    >>> [_integer_root(n, 3) for n in (0, 7, 8, 26, 27)]
    [0, 1, 2, 2, 3]
    """
    if degree == 1 or number < 2:
        return number
    if degree == 2:
        return math.isqrt(number)
    # Newton's method from above decreases strictly until it reaches the root.
    root = 1 << -(-number.bit_length() // degree)
    while True:
        better = ((degree - 1) * root + number // root ** (degree - 1)) // degree
        if better >= root:
            return root
        root = better


def l1_epsilon(epsilon: Fraction, *, dimensions: int, p: float) -> Fraction:
    """Return an eps_1 with `eps_1 |d|_1 <= epsilon |d|_p` in D dimensions ([ML] Section IV).

    Hoelder's inequality is `|d|_1 <= D^(1 - 1/p) |d|_p`, with equality if all coordinates of d are
    equal. So `eps_1 = epsilon / D^(1 - 1/p)`, and an L1 mechanism with this epsilon keeps the L^p
    policy. The divisor is rounded so that eps_1 / epsilon is a multiple of 2^-64 (exact for p = 1
    and inf). For integer vectors d the inequality then also holds for `lp_length(d, p)`: that is
    rounded down to the finer grid of 2^-128, on which `eps_1 |d|_1 / epsilon` lies.

    >>> l1_epsilon(Fraction(1), dimensions=4, p=2)
    Fraction(1, 2)
    """
    if p == math.inf:
        return epsilon / dimensions
    degree = int(p)
    root = _integer_root(dimensions * WORD**degree, degree)
    return epsilon * Fraction(root // dimensions, WORD)


def keeps_lp(step: Fraction, epsilon: Fraction, *, dimensions: int, p: float) -> bool:
    """Return whether `step |d|_1 <= epsilon |d|_p` for all vectors of D dimensions, exactly.

    This holds if and only if it holds for the vector of ones: `step D <= epsilon D^(1/p)`.
    """
    if p == math.inf:
        return step * dimensions <= epsilon
    return (step * dimensions) ** int(p) <= epsilon ** int(p) * dimensions
