"""The cone of a policy: the columns that a channel may have (docs/theory.md section 8).

Also what cones share: scale and gain of columns, and the sets of values that seeds are made of.

Localized information privacy of k values has a cone, too (docs/theory.md section 7). With a prior
pi, `e^-eps <= P(x | y)/pi[x] <= e^eps` means `e^-eps m <= v[x] <= e^eps m` with
`m = pi.v` for every column v. On `pi.v = 1` this is a box cut by a plane. A linear function is
largest if its best values, by `c[x]/pi[x]`, are at the upper end, the worst at the lower end, and
at most one between.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ldpstream.mechanisms.base.arrays import Floats
from ldpstream.mechanisms.exact.dyadic import budget
from ldpstream.mechanisms.families.design.projective_geometry import choose_geometry

_MOST_ROUNDS = 100
_MOST_EXCHANGES = 12
_ROUNDING = 1e-11


class DesignError(ValueError):
    """There is no design; the message says what did not converge or what is impossible."""


class Cone(ABC):
    """The vectors `v >= 0` that may be a column of a channel over k values.

    Columns are the rows of arrays `(n, k)`, scaled to `p.v = 1` for a design prior p.
    """

    climbs: ClassVar[int]
    """How many climbs a round of the search starts; fewer if they are expensive."""
    perturbations: ClassVar[int] = 0
    """How many columns of the design a round disturbs."""

    @abstractmethod
    def best(self, directions: Floats, prior: Floats) -> Floats:
        """Return the column with the largest `c.v` for each direction c, `(n, k)` both."""

    @abstractmethod
    def seeds(self) -> Floats:
        """Return columns of the cone, `(n, k)`, of any scale, that distinguish all values."""

    @abstractmethod
    def contains(self, column: Floats) -> bool:
        """Return whether a column, `(k,)`, of any scale is in the cone."""

    def improve(self, columns: Floats, prior: Floats, form: Floats, multipliers: Floats) -> Floats:
        """Return columns of no smaller gain, by local search; by default the columns themselves."""
        del prior, form, multipliers
        return columns

    def perturb(self, columns: Floats, prior: Floats, rng: np.random.Generator) -> Floats:
        """Return extreme columns near the given ones, by default none."""
        del prior, rng
        return columns[:0]

    def rays(self, most: int) -> Iterator[Floats] | None:
        """Return all extreme rays in arrays `(n, k)` of any scale, or None for more than `most`."""
        del most
        return None


def scaled(columns: Floats, prior: Floats) -> Floats:
    """Return columns `(n, k)` scaled to `p.v = 1`."""
    out: Floats = columns / (columns @ prior)[:, None]
    return out


def largest_ratio(directions: Floats, prior: Floats, best: Callable[[Floats], Floats]) -> Floats:
    """Return the columns with the largest `c.v`, `p.v = 1`, by Dinkelbach's method.

    `max c.v / p.v` is the t at which `max (c - t p).v`, over columns of the scale with which `best`
    returns those for directions, is 0.
    """
    t = directions.sum(axis=1)
    columns = np.ones_like(directions)
    for _ in range(_MOST_ROUNDS):
        columns = best(directions - t[:, None] * prior)
        reached = (directions * columns).sum(axis=1) / (columns @ prior)
        if (reached <= t + _ROUNDING * np.abs(t)).all():
            break
        t = np.maximum(t, reached)
    return scaled(columns, prior)


def gains(columns: Floats, form: Floats, multipliers: Floats) -> Floats:
    """Return `v^T M v - lambda.v` of columns with `p.v = 1`, float64 `(n,)`."""
    out: Floats = np.einsum("ij,ij->i", columns @ form, columns) - columns @ multipliers
    return out


def hyperplanes(size: int, epsilon: float) -> Floats:
    """Return 1 where a value is on a hyperplane, 0 elsewhere: `(n, k)`, sets of 1..k-1 values.

    Under classical LDP with uniform shares, a channel whose reports support these sets is close to
    the best one at any size (projective geometry response). As seeds they save a search much time
    with hundreds of values, since it adds only a few columns in each round.
    """
    geometry = choose_geometry(budget(epsilon), size)
    points, values = np.arange(geometry.points), np.arange(size)
    members = np.stack(
        [geometry.orthogonal(values, np.full(size, point)) for point in points.tolist()]
    )
    proper = members[members.any(axis=1) & ~members.all(axis=1)]
    return np.unique(proper, axis=0).astype(np.float64)


@dataclass(frozen=True, eq=False)
class LipCone(Cone):
    """`prior` is pi, float64 `(k,)`, above 0 with sum 1; `epsilon` above 0."""

    climbs: ClassVar[int] = 64
    prior: Floats
    epsilon: float

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the box: `e^-eps` and `e^eps`."""
        return float(np.exp(-self.epsilon)), float(np.exp(self.epsilon))

    def seeds(self) -> Floats:
        """Return the column of ones, columns high or low at one value, and balanced sets."""
        low, high = self.ends
        rest = 1.0 - self.prior
        tops = np.minimum(high, (1.0 - low * rest) / self.prior)
        bottoms = np.maximum(low, (1.0 - high * rest) / self.prior)
        columns = [np.ones(self.prior.size)]
        for own in (tops, bottoms):
            for place, level in enumerate(own):
                column = np.full(self.prior.size, (1.0 - self.prior[place] * level) / rest[place])
                column[place] = level
                columns.append(column)
        sets = self._fill(hyperplanes(self.prior.size, self.epsilon))
        return np.concatenate([np.array(columns), sets])

    def contains(self, column: Floats) -> bool:
        low, high = self.ends
        mean = float(self.prior @ column)
        return bool((column >= low * mean).all() and (column <= high * mean).all())

    def best(self, directions: Floats, prior: Floats) -> Floats:
        return largest_ratio(directions, prior, lambda worth: self._fill(worth / self.prior))

    def improve(self, columns: Floats, prior: Floats, form: Floats, multipliers: Floats) -> Floats:
        """Return columns improved by a few exchanges: one value falls, another rises."""
        out = columns / (columns @ self.prior)[:, None]
        for place, column in enumerate(out):
            for _ in range(_MOST_EXCHANGES):
                if not self._exchange(column, prior, form, multipliers):
                    break
            out[place] = column
        return scaled(out, prior)

    def _exchange(self, v: Floats, p: Floats, form: Floats, multipliers: Floats) -> bool:
        """Make the best exchange of a column with `pi.v = 1` in place; False if none is better.

        It moves along `d = e_l/pi_l - e_i/pi_i` until l is at the upper end or i at the lower end.
        """
        low, high = self.ends
        pi = self.prior
        length = np.minimum(((v - low) * pi)[:, None], ((high - v) * pi)[None, :])
        weighted = form / np.outer(pi, pi)
        diagonal = np.diag(weighted)
        image = form @ v
        square = diagonal[:, None] + diagonal[None, :] - 2.0 * weighted
        quadratic = v @ image + length * (2.0 * _differences(image / pi) + length * square)
        scale = p @ v + length * _differences(p / pi)
        linear = multipliers @ v + length * _differences(multipliers / pi)
        gain = quadratic / scale**2 - linear / scale
        fall, rise = np.unravel_index(int(gain.argmax()), gain.shape)
        # The diagonal is the column without any exchange.
        if gain[fall, rise] <= gain[0, 0] + _ROUNDING * abs(linear[0, 0]):
            return False
        step = length[fall, rise]
        v[fall] -= step / pi[fall]
        v[rise] += step / pi[rise]
        return True

    def _fill(self, worth: Floats) -> Floats:
        """Return columns with `pi.v = 1` that are as high as possible where `worth` is highest."""
        low, high = self.ends
        ranking = np.argsort(-worth, axis=1, kind="stable")
        sizes = self.prior[ranking]
        # What is left above the lower end, value by value: the best ones take all they can.
        room = (1.0 - low) / (high - low) - (np.cumsum(sizes, axis=1) - sizes)
        levels = low + (high - low) * np.clip(room / sizes, 0.0, 1.0)
        columns = np.empty_like(worth)
        np.put_along_axis(columns, ranking, levels, axis=1)
        return columns

    def rays(self, most: int) -> Iterator[Floats] | None:
        """Return all vertices of the box's cut: at most one value between the ends."""
        size = self.prior.size
        return self._enumerate() if size * 2 ** (size - 1) <= most else None

    def _enumerate(self) -> Iterator[Floats]:
        low, high = self.ends
        size = self.prior.size
        bits = (np.arange(1 << (size - 1))[:, None] >> np.arange(size - 1)) & 1
        for place in range(size):
            columns = np.insert(low + (high - low) * bits, place, 0.0, axis=1)
            columns[:, place] = (1.0 - columns @ self.prior) / self.prior[place]
            inside = (columns[:, place] >= low * (1 - _ROUNDING)) & (
                columns[:, place] <= high * (1 + _ROUNDING)
            )
            if inside.any():
                yield columns[inside]


def _differences(entries: Floats) -> Floats:
    """Return `entries[l] - entries[i]` for row i and column l."""
    out: Floats = entries[None, :] - entries[:, None]
    return out
