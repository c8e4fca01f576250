"""Write metrics in the text formats of Prometheus, several times faster than `prometheus_client`.

A worker with many partitions has ten thousand samples, and most of a sample's line never changes.
The output is the same, byte for byte, except for the library's lines with the times at which
counters were created. Samples have no timestamps and no exemplars.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final, cast

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST as OPEN_METRICS
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


def expose(registry: CollectorRegistry, *, accept: str) -> tuple[bytes, str]:
    """Return all metrics and their media type, in the format that an Accept header requests."""
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
