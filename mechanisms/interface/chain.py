"""Reports that are randomised again out of one permanent draw.

`Q1 M = Q`: the permanent report is drawn by the same mechanism with a larger budget, `Q1`, and what
leaves in each window follows from it alone, by M. Each report by itself is one of Q, so decoders,
bounds and formats know nothing of it (docs/theory.md, section 11).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Integers
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.checks import read_epsilon
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.channels.held import Blend
from ldpstream.mechanisms.exact.entropy import Entropy, bernoulli_rational, uniform_below_each


class Chain(ABC):
    """M: what a window sends for a permanent report, and what the reports of an epoch lose.

    `steps` is over how many steps losses add up, 1 where they are those of any two values; `exact`
    says that some values lose `ratio`, none of which loses more.
    """

    steps: int = 1
    exact: ClassVar[bool] = True

    @abstractmethod
    def again(self, reports: NDArray[Any], entropy: Entropy) -> NDArray[Any]:
        """Return what is sent for permanent reports, one a row, in the form of `Mechanism`."""

    @abstractmethod
    def canonical(self) -> Sequence[Json]:
        """Return the probabilities that devices need, as exact fractions."""

    @abstractmethod
    def ratio(self, reports: int) -> Fraction:
        """Return the largest ratio of two values, a step apart, at m >= 1 reports of one draw."""


@dataclass(frozen=True, eq=False)
class BlockChain(Chain):
    """M of reports that are one symbol: the same one, or a uniform one of its block.

    Block j has the reports from `starts[j]` on, of which `orders[j]` are drawn uniformly, int64
    `(blocks,)`. `blends` are the different ones by their order; in a block of one report there is
    nothing to draw.
    """

    starts: Integers
    orders: Integers
    blends: Mapping[int, Blend]

    def again(self, reports: Integers, entropy: Entropy) -> Integers:
        """Return what is sent for permanent reports, int64 `(n,)` both.

        First, by ascending order of the blocks, all decide whether they stay; then all draw a
        report of their block, those that stay for nothing.
        """
        block = np.searchsorted(self.starts, reports, side="right") - 1
        orders = self.orders[block]
        stays = np.empty(len(reports), dtype=np.bool_)
        for order in np.unique(orders).tolist():
            here = np.flatnonzero(orders == order)
            stays[here] = bernoulli_rational(entropy, self.keep(order), here.size)
        drawn = self.starts[block] + uniform_below_each(entropy, orders)
        return np.where(stays, reports, drawn)

    def keep(self, order: int) -> Fraction:
        """Return with which probability a report of a block of `order` is the permanent one."""
        return self.blends[order].keep if order > 1 else Fraction(1)

    def canonical(self) -> Sequence[Json]:
        """Return each order with its probability, as an exact fraction: what devices need."""
        return [[order, str(self.blends[order].keep)] for order in sorted(self.blends)]

    def ratio(self, reports: int) -> Fraction:
        """Return the largest ratio of two values of a block."""
        return max(blend.ratio(reports) for blend in self.blends.values())


def read_larger(given: object, epsilon: float) -> float:
    """Return the budget of a permanent draw.

    Raises:
        SpecError: unless it is finite and above that of a report.
    """
    larger = read_epsilon(given, "hold.epsilon")
    if larger <= epsilon:
        raise SpecError("hold.epsilon", f"more than epsilon, which is a report's: {epsilon:g}")
    return larger


def blend_of(
    reports: tuple[int, int], permanent: tuple[Fraction, Fraction], once: Fraction
) -> Blend:
    """Return `Blend.between` of `reports`, the order and those inside.

    Raises:
        SpecError: where the two budgets have the same thresholds.
    """
    try:
        return Blend.between(*reports, permanent=permanent, once=once)
    except ValueError:
        raise too_near() from None


def too_near() -> SpecError:
    """Return the error of a permanent draw that 64 bits do not tell from a report."""
    return SpecError("hold.epsilon", "further from epsilon: both draw alike")
