"""Locking everybody else out of a gateway: its queue, its connections, its memory."""

import asyncio
import secrets
import struct
import time
from functools import partial
from typing import Final

from tests.attack import http
from tests.attack.stand import Outcome, Stand, each_and_all
from tests.processes import Worker

_PATH: Final = "/v1/collections/modes/reports"
_KIND: Final = "application/vnd.ldpstream.frame"
_ATTACKS: Final[dict[str, http.Opening]] = {
    "idle": partial(http.idle, number=2_200),
    "slow-headers": partial(http.slow_headers, number=2_200),
    "slow-bodies": partial(http.slow_bodies, path=_PATH, kind=_KIND, number=2_200),
    "unfinished": partial(http.unfinished, path=_PATH, kind=_KIND),
}


async def gateway(stand: Stand, *, attacks: tuple[str, ...]) -> Outcome:
    """Lock others out of a gateway."""
    file = stand.configure({"modes": http.COLLECTION})
    http.add_gateway(file)
    # A worker creates the topic.
    with stand.serving("worker", "-c", str(file)):
        pass
    with stand.serving("gateway", "-c", str(file)) as running:
        upload = await asyncio.to_thread(_upload, running)
        requests = [*map(http.get, ("/healthz", "/readyz", "/metrics")), upload]
        chosen = [_ATTACKS[name] for name in attacks]
        return await http.besiege(stand, running, chosen, requests, 2 * http.QUEUE_BYTES)


def _upload(running: Worker) -> bytes:
    """Return the request that uploads one report, the same each time: it is accepted once."""
    fingerprint = bytes.fromhex(running.get("/v1/collections/modes/spec")["fingerprint"])
    hour_ms = time.time_ns() // 3_600_000_000_000 * 3_600_000
    frame = struct.pack("<BBH8sqIB", 1, 0, 1, fingerprint, hour_ms, 1, 1)
    return (
        f"POST {_PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {_KIND}\r\n"
        f"Idempotency-Key: {secrets.token_hex(16)}\r\nConnection: close\r\n"
        f"Content-Length: {len(frame)}\r\n\r\n"
    ).encode() + frame


ATTACKS = each_and_all(
    "gateway",
    "a gateway answers probes and honest uploads within 1 s, memory bounded",
    gateway,
    _ATTACKS,
)
