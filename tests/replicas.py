"""Reading a changelog to its end, as a worker does, and the finals that it holds."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.engine.changelog import ChangelogReader
from ldpstream.agents.engine.engine import Engine
from ldpstream.agents.state.cell_encoding import decode_final
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.records import Name
from ldpstream.agents.state.replica import Replica
from tests.processes import eventually


async def read_replicas(
    reader: AIOKafkaConsumer, collection: CollectionConfig, context: Context
) -> list[Replica]:
    """Return replicas that have read a collection's changelog up to its end."""
    replicas = [Replica(context, partition) for partition in range(collection.partitions)]
    broken: list[str] = []
    read = ChangelogReader(
        reader,
        {TopicPartition(collection.topics.changelog, t.partition): t for t in replicas},
        on_read=lambda _: None,
        on_broken=lambda _, why: broken.append(why),
    )
    task = asyncio.create_task(read.run())
    try:
        await eventually(lambda: all(t.head is not None for t in replicas) or bool(broken))
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    assert not broken
    return replicas


def final_document(collection: Engine, start_ms: int) -> dict[str, Any]:
    """Return the stored final of the window that starts then."""
    stored = stored_final(collection.context, collection.replicas, start_ms)
    assert stored is not None
    document: dict[str, Any] = json.loads(stored)
    return document


def stored_final(context: Context, replicas: Sequence[Replica], start_ms: int) -> bytes | None:
    """Return the stored final of the window that starts then, or None.

    None before the window is final, after it has expired, and for a window without reports.
    """
    if not replicas or start_ms % context.window.hop_ms:
        return None
    name = Name("final", start_ms // context.window.hop_ms)
    return decode_final(replicas[0].value(name)) if name in replicas[0].cells else None
