"""The cost of reading a topic with a bare consumer, which drops what it reads."""

import asyncio
import time

from aiokafka import TopicPartition
from tests.brokers import Broker

from benchmarks.apart import apart
from benchmarks.engine.cost import Cost
from benchmarks.engine.topic import PARTITIONS
from ldpstream.agents.broker import clients

GETMANY = "getmany"
_PATIENCE_SECONDS = 300.0


def bare_consumer(running: Broker, topic: str, messages: int, *, size: int) -> Cost:
    """Read and drop messages of `size` reports in a process of its own."""
    arguments = (running.bootstrap, dict(running.options), topic, messages)
    taken = apart(_read, *arguments, seconds=_PATIENCE_SECONDS)
    return Cost(GETMANY, size, messages * size, *taken)


def _read(
    bootstrap: str, options: dict[str, object], topic: str, messages: int
) -> tuple[float, float]:
    return asyncio.run(_getmany(bootstrap, options, topic, messages))


async def _getmany(
    bootstrap: str, options: dict[str, object], topic: str, messages: int
) -> tuple[float, float]:
    reader = clients.reader(bootstrap, options, committed_only=True, wait_ms=100)
    await reader.start()
    try:
        partitions = [TopicPartition(topic, p) for p in range(PARTITIONS)]
        reader.assign(partitions)
        await reader.seek_to_beginning(*partitions)
        seen, began, cpu = 0, time.perf_counter(), time.process_time()
        while seen < messages:
            found = await reader.getmany(timeout_ms=1000, max_records=20_000)
            seen += sum(map(len, found.values()))
        return time.process_time() - cpu, time.perf_counter() - began
    finally:
        await reader.stop()
