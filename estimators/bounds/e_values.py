"""Proved bounds of many-valued queries, from how often each decoded value was reported (`exact`).

Whoever claims that the mean is m bets against it: with the stake s on a report y that decodes to
`h_y >= a` the capital is multiplied by `1 - s + s (h_y - a)/(m - a)`. Over reports whose mean of
means is at most m the expected capital is at most 1, whatever the order of the reports: by the
inequality of the arithmetic and the geometric mean where they are independent, and by Maclaurin's
where they are drawn without replacement. So it exceeds `2/level` with probability at most `level/2`
(Markov), also if it is spread over several stakes that were fixed before the reports. The low end
is the least m against which that was not won; the high end is the same from the other side.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np

from ldpstream.estimators.bounds.bounded import cut_bounds
from ldpstream.estimators.bounds.options import Estimand, Options
from ldpstream.estimators.bounds.types import Estimate, Sums
from ldpstream.mechanisms.base.arrays import Floats
from ldpstream.mechanisms.interface.decoder import Statistic

_POWERS: Final = np.arange(-3.0, 14.0)
"""Stakes are the best one for typical data times two to these powers.

Data can be far less noisy than typical ones: all users with one value, and many of them. So stakes
go up to the largest allowed, for up to some 10^8 reports, and are sparse in return.
"""
_SHARES: Final = (1.0 + 1.5 * np.abs(_POWERS)) ** -2.0
_MOST_STAKED: Final = 0.99
_HALVINGS: Final = 45
MOST_DISTINCT: Final = 1 << 17
"""Most different decoded values of all queries that are bounded together."""
_TOGETHER: Final = 1 << 20
"""Number of capitals and decoded values that are in memory at a time."""


@dataclass(frozen=True)
class Tally:
    """What a query's reports decode to: distinct values and how often each, float64 `(d,)`."""

    values: Floats
    counts: Floats

    @classmethod
    def of(cls, h: Floats, statistic: Statistic) -> Self:
        """Return the tally of counted symbols that decode to h, `(outputs,)`."""
        seen = np.flatnonzero(statistic)
        values, places = np.unique(h[seen], return_inverse=True)
        return cls(values, np.bincount(places.reshape(-1), statistic[seen]).astype(np.float64))


def tally_each(reports: Iterable[tuple[Floats, Statistic]], n: int) -> list[Tally]:
    """Return the tallies of queries, given what symbols decode to and how often each came.

    Other symbols decode to 0. If bounds of all these queries would take too long, whatever the
    reports are, the list is empty.
    """
    tallies, distinct = [], 0
    for h, statistic in reports:
        values, places = np.unique(h, return_inverse=True)
        distinct += values.size
        if distinct > MOST_DISTINCT:
            return []
        counts = np.bincount(places.reshape(-1), statistic)
        seen = np.flatnonzero(counts)
        rest = n - counts.sum()
        tallies.append(Tally(np.append(values[seen], 0.0), np.append(counts[seen], rest)))
    return tallies


def use_e_values(options: Options) -> bool:
    """Return whether reports are as the proof needs them: one of each device, under `exact`.

    Several reports of one value of a device are not independent.
    """
    sampling = options.sampling
    single = options.estimand == "respondents" or max(sampling.population, sampling.active) <= 1.0
    return options.method == "exact" and single and sampling.noise <= 1.0


def replace_bernstein(
    estimate: Estimate, sums: Sums, options: Options, tallies: Sequence[Tally]
) -> Estimate:
    """Return estimates with these bounds in place of Bernstein's; `tallies` are of all queries."""
    places = np.flatnonzero(estimate.form == "bernstein").tolist() if tallies else []
    return with_e_values(estimate, sums, options, places, [tallies[place] for place in places])


def with_e_values(
    estimate: Estimate,
    sums: Sums,
    options: Options,
    places: Sequence[int],
    tallies: Sequence[Tally],
) -> Estimate:
    """Return estimates in which some queries, with their tallies, have these bounds."""
    if not tallies or not estimate.n:
        return estimate
    at, limits = np.asarray(places), sums.limits
    bottom, top = limits.bottom[at], limits.top[at]
    deviation = np.sqrt(sums.noise.typical[at] + sums.typical_sampling[at])
    level = options.error_level(estimate.value.size)
    ends = []
    for side, floor in ((1.0, limits.least[at]), (-1.0, -limits.largest[at])):
        near, far = (bottom, top) if side > 0 else (-top, -bottom)
        offsets = [
            np.maximum(side * tally.values - least, 0.0)
            for tally, least in zip(tallies, floor, strict=True)
        ]
        middle = (near + far) / 2.0 - floor
        low = lowest_means(
            offsets,
            [tally.counts for tally in tallies],
            middle / deviation,
            (near - floor, far - floor),
            level,
        )
        ends.append(side * (floor + low))
    population = options.sampling.factor(options.estimand) > 0.0
    estimand: Estimand = "population" if population else "respondents"
    low, high = estimate.low.copy(), estimate.high.copy()
    low[at], high[at] = ends
    low, high = cut_bounds(sums, estimate.n, (low, high), replace(options, estimand=estimand))
    lowest, highest, form = estimate.lowest.copy(), estimate.highest.copy(), estimate.form.copy()
    lowest[at], highest[at], form[at] = low[at], high[at], "e-value"
    return replace(estimate, low=low, high=high, lowest=lowest, highest=highest, form=form)


def lowest_means(
    offsets: Sequence[Floats],
    counts: Sequence[Floats],
    scales: Floats,
    ends: tuple[Floats, Floats],
    level: float,
) -> Floats:
    """Return the least mean against which less than `2/level` was won, for q queries: `(q,)`.

    All numbers are relative to the least decoded value of any report: `offsets` and `ends`, the
    range of the mean. The typical stake is `scales` times `sqrt(2 log(2/level)/n)`.
    """
    out = np.empty(len(offsets))
    first = 0
    while first < len(offsets):
        width, last = len(offsets[first]), first + 1
        while last < len(offsets):
            wider = max(width, len(offsets[last]))
            if (last + 1 - first) * wider * _POWERS.size > _TOGETHER:
                break
            width, last = wider, last + 1
        some = slice(first, last)
        padded, numbers = np.zeros((2, last - first, width))
        for row, (values, times) in enumerate(zip(offsets[some], counts[some], strict=True)):
            padded[row, : len(values)], numbers[row, : len(values)] = values, times
        bounds = ends[0][some], ends[1][some]
        out[some] = _bisect(padded, numbers, scales[some], bounds, level)
        first = last
    return out


def _bisect(
    offsets: Floats, counts: Floats, scales: Floats, ends: tuple[Floats, Floats], level: float
) -> Floats:
    target = math.log(2.0 / level)
    typical = scales[:, None] * np.sqrt(2.0 * target / counts.sum(axis=1))[:, None]
    stakes = np.minimum(typical * 2.0**_POWERS, _MOST_STAKED)[:, :, None]
    shares = np.log(_SHARES / _SHARES.sum())
    positive = (offsets > 0.0) & (counts > 0.0)

    def is_refuted(mean: Floats) -> Floats:
        # A mean at the least value is infinitely wrong as soon as anything else was reported.
        ratio = offsets / np.where(mean > 0.0, mean, 1.0)[:, None]
        capital = (counts[:, None] * np.log1p(stakes * (ratio[:, None] - 1.0))).sum(axis=2)
        refuted = np.logaddexp.reduce(capital + shares, axis=1) >= target
        return np.where(mean > 0.0, refuted, positive.any(axis=1))

    low, high = ends[0].copy(), ends[1].copy()
    high = np.where(is_refuted(low), high, low)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        refuted = is_refuted(middle)
        low, high = np.where(refuted, middle, low), np.where(refuted, high, middle)
    return low
