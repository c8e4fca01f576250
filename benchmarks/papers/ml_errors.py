"""Errors of ranges under `epsilon * L1`: exact, measured, and as Xiang et al. state them ([ML]).

Everything is the variance of the number of respondents in a range, estimated by `l1-bits` or
`l1-geometric`; docs/theory.md section 5. Users are drawn by Zipf(1.1) in every dimension.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tests.seeded import SeededEntropy

from benchmarks.accuracy.simulate import Case, draw_by_privatizing, zipf
from ldpstream.mechanisms.domains.queries import range_values
from ldpstream.mechanisms.families.l1.bits import L1Bits
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from ldpstream.mechanisms.interface.decoder import Decoder

Floats = NDArray[np.float64]
Kind = type[L1Bits] | type[L1Geometric]

KINDS: tuple[Kind, ...] = (L1Bits, L1Geometric)
EXPONENT = 1.1
RANGES = 100


@dataclass(frozen=True)
class Errors:
    """Variances or squared errors of all single values, `(k,)`, and of the ranges, `(100,)`."""

    values: Floats
    ranges: Floats


def paper_expression(epsilon: float, dimensions: int) -> float:
    """Return [ML] Theorems 2 and 3 with constant 1, per user: `t^(-2D) 2^-D (1 - t^(2D))`.

    Here `t = tanh(epsilon/2)`. In one dimension it is the variance of every range with two noisy
    ends; in more it drops the covariances of entries with a common coordinate, and bounds nothing.
    """
    power = math.tanh(epsilon / 2.0) ** (2 * dimensions)
    return (1.0 - power) / power / 2.0**dimensions


def largest_variance(epsilon: float, dimensions: int) -> float:
    """Return the largest variance of a range of `l1-bits`, per user: `(1 + v)^D - 1`.

    Here `v = (1/t^2 - 1)/2`. A range with two noisy ends in every dimension that holds all users
    attains it.
    """
    noise = 0.5 / math.sinh(epsilon / 2.0) ** 2
    return math.expm1(dimensions * math.log1p(noise))


def exact_variances(kind: Kind, epsilon: float, shape: Sequence[int]) -> Errors:
    """Return the variances per user of all single values and the figure's ranges.

    The second moment of a range's decoder is a product over the dimensions, and users'
    coordinates are independent, so its mean over the users is a product over lines.
    """
    second, inside = np.ones(()), np.ones(())
    range_second, range_inside = np.ones(RANGES), np.ones(RANGES)
    for axis, m in enumerate(shape):
        decoder, shares = kind(epsilon, (m,)).decoder, zipf(m, EXPONENT)
        noises, held = _line_moments(decoder, shares, ((x, x) for x in range(m)))
        second = np.multiply.outer(second, noises + held)
        inside = np.multiply.outer(inside, held)
        pairs = (bounds[axis] for bounds in figure_ranges(shape))
        noises, held = _line_moments(decoder, shares, pairs)
        range_second *= noises + held
        range_inside *= held
    return Errors((second - inside).ravel(), range_second - range_inside)


def _line_moments(
    decoder: Decoder, shares: Floats, pairs: Iterable[tuple[int, int]]
) -> tuple[Floats, Floats]:
    """Return, for each range of a line, the users' mean noise and the share of users inside."""
    noises, held = [], []
    for first, last in pairs:
        weights = np.zeros(len(shares))
        weights[first : last + 1] = 1.0
        noises.append(float((shares * decoder.noise(weights)).sum()))
        held.append(float(shares[first : last + 1].sum()))
    return np.array(noises), np.array(held)


def figure_ranges(shape: Sequence[int]) -> list[list[tuple[int, int]]]:
    """Return the figure's random ranges, none the whole domain: the same for all settings."""
    rng = np.random.default_rng(1)
    out: list[list[tuple[int, int]]] = []
    while len(out) < RANGES:
        pairs = [sorted(rng.integers(0, m, 2).tolist()) for m in shape]
        if any(pair != [0, m - 1] for pair, m in zip(pairs, shape, strict=True)):
            out.append([(first, last) for first, last in pairs])
    return out


def measured_errors(
    kind: Kind, epsilon: float, shape: tuple[int, ...], users: int, repetitions: int, seed: int
) -> Errors:
    """Return the mean squared errors of repetitions, in users squared, from reports."""
    mechanism, shares = kind(epsilon, shape), np.ones(())
    for m in shape:
        shares = np.multiply.outer(shares, zipf(m, EXPONENT))
    sets = [range_values(shape, bounds) for bounds in figure_ranges(shape)]
    values, ranges = np.zeros(mechanism.size), np.zeros(RANGES)
    case = Case("", mechanism, "zipf", shares.ravel(), users)
    for counts, statistic in draw_by_privatizing(case, repetitions, seed):
        errors = mechanism.decoder.totals(statistic) - counts
        values += errors**2
        ranges += np.array([errors[members].sum() for members in sets]) ** 2
    return Errors(values / repetitions, ranges / repetitions)


def measured_inside(
    epsilon: float, dimensions: int, users: int, repetitions: int, seed: int
) -> float:
    """Return the mean squared error of `l1-bits` per user if all users are inside the range.

    The range is the inner square, or cube, of the smallest domain in which its ends are noisy.
    """
    shape = (3,) * dimensions
    mechanism, entropy = L1Bits(epsilon, shape), SeededEntropy(seed)
    members = range_values(shape, [(1, 1)] * dimensions)
    values, square = np.repeat(members, users), 0.0
    for _ in range(repetitions):
        statistic = mechanism.empty()
        mechanism.accumulate(statistic, mechanism.privatize(values, entropy=entropy))
        square += (float(mechanism.decoder.totals(statistic)[members].sum()) - users) ** 2
    return square / repetitions / users
