"""The channel of noisy rows in exact rationals, and the largest ratio for each budget.

Two columns that differ by d_j in row j give each report, clamped or not, probabilities whose ratio
is at most `prod_j a_j^-d_j`. A report beyond both columns in every row attains it.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.channels.channel import Channel, refuse_large
from ldpstream.mechanisms.exact.dyadic import log_estimate
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.matrix.noise import LaplaceRows
from ldpstream.mechanisms.families.matrix.pairs import ProtectedPairs

_MARGIN = 1e-9
_LONGEST_BITS = 4096
_KEPT_BITS = 512


def channel_of_rows(rows: LaplaceRows, group: NDArray[np.int64], groups: int) -> Channel:
    """Return the channel of values in disclosed groups, `group` int64 `(k,)` in `0..groups-1`.

    Outputs are numbered by group, then by the combination of the rows' numbers, the last row
    varying fastest.

    Raises:
        ValueError: if its probabilities are too many or too long.
    """
    refuse_many(rows, len(group), groups)
    tables = [rows.row_channel(row) for row in range(rows.count)]
    outputs = prod(_spans(rows))
    channel = []
    for value, own in enumerate(group.tolist()):
        chances = product(*(table[value].values() for table in tables))
        row = (prod(factors, start=Fraction(1)) for factors in chances)
        channel.append(dict(enumerate(row, own * outputs)))
    return Channel(tuple(channel), groups * outputs)


def refuse_many(rows: LaplaceRows, size: int, groups: int) -> None:
    """Refuse channels of `size` values that are too large.

    Raises:
        ValueError: as `refuse_large`.
    """
    spans = _spans(rows)
    refuse_large(size, size * groups * prod(spans) * sum(spans))


def worst_ratios(rows: LaplaceRows, pairs: ProtectedPairs) -> dict[Fraction, Fraction]:
    """Return the largest ratio of the pairs with each budget.

    Floats, with a relative error of some 1e-12, exclude pairs that are surely below another one of
    the same budget. For the rest, all different products are computed as fractions; those of more
    than 4096 bits are rounded up to a multiple of 2^-512, so that a certificate can hold them.
    """
    rates = np.array([log_estimate(Fraction(WORD, t)) for t in rows.thresholds])
    if len(rates) == 1:
        losses = rates[0] * pairs.distances(rows.entries)
    else:
        losses = pairs.weighted(rows.entries, rates[rows.kinds])
    largest = np.zeros(len(pairs.budgets))
    np.maximum.at(largest, pairs.which, losses)
    near = np.flatnonzero(losses >= largest[pairs.which] * (1.0 - _MARGIN))
    worst = dict.fromkeys(pairs.budgets, Fraction(1))
    for *counts, which in pairs.patterns(rows.entries, rows.kinds, near):
        budget = pairs.budgets[which]
        worst[budget] = max(worst[budget], _ratio(rows.thresholds, counts))
    return worst


def told_apart(group: NDArray[np.int64], pairs: ProtectedPairs) -> str | None:
    """Return a message on the first protected pair in different groups, which reports disclose."""
    apart = np.flatnonzero(group[pairs.first] != group[pairs.second])
    if not apart.size:
        return None
    value, other = int(pairs.first[apart[0]]), int(pairs.second[apart[0]])
    return f"values {value} and {other}: reports disclose which of them it is"


def _ratio(thresholds: Sequence[int], counts: Sequence[int]) -> Fraction:
    top = bottom = 1
    for threshold, count in zip(thresholds, counts, strict=True):
        top *= WORD**count
        bottom *= threshold**count
    if top.bit_length() > _LONGEST_BITS:
        return Fraction(-((-top << _KEPT_BITS) // bottom), 1 << _KEPT_BITS)
    return Fraction(top, bottom)


def _spans(rows: LaplaceRows) -> list[int]:
    return [int(span) + 1 for span in (rows.high - rows.low).tolist()]
