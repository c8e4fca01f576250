"""The best channel that a policy allows for a workload (docs/theory.md section 8).

A workload of queries `w_1, ..., w_q` matters only through `G = sum_i w_i w_i^T`, which is a product
over the dimensions for prefixes and ranges. A channel is `Q[x, y] = theta_y v_y[x]` with
`p.v_y = 1` for the design prior p, so that `sum_y theta_y v_y = 1`. If p is true, the best decoder
that is unbiased for every distribution is `h_w(y) = w^T I^-1 v_y`, `I = sum_y theta_y v_y v_y^T`,
and one report has the variance `tr(G I^-1) - p^T G p` for the population, summed over all queries,
and `tr(G I^-1) - sum_x p_x G[x, x]` for respondents. Both are least where `f = tr(G I^-1)` is.

Values that chains of finite budgets join are a *component*. A column is the sum of its parts in the
components, each of which is in the cone. So every component is designed by itself: I is block
diagonal, and f is the mean of the components', weighted by their shares.

A component's channel is found by column generation. Each round has two steps: find the best weights
of the columns so far (`master`), then columns of the policy's cone that would improve them
(`search`). If c is a number that no mean of `v^T M v` over the columns of a channel exceeds,
`M = I^-1 G I^-1` of any design, then `f^2 / c` is a lower bound on f over all channels: for each,
`f' >= 2 s f - s^2 sum theta'_y v_y^T M v_y` by convexity, for any s. There are three ways to it:

- all types of rays, where values are exchangeable under one budget per row (`exchangeable`);
- all rays, up to 2^23: `c = lambda.1 + gain` with the largest gain `v^T M v - lambda.v`;
- a relaxation, where there is one budget per row (`relaxation`).

If the queries do not tell all values apart, G is singular and the best I may be, too. Then f is
minimised with a ridge, `G + delta 1` for delta falling to 1e-6 of the mean of G's diagonal, which
keeps I invertible: every query can be estimated, if badly. f and the bound are those without it.
The bound also holds for designs with singular I, since `W I'^+ W^T >= W Y^T + Y W^T - Y I' Y^T` for
queries W that they answer, `Y = W I^-1`.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import prod
from typing import Final, Literal

import numpy as np

from ldpstream.estimators.design.cone import Cone, DesignError, LipCone, scaled
from ldpstream.estimators.design.exchangeable import SymmetricOptimum, symmetric_optimum
from ldpstream.estimators.design.master import (
    Master,
    SearchResult,
    judge,
    search,
    search_all,
    solve,
    thin,
)
from ldpstream.estimators.design.pair_cone import PairCone, closed
from ldpstream.estimators.design.relaxation import largest_mean
from ldpstream.estimators.design.tree_cone import TreeCone
from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.families.matrix.strategy import WORKLOADS
from ldpstream.mechanisms.policies.budgets import components
from ldpstream.mechanisms.policies.policy import Policy
from ldpstream.mechanisms.policies.prior import PriorPolicy

Status = Literal["proved", "relaxed", "searched", "unfinished"]
_STATUSES: Final[tuple[Status, ...]] = ("proved", "relaxed", "searched", "unfinished")

_TOLERANCE = 1e-6
_LOOSE = 1e-3
_NEGLIGIBLE = 1e-5
_QUIET_ROUNDS = 3
_RIDGES = 1e-2, 1e-4, 1e-6
_CLOSE = 1e-4
"""Part of f above its bound that is too little for a smaller ridge."""
_HALVINGS = 60
_FEW_RAYS = 1 << 14
"""Up to this many rays a round lists them all, instead of searching."""
_SOON_RAYS = 1 << 18
"""Up to this many rays are listed once time is up, for a bound."""
_MOST_RAYS = 1 << 23
_SYMMETRIC_COLUMNS = 600
"""Columns of the best types: more would make the first solution of the weights slow."""


@dataclass(frozen=True, eq=False)
class Workload:
    """A name, the Gram matrix `G`, float64 `(k, k)`, and the number of queries in it."""

    name: str
    gram: Floats
    queries: int

    @property
    def size(self) -> int:
        """Number of values k."""
        return len(self.gram)


@dataclass(frozen=True, eq=False)
class Design:
    """The columns `v_y` of a channel, `(n, k)`, with `p.v_y = 1`, and their weights, `(n,)`.

    The channel is `Q[x, y] = weights[y] v_y[x]`; `prior` is p. `population` and `respondents` are
    the variances of one report, summed over all queries of the workload, with the best unbiased
    linear decoder if p is true. No channel of the policy has a population variance below
    `population - gap`; gap is None if nothing is proved about other channels. The status is
    "proved" if the bound is from all extreme rays, "relaxed" if it is from a relaxation, "searched"
    if there is none and no better column was found from `starts` starts, and "unfinished" if time
    ran out while better columns were known; a gap is then a bound as well.
    """

    policy: Policy
    workload: Workload
    prior: Floats
    columns: Floats
    weights: Floats
    population: float
    respondents: float
    gap: float | None
    status: Status
    starts: int


def optimise(
    policy: Policy,
    workload: Workload,
    prior: Floats | None = None,
    *,
    seconds: float = 100.0,
    columns: Floats | None = None,
) -> Design:
    """Return the best channel for a policy, a workload and a design prior, by default uniform.

    The decoder of the channel is unbiased for every distribution of values; only its variance is
    tuned to the prior. `seconds` is the computing time of this thread after which no round starts,
    so that a busy machine makes no difference. The same arguments give the same design unless time
    ends the search. `columns`, `(n, k)` of any scale, are those of channels that are known, from
    which the search begins.

    Raises:
        DesignError: if the prior is not a distribution above 0, the workload has another size, a
            budget is 0 (so that no channel distinguishes the two values), or nothing converges.
    """
    p = _check_prior(policy.size, prior)
    if workload.size != policy.size:
        raise DesignError(f"workload: expected {policy.size} values, got {workload.size}")
    known = np.zeros((0, policy.size)) if columns is None else columns
    components = _components(policy, workload.gram, p)
    deadline = time.thread_time() + seconds
    solved, wide = [], []
    for unsolved, component in zip(range(len(components), 0, -1), components, strict=True):
        now = time.thread_time()
        solved.append(_Run.of(component, known, now + (deadline - now) / unsolved).run())
        wide.append(np.zeros((len(solved[-1].weights), policy.size)))
        wide[-1][:, component.values] = solved[-1].columns / component.share
    trace = _mean(components, [design.trace for design in solved])
    bound = _mean(components, [design.bound for design in solved])
    assert trace is not None
    mean, square = p @ workload.gram @ p, p @ np.diag(workload.gram)
    return Design(
        policy=policy,
        workload=workload,
        prior=p,
        columns=np.concatenate(wide),
        weights=np.concatenate(
            [o.weights * c.share for c, o in zip(components, solved, strict=True)]
        ),
        population=float(trace - mean),
        respondents=float(trace - square),
        gap=None if bound is None else max(trace - bound, 0.0),
        status=max((design.status for design in solved), key=_STATUSES.index),
        starts=sum(design.starts for design in solved),
    )


def least_trace(policy: Policy, workload: Workload, prior: Floats) -> float | None:
    """Return the least `tr(G I^-1)` of all channels, None where that takes a search.

    It takes none if the values of each component fall into few classes of exchangeable ones.
    """
    components = _components(policy, workload.gram, _check_prior(policy.size, prior))
    return _mean(
        components, [None if c.symmetric is None else c.symmetric.least for c in components]
    )


def _check_prior(size: int, prior: Floats | None) -> Floats:
    """Return a design prior, float64 `(k,)`, uniform if none is given.

    Raises:
        DesignError: if it is not `size` numbers above 0 with sum 1. A share of 0 would ignore the
            variance that its value adds; mix in a little of the uniform prior.
    """
    if prior is None:
        return np.full(size, 1.0 / size)
    given = np.asarray(prior, dtype=np.float64)
    whole = given.shape == (size,) and abs(float(given.sum()) - 1.0) < 1e-9
    if not whole or not (given > 0.0).all():
        raise DesignError(f"prior: expected {size} numbers above 0 with sum 1")
    shares: Floats = given / given.sum()
    return shares


def cones_of(policy: Policy) -> list[tuple[Integers, Cone]]:
    """Return the values of each component, ascending, and the cone of columns over them."""
    if isinstance(policy, PriorPolicy):
        prior = np.array([float(share) for share in policy.prior])
        return [(np.arange(prior.size), LipCone(prior / prior.sum(), float(policy.budget)))]
    budgets = closed(policy.size, ((x, z, float(b)) for x, z, b in policy.constraints()))
    off = budgets + np.diag(np.full(policy.size, np.inf))
    if off.min() <= 0.0:
        value, other = np.unravel_index(int(off.argmin()), off.shape)
        raise DesignError(f"no invertible channel: the budget of values {value} and {other} is 0")
    lowest = components(policy.size, *np.nonzero(np.isfinite(off)))
    every = [np.flatnonzero(lowest == least) for least in np.unique(lowest)]
    inside = [budgets[np.ix_(values, values)] for values in every]
    return [(v, TreeCone.of(b) or PairCone(b)) for v, b in zip(every, inside, strict=True)]


@dataclass(frozen=True, eq=False)
class _Component:
    """Values that finite budgets join: their share of all, their shares in it, and their G."""

    values: Integers
    cone: Cone
    share: float
    prior: Floats
    gram: Floats

    @property
    def star(self) -> TreeCone | None:
        """The cone, if there is one budget per row."""
        return self.cone if isinstance(self.cone, TreeCone) and self.cone.is_star else None

    @cached_property
    def ridges(self) -> Sequence[float]:
        """What is added to the diagonal of G, one after the other: 0 if G has full rank."""
        if np.linalg.matrix_rank(self.gram, hermitian=True) == len(self.gram):
            return [0.0]
        mean = float(np.trace(self.gram)) / len(self.gram)
        return [(mean or 1.0) * ridge for ridge in _RIDGES]

    @cached_property
    def symmetric(self) -> SymmetricOptimum | None:
        """The optimum of few classes of exchangeable values."""
        if self.star is None:
            return None
        return symmetric_optimum(self.gram, self.prior, self.star.high, self.star.units)


def _components(policy: Policy, gram: Floats, prior: Floats) -> list[_Component]:
    components = []
    for values, cone in cones_of(policy):
        share = float(prior[values].sum())
        block = gram[np.ix_(values, values)]
        components.append(_Component(values, cone, share, prior[values] / share, block))
    return components


def _mean(components: Sequence[_Component], traces: Sequence[float | None]) -> float | None:
    """Return the mean of components' traces or bounds, None if one has none."""
    known = [trace for trace in traces if trace is not None]
    if len(known) < len(components):
        return None
    return sum(component.share * trace for component, trace in zip(components, known, strict=True))


@dataclass(frozen=True, eq=False)
class _Solved:
    """A component's channel, as in `Design`, with its trace and a bound on all others' traces."""

    columns: Floats
    weights: Floats
    trace: float
    bound: float | None
    status: Status
    starts: int


@dataclass(frozen=True, eq=False)
class _Run:
    """The column generation of a component, which begins with `seeds`, scaled to `p.v = 1`."""

    part: _Component
    seeds: Floats
    until: float

    @classmethod
    def of(cls, component: _Component, known: Floats, until: float) -> "_Run":
        """Begin with the cone's own seeds, known columns, and those of the best types."""
        inside = known[:, component.values]
        seeds = [component.cone.seeds(), inside[inside.any(axis=1)]]
        if component.star is not None and component.symmetric is not None:
            seeds.append(component.symmetric.columns(component.star.high, _SYMMETRIC_COLUMNS))
        return cls(component, scaled(np.concatenate(seeds), component.prior), until)

    def run(self) -> _Solved:
        """Return the best channel that is found until time runs out."""
        columns, weights = self._begin()
        starts = 0
        for ridge in self.part.ridges:
            gram = self.part.gram + ridge * np.eye(len(self.part.gram))
            master, every, unfinished, tried = self._generate(gram, columns, weights)
            columns, weights = master.columns, master.weights
            starts += tried
            judged = judge(self.part.gram, master) if ridge else master
            bound, status = self._bound(judged, None if ridge else every)
            close = bound is not None and judged.trace - bound <= _CLOSE * judged.trace
            if unfinished or close:
                break
        fewer = thin(gram, master, _TOLERANCE)
        fewer = judge(self.part.gram, fewer) if ridge else fewer
        status = "unfinished" if unfinished else status
        return _Solved(fewer.columns, fewer.weights, fewer.trace, bound, status, starts)

    def _generate(
        self, gram: Floats, columns: Floats, weights: Floats
    ) -> tuple[Master, SearchResult | None, bool, int]:
        """Return the best design, what is known of all rays, whether time ran out, and starts."""
        rng = np.random.default_rng(0)
        multipliers, accuracy = None, _LOOSE
        least = 0.0 if self.part.symmetric is None else self.part.symmetric.least
        every, unfinished, quiet, starts = None, False, 0, 0
        while True:
            master = solve(gram, columns, weights, multipliers, accuracy)
            if master.trace < least * (1.0 - _TOLERANCE):
                raise DesignError("no convergence: the budgets are too small for double precision")
            if master.trace <= least * (1.0 + _TOLERANCE):
                break
            finest = accuracy <= _TOLERANCE
            result, every = self._improve(master, rng, 4 if quiet else 1, finest=finest)
            starts += result.starts
            gain = max(result.largest / master.trace, 0.0)
            quiet = 0 if gain >= _TOLERANCE else quiet + finest
            if quiet >= (_QUIET_ROUNDS if every is None else 1):
                break
            unfinished = time.thread_time() > self.until
            if unfinished:
                break
            accuracy = min(accuracy, max(0.03 * gain, 0.5 * _TOLERANCE))
            useful = master.slacks < 0.03 * gain * master.trace
            useful |= master.weights * len(columns) > _NEGLIGIBLE
            columns = np.concatenate([master.columns[useful], result.columns])
            fresh = np.full(len(result.columns), 0.01 / len(columns))
            weights = np.concatenate([master.weights[useful], fresh])
            multipliers = master.multipliers
        return master, every, unfinished, starts

    def _improve(
        self, master: Master, rng: np.random.Generator, effort: int, *, finest: bool
    ) -> tuple[SearchResult, SearchResult | None]:
        """Return columns of positive gain, twice if they are the best of all rays.

        Where rays are many, all are listed only once a search from many starts finds nothing.
        """
        every = self._list(master, _FEW_RAYS)
        if every is not None:
            return every, every
        result = search(
            self.part.cone, self.part.prior, master, self.seeds, rng, effort=effort, most=self._most
        )
        if finest and result.largest < _TOLERANCE * master.trace:
            every = self._list(master, _MOST_RAYS)
        return every or result, every

    @property
    def _most(self) -> int:
        """Most columns that a round adds."""
        return 2 * self.part.prior.size

    def _list(self, master: Master, most_rays: int) -> SearchResult | None:
        return search_all(
            self.part.cone, self.part.prior, master, most=self._most, most_rays=most_rays
        )

    def _bound(self, master: Master, every: SearchResult | None) -> tuple[float | None, Status]:
        """Return a bound for all channels and how it was found, given a look at all rays if any."""
        if self.part.symmetric is not None:
            return self.part.symmetric.least, "proved"
        if not master.trace:
            return 0.0, "proved"
        every = every or self._list(master, _SOON_RAYS)
        if every is not None:
            largest = float(master.multipliers.sum()) + max(every.largest, 0.0)
            return master.trace**2 / max(largest, master.trace), "proved"
        star = self.part.star
        if star is None:
            return None, "searched"
        form = master.form / master.trace
        largest = largest_mean(form, self.part.prior, star.high, star.units)
        return master.trace / max(largest, 1.0), "relaxed"

    def _begin(self) -> tuple[Floats, Floats]:
        """Return the columns and weights of a channel: seeds, and one column for the rest."""
        mean, fraction = self.seeds.mean(axis=0), 1.0
        for _ in range(_HALVINGS):
            fraction /= 2.0
            rest = 1.0 - fraction * mean
            if self.part.cone.contains(rest):
                columns = np.concatenate([self.seeds, scaled(rest[None], self.part.prior)])
                shares = np.full(len(self.seeds), fraction / len(self.seeds))
                return columns, np.append(shares, rest @ self.part.prior)
        raise DesignError("no invertible channel: the budgets are too small for double precision")


def histogram(size: int) -> Workload:
    """Return every single value: `G` is the identity."""
    return Workload("histogram", WORKLOADS["values"](size), size)


def prefixes(shape: Sequence[int]) -> Workload:
    """Return all boxes that begin at the first value of every dimension, the whole included."""
    return Workload("prefixes", _product("prefixes", shape), prod(shape))


def ranges(shape: Sequence[int]) -> Workload:
    """Return all boxes."""
    return Workload("ranges", _product("ranges", shape), prod(m * (m + 1) // 2 for m in shape))


def sets(size: int, members: Sequence[Integers], *, name: str = "sets") -> Workload:
    """Return the indicators of given sets of values, each an array of different indices.

    Raises:
        ValueError: if there is no set, or one holds an index outside `0..size-1` or one twice.
    """
    if not members:
        raise ValueError("workload: expected at least one set, got none")
    gram = np.zeros((size, size))
    for number, values in enumerate(members):
        places = np.asarray(values, dtype=np.int64)
        if places.size and (places.min() < 0 or places.max() >= size):
            raise ValueError(f"set {number}: expected indices in 0..{size - 1}")
        if np.unique(places).size < places.size:
            raise ValueError(f"set {number}: expected every index once")
        gram[np.ix_(places, places)] += 1.0
    return Workload(name, gram, len(members))


def _product(name: str, shape: Sequence[int]) -> Floats:
    return reduce(_kron, (WORKLOADS[name](m) for m in shape))


def _kron(first: Floats, second: Floats) -> Floats:
    return np.asarray(np.kron(first, second), dtype=np.float64)
