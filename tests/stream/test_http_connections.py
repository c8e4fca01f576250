"""Whoever may not read may connect: a worker keeps no more connections than it can spare."""

import asyncio
import sys

import pytest
from aiohttp import ClientSession

from ldpstream.agents.http import door, serve
from ldpstream.agents.kafka.secret import GivenSecret
from tests.stream.asking import three_collections

TOKEN = "correct-horse-battery-staple"


async def test_connections_are_bounded_and_those_that_ask_nothing_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys.modules[serve.__module__], "CONNECTIONS_LIMIT", 3)
    monkeypatch.setattr(door, "FIRST_REQUEST_SECONDS", 0.5)
    async with serve(three_collections(), port=0, token=GivenSecret(TOKEN)) as url:
        host, port = url.removeprefix("http://").split(":")
        silent = [await asyncio.open_connection(host, int(port)) for _ in range(3)]
        async with asyncio.timeout(20):
            said = b""
            while not said.startswith(b"HTTP/1.1 503 "):
                reader, writer = await asyncio.open_connection(host, int(port))
                said = await reader.read()
                writer.close()
            for reader, writer in silent:
                assert await reader.read() == b""
                writer.close()
        async with ClientSession(headers={"Authorization": f"Bearer {TOKEN}"}) as session:
            assert (await session.get(f"{url}/api/collections")).status == 200
