"""Variances before any report, for one respondent; with n respondents, 1/n of them.

`Var = sum_x p_x v(x)` for respondents, `sum_x p_x (v(x) + w[x]^2) - (w.p)^2` for the population
(docs/theory.md section 0). They are exact, for the decoders that `estimate` uses.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Self

import numpy as np

from ldpstream.estimators.bounds.methods import hoeffding_half_width
from ldpstream.estimators.bounds.options import Estimand
from ldpstream.estimators.planning.progress import UNLIMITED, Progress
from ldpstream.estimators.planning.workload import PlannedWorkload, QuerySets
from ldpstream.estimators.quantiles.prefixes import Prefixes, SetPrefixes
from ldpstream.estimators.queries import (
    TOGETHER,
    LinearQueries,
    Queries,
    Query,
    indicator,
    prepare_queries,
)
from ldpstream.estimators.weights import linear_queries
from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.interface.mechanism import Mechanism

_MOST_PREFIXES = 4_096
"""Most values of a collection with quantiles."""
_MOST_SINGLY = 512


@dataclass(frozen=True, eq=False)
class Predictions:
    """Respondents' variances for one report, float64 `(q,)` each; n reports divide them by n.

    They are for the workload's ranges, the cumulative distribution at its quantiles, its top
    values, its `values` and its `boxes`. `spread` is the largest `max h - min h` of a prefix's
    decoder, None without quantiles.
    """

    ranges: Floats
    quantiles: Floats
    top: Floats
    values: Floats
    boxes: Floats
    spread: float | None

    @classmethod
    def of(
        cls, mechanism: Mechanism, workload: PlannedWorkload, progress: Progress = UNLIMITED
    ) -> Self:
        """Predict all queries of a workload over the mechanism's values."""

        def predict(queries: QuerySets) -> Floats:
            variances, shares = [np.empty(0)], workload.shares
            if queries.sets:
                sets = progress.each(queries.sets)
                variances.append(predicted_set_variances(mechanism, sets, shares=shares))
            if queries.prefixes:
                prefixes = progress.each(queries.prefixes)
                weights = (indicator(mechanism.size, members) for members in prefixes)
                variances.append(predicted_linear_variances(mechanism, weights, shares=shares))
            return np.concatenate(variances)

        return cls(
            ranges=predict(workload.range_queries),
            quantiles=predict(workload.quantile_queries),
            top=predict(workload.top_queries),
            values=predict(workload.values),
            boxes=predict(workload.boxes),
            spread=prefix_spread(mechanism, workload) if workload.quantiles else None,
        )

    def objective(self, workload: PlannedWorkload) -> Floats:
        """Return the variances of the objective's queries (`PlannedWorkload.sorting_queries`)."""
        queries = workload.sorting_queries
        if queries is workload.boxes:
            return self.boxes
        if queries is workload.values:
            return self.values
        published = np.concatenate((self.ranges, self.quantiles))
        return published if published.size else self.top


def mean_variance(variances: Floats, queries: QuerySets, workload: PlannedWorkload) -> float:
    """Return the mean over queries for the workload's estimand, from the respondents' `(q,)`."""
    if workload.estimand == "population":
        variances = variances + sampling_variances(queries, workload.shares)
    return float(variances.mean())


def sampling_variances(queries: QuerySets, shares: Floats) -> Floats:
    """Return what sampling one respondent adds for the population, `P (1 - P)`: float64 `(q,)`.

    It is the same for every mechanism: the population's variance is the respondents' plus this.
    """
    sets = (*queries.sets, *queries.prefixes)
    inside = np.array([float(shares[members].sum()) for members in sets])
    return np.maximum(inside * (1.0 - inside), 0.0)


def prefix_spread(mechanism: Mechanism, workload: PlannedWorkload) -> float | None:
    """Return the largest `max h - min h` of the decoders of all prefixes but the last.

    None if there are more prefixes than a collection with quantiles may have, or more than 512 that
    must be decoded one by one.
    """
    if workload.size > _MOST_PREFIXES:
        return None
    prefixes = Prefixes.of(mechanism, workload.estimated)
    if isinstance(prefixes.prepared, SetPrefixes) and workload.size > _MOST_SINGLY:
        return None
    return float(prefixes.spread[:-1].max(initial=0.0))


def prefix_bound(spread: float, prefixes: int, n: int, confidence: float) -> float:
    """Return a bound on the errors of all prefixes with n reports that holds simultaneously.

    It is `R sqrt(log(2 m / delta) / (2 n))`, by Hoeffding's inequality and a union over m prefixes:
    valid for both estimands and any shares, and known before any report (docs/theory.md section 6).
    For `l1-bits`, whose R is 1/t, it is tighter than [ML] Theorem 4.
    """
    level = (1.0 - confidence) / prefixes
    return float(hoeffding_half_width(np.array(spread), n, level))


def predicted_set_variances(
    mechanism: Mechanism,
    sets: Iterable[Integers],
    *,
    shares: Floats | None = None,
    estimand: Estimand = "respondents",
) -> Floats:
    """Return the variances of sets' estimates.

    `shares` are the values' true shares, float64 `(k,)`, by default uniform.

    Raises:
        ValueError: if the shares are not a distribution over the domain.
    """
    queries = prepare_queries(mechanism)
    indicators = (indicator(mechanism.size, members) for members in sets)
    noises = _noises(queries, indicators, queries.set_queries)
    return _variances(noises, _design_shares(mechanism, shares), estimand)


def predicted_linear_variances(
    mechanism: Mechanism,
    weights: Iterable[Floats],
    *,
    shares: Floats | None = None,
    estimand: Estimand = "respondents",
) -> Floats:
    """Do the same as `predicted_set_variances` for linear queries with weights `(k,)` each."""
    queries = prepare_queries(mechanism)
    noises = _noises(queries, weights, partial(linear_queries, queries))
    return _variances(noises, _design_shares(mechanism, shares), estimand)


def _noises(
    queries: Queries,
    rows: Iterable[Floats],
    prepare: Callable[[Iterable[Floats]], Iterator[Query]],
) -> Iterator[tuple[Floats, Floats]]:
    """Yield weights with their noise; for sums several at once, without what only bounds need."""
    if not isinstance(queries, LinearQueries):
        yield from ((query.weights, query.noise) for query in prepare(rows))
        return
    each, step = iter(rows), max(1, TOGETHER // queries.groups.of_place.size)
    while some := list(islice(each, step)):
        yield from zip(some, queries.decoder.noise_each(np.stack(some)), strict=True)


def _variances(
    noises: Iterator[tuple[Floats, Floats]], shares: Floats, estimand: Estimand
) -> Floats:
    out: list[float] = []
    for weights, noise in noises:
        variance = float((shares * noise).sum())
        if estimand == "population":
            mean = float((shares * weights).sum())
            variance += float((shares * (weights - mean) ** 2).sum())
        out.append(variance)
    return np.array(out)


def _design_shares(mechanism: Mechanism, shares: Floats | None) -> Floats:
    if shares is None:
        return np.full(mechanism.size, 1.0 / mechanism.size)
    whole = shares.shape == (mechanism.size,) and abs(float(shares.sum()) - 1.0) < 1e-9
    if not whole or shares.min() < 0.0:
        raise ValueError(f"shares: expected {mechanism.size} numbers >= 0 with sum 1")
    return shares
