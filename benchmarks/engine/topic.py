"""Writing the topics that are measured."""

import asyncio
from collections.abc import Callable
from contextlib import nullcontext

import numpy as np
from aiokafka import AIOKafkaProducer
from tests.lab import START_MS, Lab

from ldpstream.agents.broker import clients

PARTITIONS = 4
_KINDS = 512


async def fill(
    lab: Lab,
    messages: int,
    size: int,
    *,
    transaction: bool = False,
    before_commit: Callable[[], None] = lambda: None,
) -> None:
    """Write the topic, partition after partition, in batches of 16 KiB.

    In a transaction (Apache Kafka) all of it becomes readable at once, at the end. The key is the
    message's last report, for Quix Streams, which counts by key.
    """
    spec, topic = lab.collection.spec, lab.collection.topics.source
    times_ms = np.full(size, START_MS)
    kinds = max(8, _KINDS // size)
    frames = [spec.frame_reports(lab.reports(size), times_ms=times_ms) for _ in range(kinds)]
    await lab.create(topic, partitions=lab.collection.partitions)
    options: dict[str, object] = {"max_batch_size": 1 << 14}
    if transaction:
        options |= {"transactional_id": topic, "transaction_timeout_ms": 600_000}
    kafka = lab.config.kafka
    producer = AIOKafkaProducer(**clients.connection(kafka.bootstrap, kafka.options), **options)
    async with producer, producer.transaction() if transaction else nullcontext():
        await producer.partitions_for(topic)
        batch, sent, partition = producer.create_batch(), [], 0
        for number in range(messages):
            frame = frames[number % kinds]
            while batch.append(key=frame[-1:], value=frame, timestamp=None) is None:
                sent.append(await producer.send_batch(batch, topic, partition=partition))
                batch, partition = (
                    producer.create_batch(),
                    (partition + 1) % lab.collection.partitions,
                )
        sent.append(await producer.send_batch(batch, topic, partition=partition))
        await asyncio.gather(*sent)
        await producer.flush()
        await asyncio.to_thread(before_commit)
