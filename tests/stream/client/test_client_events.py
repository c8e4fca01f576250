"""Live updates with the typed client: over broken connections, in pieces of any length."""

import asyncio
import json
from contextlib import aclosing

import pytest
from aiohttp.test_utils import TestServer

from ldpstream.agents.client import Client, Event, UnavailableError, connect
from ldpstream.agents.document.client import session
from ldpstream.agents.document.client.transport import EVENT_BYTES, EventReader
from ldpstream.agents.web import build_http, events
from tests.ports import free_ports
from tests.stream.asking import three_collections
from tests.stream.serving import MINUTE_MS, START_MS, Pipeline, visits


@pytest.fixture
def pipeline(monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    monkeypatch.setattr(events, "_TICK_SECONDS", 0.01)
    monkeypatch.setattr(session, "_AGAIN_SECONDS", 0.02)
    return three_collections()


async def test_events_resume_after_a_broken_connection(pipeline: Pipeline) -> None:
    """No final is missed and none comes twice, though the worker restarts in between."""
    city = pipeline.collections["city"]
    (port,) = free_ports(1)
    found: list[Event] = []

    async def follow(worker: Client) -> None:
        async with aclosing(worker.events("city", after=0)) as stream:
            async for event in stream:
                found.append(event)

    def finals() -> list[int | None]:
        return [event.id for event in found if event.kind == "final"]

    async with connect(f"http://127.0.0.1:{port}") as worker, asyncio.timeout(60):
        following = asyncio.create_task(follow(worker))
        for minute in range(1, 4):
            async with TestServer(build_http(pipeline), port=port):
                while len(finals()) < minute:  # noqa: ASYNC110 (a look from outside)
                    await asyncio.sleep(0.01)
            times = [START_MS + (minute + 1) * MINUTE_MS] * 20
            city.report(0, visits(minute, 20), times_ms=times)
            city.close(START_MS + (minute + 1) * MINUTE_MS)
        following.cancel()
    assert finals() == [START_MS + i * MINUTE_MS for i in range(3)]
    assert all(event.document.final == (event.kind == "final") for event in found)


async def test_a_stream_without_reconnection_ends_with_its_connection(
    worker: Client, pipeline: Pipeline
) -> None:
    stream = worker.events("city", again=False)
    first = await anext(stream)
    assert (first.kind, first.id, first.document.n) == ("provisional", None, 400)
    pipeline.collections["city"].replicas[0].head = None
    assert [event async for event in stream] == []
    with pytest.raises(UnavailableError):
        await anext(worker.events("city", again=False))


async def test_heartbeats_yield_no_events(
    worker: Client, monkeypatch: pytest.MonkeyPatch, pipeline: Pipeline
) -> None:
    monkeypatch.setattr(events, "HEARTBEAT_SECONDS", 0.01)
    stream = worker.events("rides")
    waiting = asyncio.create_task(anext(stream))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    pipeline.collections["rides"].report(0, ["bus"], times_ms=[START_MS])
    assert (await waiting).document.withheld
    await stream.aclose()


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_events_are_parsed_from_pieces_of_any_length(size: int) -> None:
    head = {"collection": "c", "fingerprint": "00", "window": None, "n": 1, "withheld": True}
    final, open_ = (json.dumps({**head, "final": final}) for final in (True, False))
    wire = (
        f"retry: 2000\n\n: alive\n\nevent: final\nid: 60000\ndata: {final}\n\n"
        f"event: other\ndata: x\n\nevent: provisional\ndata: {open_}\n\nevent: final\nid: 12"
    ).encode()
    reader = EventReader(None)
    pieces = (wire[i : i + size] for i in range(0, len(wire), size))
    found = [event for piece in pieces for event in reader.feed(piece)]
    assert [(event.kind, event.id) for event in found] == [("final", 60_000), ("provisional", None)]
    assert reader.last_id == 60_000
    reader.restart()
    assert list(reader.feed(b"\n\n")) == []
    with pytest.raises(ValueError, match="expected events of at most"):
        list(reader.feed(b"x" * (EVENT_BYTES + 1)))
