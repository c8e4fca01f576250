"""The best channel that a policy allows for a workload (docs/theory.md section 8).

A workload of queries `w_1, ..., w_q` matters only through `G = sum_i w_i w_i^T`, which is a product
over the dimensions for prefixes and ranges. A channel is `Q[x, y] = theta_y v_y[x]` with
`p.v_y = 1` for the design prior p, so that `sum_y theta_y v_y = 1`. If p is true, the best decoder
that is unbiased for every distribution is `h_w(y) = w^T I^-1 v_y`, `I = sum_y theta_y v_y v_y^T`,
and one report has the variance `tr(G I^-1) - p^T G p` for the population, summed over all queries,
and `tr(G I^-1) - sum_x p_x G[x, x]` for respondents. Both are least where `f = tr(G I^-1)` is.

The channel is found by column generation. Each round has two steps: find the best weights of the
columns so far (`master`), then columns of the policy's cone that would improve them (`search`).
With the largest gain over the whole cone, `f(theta)^2 / (lambda.1 + gain)` is a lower bound on f
over all channels: for every other design `f' >= 2 s f - s^2 sum theta'_y v_y^T M v_y` by convexity,
for any s, and the sum is at most `lambda.1 + gain`.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import Literal

import numpy as np

from ldpstream.estimators.design.cone import Cone, DesignError, scaled
from ldpstream.estimators.design.lip_cone import LipCone
from ldpstream.estimators.design.master import Master, solve, thin
from ldpstream.estimators.design.pair_cone import PairCone, closed
from ldpstream.estimators.design.search import search, search_all
from ldpstream.estimators.design.tree_cone import TreeCone
from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.families.matrix.strategy import WORKLOADS
from ldpstream.mechanisms.policies.policy import Policy
from ldpstream.mechanisms.policies.prior import PriorPolicy

Status = Literal["proved", "searched", "unfinished"]

_TOLERANCE = 1e-6
_LOOSE = 1e-3
_NEGLIGIBLE = 1e-5
_QUIET_ROUNDS = 3
_HALVINGS = 60


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
    `population - gap`, provided that the search has missed no better column. The status is "proved"
    if every extreme ray of the cone was checked, "searched" if no better column was found from
    `starts` starts, and "unfinished" if time ran out while better columns were known.
    """

    policy: Policy
    workload: Workload
    prior: Floats
    columns: Floats
    weights: Floats
    population: float
    respondents: float
    gap: float
    status: Status
    starts: int


def optimise(
    policy: Policy,
    workload: Workload,
    prior: Floats | None = None,
    *,
    seconds: float = 100.0,
) -> Design:
    """Return the best channel for a policy, a workload and a design prior, by default uniform.

    The decoder of the channel is unbiased for every distribution of values; only its variance is
    tuned to the prior. `seconds` is the computing time of this thread after which no round starts,
    so that a busy machine makes no difference. The same arguments give the same design unless time
    ends the search.

    Raises:
        DesignError: if the prior is not a distribution above 0, the workload has another size, a
            budget is 0 (so that no channel distinguishes the two values), or nothing converges.
    """
    p = _checked_prior(policy.size, prior)
    if workload.size != policy.size:
        raise DesignError(f"workload: expected {policy.size} values, got {workload.size}")
    scale = float(np.trace(workload.gram)) / policy.size
    run = _Run(cone_of(policy), workload.gram / scale, p, seconds)
    best, status, largest, starts = run.run()
    bound = best.trace**2 / max(float(best.multipliers.sum()) + largest, best.trace)
    master = thin(run.gram, best, _TOLERANCE)
    trace = scale * master.trace
    mean, square = p @ workload.gram @ p, p @ np.diag(workload.gram)
    return Design(
        policy=policy,
        workload=workload,
        prior=p,
        columns=master.columns,
        weights=master.weights,
        population=float(trace - mean),
        respondents=float(trace - square),
        gap=max(float(trace - scale * bound), 0.0),
        status=status,
        starts=starts,
    )


def _checked_prior(size: int, prior: Floats | None) -> Floats:
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


def cone_of(policy: Policy) -> Cone:
    """Return the cone of the columns that a policy allows.

    Raises:
        DesignError: if a budget between different values is 0.
    """
    if isinstance(policy, PriorPolicy):
        prior = np.array([float(share) for share in policy.prior])
        return LipCone(prior / prior.sum(), float(policy.budget))
    budgets = closed(policy.size, ((x, z, float(b)) for x, z, b in policy.constraints()))
    off = budgets + np.diag(np.full(policy.size, np.inf))
    if off.min() <= 0.0:
        value, other = np.unravel_index(int(off.argmin()), off.shape)
        raise DesignError(f"no invertible channel: the budget of values {value} and {other} is 0")
    return TreeCone.of(budgets) or PairCone(budgets)


@dataclass(frozen=True, eq=False)
class _Run:
    cone: Cone
    gram: Floats
    prior: Floats
    seconds: float

    def run(self) -> tuple[Master, Status, float, int]:
        """Return the last master, the status, the largest gain, and the number of starts."""
        deadline = time.thread_time() + self.seconds
        rng = np.random.default_rng(0)
        most = 2 * self.prior.size
        columns, weights = self._begin()
        multipliers, accuracy = None, _LOOSE
        quiet = starts = 0
        while True:
            master = solve(self.gram, columns, weights, multipliers, accuracy)
            effort = 4 if quiet else 1
            found = search(self.cone, self.prior, master, rng, effort=effort, most=most)
            starts += effort * (self.cone.climbs + self.cone.perturbations)
            gain = max(found.largest / master.trace, 0.0)
            finest = accuracy <= _TOLERANCE
            if finest and gain < _TOLERANCE:
                every = search_all(self.cone, self.prior, master, most=most)
                if every is not None:
                    found, gain = every, max(every.largest / master.trace, 0.0)
                quiet += 1
                if gain < _TOLERANCE and (every is not None or quiet == _QUIET_ROUNDS):
                    status: Status = "searched" if every is None else "proved"
                    return master, status, max(found.largest, 0.0), starts
            elif gain >= _TOLERANCE:
                quiet = 0
            if time.thread_time() > deadline:
                return master, "unfinished", max(found.largest, 0.0), starts
            accuracy = min(accuracy, max(0.03 * gain, 0.5 * _TOLERANCE))
            kept = master.slacks < 0.03 * gain * master.trace
            kept |= master.weights * len(columns) > _NEGLIGIBLE
            columns = np.concatenate([master.columns[kept], found.columns])
            fresh = np.full(len(found.columns), 0.01 / len(columns))
            weights = np.concatenate([master.weights[kept], fresh])
            multipliers = master.multipliers

    def _begin(self) -> tuple[Floats, Floats]:
        """Return the columns and weights of a channel: seeds, and one column for the rest."""
        seeds = scaled(self.cone.seeds(), self.prior)
        mean, part = seeds.mean(axis=0), 1.0
        for _ in range(_HALVINGS):
            part /= 2.0
            rest = 1.0 - part * mean
            if self.cone.contains(rest):
                columns = np.concatenate([seeds, scaled(rest[None], self.prior)])
                shares = np.full(len(seeds), part / len(seeds))
                return columns, np.append(shares, rest @ self.prior)
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
    for number, given in enumerate(members):
        places = np.asarray(given, dtype=np.int64)
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
