"""Privacy amplification: upper bounds on (epsilon, delta) for those who see only a sum of reports.

The privacy blanket (Balle, Bell, Gascon, Nissim 2019; docs/theory.md, section 10): for two values
`delta(e) <= E(X_1 + ... + X_n)_+ / n`, where `X_i = (Q[x, y] - e^e Q[x', y]) / m(y)` with
probability `m(y)` for each output y, and 0 otherwise.

The expectation is computed on a lattice, so that every error makes it larger:

1. Each value is split over its two neighbours on the lattice, which keeps its mean. Since `(.)_+`
   is convex, its expectation grows.
2. The n-th power of one Fourier transform gives the n-fold convolution. Probabilities are tilted
   by `e^(t X)` before and weighted by `e^(-t X)` after, for any t > 0, so that errors are small
   relative to the result.
3. The transform wraps sums around the end of the lattice to places where they count more. What
   lies beyond the upper end is bounded by Chernoff's inequality.
4. Every rounding error is bounded and added.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.channels.blanket import Blanket, any_channel
from ldpstream.mechanisms.exact.dyadic import float_above

Bound = Literal["report", "any-channel", "blanket"]

_MOST_REPORTS: Final = 1_000_000
"""Of more reports only this many are counted; since more reports hide more, this is a bound."""
_UNIT: Final = 2.0**-53
_SLACK: Final = 2.0**-38
"""More than the relative error of any probability, each computed in some dozens of operations."""
_LARGEST_RATIO: Final = 1 << 40
"""Above this ratio almost nothing is hidden, and the numbers grow too large to compute with."""
_POINTS: Final = 1 << 18
_SPREADS: Final = 12.0
"""How many standard deviations the lattice covers on either side."""
_RARE: Final = 40
_FINE: Final = 16.0
"""Lattice points for each standard deviation of one report."""
_NEXT_TO_NOTHING: Final = -600.0
_STEPS: Final = 22


@dataclass(frozen=True)
class Amplified:
    """Values with this `budget` are (`epsilon`, delta)-indistinguishable, as `bound` proves."""

    budget: Fraction
    epsilon: float
    bound: Bound


def amplified(
    blankets: Collection[Blanket], *, budget: Fraction, reports: int, delta: float
) -> Amplified:
    """Return the most that one of this many reports loses, except with probability delta.

    This is the smaller of the two bounds, and at most what the report loses by itself.

    Raises:
        ValueError: for fewer than one report, or a delta that is not between 0 and 1.
    """
    if reports < 1 or not 0.0 < delta < 1.0:
        raise ValueError("expected at least one report, and 0 < delta < 1")
    itself = float_above(budget)
    epsilons: dict[Bound, float] = {"report": itself}
    if blankets and all(blanket.largest <= _LARGEST_RATIO for blanket in blankets):
        epsilons["blanket"] = max(_epsilon(blanket, reports, delta, itself) for blanket in blankets)
        ratios = [blanket.ratio for blanket in blankets]
        if None not in ratios:
            worst = any_channel(max(ratio for ratio in ratios if ratio is not None))
            epsilons["any-channel"] = _epsilon(worst, reports, delta, itself)
    bound = min(epsilons, key=lambda kind: epsilons[kind])
    return Amplified(budget, epsilons[bound], bound)


def _epsilon(blanket: Blanket, reports: int, delta: float, itself: float) -> float:
    """Return the least epsilon found at which delta is proved; `itself` if there is no smaller."""
    low, high = 0.0, itself
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if delta_above(blanket, epsilon=middle, reports=reports) <= delta:
            high = middle
        else:
            low = middle
    return high


def delta_above(blanket: Blanket, *, epsilon: float, reports: int) -> float:
    """Return an upper bound on delta for one of n reports, in both directions of the pair."""
    ways = {blanket, blanket.reversed}
    return max(_one_way(way, epsilon, min(reports, _MOST_REPORTS)) for way in ways)


def _one_way(blanket: Blanket, epsilon: float, n: int) -> float:
    """Return the bound in one direction; X and all that it is computed from are rounded up."""
    factor = math.exp(epsilon) * (1 - 4 * _UNIT)
    table = np.array([[float(number) for number in atom] for atom in blanket.atoms])
    masses, first, second = table.reshape(-1, 3).T
    values = first - factor * second
    values += 8 * _UNIT * (first + factor * second)
    bare = sum(max(0.0, float(a) * (1 + 4 * _UNIT) - factor * float(b)) for a, b in blanket.bare)
    return _mean_above_zero(masses, values, n) / n * (1 + _SLACK) + bare * (1 + _SLACK)


def _mean_above_zero(masses: Floats, values: Floats, n: int) -> float:
    """Return an upper bound on `E(X_1 + ... + X_n)_+`, each X one of the values, or else 0."""
    if not np.any(values > 0.0):
        return 0.0
    masses = np.append(masses, max(0.0, 1.0 - math.fsum(masses)) + 4 * _UNIT)
    values = np.append(values, 0.0)
    tilt, spread = _tilt(masses, values, n)
    spreads = 2 * _SPREADS * math.sqrt(n)
    points = min(_POINTS, 1 << max(12, math.ceil(math.log2(spreads * _FINE))))
    # Rare values may lie many standard deviations away: leave room for some of them.
    largest = 2 * (min(n, _RARE) + 1) * float(np.abs(values).max())
    step = max(spreads * spread, largest) / points
    places, chances = _split(masses, values / step)
    return _lattice_mean(places, chances, n, points=points, step=step, tilt=tilt)


def _tilt(masses: Floats, values: Floats, n: int) -> tuple[float, float]:
    """Return a t > 0 near the least `E e^(t X)`, and the tilted standard deviation.

    Every t gives a bound, so that nothing has to be rounded here.
    """
    scale = float(np.abs(values).max())
    low, high = 0.0, 1.0 / scale
    limit = 600.0 / scale
    while high < limit and _slope(masses, values, high) < 0.0:
        low, high = high, 2 * high
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if _slope(masses, values, middle) < 0.0 else (low, middle)
    chances = masses * np.exp(high * values)
    chances /= chances.sum()
    mean = float(chances @ values)
    spread = math.sqrt(max(float(chances @ values**2) - mean**2, scale**2 * 1e-12))
    # Not so close to 0 that the whole lattice would have the same weight.
    least = 1 / (3 * math.sqrt(n * float(masses @ values**2)))
    return max(high, min(least, 1.0 / scale)), spread


def _slope(masses: Floats, values: Floats, tilt: float) -> float:
    return float(masses @ (values * np.exp(tilt * values)))


def _split(masses: Floats, scaled: Floats) -> tuple[Integers, Floats]:
    """Return lattice places and their probabilities, each number split over its two neighbours.

    The share of the upper neighbour is rounded up, so that the mean does not shrink.
    """
    below = np.floor(scaled)
    upper = np.minimum(1.0, scaled - below + 4 * _UNIT * (1 + np.abs(scaled)))
    upper[scaled == below] = 0.0
    places = np.concatenate([below, below + 1]).astype(np.int64)
    return places, np.concatenate([masses * (1 - upper), masses * upper])


def _lattice_mean(
    places: Integers, chances: Floats, n: int, *, points: int, step: float, tilt: float
) -> float:
    """Return an upper bound on `E(S)_+`, where S is the sum of n draws of `step * places`."""
    half = points // 2
    weighted = chances * np.exp(tilt * step * places)
    moment = float(weighted.sum())
    draw = np.zeros(points)
    np.add.at(draw, places % points, weighted / moment * (1 + _SLACK))
    turned = np.fft.rfft(draw)
    # The error of one transform, relative to the sum of its input.
    error = 16 * _UNIT * math.log2(points)
    size = np.abs(turned) + error
    # Subnormal numbers are slow to compute with.
    counts = n * np.log(size) > _NEXT_TO_NOTHING
    powers = size[counts] ** (n - 1)
    error_sum = (n * powers * (error + 4 * _UNIT) + error * powers * size[counts]).sum()
    error_sum += len(size) * math.exp(_NEXT_TO_NOTHING)
    power = np.zeros_like(turned)
    power[counts] = _power(turned[counts], n)
    sums = np.fft.irfft(power, points)[1:half] + 2 * error_sum / points
    reached = np.arange(1, half) * step
    total = float(np.maximum(sums, 0.0) @ (reached * np.exp(-tilt * reached)))
    scale = n * (math.log(moment) + _SLACK)
    return math.exp(scale) * total * (1 + _SLACK) + _beyond(places, chances, n, half * step, step)


def _power(numbers: NDArray[np.complex128], n: int) -> NDArray[np.complex128]:
    """Return n-th powers by repeated squaring, with a relative error below `4 n` roundings."""
    if n == 1:
        return numbers
    half = _power(numbers, n // 2)
    return half * half * numbers if n % 2 else half * half


def _beyond(places: Integers, chances: Floats, n: int, end: float, step: float) -> float:
    """Return an upper bound on `E[S; S >= end]`: `s <= end e^(t (s - end))` for all t >= 1 / end.

    A few t are tried, and the smallest bound is returned.
    """
    values = step * places
    least = math.inf
    for times in (1.0, 4.0, 16.0, 64.0, 256.0, 1024.0):
        tilt = times / end
        if tilt * float(np.abs(values).max()) < 600.0:
            moment = float((chances * np.exp(tilt * values)).sum())
            exponent = n * (math.log(moment) + _SLACK) - times
            least = min(least, end * math.exp(min(600.0, exponent)))
    return least * (1 + _SLACK)
