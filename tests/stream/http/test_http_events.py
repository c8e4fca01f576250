"""Server-sent events: finals in order, resumed streams, provisional documents, slow readers."""

import asyncio
import contextlib
import json
import socket
from typing import Any, NamedTuple

import pytest
from aiohttp import ClientResponse
from aiohttp.test_utils import TestClient, TestServer

from ldpstream.agents.web import build_http, events
from ldpstream.agents.web.events import FEEDS
from tests.pages import agrees, shown_alone
from tests.replicas import final_document
from tests.stream.asking import Client, ask
from tests.stream.serving import CITY, MINUTE_MS, START_MS, Pipeline, serve_collections, visits

PATH = "/api/collections/city/events"
QUICK = {**CITY, "publish": {"every": "50ms", "top": 3}}


class Event(NamedTuple):
    """One event of the stream."""

    kind: str
    id: int | None
    data: dict[str, Any]


@pytest.fixture
def pipeline(monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    monkeypatch.setattr(events, "_TICK_SECONDS", 0.01)
    return serve_collections({"city": QUICK})


def count(pipeline: Pipeline, minute: int, n: int = 100) -> None:
    """Let `n` reports of a minute be counted."""
    times = [START_MS + minute * MINUTE_MS] * n
    pipeline.collections["city"].report(minute % 2, visits(minute, n), times_ms=times)


def close(pipeline: Pipeline, minutes: int) -> None:
    """Close the first minutes."""
    pipeline.collections["city"].close(START_MS + minutes * MINUTE_MS)


async def block(answer: ClientResponse) -> list[str]:
    """Return the lines up to the next empty one."""
    lines: list[str] = []
    async with asyncio.timeout(60):
        while True:
            line = (await answer.content.readline()).decode()
            if line in ("\n", ""):
                return lines
            lines.append(line.removesuffix("\n"))


async def read(answer: ClientResponse, number: int) -> list[Event]:
    """Return the next events."""
    found: list[Event] = []
    while len(found) < number:
        fields = dict(line.split(": ", 1) for line in await block(answer))
        assert fields, "the stream ended"
        if "data" in fields:
            name = int(fields["id"]) if "id" in fields else None
            found.append(Event(fields["event"], name, json.loads(fields["data"])))
    return found


async def finals(answer: ClientResponse, number: int) -> list[int | None]:
    """Return the ids of the next finals, skipping other events."""
    found: list[int | None] = []
    while len(found) < number:
        found += [event.id for event in await read(answer, 1) if event.kind == "final"]
    return found


def start(minute: int) -> int:
    return START_MS + minute * MINUTE_MS


async def test_events_look_as_docs_http_md_shows(client: Client, pipeline: Pipeline) -> None:
    count(pipeline, 0)
    async with client.get(PATH) as answer:
        said = [await block(answer) for _ in range(2)]
        count(pipeline, 1)
        close(pipeline, 1)
        said.append(await block(answer))
    assert said.pop(0) == ["retry: 2000"]
    text = "\n\n".join("\n".join(lines) for lines in said)
    shown = shown_alone("docs/reference/http.md", "Live updates")
    assert agrees(text.replace('"city"', '"checkins"'), shown), text


async def test_open_windows_come_as_provisional_and_then_once_as_their_final(
    client: Client, pipeline: Pipeline
) -> None:
    count(pipeline, 0)
    async with client.get(PATH) as answer:
        assert answer.headers["Content-Type"] == "text/event-stream"
        assert answer.headers["Cache-Control"] == "no-store"
        (first,) = await read(answer, 1)
        assert (first.kind, first.id, first.data["n"]) == ("provisional", None, 100)
        assert first.data == await ask(client, "/api/collections/city/estimate")
        count(pipeline, 0)
        (second,) = await read(answer, 1)
        assert (second.kind, second.data["n"], second.data["final"]) == ("provisional", 200, False)
        count(pipeline, 1)
        close(pipeline, 1)
        found = await read(answer, 2)
    assert {event.kind for event in found} == {"final", "provisional"}
    final = next(event for event in found if event.kind == "final")
    assert final.id == START_MS
    assert final.data == final_document(pipeline.collections["city"], START_MS)


async def test_events_say_where_another_worker_counts_a_part(
    client: Client, pipeline: Pipeline
) -> None:
    count(pipeline, 0)
    pipeline.collections["city"].partial = True
    async with client.get(PATH) as answer:
        (found,) = await read(answer, 1)
    assert found.data["partial"] is True
    assert found.data == await ask(client, "/api/collections/city/estimate")


async def test_a_reader_that_comes_back_misses_no_final_and_gets_none_twice(
    client: Client, pipeline: Pipeline
) -> None:
    for minute in range(6):
        count(pipeline, minute)
    close(pipeline, 4)
    ways: list[dict[str, Any]] = [{"params": {"after": "0"}}, {"headers": {"Last-Event-ID": "0"}}]
    for asked in ways:
        async with client.get(PATH, **asked) as answer:
            assert await finals(answer, 4) == [start(i) for i in range(4)]
    async with client.get(PATH, headers={"Last-Event-ID": str(start(1))}) as answer:
        assert await finals(answer, 2) == [start(2), start(3)]
        close(pipeline, 6)
        assert await finals(answer, 2) == [start(4), start(5)]
    async with client.get(PATH) as answer:
        count(pipeline, 7)
        (only,) = await read(answer, 1)
        assert (only.kind, only.data["n"]) == ("provisional", 100)


async def test_no_provisional_of_a_window_comes_after_its_final(
    client: Client, pipeline: Pipeline
) -> None:
    seen: list[tuple[str, str]] = []
    async with client.get(PATH, params={"after": "0"}) as answer:
        for minute in range(8):
            count(pipeline, minute)
            if minute == 0:
                (event,) = await read(answer, 1)
                seen.append((event.kind, event.data["window"]["start"]))
            await asyncio.sleep(0.02)
            close(pipeline, minute)
        close(pipeline, 8)
        while sum(kind == "final" for kind, _ in seen) < 8:
            (event,) = await read(answer, 1)
            seen.append((event.kind, event.data["window"]["start"]))
    assert {kind for kind, _ in seen} == {"provisional", "final"}
    for position, (kind, window) in enumerate(seen):
        assert kind != "final" or window not in {later for _, later in seen[position + 1 :]}


async def test_silence_is_broken_by_heartbeats(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "HEARTBEAT_SECONDS", 0.02)
    async with client.get(PATH) as answer:
        assert await block(answer) == ["retry: 2000"]
        assert await block(answer) == [": alive"]


async def test_readers_are_limited_and_leave_nothing_behind(
    client: Client, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "READERS_LIMIT", 2)
    feeds = client.server.app[FEEDS]
    async with client.get(PATH), client.get(PATH):
        assert list(feeds.readers.values()) == [2]
        refused = await ask(client, PATH, 503)
        assert refused["error"] == "expected at most 2 readers of events"
    count(pipeline, 0)
    async with asyncio.timeout(60):
        while feeds.readers:
            count(pipeline, 0, n=1)
            await asyncio.sleep(0.02)
    async with client.get(PATH) as answer:
        assert answer.status == 200


async def test_a_reader_that_does_not_read_is_dropped(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "SLOW_SECONDS", 0.2)
    huge = b'{"padding": "%s"}' % (b"x" * 16_000_000)
    monkeypatch.setattr(events.Feed, "content", lambda self, window: huge)
    count(pipeline, 0)
    close(pipeline, 1)
    app = build_http(pipeline)
    async with TestServer(app) as server:
        with contextlib.closing(socket.socket()) as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.connect((server.host, server.port))
            slow.send(f"GET {PATH}?after=0 HTTP/1.1\r\nHost: {server.host}\r\n\r\n".encode())
            async with asyncio.timeout(60):
                while not app[FEEDS].readers:  # noqa: ASYNC110 (a look from outside)
                    await asyncio.sleep(0.01)
                while app[FEEDS].readers:  # noqa: ASYNC110 (a look from outside)
                    await asyncio.sleep(0.01)


async def test_shutting_down_ends_streams_in_an_orderly_way(pipeline: Pipeline) -> None:
    server = TestServer(build_http(pipeline))
    async with TestClient(server) as client, client.get(PATH) as answer:
        assert await block(answer) == ["retry: 2000"]
        async with asyncio.timeout(30):
            await asyncio.gather(server.close(), answer.content.read())
        assert answer.content.is_eof()
        assert answer.content.exception() is None


async def test_a_state_that_breaks_ends_the_stream(client: Client, pipeline: Pipeline) -> None:
    async with client.get(PATH) as answer:
        assert await block(answer) == ["retry: 2000"]
        pipeline.collections["city"].replicas[0].head = None
        async with asyncio.timeout(60):
            assert await answer.content.read() == b""
    assert (await client.get(PATH)).status == 503


@pytest.mark.parametrize("given", ["x", "1e3", "--1", "٣", "9" * 16])
async def test_a_bad_id_is_refused_by_its_name(client: Client, given: str) -> None:
    answer = await client.get(PATH, headers={"Last-Event-ID": given})
    assert answer.status == 400
    assert (await answer.json())["error"].startswith("Last-Event-ID: expected")
