"""The change document: what changed in the population between two spans, and whether it is real.

`ldpstream.estimators.comparison.change` has the rules. All bounds of one document hold at once:
the allowed error is split evenly among its lists, and in each among all that could be listed.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from pydantic_core import to_json

from ldpstream.agents.config.collection import CollectionConfig
from ldpstream.agents.config.query.capabilities import disclosed_blocks
from ldpstream.agents.config.query.options import EstimateOptions
from ldpstream.agents.document.build import of_span, window_fields
from ldpstream.agents.document.estimates import (
    Basis,
    Entry,
    all_values,
    finite,
    largest,
    prepare_ranges,
    prepared_prefixes,
    whole_sets,
)
from ldpstream.agents.document.model import ChangeDocument
from ldpstream.agents.document.queries import label_at, whole_queries
from ldpstream.agents.state.context import WindowTotals
from ldpstream.estimators.bounds.options import ONE_REPORT_EACH, OptionKeywords
from ldpstream.estimators.bounds.types import Estimate
from ldpstream.estimators.comparison.change import (
    Change,
    Devices,
    estimate_change,
    quantile_change,
    sampling_part,
)
from ldpstream.estimators.estimate import check_counts, estimate_prepared, estimate_sets
from ldpstream.estimators.quantiles.quantiles import Quantiles, estimate_quantiles
from ldpstream.estimators.weights import estimate_linear
from ldpstream.mechanisms.base.arrays import Bools, Floats, Integers


@dataclass(frozen=True, kw_only=True)
class Span:
    """The totals of one of the spans, the `window` that was asked for, and whether it is final."""

    totals: WindowTotals
    window: tuple[int, int]
    final: bool


@dataclass(frozen=True, kw_only=True)
class ChangeOptions:
    """What is compared; `devices`: what the reader says of them, by default nothing.

    `estimate` has the queries and the method. `blocks`: the disclosed blocks as well.
    """

    estimate: EstimateOptions
    blocks: bool = False
    devices: Literal["different"] | None = None


def write_change(
    collection: CollectionConfig, before: Span, after: Span, options: ChangeOptions
) -> bytes:
    """Return the change document, as one line of JSON in UTF-8.

    Spans must not overlap. Of records, the options name an attribute.
    """
    fields = _change(collection, before, after, options)
    ordered = {name: fields[name] for name in ChangeDocument.model_fields if name in fields}
    return to_json(ordered, inf_nan_mode="null")


@np.errstate(under="ignore")  # As for documents of estimates.
def _change(
    collection: CollectionConfig, before: Span, after: Span, options: ChangeOptions
) -> Entry:
    chosen = replace(options.estimate, project="none", estimand="population")
    attribute, about = chosen.attribute, collection
    if attribute is not None:
        about = collection.attributes[attribute]
    pairs = [of_span(collection, span.totals, chosen) for span in (before, after)]
    spans = [
        replace(span, totals=totals)
        for span, (totals, _) in zip((before, after), pairs, strict=True)
    ]
    shown = [_span_fields(collection, span) for span in spans]
    fields: Entry = {
        "collection": collection.name,
        "fingerprint": collection.spec.fingerprint.hex(),
        "before": shown[0],
        "after": shown[1],
        "withheld": False,
    }
    if collection.names.title is not None:
        fields["title"] = collection.names.title
    if attribute is not None:
        fields["attribute"] = attribute
    if (reason := _withheld(collection, spans, shown)) is not None:
        return fields | {"withheld": True, "reason": reason}
    devices = options.devices or devices_between(collection, *(span.totals for span in spans))
    bases = []
    for totals, options_of_span in pairs:
        if options.devices is not None:
            options_of_span = replace(options_of_span, sampling=ONE_REPORT_EACH)
        bases.append(Basis.of(about.spec, totals, options_of_span))
    lists = _Comparison(bases[0], bases[1], devices).lists(about, blocks=options.blocks)
    return fields | {
        "estimand": chosen.estimand,
        "confidence": chosen.confidence,
        "method": chosen.method,
        "devices": devices,
        **lists,
    }


def _span_fields(collection: CollectionConfig, span: Span) -> Entry:
    totals = span.totals
    fields: Entry = {"window": window_fields(collection, *span.window)}
    if totals.window is not None:
        fields["span"] = window_fields(collection, totals.start_ms, totals.end_ms)
    withheld = totals.withheld or totals.n < max(1, collection.minimum)
    return {**fields, "n": totals.n, "final": span.final, "withheld": withheld}


def _withheld(
    collection: CollectionConfig, spans: Sequence[Span], shown: Sequence[Entry]
) -> str | None:
    """Return why nothing is said of a change; None if something is."""
    for fields in shown:
        if fields["withheld"]:
            start = fields["window"]["start"]
            few = f"fewer than {collection.minimum}" if collection.minimum > 1 else "no"
            return f"the span from {start} has {few} reports to show"
    ends = sorted((span.totals.start_ms, span.totals.end_ms) for span in spans)
    if ends[1][0] < ends[0][1]:
        return (
            "because of minimum both spans are told from some of the same reports: "
            "compare spans that are further apart"
        )
    return None


def devices_between(
    collection: CollectionConfig, before: WindowTotals, after: WindowTotals
) -> Devices:
    """Return how devices may report in both spans, as far as the configuration guarantees it."""
    window, spread = collection.window, collection.spread
    first, then = sorted(
        (window.pane(totals.start_ms), window.pane(totals.end_ms)) for totals in (before, after)
    )
    if collection.spec.hold is not None:
        # An epoch begins at any pane: panes that lie this far apart are never in one.
        return "held" if then[0] - (first[1] - 1) < collection.spec.hold.windows else "fresh"
    if spread is not None and spread.reports == 1:
        period = spread.windows
        near = then[1] - first[0] <= period
        if near and (spread.rolling or first[0] // period == (then[1] - 1) // period):
            return "different"
    return "fresh"


_Estimates = Callable[[Basis, OptionKeywords], Estimate]


@dataclass(frozen=True)
class _Comparison:
    """Both spans, and how devices may report in them."""

    before: Basis
    after: Basis
    devices: Devices

    def lists(self, about: CollectionConfig, *, blocks: bool) -> Entry:
        """Return the lists of a document, with all that their bounds share."""
        options = self.before.options
        disclosed = disclosed_blocks(about.spec) if blocks else None
        lists: dict[str, Callable[[OptionKeywords], tuple[Change, list[Entry]]]] = {}
        if options.top != 0:
            lists["values"] = self._values
        if disclosed is not None:
            names = disclosed.names or (None,) * disclosed.count
            sets = [np.flatnonzero(disclosed.of_value == block) for block in range(disclosed.count)]
            heads = [{"block": block, "name": name} for block, name in enumerate(names)]
            lists["blocks"] = partial(self._sets, sets=sets, heads=heads)
        if options.ranges:
            lists["ranges"] = self._ranges
        if options.linear:
            lists["linear"] = self._linear
        if options.quantiles:
            lists["quantiles"] = self._quantiles
        error = (1.0 - options.confidence) / max(1, len(lists))
        keywords: OptionKeywords = {
            "confidence": 1.0 - error,
            "method": options.method,
            "estimand": "population",
            "simultaneous": True,
            "sharpest": options.sharpest,
        }
        changes = {name: make(keywords) for name, make in lists.items()}
        directions = sum(
            int(_directions(change).astype(bool).sum()) for change, _ in changes.values()
        )
        rows = {name: entries for name, (_, entries) in changes.items()}
        if "values" in rows and options.top is not None:
            rows["values"] = [
                rows["values"][at] for at in _most_changed(changes["values"][0], options.top)
            ]
        family = sum(change.value.size for change, _ in changes.values())
        return {"family": family, "told": directions, **rows}

    @property
    def _hidden(self) -> Bools | None:
        """The values that are in merged blocks of either span."""
        hidden = [entry.hidden for entry in (self.before, self.after) if entry.hidden is not None]
        return np.logical_or.reduce(hidden) if hidden else None

    def _estimate(
        self, make: _Estimates, keywords: OptionKeywords, reach: Floats | float = 1.0
    ) -> Change:
        def of(basis: Basis) -> Callable[[OptionKeywords], Estimate]:
            return lambda options: make(basis, _of_span(basis, options))

        spans = of(self.before), of(self.after)
        return estimate_change(*spans, devices=self.devices, reach=reach, **keywords)

    def _values(self, keywords: OptionKeywords) -> tuple[Change, list[Entry]]:
        change = self._estimate(lambda basis, options: all_values(basis, **options), keywords)
        domain, hidden = self.before.domain, self._hidden
        labels = domain.labels(np.arange(domain.size))
        change = _without(change, hidden)
        return change, _rows(change, [{"value": label} for label in labels])

    def _sets(
        self, keywords: OptionKeywords, sets: Sequence[Any], heads: Sequence[Entry]
    ) -> tuple[Change, list[Entry]]:
        def estimated(basis: Basis, options: OptionKeywords) -> Estimate:
            own_sets = sets
            if basis.given is not None:
                own_sets = [np.flatnonzero(np.isin(basis.given, entry)) for entry in sets]
            return estimate_sets(basis.mechanism, basis.statistic, basis.n, own_sets, **options)

        change = self._drop_cut_sets(self._estimate(estimated, keywords), sets)
        return change, _rows(change, heads)

    def _drop_cut_sets(self, change: Change, sets: Sequence[Integers]) -> Change:
        """Return the changes without the numbers of sets that cut merged blocks."""
        hidden = self._hidden
        return _without(change, None if hidden is None else ~whole_sets(hidden, sets))

    def _ranges(self, keywords: OptionKeywords) -> tuple[Change, list[Entry]]:
        def estimated(basis: Basis, options: OptionKeywords) -> Estimate:
            check_counts(basis.mechanism, basis.statistic, basis.n)
            return estimate_prepared(basis.statistic, basis.n, prepare_ranges(basis)[1], **options)

        sets, _ = prepare_ranges(self.before)
        change = self._drop_cut_sets(self._estimate(estimated, keywords), sets)
        return change, _rows(change, [{"name": entry.name} for entry in self.before.options.ranges])

    def _linear(self, keywords: OptionKeywords) -> tuple[Change, list[Entry]]:
        queries, hidden = self.before.options.linear, self._hidden
        weights = np.stack([query.weights for query in queries])

        def estimated(basis: Basis, options: OptionKeywords) -> Estimate:
            own_weights = weights if basis.given is None else weights[:, basis.given]
            return estimate_linear(
                basis.mechanism, basis.statistic, basis.n, own_weights, **options
            )

        change = self._estimate(estimated, keywords, np.ptp(weights, axis=1))
        change = _without(change, None if hidden is None else ~whole_queries(hidden, weights))
        return change, _rows(change, [{"name": query.name} for query in queries])

    def _quantiles(self, keywords: OptionKeywords) -> tuple[Change, list[Entry]]:
        shares, hidden, domain = self.before.options.quantiles, self._hidden, self.before.domain
        each = 1.0 - (1.0 - keywords["confidence"]) / len(shares)
        alone: OptionKeywords = {**keywords, "confidence": each, "simultaneous": False}

        def of(basis: Basis) -> Callable[[OptionKeywords], Quantiles]:
            prefixes = prepared_prefixes(basis.mechanism, basis.own)
            counted = basis.mechanism, basis.statistic, basis.n
            return lambda options: estimate_quantiles(
                *counted, shares, prefixes=prefixes, **_of_span(basis, options)
            )

        spans = of(self.before), of(self.after)
        change = quantile_change(
            *spans,
            devices=self.devices,
            last=domain.size - 1,
            correlation=self._prefix_correlation(alone),
            **alone,
        )
        if hidden is not None:
            change = _without(change, np.ones(len(shares), dtype=np.bool_))
        columns = zip(
            *(shares, change.before, change.after, change.value, change.low, change.high),
            _directions(change),
            strict=True,
        )
        return change, [
            {
                "p": float(p),
                "before": label_at(domain, before),
                "after": label_at(domain, after),
                **{
                    name: None if finite(steps) is None else int(steps)
                    for name, steps in (("steps", value), ("low", low), ("high", high))
                },
                "told": direction,
            }
            for p, before, after, value, low, high, direction in columns
        ]

    def _prefix_correlation(self, keywords: OptionKeywords) -> float:
        """Return the largest r of the prefixes that quantiles follow from."""
        if self.devices != "fresh":
            return float(self.devices == "held")
        sampling = [_prefix_sampling(basis, keywords) for basis in (self.before, self.after)]
        return float(np.nanmax(sampling[0] * sampling[1], initial=0.0))


def _of_span(basis: Basis, options: OptionKeywords) -> OptionKeywords:
    """Return the options with the sampling of one span."""
    return {**options, "sampling": basis.options.sampling}


def _prefix_sampling(basis: Basis, keywords: OptionKeywords) -> Floats:
    prefixes = prepared_prefixes(basis.mechanism, basis.own)

    def estimated(options: OptionKeywords) -> Estimate:
        return prefixes.estimate(basis.statistic, basis.n, **_of_span(basis, options))

    normal: OptionKeywords = {**keywords, "method": "normal"}
    return sampling_part(estimated(normal), estimated, normal)


def _without(change: Change, hidden: Bools | None) -> Change:
    """Return the changes without the numbers of these queries, bool `(q,)`."""
    if hidden is None:
        return change
    columns = (change.before, change.after, change.value, change.se, change.low, change.high)
    return Change(*(np.where(hidden, np.nan, column) for column in columns))


def _directions(change: Change) -> np.ndarray[Any, Any]:
    """Return "rose", "fell" or None for each query, `(q,)`."""
    directions = np.full(change.value.shape, None, dtype=np.object_)
    directions[change.low > 0.0], directions[change.high < 0.0] = "rose", "fell"
    return directions


def _most_changed(change: Change, number: int) -> list[int]:
    """Return the queries that changed most against their error; among equals, the largest."""
    errors = np.where(change.se > 0.0, change.se, np.inf)
    sizes = np.abs(change.value)
    places: list[int] = largest(sizes / errors, sizes, number).tolist()
    return places


def _rows(change: Change, heads: Sequence[Entry]) -> list[Entry]:
    return [{**head, **row} for head, row in zip(heads, _numbers(change), strict=True)]


def _numbers(change: Change) -> Iterator[Entry]:
    names = ("before", "after", "change", "se", "low", "high")
    together = np.stack(
        [change.before, change.after, change.value, change.se, change.low, change.high]
    )
    columns = together.astype(object)
    columns[~np.isfinite(together)] = None
    for row, direction in zip(columns.T.tolist(), _directions(change), strict=True):
        yield {**dict(zip(names, row, strict=True)), "told": direction}
