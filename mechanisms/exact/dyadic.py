"""Exact bounds on the exponential, and probabilities rounded to multiples of 2^-64.

Privacy claims compare rationals with `e^epsilon`, which is irrational: they are decided with
rational bounds on both sides, never in floating point.
"""

import math
from fractions import Fraction

from ldpstream.mechanisms.exact.entropy import WORD

_BITS = 256
_LARGEST_BUDGET = 64
SMALLEST_EPSILON = 1e-18
"""From this epsilon on every rounded channel carries information; one that does not is refused."""
# More than the loss of any two values of an enumerated channel: at most 32 steps of 64 log 2.
_LARGEST_EXPONENT = 2048
# Ratios closer to 1 have logarithms that a grid of 2^-256 cannot resolve to adjacent floats.
_NEAR = Fraction(1, 1 << 128)


def _floor_bits(number: int, scale: int) -> int:
    """Return `number / scale` in units of 2^-256, rounded down."""
    return (number << _BITS) // scale


def exp_bounds(exponent: Fraction) -> tuple[Fraction, Fraction]:
    """Return rationals `(low, high)` with `low <= e^exponent <= high`, equal only at 0.

    The relative gap is below 2^-180 for exponents within 64 of 0. The argument is halved until it
    is below 1/2, where the tail of Taylor's series is at most twice the first omitted term; the
    result is then squared back, rounding outward each time.

    Raises:
        ValueError: if the exponent is further than 2048 from 0.
    """
    if abs(exponent) > _LARGEST_EXPONENT:
        raise ValueError(f"exponent must be within 2048 of 0, got {float(exponent)}")
    if exponent < 0:
        low, high = exp_bounds(-exponent)
        return 1 / high, 1 / low
    if exponent == 0:
        return Fraction(1), Fraction(1)
    halvings = max(0, math.ceil(exponent * 2).bit_length())
    up, down = exponent.numerator, exponent.denominator << halvings
    # The first terms add up to `total / scale`, and the last one is `term / scale`.
    total, term, scale, degree = 1, 1, 1, 0
    while term << _BITS >= scale:
        degree += 1
        term *= up
        scale *= down * degree
        total = total * down * degree + term
    below, above = _floor_bits(total - term, scale), -_floor_bits(-total - term, scale)
    for _ in range(halvings):
        below, above = below * below >> _BITS, -(-above * above >> _BITS)
    return Fraction(below, 1 << _BITS), Fraction(above, 1 << _BITS)


def exp_floor(epsilon: Fraction) -> Fraction:
    """Return a rational at or below `e^epsilon`, epsilon >= 0: what a ratio must not exceed.

    Above 2048 it stays at `e^2048`, far above any ratio of a channel that can be proved.
    """
    return exp_bounds(min(epsilon, Fraction(_LARGEST_EXPONENT)))[0]


def log_bounds(ratio: Fraction) -> tuple[float, float]:
    """Return the nearest floats `(low, high)` with `low <= log(ratio) <= high`.

    A ratio within `e^epsilon` is therefore never shown with a loss above the float epsilon. The
    floating-point logarithm is only a guess, which the exact bounds on the exponential confirm.
    Within 2^-128 of 1, the first two terms of the logarithm's series give the bounds.

    Raises:
        ValueError: if the ratio is not above 0.
    """
    if ratio <= 0:
        raise ValueError(f"expected a ratio above 0, got {ratio}")
    if ratio == 1:
        return 0.0, 0.0
    x = ratio - 1
    if abs(x) < _NEAR:
        # The logarithm lies between x - x^2 and x.
        return -float_above(x**2 - x), float_above(x)
    high = log_estimate(ratio)
    while exp_bounds(Fraction(high))[0] < ratio:
        high = math.nextafter(high, math.inf)
    while exp_bounds(Fraction(low := math.nextafter(high, -math.inf)))[0] >= ratio:
        high = low
    while exp_bounds(Fraction(low))[1] > ratio:
        low = math.nextafter(low, -math.inf)
    return low, high


def float_above(number: Fraction) -> float:
    """Return the least float that is not below a number; for `budget(epsilon)` this is epsilon.

    >>> float_above(Fraction(1, 10)), float_above(Fraction(1, 3)) > Fraction(1, 3)
    (0.1, True)
    """
    nearest = float(number)
    return nearest if nearest >= number else math.nextafter(nearest, math.inf)


def log_estimate(ratio: Fraction) -> float:
    """Return the logarithm of a positive ratio as a float, even if the ratio itself overflows."""
    if Fraction(1, 2) < ratio < 2:
        return math.log1p(float(ratio - 1))
    shift = ratio.numerator.bit_length() - ratio.denominator.bit_length()
    if abs(shift) < 1000:
        return math.log(float(ratio))
    return math.log(float(ratio / Fraction(2) ** shift)) + shift * math.log(2)


def budget(epsilon: float) -> Fraction:
    """Return the rational that a finite epsilon stands for.

    A float such as 0.1 differs from the decimal that was written; this is the smaller of the two,
    so that the guarantee holds for both.

    >>> budget(0.1) == Fraction(1, 10)
    True
    """
    return min(Fraction(epsilon), Fraction(repr(float(epsilon))))


def float_below(epsilon: Fraction) -> float:
    """Return the nearest float that stands for at most this budget (`budget`).

    >>> float_below(Fraction(1, 10)), float_below(Fraction(1, 3)) <= Fraction(1, 3)
    (0.1, True)
    """
    nearest = float(epsilon)
    while budget(nearest) > epsilon:
        nearest = math.nextafter(nearest, 0.0)
    return nearest


def sign_threshold(epsilon: Fraction) -> int:
    """Return the largest T below 2^64 with `T / (2^64 - T) <= e^epsilon`.

    `T / 2^64` is `e^epsilon / (e^epsilon + 1)` rounded down: toward 1/2, hence outward. Beyond
    epsilon = 64 log 2 (44.36...) it is `2^64 - 1`, whose loss is that number. T = 2^63 (epsilon
    below about 2^-62) is a channel that carries no information; the caller refuses it.
    """
    low = exp_floor(min(epsilon, Fraction(_LARGEST_BUDGET)))
    return min(math.floor(WORD * low / (low + 1)), WORD - 1)


def set_threshold(epsilon: Fraction, inside: int, outside: int) -> int:
    """Return the largest T below 2^64 with `(T / inside) / ((2^64 - T) / outside) <= e^epsilon`.

    `T / 2^64` is the probability of a set of `inside` equally likely reports, against `outside`
    others; both counts are above 0. It is rounded down: toward the uniform report, hence outward.
    If `outside <= 10^8 inside`, T is `2^64 - 1` for every epsilon above 64.
    """
    favoured = exp_floor(min(epsilon, Fraction(_LARGEST_BUDGET))) * inside
    return min(math.floor(WORD * favoured / (favoured + outside)), WORD - 1)


def geometric_threshold(epsilon: Fraction) -> int:
    """Return the least T above 0 with `T / 2^64 >= e^-epsilon`: rounded up, hence outward.

    Beyond epsilon = 64 log 2 (44.36...) it is 1, whose loss is that number. T = 2^64 (epsilon below
    2^-64) is a channel that carries no information; the caller refuses it.
    """
    return math.ceil(WORD * exp_bounds(-min(epsilon, Fraction(_LARGEST_BUDGET)))[1])


def binary_thresholds(first: Fraction | None, second: Fraction | None) -> tuple[int, int]:
    """Return `(q, r)`, the probabilities of output 1 for the values 0 and 1 in units of 2^-64.

    `first = E[0, 1]` and `second = E[1, 0]`; None is infinity. From [CA] Theorem 2,
    `q = (1 - e^-a)/(e^b - e^-a)` is rounded up, and r is the largest dyadic with
    `r <= e^b q` and `1 - r >= e^-a (1 - q)`: both constraints hold for the rounded numbers.
    Where `r <= q` the channel carries no information; the caller refuses it.
    """
    limit = Fraction(_LARGEST_BUDGET)
    # e^-a and e^-b rounded up: every use below then errs on the side of privacy.
    a = Fraction(0) if first is None else exp_bounds(-min(first, limit))[1]
    b = Fraction(0) if second is None else exp_bounds(-min(second, limit))[1]
    if a == b == 1:
        return WORD, WORD
    q = math.ceil(WORD * b * (1 - a) / (1 - a * b))
    r = math.floor(WORD - a * (WORD - q))
    if second is not None:
        r = min(r, math.floor(q / b))
    return q, r
