"""Bounds on shares whose decoder takes two values, so that reports are coin tosses.

`tossed_rules` chooses their form. The forms follow: of respondents, then of the population.

Each of N reports is decisive for the share or not: with probability `own` if the user is inside,
and `other` if not. The decoder is `(1{decisive} - other)/(own - other)`, and D decisive reports
give the share `(D/N - other)/(own - other)`. Binary channels, randomised response, symmetric
designs, and Hadamard response in one block are of this kind. D is then binomial under the
population, and a sum of two binomials for given respondents.

Every form returns two arrays, the least and the largest share that agree with D, not cut to [0, 1].
Arrays broadcast; `level` is the allowed error, in (0, 1), and `z` is its `quantile`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Final, NamedTuple, Self

import numpy as np
import scipy

from ldpstream.estimators.bounds.options import Form, Options
from ldpstream.estimators.bounds.types import Coins, Pair, Sums, distinct_columns
from ldpstream.mechanisms.base.arrays import Bools, Floats, Integers

FEW: Final = 4.0
"""With fewer than this times z^2 reports of one kind, Wilson's interval fails too often."""
_FEW_IN_BLOCK: Final = 13.0
"""The same limit for the reports of a block: 50 at 95%."""
_SMOOTH: Final = 3.0
"""Standard deviation of the noise, in reports, from which on the score interval is close enough to
the exact one. In lists, which need tails further out, it is `z^2/4` times as much."""
_SLACK: Final = 1e-6
"""Relative to the allowed error; far above the rounding of tails."""
_TOGETHER: Final = 1 << 12
"""Most values whose tails are in memory at a time."""
_HALVED: Final = 6
"""Every so many steps of a search the interval is halved, however good the guesses are."""
_FURTHEST: Final = 40.0
"""In normal quantiles; a float64 tail is 0 from 38 on."""


def quantile(level: float) -> float:
    """Return the normal quantile for a two-sided error."""
    return -NormalDist().inv_cdf(level / 2.0)


@dataclass(frozen=True)
class Tosses:
    """N reports, D decisive ones, and the probabilities of that: float64 arrays that broadcast."""

    reports: Floats
    decisive: Floats
    own: Floats
    other: Floats

    @classmethod
    def of(cls, sums: Sums) -> tuple[Self, Bools]:
        """Return queries as coin tosses, and which of them are two-valued and hence tosses."""
        shape, coins = sums.total.shape, sums.coins
        if coins is None:
            coins = Coins(*np.zeros((3, *shape)))
        # Chances are quotients of decoded values, which may round to just outside of 0..1.
        own, other = np.minimum(coins.own, 1.0), np.maximum(coins.other, 0.0)
        reports = coins.tosses
        if own.shape != shape:
            own, other, reports = (
                np.broadcast_to(column, shape) for column in (own, other, reports)
            )
        two = own > other
        # Devices that several reports come from may be a fraction; tosses are whole.
        reports = np.rint(reports)
        likely = np.where(two, own, 1.0)
        decisive = np.rint(sums.total * (likely - other) + other * reports)
        # Queries that are no tosses get one report as a placeholder, which is not used.
        some = np.where(two, reports, 1.0)
        return cls(some, np.where(two, np.clip(decisive, 0.0, some), 0.0), likely, other), two

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

    @property
    def columns(self) -> Floats:
        """The four arrays, of one shape, as rows."""
        return np.stack([self.reports, self.decisive, self.own, self.other])

    def at(self, places: Bools | Integers) -> "Tosses":
        """Return the tosses at some places, arrays `(m,)`."""
        columns = self.reports, self.decisive, self.own, self.other
        return Tosses(*(column[places] for column in columns))

    def to_share(self, decisive: Floats) -> Floats:
        """Return the share that corresponds to a fraction of decisive reports."""
        return (decisive - self.other) / (self.own - self.other)


class Rule(NamedTuple):
    """A form at some queries, with its ends for all of them `(q,)` or for these places `(m,)`."""

    places: Bools
    form: Form
    ends: Callable[[Bools], Pair]


def tossed_rules(sums: Sums, n: int, level: float, options: Options) -> tuple[list[Rule], Bools]:
    """Return the rules for two-valued queries under `padded` or `exact`, and which ones these are.

    A query that is known exactly may have none.
    """
    tosses, two = Tosses.of(sums)
    if not two.any():
        return [], two
    proved, z = options.method == "exact", quantile(level)
    if options.estimand == "respondents":
        # A group without reports has no noise: its share is known, and it has no score interval.
        some = two & (sums.noise.ceiling > 0.0)
        ends, share = score(tosses, z), tosses.reports / n
        smooth = some & np.isfinite(ends[0]) & (not proved)
        smooth &= noise_deviation(tosses) >= _SMOOTH * max(1.0, z**2 / 4.0)
        return [
            Rule(smooth, "score", lambda _: (ends[0] * share, ends[1] * share)),
            Rule(some & ~smooth, "enumerated", lambda at: _enumerated(tosses, ends, at, n, level)),
        ], two
    noisy_values = (tosses.own < 1.0) | (tosses.other > 0.0)
    blocks = two & noisy_values & sums.disclosed
    alone = two & ~blocks
    few = np.minimum(tosses.decisive, tosses.reports - tosses.decisive) < FEW * z**2
    close = alone & ~(few | options.simultaneous | proved)
    ends = in_block(tosses, n, z)
    many = tosses.reports >= _FEW_IN_BLOCK * z**2
    # The score interval is off where few reports are decisive, and far out in its tails.
    scored = blocks & many & np.isfinite(ends[0]) & ~(few | options.simultaneous | proved)
    return [
        Rule(close, "wilson", lambda _: wilson(tosses, z)),
        Rule(alone & ~close, "clopper-pearson", lambda at: clopper_pearson(tosses.at(at), level)),
        Rule(scored, "block", lambda _: ends),
        Rule(blocks & ~scored, "product", lambda at: _products(tosses, ends, at, n, level)),
    ], two


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


def _enumerated(tosses: Tosses, scores: Pair, places: Bools, n: int, level: float) -> Pair:
    tosses = tosses.at(places)
    low, high = enumerated(tosses, level)
    # An end at 0 or 1 was cut to the range; the score interval says how far beyond it would be.
    low = np.where(low <= 0.0, np.fmin(scores[0][places], 0.0), low)
    high = np.where(high >= 1.0, np.fmax(scores[1][places], 1.0), high)
    share = tosses.reports / n
    return low * share, high * share


def enumerated(tosses: Tosses, level: float) -> Pair:
    """Return exact bounds on the respondents' share, `(q,)` each; arrays of `tosses` are `(q,)`.

    If a of N respondents are inside, D is `Bin(a, own) + Bin(N - a, other)`, which grows with a.
    The bounds are the least and the largest a for which D is not in a tail of half the level. They
    hold at every N, since the test of each a is exact.
    """
    first, place = distinct_columns(tosses.columns)
    distinct = tosses.columns[:, first].T
    low, high = np.empty((2, len(distinct)))
    for start in range(0, len(distinct), _TOGETHER):
        some = slice(start, start + _TOGETHER)
        low[some], high[some] = _invert(distinct[some], level / 2.0)
    return low[place], high[place]


def _invert(rows: Floats, tail: float) -> Pair:
    """Return the least a with `P(D >= d) > tail`, and the largest with `P(D <= d) > tail`.

    Rounding errors of `tails` only widen the bounds. The search is by secants on the scale of
    normal quantiles, where tails are nearly straight lines of a; a rare halving bounds its steps.
    """
    tail *= 1.0 - _SLACK
    n, d, likely, other = np.concatenate([rows, rows]).T
    upper = np.arange(n.size) >= len(rows)
    most = np.where(upper, d, d - 1.0)
    # How many people one standard deviation of D is worth, for a first guess.
    scale = np.sqrt(n * np.maximum(likely * (1.0 - likely), other * (1.0 - other))) + 1.0
    scale /= likely - other
    target = np.where(upper, -1.0, 1.0) * _normal_quantile(np.array(tail))
    guess = (d - n * other) / (likely - other) + target * scale
    last, reached, number = guess - scale, target - 1.0, 0
    # Search for both at once: the first a in 0..n at which the condition starts or stops, or n + 1.
    low, high = np.zeros_like(n), n + 1.0
    while (at := np.flatnonzero(low < high)).size:
        # Beyond 2^53 adding 1 changes nothing: each step excludes a double at least.
        below_high = np.nextafter(high[at], 0.0)
        middle = np.floor(np.minimum((low[at] + high[at]) / 2.0, below_high))
        number += 1
        if number % _HALVED:
            middle = np.clip(np.floor(guess[at]), low[at], np.floor(below_high))
        below, above = tails(np.minimum(middle, n[at]), n[at], likely[at], other[at], most[at])
        excluded = np.where(upper[at], below <= tail, above > tail) | (middle > n[at])
        high[at] = np.where(excluded, middle, high[at])
        further = np.maximum(middle + 1.0, np.nextafter(middle, np.inf))
        low[at] = np.where(excluded, low[at], further)
        here = np.where(upper[at], -_normal_quantile(below), _normal_quantile(above))
        rise = (here - reached[at]) / np.where(middle == last[at], np.inf, middle - last[at])
        rise = np.where(rise > 0.0, rise, 1.0 / scale[at])
        guess[at], last[at], reached[at] = middle + (target[at] - here) / rise, middle, here
    least, beyond = np.split(low, 2)
    n = rows[:, 0]
    return np.minimum(least, n) / n, np.maximum(beyond - 1.0, 0.0) / n


def _normal_quantile(chance: Floats) -> Floats:
    """Return the quantile of each probability, at most 40 from 0."""
    quantiles: Floats = np.clip(scipy.special.ndtri(chance), -_FURTHEST, _FURTHEST)
    return quantiles


def wilson(tosses: Tosses, z: float) -> Pair:
    """Return Wilson's interval of `D/N`, as shares of the population."""
    n, d = tosses.some, tosses.decisive
    centre = d + z**2 / 2.0
    half = z * np.sqrt(d * (n - d) / n + z**2 / 4.0)
    low, high = ((centre + side * half) / (n + z**2) for side in (-1.0, 1.0))
    return tosses.to_share(low), tosses.to_share(high)


def clopper_pearson(tosses: Tosses, level: float) -> Pair:
    """Return Clopper and Pearson's interval of `D/N`, as shares of the population.

    Proved at every N, for every share, if D is binomial: reports drawn from a population.

    If the tosses are of different coins, those of given respondents or of a sample without
    replacement, the low end is proved for `N other > 1` and the high end for `N (1 - own) > 1`, at
    levels up to 1/2. From one integer beyond its mean on, the tail of D is below that of the
    binomial with the same mean (Hoeffding 1956, Theorem 5). If the mean is above 1, the binomial
    reaches it with a probability above 1/4 (Greenberg, Mohri 2014), so that every D at which the
    end errs lies that far out. With fewer expected reports, one coin of 0.02531 and others of 0
    exceed the error of 0.025 that their binomial, 0.02499, is allowed: by less than the square of
    the mean over 2, 3.3e-4 at 95%.

    A sample without replacement consists of such tosses: the generating polynomial of its number of
    decisive users has only real roots, and stays so when each user's report is drawn.
    """
    low, high = _binomial_bounds(tosses.decisive, tosses.reports, level)
    return tosses.to_share(low), tosses.to_share(high)


def _binomial_bounds(successes: Floats, trials: Floats, level: float) -> Pair:
    """Return the interval of a binomial probability itself."""
    d, n = np.broadcast_arrays(successes, trials)
    some, missing = d > 0.0, d < n
    low = scipy.special.betaincinv(np.where(some, d, 1.0), n - d + 1.0, level / 2.0)
    high = scipy.special.betaincinv(d + 1.0, np.where(missing, n - d, 1.0), 1.0 - level / 2.0)
    return np.where(some, low, 0.0), np.where(missing, high, 1.0)


def in_block(tosses: Tosses, n: int, z: float) -> Pair:
    """Return a score interval for the population's share of a value in a disclosed block.

    `tosses` are the block's, and n is the number of all reports. The interval holds all theta with
    `n (w - theta)^2 <= z^2 (v0 max(N/n, theta) + (1 + v1 - v0) theta - theta^2)`. Because of the
    max, this is the hull of the solutions of two quadratics; NaN if neither has any.
    """
    fraction = tosses.reports / n
    share = tosses.share * fraction
    v1, v0 = tosses.noise
    ends = [
        _roots(n + z**2, 2.0 * n * share + z**2 * linear, n * share**2 - z**2 * constant)
        for linear, constant in ((1.0 + v1 - v0, v0 * fraction), (1.0 + v1, 0.0 * fraction))
    ]
    lows, highs = zip(*ends, strict=True)
    return np.fmin(*lows), np.fmax(*highs)


def _roots(a: float, b: Floats, c: Floats) -> Pair:
    """Return the roots of `a x^2 - b x + c`, NaN if there are none."""
    square = b**2 - 4.0 * a * c
    root = np.sqrt(np.where(square < 0.0, np.nan, square))
    return (b - root) / (2.0 * a), (b + root) / (2.0 * a)


def _products(tosses: Tosses, scores: Pair, places: Bools, n: int, level: float) -> Pair:
    tosses = tosses.at(places)
    first, place = distinct_columns(tosses.columns)
    low, high = (end[place] for end in product(tosses.at(first), n, level))
    # As in `_enumerated`; the high end was cut to the block, which is known better than the share.
    return np.where(low <= 0.0, np.fmin(scores[0][places], 0.0), low), high


def product(tosses: Tosses, n: int, level: float) -> Pair:
    """Return the product of Clopper and Pearson's bounds on a block and on the share inside it.

    Each gets half of the level. Proved at every n; in a block without reports only the bound on the
    block counts.
    """
    block = _binomial_bounds(tosses.reports, np.full_like(tosses.reports, n), level / 2.0)
    silent = tosses.reports <= 0.0
    at_least_one = np.where(silent, 1.0, tosses.reports)
    inside = Tosses(at_least_one, np.where(silent, 0.0, tosses.decisive), tosses.own, tosses.other)
    low, high = (np.clip(end, 0.0, 1.0) for end in clopper_pearson(inside, level / 2.0))
    return np.where(silent, 0.0, block[0] * low), np.where(silent, block[1], block[1] * high)


# --- tail probabilities of a sum of tosses of two coins, at any number of tosses -----------------
#
# D is `Bin(a, own) + Bin(n - a, other)`. Summing probabilities takes as many terms as D has
# standard deviations, and factorials of large numbers lose digits. Instead the distribution is
# tilted until its mean is the place asked for, where its characteristic function is inverted over
# a lattice:
#
# - Both coins' odds are multiplied by `1 + E`, so that the mean becomes x. The probability of x - j
#   is that of the tilted distribution times `(1 + E)^j exp(-K)`, where K sums the Kullback-Leibler
#   divergences of all tosses. The tail is therefore `exp(-K)` times a sum of order 1, and has as
#   many digits as that, however small it is.
# - Beyond 13 standard deviations and 40 integers, tilted probabilities are below e^-80, so that a
#   lattice of M points of that length is enough. Of its M/2 frequencies the first 96 are: at the
#   96th the characteristic function is below e^-80, or there are no more.
#
# Arrays are float64 `(q,)`. Relative errors are below 1e-10 up to 10^11 tosses, and grow as the
# root of their number, as do those of the chances themselves.

FREQUENCIES: Final = 96
_J: Final = np.arange(1.0, FREQUENCIES + 1.0)
_SIGNS: Final = np.where(_J % 2.0, -1.0, 1.0)
_SERIES: Final = 0.005
"""At lower frequencies the phase follows from cumulants: its terms would cancel."""


def tails(a: Floats, n: Floats, likely: Floats, other: Floats, most: Floats) -> Pair:
    """Return `P(D <= most)` and `P(D > most)`; the smaller one has the small relative error."""
    counts = np.stack([a, n - a])
    chances = np.broadcast_to(np.stack([likely, other]), counts.shape)
    turned = most >= (counts * chances).sum(axis=0)
    # From the mean on, count the other outcomes: P(D > most) = P(n - D <= n - most - 1).
    place = np.where(turned, n - most - 1.0, most)
    chance = _lower_tail(counts, np.where(turned, 1.0 - chances, chances), place)
    return np.where(turned, 1.0 - chance, chance), np.where(turned, chance, 1.0 - chance)


def _lower_tail(counts: Floats, chances: Floats, most: Floats) -> Floats:
    """Return `P(D <= most)` for `most` up to the mean of D; counts and chances are `(2, q)`."""
    # Outcomes without any chance, or without any doubt, are no tosses.
    most = most - np.where(chances >= 1.0, counts, 0.0).sum(axis=0)
    counts = np.where((chances > 0.0) & (chances < 1.0), counts, 0.0)
    tosses, x = counts.sum(axis=0), np.maximum(most, 0.0)
    p = np.where(counts > 0.0, chances, 0.5)
    short = np.minimum(x - (counts * p).sum(axis=0), 0.0)
    # The tilt: counts times the changes of chances, v E/(1 + p E), add up to what is short.
    v = p * (1.0 - p)
    linear = (counts * v).sum(axis=0) - short * p.sum(axis=0)
    square = (counts * v * p[::-1]).sum(axis=0) - short * p.prod(axis=0)
    root = np.sqrt(np.maximum(linear**2 + 4.0 * square * short, 0.0))
    tilt = np.maximum(2.0 * short / np.where(linear > 0.0, linear + root, 1.0), -1.0 + 2.0**-52)
    moved = v * tilt / (1.0 + p * tilt)
    tilted, rest = p + moved, (counts * moved).sum(axis=0) - short
    ratio = np.log1p(tilt)
    # The least tilt may round to a chance of 0, whose term is 0: its logarithm has to be finite.
    divergence = counts * (
        tilted * np.log1p(np.maximum(moved / p, -1.0 + 2.0**-53))
        + (1.0 - tilted) * np.log1p(-moved / (1.0 - p))
    )
    scale = ratio * rest - divergence.sum(axis=0)
    chance = np.exp(scale) * _sum_below(counts, tilted, ratio, rest)
    return np.where(most < 0.0, 0.0, np.where(most >= tosses, 1.0, np.clip(chance, 0.0, 1.0)))


def _sum_below(counts: Floats, p: Floats, ratio: Floats, rest: Floats) -> Floats:
    """Return `sum_(j >= 0) e^(ratio j) P(D = x - j)`, `(q,)`; the mean of D is `x + rest`."""
    half = np.ceil(13.0 * np.sqrt((counts * p * (1.0 - p)).sum(axis=0)) + 40.0)[:, None]
    fraction = np.minimum(_J / half, 1.0)
    t = np.pi * fraction
    sine, cosine = np.sin(t / 2.0), np.cos(t / 2.0)
    log_size, phase = np.zeros_like(t), rest[:, None] * t
    for count, chance in zip(counts[..., None], p[..., None], strict=True):
        spread = chance * (1.0 - chance)
        # Half a turn of a fair toss has size 0.
        with np.errstate(divide="ignore"):
            log_size += count / 2.0 * np.log1p(np.where(count > 0.0, -4.0 * spread * sine**2, 0.0))
        # How far a toss turns the phase beyond its mean.
        odd = t**3 * spread * (1.0 - 2.0 * chance)
        series = odd * (-1.0 / 6.0 + (1.0 - 12.0 * spread) * t**2 / 120.0)
        angle = np.arctan2(2.0 * chance * sine * cosine, 1.0 - 2.0 * chance * sine**2)
        phase += count * np.where(t < _SERIES, series, angle - chance * t)
    # Times the geometric sum of z^j over the places below x, with z = e^(ratio + i t).
    factor, last = np.exp(ratio)[:, None], np.exp(ratio[:, None] * half)
    real, imaginary = (
        np.expm1(ratio)[:, None] - 2.0 * factor * sine**2,
        2.0 * factor * sine * cosine,
    )
    whole = (_SIGNS * last - 1.0) / (real**2 + imaginary**2)
    terms = np.exp(log_size) * whole * (real * np.cos(phase) + imaginary * np.sin(phase))
    weight = np.where(fraction < 1.0, 2.0, np.where(half == _J, 1.0, 0.0))
    flat = np.where(ratio < 0.0, ratio, 1.0)
    first = np.where(ratio < 0.0, np.expm1(half[:, 0] * flat) / np.expm1(flat), half[:, 0])
    return np.asarray((first + (weight * terms).sum(axis=1)) / (2.0 * half[:, 0]))
