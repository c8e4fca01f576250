"""The proved optimum where values are exchangeable, under one budget per row.

Values are exchangeable if they have the same share and budget and G stays the same when they change
places. A design may then be averaged over all orders of the values of each class, which makes it no
worse. So an extreme ray, with entries 1 and `E_x`, matters only by its *type*: how many values of
each class are high. All types can be listed. Averaged over orders, I and G are multiples of the
identity on the differences inside a class, so `tr(G I^-1)` depends on the classes' means and on one
number for the differences of each class. The *row* of a type holds both. Its square, averaged over
the signs of the differences, is the type's I; the rows of a Hadamard matrix are enough signs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice, product
from math import comb, prod

import numpy as np
from scipy.linalg import block_diag, hadamard

from ldpstream.estimators.design.cone import DesignError
from ldpstream.estimators.design.master import judge, solve
from ldpstream.mechanisms.base.arrays import Bools, Floats, Integers

_MOST_CLASSES = 7
"""With more, a mixture of types has too many signs; there are then few values in each class."""
_MOST_TYPES = 1 << 16
_FIRST_TYPES = 128
_ADDED_TYPES = 16
_MOST_ROUNDS = 60
_TOLERANCE = 1e-8
_SAME = 1e-10
_RIDGE = 1e-6
_NEGLIGIBLE = 1e-6
UNIT = -1
"""Marks the class of a type's only value, in a unit column."""


@dataclass(frozen=True, eq=False)
class SymmetricOptimum:
    """The least `tr(G I^-1)` of all channels, and the types of a best one.

    `types`, int64 `(t, classes)`, say how many values of each class are high, or `UNIT`.
    """

    least: float
    classes: tuple[Integers, ...]
    types: Integers

    def columns(self, high: Floats, most: int) -> Floats:
        """Return columns of these types, of any scale: all of them, or a selection of about `most`.

        Values of a selection move in circles inside their classes, so that every value is as often
        high. Unit columns are left out.
        """
        rng = np.random.default_rng(0)
        masks = [np.zeros(high.size, dtype=np.bool_)]
        whole = self.types[(self.types >= 0).all(axis=1)].tolist()
        each = most // max(len(whole), 1)
        for counts in whole:
            for places in islice(self._places(counts, rng, each), each):
                masks.append(np.zeros(high.size, dtype=np.bool_))
                masks[-1][places] = True
        return np.where(masks, high, 1.0)

    def _places(self, counts: list[int], rng: np.random.Generator, most: int) -> Iterator[Integers]:
        """Yield the values that are high, in columns of a type."""
        each = list(zip(self.classes, counts, strict=True))
        if prod(comb(len(values), count) for values, count in each) <= most:
            chosen = [[np.array(c) for c in combinations(v.tolist(), n)] for v, n in each]
            yield from (np.concatenate(members).astype(np.int64) for members in product(*chosen))
            return
        while True:
            orders = [(rng.permutation(values), count) for values, count in each]
            circles = [[np.roll(o, s)[:n] for s in range(len(o))] for o, n in orders]
            yield from (np.concatenate(members) for members in product(*circles))


def symmetric_optimum(
    gram: Floats, prior: Floats, high: Floats, units: Integers
) -> SymmetricOptimum | None:
    """Return the optimum for levels `E_x` and values with unit columns.

    None if there are too many types, hardly fewer classes than values, or no convergence.
    """
    classes = _classes(gram, prior, high, np.isin(np.arange(prior.size), units))
    if len(classes) > min(_MOST_CLASSES, (prior.size + 1) // 2):
        return None
    first = np.array([values[0] for values in classes])
    sizes = np.array([values.size for values in classes])
    choices = [
        range(n + 1) if high[x] > 1.0 else range(1) for n, x in zip(sizes, first, strict=True)
    ]
    if prod(map(len, choices)) > _MOST_TYPES:
        return None
    alone = UNIT * np.eye(sizes.size, dtype=np.int64)[np.isin(first, units)]
    types = np.concatenate([np.array(list(product(*choices))), alone])
    means, spreads = _rows(types, sizes, prior[first], high[first])
    between = np.array([[gram[np.ix_(a, b)].mean() for b in classes] for a in classes])
    between *= np.sqrt(np.outer(sizes, sizes))
    # G on the differences inside a class: what is left of the trace, without the mean's part.
    inside = np.array([np.trace(gram[np.ix_(c, c)]) for c in classes]) - np.diag(between)
    if sizes.size == 1:
        # All columns have the same mean, so the best type alone is the best channel.
        best = int(spreads[:, 0].argmax())
        differences = inside[0] / spreads[best, 0] ** 2 if sizes[0] > 1 else 0.0
        least = float(differences + between[0, 0] / sizes[0])
        return SymmetricOptimum(least, classes, types[[best]])
    several = sizes > 1
    target = np.append(np.sqrt(sizes), np.zeros(several.sum()))
    reduced = block_diag(between, np.diag(inside[several]))
    simple = ((types == 0) | (np.abs(types) == 1) | (types == sizes)).all(axis=1)
    simple &= (types != 0).sum(axis=1) <= 1
    try:
        least, kept = _best_mixture(reduced, means, spreads[:, several], target, simple)
    except DesignError:
        return None
    return SymmetricOptimum(least, classes, types[kept])


def _classes(gram: Floats, prior: Floats, high: Floats, alone: Bools) -> tuple[Integers, ...]:
    """Return the classes of exchangeable values, each ascending."""
    remaining, classes = np.arange(prior.size), []
    close = _SAME * np.abs(gram).max()
    while remaining.size:
        x = remaining[0]
        same = np.isclose(prior[remaining], prior[x], rtol=_SAME, atol=0.0)
        same &= np.isclose(high[remaining], high[x], rtol=_SAME, atol=0.0)
        same &= alone[remaining] == alone[x]
        for place in np.flatnonzero(same):
            values = np.arange(prior.size)
            values[[x, remaining[place]]] = values[[remaining[place], x]]
            same[place] = np.abs(gram[np.ix_(values, values)] - gram).max() <= close
        classes.append(remaining[same])
        remaining = remaining[~same]
    return tuple(classes)


def _rows(types: Integers, sizes: Integers, prior: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return the means and differences of types, `(t, classes)` each, as in an orthonormal basis.

    `prior` and `high` are those of one value of each class.
    """
    unit = (types == UNIT).any(axis=1, keepdims=True)
    counts, low = np.abs(types), np.where(unit, 0.0, 1.0)
    rise = np.where(unit, 1.0, high) - low
    means = low + rise * counts / sizes
    scale = (means * sizes) @ prior
    squares = counts * (sizes - counts) / (sizes * np.maximum(sizes - 1, 1))
    return means * np.sqrt(sizes) / scale[:, None], rise * np.sqrt(squares) / scale[:, None]


def _best_mixture(
    gram: Floats, means: Floats, spreads: Floats, target: Floats, simple: Bools
) -> tuple[float, Integers]:
    """Return a lower bound on `tr(G I^-1)` of all mixtures of types, and the types of the best one.

    It begins with the `simple` types, which tell all apart, and some of the others. Types are added
    where they improve the mixture, as in `optimise`; the bound is as there.
    """
    width = means.shape[1]
    signs = hadamard(1 << spreads.shape[1].bit_length())[:, 1 : spreads.shape[1] + 1]
    scale = float(np.trace(gram))
    # A design for queries that do not tell all values apart needs a ridge, unlike its bound.
    singular = np.linalg.matrix_rank(gram, hermitian=True) < len(gram)
    ridge = _RIDGE * np.eye(len(gram)) * singular
    accuracy = _RIDGE if singular else _TOLERANCE
    some = np.linspace(0, len(means) - 1, _FIRST_TYPES).round().astype(np.int64)
    used = np.union1d(some, np.flatnonzero(simple))
    weights = np.full(used.size, 1.0 / used.size)
    multipliers, least, active = None, 0.0, used
    for _ in range(_MOST_ROUNDS):
        rows = np.concatenate([np.hstack([means[used], spreads[used] * sign]) for sign in signs])
        start = np.tile(weights, len(signs)) / len(signs)
        master = solve(gram / scale + ridge, rows, start, multipliers, accuracy, target=target)
        master = judge(gram / scale, master) if singular else master
        weights = master.weights.reshape(len(signs), -1).sum(axis=0)
        multipliers = master.multipliers
        # M has no entries between means and differences, or between differences of two classes.
        form = np.diag(master.form)[width:]
        gain = np.einsum("ij,ij->i", means @ master.form[:width, :width], means)
        gain += spreads**2 @ form - means @ multipliers[:width]
        most = max(float(gain.max()), 0.0)
        bound = master.trace**2 / max(float(multipliers @ target) + most, master.trace)
        least, active = max(least, bound), used[weights > _NEGLIGIBLE * weights.sum()]
        if most < _TOLERANCE * master.trace:
            break
        added = np.setdiff1d(np.argsort(-gain)[:_ADDED_TYPES], used)
        used = np.concatenate([used, added])
        weights = np.append(weights, np.full(added.size, 0.01 / used.size))
    return scale * least, active
