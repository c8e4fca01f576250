"""Build the estimate document from exact totals.

`estimate`, finals, provisional estimates and HTTP answers are all built here, so that the same
reports give the same numbers, bit for bit. What a worker sends is written from plain fields, and
only those who look into a document make a model of it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any, Final, Required, TypedDict, Unpack

import numpy as np
from pydantic_core import to_json

from ldpstream.agents.config.collection import CollectionConfig
from ldpstream.agents.config.privacy.over_time import SpreadConfig
from ldpstream.agents.config.query.capabilities import disclosed_blocks
from ldpstream.agents.config.query.options import EstimateOptions
from ldpstream.agents.document.estimates import (
    Basis,
    Entry,
    list_values,
    range_estimates,
    value_estimates,
)
from ldpstream.agents.document.model import EstimateDocument
from ldpstream.agents.document.priors import known_prior_part, prior_parts
from ldpstream.agents.document.queries import (
    axis_quantiles,
    find_areas,
    linear_estimates,
    quantile_estimates,
)
from ldpstream.agents.document.weights import Weights
from ldpstream.agents.state.context import WindowTotals
from ldpstream.agents.state.windows import WindowSpec
from ldpstream.estimators.bounds.options import (
    ANYTIME,
    ONE_REPORT_EACH,
    Estimand,
    Sampling,
    sampling_among,
    sampling_of,
)
from ldpstream.mechanisms.base.arrays import Bools, Floats
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.families.lip.lip import Lip
from ldpstream.mechanisms.families.sampled.sampled import Sampled
from ldpstream.mechanisms.families.weights.private import WeightedDomain

_ROUNDING: Final = 1e-12
_LISTED_RUNS: Final = 1_000
"""The most runs of merged blocks that a document lists."""


class DocumentKeywords(TypedDict, total=False):
    """What a document is about, apart from its totals.

    `window` is `(start, end)` in epoch milliseconds, None for all reports together; the totals may
    cover a wider span. By default `options` are those of published documents. `partial`: workers
    with different windows count some of the reports.
    """

    window: Required[tuple[int, int] | None]
    final: Required[bool]
    options: EstimateOptions | None
    partial: bool


def write_document(
    collection: CollectionConfig, totals: WindowTotals, **about: Unpack[DocumentKeywords]
) -> bytes:
    """Return the document of a span's exact totals, as one line of JSON in UTF-8.

    Pure: the same arguments give the same bytes.
    """
    return to_json(_document(collection, totals, **about), inf_nan_mode="null")


def build_document(
    collection: CollectionConfig, totals: WindowTotals, **about: Unpack[DocumentKeywords]
) -> EstimateDocument:
    """Return the same document for whoever looks into it."""
    return EstimateDocument.model_validate(_document(collection, totals, **about))


@np.errstate(under="ignore")  # A program may have made numpy raise; tiny numbers are meant to be 0.
def _document(
    collection: CollectionConfig,
    totals: WindowTotals,
    *,
    window: tuple[int, int] | None,
    final: bool,
    options: EstimateOptions | None = None,
    partial: bool = False,
) -> Entry:
    """Return the fields of a document, in the order of its model."""
    chosen = collection.options if options is None else options
    common: dict[str, Any] = {
        "window": window,
        "final": final,
        "partial": partial,
        "estimand": chosen.estimand,
    }
    fields = _common_fields(collection, totals, **common)
    devices = _of_devices(collection, totals, published=final and window is not None)
    # 1. Values: a withheld document has no other fields.
    if not collection.attributes:
        if fields["withheld"]:
            return _in_order(fields)
        _, sampled = of_span(collection, totals, chosen)
        fields |= _estimates(collection, totals, sampled, devices)
        return _in_order(fields)
    # 2. Records: one attribute, or a section for each.
    names = list(collection.attributes) if chosen.attribute is None else [chosen.attribute]
    sections = []
    for name in names:
        about_one, sampled = of_attribute(collection, name, totals, chosen.about(name))
        about = _common_fields(collection, about_one, **common)
        about |= {"attribute": name, "of": about_one.among}
        if not about["withheld"]:
            of_one = collection.attributes[name]
            about |= _estimates(of_one, about_one, sampled, {})
        sections.append(_in_order(about))
    if chosen.attribute is not None:
        return sections[0]
    if all(section["withheld"] for section in sections):
        return _in_order(fields | _first_shown(sections, totals.n))
    shown = {
        "withheld": False,
        "late": totals.late,
        "rejected": totals.rejected,
        "estimand": chosen.estimand,
        "confidence": chosen.confidence,
        "method": chosen.method,
        "projection": chosen.project,
    }
    fields |= shown | devices
    return _in_order({**fields, "attributes": sections})


def _in_order(fields: Entry) -> Entry:
    return {name: fields[name] for name in EstimateDocument.model_fields if name in fields}


def _common_fields(
    collection: CollectionConfig,
    totals: WindowTotals,
    *,
    window: tuple[int, int] | None,
    final: bool,
    partial: bool,
    estimand: Estimand,
) -> Entry:
    """Return the fields of every document; a withheld one has no others."""
    fields: Entry = {
        "collection": collection.name,
        "fingerprint": collection.spec.fingerprint.hex(),
        "window": None if window is None else window_fields(collection, *window),
        "n": totals.n,
        "final": final,
        "withheld": totals.withheld or totals.n < collection.minimum,
    }
    number = None if window is None else collection.window.starting(window[0])
    if number is not None and collection.window.span(number) == window:
        # It is one of the windows, not any span.
        fields["size"] = collection.window.identity.label
    if collection.names.title is not None:
        fields["title"] = collection.names.title
    if totals.waiting is not None:
        fields["waiting"] = asdict(totals.waiting)
    if totals.lost.partitions:
        fields["lost"] = asdict(totals.lost)
    if partial:
        fields["partial"] = True
    if not fields["withheld"]:
        fields |= {"late": totals.late, "rejected": totals.rejected, "estimand": estimand}
    return fields


def _first_shown(sections: Sequence[Entry], n: int) -> Entry:
    """Return the fields of withheld records: what shows the attribute that is shown first."""
    waiting = [one["waiting"] for one in sections if "waiting" in one]
    if not waiting:
        return {"withheld": True}
    first = min(waiting, key=lambda one: one["more"] or 0)
    return {"withheld": True, "waiting": {**first, "reports": n}}


def final_content(collection: CollectionConfig) -> Callable[[WindowTotals], bytes]:
    """Return the function that writes the content of a collection's finals."""

    def write(totals: WindowTotals) -> bytes:
        window = totals.window or (totals.start_ms, totals.end_ms)
        return write_document(collection, totals, window=window, final=True)

    return write


def of_span(
    collection: CollectionConfig, totals: WindowTotals, options: EstimateOptions
) -> tuple[WindowTotals, EstimateOptions]:
    """Return the totals that options ask about, of records those of one attribute, and the options.

    The options then say how the reports of the span were drawn.
    """
    if options.attribute is not None:
        return of_attribute(collection, options.attribute, totals, options)
    span, hold = (totals.start_ms, totals.end_ms), collection.spec.hold
    held = 1 if hold is None else hold.windows
    shared = 1.0
    if hold is not None and hold.chain is not None and options.method in ("padded", "normal"):
        shared = hold.chain.shared_noise
    sampling = sampling_between(
        collection.spread, collection.window, *span, held=held, shared=shared
    )
    return totals, replace(options, sampling=sampling)


def of_attribute(
    collection: CollectionConfig, name: str, totals: WindowTotals, options: EstimateOptions
) -> tuple[WindowTotals, EstimateOptions]:
    """Return the totals of the reports about an attribute, and the options for them.

    These reports are a random sample of all, so estimates for "respondents" are computed with the
    estimand `active`.
    """
    mechanism = collection.spec.mechanism
    assert isinstance(mechanism, Sampled)
    number = mechanism.names.index(name)
    if totals.attributes:
        attribute_totals = totals.attributes[number]
    else:
        statistic = totals.statistic[mechanism.slices[number]]
        n = mechanism.parts[number].count(statistic)
        attribute_totals = replace(totals, statistic=statistic, n=n, among=totals.n)
    sampling = sampling_between(
        collection.spread,
        collection.window,
        attribute_totals.start_ms,
        attribute_totals.end_ms,
        part=mechanism.probabilities[number] / WORD,
    )
    if options.estimand == "respondents":
        sampling = sampling_among(sampling, attribute_totals.n, attribute_totals.among)
        options = replace(options, estimand="active")
    return attribute_totals, replace(options, sampling=sampling)


def sampling_between(
    spread: SpreadConfig | None,
    window: WindowSpec,
    start_ms: int,
    end_ms: int,
    *,
    held: int = 1,
    shared: float = 1.0,
    part: float = 1.0,
) -> Sampling:
    """Return how devices' reports in a span of whole panes are drawn; one each if it is empty.

    `held`, `shared` and `part`: as in `sampling_of`.
    """
    first = window.pane(start_ms)
    panes = window.pane(end_ms) - first
    if panes < 1:
        return ONE_REPORT_EACH
    if spread is None:
        return sampling_of(first, panes, windows=None, held=held, shared=shared, part=part)
    return sampling_of(
        first,
        panes,
        windows=spread.windows,
        reports=spread.reports,
        rolling=spread.rolling,
        part=part,
    )


def _of_devices(collection: CollectionConfig, totals: WindowTotals, *, published: bool) -> Entry:
    """Return the fields about devices; `published`: of a closed window."""
    fields: Entry = {}
    if collection.spread is not None:
        window = collection.window
        panes = window.pane(totals.end_ms) - window.pane(totals.start_ms)
        fields["active"] = active_devices(collection.spread, totals.n, panes=panes)
    if published and (loss := collection.central) is not None:
        fields["central"] = {
            "epsilon": loss.epsilon,
            "delta": loss.delta,
            "reports": loss.reports,
        }
    return fields


def active_devices(spread: SpreadConfig, n: int, *, panes: int) -> Entry:
    """Estimate the active devices from n reports: each represents `windows / reports` of its pane.

    Each active device takes part in a pane with probability `reports / windows`, so the number of
    reports is binomial, whatever the values are. Draws for panes of one period are at worst
    independent; a rolling draw is the same in all periods that the span touches.
    """
    distance = spread.windows / spread.reports
    repeats = -(-panes // spread.windows) if spread.rolling else 1
    variance = n * distance * (distance - 1.0) * max(1, repeats)
    return {"count": n * distance, "se": math.sqrt(variance)}


def _estimates(
    collection: CollectionConfig,
    totals: WindowTotals,
    chosen: EstimateOptions,
    devices: Entry,
) -> Entry:
    """Return the estimated fields of a document, including those about devices."""
    domain = collection.spec.domain
    basis = Basis.of(collection.spec, totals, chosen)
    # 1. The estimates of values and ranges, and the sums of weights in them.
    listed = list_values(basis)
    values = value_estimates(basis, listed)
    ranges = range_estimates(basis, listed.projected) if chosen.ranges else []
    if isinstance(domain, WeightedDomain):
        weights = Weights(collection.spec.mechanism, domain, totals, chosen)
        values = weights.add_to_values(listed.indices, values)
        ranges = weights.add_to_ranges(ranges)
    # 2. The fields.
    in_order = bool(chosen.quantiles) and len(basis.domain.shape) == 1
    entries = [*values, *ranges]
    influences = [entry["influence"] for entry in entries if entry["influence"] is not None]
    forged = [entry["forged"] for entry in entries if entry["forged"] is not None]
    fields = {
        "confidence": chosen.confidence,
        "method": chosen.method,
        "simultaneous": listed.simultaneous,
        "projection": chosen.project,
        "distribution": values,
        "ranges": ranges,
        "quantiles": quantile_estimates(basis, listed.projected) if in_order else [],
        "influence": max(influences, default=None),
        "forged": min(forged, default=None),
    }
    if chosen.quantiles and not in_order:
        fields["axis_quantiles"] = axis_quantiles(basis)
    fields |= devices | _further_fields(collection, totals, basis, listed.projected)
    known = collection.spec.prior.shares
    if known is not None and basis.hidden is None:
        fields["known_prior"] = known_prior_part(basis, known, listed.indices)
    if listed.projected is not None:
        fields["outside"] = sum(_is_outside(entry["share"], entry) for entry in entries)
    return fields


def _is_outside(point: float | None, entry: Entry) -> bool:
    low, high = entry["low"], entry["high"]
    if point is None or low is None or high is None:
        return False
    return not low - _ROUNDING <= point <= high + _ROUNDING


def _further_fields(
    collection: CollectionConfig, totals: WindowTotals, basis: Basis, projected: Floats | None
) -> Entry:
    """Return the fields of only some collections, spans and options."""
    fields: Entry = {}
    mechanism, options = collection.spec.mechanism, basis.options
    if totals.window is not None:
        fields["span"] = window_fields(collection, totals.start_ms, totals.end_ms)
    if totals.merged is not None:
        fields["merged"] = _merged_blocks(
            totals.merged, basis.merged_reports, disclosed_blocks(collection.spec)
        )
    if options.linear:
        fields["linear"] = linear_estimates(basis, projected)
    if options.areas:
        fields["areas"] = find_areas(basis)
    if options.method == ANYTIME:
        fields["sharpest"] = options.sharpest
    if isinstance(mechanism, Lip):
        fields |= prior_parts(collection.spec, mechanism, totals, options)
    return fields


def _merged_blocks(merged: Bools, count: int, blocks: Blocks | None) -> Entry:
    """Return the document's field `merged`, for blocks `(blocks,)` with this many reports."""
    edges = np.flatnonzero(np.diff(merged, prepend=False, append=False))
    runs = np.stack([edges[::2], edges[1::2] - 1], axis=1)
    summary = {"blocks": int(merged.sum()), "runs": runs[:_LISTED_RUNS].tolist()}
    if blocks is not None and blocks.names is not None:
        listed = np.flatnonzero(merged)[:_LISTED_RUNS].tolist()
        summary["names"] = [blocks.names[block] for block in listed]
    return {**summary, "count": count}


def window_fields(collection: CollectionConfig, start_ms: int, end_ms: int) -> Entry:
    """Return a span as documents write it."""
    start, end = map(collection.window.format_time, (start_ms, end_ms))
    return {"start": start, "end": end}
