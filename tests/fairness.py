"""Two collections in one worker: one with a huge backlog, one with a trickle that must not wait.

The first frame of each window of the trickle closes the window before; latency is the time from
that frame to the final document.
"""

import asyncio
import json
import time
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
from aiokafka import AIOKafkaProducer, TopicPartition

from tests.lab import START_MS, Lab
from tests.ledger import WINDOW_MS
from tests.processes import PATIENCE_SECONDS, Worker

FRAMES = 64


@dataclass
class Seen:
    """Seconds from the frame that closes a window to its final, and seconds of HTTP answers."""

    finals: list[float] = field(default_factory=list)
    answers: list[float] = field(default_factory=list)
    behind: int = 0
    """Windows of the trickle that were final before the backlog was counted."""


async def fill(lab: Lab, name: str, messages: int, *, reports: int) -> None:
    """Write a backlog of messages with `reports` reports each; 0 is for one byte of junk."""
    collection = lab.config.collections[name]
    spec, source = collection.spec, collection.topics.source
    times_ms = np.full(reports, START_MS)
    frames = [b"x"]
    if reports:
        frames = [
            spec.frame_reports(lab.reports(reports), times_ms=times_ms) for _ in range(FRAMES)
        ]
    await lab.create(source, partitions=collection.partitions)
    async with lab.producer() as producer:
        await producer.partitions_for(source)
        batch, sent, partition = producer.create_batch(), [], 0
        for number in range(messages):
            frame = frames[number % len(frames)]
            while batch.append(key=None, value=frame, timestamp=None) is None:
                sent.append(await producer.send_batch(batch, source, partition=partition))
                batch, partition = producer.create_batch(), (partition + 1) % collection.partitions
        sent.append(await producer.send_batch(batch, source, partition=partition))
        await asyncio.gather(*sent)


def decided(worker: Worker, name: str) -> int:
    """Return how many reports of a collection are counted, late or rejected."""
    status = worker.get(f"/api/collections/{name}/status")
    return int(status["counted"] + status["late"] + status["rejected"])


async def trickle(
    lab: Lab, worker: Worker, *, slow: str, fast: str, backlog: int, windows: int | None = None
) -> Seen:
    """Send to `slow` until `fast` has worked off its backlog, or for `windows` windows."""
    seen, topics = Seen(), lab.config.collections[slow].topics
    partition = TopicPartition(topics.estimates, 0)
    asking = asyncio.create_task(_ask(worker, seen))
    async with lab.producer() as producer, lab.reader() as reader:
        reader.assign([partition])
        await reader.seek_to_end(partition)
        number = 0
        await _send(lab, producer, slow, number)
        while windows is None or number < windows:
            number += 1
            begun = time.monotonic()
            await _send(lab, producer, slow, number)
            end_ms = START_MS + number * WINDOW_MS
            while not _is_final(await reader.getmany(timeout_ms=50), end_ms):
                if time.monotonic() - begun > PATIENCE_SECONDS:
                    raise TimeoutError(
                        f"no final of window {number} of {slow} in {PATIENCE_SECONDS} s"
                    )
            seen.finals.append(time.monotonic() - begun)
            if await asyncio.to_thread(decided, worker, fast) >= backlog:
                if windows is None:
                    break
            else:
                seen.behind += 1
    asking.cancel()
    with suppress(asyncio.CancelledError):
        await asking
    return seen


async def _send(lab: Lab, producer: AIOKafkaProducer, name: str, window: int) -> None:
    """Send a frame to every partition, which closes the window before in all of them."""
    collection = lab.config.collections[name]
    times_ms = np.full(5, START_MS + window * WINDOW_MS)
    for partition in range(collection.partitions):
        frame = collection.spec.frame_reports(lab.reports(5), times_ms=times_ms)
        await producer.send_and_wait(collection.topics.source, frame, partition=partition)


def _is_final(found: dict, end_ms: int) -> bool:
    documents = [json.loads(record.value) for batch in found.values() for record in batch]
    end = np.datetime64(end_ms, "ms")
    return any(
        document["final"] and np.datetime64(document["window"]["end"].rstrip("Z"), "ms") == end
        for document in documents
    )


async def _ask(worker: Worker, seen: Seen) -> None:
    """Ask for the health of the process five times a second: a busy event loop answers late."""
    while True:
        begun = time.monotonic()
        await asyncio.to_thread(worker.status, "/healthz")
        seen.answers.append(time.monotonic() - begun)
        await asyncio.sleep(0.2)
