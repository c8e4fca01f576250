"""Delete dead records from the changelog, so that it stays as short as its state.

Correctness never depends on this: deleting a dead record twice, late or never does no harm. But
each dead record takes memory in every worker until it is deleted, so a partition with very many of
them is full, and is swept at once.
"""

import asyncio
import logging
import time
from typing import Final

from aiokafka.errors import KafkaError

from ldpstream.agents.kafka.producing import LastingProducer
from ldpstream.agents.pipeline.engine import Engine
from ldpstream.agents.reading.interval import scaled_interval
from ldpstream.agents.state.shown import DEAD_LIMIT

_EVERY_SECONDS: Final = 5.0
_MOST_SECONDS: Final = 20.0
_LOOK_SECONDS: Final = 0.2
_RECORDS_A_ROUND: Final = 20_000
_MANY_RECORDS: Final = DEAD_LIMIT // 4
"""With this many dead records in one partition, they are deleted at once."""

log = logging.getLogger(__name__)


async def collect_tombstones(engine: Engine, producer: LastingProducer) -> None:
    """Sweep the partitions that an engine holds, until cancelled."""
    changelog, sent = engine.config.topics.changelog, dict[int, set[bytes]]()
    swept = time.monotonic()
    while True:
        await asyncio.sleep(_LOOK_SECONDS)
        every_seconds = scaled_interval(_EVERY_SECONDS, len(engine.held), most=_MOST_SECONDS)
        many = any(engine.replicas[p].dead_records >= _MANY_RECORDS for p in engine.held)
        if time.monotonic() - swept < every_seconds and not many:
            continue
        dirty = [p for p in engine.held if engine.replicas[p].dead_records]
        # What was sent and is still dead has not been read back yet.
        sent = {p: engine.replicas[p].still_dead(sent.get(p, set())) for p in dirty}
        # A partition with very many must not take the others' share.
        share = _RECORDS_A_ROUND // max(1, len(dirty)) + 1
        due = {p: engine.replicas[p].dead(share, but=sent[p]) for p in dirty}
        try:
            await asyncio.gather(
                *(
                    producer.send_records(changelog, partition, [(key, None) for key in keys])
                    for partition, keys in due.items()
                    if keys
                )
            )
        except KafkaError as error:
            log.debug("sweeping %s failed: %r", engine.config.name, error)
        else:
            for partition, keys in due.items():
                sent[partition].update(keys)
        swept = time.monotonic()
