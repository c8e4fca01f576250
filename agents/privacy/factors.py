"""Factors `e^budget` as text, rounded up in exact arithmetic."""

from decimal import ROUND_DOWN, Context
from fractions import Fraction
from typing import Final

from ldpstream.mechanisms.exact.dyadic import exp_bounds

LARGEST_BUDGET: Final = 1000
"""Factors of larger budgets are only said to be above this one's: they hide nothing anyway."""
_DIGITS: Final = 3
_PLAIN: Final = 1_000_000
_SIX_DIGITS: Final = Context(prec=6, rounding=ROUND_DOWN)


def factor_text(budget: Fraction) -> str:
    """Return a decimal number at or above `e^budget`, as text.

    Three significant digits; near 1, two digits of the excess over 1; from a million on, in the
    form `1.2e+30`. A budget above `LARGEST_BUDGET` is `more than 1.9e+434`.

    Raises:
        ValueError: for a negative budget.

    >>> factor_text(Fraction(1)), factor_text(Fraction(1, 100)), factor_text(Fraction(0))
    ('2.72', '1.011', '1')
    """
    if budget < 0:
        raise ValueError(f"expected a budget of at least 0, got {float(budget)}")
    if budget > LARGEST_BUDGET:
        return "more than 1.9e+434"
    factor = exp_bounds(budget)[1]
    if factor == 1:
        return "1"
    if factor >= _PLAIN:
        return _exponential(factor)
    return round_up(factor, _decimals(factor))


def _decimals(factor: Fraction) -> int:
    """Return how many decimals to show of a factor above 1: fewer for larger ones."""
    if factor < Fraction(11, 10):
        decimals, excess = 2, factor - 1
        while excess * 10 ** (decimals - 1) < 1:
            decimals += 1
        return decimals
    return max(0, _DIGITS - len(str(int(factor))))


def round_up(number: Fraction, decimals: int) -> str:
    """Round a number >= 0 up to this many decimals.

    Trailing zeros are left out.
    """
    scaled = -((-number.numerator * 10**decimals) // number.denominator)
    whole, rest = divmod(scaled, 10**decimals)
    digits = f"{rest:0{decimals}d}".rstrip("0") if decimals else ""
    return f"{whole}.{digits}" if digits else str(whole)


def width_text(width: float) -> str:
    """Return a width above 0 with at most six digits, rounded down: wider would promise more.

    >>> width_text(2 / 3), width_text(2.3), width_text(1234567.0)
    ('0.666666', '2.3', '1.23456e+06')
    """
    return f"{float(_SIX_DIGITS.create_decimal(repr(width))):g}"


def _exponential(factor: Fraction) -> str:
    exponent = len(str(int(factor))) - 1
    mantissa = round_up(factor / 10**exponent, 1)
    if mantissa == "10":
        mantissa, exponent = "1", exponent + 1
    return f"{mantissa}e+{exponent}"
