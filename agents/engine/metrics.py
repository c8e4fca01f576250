"""Prometheus metrics of one worker process, on a registry of its own.

Counters are local to the process and advance with each commit record that wins. After a restart
they start at zero, as Prometheus expects; the sum over workers is what was decided while they ran.
Gauges are read from the pipeline at every scrape (`ldpstream.agents.engine.gauges`).

Labels are collections, partitions, results, reasons and the names of configured queries: never a
device, and never a value that the configuration does not list.

`ProcessMetrics` writes all of them as text, several times faster than `prometheus_client` does: a
worker with many partitions has ten thousand samples, and most of a sample's line never changes. The
output is the same, byte for byte, except for the library's lines with the times at which counters
were created. Samples have no timestamps and no exemplars.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Final, cast

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST as OPEN_METRICS
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from ldpstream import __version__
from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.document.model import EstimateDocument
from ldpstream.agents.state.classification import DELAY_MS, LATENESS_MS, Buckets, Delays
from ldpstream.agents.state.flushes import Outcome
from ldpstream.agents.state.records import REASONS, TOKEN_REASONS

_SERIES: Final = 1 << 17
_number = cast("Callable[[float], str]", floatToGoString)
_CREATED: Final = "_created"
_END: Final = b"# EOF\n"
RESULTS: Final = ("counted", "late", "rejected")
_TIME_BUCKETS_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_AGE_BUCKETS_SECONDS: Final = (0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 86400.0)


@dataclass(frozen=True)
class PublishedDocument:
    """What was published of the window that starts at `start_ms`; parsed at the next scrape."""

    start_ms: int
    content: bytes

    @cached_property
    def document(self) -> EstimateDocument:
        """The content as a document."""
        return EstimateDocument.model_validate_json(self.content)


class _Headed(Collector):
    """One family without samples, for which the library writes only the header."""

    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> Iterator[Metric]:
        yield self._family


class ProcessMetrics:
    """The metrics of a process; the global registry of `prometheus_client` is never touched.

    A given `registry` gets only these metrics, because an application that embeds the pipeline has
    its own process metrics. A new one also has the process's memory and CPU time.
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        if registry is None:
            registry = CollectorRegistry()
            ProcessCollector(registry=registry)
            PlatformCollector(registry=registry)
        self.registry = registry

    def exposition(self, *, accept: str = "", names: Collection[str] = ()) -> tuple[bytes, str]:
        """Return metrics and their media type, in the format that an Accept header requests.

        With `names` only the metrics of these names, such as `ldpstream_lag_offsets`.
        """
        registry = self.registry.restricted_registry(names) if names else self.registry
        encode, content_type = choose_encoder(accept)
        plain, written = content_type.startswith("text/plain"), list[bytes]()
        if not plain and not content_type.startswith(OPEN_METRICS):
            return encode(registry), content_type

        for family in registry.collect():
            head = Metric(family.name, family.documentation, family.type, family.unit)
            written.append(encode(_Headed(head)).removesuffix(_END))
            created = family.name + _CREATED
            lines = [
                f"{_series(s.name, tuple(s.labels.items()))} {_number(s.value)}\n"
                for s in family.samples
                if s.name != created
            ]
            written.append("".join(lines).encode())
        return b"".join(written) + (b"" if plain else _END), content_type


@lru_cache(maxsize=_SERIES)
def _series(name: str, labels: tuple[tuple[str, str], ...]) -> str:
    """Return a sample's line up to its value; names of metrics and labels need no escaping."""
    if not labels:
        return name
    shown = ",".join(f'{label}="{_quoted(value)}"' for label, value in sorted(labels))
    return f"{name}{{{shown}}}"


def _quoted(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


class _DelayCollector(Collector):
    """Adds up how late and how old reports arrive, a batch at a time.

    `prometheus_client`'s own histograms take only one observation per call.
    """

    def __init__(self) -> None:
        self._delays: dict[str, Delays] = {}

    def add(self, collection: str, delays: Delays) -> None:
        """Add a batch of delays to those of a collection."""
        before = self._delays.get(collection)
        self._delays[collection] = delays if before is None else before + delays

    def describe(self) -> Iterator[HistogramMetricFamily]:
        """Return the metrics without samples."""
        yield from _delay_families()

    def collect(self) -> Iterator[HistogramMetricFamily]:
        """Return both histograms with their current values."""
        lateness, delay = _delay_families()
        for name, delays in self._delays.items():
            _add_histogram(lateness, name, LATENESS_MS, delays.lateness)
            _add_histogram(delay, name, DELAY_MS, delays.delay)
        yield from (lateness, delay)


def _delay_families() -> tuple[HistogramMetricFamily, HistogramMetricFamily]:
    return (
        HistogramMetricFamily(
            "ldpstream_lateness_seconds",
            "The least grace with which a counted or late report would have been counted",
            labels=["collection"],
        ),
        HistogramMetricFamily(
            "ldpstream_delay_seconds",
            "From a report's event time to its arrival, below 0 if dated ahead (only buckets)",
            labels=["collection"],
        ),
    )


def _add_histogram(
    family: HistogramMetricFamily, collection: str, bounds_ms: Sequence[int], delays: Buckets
) -> None:
    bounds = [*(str(bound / 1000) for bound in bounds_ms), "+Inf"]
    counts = map(float, accumulate(delays.counts.tolist()))
    buckets = list(zip(bounds, counts, strict=True))
    family.add_metric([collection], buckets, sum_value=delays.sum_ms / 1000)


class Metrics(ProcessMetrics):
    """The metrics of one worker: public ones are counted or observed where they arise."""

    def __init__(self, *, registry: CollectorRegistry | None = None) -> None:
        super().__init__(registry)
        registry = self.registry
        self.documents: dict[str, PublishedDocument] = {}
        self._reports = Counter(
            "ldpstream_reports",
            "Reports decided by this worker: counted, late or rejected",
            ["collection", "result"],
            registry=registry,
        )
        self._accepted = Counter(
            "ldpstream_accepted_reports",
            "The part of ldpstream_reports_total under specs that a collection accepts",
            ["collection", "fingerprint", "result"],
            registry=registry,
        )
        self._rejected = Counter(
            "ldpstream_rejected",
            "The rejected among ldpstream_reports_total, by reason",
            ["collection", "reason"],
            registry=registry,
        )
        self._lost_offsets = Counter(
            "ldpstream_lost_offsets",
            "Source offsets that retention deleted before they were read",
            ["collection"],
            registry=registry,
        )
        self.refused_orders = Counter(
            "ldpstream_refused_orders",
            "Invalid messages of the control topic, from its beginning at each start",
            ["collection"],
            registry=registry,
        )
        self.flush_seconds = Histogram(
            "ldpstream_flush_seconds",
            "Time of a flush, from its first record sent to its commit record read back",
            ["collection"],
            buckets=_TIME_BUCKETS_SECONDS,
            registry=registry,
        )
        self.http_seconds = Histogram(
            "ldpstream_http_seconds",
            "Time from a request to its answer, by operationId of /openapi.json and status",
            ["operation", "status"],
            buckets=_TIME_BUCKETS_SECONDS,
            registry=registry,
        )
        self.http_streams = Gauge(
            "ldpstream_http_streams",
            "Open streams of live updates, of at most 64",
            ["collection"],
            registry=registry,
        )
        self.answer_seconds = Histogram(
            "ldpstream_answer_seconds",
            "Time to compute an estimate that is asked for over HTTP, without the wait for a turn",
            ["collection"],
            buckets=_TIME_BUCKETS_SECONDS,
            registry=registry,
        )
        self.final_age_seconds = Histogram(
            "ldpstream_final_age_seconds",
            "Time from the end of a window to the publication of its final",
            ["collection"],
            buckets=_AGE_BUCKETS_SECONDS,
            registry=registry,
        )
        Gauge("ldpstream_build_info", "Always 1", ["version"], registry=registry).labels(
            __version__
        ).set(1)
        self._delays = _DelayCollector()
        registry.register(self._delays)

    def begin(self, collections: Iterable[CollectionConfig]) -> None:
        """Export the counters of collections from zero."""
        for config in collections:
            name = config.name
            for accepted in config.accept:
                for result in RESULTS:
                    self._accepted.labels(name, accepted.spec.fingerprint.hex(), result)
            for result in RESULTS:
                self._reports.labels(name, result)
            specs = (each.spec for each in (config, *config.accept))
            without = () if any(spec.one_report for spec in specs) else TOKEN_REASONS
            for reason in REASONS:
                if reason not in without:
                    self._rejected.labels(name, reason)
            self._lost_offsets.labels(name)
            self.http_streams.labels(name)
            for histogram in (self.flush_seconds, self.answer_seconds, self.final_age_seconds):
                histogram.labels(name)
            self._delays.add(name, Delays())
            self.refused_orders.labels(name)

    def count_commit(
        self, collection: str, outcome: Outcome, *, accepted: str | None = None
    ) -> None:
        """Add the outcome of a commit record that won.

        `accepted` is the fingerprint of an accepted spec, None for the collection's own.
        """
        rejected = sum(outcome.rejected.values())
        counts = outcome.counted, outcome.late, rejected
        for result, count in zip(RESULTS, counts, strict=True):
            self._reports.labels(collection, result).inc(count)
            if accepted is not None:
                self._accepted.labels(collection, accepted, result).inc(count)
        for reason, count in outcome.rejected.items():
            self._rejected.labels(collection, reason).inc(count)
        self._lost_offsets.labels(collection).inc(outcome.lost_offsets)
        self._delays.add(collection, outcome.delays)

    def estimated(self, collection: str, start_ms: int, content: bytes) -> None:
        """Export the queries of a published document as gauges, if its window is the newest.

        `start_ms` is the start of its window, `content` what was published.
        They are exported only while this worker owns partition 0, so that one worker at a time
        exports a collection.
        """
        before = self.documents.get(collection)
        if before is None or start_ms >= before.start_ms:
            self.documents[collection] = PublishedDocument(start_ms, content)
