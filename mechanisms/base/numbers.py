"""Numbers as people write them, in every text that comes from outside.

Cells of files, options of commands, parameters of addresses and environment variables are all read
here. Python's own `int`, `float` and `Fraction` take more than people mean: `1_0` is ten, digits
may be of any script, and `nan` and `1e999` pass for numbers.
"""

import math
import re
from fractions import Fraction
from typing import Final

_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,18}")
# A longer exponent would give an exact number with that many digits.
_DECIMAL: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_LONGEST: Final = 1_000
EXPECTED: Final = "a number such as 12, -0.5 or 1e3"


def read_whole(text: str) -> int:
    """Return the whole number of at most 18 digits that a text spells.

    Raises:
        ValueError: for any other text, also one with spaces.

    >>> read_whole("+12"), read_whole("-3")
    (12, -3)
    """
    if _WHOLE.fullmatch(text) is None:
        raise ValueError("a whole number")
    return int(text)


def read_number(text: str) -> float:
    """Return the double nearest to what a text spells with digits, a point and an exponent.

    Raises:
        ValueError: for any other text, also one with spaces, for "inf" and "nan", and for a number
            that is too large for a double.

    >>> read_number("0.3"), read_number("-.5e2")
    (0.3, -50.0)
    """
    if len(text) > _LONGEST or _DECIMAL.fullmatch(text) is None:
        raise ValueError(EXPECTED)
    number = float(text)
    if math.isinf(number):
        raise ValueError(EXPECTED)
    return number


def read_decimal(text: str) -> Fraction:
    """Return exactly the number that `read_number` rounds to a double.

    Raises:
        ValueError: as `read_number`.

    >>> read_decimal("0.3"), read_decimal("1e3")
    (Fraction(3, 10), Fraction(1000, 1))
    """
    read_number(text)
    return Fraction(text)


def trimmed(cell: str) -> str:
    """Return a cell of a file without the spaces that align it with others."""
    return cell.strip(" \t")
