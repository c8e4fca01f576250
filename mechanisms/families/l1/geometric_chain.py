"""Clamped geometric noise that is drawn from a permanent draw, each coordinate independently.

Let `a = e^-s` for the budget s of a step of a report, and `a1` likewise for the permanent draw,
each rounded to 64 bits. A coordinate stays with probability `(a1/a) ((1-a)/(1-a1))^2`, at an end
with `(a1/a) (1-a)/(1-a1)`; otherwise it gets the noise of a report. Then `Q1 M = Q` for any length
(docs/theory.md, section 11).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from ldpstream.mechanisms.base.arrays import Integers
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.channels.held import MOST_COUNTED
from ldpstream.mechanisms.exact.entropy import Entropy, bernoulli_rational
from ldpstream.mechanisms.exact.geometric import TwoSidedGeometric
from ldpstream.mechanisms.interface.chain import Chain


@dataclass(frozen=True, eq=False)
class GeometricChain(Chain):
    """The chain of `l1-geometric`: `alpha` is `a`, and `larger` is `a1`, of the larger budget.

    `extents` are the lengths of the dimensions, two or more each, and `noise` is that of a report.
    `steps` is the number of steps between opposite corners.
    """

    exact: ClassVar[bool] = False
    alpha: Fraction
    larger: Fraction
    extents: tuple[int, ...]
    noise: TwoSidedGeometric
    steps: int

    @property
    def keep(self) -> tuple[Fraction, Fraction]:
        """The probabilities that a coordinate stays, inside and at an end."""
        less = (1 - self.alpha) / (1 - self.larger)
        end = self.larger / self.alpha * less
        return end * less, end

    def again(self, reports: Integers, entropy: Entropy) -> Integers:
        """Return the reports that are sent for permanent ones, int64 `(n,)` both.

        First all coordinates inside decide whether they stay, then all at ends. Then noise is drawn
        for all of them, also for those that stay.
        """
        coordinates = np.stack(np.unravel_index(reports, self.extents), axis=1).ravel()
        last = np.tile(np.array(self.extents, dtype=np.int64) - 1, len(reports))
        ends = (coordinates == 0) | (coordinates == last)
        stays = np.empty(len(last), dtype=np.bool_)
        for keep, here in zip(
            self.keep, (np.flatnonzero(~ends), np.flatnonzero(ends)), strict=True
        ):
            stays[here] = bernoulli_rational(entropy, keep, here.size)
        moved = np.where(stays, coordinates, self.noise.move(entropy, coordinates, last))
        strides = np.append(np.cumprod(self.extents[:0:-1], dtype=np.int64)[::-1], 1)
        sent: Integers = moved.reshape(len(reports), -1) @ strides
        return sent

    def canonical(self) -> Sequence[Json]:
        return [str(keep) for keep in self.keep]

    def ratio(self, reports: int) -> Fraction:
        """Return a bound on the ratio of two neighbours over m >= 1 reports, for any length.

        It is exact for one report, and the least upper bound over all lengths for several. Values s
        steps apart have at most its s-th power.

        Proof: for x and x + 1, and `f[z] = prod M[z, y_i]`, the ratio is `(A/a1 + a1 B)/(A + B)`,
        where A is the sum of `Q1[x+1, z] f[z]` over z <= x and B that over z > x. It is largest if
        A/B is. Replacing all y > x by x increases A more than B. For y <= x, `M[z, y]` with z > x
        is the same function of z up to a constant, so that all y are equal by Hoelder's inequality.
        Then A, in units of `(c a^(x+1-y))^m`, follows `A' = s (A + c1 u)` with `s = a1/a^m` from
        each x to the next, and is monotone in y from 1 on; so is B in the number of values above x.
        Their extremes are those of an end, of its neighbour, and far from any end.
        """
        a, a1 = self.alpha, self.larger
        slope, decay = a1 / a**reports, a1 * a**reports
        if reports > MOST_COUNTED or slope >= 1:
            # A grows without limit. (For one report it does not, since a > a1.)
            return 1 / a1
        inside, end = self.keep
        u, v = (1 - inside) ** reports, (1 - end) ** reports
        # The constants of Q1 for a value inside, and for one at an end.
        c, e = (1 - a1) / (1 + a1), 1 / (1 + a1)
        own = ((1 - inside + inside * (1 + a) / (1 - a)) / a) ** reports
        largest = max(
            e * a1 * ((1 - end + end * (1 + a)) / a) ** reports,
            c * a1 * own + e * a1**2 * v,
            c * a1 * own + c * a1**2 * u / (1 - decay),
            slope * c * u / (1 - slope),
        )
        least = min(e * v, c * u / (1 - decay))
        return (largest / a1 + a1 * least) / (largest + least)
