"""Cones of policies over pairs of values: `v[x] <= e^E[x, x'] v[x']`."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

from ldpstream.estimators.design.cone import Cone, DesignError, scaled
from ldpstream.estimators.design.pivots import Pairs, ascend, moved, moves_at
from ldpstream.mechanisms.base.arrays import Floats, Integers

_ROUNDING = 1e-12
_MOST_KICKS = 4


@dataclass(frozen=True, eq=False)
class PairCone(Cone):
    """The cone of budgets `E`, float64 `(k, k)`, `inf` for unprotected pairs, 0 on the diagonal.

    They are closed: `E[x, z] <= E[x, y] + E[y, z]`, which every channel that keeps them obeys.
    """

    climbs: ClassVar[int] = 8
    kicks: ClassVar[int] = 64
    budgets: Floats

    @cached_property
    def pairs(self) -> Pairs:
        """The pairs with finite budgets that no two others imply."""
        value, other = essential_pairs(self.budgets)
        return Pairs(len(self.budgets), value, other, self.budgets[value, other])

    def seeds(self) -> Floats:
        """Return the column of ones and, for every value, columns that fall and rise away from it.

        `e^-E[x, .]` and `e^E[., x]` are in the cone by the triangle inequality; the second is left
        out if an entry is infinite.
        """
        falling = np.exp(-self.budgets)
        towards = self.budgets.T[np.isfinite(self.budgets).all(axis=0)]
        rising = np.exp(towards - towards.max(axis=1, keepdims=True, initial=0.0))
        return np.concatenate([np.ones((1, len(self.budgets))), falling, rising])

    def contains(self, column: Floats) -> bool:
        """Return whether a column keeps every budget."""
        limits = np.exp(self.pairs.budget) * column[self.pairs.other]
        return bool((column >= 0.0).all() and (column[self.pairs.value] <= limits).all())

    def best(self, directions: Floats, prior: Floats) -> Floats:
        """Return the column with the largest `c.v` for each direction, by a linear program each.

        Raises:
            DesignError: if the solver fails.
        """
        out = np.empty_like(directions)
        for place, direction in enumerate(directions):
            found = linprog(
                -direction / max(float(np.abs(direction).max()), 1e-300),
                A_ub=self._constraints,
                b_ub=np.zeros(self._constraints.shape[0]),
                A_eq=prior[None, :],
                b_eq=np.ones(1),
                method="highs",
            )
            if found.x is None:
                raise DesignError(
                    f"no convergence: a linear program of the search, {found.message}"
                )
            out[place] = self._shrink(found.x)
        return scaled(out, prior)

    def improve(self, columns: Floats, prior: Floats, form: Floats, multipliers: Floats) -> Floats:
        """Return rays moved towards one that beats its neighbours; columns with a 0 stay."""
        out = columns.copy()
        for place in np.flatnonzero((columns > 0.0).all(axis=1)):
            out[place] = ascend(self.pairs, columns[place], prior, form, multipliers)
        return out

    def kick(self, columns: Floats, prior: Floats, rng: np.random.Generator) -> Floats:
        """Return rays a few random moves away from columns; columns with a 0 are left out."""
        out = columns[(columns > 0.0).all(axis=1)]
        for place, column in enumerate(out):
            ray = column
            for _ in range(rng.integers(1, _MOST_KICKS, endpoint=True)):
                moves = moves_at(self.pairs, ray)
                if not moves.factors.size:
                    break
                ray = moved(moves, int(rng.integers(moves.factors.size)), ray, prior)
            out[place] = ray
        return out

    def _shrink(self, column: Floats) -> Floats:
        """Return the largest column of the cone below one that is outside by solver tolerance."""
        bounded = np.isfinite(self.budgets)
        limits = np.exp(np.where(bounded, self.budgets, 0.0)) * np.maximum(column, 0.0)
        least: Floats = np.where(bounded, limits, np.inf).min(axis=1)
        return least

    @cached_property
    def _constraints(self) -> csr_array:
        """`v[x] - e^E[x, x'] v[x'] <= 0` for the essential pairs."""
        pairs = self.pairs
        rows = np.arange(pairs.value.size)
        entries = np.concatenate([np.ones(rows.size), -np.exp(pairs.budget)])
        places = np.concatenate([rows, rows]), np.concatenate([pairs.value, pairs.other])
        return csr_array((entries, places), shape=(rows.size, pairs.size))


def closed(size: int, budgets: Iterable[tuple[int, int, float]]) -> Floats:
    """Return the shortest-path closure of some pairs' budgets, float64 `(k, k)`."""
    table = np.full((size, size), np.inf)
    for value, other, budget in budgets:
        table[value, other] = min(budget, table[value, other])
    np.fill_diagonal(table, 0.0)
    for middle in range(size):
        np.minimum(table, table[:, middle, None] + table[middle], out=table)
    return table


def essential_pairs(budgets: Floats) -> tuple[Integers, Integers]:
    """Return the ordered pairs with finite budgets that no chain of two others implies.

    The entries off the diagonal are above 0, so that no chains imply each other in a circle.
    """
    size = len(budgets)
    needed = np.isfinite(budgets) & ~np.eye(size, dtype=np.bool_)
    others = np.ones((size, size), dtype=np.bool_)
    for middle in range(size):
        others[:] = True
        others[middle, :] = others[:, middle] = False
        around = budgets[:, middle, None] + budgets[middle]
        needed &= ~(others & (around <= budgets * (1.0 + _ROUNDING)))
    value, other = np.nonzero(needed)
    return value, other
