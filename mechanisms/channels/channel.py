"""Channels in exact rationals, and the proof by enumeration that a channel satisfies a policy."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from ldpstream.mechanisms.exact.dyadic import exp_floor, log_estimate
from ldpstream.mechanisms.policies.policy import Policy

MOST_WORK = 1 << 20


def refuse_large(size: int, work: int) -> None:
    """Refuse to build the channel of `size` values if it is too large.

    `work` is the number of its probabilities, times the number of factors if they are products.
    """
    if work > MOST_WORK:
        raise ValueError(f"the channel of {size} values is too large to enumerate")


@dataclass(frozen=True)
class Violation:
    """The ordered pair of values and the output at which a channel violates its policy most.

    `ratio` is `Q[value, output] / Q[other, output]`, None if the denominator is 0; `budget` is
    the policy's entry for the pair.
    """

    value: int
    other: int
    output: int
    ratio: Fraction | None
    budget: Fraction

    def __str__(self) -> str:
        loss = math.inf if self.ratio is None else log_estimate(self.ratio)
        return (
            f"values {self.value} and {self.other} at output {self.output}: "
            f"loss {loss:.6g} above the budget {float(self.budget):.6g}"
        )


@dataclass(frozen=True)
class Channel:
    """`rows[x]` maps each possible report of value x to its probability, an exact rational above 0.

    Raises:
        ValueError: naming the row that holds an impossible output or does not sum to 1.
    """

    rows: tuple[Mapping[int, Fraction], ...]
    outputs: int

    def __post_init__(self) -> None:
        for value, row in enumerate(self.rows):
            if any(not 0 <= output < self.outputs for output in row):
                raise ValueError(f"row {value}: expected outputs in 0..{self.outputs - 1}")
            impossible = [output for output, p in row.items() if p <= 0]
            if impossible:
                raise ValueError(
                    f"row {value}: expected probabilities above 0, "
                    f"got {row[impossible[0]]} at output {impossible[0]}"
                )
            total = sum(row.values())
            if total != 1:
                raise ValueError(
                    f"row {value}: expected probabilities that sum to 1, got a sum of {total}"
                )

    @property
    def size(self) -> int:
        """Number of values k."""
        return len(self.rows)

    def satisfies(self, policy: Policy) -> Violation | None:
        """Compare every pair at every output with `e^E`, exactly: None, or the worst violation.

        The pairs are those of `policy.constraints()`, whose budgets imply all others. The worst
        violation has the largest excess of the log-ratio over the pair's budget; an output that
        only the first value can produce exceeds any finite one. For localized information privacy
        this checks only the LDP that it implies; `certify_prior` proves the odds against the prior.

        Raises:
            ValueError: if the policy has another number of values.
        """
        worst: Violation | None = None
        worst_excess = -math.inf
        floors: dict[Fraction, Fraction] = {}
        for value, other, budget in self._protected(policy):
            if budget not in floors:
                floors[budget] = exp_floor(budget)
            output, ratio = self._worst_output(value, other)
            if ratio is not None and ratio <= floors[budget]:
                continue
            excess = math.inf if ratio is None else log_estimate(ratio) - float(budget)
            if worst is None or excess > worst_excess:
                worst, worst_excess = Violation(value, other, output, ratio, budget), excess
        return worst

    def worst_ratios(self, policy: Policy) -> dict[Fraction, Fraction | None]:
        """Return the largest ratio of the policy's pairs by finite budget; None if unbounded."""
        worst: dict[Fraction, Fraction | None] = {}
        for value, other, budget in self._protected(policy):
            _, ratio = self._worst_output(value, other)
            known = worst.get(budget, Fraction(1))
            worst[budget] = None if ratio is None or known is None else max(known, ratio)
        return worst

    @cached_property
    def weights(self) -> tuple[dict[int, int], ...]:
        """The rows as numerators over one common denominator, so that integers can be compared."""
        common = math.lcm(*(p.denominator for row in self.rows for p in row.values()))
        return tuple(
            {output: p.numerator * (common // p.denominator) for output, p in row.items()}
            for row in self.rows
        )

    def _worst_output(self, value: int, other: int) -> tuple[int, Fraction | None]:
        """Return the output at which a pair's ratio is largest, and that ratio."""
        below = self.weights[other]
        worst_output, top, bottom = -1, 0, 1
        for output, weight in self.weights[value].items():
            divisor = below.get(output)
            if divisor is None:
                return output, None
            if weight * bottom > top * divisor:
                worst_output, top, bottom = output, weight, divisor
        return worst_output, Fraction(top, bottom)

    def _protected(self, policy: Policy) -> Iterator[tuple[int, int, Fraction]]:
        if policy.size != self.size:
            raise ValueError(f"expected a policy of {self.size} values, got {policy.size}")
        return policy.constraints()
