"""Tail probabilities of a sum of tosses of two coins, at any number of tosses.

D is `Bin(a, own) + Bin(n - a, other)`. Summing probabilities takes as many terms as D has standard
deviations, and factorials of large numbers lose digits. Instead the distribution is tilted until
its mean is the place asked for, where its characteristic function is inverted over a lattice:

- Both coins' odds are multiplied by `1 + E`, so that the mean becomes x. The probability of x - j
  is that of the tilted distribution times `(1 + E)^j exp(-K)`, where K sums the Kullback-Leibler
  divergences of all tosses. The tail is therefore `exp(-K)` times a sum of order 1, and has as many
  digits as that, however small it is.
- Beyond 13 standard deviations and 40 integers, tilted probabilities are below e^-80, so that a
  lattice of M points of that length is enough. Of its M/2 frequencies the first 96 are: at the
  96th the characteristic function is below e^-80, or there are no more.

Arrays are float64 `(q,)`. Relative errors are below 1e-10 up to 10^11 tosses, and grow as the root
of their number, as do those of the chances themselves.
"""

from typing import Final

import numpy as np
from scipy.special import xlog1py

from ldpstream.estimators.bounds.types import Pair
from ldpstream.mechanisms.base.arrays import Floats

FREQUENCIES: Final = 96
_J: Final = np.arange(1.0, FREQUENCIES + 1.0)
_SIGNS: Final = np.where(_J % 2.0, -1.0, 1.0)
_SERIES: Final = 0.005
"""At lower frequencies the phase follows from cumulants: its terms would cancel."""


def tails(a: Floats, n: Floats, own: Floats, other: Floats, most: Floats) -> Pair:
    """Return `P(D <= most)` and `P(D > most)`; the smaller one has the small relative error."""
    counts = np.stack([a, n - a])
    chances = np.broadcast_to(np.stack([own, other]), counts.shape)
    turned = most >= (counts * chances).sum(axis=0)
    # From the mean on, count the other outcomes: P(D > most) = P(n - D <= n - most - 1).
    place = np.where(turned, n - most - 1.0, most)
    found = _lower_tail(counts, np.where(turned, 1.0 - chances, chances), place)
    return np.where(turned, 1.0 - found, found), np.where(turned, found, 1.0 - found)


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
    divergence = counts * (xlog1py(tilted, moved / p) + xlog1py(1.0 - tilted, -moved / (1.0 - p)))
    scale = ratio * rest - divergence.sum(axis=0)
    found = np.exp(scale) * _sum_below(counts, tilted, ratio, rest)
    return np.where(most < 0.0, 0.0, np.where(most >= tosses, 1.0, np.clip(found, 0.0, 1.0)))


def _sum_below(counts: Floats, p: Floats, ratio: Floats, rest: Floats) -> Floats:
    """Return `sum_(j >= 0) e^(ratio j) P(D = x - j)`, `(q,)`; the mean of D is `x + rest`."""
    half = np.ceil(13.0 * np.sqrt((counts * p * (1.0 - p)).sum(axis=0)) + 40.0)[:, None]
    part = np.minimum(_J / half, 1.0)
    t = np.pi * part
    sine, cosine = np.sin(t / 2.0), np.cos(t / 2.0)
    log_size, phase = np.zeros_like(t), rest[:, None] * t
    for count, chance in zip(counts[..., None], p[..., None], strict=True):
        spread = chance * (1.0 - chance)
        log_size += xlog1py(count / 2.0, -4.0 * spread * sine**2)
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
    weight = np.where(part < 1.0, 2.0, np.where(half == _J, 1.0, 0.0))
    flat = np.where(ratio < 0.0, ratio, 1.0)
    first = np.where(ratio < 0.0, np.expm1(half[:, 0] * flat) / np.expm1(flat), half[:, 0])
    return np.asarray((first + (weight * terms).sum(axis=1)) / (2.0 * half[:, 0]))
