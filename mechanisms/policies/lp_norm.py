"""L^p distances rounded down, and the epsilon with which an L1 mechanism keeps an L^p policy.

Lengths are multiples of 2^-128 at or below the real number, so that budgets err on the side of
privacy.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

from ldpstream.mechanisms.base.checks import describe, is_whole
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.exact.entropy import WORD

_BITS = 128
LARGEST_P = 64


def check_p(p: object) -> int | float:
    """Return the p of a norm: a whole number in 1..64, or infinity.

    Raises:
        SpecError: naming `p`, for anything else.
    """
    if isinstance(p, float) and (p == math.inf or p.is_integer()):
        p = p if p == math.inf else int(p)
    if p == math.inf or (is_whole(p) and 1 <= p <= LARGEST_P):
        assert isinstance(p, int | float)
        return p
    raise SpecError("p", f"a whole number in 1..{LARGEST_P}, or inf, got {describe(p)}")


def lp_length(steps: Sequence[int], p: float) -> Fraction:
    """Return the L^p norm of a vector of integers, exactly for p = 1 and inf, else rounded down.

    It is rounded to a multiple of 2^-128, so that norms that are integers are exact.

    >>> lp_length([3, -4], 2), lp_length([3, -4], 1), float(lp_length([1, 1], 2))
    (Fraction(5, 1), Fraction(7, 1), 1.4142135623730951)
    """
    sizes = [abs(step) for step in steps]
    if p == math.inf:
        return Fraction(max(sizes, default=0))
    degree = int(p)
    if degree == 1:
        return Fraction(sum(sizes))
    total = sum(size**degree for size in sizes)
    return Fraction(integer_root(total << (_BITS * degree), degree), 1 << _BITS)


def l1_epsilon(epsilon: Fraction, *, dimensions: int, p: float) -> Fraction:
    """Return an eps_1 with `eps_1 |d|_1 <= epsilon |d|_p` in D dimensions ([ML] Section IV).

    Hoelder's inequality is `|d|_1 <= D^(1 - 1/p) |d|_p`, with equality if all coordinates of d are
    equal. So `eps_1 = epsilon / D^(1 - 1/p)`, and an L1 mechanism with this epsilon keeps the L^p
    policy. The divisor is rounded so that eps_1 / epsilon is a multiple of 2^-64 (exact for p = 1
    and inf). For integer vectors d the inequality then also holds for `lp_length(d, p)`: that is
    rounded down to the finer grid of 2^-128, on which `eps_1 |d|_1 / epsilon` lies.

    >>> l1_epsilon(Fraction(1), dimensions=4, p=2)
    Fraction(1, 2)
    """
    if p == math.inf:
        return epsilon / dimensions
    degree = int(p)
    root = integer_root(dimensions * WORD**degree, degree)
    return epsilon * Fraction(root // dimensions, WORD)


def keeps_lp(step: Fraction, epsilon: Fraction, *, dimensions: int, p: float) -> bool:
    """Return whether `step |d|_1 <= epsilon |d|_p` for all vectors of D dimensions, exactly.

    This holds if and only if it holds for the vector of ones: `step D <= epsilon D^(1/p)`.
    """
    if p == math.inf:
        return step * dimensions <= epsilon
    return (step * dimensions) ** int(p) <= epsilon ** int(p) * dimensions


def integer_root(number: int, degree: int) -> int:
    """Return the largest integer whose power of this degree is at most `number` >= 0.

    >>> [integer_root(n, 3) for n in (0, 7, 8, 26, 27)]
    [0, 1, 2, 2, 3]
    """
    if degree == 1 or number < 2:
        return number
    if degree == 2:
        return math.isqrt(number)
    # Newton's method from above decreases strictly until it reaches the root.
    root = 1 << -(-number.bit_length() // degree)
    while True:
        better = ((degree - 1) * root + number // root ** (degree - 1)) // degree
        if better >= root:
            return root
        root = better
