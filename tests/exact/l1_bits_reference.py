"""`l1-bits` from section 5 of the theory, apart from the code: exact rationals, by enumeration."""

import math
from fractions import Fraction
from itertools import product

from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.l1.bits import L1Bits
from tests.exact.enumeration import Bounds


def contrast_of(mechanism: L1Bits) -> Fraction:
    return Fraction(2 * mechanism.threshold - WORD, WORD)


def cells(mechanism: L1Bits) -> list[tuple[int, ...]]:
    return list(product(*map(range, mechanism.shape)))


def signs(mechanism: L1Bits, cell: tuple[int, ...]) -> list[int]:
    """The entries that are sent, before any flip."""
    pairs = zip(cell, mechanism.shape, strict=True)
    return [1 if j >= x else -1 for x, m in pairs for j in range(m - 1)]


def reports(mechanism: L1Bits) -> list[tuple[int, ...]]:
    """All reports as signs, numbered as in `possible_reports`."""
    noisy = sum(mechanism.shape) - len(mechanism.shape)
    return [tuple(2 * (y >> i & 1) - 1 for i in range(noisy)) for y in range(1 << noisy)]


def probabilities(mechanism: L1Bits, cell: tuple[int, ...]) -> list[Fraction]:
    keep, plain = Fraction(mechanism.threshold, WORD), signs(mechanism, cell)
    out = []
    for report in reports(mechanism):
        flips = sum(a != b for a, b in zip(plain, report, strict=True))
        out.append(keep ** (len(plain) - flips) * (1 - keep) ** flips)
    return out


def decoded(mechanism: L1Bits, report: tuple[int, ...], bounds: Bounds) -> Fraction:
    """`prod_d (R[r]/t - R[l-1]/t)/2`, `R[0] = -1` and `R[m] = +1` exact."""
    t, rest, out = contrast_of(mechanism), list(report), Fraction(1)
    for m, (first, last) in zip(mechanism.shape, bounds, strict=True):
        entries = [Fraction(-1), *(sign / t for sign in rest[: m - 1]), Fraction(1)]
        rest = rest[m - 1 :]
        out *= (entries[last + 1] - entries[first]) / 2
    return out


def inside(cell: tuple[int, ...], bounds: Bounds) -> bool:
    return all(a <= x <= b for x, (a, b) in zip(cell, bounds, strict=True))


def ends_noise(mechanism: L1Bits, bounds: Bounds) -> list[Fraction]:
    """v of each dimension: `(1/t^2 - 1)/2` with two noisy ends, half of it with one."""
    unit = (1 / contrast_of(mechanism) ** 2 - 1) / 4
    pairs = zip(mechanism.shape, bounds, strict=True)
    return [unit * ((a > 0) + (b < m - 1)) for m, (a, b) in pairs]


def closed_noise(mechanism: L1Bits, bounds: Bounds) -> list[Fraction]:
    """`prod_d (v_d + 1{in}) - prod_d 1{in}` for a user of each value."""
    noise = ends_noise(mechanism, bounds)
    out = []
    for cell in cells(mechanism):
        hits = [a <= x <= b for x, (a, b) in zip(cell, bounds, strict=True)]
        second = math.prod(v + hit for v, hit in zip(noise, hits, strict=True))
        out.append(Fraction(second) - all(hits))
    return out
