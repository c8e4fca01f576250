"""Anybody may connect: silent and slow connections keep nobody out; TLS leaves nothing behind."""

import asyncio
import contextlib
import gc
import ssl
from asyncio.sslproto import SSLProtocol
from pathlib import Path

import pytest
from aiohttp import ClientSession, web

from ldpstream.agents.config.secret import GivenSecret
from ldpstream.agents.web import app, listener, server
from ldpstream.agents.web import connection_limits as connections
from ldpstream.agents.web.connection_limits import Bounds
from ldpstream.agents.web.listener import listen
from tests.certificates import make_certificates, skip_without_openssl
from tests.processes import PATIENCE_SECONDS
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


HALF_A_GREETING = b"\x16\x03\x01\x40\x00\x01\x00\x3f\xfc\x03\x03"


@pytest.mark.parametrize("sent", [b"", HALF_A_GREETING, b"no greeting\r\n\r\n"])
async def test_connections_that_never_spoke_tls_are_freed_without_the_collector(
    sent: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of them are closed because others take their place, half by a timeout."""
    skip_without_openssl()
    monkeypatch.setattr(listener, "HEADER_SECONDS", 0.5)
    both = make_certificates(tmp_path).broker
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(both)
    bounds = Bounds(connections=4, per_peer=4)
    gc.collect()
    gc.disable()
    try:
        async with listen(
            web.Application(), address="127.0.0.1:0", bounds=bounds, tls=context, setting="here"
        ) as (url, _):
            port = int(url.rpartition(":")[2])
            opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(8)]
            for _, writer in opened:
                writer.write(sent)
            async with asyncio.timeout(PATIENCE_SECONDS):
                await asyncio.gather(*(_end(reader) for reader, _ in opened))
                for _, writer in opened:
                    writer.close()
                while any(type(each) is SSLProtocol for each in gc.get_objects()):  # noqa: ASYNC110 (no event)
                    await asyncio.sleep(0.05)
    finally:
        gc.enable()


async def _end(reader: asyncio.StreamReader) -> None:
    """Wait for the end of the connection, which a TLS alert may come before."""
    with contextlib.suppress(ConnectionResetError):
        await reader.read()
