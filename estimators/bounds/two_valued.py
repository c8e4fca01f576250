"""Bounds on shares whose decoder takes two values, so that reports are coin tosses.

Each of N reports is decisive for the share or not: with probability `own` if the user is inside,
and `other` if not. The decoder is `(1{decisive} - other)/(own - other)`, and D decisive reports
give the share `(D/N - other)/(own - other)`. Binary channels, randomised response, symmetric
designs, and Hadamard response in one block are of this kind. D is then binomial under the
population, and a sum of two binomials for given respondents.

Every form returns two arrays, the least and the largest share that agree with D, not cut to [0, 1].
Arrays broadcast; `level` is the allowed error, in (0, 1), and `z` is its `quantile`.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from scipy.special import betaincinv, ndtri

from ldpstream.mechanisms.base.arrays import Bools, Floats

Pair = tuple[Floats, Floats]

FEW: Final = 4.0
"""With fewer than this times z^2 reports of one kind, Wilson's interval fails too often."""
FEW_IN_BLOCK: Final = 13.0
"""The same limit for the reports of a block: 50 at 95%."""


@dataclass(frozen=True)
class Tosses:
    """N reports, D decisive ones, and the probabilities of that: float64 arrays that broadcast."""

    reports: Floats
    decisive: Floats
    own: Floats
    other: Floats

    @cached_property
    def some(self) -> Floats:
        """N, or 1 in place of 0; callers leave out results without reports."""
        return np.maximum(self.reports, 1.0)

    @cached_property
    def share(self) -> Floats:
        """The unbiased estimate of the share among the N reports."""
        return (self.decisive / self.some - self.other) / (self.own - self.other)

    @cached_property
    def noise(self) -> Pair:
        """The variance of one decoded report, of a user inside and of one outside."""
        squared = (self.own - self.other) ** 2
        return self.own * (1.0 - self.own) / squared, self.other * (1.0 - self.other) / squared

    def at(self, places: Bools) -> "Tosses":
        """Return the tosses at some places, arrays `(m,)`."""
        columns = self.reports, self.decisive, self.own, self.other
        return Tosses(*(column[places] for column in columns))

    def to_share(self, decisive: Floats) -> Floats:
        """Return the share that corresponds to a fraction of decisive reports."""
        return (decisive - self.other) / (self.own - self.other)


def quantile(level: float) -> float:
    """Return the normal quantile for a two-sided error."""
    return float(-ndtri(level / 2.0))


def wilson(tosses: Tosses, z: float) -> Pair:
    """Return Wilson's interval of `D/N`, as shares of the population."""
    n, d = tosses.some, tosses.decisive
    centre = d + z**2 / 2.0
    half = z * np.sqrt(d * (n - d) / n + z**2 / 4.0)
    low, high = ((centre + side * half) / (n + z**2) for side in (-1.0, 1.0))
    return tosses.to_share(low), tosses.to_share(high)


def clopper_pearson(tosses: Tosses, level: float) -> Pair:
    """Return Clopper and Pearson's interval of `D/N`, as shares of the population.

    Proved at every N, for every share. It also holds for respondents, where it is wider than
    needed: D is then a sum of independent tosses of different coins, whose tails beyond the next
    integer are below those of the binomial with the same mean (Hoeffding 1956, Theorem 5).
    """
    low, high = clopper_pearson_parts(tosses.decisive, tosses.reports, level)
    return tosses.to_share(low), tosses.to_share(high)


def clopper_pearson_parts(successes: Floats, trials: Floats, level: float) -> Pair:
    """Return the interval of a binomial probability itself."""
    d, n = np.broadcast_arrays(successes, trials)
    some, missing = d > 0.0, d < n
    low = betaincinv(np.where(some, d, 1.0), n - d + 1.0, level / 2.0)
    high = betaincinv(d + 1.0, np.where(missing, n - d, 1.0), 1.0 - level / 2.0)
    return np.where(some, low, 0.0), np.where(missing, high, 1.0)


def score(tosses: Tosses, z: float) -> Pair:
    """Return the respondents' score interval, widened by half a person; NaN if it is empty.

    It holds all theta with `N (share - theta)^2 <= z^2 (v1 theta + v0 (1 - theta))`. The share is
    an integer over N: without the half person the interval covers 0.79 at worst, with it 0.93.
    """
    n, share, (inside, outside) = tosses.some, tosses.share, tosses.noise
    slope = z**2 * (inside - outside) / n
    square = slope**2 + 4.0 * slope * share + 4.0 * z**2 * outside / n
    root = np.sqrt(np.where(square < 0.0, np.nan, square))
    middle = 2.0 * share + slope
    return (middle - root - 1.0 / n) / 2.0, (middle + root + 1.0 / n) / 2.0


def noise_deviation(tosses: Tosses) -> Floats:
    """Return the standard deviation of D for given respondents, at the estimate."""
    share = np.clip(tosses.share, 0.0, 1.0)
    inside, outside = tosses.noise
    mean_noise = share * inside + (1.0 - share) * outside
    deviation: Floats = (tosses.own - tosses.other) * np.sqrt(tosses.reports * mean_noise)
    return deviation


def in_block(tosses: Tosses, n: int, z: float) -> Pair:
    """Return a score interval for the population's share of a value in a disclosed block.

    `tosses` are the block's, and n is the number of all reports. The interval holds all theta with
    `n (w - theta)^2 <= z^2 (v0 max(N/n, theta) + (1 + v1 - v0) theta - theta^2)`. Because of the
    max, this is the hull of the solutions of two quadratics; NaN if neither has any.
    """
    part = tosses.reports / n
    share = tosses.share * part
    v1, v0 = tosses.noise
    ends = [
        _roots(n + z**2, 2.0 * n * share + z**2 * linear, n * share**2 - z**2 * constant)
        for linear, constant in ((1.0 + v1 - v0, v0 * part), (1.0 + v1, 0.0 * part))
    ]
    lows, highs = zip(*ends, strict=True)
    return np.fmin(*lows), np.fmax(*highs)


def _roots(a: float, b: Floats, c: Floats) -> Pair:
    """Return the roots of `a x^2 - b x + c`, NaN if there are none."""
    square = b**2 - 4.0 * a * c
    root = np.sqrt(np.where(square < 0.0, np.nan, square))
    return (b - root) / (2.0 * a), (b + root) / (2.0 * a)


def product(tosses: Tosses, n: int, level: float) -> Pair:
    """Return the product of Clopper and Pearson's bounds on a block and on the share inside it.

    Each gets half of the level. Proved at every n; in a block without reports only the bound on the
    block counts.
    """
    block = clopper_pearson_parts(tosses.reports, np.full_like(tosses.reports, n), level / 2.0)
    silent = tosses.reports <= 0.0
    one = np.where(silent, 1.0, tosses.reports)
    inside = Tosses(one, np.where(silent, 0.0, tosses.decisive), tosses.own, tosses.other)
    low, high = (np.clip(end, 0.0, 1.0) for end in clopper_pearson(inside, level / 2.0))
    return np.where(silent, 0.0, block[0] * low), np.where(silent, block[1], block[1] * high)
