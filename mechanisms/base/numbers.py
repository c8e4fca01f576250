"""Numbers as people write them, in every text that comes from outside.

Cells of files, options of commands, parameters of addresses and environment variables are all read
here. Python's own `int`, `float` and `Fraction` take more than people mean: `1_0` is ten, digits
may be of any script, and `nan` and `1e999` pass for numbers.
"""

import math
import re
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Final

_DIGITS: Final = 18
_TOO_LARGE: Final = 10**_DIGITS
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
    number = parse_whole(text, other=_TOO_LARGE)
    if number == _TOO_LARGE or text != text.strip():
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
    number = parse_real(text)
    if math.isnan(number) or text != text.strip():
        raise ValueError(EXPECTED)
    return number


def parse_whole(cell: str, *, other: int = -1) -> int:
    """Return the whole number that a cell of a file spells, or `other` if it spells none.

    As `read_whole`, but spaces may align the cell with others.
    """
    # Files have millions of cells, most of which are only digits.
    if len(cell) <= _DIGITS and cell.isdigit() and cell.isascii():
        return int(cell)
    try:
        number = int(cell)
    except ValueError:
        return other
    plain = cell.isascii() and "_" not in cell and cell.strip() == cell.strip(" \t")
    return number if plain and -_TOO_LARGE < number < _TOO_LARGE else other


def parse_real(cell: str) -> float:
    """Return the number that a cell of a file spells, or NaN if it spells none.

    As `read_number`, but spaces may align the cell with others. No domain contains NaN.
    """
    try:
        number = float(cell)
    except ValueError:
        return math.nan
    plain = cell.isascii() and "_" not in cell and cell.strip() == cell.strip(" \t")
    return number if plain and math.isfinite(number) else math.nan


def parse_reals(cells: Sequence[str]) -> list[float]:
    """Return the same as `parse_real` of each cell; most columns are checked as a whole."""
    joined = "".join(cells)
    if joined.isascii() and joined.isprintable() and "_" not in joined:
        with suppress(ValueError):
            numbers = [*map(float, cells)]
            if all(map(math.isfinite, numbers)):
                return numbers
    return [parse_real(cell) for cell in cells]


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


def trimmed(cell: str) -> str:
    """Return a cell of a file without the spaces that align it with others."""
    return cell.strip(" \t")
