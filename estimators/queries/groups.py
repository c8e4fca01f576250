"""What reports disclose exactly, and sums over it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.interface.mechanism import Mechanism, Statistic

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Groups:
    """A partition of values that a report discloses: one group where nothing is.

    `of_value` int64 `(k,)`, numbered `0..count-1`, none empty.
    """

    of_value: Integers
    count: int
    disclosed: bool

    @classmethod
    def of(cls, mechanism: Mechanism) -> "Groups":
        """Return what the mechanism discloses."""
        known = mechanism.decoder().groups()
        if known is None:
            return cls(all_in_one(mechanism.size), 1, disclosed=False)
        return cls(known, int(known.max()) + 1, disclosed=True)

    def sum_values(self, function: Floats) -> Floats:
        """Sum a function of the value over each group: `(k,)` -> `(count,)`."""
        return sum_groups(function, self.of_value, self.count)

    def value_extremes(self, function: Floats) -> tuple[Floats, Floats]:
        """Return the least and largest of a function of the value in each group."""
        return group_extremes(function, self.of_value, self.count)


def all_in_one(size: int) -> Integers:
    """Return the group of each of so many places where there is one group: takes no memory."""
    return np.broadcast_to(np.zeros(1, dtype=np.int64), (size,))


def known_totals(mechanism: Mechanism, statistic: Statistic, n: int) -> tuple[Integers, Floats]:
    """Return `(group of each value (k,), share of each group among the respondents (count,))`.

    The shares are known exactly, whatever the noise; without disclosed groups there is one group
    of share 1. NaN where n = 0.
    """
    groups = Groups.of(mechanism)
    reports = mechanism.decoder().group_reports(statistic)
    return groups.of_value, reports / n if n else np.full(groups.count, np.nan)


def sum_groups(function: Floats, group: Integers, count: int) -> Floats:
    """Sum a function over each of `count` groups, given the group of each of its places."""
    if count == 1:
        return np.array([function.sum()])
    return np.bincount(group, function, count).astype(np.float64)


def group_extremes(function: Floats, group: Integers, count: int) -> tuple[Floats, Floats]:
    """Return the least and largest of a function in each group."""
    if count == 1:
        return np.array([function.min()]), np.array([function.max()])
    least, largest = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(least, group, function)
    np.maximum.at(largest, group, function)
    return least, largest
