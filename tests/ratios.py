"""A guarantee straight from its definition, at every output, in integers.

Over one common denominator the rows of a channel are integers: comparing them is as exact as
comparing fractions, and many times faster.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction


def in_units(rows: Sequence[Mapping[int, Fraction]]) -> list[dict[int, int]]:
    """Return the rows in units of one over their common denominator."""
    common = math.lcm(*(p.denominator for row in rows for p in row.values()))
    return [{y: p.numerator * (common // p.denominator) for y, p in row.items()} for row in rows]


def is_within(row: Mapping[int, int], other: Mapping[int, int], most: Fraction) -> bool:
    """Return whether no output is more than `most` times as probable in a row as in the other."""
    return all(p * most.denominator <= most.numerator * other.get(y, 0) for y, p in row.items())
