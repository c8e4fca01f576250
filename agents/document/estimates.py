"""What every document estimates: its listed values, its ranges, and the numbers of an entry.

Undefined numbers are null. So are those about a part of merged blocks
(`ldpstream.agents.state.disclosure_groups`): these have one common number of reports, which the
totals spread evenly over their values. That concerns a value in merged blocks, a range or linear
query that cuts them, and all quantiles, which need every prefix.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Self, TypeAlias, Unpack

import numpy as np

from ldpstream.agents.config.query.options import EstimateOptions
from ldpstream.agents.state.context import WindowTotals
from ldpstream.estimators.bounds.bounded import forged_reports
from ldpstream.estimators.bounds.options import OptionKeywords
from ldpstream.estimators.bounds.types import Estimate
from ldpstream.estimators.estimate import (
    check_counts,
    decode_values,
    estimate_prepared,
    estimate_sets,
    estimate_values,
)
from ldpstream.estimators.projection import (
    known_totals,
    project_blocks,
    project_down,
    project_simplex,
)
from ldpstream.estimators.quantiles.prefixes import Prefixes
from ldpstream.estimators.quantiles.quantiles import monotone_shares
from ldpstream.estimators.queries import PreparedSets, prepare_sets
from ldpstream.mechanisms.base.arrays import Bools, Floats, Integers
from ldpstream.mechanisms.domains.base import Domain
from ldpstream.mechanisms.domains.queries import Subset
from ldpstream.mechanisms.interface.mechanism import Mechanism, Statistic
from ldpstream.mechanisms.wire.spec import CollectionSpec

Entry: TypeAlias = dict[str, Any]
"""The fields of a part of a document, in the order in which they are written.

A list may have 100,000 entries, so none becomes an object that is validated and then taken apart
again. `ldpstream.agents.document.entries` describes the fields, and tests parse every document.
"""
_KEPT_ENTRIES: Final = 1 << 14
"""Prepared ranges with at most this many entries (ranges x statistic) are cached: 1.3 MiB each."""
_MOST_KEPT_ENTRIES: Final = 1 << 18
"""Those with up to this many are cached for few collections: 6 MiB each for a few ranges."""


def finite(number: float) -> float | None:
    """Return a number as documents have it: null where it is undefined."""
    return number if math.isfinite(number) else None


@dataclass(frozen=True, eq=False)
class Basis:
    """`n` reports of values without weights (summed out, which is exact), and the options.

    Estimates are about `domain`, devices report values in `own`, and `given` maps these to indices
    in `domain`, int64; None if both are the same. `hidden`, bool `(k,)`, marks the values of merged
    blocks, which have `merged_reports`; None without merged blocks.
    """

    mechanism: Mechanism
    statistic: Statistic
    n: int
    options: EstimateOptions
    keywords: OptionKeywords
    domain: Domain
    own: Domain
    given: Integers | None
    hidden: Bools | None
    merged_reports: int

    @classmethod
    def of(cls, spec: CollectionSpec, totals: WindowTotals, options: EstimateOptions) -> Self:
        """Return the basis of the reports of a span, without weights."""
        mechanism, statistic, own = spec.mechanism, totals.statistic, spec.domain
        domain = own.estimated
        if mechanism.marginal is not None:
            statistic = mechanism.marginal_statistic(statistic)
            mechanism, own = mechanism.marginal, domain
        hidden, merged_reports = None, 0
        if totals.merged is not None:
            decoder = mechanism.decoder
            groups = decoder.groups()
            assert groups is not None, "only mechanisms that disclose blocks merge them"
            hidden = totals.merged[groups]
            merged_reports = int(decoder.group_reports(statistic)[totals.merged].sum())
        return cls(
            mechanism,
            statistic,
            totals.n,
            options,
            bound_keywords(options),
            domain,
            own,
            own.estimated_indices,
            hidden,
            merged_reports,
        )


def bound_keywords(options: EstimateOptions) -> OptionKeywords:
    """Return how bounds are made, as the estimators' keyword arguments."""
    return {
        "confidence": options.confidence,
        "method": options.method,
        "estimand": options.estimand,
        "simultaneous": options.simultaneous,
        "sharpest": options.sharpest,
        "sampling": options.sampling,
    }


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
        everything = all_values(basis, **keywords)
        projected = _project(basis, everything.value)
        indices = _choose(options.top, everything.value, projected, None)
        return Listed(indices, everything.take(indices), projected, simultaneous)
    # Decode only shares for all values: bounds take many times their memory, and are per value.
    decoded = decode_values(mechanism, statistic, n)
    shares = decoded.totals / n if n else np.full(mechanism.size, np.nan)
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


def all_values(basis: Basis, **keywords: Unpack[OptionKeywords]) -> Estimate:
    """Estimate every value of the domain, with these options."""
    mechanism, statistic, n = basis.mechanism, basis.statistic, basis.n
    if basis.given is None:
        return estimate_values(mechanism, statistic, n, **keywords)
    # Devices report more than the value, so each value is a set of what they report.
    sets = [np.flatnonzero(basis.given == value) for value in range(basis.domain.size)]
    return estimate_sets(mechanism, statistic, n, sets, **keywords)


def _project(basis: Basis, shares: Floats) -> Floats | None:
    if basis.options.project == "none":
        return None
    if basis.options.project == "ordered":
        return _in_order(basis, shares)
    # What devices report in addition may be disclosed, but is not a block of values: the only known
    # total is that of all.
    if basis.options.project == "simplex" or basis.given is not None:
        return project_simplex(shares)
    return project_blocks(shares, *known_totals(basis.mechanism, basis.statistic, basis.n))


def _in_order(basis: Basis, shares: Floats) -> Floats:
    """Return shares that agree with the order: from the tree down, or of the monotone curve."""
    mechanism, statistic, n = basis.mechanism, basis.statistic, basis.n
    if n == 0:
        return np.full_like(shares, np.nan)
    if (coordinates := mechanism.coordinates) is not None:
        return project_down(shares, coordinates, *known_totals(mechanism, statistic, n))
    # The curve depends on the errors, and not on how bounds are made of them.
    estimand = basis.options.estimand
    prefixes = prepared_prefixes(mechanism, basis.own)
    return monotone_shares(prefixes.estimate(statistic, n, method="normal", estimand=estimand))


@lru_cache(maxsize=16)
def prepared_prefixes(mechanism: Mechanism, domain: Domain) -> Prefixes:
    """Prepare a mechanism's prefixes, which is costly and the same for every document."""
    return Prefixes.of(mechanism, domain.estimated_indices)


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


def value_estimates(basis: Basis, listed: Listed) -> list[Entry]:
    """Return the entries of the listed values, with their labels."""
    if listed.estimate is None:
        return []
    shares = None if listed.projected is None else listed.projected[listed.indices]
    shown = None if basis.hidden is None else ~basis.hidden[listed.indices]
    rows = numbers(listed.estimate, basis.n, shares, shown)
    labels = basis.domain.labels(listed.indices)
    return [{"value": label, **row} for label, row in zip(labels, rows, strict=True)]


def range_estimates(basis: Basis, projected: Floats | None) -> list[Entry]:
    """Return the ranges that were asked for, from the projected shares `(k,)` if there are any."""
    ranges, n = basis.options.ranges, basis.n
    sets, prepared = prepare_ranges(basis)
    # `list_values`, which comes first, has checked that the statistic counts n reports.
    estimate = estimate_prepared(basis.statistic, n, prepared, **basis.keywords)
    shares = None if projected is None else np.array([projected[s].sum() for s in sets])
    shown = None if basis.hidden is None else whole_sets(basis.hidden, sets)
    rows = numbers(estimate, n, shares, shown)
    return [{"name": subset.name, **row} for subset, row in zip(ranges, rows, strict=True)]


def prepare_ranges(basis: Basis) -> tuple[list[Integers], PreparedSets]:
    """Return the values of each range asked for, and the prepared sets of what is reported.

    They are the same for every window.
    """
    ranges = basis.options.ranges
    entries = len(ranges) * basis.mechanism.statistic_size
    prepare = _prepare_ranges
    if entries <= _MOST_KEPT_ENTRIES:
        prepare = _kept_ranges if entries <= _KEPT_ENTRIES else _kept_long_ranges
    return prepare(basis.mechanism, basis.own, ranges, keep=entries <= _MOST_KEPT_ENTRIES)


def _prepare_ranges(
    mechanism: Mechanism, own: Domain, ranges: tuple[Subset, ...], *, keep: bool
) -> tuple[list[Integers], PreparedSets]:
    shape, of_own = own.estimated.shape, own.estimated_indices
    sets = [asked.values(shape) for asked in ranges]
    given = sets if of_own is None else [np.flatnonzero(np.isin(of_own, one)) for one in sets]
    return sets, prepare_sets(mechanism, given, keep=keep)


_kept_ranges = lru_cache(maxsize=16)(_prepare_ranges)
_kept_long_ranges = lru_cache(maxsize=4)(_prepare_ranges)


def whole_sets(hidden: Bools, sets: Sequence[Integers]) -> Bools:
    """Return which sets of values, given by index, contain all hidden values or none."""
    number = int(hidden.sum())
    return np.array([int(hidden[values].sum()) in (0, number) for values in sets], dtype=np.bool_)


_NUMBERS: Final = ("share", "count", "se", "low", "high", "influence", "forged", "bound")


def numbers(
    estimate: Estimate,
    n: int,
    projected: Floats | None,
    shown: Bools | None = None,
    *,
    names: Sequence[str] = _NUMBERS,
) -> list[Entry]:
    """Return each entry's numbers; beside a projected share, those of the unbiased one stand.

    `shown`, bool `(q,)`, says which entries have numbers; by default all have. `names` are the
    fields of the share and what follows it.
    """
    shares = estimate.value if projected is None else projected
    arrays = (shares, shares * n, estimate.se, estimate.low, estimate.high, estimate.influence)
    together = np.stack(arrays)
    found = together.astype(object)
    found[~np.isfinite(together)] = None
    columns = found.tolist()
    forms = [form or None for form in estimate.form.tolist()]
    forged = [int(m) if math.isfinite(m) else None for m in forged_reports(estimate).tolist()]
    rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, forged, forms, strict=True)]
    for place in [] if shown is None else np.flatnonzero(~shown).tolist():
        rows[place] = dict.fromkeys(names)
    return rows
