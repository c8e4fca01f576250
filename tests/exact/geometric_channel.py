"""The channel of `l1-geometric` and its inverse from their definitions, in exact rationals."""

from collections.abc import Callable
from fractions import Fraction

from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.l1.geometric import L1Geometric
from tests.exact.enumeration import Rows


def alpha_of(mechanism: L1Geometric) -> Fraction:
    return Fraction(mechanism.threshold, WORD)


def by_definition(alpha: Fraction, m: int) -> Rows:
    """clamp(x + G - G') of two geometrics: `P(D = d) = sum_g P(g + d) P(g)`, summed exactly."""

    def difference(d: int) -> Fraction:
        return (1 - alpha) ** 2 * alpha ** abs(d) / (1 - alpha**2)

    def beyond(d: int) -> Fraction:
        return difference(d) / (1 - alpha)  # P(D >= d), d >= 0

    rows = []
    for x in range(m):
        inner = [difference(y - x) for y in range(1, m - 1)]
        rows.append([beyond(x), *inner, beyond(m - 1 - x)] if m > 1 else [Fraction(1)])
    return rows


def kron(first: Rows, second: Rows) -> Rows:
    return [[a * b for a in row for b in other] for row in first for other in second]


def over_shape(build: Callable[[Fraction, int], Rows], mechanism: L1Geometric) -> Rows:
    out: Rows = [[Fraction(1)]]
    for length in mechanism.shape:
        out = kron(out, build(alpha_of(mechanism), length))
    return out
