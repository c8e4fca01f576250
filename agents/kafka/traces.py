"""Spans of OpenTelemetry, where its API is installed and the program has set up an SDK.

A span says what was done, for which collection, and how long it took. It names no device, key,
token, address, value or time of an event, and of an error its type alone, whose text might. Nothing
of a trace goes into a message: a trace id would join what a device sends.
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


@contextmanager
def span(name: Name, collection: str, **counts: int) -> Iterator[None]:
    """Do what is inside as a span `ldpstream.NAME`, with attributes `ldpstream.*`.

    `counts` are the partition, or how many things are done; without the API nothing is noted.
    """
    if _TRACER is None:
        yield
        return
    values = {"collection": collection, **counts}
    attributes = {f"ldpstream.{key}": value for key, value in values.items()}
    with _TRACER.start_as_current_span(
        f"ldpstream.{name}",
        attributes=attributes,
        record_exception=False,
        set_status_on_exception=False,
    ) as one:
        try:
            yield
        except BaseException as error:
            one.set_status(trace.Status(trace.StatusCode.ERROR, type(error).__name__))
            raise
