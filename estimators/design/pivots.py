"""Moves along the edges of a policy's cone, from one extreme ray to the next.

At an extreme ray, the pairs that keep their budget with equality connect all values, and a spanning
tree of them determines the ray. Without one edge of the tree the values fall into two parts. One
part can be scaled against the other until another pair reaches its budget: the ray at the other end
of an edge of the cone. A convex function on an edge is largest at an end, so that a ray that beats
all its neighbours is a stronger local optimum than one that no linear program leaves.
"""

from dataclasses import dataclass

import numpy as np

from ldpstream.mechanisms.base.arrays import Floats, Integers

_TIGHT = 1e-9
_MOST_STEPS = 12


@dataclass(frozen=True, eq=False)
class Pairs:
    """The pairs `v[value] <= e^budget v[other]` that define a cone of k values; `(m,)` each."""

    size: int
    value: Integers
    other: Integers
    budget: Floats


@dataclass(frozen=True, eq=False)
class Moves:
    """The moves at a ray: parts `(t, k)` of 0 and 1, and the factor that scales each, `(t,)`."""

    parts: Floats
    factors: Floats


def moves_at(pairs: Pairs, column: Floats) -> Moves:
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
    return Moves(np.concatenate([below[up], below[down]]), factors)


def ascend(
    pairs: Pairs, column: Floats, prior: Floats, form: Floats, multipliers: Floats
) -> Floats:
    """Return a ray with `p.v = 1` after at most 12 moves from a ray, each to the best neighbour.

    It becomes a column of the design, so that the next round can continue from it.
    """
    for _ in range(_MOST_STEPS):
        moves = moves_at(pairs, column)
        gain = gains_of(moves, column, prior, form, multipliers)
        now = column @ form @ column - multipliers @ column
        if not gain.size or gain.max() <= now + 1e-10 * abs(multipliers @ column):
            break
        column = moved(moves, int(gain.argmax()), column, prior)
    return column


def moved(moves: Moves, which: int, column: Floats, prior: Floats) -> Floats:
    """Return the ray that a move leads to, with `p.v = 1`."""
    column = column * (1.0 + (moves.factors[which] - 1.0) * moves.parts[which])
    out: Floats = column / (column @ prior)
    return out


def gains_of(
    moves: Moves, column: Floats, prior: Floats, form: Floats, multipliers: Floats
) -> Floats:
    """Return the gain of the ray that each move leads to, float64 `(t,)`."""
    change = moves.factors - 1.0
    part = column * moves.parts
    image = part @ form
    quadratic = column @ form @ column + change * (
        2.0 * image @ column + change * (image * part).sum(axis=1)
    )
    scale = column @ prior + change * (part @ prior)
    linear = multipliers @ column + change * (part @ multipliers)
    out: Floats = quadratic / scale**2 - linear / scale
    return out


def _parts(pairs: Pairs, tight: Integers) -> Floats:
    """Return, for every edge of a spanning tree of the tight pairs, the values beyond it.

    1 beyond and 0 before, `(t, k)`; values that no tight pairs connect to the first are in no part.
    """
    near: list[list[int]] = [[] for _ in range(pairs.size)]
    ends = pairs.value[tight].tolist(), pairs.other[tight].tolist()
    for a, b in zip(*ends, strict=True):
        near[a].append(b)
        near[b].append(a)
    order, parents = [0], [-1] * pairs.size
    for x in order:
        for z in near[x]:
            if parents[z] < 0 and z:
                parents[z] = x
                order.append(z)
    below = np.eye(pairs.size)
    for x in order[:0:-1]:
        below[parents[x]] += below[x]
    return below[order[1:]]
