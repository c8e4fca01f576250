"""The estimates of a document: its listed values, ranges, linear queries and quantiles."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from ldpstream.agents.document.basis import Basis, Numbers, numbers
from ldpstream.agents.document.entries import (
    LinearEstimate,
    QuantileEstimate,
    RangeEstimate,
    ValueEstimate,
)
from ldpstream.agents.query.queries import Range
from ldpstream.estimators.bounds.types import Estimate
from ldpstream.estimators.estimate import (
    check_counts,
    estimate_prepared,
    estimate_sets,
    estimate_values,
    share_sums,
)
from ldpstream.estimators.power_law import project_power
from ldpstream.estimators.projection import known_totals, project_blocks, project_simplex
from ldpstream.estimators.quantiles.prefixes import Prefixes
from ldpstream.estimators.quantiles.quantiles import estimate_quantiles, positions
from ldpstream.estimators.queries import PreparedSets, prepare_sets, range_values
from ldpstream.estimators.weights import estimate_linear
from ldpstream.mechanisms.base.arrays import Bools, Floats, Integers
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.domains.base import Domain
from ldpstream.mechanisms.interface.mechanism import Mechanism

_KEPT_ENTRIES: Final = 1 << 14
"""Prepared ranges are cached up to this many entries (ranges x statistic): at most a MiB."""


@dataclass(frozen=True)
class Listed:
    """The listed values: indices `(q,)`, their estimates, all projected shares `(k,)` if asked.

    `estimate` is None if no value is listed.
    """

    indices: Integers
    estimate: Estimate | None
    projected: Floats | None
    simultaneous: bool


def list_values(basis: Basis) -> Listed:
    """Choose the listed values, largest shares first; the whole domain is in its own order.

    A list shorter than the domain is post-selected, so its bounds must hold for all values of the
    domain at once. It has none of the `hidden` values, whose shares count as equal.
    """
    mechanism, statistic, n = basis.mechanism, basis.statistic, basis.n
    options, size, hidden = basis.options, basis.domain.size, basis.hidden
    by_looking = options.top is not None and 0 < options.top < size
    simultaneous = options.simultaneous or by_looking
    keywords = basis.keywords | {"simultaneous": simultaneous}
    nothing = np.zeros(0, dtype=np.int64)
    if options.top == 0 and options.project == "none":
        check_counts(mechanism, statistic, n)
        return Listed(nothing, None, None, simultaneous)
    if basis.given is not None:
        # Devices report more than the value, so each value is a set of what they report.
        sets = [np.flatnonzero(basis.given == value) for value in range(size)]
        everything = estimate_sets(mechanism, statistic, n, sets, **keywords)
        projected = _project(basis, everything.value)
        indices = _choose(options.top, everything.value, projected, None)
        return Listed(indices, everything.take(indices), projected, simultaneous)
    # Decode only shares for all values: bounds take many times their memory, and are per value.
    decoded = share_sums(mechanism, statistic, n)
    shares = decoded / n if n else np.full_like(decoded, np.nan)
    if hidden is not None:
        shares[hidden] = basis.merged_reports / n / hidden.sum()
    projected = _project(basis, shares)
    indices = _choose(options.top, shares, projected, hidden)
    del shares
    if indices.size == 0:
        return Listed(nothing, None, projected, simultaneous)
    values = None if options.top is None else indices
    estimate = estimate_values(mechanism, statistic, n, values=values, decoded=decoded, **keywords)
    return Listed(indices, estimate, projected, simultaneous)


def value_estimates(basis: Basis, listed: Listed) -> list[ValueEstimate]:
    """Return the entries of the listed values, with their labels."""
    if listed.estimate is None:
        return []
    shares = None if listed.projected is None else listed.projected[listed.indices]
    shown = None if basis.hidden is None else ~basis.hidden[listed.indices]
    rows = numbers(listed.estimate, basis.n, shares, shown)
    labels = basis.domain.labels(listed.indices)
    parts = zip(labels, rows, strict=True)
    return ValueEstimate.of_each(
        {"value", *Numbers.__annotations__},
        ({"value": label, **row, "weight": None} for label, row in parts),
    )


def _project(basis: Basis, shares: Floats) -> Floats | None:
    if basis.fitted is not None:
        return basis.fitted.shares
    if basis.options.project == "none":
        return None
    # What devices report in addition may be disclosed, but is not a block of values: the only known
    # total is that of all.
    if basis.options.project == "simplex" or basis.given is not None:
        return project_simplex(shares)
    if basis.options.project == "power":
        mechanism, statistic = basis.mechanism, basis.statistic
        return project_power(mechanism, statistic, basis.n, shares, **basis.keywords)
    return project_blocks(shares, *known_totals(basis.mechanism, basis.statistic, basis.n))


def _choose(
    top: int | None, shares: Floats, projected: Floats | None, hidden: Bools | None
) -> Integers:
    """Return the listed values: all in order, or the `top` largest that are not hidden."""
    if top is None:
        return np.arange(shares.size)
    # Projection makes ties, mostly at 0: there the unprojected shares decide.
    first = shares if projected is None else projected
    if hidden is None:
        return largest(first, shares, top)
    shown = np.flatnonzero(~hidden)
    return shown[largest(first[shown], shares[shown], top)]


def largest(first: Floats, then: Floats, number: int) -> Integers:
    """Return the indices of the largest, by `first`, `then`, and index, `(min(number, k),)`.

    Undefined ones come last. A list is much shorter than a large domain, in which many values may
    be equal, so only the list is sorted.
    """
    if number >= first.size:
        places = np.arange(first.size)
    else:
        places, alike = _split(first, number)
        if first is not then:
            more, others = _split(then[alike], number - places.size)
            places, alike = np.concatenate([places, alike[more]]), alike[others]
        places = np.sort(np.concatenate([places, alike[: number - places.size]]))
    return places[np.lexsort((-then[places], -first[places]))]


def _split(numbers: Floats, wanted: int) -> tuple[Integers, Integers]:
    """Return the indices above the `wanted`-th largest (fewer), and of those equal to it."""
    if wanted == 0:
        nowhere = np.zeros(0, dtype=np.int64)
        return nowhere, nowhere
    turned = -numbers
    turned.partition(wanted - 1)
    last = -turned[wanted - 1]
    del turned
    if np.isnan(last):
        return np.flatnonzero(~np.isnan(numbers)), np.flatnonzero(np.isnan(numbers))
    return np.flatnonzero(numbers > last), np.flatnonzero(numbers == last)


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
