"""The cuts of disclosed groups by the prefixes of one ordered dimension."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ldpstream.estimators.queries.groups import Groups
from ldpstream.mechanisms.base.arrays import Floats, Integers


@dataclass(frozen=True)
class Cuts:
    """A cut is a group with one of its distinct positions, and holds the group's values up to it.

    Cuts are ordered by group, then position. For each cut, `(cuts,)`: `group`, `rank` (0-based in
    the group) and `position` are int64, and `whole` (the cut holds all of its group) is bool.
    `rank_of_value` is int64 `(k,)`. `length` is the number m of positions, and `ranks` the largest
    number of cuts in a group.
    """

    group: Integers
    rank: Integers
    position: Integers
    whole: NDArray[np.bool_]
    rank_of_value: Integers
    length: int
    ranks: int

    @classmethod
    def of(cls, groups: Groups, positions: Integers) -> Self:
        """Cut groups at each of their values' positions, int64 `(k,)` >= 0."""
        pairs = np.stack([groups.of_place, positions])
        (group, position), cut_of_value = np.unique(pairs, axis=1, return_inverse=True)
        sizes = np.bincount(group, minlength=groups.count)
        starts = np.cumsum(sizes) - sizes
        rank = np.arange(group.size) - starts[group]
        return cls(
            group=group,
            rank=rank,
            position=position,
            whole=rank == sizes[group] - 1,
            rank_of_value=rank[cut_of_value.reshape(-1)],
            length=int(positions.max()) + 1,
            ranks=int(sizes.max()),
        )

    def whole_groups(self, rank: int, groups: int) -> NDArray[np.bool_]:
        """Return which groups are whole after the cuts of a rank, bool of shape `(groups,)`."""
        out = np.zeros(groups, dtype=np.bool_)
        out[self.group[self.whole & (self.rank <= rank)]] = True
        return out

    def accumulate(self, state: Floats) -> Floats:
        """Return, for each position, the sum over groups of the state at their last cut: `(m,)`.

        `state` is float64 `(cuts,)`; a group before its first cut counts as 0.
        """
        before = np.where(self.rank > 0, np.concatenate([[0.0], state[:-1]]), 0.0)
        return np.cumsum(np.bincount(self.position, state - before, self.length))
