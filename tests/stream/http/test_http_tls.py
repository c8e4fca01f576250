"""TLS connections leave nothing behind; each has buffers of a quarter of a megabyte."""

import asyncio
import contextlib
import gc
import ssl
from asyncio.sslproto import SSLProtocol
from pathlib import Path

import pytest
from aiohttp import web

from ldpstream.agents.web import listener
from ldpstream.agents.web.connection_limits import Bounds
from ldpstream.agents.web.listener import listen
from tests.certificates import make_certificates, skip_without_openssl
from tests.processes import PATIENCE_SECONDS

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
