"""Reports that are drawn again in each window from one permanent draw.

`Q1 M = Q`: the permanent report is drawn by the same mechanism with a larger budget, Q1, and the
report of each window follows from it alone, by M: it is the permanent one with some probability,
and otherwise drawn without looking at it. Each report by itself is one of Q, so that decoders,
bounds and formats need not know (docs/theory.md, section 11).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Integers
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.checks import read_epsilon
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.channels.permanent_draw import MOST_COUNTED, Blend, shared_part
from ldpstream.mechanisms.exact.entropy import (
    Entropy,
    bernoulli_rational,
    choose_rational,
    uniform_below_each,
)


class Chain(ABC):
    """The channel M from a permanent report to a window's, and what the reports of an epoch lose.

    `steps` is the number of steps over which losses add up, 1 if `ratio` covers any two values.
    `exact` says that some pair attains `ratio`; otherwise it is an upper bound.
    """

    steps: int = 1
    exact: ClassVar[bool] = True

    @property
    @abstractmethod
    def shared_noise(self) -> float:
        """A bound, for any query, on the part of a report's noise that others of its draw share."""

    @abstractmethod
    def again(self, reports: NDArray[Any], entropy: Entropy) -> NDArray[Any]:
        """Return the reports that are sent for permanent ones, one a row (`mechanism.Reports`)."""

    @abstractmethod
    def canonical(self) -> Sequence[Json]:
        """Return the probabilities that devices need, as exact fractions."""

    @abstractmethod
    def ratio(self, reports: int) -> Fraction:
        """Return the largest ratio of two values one step apart over m >= 1 reports of one draw."""


class BlendChain(Chain):
    """A chain with a blend for each kind of block, keyed by what distinguishes them."""

    blends: Mapping[int, Blend]

    def canonical(self) -> Sequence[Json]:
        return [[key, str(blend.keep)] for key, blend in sorted(self.blends.items())]

    def ratio(self, reports: int) -> Fraction:
        return max(blend.ratio(reports) for blend in self.blends.values())


@dataclass(frozen=True, eq=False)
class BlockChain(BlendChain):
    """A chain of symbols: each stays, or is replaced by a uniform one of its block.

    Block j owns the `orders[j]` reports from `starts[j]` on, int64 `(blocks,)` both. `blends` maps
    each order above 1 to its blend; a block of one report has nothing to draw. `shared` is
    `shared_noise`, which depends on who decides on the block.
    """

    starts: Integers
    orders: Integers
    blends: Mapping[int, Blend]
    shared: float

    @property
    def shared_noise(self) -> float:
        return self.shared

    def again(self, reports: Integers, entropy: Entropy) -> Integers:
        """Return the reports that are sent for permanent ones, int64 `(n,)` both.

        First each report decides whether it stays, by ascending order of the blocks; then every
        report, also one that stays, draws a replacement from its block.
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
        """Return the probability that a report of a block with `order` reports stays."""
        return self.blends[order].keep if order > 1 else Fraction(1)


@dataclass(frozen=True, eq=False)
class MixtureChain(Chain):
    """A chain of reports `0..outputs-1`: z stays with probability `keep`, or y has `others[y]`.

    For any channel, `Q = lambda Q1 + (1 - lambda) 1 beta^T`: `keep` is lambda and `others` is
    `(1 - lambda) beta`, which does not depend on z. They sum to 1. `extremes` hold the pairs of
    values that decide the loss, as `(y, Q1[x, y], Q1[x', y])` with `Q1[x, y] > Q1[x', y] > 0`.
    `largest` are the `max_x Q1[x, y]`.
    """

    keep: Fraction
    others: tuple[Fraction, ...]
    extremes: tuple[tuple[int, Fraction, Fraction], ...]
    largest: tuple[Fraction, ...]

    @property
    def shared_noise(self) -> float:
        # Two reports tell two values apart; each of them sends one of the reports more often.
        return max(
            shared_part(self.keep, most, other / (1 - self.keep), alone=len(self.others) == 2)
            for most, other in zip(self.largest, self.others, strict=True)
            if most
        )

    def again(self, reports: Integers, entropy: Entropy) -> Integers:
        chosen = choose_rational(entropy, self._ends, len(reports))
        return np.where(chosen == 0, reports, chosen - 1)

    @cached_property
    def _ends(self) -> tuple[Fraction, ...]:
        """The ends of the parts of 0..1 that keep z and that send 0, 1, ..; the last ends at 1."""
        return tuple(accumulate(self.others[:-1], initial=self.keep))

    def canonical(self) -> Sequence[Json]:
        """Return the exact ends of the parts of 0..1 that keep z and that send 0, 1, .."""
        return [str(end) for end in self._ends]

    def ratio(self, reports: int) -> Fraction:
        """Return the exact largest ratio of two values over all outcomes of m >= 1 reports.

        Up to a constant the reports have the probability `sum_z Q1[x, z] g[z]`, where
        `g[z] = (1 + keep/others[z])^(times z was sent)`. As in `Blend.ratio`, it is largest if all
        reports are the same y. A y that is sent only if z = y reveals z.
        """
        return max(self._ratio_at(reports, *extreme) for extreme in self.extremes)

    def _ratio_at(self, reports: int, y: int, more: Fraction, less: Fraction) -> Fraction:
        if reports > MOST_COUNTED or not self.others[y]:
            return more / less
        grown = (1 + self.keep / self.others[y]) ** reports - 1
        return (1 + more * grown) / (1 + less * grown)


def read_larger(raw: object, epsilon: float) -> float:
    """Return the budget of a permanent draw."""
    larger = read_epsilon(raw, "hold.epsilon")
    if larger <= epsilon:
        raise SpecError("hold.epsilon", f"more than epsilon, which is a report's: {epsilon:g}")
    return larger


def blend_of(
    reports: tuple[int, int], permanent: tuple[Fraction, Fraction], single: Fraction
) -> Blend:
    """Return `Blend.between` for `reports`, which is `(order, inside)`."""
    try:
        return Blend.between(*reports, permanent=permanent, single=single)
    except ValueError:
        raise too_near() from None


def too_near() -> SpecError:
    """Return the error for a permanent draw that equals a report to 64 bits."""
    return SpecError("hold.epsilon", "further from epsilon: both draw alike")
