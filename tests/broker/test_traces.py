"""Spans of a device, a gateway and a worker: what was done, and never for whom."""

import json
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from ldpstream.agents.broker import traces
from ldpstream.agents.device import Sender
from tests.broker.conftest import on_one_broker
from tests.forked import MAIN, Forked
from tests.gateway.serving import gateway
from tests.lab import START_MS, Lab
from tests.ledger import WINDOW_MS
from tests.processes import Worker, eventually

_TO_FILE = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
provider = TracerProvider(shutdown_on_exit=False)
line = lambda one: one.to_json(indent=None) + "\\n"
provider.add_span_processor(
    SimpleSpanProcessor(ConsoleSpanExporter(out=open({file!r}, "w"), formatter=line))
)
trace.set_tracer_provider(provider)
"""
COUNTS = {"ldpstream.collection", "ldpstream.partition"}


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """The spans of this process."""
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(traces, "_TRACER", provider.get_tracer("ldpstream"))
    return exporter


@pytest.mark.broker
@on_one_broker
async def test_a_device_and_a_worker_record_what_they_do(
    lab: Lab, spans: InMemorySpanExporter, tmp_path: Path
) -> None:
    file = tmp_path / "spans"
    words = ["worker", "-c", str(lab.file)]
    worker = Worker(Forked(words, program=_TO_FILE.format(file=str(file)) + MAIN, strict=True))
    try:
        worker.wait_ready()
        async with Sender(
            lab.collection.spec, lab.broker.bootstrap, options=lab.broker.options
        ) as sender:
            await sender.send([3] * 200, times_ms=[START_MS] * 200)
        await lab.close(START_MS + WINDOW_MS)
        await eventually(lambda: "final.publish" in file.read_text())
    finally:
        worker.kill()
    (sent,) = spans.get_finished_spans()
    assert (sent.name, dict(sent.attributes or {})) == (
        "ldpstream.device.produce",
        {"ldpstream.collection": "trips"},
    )
    # The record has no trace in it.
    (record, *_) = await lab.records(lab.collection.topics.source)
    assert record.headers == ()
    exported: list[dict[str, Any]] = [json.loads(line) for line in file.read_text().splitlines()]
    by_id = {one["context"]["span_id"]: one["name"] for one in exported}
    steps = {(one["name"], by_id.get(one["parent_id"])) for one in exported}
    assert steps >= {
        ("ldpstream.flush.copies", "ldpstream.flush"),
        ("ldpstream.flush.send", "ldpstream.flush"),
        ("ldpstream.final.publish", None),
    }
    for one in exported:
        extra = one["attributes"].keys() - COUNTS
        assert extra <= {"ldpstream.copies", "ldpstream.cells", "ldpstream.windows"}
        assert one["events"] == []


async def test_the_span_of_a_refused_upload_names_the_kind_of_its_error_alone(
    spans: InMemorySpanExporter, tmp_path: Path
) -> None:
    async with gateway(tmp_path, linger="1ms") as running:
        assert (await running.post(running.frame(2)))[0] == 200
        assert (await running.post(b"no frame"))[0] == 400
    taken, refused = (
        one for one in spans.get_finished_spans() if one.name == "ldpstream.gateway.upload"
    )
    assert taken.status.is_ok
    assert refused.status.description == "UploadRefusedError"
    for one in (taken, refused):
        assert dict(one.attributes or {}) == {"ldpstream.collection": "modes"}
        assert one.events == ()


async def test_without_the_api_no_span_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "_TRACER", None)
    with pytest.raises(KeyError), traces.span("flush", "trips", partition=0):
        raise KeyError
