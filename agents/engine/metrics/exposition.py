"""The metrics of a process as text, several times faster than `prometheus_client` writes them.

A worker with many partitions has ten thousand samples, and most of a sample's line never changes.
The output is the same, byte for byte, except for the library's lines with the times at which
counters were created. Samples have no timestamps and no exemplars.
"""

from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from typing import Final, cast

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST as OPEN_METRICS
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

_SERIES: Final = 1 << 17
_number = cast("Callable[[float], str]", floatToGoString)
_CREATED: Final = "_created"
_END: Final = b"# EOF\n"


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
