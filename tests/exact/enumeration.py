"""Channels written out in exact rationals, and variances by their definition."""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np

from ldpstream.estimators.bounds.options import Estimand
from ldpstream.mechanisms.interface.mechanism import Mechanism

Vector = Sequence[Fraction]
Rows = list[list[Fraction]]
Bounds = list[tuple[int, int]]
IMPOSSIBLE_EPSILONS = (0, -1.0, math.inf, math.nan, True, "1", 10**400)


def boxes(shape: tuple[int, ...]) -> list[Bounds]:
    """Return the bounds, both included, of every box of a domain."""
    axes = [[(a, b) for a in range(m) for b in range(a, m)] for m in shape]
    return [list(bounds) for bounds in product(*axes)]


def rows_of(mechanism: Mechanism) -> Rows:
    """Return the probability of every report, for each value."""
    channel = mechanism.channel()
    return [[row.get(y, Fraction(0)) for y in range(channel.outputs)] for row in channel.rows]


def matrix_of(mechanism: Mechanism) -> np.ndarray:
    """Return the channel as floats, a row for each value."""
    return np.array(rows_of(mechanism), dtype=np.float64)


def times(left: Vector, right: Vector) -> Fraction:
    return sum((a * b for a, b in zip(left, right, strict=True)), Fraction(0))


def rising_shares(size: int) -> list[Fraction]:
    """Return shares of values in proportion to 1, 2, 3, ..."""
    return [Fraction(2 * (x + 1), size * (size + 1)) for x in range(size)]


def variance_of(
    channel: Rows, decoders: Rows, weights: Vector, shares: Vector, estimand: Estimand
) -> Fraction:
    """Return n times the variance of the weighted sum of estimates, with values of these shares."""
    decoded = [times(weights, column) for column in zip(*decoders, strict=True)]
    second = times(shares, [times(row, [h * h for h in decoded]) for row in channel])
    if estimand == "population":
        return second - times(shares, weights) ** 2
    return second - times(shares, [w * w for w in weights])
