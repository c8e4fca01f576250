"""Histograms of how late reports arrive, updated a batch at a time.

`prometheus_client`'s own histograms take only one observation per call.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate

from prometheus_client.core import HistogramMetricFamily
from prometheus_client.registry import Collector

from ldpstream.agents.partition.delays import DELAY_MS, LATENESS_MS, Buckets, Delays


class DelayCollector(Collector):
    """Adds up the delays of reports by collection."""

    def __init__(self) -> None:
        self._found: dict[str, Delays] = {}

    def add(self, collection: str, delays: Delays) -> None:
        """Add a batch of delays to those of a collection."""
        before = self._found.get(collection)
        self._found[collection] = delays if before is None else before + delays

    def describe(self) -> Iterator[HistogramMetricFamily]:
        """Return the metrics without samples."""
        yield from _families()

    def collect(self) -> Iterator[HistogramMetricFamily]:
        """Return both histograms with their current values."""
        lateness, delay = _families()
        for name, delays in self._found.items():
            _show(lateness, name, LATENESS_MS, delays.lateness)
            _show(delay, name, DELAY_MS, delays.delay)
        yield from (lateness, delay)


def _families() -> tuple[HistogramMetricFamily, HistogramMetricFamily]:
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


def _show(
    family: HistogramMetricFamily, collection: str, bounds_ms: Sequence[int], found: Buckets
) -> None:
    bounds = [*(str(bound / 1000) for bound in bounds_ms), "+Inf"]
    counts = map(float, accumulate(found.counts.tolist()))
    buckets = list(zip(bounds, counts, strict=True))
    family.add_metric([collection], buckets, sum_value=found.sum_ms / 1000)
