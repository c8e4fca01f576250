"""The groups that reports disclose, and sums over groups."""

from dataclasses import dataclass

import numpy as np

from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.interface.mechanism import Mechanism, Statistic


@dataclass(frozen=True)
class Groups:
    """The groups of values, or of outputs, that reports disclose; one group if they disclose none.

    `of_place` is the group of each value or output, int64, in `0..count-1`; no group is empty.
    """

    of_place: Integers
    count: int
    disclosed: bool

    @classmethod
    def of(cls, mechanism: Mechanism) -> "Groups":
        """Return the groups that a mechanism discloses."""
        return cls.known(mechanism.decoder().groups(), mechanism.size)

    @classmethod
    def known(cls, groups: Integers | None, size: int) -> "Groups":
        """Return the groups of `size` places; None is one group."""
        if groups is None:
            return cls(all_in_one(size), 1, disclosed=False)
        return cls(groups, int(groups.max()) + 1, disclosed=True)

    def sums(self, function: Floats) -> Floats:
        """Sum a function of the place over each group, float64 `(count,)`."""
        if self.count == 1:
            return np.array([function.sum()])
        return np.bincount(self.of_place, function, self.count).astype(np.float64)

    def extremes(self, function: Floats) -> tuple[Floats, Floats]:
        """Return the least and largest of a function of the place in each group."""
        (found,) = self.extremes_each(function)
        return found

    def extremes_each(self, *functions: Floats) -> list[tuple[Floats, Floats]]:
        """Return the least and largest of each of some functions of the place in each group."""
        if self.count == 1:
            return [(np.array([each.min()]), np.array([each.max()])) for each in functions]
        found = []
        for each in functions:
            least, largest = np.full(self.count, np.inf), np.full(self.count, -np.inf)
            np.minimum.at(least, self.of_place, each)
            np.maximum.at(largest, self.of_place, each)
            found.append((least, largest))
        return found


def all_in_one(size: int) -> Integers:
    """Return a single group for `size` places, as a view that takes no memory."""
    return np.broadcast_to(np.zeros(1, dtype=np.int64), (size,))


def known_totals(mechanism: Mechanism, statistic: Statistic, n: int) -> tuple[Integers, Floats]:
    """Return the group of each value, `(k,)`, and each group's share of respondents, `(count,)`.

    The shares are exact. Without disclosed groups there is one group with share 1. NaN if n = 0.
    """
    groups = Groups.of(mechanism)
    reports = mechanism.decoder().group_reports(statistic)
    return groups.of_place, reports / n if n else np.full(groups.count, np.nan)
