"""The channel of noisy rows in exact rationals, as products over a few rows."""

from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.channels.channel import Channel, refuse_large
from ldpstream.mechanisms.families.matrix.noise import LaplaceRows


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


def _spans(rows: LaplaceRows) -> list[int]:
    return [int(span) + 1 for span in (rows.high - rows.low).tolist()]
