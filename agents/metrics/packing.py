"""Prometheus metrics of one packer process, on a registry of its own."""

from collections.abc import Collection
from contextlib import suppress

from prometheus_client import Counter, Gauge

from ldpstream.agents.metrics.exposition import ProcessMetrics


class PackMetrics(ProcessMetrics):
    """The metrics of a packer."""

    def __init__(self, collections: Collection[str]) -> None:
        super().__init__()
        self._records, self._messages, self._bytes, self._left_out, self._failures = (
            Counter(f"ldpstream_pack_{name}", text, ["collection"], registry=self.registry)
            for name, text in (
                ("records", "Source records in acknowledged packed messages"),
                ("messages", "Packed messages acknowledged"),
                ("bytes", "Bytes of acknowledged packed messages, before compression"),
                ("left_out", "Source records too large to be packed, left to workers"),
                ("send_failures", "Packed messages not acknowledged, and sent again"),
            )
        )
        self._lag = Gauge(
            "ldpstream_pack_lag_records",
            "Source records not packed yet, of owned partitions",
            ["collection", "partition"],
            registry=self.registry,
        )
        for name in collections:
            for counter in (self._records, self._messages, self._bytes):
                counter.labels(name)
            self._left_out.labels(name)
            self._failures.labels(name)

    def packed(self, collection: str, records: int, size_bytes: int) -> None:
        """Count an acknowledged message, its records and bytes."""
        self._records.labels(collection).inc(records)
        self._messages.labels(collection).inc()
        self._bytes.labels(collection).inc(size_bytes)

    def left_out(self, collection: str, records: int) -> None:
        """Count records that were too large."""
        self._left_out.labels(collection).inc(records)

    def failed(self, collection: str) -> None:
        """Count a message that was not acknowledged."""
        self._failures.labels(collection).inc()

    def lag(self, collection: str, partition: int, records: int | None) -> None:
        """Set how far a partition is behind; None if it is no longer owned."""
        if records is not None:
            self._lag.labels(collection, str(partition)).set(records)
        else:
            with suppress(KeyError):
                self._lag.remove(collection, str(partition))
