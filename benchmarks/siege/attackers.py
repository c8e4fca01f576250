"""The attackers: one process that makes all attacks at once, as fast as it can.

`benchmarks.siege` starts `python -m benchmarks.siege.attackers` and writes the targets, a line of
JSON, to its standard input. It attacks until the input ends, and then prints its counts as JSON.
"""

import asyncio
import json
import os
import random
import resource
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NoReturn

from aiohttp import ClientError, ClientSession, ClientTimeout
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from aiokafka.producer.message_accumulator import BatchBuilder

CONNECTIONS = 500
UPLOADS = 257
COSTLY = "top=100000&method=anytime&simultaneous=true&project=simplex"
_BRACKETS = b"[" * 1_000
_NICE = 10
_BOMB_MESSAGES, _BOMB_BYTES = 200, 1_000_000


@dataclass(frozen=True)
class Target:
    """The targets: addresses as `host:port`, topics by purpose."""

    worker: str
    gateway: str
    bootstrap: str
    source: str
    controls: tuple[str, ...]
    bombed: str
    collection: str
    costly: str


@dataclass
class Done:
    """How often each attack was made, and how many malformed messages reached the source."""

    times: Counter[str] = field(default_factory=Counter)
    garbage: int = 0

    def arrived(self, sending: asyncio.Future[Any]) -> None:
        """Count a malformed message that the broker has acknowledged."""
        if not sending.cancelled() and sending.exception() is None:
            self.garbage += 1


async def _connection(address: str, opening: bytes, drip: bytes, done: Done, name: str) -> None:
    """Open a connection, send some bytes, keep it as long as the server does, and open it again.

    `drip` is sent a byte a second.
    """
    host, port = address.rsplit(":", 1)
    while True:
        writer = None
        try:
            reader, writer = await asyncio.open_connection(host, int(port))
            done.times[name] += 1
            writer.write(opening)
            for byte in drip:
                writer.write(bytes((byte,)))
                await writer.drain()
                with suppress(TimeoutError):
                    async with asyncio.timeout(1.0):
                        if not await reader.read(65536):
                            break
            else:
                while await reader.read(65536):
                    pass
        except OSError:
            await asyncio.sleep(0.2)
        finally:
            if writer is not None:
                writer.close()
        await asyncio.sleep(0.05)


def _post(path: str, length: int) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {length}\r\n\r\n".encode()


def _connections(target: Target, done: Done) -> list[Coroutine[Any, Any, None]]:
    get = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    upload = f"/v1/collections/{target.collection}/reports"
    asked = f"/api/collections/{target.collection}/estimate"
    slow = b"x" * 3600
    each: list[tuple[str, str, bytes, bytes, int]] = [
        ("idle connections", target.worker, get, b"", CONNECTIONS),
        ("idle connections", target.gateway, get, b"", CONNECTIONS),
        ("slow headers", target.worker, b"GET / HTTP/1.1\r\nX: ", slow, CONNECTIONS),
        ("slow bodies", target.worker, _post(asked, 5_000), slow, CONNECTIONS),
        ("unfinished uploads", target.gateway, _post(upload, 262_144), slow, UPLOADS),
    ]
    return [
        _connection(address, opening, drip, done, name)
        for name, address, opening, drip, count in each
        for _ in range(count)
    ]


async def _again(make: Callable[[], Awaitable[None]], every_seconds: float) -> None:
    while True:
        with suppress(KafkaError, ClientError, OSError, TimeoutError):
            await make()
        await asyncio.sleep(every_seconds)


async def _costly(target: Target, session: ClientSession, done: Done) -> None:
    url = f"http://{target.worker}/api/collections/{target.costly}/estimate?{COSTLY}"
    async with session.get(url) as answer:
        done.times[f"costly request: {answer.status}"] += 1
        await answer.read()


async def _garbage(
    target: Target, producer: AIOKafkaProducer, done: Done, draw: random.Random
) -> None:
    """Send a hundred messages that are no frames."""
    sent = []
    for _ in range(100):
        sending = await producer.send(target.source, draw.randbytes(draw.randint(1, 60)))
        sending.add_done_callback(done.arrived)
        sent.append(sending)
    # Not `gather`, which would cancel them when the attack ends.
    await asyncio.wait(sent)
    done.times["garbage messages"] += len(sent)


async def _control(target: Target, producer: AIOKafkaProducer, done: Done) -> None:
    for topic in target.controls:
        await producer.send_and_wait(topic, _BRACKETS, partition=0)
        done.times["control records"] += 1


async def _bomb(target: Target, done: Done) -> None:
    """Send one compressed batch that is small on the wire and large when decompressed."""
    producer = AIOKafkaProducer(
        bootstrap_servers=target.bootstrap,
        compression_type="zstd",
        max_batch_size=_BOMB_MESSAGES * (_BOMB_BYTES + 1_000),
        max_request_size=_BOMB_MESSAGES * (_BOMB_BYTES + 1_000),
    )
    await producer.start()
    try:
        await producer.partitions_for(target.bombed)
        batch = producer.create_batch()
        # In a thread: in the event loop all other attacks would wait for it.
        await asyncio.to_thread(_fill, batch)
        sent = await producer.send_batch(batch, target.bombed, partition=0)
        try:
            await sent
            done.times["zstd bombs taken by the broker"] += 1
        except KafkaError:
            done.times["zstd bombs refused by the broker"] += 1
    finally:
        await producer.stop()


def _fill(batch: BatchBuilder) -> None:
    while batch.append(key=None, value=bytes(_BOMB_BYTES), timestamp=None) is not None:
        if batch.record_count() == _BOMB_MESSAGES:
            break
    batch.close()


async def attack(target: Target) -> NoReturn:
    """Attack until standard input ends; print what was done, and end the process."""
    done = Done()
    producer = AIOKafkaProducer(bootstrap_servers=target.bootstrap)
    await producer.start()
    async with ClientSession(timeout=ClientTimeout(total=120)) as session:
        draw = random.Random(1)
        endless = [
            *_connections(target, done),
            *(_again(lambda: _costly(target, session, done), 0.05) for _ in range(4)),
            _again(lambda: _garbage(target, producer, done, draw), 0.1),
            _again(lambda: _control(target, producer, done), 0.5),
            _again(lambda: _bomb(target, done), 10.0),
        ]
        tasks = [asyncio.create_task(one) for one in endless]
        await asyncio.to_thread(sys.stdin.read)
        for task in tasks:
            if task.done() and task.exception() is not None:
                sys.stderr.write(f"an attack ended by itself: {task.exception()!r}\n")
            task.cancel()
        # Messages that are on their way to the source count.
        with suppress(TimeoutError):
            async with asyncio.timeout(20):
                await producer.flush()
    found = {"times": done.times, "garbage": done.garbage}
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()
    # Exiting closes thousands of connections faster than closing them one by one.
    os._exit(0)


def main() -> None:
    # Attackers elsewhere would not compete for the processors of what they attack.
    os.nice(_NICE)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, most), most))
    asked = json.loads(sys.stdin.readline())
    target = Target(**{**asked, "controls": tuple(asked["controls"])})
    asyncio.run(attack(target))


if __name__ == "__main__":
    main()
