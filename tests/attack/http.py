"""Locking everybody else out over HTTP, without a token: silence, slowness, bodies that never end.

What must hold is the same for worker and gateway: probes and honest requests are answered within a
second, and memory stays within twice the bounds.
"""

import asyncio
import resource
import socket
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from tests.attack.stand import Outcome, Stand, each_and_all, resident_bytes
from tests.certificates import make_certificates
from tests.processes import Worker

ANSWER_SECONDS: Final = 1.0
WORKER_BYTES: Final = 2 * (32 << 20)
"""Twice 16 MiB of bodies that arrive and 32 KiB of headers a connection, 500 of them."""
QUEUE_BYTES: Final = 64 << 20
"""The default of `gateway.queue_bytes`."""
_UPLOAD_BYTES: Final = 256 << 10
_PATIENCE_SECONDS: Final = 5.0

COLLECTION: Final = """mechanism = "randomized-response"
epsilon = 1.0
domain = { size = 3 }
partitions = 1
minimum = 1
window = { size = "1h" }"""

Address = tuple[str, int]
Opening = Callable[["Crowd"], Awaitable[None]]


@dataclass
class Crowd:
    """An attacker's connections, and the tasks that keep them busy."""

    address: Address
    sockets: list[socket.socket] = field(default_factory=list)
    tasks: list["asyncio.Task[None]"] = field(default_factory=list)
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def connect(self, sent: bytes = b"") -> socket.socket | None:
        """Open a connection and send something; None if it was refused."""
        loop = asyncio.get_running_loop()
        one = socket.socket()
        one.setblocking(False)
        self.sockets.append(one)
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await loop.sock_connect(one, self.address)
                await loop.sock_sendall(one, sent)
        except OSError:
            return None
        return one

    async def open(self, number: int, sent: bytes) -> list[socket.socket]:
        """Open many connections, some at a time, and send the same on each."""
        opened: list[socket.socket | None] = []
        for done in range(0, number, 50):
            some = (self.connect(sent) for _ in range(min(50, number - done)))
            opened += await asyncio.gather(*some)
        return [one for one in opened if one is not None]

    def keep_saying(self, opened: Sequence[socket.socket], word: bytes) -> None:
        """Send a few bytes every now and then, so that no connection is silent."""
        self.tasks.append(asyncio.create_task(_drip(opened, word)))

    async def leave(self) -> None:
        """Close all connections."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        for one in (*self.sockets, *(writer.transport for writer in self.writers)):
            one.close() if isinstance(one, socket.socket) else one.abort()


async def _drip(opened: Sequence[socket.socket], word: bytes) -> None:
    while True:
        await asyncio.sleep(0.5)
        for one in opened:
            try:
                one.send(word)
            except OSError:
                continue


async def idle(crowd: Crowd, *, number: int = 600) -> None:
    """Ask once, for what needs no token, and keep the connection."""
    await crowd.open(number, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")


async def slow_headers(crowd: Crowd, *, number: int = 600) -> None:
    """Begin headers that never end."""
    opened = await crowd.open(number, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: b\r\n")
    crowd.keep_saying(opened, b"X-B: c\r\n")


async def slow_bodies(crowd: Crowd, *, path: str, kind: str, number: int = 600) -> None:
    """Begin bodies that never end."""
    opened = await crowd.open(number, _head(path, kind, 200_000) + b"[")
    crowd.keep_saying(opened, b" ")


async def unfinished(
    crowd: Crowd, *, path: str, kind: str, size: int = _UPLOAD_BYTES, number: int = 257
) -> None:
    """Send bodies without their last byte, again and again."""
    sent = _head(path, kind, size) + bytes(size - 1)

    async def fill() -> None:
        while True:
            await crowd.open(number, sent)
            while len(crowd.sockets) > 4 * number:
                crowd.sockets.pop(0).close()
            await asyncio.sleep(1.0)

    await crowd.open(number, sent)
    crowd.tasks.append(asyncio.create_task(fill()))


def _head(path: str, kind: str, size: int) -> bytes:
    return (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
        f"Idempotency-Key: {'ab' * 16}\r\nContent-Length: {size}\r\n\r\n"
    ).encode()


@dataclass
class Honest:
    """A client that asks now and then, each time on a new connection, and the answers it got."""

    asked: int = 0
    failed: dict[str, int] = field(default_factory=dict)
    longest_seconds: float = 0.0

    def ask(self, address: Address, request: bytes, tls: ssl.SSLContext | None = None) -> None:
        """Ask once; anything but 200 within the patience is a failure."""
        began, said = time.monotonic(), b""
        try:
            one = socket.create_connection(address, timeout=_PATIENCE_SECONDS)
            with one if tls is None else tls.wrap_socket(one) as connection:
                connection.sendall(request)
                said = connection.recv(1_000)
        except OSError:
            pass
        self.asked += 1
        self.longest_seconds = max(self.longest_seconds, time.monotonic() - began)
        if not said.startswith(b"HTTP/1.1 200"):
            words = said.split()
            status = words[1].decode() if len(words) > 1 else "none"
            self.failed[status] = self.failed.get(status, 0) + 1

    def outcome(self, grown_bytes: int, bound_bytes: int) -> Outcome:
        """Judge: all answered, in time, within the bound."""
        held = not self.failed and self.longest_seconds <= ANSWER_SECONDS
        refused = ", ".join(f"{n} x {status}" for status, n in sorted(self.failed.items()))
        return Outcome(
            held and grown_bytes <= bound_bytes,
            f"{self.asked} asked, {refused or 'all 200'}, longest {self.longest_seconds:.2f} s, "
            f"+{grown_bytes >> 20} MiB of {bound_bytes >> 20}",
        )


async def besiege(
    stand: Stand,
    server: Worker,
    attacks: Sequence[Opening],
    requests: Sequence[bytes],
    bound: int,
    *,
    tls: ssl.SSLContext | None = None,
) -> Outcome:
    """Attack a server while an honest client asks it; judge the answers and the memory."""
    host, port = server.url.rpartition("/")[2].split(":")
    honest = Honest()
    for request in requests:
        await asyncio.to_thread(Honest().ask, (host, int(port)), request, tls)
    before = resident_bytes(server.process.pid)
    async with _crowd((host, int(port))) as crowd:
        for attack in attacks:
            await attack(crowd)
        until = time.monotonic() + (4.0 if stand.short else 30.0)
        while time.monotonic() < until:
            for request in requests:
                # In a thread, which does not wait for the attacker's tasks.
                await asyncio.to_thread(honest.ask, (host, int(port)), request, tls)
            await asyncio.sleep(0.1)
    return honest.outcome(resident_bytes(server.process.pid) - before, bound)


@asynccontextmanager
async def _crowd(address: Address) -> AsyncIterator[Crowd]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 8_192:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(8_192, hard), hard))
    crowd = Crowd(address)
    try:
        yield crowd
    finally:
        await crowd.leave()


def get(path: str) -> bytes:
    """Return a request for a path, on a connection that then closes."""
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()


WORKER_PATH: Final = "/api/collections/modes/estimate"
WORKER_ATTACKS: Final[dict[str, Opening]] = {
    "idle": idle,
    "slow-headers": slow_headers,
    "slow-bodies": partial(slow_bodies, path=WORKER_PATH, kind="application/json"),
    "unfinished": partial(
        unfinished, path=WORKER_PATH, kind="application/json", size=4 << 20, number=64
    ),
}


async def worker(stand: Stand, *, attacks: Sequence[str]) -> Outcome:
    """Lock others out of a worker."""
    file = stand.configure({"modes": COLLECTION})
    with stand.serving("worker", "-c", str(file)) as running:
        requests = [get(path) for path in ("/healthz", "/readyz", "/metrics", "/api/collections")]
        chosen = [WORKER_ATTACKS[name] for name in attacks]
        return await besiege(stand, running, chosen, requests, WORKER_BYTES)


def add_gateway(file: Path) -> None:
    """Let a gateway of this configuration listen on a free port."""
    with file.open("a") as more:
        more.write('\n[gateway]\nhttp = "127.0.0.1:0"\n')


def add_certificate(file: Path, folder: Path) -> None:
    """Let a worker of this configuration speak HTTPS."""
    both = make_certificates(folder).broker
    text = f'[worker]\ncertificate = "{both}"\nkey = "{both}"\n'
    file.write_text(file.read_text().replace("[worker]\n", text, 1))


ATTACKS = each_and_all(
    "worker",
    "a worker answers probes and honest requests within 1 s, memory bounded",
    worker,
    WORKER_ATTACKS,
)
