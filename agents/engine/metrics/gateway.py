"""Prometheus metrics of one gateway process, on a registry of its own; none identifies a device."""

from collections.abc import Collection

from prometheus_client import Counter, Gauge, Histogram

from ldpstream.agents.engine.metrics.exposition import ProcessMetrics

RESULTS = (
    "accepted",
    "repeated",
    "undecodable",
    "time",
    "precision",
    "partition",
    "range",
    "several",
    "alone",
    "fingerprint",
    "key",
    "unauthorized",
    "too_large",
    "media_type",
    "full",
    "unavailable",
)
"""The outcomes of an upload to an existing collection."""
_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class GatewayMetrics(ProcessMetrics):
    """The metrics of a gateway."""

    def __init__(self, collections: Collection[str]) -> None:
        super().__init__()
        self._uploads = Counter(
            "ldpstream_gateway_uploads",
            "Uploads answered: accepted, repeated, to repeat (full, unavailable), or why refused",
            ["collection", "result"],
            registry=self.registry,
        )
        self._reports = Counter(
            "ldpstream_gateway_reports",
            "Reports that the broker has, each once",
            ["collection"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "ldpstream_gateway_upload_seconds",
            "From an upload's headers to its answer",
            ["collection"],
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.queue, self.queue_bytes, self.remembered, self.connections = (
            Gauge(f"ldpstream_gateway_{name}", text, registry=self.registry)
            for name, text in (
                ("queue_uploads", "Uploads waiting for the broker"),
                ("queue_bytes", "Bytes of the uploads waiting for the broker"),
                ("remembered_uploads", "Accepted uploads whose keys are known"),
                ("open_connections", "Open connections"),
            )
        )
        for name in collections:
            self._reports.labels(name)
            self._seconds.labels(name)
            for result in RESULTS:
                self._uploads.labels(name, result)

    def answered(self, collection: str, result: str, *, seconds: float) -> None:
        """Count an answered upload."""
        self._uploads.labels(collection, result).inc()
        self._seconds.labels(collection).observe(seconds)

    def accepted(self, collection: str, reports: int) -> None:
        """Count reports that the broker has."""
        self._reports.labels(collection).inc(reports)
