"""Cones of policies over pairs of values, `v[x] <= e^E[x, x'] v[x']`, and moves along their edges.

At an extreme ray, the pairs that keep their budget with equality connect all values, and a spanning
tree of them determines the ray. Without one edge of the tree the values fall into two parts. One
part can be scaled against the other until another pair reaches its budget: the ray at the other end
of an edge of the cone. A convex function on an edge is largest at an end, so that a ray that beats
all its neighbours is a stronger local optimum than one that no linear program leaves.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

from ldpstream.estimators.design.cone import Cone, DesignError, scaled
from ldpstream.mechanisms.base.arrays import Floats, Integers

_TIGHT = 1e-9
_ROUNDING = 1e-12
_MOST_STEPS = 12
_MOST_PERTURBATIONS = 4


@dataclass(frozen=True, eq=False)
class _Pairs:
    """The pairs `v[value] <= e^budget v[other]` that define a cone of k values; `(m,)` each."""

    size: int
    value: Integers
    other: Integers
    budget: Floats


@dataclass(frozen=True, eq=False)
class PairCone(Cone):
    """The cone of budgets `E`, float64 `(k, k)`, `inf` for unprotected pairs, 0 on the diagonal.

    They are closed: `E[x, z] <= E[x, y] + E[y, z]`, which every channel that keeps them obeys.
    """

    climbs: ClassVar[int] = 8
    perturbations: ClassVar[int] = 64
    budgets: Floats

    @cached_property
    def pairs(self) -> _Pairs:
        """The pairs with finite budgets that no two others imply."""
        value, other = essential_pairs(self.budgets)
        return _Pairs(len(self.budgets), value, other, self.budgets[value, other])

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
        """Return the columns with the largest `c.v`, by a linear program each."""
        out = np.empty_like(directions)
        for place, direction in enumerate(directions):
            solution = linprog(
                -direction / max(float(np.abs(direction).max()), 1e-300),
                A_ub=self._constraints,
                b_ub=np.zeros(self._constraints.shape[0]),
                A_eq=prior[None, :],
                b_eq=np.ones(1),
                method="highs",
            )
            if solution.x is None:
                raise DesignError(
                    f"no convergence: a linear program of the search, {solution.message}"
                )
            out[place] = self._shrink(solution.x)
        return scaled(out, prior)

    def improve(self, columns: Floats, prior: Floats, form: Floats, multipliers: Floats) -> Floats:
        """Return rays moved towards one that beats its neighbours; columns with a 0 stay."""
        out = columns.copy()
        for place in np.flatnonzero((columns > 0.0).all(axis=1)):
            out[place] = _ascend(self.pairs, columns[place], prior, form, multipliers)
        return out

    def perturb(self, columns: Floats, prior: Floats, rng: np.random.Generator) -> Floats:
        """Return rays a few random moves away from columns; columns with a 0 are left out."""
        out = columns[(columns > 0.0).all(axis=1)]
        for place, column in enumerate(out):
            ray = column
            for _ in range(rng.integers(1, _MOST_PERTURBATIONS, endpoint=True)):
                moves = _moves_at(self.pairs, ray)
                if not moves.factors.size:
                    break
                ray = _moved(moves, int(rng.integers(moves.factors.size)), ray, prior)
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
    mask = np.ones((size, size), dtype=np.bool_)
    for middle in range(size):
        mask[:] = True
        mask[middle, :] = mask[:, middle] = False
        around = budgets[:, middle, None] + budgets[middle]
        needed &= ~(mask & (around <= budgets * (1.0 + _ROUNDING)))
    value, other = np.nonzero(needed)
    return value, other


@dataclass(frozen=True, eq=False)
class _Moves:
    """The moves at a ray: parts `(t, k)` of 0 and 1, and the factor that scales each, `(t,)`."""

    parts: Floats
    factors: Floats


def _moves_at(pairs: _Pairs, column: Floats) -> _Moves:
    """Return every move from an extreme ray of positive entries, `(k,)`, to another such ray.

    If no pair limits a part, its move ends at a ray with entries of 0, which logarithms cannot
    represent; such rays are left to the linear programs.
    """
    logs = np.log(column)
    slack = pairs.budget - logs[pairs.value] + logs[pairs.other]
    tight = np.flatnonzero(slack < _TIGHT)
    below = _parts(pairs, tight)
    inside = below > 0.0
    first, second = inside[:, pairs.value], inside[:, pairs.other]
    rise = np.where(first & ~second, slack, np.inf).min(axis=1)
    fall = np.where(~first & second, slack, np.inf).min(axis=1)
    up, down = (np.flatnonzero((e > _TIGHT) & np.isfinite(e)) for e in (rise, fall))
    factors = np.exp(np.concatenate([rise[up], -fall[down]]))
    return _Moves(np.concatenate([below[up], below[down]]), factors)


def _ascend(
    pairs: _Pairs, column: Floats, prior: Floats, form: Floats, multipliers: Floats
) -> Floats:
    """Return a ray with `p.v = 1` after at most 12 moves from a ray, each to the best neighbour.

    It becomes a column of the design, so that the next round can continue from it.
    """
    for _ in range(_MOST_STEPS):
        moves = _moves_at(pairs, column)
        gain = _gains_of(moves, column, prior, form, multipliers)
        now = column @ form @ column - multipliers @ column
        if not gain.size or gain.max() <= now + 1e-10 * abs(multipliers @ column):
            break
        column = _moved(moves, int(gain.argmax()), column, prior)
    return column


def _moved(moves: _Moves, which: int, column: Floats, prior: Floats) -> Floats:
    """Return the ray that a move leads to, with `p.v = 1`."""
    column = column * (1.0 + (moves.factors[which] - 1.0) * moves.parts[which])
    out: Floats = column / (column @ prior)
    return out


def _gains_of(
    moves: _Moves, column: Floats, prior: Floats, form: Floats, multipliers: Floats
) -> Floats:
    """Return the gain of the ray that each move leads to, float64 `(t,)`."""
    change = moves.factors - 1.0
    gains = column * moves.parts
    image = gains @ form
    quadratic = column @ form @ column + change * (
        2.0 * image @ column + change * (image * gains).sum(axis=1)
    )
    scale = column @ prior + change * (gains @ prior)
    linear = multipliers @ column + change * (gains @ multipliers)
    out: Floats = quadratic / scale**2 - linear / scale
    return out


def _parts(pairs: _Pairs, tight: Integers) -> Floats:
    """Return, for every edge of a spanning tree of the tight pairs, the values beyond it.

    1 beyond and 0 before, `(t, k)`; values that no tight pairs connect to the first are in no part.
    """
    near: list[list[int]] = [[] for _ in range(pairs.size)]
    ends = pairs.value[tight].tolist(), pairs.other[tight].tolist()
    for a, b in zip(*ends, strict=True):
        near[a].append(b)
        near[b].append(a)
    visited, parents = [0], [-1] * pairs.size
    for x in visited:
        for z in near[x]:
            if parents[z] < 0 and z:
                parents[z] = x
                visited.append(z)
    below = np.eye(pairs.size)
    for x in visited[:0:-1]:
        below[parents[x]] += below[x]
    return below[visited[1:]]
