"""Delete dead records from the changelog, so that it stays as short as its state.

Correctness never depends on this: deleting a dead record twice, late or never does no harm. But
each dead record takes memory in every worker until it is deleted, so a partition with very many of
them is full, and is swept at once.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import Final

from aiokafka.errors import KafkaError

from ldpstream.agents.kafka.producing import LastingProducer
from ldpstream.agents.pipeline.engine import Engine
from ldpstream.agents.reading.contained import contained
from ldpstream.agents.reading.interval import scaled_interval
from ldpstream.agents.state.shown import DEAD_LIMIT

_EVERY_SECONDS: Final = 5.0
_MOST_SECONDS: Final = 20.0
_LOOK_SECONDS: Final = 0.2
_RECORDS_A_ROUND: Final = 20_000
_MANY_RECORDS: Final = DEAD_LIMIT // 4
"""With this many dead records in one partition, they are deleted at once."""

log = logging.getLogger(__name__)


async def collect_tombstones(engines: Sequence[Engine], producer: LastingProducer) -> None:
    """Sweep the partitions that engines hold, until cancelled.

    Those of an engine every few seconds, less often if they are many, but at once if one has much
    to delete.
    """
    sweeps = [_Sweep(engine, producer) for engine in engines]
    async with asyncio.TaskGroup() as group:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            for sweep in sweeps:
                if sweep.due():
                    sweep.running = group.create_task(sweep.run())


class _Sweep:
    """Sweeps the partitions of one engine."""

    def __init__(self, engine: Engine, producer: LastingProducer) -> None:
        self._engine = engine
        self._producer = producer
        self.running: asyncio.Task[None] | None = None
        self._swept = time.monotonic()
        # What was sent, and may not have been read back yet, by partition.
        self._sent: dict[int, set[bytes]] = {}

    def due(self) -> bool:
        """Return whether it is time for a sweep, or one partition has much to delete."""
        if self.running is not None and not self.running.done():
            return False
        engine = self._engine
        every_seconds = scaled_interval(_EVERY_SECONDS, len(engine.held), most=_MOST_SECONDS)
        return time.monotonic() - self._swept >= every_seconds or any(
            engine.replicas[partition].dead_records >= _MANY_RECORDS for partition in engine.held
        )

    async def run(self) -> None:
        """Delete what is dead, up to a number of records."""
        with contained(self._engine.fail):
            await self._delete()
        self._swept = time.monotonic()

    async def _delete(self) -> None:
        engine, changelog = self._engine, self._engine.config.topics.changelog
        dirty = [p for p in engine.held if engine.replicas[p].dead_records]
        # What was sent and is still dead has not been read back yet.
        sent = {p: engine.replicas[p].still_dead(self._sent.get(p, set())) for p in dirty}
        self._sent = sent
        # A partition with very many must not take the others' share.
        share = _RECORDS_A_ROUND // max(1, len(dirty)) + 1
        due = {p: engine.replicas[p].dead(share, but=sent[p]) for p in dirty}
        try:
            await asyncio.gather(
                *(
                    self._producer.send_records(changelog, partition, [(key, None) for key in keys])
                    for partition, keys in due.items()
                    if keys
                )
            )
        except KafkaError as error:
            log.debug("sweeping %s failed: %r", engine.config.name, error)
        else:
            for partition, keys in due.items():
                sent[partition].update(keys)
