"""Anybody may connect: silent and slow connections keep nobody else out."""

import asyncio

import pytest
from aiohttp import ClientSession

from ldpstream.agents.config.secret import GivenSecret
from ldpstream.agents.web import app, server
from ldpstream.agents.web import connection_limits as connections
from tests.stream.asking import BEARER, TOKEN, three_collections
from tests.stream.serving import serve

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def connect(url: str, sent: bytes = b"") -> Streams:
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(sent)
    return reader, writer


async def read(reader: asyncio.StreamReader) -> bytes:
    """Return all bytes up to the end of the connection, or to its reset."""
    async with asyncio.timeout(60):
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""


def posted(body: bytes, length: int) -> bytes:
    return (
        b"POST /api/collections/city/estimate HTTP/1.1\r\nHost: localhost\r\n"
        b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (length, body)
    )


async def test_silent_connections_give_way_and_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CONNECTIONS_LIMIT", 3)
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.5)
    async with serve(three_collections(), token=GivenSecret(TOKEN)) as url:
        silent = [await connect(url) for _ in range(3)]
        async with ClientSession(headers=BEARER) as session:
            assert (await session.get(f"{url}/api/collections")).status == 200
        for reader, writer in silent:
            assert await read(reader) == b""
            writer.close()


async def test_headers_without_an_end_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 600.0)
    line = b"X-A: %b\r\n" % (b"a" * 4_000)
    async with serve(three_collections()) as url:
        sent = b"GET / HTTP/1.1\r\nHost: localhost\r\n" + 10 * line
        reader, writer = await connect(url, sent)
        assert await read(reader) == b""
        writer.close()


@pytest.mark.parametrize("limit", ["CONNECTIONS_LIMIT", "PEER_CONNECTIONS_LIMIT"])
async def test_slow_bodies_give_way(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, limit, 3)
    async with serve(three_collections()) as url, ClientSession() as session:
        slow = [await connect(url, posted(b"{", 100)) for _ in range(3)]
        for path in ("/healthz", "/api/collections"):
            assert (await session.get(url + path)).status == 200
        assert (await read(slow[0][0])).startswith(b"HTTP/1.1 503 ")
        for _, writer in slow:
            writer.close()


async def test_unfinished_bodies_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "ARRIVING_BYTES", 100_000)
    async with serve(three_collections()) as url, ClientSession() as session:
        unfinished = [await connect(url, posted(b" " * 40_000, 40_100)) for _ in range(3)]
        assert (await read(unfinished[0][0])).startswith(b"HTTP/1.1 503 ")
        body = b'{"top": 1}' + b" " * 50_000
        asked = session.post(
            f"{url}/api/collections/city/estimate",
            data=body,
            headers={"Content-Type": "application/json"},
        )
        async with asked as answer:
            assert answer.status == 200
        for _, writer in unfinished:
            writer.close()
