"""Factors `e^budget` as text, rounded up in exact arithmetic."""

from decimal import ROUND_DOWN, Context
from fractions import Fraction
from typing import Final

from ldpstream.mechanisms.exact.dyadic import exp_bounds
from ldpstream.mechanisms.policies.policy import Policy

LARGEST_BUDGET: Final = 1000
"""Factors of larger budgets are not computed: they hide nothing anyway."""
MOST_FACTOR: Final = 1_000_000
"""From this one on a factor no longer limits what somebody may conclude."""
NO_LIMIT: Final = "no limit"
_DIGITS: Final = 3
_SIX_DIGITS: Final = Context(prec=6, rounding=ROUND_DOWN)


def factor_text(budget: Fraction) -> str:
    """Return a decimal number at or above `e^budget`, as text.

    Three significant digits; near 1, two digits of the excess over 1; from a million on, in the
    form `1.2e+30`. A budget above `LARGEST_BUDGET` is written as a power, `e^1001`.

    Raises:
        ValueError: for a negative budget.

    >>> factor_text(Fraction(1)), factor_text(Fraction(1, 100)), factor_text(Fraction(0))
    ('2.72', '1.011', '1')
    """
    if budget < 0:
        raise ValueError(f"expected a budget of at least 0, got {float(budget)}")
    if budget > LARGEST_BUDGET:
        return f"e^{loss_text(budget)}"
    return ratio_text(exp_bounds(budget)[1])


def odds_factor(loss: Fraction) -> str:
    """Return by what factor odds change at a loss, as `factor_text`, or `NO_LIMIT`.

    >>> odds_factor(Fraction(5)), odds_factor(Fraction(14))
    ('149', 'no limit')
    """
    if loss > LARGEST_BUDGET or exp_bounds(loss)[1] >= MOST_FACTOR:
        return NO_LIMIT
    return factor_text(loss)


def factor_phrase(loss: Fraction) -> str:
    """Return the factor of a loss for a sentence: `a factor of 149`, or `a factor without limit`.

    Whoever reads "3.1e+43" learns no more than that.
    """
    factor = odds_factor(loss)
    return "a factor without limit" if factor == NO_LIMIT else f"a factor of {factor}"


def ratio_text(ratio: Fraction, digits: int = _DIGITS) -> str:
    """Return a decimal number at or above a ratio, and at least 1, as `factor_text` writes it.

    >>> ratio_text(Fraction(20085537, 1000000), digits=6)
    '20.0856'
    """
    if ratio <= 1:
        return "1"
    if ratio >= MOST_FACTOR:
        return _exponential(ratio)
    return round_up(ratio, _decimals(ratio, digits))


def _decimals(factor: Fraction, digits: int) -> int:
    """Return how many decimals to show of a factor above 1: fewer for larger ones."""
    if factor < Fraction(11, 10):
        decimals, excess = digits - 1, factor - 1
        while excess * 10 ** (decimals - 1) < 1:
            decimals += 1
        return decimals
    return max(0, digits - len(str(int(factor))))


def round_up(number: Fraction, decimals: int) -> str:
    """Round a number >= 0 up to this many decimals.

    Trailing zeros are left out.
    """
    scaled = -((-number.numerator * 10**decimals) // number.denominator)
    whole, rest = divmod(scaled, 10**decimals)
    digits = f"{rest:0{decimals}d}".rstrip("0") if decimals else ""
    return f"{whole}.{digits}" if digits else str(whole)


def loss_text(loss: Fraction) -> str:
    """Return a decimal number at or above a loss, as text; small ones have two digits.

    >>> loss_text(Fraction(2, 3)), loss_text(Fraction(1, 3000))
    ('0.67', '0.00034')
    """
    decimals = 2
    while 0 < loss * 10 ** (decimals - 1) < 1:
        decimals += 1
    return round_up(loss, decimals)


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


_LARGEST_MEANT: Final = 10
"""With this budget a report may be 22,027 times likelier for one value than for any other."""


def nominal_warning(name: str, policy: Policy) -> str | None:
    """Return a warning about a collection whose least budget is above `_LARGEST_MEANT`, or None.

    The least one counts, since a policy may protect some values only from few others, and a metric
    does not protect distant ones. Budgets that are infinite by design are ignored.
    """
    if policy.members:
        each = policy.members.items()
        warnings = (
            nominal_warning(f"{name}.domain.attributes.{attribute}", member)
            for attribute, member in each
        )
        return next((warning for warning in warnings if warning is not None), None)
    least = None
    for attribute in policy.least_budgets():
        if attribute <= _LARGEST_MEANT:
            return None
        least = attribute if least is None else min(least, attribute)
    if least is None:
        return None
    return (
        f"collection.{name}: warning: its least budget is {float(least):g}, so a report may be "
        f"e^{float(least):g} = {factor_text(least)} times likelier for one value than for another, "
        f"and all but names it; above {_LARGEST_MEANT} (a factor "
        f"{factor_text(Fraction(_LARGEST_MEANT))}) protection is nominal"
    )
