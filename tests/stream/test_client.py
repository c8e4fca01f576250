"""The typed client against a served pipeline: models, pages, events, errors, tokens."""

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from ldpstream.agents import client as api
from ldpstream.agents.client import (
    AddressError,
    Client,
    EstimateRequest,
    Event,
    LinearRequest,
    NotAWorkerError,
    RefusedError,
    TokenRefusedError,
    UnavailableError,
    UnreachableError,
    connect,
    session,
    transport,
)
from ldpstream.agents.client.stream import EVENT_BYTES, EventReader
from ldpstream.agents.http import build_http, events, feed
from ldpstream.agents.http.access import Access
from ldpstream.mechanisms.times import format_time
from tests.ports import free_ports
from tests.stream.asking import FIRST, three_collections
from tests.stream.serving import CITY, MINUTE_MS, START_MS, Pipeline, serve_collections, visits

TOKEN = "correct-horse-battery-staple"


@pytest.fixture
def pipeline(monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    monkeypatch.setattr(feed, "_TICK_SECONDS", 0.01)
    monkeypatch.setattr(session, "_AGAIN_SECONDS", 0.02)
    return three_collections()


@pytest.fixture
async def worker(pipeline: Pipeline) -> AsyncIterator[Client]:
    async with (
        TestServer(build_http(pipeline)) as server,
        connect(str(server.make_url("/"))) as made,
    ):
        yield made


def minutes(documents: list[Any]) -> list[str]:
    return [one.window.start[11:16] for one in documents]


async def test_every_answer_is_a_model(worker: Client) -> None:
    assert [one.name for one in await worker.collections()] == ["city", "rides", "ages"]
    assert (await worker.collection("city")).values == 60
    assert (await worker.status("city")).counted == 800
    assert (await worker.readiness()).ready
    newest = await worker.estimate("city")
    assert (newest.n, newest.final, len(newest.distribution)) == (400, False, 5)
    asked = EstimateRequest(
        start=FIRST[0],
        end=FIRST[1],
        top=2,
        ranges=["0..1,0..4"],
        linear=[LinearRequest(name="one", weights=[1.0] * 60)],
    )
    document = await worker.estimate("city", asked)
    assert (document.final, len(document.distribution)) == (True, 2)
    assert (document.ranges[0].name, document.linear[0].mean) == ("0..1,0..4", 1.0)
    stored = await worker.final("city", FIRST[0])
    assert (stored.final, stored.n, stored.late) == (True, 400, 0)


async def test_windows_come_page_by_page(worker: Client, pipeline: Pipeline) -> None:
    city = pipeline.collections["city"]
    for minute in range(2, 7):
        city.report(0, visits(minute, 5), times_ms=[START_MS + minute * MINUTE_MS] * 5)
    every = [f"10:0{i}" for i in range(7)]
    for page in (1, 2, 3, 100):
        assert minutes([one async for one in worker.windows("city", page=page)]) == every
        assert minutes(await worker.newest("city", 100, page=page)) == every
        assert minutes(await worker.newest("city", 4, page=page)) == every[3:]
        start, end = (format_time(START_MS + i * MINUTE_MS) for i in (1, 5))
        found = [one async for one in worker.windows("city", start=start, end=end, page=page)]
        assert minutes(found) == every[1:5]
        assert minutes(await worker.newest("city", 2, end=end, page=page)) == every[3:5]
    hopping = [one async for one in worker.windows("ages", page=1)]
    assert minutes(hopping) == ["09:59", "10:00"]
    assert [one async for one in worker.windows("rides")] == []


async def test_events_go_on_over_connections_that_break(pipeline: Pipeline) -> None:
    """No final is missed and none comes twice, though the worker is restarted in between."""
    city = pipeline.collections["city"]
    (port,) = free_ports(1)
    found: list[Event] = []

    async def follow(worker: Client) -> None:
        async with aclosing(worker.events("city", after=0)) as stream:
            async for event in stream:
                found.append(event)

    def finals() -> list[int | None]:
        return [event.id for event in found if event.kind == "final"]

    async with connect(f"http://127.0.0.1:{port}") as worker, asyncio.timeout(20):
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


async def test_a_stream_may_be_read_once(worker: Client, pipeline: Pipeline) -> None:
    stream = worker.events("city", again=False)
    first = await anext(stream)
    assert (first.kind, first.id, first.document.n) == ("provisional", None, 400)
    pipeline.collections["city"].tails[0].head = None
    assert [event async for event in stream] == []
    with pytest.raises(UnavailableError):
        await anext(worker.events("city", again=False))


async def test_refusals_are_errors_with_the_workers_words(worker: Client) -> None:
    with pytest.raises(RefusedError, match="no such collection; expected one of city") as refused:
        await worker.status("nowhere")
    assert refused.value.status == 404
    with pytest.raises(RefusedError, match="end: expected start and end") as refused:
        await worker.estimate("city", EstimateRequest(start=0))
    assert refused.value.status == 400
    with pytest.raises(RefusedError, match="no such collection"):
        await anext(worker.events("nowhere"))
    with pytest.raises(RefusedError, match="start: expected the start of a final"):
        await worker.final("city", "0")


async def test_who_is_no_worker_or_not_ready_or_not_there() -> None:
    pipeline = serve_collections({"city": CITY}, read=False)
    async with (
        TestServer(build_http(pipeline)) as server,
        connect(str(server.make_url("/"))) as worker,
    ):
        assert not (await worker.readiness()).ready
        with pytest.raises(UnavailableError, match="has not been read to the end yet"):
            await worker.estimate("city")

    async def odd(request: web.Request) -> web.Response:
        return web.json_response({"hello": request.path})

    async def away(_: web.Request) -> web.Response:
        raise web.HTTPFound("/elsewhere")

    app = web.Application()
    app.router.add_get("/api/collections", odd)
    app.router.add_get("/api/collections/city/events", odd)
    app.router.add_get("/api/collections/city", away)
    async with TestServer(app) as server, connect(str(server.make_url("/"))) as worker:
        with pytest.raises(NotAWorkerError, match="answer of a worker of this version"):
            await worker.collections()
        with pytest.raises(NotAWorkerError, match="got HTTP status 404"):
            await worker.status("city")
        with pytest.raises(NotAWorkerError, match="got HTTP status 302"):
            await worker.collection("city")
        with pytest.raises(NotAWorkerError, match="got HTTP status 200"):
            await anext(worker.events("city"))
    async with connect(f"http://127.0.0.1:{free_ports(1)[0]}") as worker:
        with pytest.raises(UnreachableError, match="no worker answers at"):
            await worker.collections()
        with pytest.raises(UnreachableError):
            await anext(worker.events("city", again=False))
    for url in ("localhost:6066", "ftp://x"):
        with pytest.raises(AddressError, match="expected a URL such as"):
            async with connect(url):
                pass


async def test_somebody_who_takes_connections_and_says_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transport, "PATIENCE_SECONDS", 0.1)
    silent = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{silent.getsockname()[1]}"
    with silent:
        async with connect(url) as worker, asyncio.timeout(20):
            with pytest.raises(UnreachableError, match=r"has not answered for 0\.1 s: is it a"):
                await worker.status("city")
        async with connect(url, timeout_seconds=0.2) as worker, asyncio.timeout(20):
            with pytest.raises(UnreachableError, match=r"has not answered for 0\.2 s: is it a"):
                await worker.estimate("city")


async def test_the_token_goes_to_the_worker_and_into_no_message(pipeline: Pipeline) -> None:
    app = build_http(pipeline, access=Access(token=TOKEN.encode()))
    async with TestServer(app) as server:
        url = str(server.make_url("/"))
        async with connect(url, token=TOKEN) as worker:
            assert len(await worker.collections()) == 3
            assert (await anext(worker.events("city"))).document.n == 400
        for wrong in (None, "some-other-token-that-is-wrong"):
            async with connect(url, token=wrong) as worker:
                with pytest.raises(TokenRefusedError) as refused:
                    await worker.collections()
                assert refused.value.status == 401
                assert "wrong" not in str(refused.value)
                with pytest.raises(TokenRefusedError):
                    await anext(worker.events("city"))


async def test_heartbeats_are_no_events(
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
def test_events_are_read_out_of_pieces_of_any_length(size: int) -> None:
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


def test_the_package_offers_what_it_says() -> None:
    assert all(hasattr(api, name) for name in api.__all__)


async def test_the_program_of_the_documentation_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (Path(__file__).parents[2] / "docs/http.md").read_text()
    (program,) = re.findall(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    modes = {
        "mechanism": "block-hadamard",
        "epsilon": 1.0,
        "domain": {"values": ["bus", "train", "walk", "car"]},
        "window": {"size": "1m"},
    }
    pipeline = serve_collections({"modes": modes})
    pipeline.collections["modes"].report(0, ["bus"] * 300, times_ms=[START_MS] * 300)
    async with TestServer(build_http(pipeline)) as server:
        here = program.replace("http://127.0.0.1:6066", str(server.make_url("/")))
        names: dict[str, Any] = {}
        exec(here.replace("asyncio.run(main())", ""), names)
        running = asyncio.create_task(names["main"]())
        said = ""
        async with asyncio.timeout(10):
            while "provisional 300" not in said:
                await asyncio.sleep(0.02)
                said += capsys.readouterr().out
        running.cancel()
    assert said.startswith("bus ")
    assert "2026-11-21T10:00:00Z 300 False" in said


async def test_every_request_may_name_a_spec(worker: Client) -> None:
    own = {"fingerprint": (await worker.collection("city")).fingerprint}
    assert (await worker.estimate("city", **own)).fingerprint == own["fingerprint"]
    assert (await worker.final("city", FIRST[0], **own)).n == 400
    first = await anext(worker.events("city", **own))
    assert first.document.fingerprint == own["fingerprint"]
    strange = {"fingerprint": "00" * 8}
    for ask in (
        lambda: worker.estimate("city", **strange),
        lambda: worker.final("city", FIRST[0], **strange),
        lambda: anext(worker.events("city", **strange)),
    ):
        with pytest.raises(RefusedError, match="fingerprint: expected one of "):
            await ask()
