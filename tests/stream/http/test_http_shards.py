"""Any worker answers for any collection: it forwards requests for another shard unchanged."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from ldpstream.agents.broker.shards import Shards
from ldpstream.agents.config import Shard
from ldpstream.agents.web import build_http
from ldpstream.agents.web.forwarder import FORWARDED
from ldpstream.agents.web.requests import Access
from tests.ports import free_ports
from tests.stream.asking import BEARER, CITY_PATH, TOKEN, Client, ask, three_collections
from tests.stream.cli import invoke
from tests.stream.scraped import scrape, value
from tests.stream.serving import Pipeline


class Two(NamedTuple):
    """The workers of shard 1, which has `rides`, and shard 2, which has `city` and `ages`."""

    first: Client
    second: Client
    shards: Shards
    """What the first knows."""


def part(whole: Pipeline, shard: Shard) -> Pipeline:
    """Return the collections of a shard."""
    return Pipeline({name: one for name, one in whole.collections.items() if shard.holds(name)})


@pytest.fixture(scope="module")
def whole() -> Pipeline:
    """Three collections, which these tests only read."""
    return three_collections()


@pytest.fixture
async def two(whole: Pipeline) -> AsyncIterator[Two]:
    access = Access(token=TOKEN.encode())
    configs = {name: one.config for name, one in whole.collections.items()}
    ports = free_ports(2)
    known = [
        Shards(Shard(number + 1, 2), f"http://127.0.0.1:{port}", configs)
        for number, port in enumerate(ports)
    ]
    known[0].read(*known[1].record())
    known[1].read(*known[0].record())
    servers = [
        TestServer(build_http(part(whole, one.shard), access=access, shards=one), port=port)
        for one, port in zip(known, ports, strict=True)
    ]
    async with (
        TestClient(servers[0], headers=BEARER) as first,
        TestClient(servers[1], headers=BEARER) as second,
    ):
        yield Two(first, second, known[0])


PATHS = [
    "/api/collections/city",
    "/api/collections/city/spec",
    "/api/collections/city/status",
    "/api/collections/city/certificate",
    "/api/collections/city/windows?limit=1",
    f"{CITY_PATH}?range=0..3&top=all",
    f"{CITY_PATH}?format=csv",
    f"{CITY_PATH}?start=2026-11-21T10%3A00%3A00Z&end=2026-11-21T10%3A01%3A00Z",
    "/api/collections/city?nonsense=1",
    "/api/collections/none",
    "/openapi.json",
    "/api/collections",
]


async def test_both_workers_answer_the_same(two: Two) -> None:
    for path in PATHS:
        answers = [await client.get(path) for client in (two.first, two.second)]
        bodies = [await answer.read() for answer in answers]
        assert bodies[0] == bodies[1], path
        assert answers[0].status == answers[1].status
        told = [{k: v for k, v in answer.headers.items() if k != "Date"} for answer in answers]
        assert told[0] == told[1]


async def test_tags_bodies_and_heads_are_forwarded(two: Two) -> None:
    answer = await two.first.get(CITY_PATH)
    tagged = {"If-None-Match": answer.headers["ETag"]}
    again = await two.first.get(CITY_PATH, headers=tagged)
    assert (again.status, await again.read()) == (304, b"")
    assert again.headers["ETag"] == answer.headers["ETag"]
    asked = {"top": 3}
    posted = [await client.post(CITY_PATH, json=asked) for client in (two.first, two.second)]
    assert [one.status for one in posted] == [200, 200]
    assert await posted[0].read() == await posted[1].read()
    head = await two.first.head(CITY_PATH)
    assert (head.status, await head.read()) == (200, b"")


async def test_all_collections_are_listed_in_order_and_ready(two: Two) -> None:
    listed = (await ask(two.first, "/api/collections"))["collections"]
    assert [one["name"] for one in listed] == ["city", "rides", "ages"]
    assert all(one["ready"] for one in listed)
    (address,) = two.shards.addresses("city")
    two.shards.read(address.encode(), None)
    listed = (await ask(two.first, "/api/collections"))["collections"]
    assert [one["ready"] for one in listed] == [False, True, False]
    ready = await ask(two.first, "/readyz")
    assert ready == {
        "ready": True,
        "reasons": [f"{name}: shard 2/2 has no worker that answers" for name in ("city", "ages")],
        "waits": [],
    }


async def test_events_are_forwarded_as_they_come(two: Two) -> None:
    async with two.first.get("/api/collections/city/events?after=0") as answer:
        assert answer.headers["Content-Type"] == "text/event-stream"
        lines = [(await answer.content.readline()).decode() for _ in range(6)]
    assert lines[0] == "retry: 2000\n"
    assert lines[2] == "event: final\n"
    assert json.loads(lines[4].removeprefix("data: "))["collection"] == "city"


async def test_a_shard_without_a_worker_is_named(two: Two) -> None:
    problem = {"error": "city: shard 2/2 has no worker that answers"}
    (address,) = two.shards.addresses("city")
    await two.second.close()
    assert await ask(two.first, CITY_PATH, 503) == problem
    two.shards.read(address.encode(), None)
    assert await ask(two.first, CITY_PATH, 503) == problem


async def test_status_shows_what_it_can_and_names_what_is_missing(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LDPSTREAM_TOKEN", TOKEN)
    url = str(two.first.make_url("/"))
    await two.second.close()
    why = [f"{name}: shard 2/2 has no worker that answers" for name in ("city", "ages")]
    for more in ((), ("--json",)):
        result = await asyncio.to_thread(invoke, "status", url, *more)
        assert (result.exit_code, result.stderr) == (1, "\n".join(why) + "\n")
        assert "rides" in result.stdout
    found = json.loads(result.stdout)
    assert [one["collection"] for one in found["collections"]] == ["rides"]
    assert found["missing"] == why


async def test_the_next_worker_is_asked_if_one_is_gone_or_has_another_shard(two: Two) -> None:
    for port in (*free_ports(1), two.first.port):
        two.shards.read(f"http://127.0.0.1:{port}".encode(), b'{"shard": "2/2"}')
    # The first worker under another name: it would forward to itself.
    two.shards.read(f"http://localhost:{two.first.port}".encode(), b'{"shard": "2/2"}')
    assert len(two.shards.addresses("city")) > 2
    assert (await ask(two.first, "/api/collections/city"))["name"] == "city"


async def test_a_request_is_forwarded_once(two: Two) -> None:
    answer = await two.first.get("/api/collections/city", headers={FORWARDED: "2/2"})
    assert answer.status == 421
    answer = await two.first.get("/api/collections/rides", headers={FORWARDED: "2/2"})
    assert answer.status == 200


async def test_a_request_is_forwarded_with_its_token_and_few_other_headers(whole: Pipeline) -> None:
    seen: list[dict[str, str]] = []

    async def note(request: web.Request) -> web.Response:
        seen.append({**request.headers, ":path": request.raw_path})
        return web.json_response({})

    other = web.Application()
    other.router.add_get("/{path:.*}", note)
    configs = {name: one.config for name, one in whole.collections.items()}
    shards = Shards(Shard(1, 2), "http://127.0.0.1:1", configs)
    async with TestServer(other) as server:
        shards.read(str(server.make_url("")).rstrip("/").encode(), b'{"shard": "2/2"}')
        access = Access(token=TOKEN.encode())
        own = part(whole, shards.shard)
        app = build_http(own, access=access, shards=shards)
        async with TestClient(TestServer(app)) as client:
            # Refused requests are not forwarded.
            assert (await client.get(CITY_PATH)).status == 401
            foreign = {**BEARER, "Sec-Fetch-Site": "cross-site"}
            assert (await client.get(CITY_PATH, headers=foreign)).status == 403
            assert not seen
            sent = {**BEARER, "Cookie": "a=b", "X-Forwarded-For": "10.0.0.1", "Accept": "text/csv"}
            answer = await client.get(f"{CITY_PATH}?top=2&range=0..3%2B5", headers=sent)
            assert answer.status == 200
    (one,) = seen
    assert one[":path"] == f"{CITY_PATH}?top=2&range=0..3%2B5"
    assert one["Authorization"] == BEARER["Authorization"]
    assert (one["Accept"], one[FORWARDED]) == ("text/csv", "1/2")
    assert one["X-Forwarded-For"] == "10.0.0.1, 127.0.0.1"
    assert "Cookie" not in one
    samples, name = scrape(own.metrics), "ldpstream_http_seconds_count"
    for status in ("401", "403", "200"):
        assert value(samples, name, operation="estimate", status=status) == 1
    assert sum(count for (sample, _), count in samples.items() if sample == name) == 3
