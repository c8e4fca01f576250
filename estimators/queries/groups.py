"""What reports disclose exactly, and sums over it."""

from dataclasses import dataclass

import numpy as np

from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.interface.mechanism import Mechanism, Statistic


@dataclass(frozen=True)
class Groups:
    """A partition of the values that a report discloses, or of the outputs: one group by default.

    `of_place` is the group of each value or output, int64, numbered `0..count-1`, none empty.
    """

    of_place: Integers
    count: int
    disclosed: bool

    @classmethod
    def of(cls, mechanism: Mechanism) -> "Groups":
        """Return what the mechanism discloses."""
        return cls.known(mechanism.decoder().groups(), mechanism.size)

    @classmethod
    def known(cls, groups: Integers | None, size: int) -> "Groups":
        """Return these groups of this many places; None: one."""
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
    """Return the group of each of this many places where there is one group: takes no memory."""
    return np.broadcast_to(np.zeros(1, dtype=np.int64), (size,))


def known_totals(mechanism: Mechanism, statistic: Statistic, n: int) -> tuple[Integers, Floats]:
    """Return `(group of each value (k,), share of each group among the respondents (count,))`.

    The shares are known exactly, whatever the noise; without disclosed groups there is one group
    of share 1. NaN where n = 0.
    """
    groups = Groups.of(mechanism)
    reports = mechanism.decoder().group_reports(statistic)
    return groups.of_place, reports / n if n else np.full(groups.count, np.nan)
