"""The estimates of a document's ranges, linear queries and quantiles."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from ldpstream.agents.document.basis import Basis, numbers
from ldpstream.agents.document.entries import LinearEstimate, QuantileEstimate, RangeEstimate
from ldpstream.agents.query.queries import Range
from ldpstream.estimators.estimate import estimate_linear, estimate_prepared
from ldpstream.estimators.quantiles.prefixes import Prefixes
from ldpstream.estimators.quantiles.quantiles import estimate_quantiles, positions
from ldpstream.estimators.queries.counts import prepare_sets
from ldpstream.estimators.queries.queries import PreparedSets, range_values
from ldpstream.mechanisms.base.arrays import Bools, Floats, Integers
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.domains.base import Domain
from ldpstream.mechanisms.interface.mechanism import Mechanism

_KEPT_ENTRIES: Final = 1 << 14
"""Prepared ranges are cached up to this many entries (ranges x statistic): at most half a MiB."""


def range_estimates(basis: Basis, projected: Floats | None) -> list[RangeEstimate]:
    """Return the ranges that were asked for, from the projected shares `(k,)` if there are any."""
    ranges, n = basis.options.ranges, basis.n
    few = len(ranges) * basis.mechanism.statistic_size <= _KEPT_ENTRIES
    prepare = _kept_ranges if few else _prepare_ranges
    sets, given, prepared = prepare(basis.mechanism, basis.own, ranges, keep=few)
    # `list_values`, which comes first, has checked that the statistic counts n reports.
    estimate = estimate_prepared(
        basis.mechanism, basis.statistic, n, given, prepared, **basis.keywords
    )
    shares = None if projected is None else np.array([projected[s].sum() for s in sets])
    shown = None if basis.hidden is None else _whole_sets(basis.hidden, sets)
    rows = numbers(estimate, n, shares, shown)
    return [RangeEstimate(name=a.name, **r) for a, r in zip(ranges, rows, strict=True)]


def _prepare_ranges(
    mechanism: Mechanism, own: Domain, ranges: tuple[Range, ...], *, keep: bool
) -> tuple[list[Integers], list[Integers], PreparedSets]:
    """Return each range's values, the values that devices report for them, and the prepared sets.

    They are the same for every window.
    """
    shape, of_own = own.estimated.shape, own.estimated_indices
    sets = [range_values(shape, asked.bounds) for asked in ranges]
    given = sets if of_own is None else [np.flatnonzero(np.isin(of_own, one)) for one in sets]
    return sets, given, prepare_sets(mechanism, given, keep=keep)


_kept_ranges = lru_cache(maxsize=16)(_prepare_ranges)


def _whole_sets(hidden: Bools, sets: Sequence[Integers]) -> Bools:
    """Return which sets of values, given by index, contain all hidden values or none."""
    number = int(hidden.sum())
    return np.array([int(hidden[values].sum()) in (0, number) for values in sets], dtype=np.bool_)


def linear_estimates(basis: Basis, projected: Floats | None) -> list[LinearEstimate]:
    """Return the means that were asked for, from the projected shares `(k,)` if there are any.

    What devices report in addition to the value does not change its weight. A query that gives
    `hidden` values different weights has no numbers.
    """
    queries, n = basis.options.linear, basis.n
    weights = np.stack([asked.weights for asked in queries])
    means = None if projected is None else weights @ projected
    given = weights if basis.given is None else weights[:, basis.given]
    estimate = estimate_linear(basis.mechanism, basis.statistic, n, given, **basis.keywords)
    shown = None if basis.hidden is None else _whole_queries(basis.hidden, weights)
    rows = numbers(estimate, n, means, shown)
    return [
        LinearEstimate(
            name=asked.name,
            mean=row["share"],
            total=row["count"],
            se=row["se"],
            low=row["low"],
            high=row["high"],
            influence=row["influence"],
            forged=row["forged"],
            bound=row["bound"],
        )
        for asked, row in zip(queries, rows, strict=True)
    ]


def _whole_queries(hidden: Bools, weights: Floats) -> Bools:
    """Return which linear queries `(q, k)` give all hidden values one weight."""
    inside = weights[:, hidden]
    whole: Bools = (inside == inside[:, :1]).all(axis=1)
    return whole


def quantile_estimates(basis: Basis) -> list[QuantileEstimate]:
    """Return the quantiles that were asked for; those of a likelihood from its fitted shares."""
    asked, domain = basis.options.quantiles, basis.domain
    if basis.hidden is not None:
        return [QuantileEstimate(p=p, value=None, low=None, high=None) for p in asked]
    prefixes = _prefixes(basis.mechanism, basis.own)
    found = estimate_quantiles(
        basis.mechanism, basis.statistic, basis.n, asked, prefixes=prefixes, **basis.keywords
    )
    values = found.value if basis.fitted is None else positions(basis.fitted.shares, asked)
    rows = zip(found.p, values, found.low, found.high, strict=True)
    named = {} if found.form is None else {"bound": found.form}
    return [
        QuantileEstimate(
            p=float(p),
            value=_label(domain, value),
            low=_label(domain, low),
            high=_label(domain, high),
            **named,
        )
        for p, value, low, high in rows
    ]


@lru_cache(maxsize=16)
def _prefixes(mechanism: Mechanism, domain: Domain) -> Prefixes:
    """Prepare a mechanism's prefixes, which is costly and the same for every document."""
    return Prefixes.of(mechanism, domain.estimated_indices)


def _label(domain: Domain, position: float) -> Json:
    return domain.label(int(position)) if math.isfinite(position) else None
