"""What reports disclose exactly, and sums over it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.mechanism import Mechanism, Statistic

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Groups:
    """A partition of values and outputs that a report discloses: one group where nothing is.

    `of_value` int64 `(k,)`, `of_output` int64 `(outputs,)`, numbered `0..count-1`, none empty.
    """

    of_value: Integers
    of_output: Integers
    count: int
    disclosed: bool

    @classmethod
    def of(cls, mechanism: Mechanism) -> "Groups":
        """Return what the mechanism discloses."""
        known = mechanism.decoder().groups()
        if known is None:
            nothing = np.zeros(mechanism.size, dtype=np.int64)
            return cls(nothing, np.zeros(mechanism.outputs, dtype=np.int64), 1, disclosed=False)
        return cls(*known, int(known[0].max()) + 1, disclosed=True)

    def reports(self, statistic: Statistic) -> Integers:
        """Return the number of reports of each group, int64 of shape `(count,)`: exact."""
        out = np.zeros(self.count, dtype=np.int64)
        np.add.at(out, self.of_output, statistic)
        return out

    def sum_values(self, function: Floats) -> Floats:
        """Sum a function of the value over each group: `(k,)` -> `(count,)`."""
        return _sum(function, self.of_value, self.count)

    def sum_outputs(self, function: Floats) -> Floats:
        """Sum a function of the output over each group: `(outputs,)` -> `(count,)`."""
        return _sum(function, self.of_output, self.count)

    def value_extremes(self, function: Floats) -> tuple[Floats, Floats]:
        """Return the least and largest of a function of the value in each group."""
        return _extremes(function, self.of_value, self.count)

    def output_extremes(self, function: Floats) -> tuple[Floats, Floats]:
        """Return the least and largest of a function of the output in each group."""
        return _extremes(function, self.of_output, self.count)


def known_totals(mechanism: Mechanism, statistic: Statistic, n: int) -> tuple[Integers, Floats]:
    """Return `(group of each value (k,), share of each group among the respondents (count,))`.

    The shares are known exactly, whatever the noise; without disclosed groups there is one group
    of share 1. NaN where n = 0.
    """
    groups = Groups.of(mechanism)
    reports = groups.reports(statistic)
    return groups.of_value, reports / n if n else np.full(groups.count, np.nan)


def _sum(function: Floats, group: Integers, count: int) -> Floats:
    if count == 1:
        return np.array([function.sum()])
    return np.bincount(group, function, count).astype(np.float64)


def _extremes(function: Floats, group: Integers, count: int) -> tuple[Floats, Floats]:
    if count == 1:
        return np.array([function.min()]), np.array([function.max()])
    least, largest = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(least, group, function)
    np.maximum.at(largest, group, function)
    return least, largest
