"""Clamped geometric noise that is drawn again out of a permanent draw, each coordinate by itself.

With `a = e^-s`, s a step's budget of a report, and `a1` that of the permanent draw, each rounded to
64 bits: a coordinate stays with probability `(a1/a) ((1-a)/(1-a1))^2`, at an end `(a1/a)
(1-a)/(1-a1)`, else the report's noise moves it. Then `Q1 M = Q`, whatever the length
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
    """M of `l1-geometric`: `alpha` and `larger`, which is below it, are `a` and `a1`.

    `extents` are the lengths of the dimensions, two or more each, `noise` that of a report. `steps`
    is how far opposite corners are apart.
    """

    exact: ClassVar[bool] = False
    alpha: Fraction
    larger: Fraction
    extents: tuple[int, ...]
    noise: TwoSidedGeometric
    steps: int

    @property
    def keep(self) -> tuple[Fraction, Fraction]:
        """The probabilities with which a coordinate stays: inside, and at an end."""
        less = (1 - self.alpha) / (1 - self.larger)
        end = self.larger / self.alpha * less
        return end * less, end

    def again(self, reports: Integers, entropy: Entropy) -> Integers:
        """Return what is sent for permanent reports, int64 `(n,)` both.

        First all coordinates inside decide whether they stay, then all at ends; then all are moved,
        those that stay for nothing.
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
        """Return the two probabilities, as exact fractions."""
        return [str(keep) for keep in self.keep]

    def ratio(self, reports: int) -> Fraction:
        """Return what two neighbours' ratio never exceeds at m >= 1 reports, at any length.

        It is exact for one report, and the least upper bound of all lengths for several; values s
        steps apart have at most its s-th power. Of x and x + 1, `f[z] = prod M[z, y_i]`, the ratio
        is `(A/a1 + a1 B)/(A + B)`, A being the sum of `Q1[x+1, z] f[z]` over z <= x and B over
        z > x: largest where A/B is. All y > x may be replaced by x, which grows A more than B; for
        y <= x, `M[z, y]` with z > x is the same function of z up to a constant, so by Hoelder all y
        are one. Then A, in units of `(c a^(x+1-y))^m`, follows `A' = s (A + c1 u)`, `s = a1/a^m`,
        from each x to the next, and is monotone in y from 1 on, as B is in the number of values
        above x: their extremes are those of an end, of its neighbour, and of no end near.
        """
        a, a1 = self.alpha, self.larger
        slope, decay = a1 / a**reports, a1 * a**reports
        if reports > MOST_COUNTED or slope >= 1:
            # A grows without limit. (Of one report it does not: a > a1.)
            return 1 / a1
        inside, end = self.keep
        u, v = (1 - inside) ** reports, (1 - end) ** reports
        # Of Q1 the constants of a value inside, and of one at an end.
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
