"""Tests of the priors of a `lip` collection against its reports.

A wrong prior biases the Bayesian estimate without warning. But it also changes how often report 1
arrives: with the prior P, in a level with the channel (q, r), this has the probability
`l1 = P r + (1 - P) q`.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import scipy
from numpy.typing import NDArray

from ldpstream.estimators.bounds.options import Suspicion
from ldpstream.estimators.estimate import check_counts
from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.families.lip.lip import Lip
from ldpstream.mechanisms.interface.mechanism import Statistic

SIGNIFICANCE = 0.001
"""A prior with a smaller p-value is called wrong: at most one false alarm in a thousand windows."""
_SHIFT: Final = 2.0
_SLOPE: Final = 4.0
_LEVELS: Final = 4.0
"""The factors of the three tests' p-values, whose inverses 1/2 + 1/4 + 1/4 are 1 (Bonferroni)."""
_MAX_WEIGHT: Final = 8
_EXPONENT: Final = 40.0
"""Minus the logarithm of half the probability outside the reach."""
_NEGLIGIBLE: Final = 45.0
"""Minus the logarithm of characteristic functions that are left out."""
_CHUNK: Final = 1 << 20
"""Most pairs of a level and a frequency in memory at a time."""


@dataclass(frozen=True)
class CalibrationTest:
    """Tests of every level with reports, and of all levels together.

    For each tested level, `(levels,)`: its number, reports and reports of 1, int64; `least` and
    `largest`, the probabilities of report 1 at the ends of its interval of priors, and `p_value`,
    float64. `together` holds the p-values of errors that all levels may share. All are adjusted for
    multiple testing: if the priors are right, the probability that any is below d is at most d.
    """

    level: Integers
    reports: Integers
    ones: Integers
    least: Floats
    largest: Floats
    p_value: Floats
    together: dict[Suspicion, float]

    @property
    def smallest(self) -> float:
        """The p-value of the priors: the smallest of all p-values, 1 without reports."""
        return float(min(*self.together.values(), self.p_value.min(initial=1.0)))

    @property
    def suspicion(self) -> Suspicion:
        """The likeliest error of the priors: a shared one if its test is significant."""
        likely = min(self.together, key=lambda name: self.together[name])
        return likely if self.together[likely] < SIGNIFICANCE else "wrong in a level"

    @property
    def flagged(self) -> Integers:
        """Places of the levels whose priors are wrong, most significant first."""
        ranking = np.argsort(self.p_value, kind="stable")
        return ranking[self.p_value[ranking] < SIGNIFICANCE]


def calibrate(mechanism: Lip, statistic: Statistic, n: int) -> CalibrationTest:
    """Test the observed reports of 1 against the priors.

    If the priors are right, wherever they lie in their level, the number o of ones among the m
    reports of a level is a sum of independent bits with probabilities between `least` and
    `largest`, and stochastically between `Bin(m, least)` and `Bin(m, largest)`. Twice the tail of
    the outer one is therefore a p-value of the level, adjusted by Holm (1979).

    For any weights w that do not depend on the ones, `sum w o` is stochastically below
    `sum w Bin(m, largest)`; terms with w < 0 are replaced by `|w| (m - o)`, which is below
    `|w| Bin(m, 1 - least)`. Twice the exact tail of that sum is also a p-value. The weights are
    those of the best test against priors whose log-odds are all shifted (`too low`, `too high`) or
    scaled (`too far from 1/2`, `too near 1/2`), at the middle of each level. The three tests share
    the significance as 1/2, 1/4, 1/4.

    Right priors are thus called wrong with probability at most the significance, for any n, priors
    and budgets. This holds at one moment: the p-values are not adjusted for looking at a window
    repeatedly.
    """
    check_counts(mechanism, statistic, n)
    counts = statistic.reshape(-1, 2)
    level = np.flatnonzero(counts.sum(axis=1))
    reports, ones = counts[level].sum(axis=1), counts[level, 1]
    likely = mechanism.decoder.channel[level]
    place = level // len(mechanism.epsilons)
    edges, middles = np.array(mechanism.prior.edges), np.array(mechanism.prior.representatives)
    least, middle, largest = (
        _shares(prior[place], likely) for prior in (edges[:-1], middles, edges[1:])
    )
    above = _at_least(ones, reports, largest[:, 1])
    below = _at_least(reports - ones, reports, least[:, 0])
    separate = np.minimum(2.0 * np.minimum(above, below), 1.0)
    shift = middles[place] * (1.0 - middles[place]) * (likely[:, 1, 1] - likely[:, 0, 1])
    shift /= middle.prod(axis=1)
    up, down = _directions(shift, reports, ones, least, largest)
    far, near = _directions(shift * (1.0 - 2.0 * middles[place]), reports, ones, least, largest)
    together: dict[Suspicion, float] = {
        "too low": min(1.0, _SHIFT * up),
        "too high": min(1.0, _SHIFT * down),
        "too far from 1/2": min(1.0, _SLOPE * far),
        "too near 1/2": min(1.0, _SLOPE * near),
    }
    adjusted = np.minimum(_LEVELS * _holm(separate), 1.0)
    return CalibrationTest(level, reports, ones, least[:, 1], largest[:, 1], adjusted, together)


def _shares(prior: Floats, likely: Floats) -> Floats:
    """Return the probabilities of reports 0 and 1, `(levels, 2)`.

    Both are computed, since 1 minus one of them may round to 0 at large epsilon.
    """
    return prior[:, None] * likely[:, 1] + (1.0 - prior)[:, None] * likely[:, 0]


def _directions(
    weights: Floats, reports: Integers, ones: Integers, least: Floats, largest: Floats
) -> Iterator[float]:
    """Yield the doubled p-values for too many ones in the direction of the weights, and too few."""
    scale = _MAX_WEIGHT / max(np.abs(weights).max(initial=0.0), 1e-300)
    whole = np.rint(weights * scale).astype(np.int64)
    for signed in (whole, -whole):
        more = signed > 0
        count = np.where(more, ones, reports - ones)
        most = np.where(more[:, None], largest, least[:, ::-1])
        size = np.abs(signed)
        yield 2.0 * tail_at_least(int(size @ count), size, reports, most)


def _at_least(ones: Integers, reports: Integers, share: Floats) -> Floats:
    """Return `P(Bin(reports, share) >= ones)`."""
    tail = scipy.special.betainc(np.maximum(ones, 1), reports - ones + 1, share)
    return np.where(ones > 0, tail, 1.0)


def _holm(p_values: Floats) -> Floats:
    """Return the step-down adjusted p-values of a family, in the given order."""
    ranking = np.argsort(p_values, kind="stable")
    scaled = p_values[ranking] * np.arange(p_values.size, 0, -1)
    out = np.empty_like(p_values)
    out[ranking] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return out


def tail_at_least(total: int, weights: Integers, reports: Integers, shares: Floats) -> float:
    """Return an upper bound on `P(sum w Bin(n, p) >= total)`, exact to some 1e-12.

    `weights`, in 0..8, and `reports` are int64 `(levels,)`. `shares`, `(levels, 2)`, are the
    probabilities of 0 and of 1, both given because 1 minus the other would lose digits.

    Computed from the sum's characteristic function. The sum lies within `reach` of its mean except
    with probability 1e-17 (Bernstein's inequality), so that its distribution modulo that range is
    its distribution. The error from this, from rounding and from omitted frequencies, below 1e-12
    for a million reports, is added.
    """
    used = (weights > 0) & (reports > 0) & (shares[:, 1] > 0.0)
    weights, reports, shares = weights[used], reports[used], shares[used]
    if not weights.size:
        return 1.0 if total <= 0 else 0.0
    common = int(np.gcd.reduce(weights))
    weights, total = weights // common, -(-total // common)
    variance = reports * shares.prod(axis=1)
    mean = float(weights @ (reports * shares[:, 1]))
    jump = _EXPONENT / 3.0 * int(weights.max())
    reach = jump + math.sqrt(jump**2 + 2.0 * _EXPONENT * float(weights**2 @ variance))
    low = max(0, math.floor(mean - reach))
    high = min(int(weights @ reports), math.ceil(mean + reach))
    slack = 1e-12 + 1e-15 * math.sqrt(float(reports.sum()))
    if total <= low:
        return 1.0
    if total > high:
        return slack
    length = scipy.fft.next_fast_len(high - low + 1, real=True)
    transform = _characteristic(length, weights, reports, shares, variance)
    masses = scipy.fft.irfft(transform, length)
    return min(1.0, float(masses[np.arange(total, high + 1) % length].sum()) + slack)


def _characteristic(
    length: int, weights: Integers, reports: Integers, shares: Floats, variance: Floats
) -> NDArray[np.complex128]:
    """Return the first half of the discrete Fourier transform of the masses modulo `length`.

    With u = w t a toss has `|1 - p + p e^iu|^2 = 1 - 2p(1-p)(1 - cos u)`, so that the logarithm of
    the whole is below `-sum n p(1-p)(1 - cos u)`. These 8 cosines exclude most frequencies.
    """
    place = np.arange(length // 2 + 1)
    spread = np.bincount(weights, variance, _MAX_WEIGHT + 1)
    cosine = np.cos(2.0 * np.pi / length * place)
    before, now, bound = np.ones_like(cosine), cosine, np.zeros_like(cosine)
    for weight in range(1, int(weights.max()) + 1):
        bound += spread[weight] * (1.0 - now)
        before, now = now, 2.0 * cosine * now - before
    frequencies = np.flatnonzero(bound < _NEGLIGIBLE)
    # Use the rarer side of each coin; the phase of the other is that of an integer minus it.
    rare = np.minimum(shares[:, 0], shares[:, 1])
    flipped = shares[:, 1] > shares[:, 0]
    offset = int(weights[flipped] @ reports[flipped])
    sign = np.where(flipped, -1.0, 1.0)
    out = np.zeros(length // 2 + 1, dtype=np.complex128)
    step = max(1, _CHUNK // max(1, len(weights)))
    for start in range(0, len(frequencies), step):
        chunk = frequencies[start : start + step]
        # Reduce as integers to -pi..pi, where logarithms and angles are accurate.
        turns = (np.arange(_MAX_WEIGHT + 1)[:, None] * chunk + length // 2) % length - length // 2
        angle = (2.0 * np.pi / length * turns)[weights]
        error = 2.0 * rare[:, None] * np.sin(angle / 2.0) ** 2
        with np.errstate(divide="ignore"):  # A fair coin's at half a turn is 0.
            size = reports @ (0.5 * np.log1p(-2.0 * (1.0 - rare[:, None]) * error))
        phase = (sign * reports) @ np.arctan2(rare[:, None] * np.sin(angle), 1.0 - error)
        whole = 2.0 * np.pi / length * (offset * chunk % length)
        out[chunk] = np.exp(size - 1j * (phase + whole))
    return out
