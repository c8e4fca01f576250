"""Cones whose extreme rays are free choices, one at each vertex of a tree.

At a ray, `v[x] / v[parent of x]` has one of two levels. Two kinds of policy have this form:

- a tree of budgets, such as a line: k - 1 equalities determine a ray, and an edge contributes at
  most one of its two, so that every edge keeps its budget with equality in one direction;
- one budget per row, as under classical local differential privacy: some values of a ray are at
  `e^E[x, .]` and the others at 1; the tree is a star around a vertex that is not a value. A value
  that no budget protects has no choice there, but a ray of its own, its unit column.

The largest linear function is found exactly, by dynamic programming from the leaves up, and all
`2^choices` rays can be enumerated if they are few.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from ldpstream.estimators.design.cone import gains, hyperplanes, largest_ratio, scaled
from ldpstream.estimators.design.pair_cone import PairCone, essential_pairs
from ldpstream.mechanisms.base.arrays import Bools, Floats, Integers

_CHUNK_BITS = 14
_MOST_ROUNDS = 100
_ROUNDING = 1e-11
_CLEAR = 1e-9


@dataclass(frozen=True, eq=False)
class TreeCone(PairCone):
    """A tree of values: `parents`, int64 `(k,)`, and the levels `low` and `high`, float64 `(k,)`.

    A vertex without a parent, -1, has the level of `v[x]` itself. `order` lists the vertices, each
    after its parent. A vertex with two equal levels is not a choice: the root of a tree is at 1.
    `units` are the values whose unit columns are rays as well.
    """

    climbs: ClassVar[int] = 64
    parents: Integers
    order: Integers
    low: Floats
    high: Floats
    units: Integers

    @classmethod
    def of(cls, budgets: Floats) -> Self | None:
        """Return the cone of closed budgets, or None if it has neither form."""
        size = len(budgets)
        off = budgets[~np.eye(size, dtype=np.bool_)].reshape(size, size - 1)
        least = off.min(axis=1, initial=np.inf)
        if (off == least[:, None]).all():
            free = np.isfinite(least)
            levels = np.exp(np.where(free, least, 0.0))
            nowhere, units = np.full(size, -1), np.flatnonzero(~free)
            return cls(budgets, nowhere, np.arange(size), np.ones(size), levels, units)
        if not np.isfinite(off).all():
            return None
        value, other = essential_pairs(budgets)
        edges = set(zip(value.tolist(), other.tolist(), strict=True))
        if len(edges) != 2 * (size - 1) or any((b, a) not in edges for a, b in edges):
            return None
        # k - 1 edges that join all values, as finite budgets do, are a tree.
        parents, nodes = np.full(size, -1), [0]
        for x in nodes:
            for a, b in edges:
                if a == x and b != parents[x]:
                    parents[b] = x
                    nodes.append(b)
        low, high = np.ones(size), np.ones(size)
        below = np.array(nodes[1:])
        low[below] = np.exp(-budgets[parents[below], below])
        high[below] = np.exp(budgets[below, parents[below]])
        return cls(budgets, parents, np.array(nodes), low, high, np.arange(0))

    def seeds(self) -> Floats:
        """Return the seeds of any cone and, under classical LDP, balanced sets of values."""
        general = super().seeds()
        if not self.is_star:
            return general
        sets = hyperplanes(len(self.parents), float(np.log(self.high.max())))
        return np.concatenate([general, np.where(sets > 0.0, self.high, self.low)])

    @property
    def is_star(self) -> bool:
        """Whether no choice depends on another: there is one budget per row."""
        return bool((self.parents < 0).all())

    @cached_property
    def free(self) -> Integers:
        """The vertices that are choices."""
        return np.flatnonzero(self.low < self.high)

    @cached_property
    def below(self) -> Floats:
        """1 if the choice at a free vertex changes a value, float64 `(choices, k)`."""
        under = np.eye(len(self.parents))
        for x in self.order[::-1]:
            if self.parents[x] >= 0:
                under[self.parents[x]] += under[x]
        return under[self.free]

    def best(self, directions: Floats, prior: Floats) -> Floats:
        columns = largest_ratio(directions, prior, lambda worth: self._columns(self._greedy(worth)))
        if self.units.size:
            alone = directions[:, self.units] / prior[self.units]
            better = alone.max(axis=1) > (directions * columns).sum(axis=1)
            chosen = self.units[alone[better].argmax(axis=1)]
            columns[better] = np.eye(prior.size)[chosen] / prior[chosen, None]
        return columns

    def _greedy(self, directions: Floats) -> Bools:
        """Return the choices with the largest `c.v`: high if the part below contributes to it."""
        total = directions.copy()
        chosen = np.zeros(total.shape, dtype=np.bool_)
        for x in self.order[::-1]:
            chosen[:, x] = total[:, x] > 0.0
            if self.parents[x] >= 0:
                level = np.where(chosen[:, x], self.high[x], self.low[x])
                total[:, self.parents[x]] += total[:, x] * level
        return chosen

    def _columns(self, chosen: Bools) -> Floats:
        columns: Floats = np.where(chosen, self.high, self.low)
        for x in self.order:
            if self.parents[x] >= 0:
                columns[:, x] *= columns[:, self.parents[x]]
        return columns

    def _choices(self, columns: Floats) -> Bools:
        """Return the choices of extreme columns of any scale."""
        if self.is_star:
            middle = columns.max(axis=1, keepdims=True) * np.sqrt(self.low / self.high)
        else:
            middle = columns[:, self.parents] * np.sqrt(self.low * self.high)
        chosen: Bools = columns > middle
        return chosen

    def improve(self, columns: Floats, prior: Floats, form: Floats, multipliers: Floats) -> Floats:
        """Return columns that no change of a single choice improves."""
        chosen = self._choices(columns)
        for _ in range(_MOST_ROUNDS):
            column = scaled(self._columns(chosen), prior)
            gain = self._changed(chosen, column, prior, form, multipliers)
            now = gains(column, form, multipliers)
            least = now + _ROUNDING * np.abs(column @ multipliers)
            better = np.flatnonzero(gain.max(axis=1) > least)
            if not better.size:
                break
            chosen[better, self.free[gain[better].argmax(axis=1)]] ^= True
        return scaled(self._columns(chosen), prior)

    def _changed(
        self, chosen: Bools, columns: Floats, prior: Floats, form: Floats, multipliers: Floats
    ) -> Floats:
        """Return the gain of every column with one choice changed, float64 `(n, choices)`."""
        rise = (self.high / self.low)[self.free] - 1.0
        change = np.where(chosen[:, self.free], -rise / (1.0 + rise), rise)
        moved = columns[:, None, :] * self.below
        image = moved @ form
        square, cross = (image * moved).sum(axis=2), (image * columns[:, None, :]).sum(axis=2)
        quadratic = ((columns @ form) * columns).sum(axis=1)[:, None]
        quadratic = quadratic + change * (2.0 * cross + change * square)
        linear = (columns @ multipliers)[:, None] + change * (moved @ multipliers)
        scale = 1.0 + change * (moved @ prior)
        # If almost all of a column disappears, rounding hides the rest: do not make the change.
        clear = scale > _CLEAR
        scale = np.where(clear, scale, 1.0)
        return np.where(clear, quadratic / scale**2 - linear / scale, -np.inf)

    def rays(self, most: int) -> Iterator[Floats] | None:
        """Return all `2^choices` extreme rays and the unit columns, None if they are too many."""
        return self._enumerate() if 2**self.free.size <= most else None

    def _enumerate(self) -> Iterator[Floats]:
        yield np.eye(self.low.size)[self.units]
        logs = np.log(self.low), np.log(self.high)
        base = logs[0][self.free] @ self.below
        spread = (logs[1] - logs[0])[self.free][:, None] * self.below
        # All choices at some vertices are computed once, and scaled by those at the others.
        few = spread[:_CHUNK_BITS]
        chunk = np.exp(_bits(len(few)) @ few)
        for factors in np.exp(base + _bits(len(spread) - len(few)) @ spread[_CHUNK_BITS:]):
            yield chunk * factors


def _bits(count: int) -> Integers:
    """Return all choices at some vertices, `(2^count, count)`."""
    return (np.arange(1 << count)[:, None] >> np.arange(count)) & 1
