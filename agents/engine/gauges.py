"""The gauges of a pipeline, read from its current state at every scrape.

Queries of an estimate document are gauges by name: `range:NAME`, `quantile:P`, `linear:NAME`,
`mmse:LABEL` if priors are known, and `top:RANK` for the list of values. The leading values change,
so one series for every value that ever led would be unbounded. If the list has exactly the labels
that the configuration names, it is `value:LABEL`.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, Literal

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from pydantic import JsonValue

from ldpstream.agents.document.entries import Calibration
from ldpstream.agents.document.model import EstimateDocument
from ldpstream.agents.engine.engine import Engine
from ldpstream.agents.engine.metrics import Metrics, PublishedDocument
from ldpstream.agents.engine.pipeline import Pipeline
from ldpstream.agents.state.cell_encoding import decode_final
from ldpstream.agents.state.listing import oldest_window, open_windows, stored_finals
from ldpstream.agents.state.records import Head, Name
from ldpstream.agents.state.windows import NEVER
from ldpstream.mechanisms.base.checks import number_text
from ldpstream.mechanisms.base.times import parse_time
from ldpstream.mechanisms.domains.parse import Domain

_BY_PARTITION = ("collection", "partition")
_BY_QUERY = ("collection", "query", "kind")
_BY_SPEC = ("collection", "fingerprint")
_ESTIMATE = (
    "Estimate in the newest published window, of range:NAME, quantile:P, linear:NAME, "
    "value:LABEL, top:RANK or mmse:LABEL; of records ATTRIBUTE.range:NAME and so on. "
    "The kind is share, quantile or mean"
)

_GAUGES: Final = {
    ("collection",): {
        "ready": "1 once every partition's state has been read to its end",
        "problems": "Problems of a collection; `ldpstream status URL` names them",
        "collection_stopped": "1 if the collection, or a spec that it accepts, has stopped "
        "and needs an operator",
        "window_reports": "Reports in the newest published window",
        "window_end_seconds": "End of that window, in seconds since 1970",
        "final_window_reports": "Reports in the newest final window",
        "final_window_end_seconds": "End of that window, in seconds since 1970",
        "final_withheld": "1 if that window had too few reports for an estimate",
        "final_overdue_seconds": "Seconds since the oldest final that is due could be "
        "published; 0 if none is",
        "window_seconds": "Size and grace: from the start of a window until it may be final",
        "prior_calibration_p_value": "P-value of the test that reports agree with the priors "
        "(lip); small: one is wrong",
        "prior_calibration_wrong": "1 if that test calls a prior wrong",
        "prior_calibration_flagged_levels": "Levels of prior and epsilon that their reports "
        "contradict by themselves",
    },
    _BY_PARTITION: {
        "owned": "1 for a partition assigned to this worker",
        "lag_records": "Source records not decided yet, of owned partitions",
        "watermark_seconds": "Event time reached, in seconds since 1970",
        "idle": "1 for a partition that is idle",
        "wait_seconds": "Seconds for which windows have waited for a partition, beyond window.idle",
        "missing_offsets": "Offsets that retention deleted unread, which windows still kept "
        "may lack",
        "state_cells": "Live cells of the state; partition 0 has those of closed windows",
        "state_bytes": "Bytes of the values of live cells",
        "state_dead_records": "Changelog records to be deleted",
    },
    (): {
        "clock_skew_seconds": "How far this worker's clock is ahead of the broker's, at "
        "least; absent if unknown",
    },
    _BY_SPEC: {
        "accepted_ready": "As ldpstream_ready, of accepted specs",
        "accepted_problems": "As ldpstream_problems, of accepted specs",
        "accepted_open_windows": "Windows of an accepted spec with reports whose final is "
        "not published yet",
    },
    (*_BY_SPEC, "partition"): {
        "accepted_lag_records": "As ldpstream_lag_records, of accepted specs",
        "accepted_watermark_seconds": "As ldpstream_watermark_seconds, of accepted specs",
    },
    _BY_QUERY: {
        "estimate": _ESTIMATE,
        "estimate_low": "Lower confidence bound of ldpstream_estimate",
        "estimate_high": "Upper confidence bound of ldpstream_estimate",
        "final_estimate": "As ldpstream_estimate, in the newest final window",
        "final_estimate_low": "Lower confidence bound of ldpstream_final_estimate",
        "final_estimate_high": "Upper confidence bound of ldpstream_final_estimate",
    },
}
"""The meanings of gauges, by their labels."""

log = logging.getLogger(__name__)


def track(pipeline: Pipeline, metrics: Metrics) -> None:
    """Export the gauges of a pipeline, and its counters from zero; call it only once."""
    metrics.begin(collection.config for collection in pipeline.collections.values())
    metrics.registry.register(PipelineCollector(pipeline, metrics.documents))


class PipelineCollector(Collector):
    """Reads collections and partitions, and the newest documents of exported collections.

    A worker exports estimates of a collection only while it owns partition 0.
    """

    def __init__(self, pipeline: Pipeline, documents: Mapping[str, PublishedDocument]) -> None:
        self._pipeline = pipeline
        self._documents = documents
        self._finals = NewestFinals()

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Return the metrics without samples, so that registering reads nothing."""
        yield from _families().values()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Return all gauges with their current values."""
        families = _families()
        for name, collection in self._pipeline.collections.items():
            collected = _families()
            try:
                self._add(collected, name, collection)
            except Exception:  # a bug in one collection must not hide the others
                log.exception("the metrics of collection %s cannot be made", name)
                collected = _families()
                collected["ready"].add_metric([name], 0.0)
                collected["problems"].add_metric([name], 1.0)
            for family, added in collected.items():
                families[family].samples += added.samples
        if self._pipeline.clock.skew_ms is not None:
            families["clock_skew_seconds"].add_metric([], self._pipeline.clock.skew_ms / 1000)
        yield from families.values()

    def _add(
        self, families: Mapping[str, GaugeMetricFamily], name: str, collection: Engine
    ) -> None:
        _add_collection(families, name, collection, self._pipeline.clock.now_ms())
        for accepted in collection.accepted:
            _add_accepted(families, name, accepted)
        if 0 not in collection.owned:
            return
        published, final = self._documents.get(name), self._finals.of(collection)
        newest = None if published is None else published.document
        if newest is not None:
            _add_document(families, collection, newest)
        if final is not None:
            _add_document(families, collection, final, prefix="final_")
            families["final_withheld"].add_metric([name], float(final.withheld))
        tested = final or newest
        if tested is not None and tested.calibration is not None:
            _add_calibration(families, name, tested.calibration)


def _families() -> dict[str, GaugeMetricFamily]:
    return {
        name: GaugeMetricFamily(f"ldpstream_{name}", text, labels=labels)
        for labels, gauges in _GAUGES.items()
        for name, text in gauges.items()
    }


def _add_collection(
    families: Mapping[str, GaugeMetricFamily],
    name: str,
    collection: Engine,
    now_ms: int,
) -> None:
    families["ready"].add_metric([name], float(collection.ready))
    families["problems"].add_metric([name], float(len(collection.problems)))
    states = (collection, *collection.accepted)
    stopped = any(state.stopped for state in states)
    families["collection_stopped"].add_metric([name], float(stopped))
    window = collection.config.window
    overdue_ms = _overdue_ms(collection, now_ms)
    if overdue_ms is not None:
        families["final_overdue_seconds"].add_metric([name], overdue_ms / 1000)
    families["window_seconds"].add_metric([name], (window.size_ms + window.grace_ms) / 1000)
    waits = dict.fromkeys(range(len(collection.replicas)), 0.0)
    for wait in (wait for state in states for wait in state.waits):
        waits[wait.partition] = max(wait.seconds, waits[wait.partition])
    for partition, replica in enumerate(collection.replicas):
        labels = [name, str(partition)]
        families["wait_seconds"].add_metric(labels, waits[partition])
        families["owned"].add_metric(labels, float(partition in collection.owned))
        if replica.head is None:
            continue
        _add_lag(families["lag_records"], labels, collection, partition, replica.head)
        if replica.head.clock != NEVER:
            families["watermark_seconds"].add_metric(labels, replica.head.clock / 1000)
        families["idle"].add_metric(labels, float(replica.head.idle))
        missing = sum(gap.offsets for gap in replica.head.gaps)
        families["missing_offsets"].add_metric(labels, float(missing))
        families["state_cells"].add_metric(labels, float(len(replica.cells)))
        families["state_bytes"].add_metric(labels, float(replica.size_bytes))
        families["state_dead_records"].add_metric(labels, float(replica.dead_records))


def _overdue_ms(collection: Engine, now_ms: int) -> int | None:
    """Return for how long the oldest unpublished window with reports has been due, at least 0."""
    head = collection.replicas[0].head if collection.replicas else None
    if head is None:
        return None
    window = collection.context.window
    oldest = oldest_window(collection.context, collection.replicas, head.published)
    if oldest is None:
        return 0
    due_ms = window.span(oldest)[1] + window.grace_ms + (window.idle_ms or 0)
    return max(0, now_ms - due_ms)


def _add_lag(
    family: GaugeMetricFamily,
    labels: Sequence[str],
    collection: Engine,
    partition: int,
    head: Head,
) -> None:
    end = collection.end_offsets.get(partition)
    # Only the owner follows a partition's end offset.
    if end is not None and partition in collection.owned:
        family.add_metric(labels, float(max(0, end - head.next)))


def _add_accepted(families: Mapping[str, GaugeMetricFamily], name: str, collection: Engine) -> None:
    spec = [name, collection.config.spec.fingerprint.hex()]
    families["accepted_ready"].add_metric(spec, float(collection.ready))
    families["accepted_problems"].add_metric(spec, float(len(collection.problems)))
    not_published = open_windows(collection.context, collection.replicas)
    if not_published is not None:
        families["accepted_open_windows"].add_metric(spec, float(not_published))
    for partition, replica in enumerate(collection.replicas):
        labels = [*spec, str(partition)]
        if replica.head is None:
            continue
        _add_lag(families["accepted_lag_records"], labels, collection, partition, replica.head)
        if replica.head.clock != NEVER:
            seconds = replica.head.clock / 1000
            families["accepted_watermark_seconds"].add_metric(labels, seconds)


def _add_calibration(
    families: Mapping[str, GaugeMetricFamily], name: str, test: Calibration
) -> None:
    families["prior_calibration_p_value"].add_metric([name], test.p_value)
    families["prior_calibration_wrong"].add_metric([name], float(test.wrong))
    families["prior_calibration_flagged_levels"].add_metric([name], float(test.flagged))


def _add_document(
    families: Mapping[str, GaugeMetricFamily],
    collection: Engine,
    document: EstimateDocument,
    *,
    prefix: str = "",
) -> None:
    name = collection.config.name
    families[f"{prefix}window_reports"].add_metric([name], float(document.n))
    if document.window is not None:
        end_ms = parse_time(document.window.end)
        families[f"{prefix}window_end_seconds"].add_metric([name], end_ms / 1000)
    config = collection.config
    for gauge in query_gauges(document, config.spec.domain.estimated, config.names.value_labels):
        numbers = {
            "estimate": gauge.value,
            "estimate_low": gauge.low,
            "estimate_high": gauge.high,
        }
        for family, number in numbers.items():
            if number is not None:
                labels = [name, gauge.query, gauge.kind]
                families[prefix + family].add_metric(labels, number)


class NewestFinals:
    """The newest final of each collection, from its state, so that it is known after a restart.

    Each is parsed once, when it first is the newest.
    """

    def __init__(self) -> None:
        self._newest: dict[str, tuple[int, EstimateDocument]] = {}

    def of(self, collection: Engine) -> EstimateDocument | None:
        """Return the newest final; None before there is one, or once it has expired."""
        if not collection.replicas or collection.replicas[0].head is None:
            return None
        replica, name = collection.replicas[0], collection.config.name
        number, document = self._newest.get(name, (NEVER, None))
        if Name("final", number) not in replica.cells:
            number, document = NEVER, None
        newer = stored_finals(collection.context, replica, number)
        if newer:
            number = newer[-1]
            content = decode_final(replica.value(Name("final", number)))
            document = EstimateDocument.model_validate_json(content)
        if document is None:
            self._newest.pop(name, None)
        else:
            self._newest[name] = number, document
        return document


@dataclass(frozen=True)
class QueryGauge:
    """One query: its estimate and bounds, each None if undefined.

    A `share` is between 0 and 1 up to noise; a `quantile` is in the unit of the values, a `mean` in
    that of its weights.
    """

    query: str
    kind: Literal["share", "quantile", "mean"]
    value: float | None
    low: float | None
    high: float | None


def query_gauges(
    document: EstimateDocument,
    domain: Domain,
    names: Mapping[str | None, Mapping[str, str]] = MappingProxyType({}),
) -> Iterator[QueryGauge]:
    """Yield the queries of a document over a domain; none if it is withheld.

    `names` are what people read in place of labels, by attribute and by their text.

    For records: those of each attribute, as `ATTRIBUTE.QUERY`.
    """
    if domain.members:
        for about in document.attributes:
            attribute_domain = domain.members[about.attribute or ""].estimated
            for gauge in query_gauges(about, attribute_domain, names):
                yield replace(gauge, query=f"{about.attribute}.{gauge.query}")
        return

    def read(label: JsonValue) -> str:
        return names.get(document.attribute, {}).get(str(label), str(label))

    named = domain.kind == "values" and len(document.distribution) == domain.size
    for rank, entry in enumerate(document.distribution, start=1):
        query = f"value:{read(entry.value)}" if named else f"top:{rank}"
        yield QueryGauge(query, "share", entry.share, entry.low, entry.high)
    if document.mmse is not None:
        likeliest = document.mmse
        query = f"mmse:{read(likeliest.value)}"
        yield QueryGauge(query, "share", likeliest.share, likeliest.low, likeliest.high)
    for bounds in document.ranges:
        yield QueryGauge(f"range:{bounds.name}", "share", bounds.share, bounds.low, bounds.high)
    for mean in document.linear:
        yield QueryGauge(f"linear:{mean.name}", "mean", mean.mean, mean.low, mean.high)
    for quantile in document.quantiles:
        yield QueryGauge(
            f"quantile:{number_text(quantile.p)}",
            "quantile",
            _position(quantile.value, 0.5),
            _position(quantile.low, 0.0),
            _position(quantile.high, 1.0),
        )


def _position(label: JsonValue, share: float) -> float | None:
    """Return a label as a number: for a bin `[low, high]` the point after this share of it."""
    if isinstance(label, bool):
        return None
    if isinstance(label, int | float):
        return float(label)
    if isinstance(label, list) and len(label) == 2:
        low, high = label
        if isinstance(low, int | float) and isinstance(high, int | float):
            return low + share * (high - low)
    return None
