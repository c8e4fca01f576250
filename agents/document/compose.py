"""From exact totals to the estimate document.

`estimate`, finals, provisional estimates and HTTP answers are all composed here, so that the same
reports give the same numbers, bit for bit.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.agents.config.collection import CollectionConfig
from ldpstream.agents.config.spread import sampling_between
from ldpstream.agents.document.devices import of_devices
from ldpstream.agents.document.linear import linear_estimates
from ldpstream.agents.document.merged import (
    Bools,
    hidden_values,
    merged_blocks,
    merged_reports,
    whole_sets,
)
from ldpstream.agents.document.model import (
    EstimateDocument,
    LostMessages,
    QuantileEstimate,
    RangeEstimate,
    ValueEstimate,
    Window,
)
from ldpstream.agents.document.numbers import Numbers, numbers
from ldpstream.agents.document.priors import prior_parts
from ldpstream.agents.document.weights import of_values_alone, weigh_ranges, weigh_values
from ldpstream.agents.query.options import EstimateOptions
from ldpstream.agents.state.context import WindowTotals
from ldpstream.estimators.bounds.options import ANYTIME
from ldpstream.estimators.bounds.projection import project_blocks, project_simplex
from ldpstream.estimators.estimate import Estimate, estimate_sets, estimate_values
from ldpstream.estimators.likelihood.curve import Curve, curve
from ldpstream.estimators.likelihood.line import Line
from ldpstream.estimators.power import project_power
from ldpstream.estimators.quantiles.prefixes import Prefixes
from ldpstream.estimators.quantiles.quantiles import estimate_quantiles, positions
from ldpstream.estimators.queries.groups import known_totals
from ldpstream.estimators.queries.sums import check_counts, share_sums
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.times import format_time
from ldpstream.mechanisms.domains.parse import Domain
from ldpstream.mechanisms.families.lip.lip import Lip
from ldpstream.mechanisms.families.weights.private import WeightedDomain
from ldpstream.mechanisms.interface.mechanism import Mechanism
from ldpstream.mechanisms.wire.spec import CollectionSpec

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def compose(
    collection: CollectionConfig,
    totals: WindowTotals,
    *,
    window: tuple[int, int] | None,
    final: bool,
    options: EstimateOptions | None = None,
    late: int | None = None,
    rejected: int | None = None,
) -> EstimateDocument:
    """Return the document of a span's exact totals.

    `window` is `(start, end)` in epoch milliseconds, None for all reports together; the totals may
    be of a wider span. `options` are by default those of the collection's published documents;
    `late` and `rejected` those of the totals. Pure: the same arguments give the same document.
    """
    chosen = collection.options if options is None else options
    span = totals.start_ms, totals.end_ms
    sampling = sampling_between(collection.spread, collection.window, *span)
    chosen = replace(chosen, sampling=sampling)
    withheld = totals.withheld or totals.n < collection.minimum
    head = EstimateDocument(
        collection=collection.name,
        fingerprint=collection.spec.fingerprint.hex(),
        window=None if window is None else _window(*window),
        n=totals.n,
        final=final,
        withheld=withheld,
    )
    if totals.lost:
        missing = LostMessages(offsets=totals.lost.offsets, partitions=list(totals.lost.partitions))
        head = head.model_copy(update={"lost": missing})
    if withheld:
        return head
    spec, alone = of_values_alone(collection.spec, totals)
    hidden = None if totals.merged is None else hidden_values(spec, totals.merged)
    fitted = _fit(spec, alone, chosen)
    listed = _list_values(spec, alone, chosen, hidden, fitted)
    values = _value_estimates(spec.domain.estimated, listed, totals.n, hidden)
    ranges = _range_estimates(spec, alone, chosen, listed.projected, hidden)
    mechanism, domain = collection.spec.mechanism, collection.spec.domain
    if isinstance(domain, WeightedDomain):
        values = weigh_values(mechanism, domain, totals, chosen, listed.indices, values)
        ranges = weigh_ranges(mechanism, domain, totals, chosen, ranges)
    entries: list[ValueEstimate | RangeEstimate] = [*values, *ranges]
    influences = [entry.influence for entry in entries if entry.influence is not None]
    forged = [entry.forged for entry in entries if entry.forged is not None]
    wider = totals.window is not None
    body: dict[str, Any] = {"span": _window(totals.start_ms, totals.end_ms)} if wider else {}
    body |= {
        "late": totals.late if late is None else late,
        "rejected": totals.rejected if rejected is None else rejected,
        "estimand": chosen.estimand,
        "confidence": chosen.confidence,
        "method": chosen.method,
        "simultaneous": listed.simultaneous,
        "projection": chosen.project,
        "distribution": values,
        "ranges": ranges,
        "quantiles": _quantile_estimates(spec, alone, chosen, hidden, fitted),
        "influence": max(influences, default=None),
        "forged": min(forged, default=None),
    }
    body |= of_devices(collection, totals.n, published=final and window is not None)
    if totals.merged is not None:
        body["merged"] = merged_blocks(spec, totals, totals.merged)
    if chosen.linear:
        body["linear"] = linear_estimates(spec, alone, chosen, listed.projected, hidden)
    if fitted is not None:
        body["deviance"] = fitted.deviance if math.isfinite(fitted.deviance) else None
    if chosen.method in ANYTIME:
        body["sharpest"] = chosen.sharpest
    if isinstance(mechanism, Lip):
        body |= prior_parts(collection.spec, mechanism, totals, chosen)
    return head.model_copy(update=body)


def final_content(collection: CollectionConfig) -> Callable[[WindowTotals], bytes]:
    """Return the function that writes the content of a collection's finals."""

    def write(totals: WindowTotals) -> bytes:
        window = totals.window or (totals.start_ms, totals.end_ms)
        return compose(collection, totals, window=window, final=True).to_json()

    return write


@dataclass(frozen=True)
class _Listed:
    """The listed values: indices `(q,)`, their estimates, all projected shares `(k,)` if asked.

    `estimate` is None where no value is listed.
    """

    indices: Integers
    estimate: Estimate | None
    projected: Floats | None
    simultaneous: bool


def _list_values(
    spec: CollectionSpec,
    totals: WindowTotals,
    options: EstimateOptions,
    hidden: Bools | None,
    fitted: Curve | None,
) -> _Listed:
    """Choose the values of the list, the largest shares first; all are in the domain's order.

    A list shorter than the domain is chosen by looking: simultaneous over the whole domain. It has
    none of the `hidden` values, whose shares count as alike.
    """
    mechanism, statistic, n = spec.mechanism, totals.statistic, totals.n
    keywords, size = options.keywords(), spec.domain.estimated.size
    by_looking = options.top is not None and 0 < options.top < size
    simultaneous = keywords["simultaneous"] = options.simultaneous or by_looking
    nothing = np.zeros(0, dtype=np.int64)
    if options.top == 0 and options.project == "none":
        check_counts(mechanism, statistic, n)
        return _Listed(nothing, None, None, simultaneous)
    if spec.domain.estimated_indices() is not None:
        # Where devices give more than estimates are about, a value is a set of theirs.
        sets = [_given(spec, np.array([value])) for value in range(size)]
        everything = estimate_sets(mechanism, statistic, n, sets, **keywords)
        projected = _project(spec, totals, everything.value, options, fitted)
        indices = _choose(options.top, everything.value, projected)
        return _Listed(indices, everything.take(indices), projected, simultaneous)
    # Of all values the shares alone: bounds take many times their memory, and are per value.
    decoded = share_sums(mechanism, statistic, n)
    shares = decoded / n if n else np.full_like(decoded, np.nan)
    if hidden is not None:
        shares[hidden] = merged_reports(spec, totals) / totals.n / hidden.sum()
    projected = _project(spec, totals, shares, options, fitted)
    indices = _choose(options.top, shares, projected, hidden)
    del shares
    if indices.size == 0:
        return _Listed(nothing, None, projected, simultaneous)
    values = None if options.top is None else indices
    estimate = estimate_values(mechanism, statistic, n, values=values, decoded=decoded, **keywords)
    return _Listed(indices, estimate, projected, simultaneous)


def _choose(
    top: int | None, shares: Floats, projected: Floats | None, hidden: Bools | None = None
) -> Integers:
    """Return the values of a list: all in their order, or the `top` largest that are not hidden."""
    if top is None:
        return np.arange(shares.size)
    if hidden is not None:
        told = np.flatnonzero(~hidden)
        return told[_choose(top, shares[told], None if projected is None else projected[told])]
    # Projection makes ties, at 0 above all: there the unprojected shares decide.
    return largest(shares if projected is None else projected, shares, top)


def largest(first: Floats, then: Floats, number: int) -> Integers:
    """Return the places of the largest, by `first`, `then`, and place, `(min(number, k),)`.

    What is undefined comes last. A list is much shorter than a large domain, in which most values
    may be alike: no more than the list is sorted.
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
    """Return the places above the `wanted`-th largest, fewer than wanted, and those alike it."""
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


def _given(spec: CollectionSpec, values: Integers) -> Integers:
    """Return the values that devices give for some of those that estimates are about."""
    estimated = spec.domain.estimated_indices()
    return values if estimated is None else np.flatnonzero(np.isin(estimated, values))


def _fit(spec: CollectionSpec, totals: WindowTotals, options: EstimateOptions) -> Curve | None:
    if options.project != "likelihood":
        return None
    return curve(Line.of(spec.mechanism, totals.statistic), options.confidence)


def _project(
    spec: CollectionSpec,
    totals: WindowTotals,
    shares: Floats,
    options: EstimateOptions,
    fitted: Curve | None,
) -> Floats | None:
    if fitted is not None:
        return fitted.shares
    if options.project == "none":
        return None
    # What else devices give may be disclosed, but it is no block of values: one total, that of all.
    if options.project == "simplex" or spec.domain.estimated_indices() is not None:
        return project_simplex(shares)
    if options.project == "power":
        keywords = options.keywords()
        return project_power(spec.mechanism, totals.statistic, totals.n, shares, **keywords)
    return project_blocks(shares, *known_totals(spec.mechanism, totals.statistic, totals.n))


def _value_estimates(
    domain: Domain, listed: _Listed, n: int, hidden: Bools | None
) -> list[ValueEstimate]:
    if listed.estimate is None:
        return []
    shares = None if listed.projected is None else listed.projected[listed.indices]
    labels = domain.labels(listed.indices)
    rows = numbers(listed.estimate, n, shares, None if hidden is None else ~hidden[listed.indices])
    # One set of field names for all, which would take half of their memory.
    names = {"value", *Numbers.__annotations__}
    return [
        ValueEstimate.of(names, {"value": label, **row, "weight": None})
        for label, row in zip(labels, rows, strict=True)
    ]


def _range_estimates(
    spec: CollectionSpec,
    totals: WindowTotals,
    options: EstimateOptions,
    projected: Floats | None,
    hidden: Bools | None,
) -> list[RangeEstimate]:
    if not options.ranges:
        return []
    sets = [asked.values(spec.domain.estimated) for asked in options.ranges]
    given = [_given(spec, values) for values in sets]
    keywords = options.keywords()
    estimate = estimate_sets(spec.mechanism, totals.statistic, totals.n, given, **keywords)
    shares = None if projected is None else np.array([projected[s].sum() for s in sets])
    told = None if hidden is None else whole_sets(hidden, sets)
    rows = numbers(estimate, totals.n, shares, told)
    return [RangeEstimate(name=a.name, **r) for a, r in zip(options.ranges, rows, strict=True)]


def _quantile_estimates(
    spec: CollectionSpec,
    totals: WindowTotals,
    options: EstimateOptions,
    hidden: Bools | None,
    fitted: Curve | None,
) -> list[QuantileEstimate]:
    if not options.quantiles:
        return []
    if hidden is not None:
        return [QuantileEstimate(p=p, value=None, low=None, high=None) for p in options.quantiles]
    found = estimate_quantiles(
        spec.mechanism,
        totals.statistic,
        totals.n,
        options.quantiles,
        prefixes=_prefixes(spec.mechanism, spec.domain),
        **options.keywords(),
    )
    domain = spec.domain.estimated
    values = found.value if fitted is None else positions(fitted.shares, options.quantiles)
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
    """Prepare a mechanism's prefixes: costly, and the same for every document."""
    return Prefixes.of(mechanism, domain.estimated_indices())


def _label(domain: Domain, position: float) -> Json:
    return domain.label(int(position)) if math.isfinite(position) else None


def _window(start_ms: int, end_ms: int) -> Window:
    return Window(start=format_time(start_ms), end=format_time(end_ms))
