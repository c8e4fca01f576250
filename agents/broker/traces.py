"""OpenTelemetry spans, if the API is installed and the program has set up an SDK.

A span says what was done, for which collection, and how long it took. It contains no device, key,
token, address, value or event time, and only the type of an error, because its text might. Messages
contain no trace id, which would link what a device sends.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

_TRACER: Any
try:
    from opentelemetry import trace

    _TRACER = trace.get_tracer("ldpstream")
except ImportError:
    _TRACER = None

Name = Literal[
    "device.produce",
    "gateway.upload",
    "flush",
    "flush.copies",
    "flush.send",
    "final.publish",
]


def _goes_nowhere() -> bool:
    """Whether no provider is set yet: the API's spans go nowhere then, and yet take time."""
    unset = isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
    return unset and isinstance(_TRACER, trace.ProxyTracer)


@contextmanager
def span(name: Name, collection: str, **counts: int) -> Iterator[None]:
    """Run a block as a span `ldpstream.NAME`, with attributes `ldpstream.*`.

    `counts` are the partition, or numbers of things done. Does nothing without the API.
    """
    if _TRACER is None or _goes_nowhere():
        yield
        return
    values = {"collection": collection, **counts}
    attributes = {f"ldpstream.{key}": value for key, value in values.items()}
    with _TRACER.start_as_current_span(
        f"ldpstream.{name}",
        attributes=attributes,
        record_exception=False,
        set_status_on_exception=False,
    ) as current:
        try:
            yield
        except BaseException as error:
            current.set_status(trace.Status(trace.StatusCode.ERROR, type(error).__name__))
            raise
