"""Locking everybody else out over TLS: handshakes that never come or end, idle connections."""

import asyncio
import ssl
from collections.abc import Sequence
from typing import Final

from tests.attack.http import (
    COLLECTION,
    WORKER_BYTES,
    Crowd,
    Opening,
    add_certificate,
    besiege,
    get,
)
from tests.attack.stand import Outcome, Stand, each_and_all

_TLS_BYTES: Final = 2 * 500 * (256 << 10)
"""Twice what asyncio gives each of 500 connections to decrypt into."""


async def silent(crowd: Crowd, *, number: int = 600) -> None:
    """Connect, and send nothing."""
    await crowd.open(number, b"")


async def half_greeted(crowd: Crowd, *, number: int = 600) -> None:
    """Begin a ClientHello of 16 kB that never ends."""
    opened = await crowd.open(number, b"\x16\x03\x01\x40\x00\x01\x00\x3f\xfc\x03\x03")
    crowd.keep_saying(opened, b"\x00")


async def greeted(crowd: Crowd, *, number: int = 600) -> None:
    """Complete the handshake, ask once, and keep the connection."""
    context = trusting()

    async def one() -> asyncio.StreamWriter | None:
        try:
            async with asyncio.timeout(10):
                _, writer = await asyncio.open_connection(*crowd.address, ssl=context)
        except OSError:
            return None
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        return writer

    for _ in range(0, number, 50):
        writers = await asyncio.gather(*(one() for _ in range(50)))
        crowd.writers += [writer for writer in writers if writer is not None]


ATTACKS_OF_TLS: Final[dict[str, Opening]] = {
    "silent": silent,
    "half-greeted": half_greeted,
    "greeted": greeted,
}


def trusting() -> ssl.SSLContext:
    """Return a context that takes any certificate."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


async def worker(stand: Stand, *, attacks: Sequence[str]) -> Outcome:
    """Lock others out of a worker that speaks HTTPS."""
    file = stand.configure({"modes": COLLECTION})
    add_certificate(file, stand.folder)
    with stand.serving("worker", "-c", str(file)) as running:
        requests = [get(path) for path in ("/healthz", "/readyz", "/metrics", "/api/collections")]
        chosen = [ATTACKS_OF_TLS[name] for name in attacks]
        bound = WORKER_BYTES + _TLS_BYTES
        return await besiege(stand, running, chosen, requests, bound, tls=trusting())


ATTACKS = each_and_all(
    "tls",
    "a worker that speaks HTTPS answers within 1 s, memory bounded",
    worker,
    ATTACKS_OF_TLS,
)
