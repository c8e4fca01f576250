"""Bounds on estimates that hold at every number of reports at once.

For any mechanism and any data: a mixture of Bennett's bounds with the most noise that the reports
can have (docs/theory.md, anytime-valid bounds). It needs only sums over the reports so far, not
their order. Arrays are float64 of shape `(q,)`, one entry for each query. `level`, in (0, 1), is
the probability that a bound ever fails.
"""

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from ldpstream.estimators.bounds.options import Options
from ldpstream.estimators.bounds.types import Sums
from ldpstream.mechanisms.base.arrays import Bools, Floats, Integers

_VARIANCE_PART = 0.1
"""The part of the error level that is spent on the variance if that is estimated."""
_CENTRES: Final = np.array([0.0, 0.5, 1.0])
_SCALES: Final = 4.0 ** -np.arange(8.0)
_FINER: Final = np.arange(1.0, 8.0) ** -2
_PARTS: Final = np.append(1.0, _FINER / _FINER.sum()) / 2.0
"""The scales of `tail_mixture` relative to `sharpest`, and their weights with sum 1."""
_RATES: Final = 1.5 ** np.arange(-8.0, 18.0)
"""The lambdas of `tail_mixture`, relative to the one that is best at `sharpest`."""
_EDGES: Final = np.concatenate([[0.0], np.sqrt(_RATES[1:] * _RATES[:-1]), [np.inf]])
_MASSES: Final = np.diff(_PARTS @ np.vectorize(math.erf)(np.sqrt(_SCALES / 2.0)[:, None] * _EDGES))
"""Their weights with sum 1: those of the normal mixture between the neighbours' means."""
_LOG_MASSES: Final = np.log(_MASSES)[:, None]
_STEEPEST: Final = 60.0
"""Largest lambda times B."""
_FAR: Final = 4.0
"""Terms of lambdas so many times the best one are usually nothing."""
_MORE: Final = 3.0
"""How much the largest exponent usually exceeds the logarithm of `2/level`, for its weight."""
_NOTHING: Final = 45.0
"""A sum of doubles, its slope too, stays the same with a term of e to minus this times it."""
_STEPS_OF_A_UNIT: Final = np.array([[256.0], [256.0], [16.0]])
"""Into how many steps a unit of the logarithms of variances, offs and `sharpest` is divided."""
_FEW: Final = 64
"""Equal columns among at most so many are not looked for: it would take longer than it saves."""
_ENTRIES_A_KEY: Final = 8
_TABLE: Final = 1 << 12
"""Keys are counted in a table of so many entries for each, or in all, and else sorted."""
_LARGEST: Final = -1.2
"""The logarithm of the largest term at the root, roughly: several terms add up to 1."""
_STEPS: Final = 8
_PRECISION: Final = 1e-6
"""Steps get shorter by their square: after one of this size the root is known to ten digits."""
_TILTS: Final = 2.0 ** -np.arange(9.0)
"""The a of `mean_ceiling`; the smallest is best if the sum is a million times a report's bound."""
_ROOMS: Final = -np.expm1(-_TILTS)
_CHANGES: Final = np.diff(1.0 / _ROOMS) / -np.diff(_TILTS / _ROOMS)
"""Where the next a is better: `total/largest` in units of `log(9/level)`."""


def anytime_distances(sums: Sums, n: int, level: float, options: Options) -> tuple[Floats, Floats]:
    """Return how far the truth may lie below and above each estimate, `(q,)` each; n >= 1.

    A plug-in variance fails for rare values: without a report it is 0. The noise is therefore
    replaced by a bound that also holds at all moments: what the disclosed groups can produce, or
    less if the second moments of the decoded reports exclude it (`mean_ceiling`).
    """
    if options.estimand == "respondents":
        variance, rest = _noise(sums, n, level)
    else:
        variance, rest = sampling_ceiling(sums, n, level)
    sharpest = _sharpest(sums, options)
    if sums.reach is not None:
        # Noise that is itself a sum has no largest value that says anything; its tails do.
        off = sums.noise.deviation
        if options.estimand == "population":
            # As for Bernstein's bounds: the weight is random too, and with groups the group.
            off = sums.spread if sums.disclosed else np.maximum(off, sums.reach)
        half = tail_half_width(bernstein_exponent, variance, off, sharpest, n, rest)
        return half, half
    # A report above its mean moves the estimate up, so that the truth lies below.
    off = np.stack([sums.limits.largest - sums.limits.bottom, sums.limits.top - sums.limits.least])
    alike = np.array_equal(off[0], off[1])
    halves = tail_half_width(
        bennett_exponent, variance, off[:1] if alike else off, sharpest, n, rest
    )
    return halves[0], halves[-1]


def _sharpest(sums: Sums, options: Options) -> Floats:
    """Return the variance that `options.sharpest` reports of uniform data would have."""
    typical = sums.noise.typical
    if options.estimand == "population":
        typical = typical + sums.typical_sampling
    # The normal approximation needs at least the noise of one report.
    return np.maximum(options.sharpest * typical, sums.spread**2)


def _noise(sums: Sums, n: int, level: float) -> tuple[Floats, float]:
    """Return a bound on the respondents' noise `sum_i v(x_i)`, and the remaining level.

    `E (h - a)^2 = v + (w - a)^2`, which is exactly `v + 1/4` for indicators and `a = 1/2`.
    """
    if sums.reach is not None:
        return sums.noise.ceiling, level
    moments = _second_moments(sums, n, level)
    if sums.indicators:
        moments[1] -= n / 4.0
    variance = np.maximum(moments.min(axis=0), 0.0)
    return np.minimum(sums.noise.ceiling, variance), level * (1.0 - _VARIANCE_PART)


def sampling_ceiling(sums: Sums, n: int, level: float) -> tuple[Floats, float]:
    """Return a bound on n times the variance of h under the population, and the remaining level.

    It holds at all moments together, n >= 1. A group's share among the respondents differs from its
    share of the population, so that the bound is on the mean of `(h - a)^2`, in which groups have
    their true frequencies.
    """
    most = n * sums.spread**2 / 4.0
    if sums.reach is None:
        variance = _second_moments(sums, n, level).min(axis=0)
    elif sums.disclosed:
        variance = mean_ceiling(sums.noise.moment, sums.noise.peak, level * _VARIANCE_PART)
    else:
        noise = sums.noise.ceiling if sums.noise.heaviest is None else n * sums.noise.heaviest
        return np.minimum(noise + n * sums.reach**2 / 4.0, most), level
    return np.minimum(variance, most), level * (1.0 - _VARIANCE_PART)


def _second_moments(sums: Sums, n: int, level: float) -> Floats:
    """Return bounds on `sum_i E (h(y_i) - a)^2` for each a in `_CENTRES`: `(3, q)`."""
    a = _CENTRES[:, None]
    total = np.maximum(sums.squares - 2.0 * a * sums.total + a**2 * n, 0.0)
    largest = np.maximum((sums.limits.least - a) ** 2, (sums.limits.largest - a) ** 2)
    return mean_ceiling(total, largest, level * _VARIANCE_PART / len(_CENTRES))


def tail_half_width(
    exponent: Callable[[Floats, Floats], Floats],
    variance: Floats,
    off: Floats,
    sharpest: Floats,
    n: int,
    level: float,
) -> Floats:
    """Return the half-widths of `tail_mixture` for the mean of n reports; equal ones are shared.

    `off` has the shape `(q,)`, or `(s, q)` for several sides, as has the result. Variances and offs
    are rounded up by at most 1/256, which is valid, and `sharpest`, which can be any constant, by
    1/16: few of their combinations are different.
    """
    some = variance > 0.0
    if not some.any():
        return np.zeros(off.shape)
    steps = [
        _steps_above(each, some, scale)
        for each, scale in zip((variance, off, sharpest), _STEPS_OF_A_UNIT.flat, strict=True)
    ]
    if off.size <= _FEW:
        every = np.empty((3, *off.shape), dtype=np.int64)
        for row, each in zip(every, steps, strict=True):
            row[...] = each
        columns, place = every.reshape(3, -1), np.arange(off.size).reshape(off.shape)
    else:
        columns, place = _distinct_columns(steps)
    halves = tail_mixture(exponent, np.exp(columns / _STEPS_OF_A_UNIT), n, level) / n
    return np.where(some, np.broadcast_to(halves.take(place), off.shape), 0.0)


def _steps_above(numbers: Floats, some: Bools, scale: float) -> Integers:
    """Return logarithms as numbers of steps of `1/scale`, rounded up, `(.., q)`.

    Only `some` of the q numbers have one; the others get that of the first of them. If all numbers
    are equal, one stands for all: `(.., 1)`.
    """
    place = int(np.argmax(some))
    alike = numbers[..., place, None]
    if (numbers == alike).all():
        return np.ceil(np.log(alike) * scale).astype(np.int64)
    steps = np.log(numbers, out=np.zeros(numbers.shape), where=some)
    steps *= scale
    whole = np.ceil(steps, out=steps).astype(np.int64)
    np.copyto(whole, whole[..., place, None], where=~some)
    return whole


def _distinct_columns(rows: Sequence[Integers]) -> tuple[Integers, Integers]:
    """Return the different columns of integers, `(m, columns)`, and which of them each column is.

    Keys are built row by row, and kept small enough to be counted in a table.
    """
    numbers: list[Integers] = []
    key, end, varied = np.zeros(1, dtype=np.int64), 1, 0
    for row in rows:
        if row.shape[-1] == 1:
            used, place = row.ravel(), np.arange(row.size).reshape(row.shape)
        else:
            least = int(row.min())
            used, place = _distinct(row - least, int(row.max()) - least + 1)
            used, varied = used + least, varied + 1
        numbers.append(used)
        key, end = key * used.size + place, end * used.size
    # Where only one row is not the same for all queries, all combinations are in use.
    used, place = (np.arange(end), key) if varied == 1 else _distinct(key, end)
    each = np.unravel_index(used, tuple(row.size for row in numbers))
    return np.stack([row[at] for row, at in zip(numbers, each, strict=True)]), place


def _distinct(key: Integers, end: int) -> tuple[Integers, Integers]:
    """Return the different keys of `0..end-1`, ascending, and which of them each key is."""
    if end > max(_ENTRIES_A_KEY * key.size, _TABLE):
        used, place = np.unique(key, return_inverse=True)
        return used, place.reshape(key.shape)
    used = np.flatnonzero(np.bincount(key.ravel(), minlength=end))
    numbers = np.empty(end, dtype=np.int64)
    numbers[used] = np.arange(used.size)
    return used, numbers.take(key)


def tail_mixture(
    exponent: Callable[[Floats, Floats], Floats], rows: Floats, n: int, level: float
) -> Floats:
    """Return how far the sum of n reports lies above its mean at most; the other side likewise.

    `rows` are variances, offs and the sums of variances at which bounds are narrowest, which must
    not depend on the reports, float64 `(3, q)`. A variance above 0 bounds the sum of the reports'
    variances so far, and an off is the B of
    `exponent(lambda B, q)`, which bounds `log E exp(lambda (h - E h))` of one report with the
    variance `q B^2`. It grows with q and is concave in q. For reports with different variances the
    sum of their exponents is therefore at most `n exponent(lambda B, variance/(n B^2))`, and
    `sum_j w_j exp(lambda_j S - n exponent(..))` is at most a supermartingale with mean 1, at every
    n and whatever larger variance is put in. It stays below `2/level` (Ville), half of the level
    for each side.

    lambda has 26 places, with the weights of a mixture of normal distributions (Waudby-Smith,
    Arbour, Sinha, Kennedy, Ramdas 2021, Theorem 2.2 and its appendix on r). Half of the weight is
    kept for scales of `sharpest` divided by 4, 16, ...: this costs 2% where the bound is narrowest,
    and a query with a hundredth of the expected variance gets bounds half as wide.
    """
    if rows.shape[1] == 1:
        # A single row would be summed in another order, and the last bits must not differ.
        return tail_mixture(exponent, np.repeat(rows, 2, axis=1), n, level)[:1]
    variance, off, sharpest = rows
    target = math.log(2.0 / level)
    # Any constant is valid; this one is the best, but it is 0 at level 1.
    r = max(math.log1p(-2.0 * math.log(level)) - 2.0 * math.log(level), 0.1)
    unit, steepest, share = np.sqrt(r / sharpest), _STEEPEST / off, variance / (n * off**2)
    # Rates far above the best one add nothing, and leaving out terms is valid.
    best = math.sqrt(2.0 * (target + _MORE)) / float((np.sqrt(variance) * unit).min(initial=np.inf))
    count = int(np.searchsorted(_RATES, _FAR * best)) + 1
    while True:
        rate = np.minimum(_RATES[:count, None] * unit, steepest)
        start = _LOG_MASSES[:count] - n * exponent(rate * off, share)
        start -= target
        bound = (-start / rate).min(axis=0)
        last = (start[-1] + rate[-1] * bound).max(initial=-np.inf)
        if count == _RATES.size or last < -_NOTHING:
            return _solve(start, rate, bound)
        count = _RATES.size


def _solve(start: Floats, slope: Floats, most: Floats) -> Floats:
    """Return the roots of `log sum_j exp(start_j + slope_j x) = 0`, or a bit more: `(q,)`.

    `start` and `slope` are `(j, q)`; each term alone bounds the root, all of them by `most`.
    Newton's steps on the convex sum's logarithm end above its root wherever they begin, so that
    what is found is valid after any number of them. The first step is Halley's, which ends nearer.
    """
    root: Floats = ((_LARGEST - start) / slope).min(axis=0)
    further = np.ones(root.size, dtype=np.bool_)
    for number in range(_STEPS):
        terms = slope * root
        terms += start
        np.exp(terms, out=terms)
        whole = terms.sum(axis=0)
        terms *= slope
        first = terms.sum(axis=0)
        step = np.log(whole) * whole / first
        if number == 0:
            terms *= slope
            # How much the slope of the logarithm changes within half a step, relative to itself.
            change = step / 2.0 * (terms.sum(axis=0) / first - first / whole)
            root = np.minimum(root - step / (1.0 - np.minimum(change, 0.5)), most)
            continue
        # Whether a row is done depends on it alone: the same bits for however many queries.
        np.copyto(root, np.minimum(root - step, most), where=further)
        further &= np.abs(step) > _PRECISION * root
        if not further.any():
            break
    return root


def bennett_exponent(s: Floats, q: Floats) -> Floats:
    """Return `log((q e^s + e^(-s q))/(1 + q))`, for reports that lie at most B above their mean.

    Bennett 1962: of all such reports with variance `q B^2`, the one with two values has the largest
    `E exp(lambda X)`, `s = lambda B`. Concave in q: Hoeffding 1963, Theorem 3.
    """
    exponent = np.expm1(s)
    exponent *= q
    exponent += np.expm1(-q * s)
    exponent /= 1.0 + q
    np.log1p(exponent, out=exponent)
    small = s * (1.0 + q) < 1e-3
    if small.any():
        # The first terms cancel. What remains follows from the cumulants.
        s, q = s[small], np.broadcast_to(q, small.shape)[small]
        rest = 1.0 + (1.0 - q) * s / 3.0 + (1.0 - 4.0 * q + q**2) * s**2 / 12.0
        exponent[small] = q * s**2 / 2.0 * rest
    return exponent


def bernstein_exponent(s: Floats, q: Floats) -> Floats:
    """Return `q s^2/(2 (1 - s/3))`, infinite from s = 3 on, for reports whose noise is a sum.

    `LinearDecoder.deviation` is the B for which it holds; noise without a largest value has one
    too. Bennett's does not hold for such noise.
    """
    room = 1.0 - s / 3.0
    return np.where(room > 0.0, q * s**2 / (2.0 * np.where(room > 0.0, room, 1.0)), np.inf)


def mean_ceiling(total: Floats, largest: Floats, level: float) -> Floats:
    """Return an upper bound on the sum of the means of reports in `[0, largest]`, given their sum.

    Exact at all numbers of reports at once, for independent reports with any distributions: since
    `exp(-a x/B) <= 1 - (1 - e^-a) x/B` on `[0, B]`, the process
    `exp((1 - e^-a) sum_i E x_i/B - a sum_i x_i/B)` is a supermartingale with mean at most 1, and
    stays below `1/level` (Ville). Nine values of a get a ninth of the level each, and the least
    bound is returned.
    """
    scale = math.log(_TILTS.size / level)
    term = np.divide(total, largest, out=np.zeros(total.shape), where=largest > 0.0)
    # Of all a, only these are the best of any sum.
    ends = np.array([term.min(initial=np.inf), term.max(initial=0.0)])
    first, last = np.searchsorted(_CHANGES, ends / scale)
    lowest = np.full(total.shape, np.inf)
    bound = np.empty_like(lowest)
    for tilt, room in zip(_TILTS[first : last + 1], _ROOMS[first : last + 1], strict=True):
        np.multiply(total, tilt / room, out=bound)
        np.multiply(largest, scale / room, out=term)
        np.minimum(lowest, np.add(bound, term, out=bound), out=lowest)
    return lowest
