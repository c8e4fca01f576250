"""The exact tail of a weighted sum of independent binomials, from its characteristic function."""

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len

from ldpstream.mechanisms.base.arrays import Floats, Integers

MAX_WEIGHT: Final = 8
_EXPONENT: Final = 40.0
"""Minus the logarithm of half the probability outside the reach."""
_NEGLIGIBLE: Final = 45.0
"""Minus the logarithm of characteristic functions that are left out."""
_CHUNK: Final = 1 << 20
"""Most pairs of a level and a frequency in memory at a time."""


def tail_at_least(total: int, weights: Integers, reports: Integers, shares: Floats) -> float:
    """Return an upper bound on `P(sum w Bin(n, p) >= total)`, exact to some 1e-12.

    `weights`, in 0..8, and `reports` are int64 `(levels,)`. `shares`, `(levels, 2)`, are the
    probabilities of 0 and of 1, both given because 1 minus the other would lose digits.

    The sum lies within `reach` of its mean except with probability 1e-17 (Bernstein's inequality),
    so that its distribution modulo that range is its distribution. The error from this, from
    rounding and from omitted frequencies, below 1e-12 for a million reports, is added.
    """
    kept = (weights > 0) & (reports > 0) & (shares[:, 1] > 0.0)
    weights, reports, shares = weights[kept], reports[kept], shares[kept]
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
    length = next_fast_len(high - low + 1, real=True)
    transform = _transform(length, weights, reports, shares, variance)
    masses = irfft(transform, length)
    return min(1.0, float(masses[np.arange(total, high + 1) % length].sum()) + slack)


def _transform(
    length: int, weights: Integers, reports: Integers, shares: Floats, variance: Floats
) -> NDArray[np.complex128]:
    """Return the first half of the discrete Fourier transform of the masses modulo `length`.

    With u = w t a toss has `|1 - p + p e^iu|^2 = 1 - 2p(1-p)(1 - cos u)`, so that the logarithm of
    the whole is below `-sum n p(1-p)(1 - cos u)`. These 8 cosines exclude most frequencies.
    """
    place = np.arange(length // 2 + 1)
    spread = np.bincount(weights, variance, MAX_WEIGHT + 1)
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
        part = frequencies[start : start + step]
        # Reduce as integers to -pi..pi, where logarithms and angles are accurate.
        turns = (np.arange(MAX_WEIGHT + 1)[:, None] * part + length // 2) % length - length // 2
        angle = (2.0 * np.pi / length * turns)[weights]
        lost = 2.0 * rare[:, None] * np.sin(angle / 2.0) ** 2
        with np.errstate(divide="ignore"):  # A fair coin's at half a turn is 0.
            size = reports @ (0.5 * np.log1p(-2.0 * (1.0 - rare[:, None]) * lost))
        phase = (sign * reports) @ np.arctan2(rare[:, None] * np.sin(angle), 1.0 - lost)
        whole = 2.0 * np.pi / length * (offset * part % length)
        out[part] = np.exp(size - 1j * (phase + whole))
    return out
