"""Numbers as people write them, in every text that comes from outside.

Cells of files, options of commands, parameters of addresses and environment variables are all read
here. Python's own `int`, `float` and `Fraction` take more than people mean: `1_0` is ten, digits
may be of any script, and `nan` and `1e999` pass for numbers.
"""

import math
import re
from fractions import Fraction
from typing import Final

_TOO_LARGE: Final = 10**18
_LONG_EXPONENT: Final = re.compile(r"[eE][+-]?[0-9]{4}")
_LONGEST: Final = 1_000
EXPECTED: Final = "a number such as 12, -0.5 or 1e3"


def read_whole(text: str) -> int:
    """Return the whole number of at most 18 digits that a text spells.

    Raises:
        ValueError: for any other text, also one with spaces.

    >>> read_whole("+12"), read_whole("-3")
    (12, -3)
    """
    try:
        number = int(text)
    except ValueError:
        raise ValueError("a whole number") from None
    if _is_pythons(text) or abs(number) >= _TOO_LARGE:
        raise ValueError("a whole number")
    return number


def read_number(text: str) -> float:
    """Return the double nearest to what a text spells with digits, a point and an exponent.

    Raises:
        ValueError: for any other text, also one with spaces, for "inf" and "nan", and for a number
            that is too large for a double.

    >>> read_number("0.3"), read_number("-.5e2")
    (0.3, -50.0)
    """
    try:
        number = float(text)
    except ValueError:
        raise ValueError(EXPECTED) from None
    if _is_pythons(text) or not math.isfinite(number):
        raise ValueError(EXPECTED)
    return number


def read_decimal(text: str) -> Fraction:
    """Return exactly the number that `read_number` rounds to a double.

    Raises:
        ValueError: as `read_number`; also for exponents of more than three digits.

    >>> read_decimal("0.3"), read_decimal("1e3")
    (Fraction(3, 10), Fraction(1000, 1))
    """
    read_number(text)
    # An exact number has as many digits as its exponent says.
    if len(text) > _LONGEST or _LONG_EXPONENT.search(text):
        raise ValueError(EXPECTED)
    return Fraction(text)


def _is_pythons(text: str) -> bool:
    """Return whether a text that Python reads as a number is one for Python alone."""
    return "_" in text or not text.isascii() or text != text.strip()


def trimmed(cell: str) -> str:
    """Return a cell of a file without the spaces that align it with others."""
    return cell.strip(" \t")
