"""Variances before any report, with one respondent; with n respondents, 1/n of them.

`Var = sum_x p_x v(x)` for respondents, `sum_x p_x (v(x) + w[x]^2) - (w.p)^2` for the population
(docs/theory.md section 0). They are exact, for the decoders that `estimate` uses.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice

import numpy as np

from ldpstream.estimators.bounds.options import Estimand
from ldpstream.estimators.queries.counts import TOGETHER, prepare_queries
from ldpstream.estimators.queries.linear import LinearQueries
from ldpstream.estimators.queries.queries import Queries, Query
from ldpstream.estimators.queries.ranges import indicator
from ldpstream.mechanisms.base.arrays import Floats, Integers
from ldpstream.mechanisms.interface.mechanism import Mechanism


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
    return _variances(noises, _checked(mechanism, shares), estimand)


def predicted_linear_variances(
    mechanism: Mechanism,
    weights: Iterable[Floats],
    *,
    shares: Floats | None = None,
    estimand: Estimand = "respondents",
) -> Floats:
    """Do the same as `predicted_set_variances` for linear queries with weights `(k,)` each."""
    queries = prepare_queries(mechanism)
    noises = _noises(queries, weights, partial(map, queries.linear_query))
    return _variances(noises, _checked(mechanism, shares), estimand)


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


def _checked(mechanism: Mechanism, shares: Floats | None) -> Floats:
    if shares is None:
        return np.full(mechanism.size, 1.0 / mechanism.size)
    whole = shares.shape == (mechanism.size,) and abs(float(shares.sum()) - 1.0) < 1e-9
    if not whole or shares.min() < 0.0:
        raise ValueError(f"shares: expected {mechanism.size} numbers >= 0 with sum 1")
    return shares
