"""Periodic work of all engines of a worker, each kind of it in one task.

The more partitions there are the less often it is done.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from aiokafka import TopicPartition

from ldpstream.agents.pipeline.engine import Engine
from ldpstream.agents.pipeline.flushing import FlushPace
from ldpstream.agents.pipeline.services import Group
from ldpstream.agents.reading.contained import contained
from ldpstream.agents.reading.interval import scaled_interval

TICK_SECONDS: Final = 0.1
_MOST_TICK_SECONDS: Final = 0.5
_WATCH_SECONDS: Final = 2.0
_MOST_WATCH_SECONDS: Final = 10.0
_COMMIT_SECONDS: Final = 1.0
_MOST_COMMIT_SECONDS: Final = 5.0


async def keep_ticking(engines: Sequence[Engine], pace: FlushPace) -> None:
    """Load partitions, advance time and flush, until cancelled."""
    while True:
        deciding = False
        with pace.round(time.monotonic()):
            for engine in engines:
                with contained(engine.fail):
                    deciding |= engine.tick()
                await asyncio.sleep(0)
        held = sum(len(engine.held) for engine in engines)
        pause = scaled_interval(TICK_SECONDS, held, most=_MOST_TICK_SECONDS)
        await asyncio.sleep(0 if deciding else pause)


async def keep_checking_topics(engines: Sequence[Engine]) -> None:
    """Check now and then that topics are still the same, until cancelled.

    A flush checks those that it needs. This is for collections at rest.
    """
    many = sum(engine.config.partitions for engine in engines)
    every_seconds = scaled_interval(_WATCH_SECONDS, many, most=_MOST_WATCH_SECONDS)
    while True:
        await asyncio.sleep(every_seconds)
        # Whoever asks at the same time shares an answer.
        await asyncio.gather(*(engine.check_topics() for engine in engines if not engine.stopped))


class Progress:
    """Tells the group every second which offsets the heads of assigned partitions have won.

    That is for tools that watch the group only: a lost commit causes nothing but an apparent lag.
    """

    def __init__(self, group: Group, engines: Sequence[Engine]) -> None:
        self.assigned: AbstractSet[TopicPartition] = frozenset()
        self._group = group
        self._engines = engines
        self._committed: Mapping[TopicPartition, int] = {}

    async def commit(self) -> None:
        """Commit what has been won since the last commit, and what could not be committed then."""
        won = {
            partition: replica.head.next
            for engine in self._engines
            for replica in engine.replicas
            if (partition := TopicPartition(engine.config.topics.source, replica.partition))
            in self.assigned
            and replica.head is not None
        }
        new = dict(won.items() - self._committed.items())
        if new and await self._group.commit(new):
            self._committed = won

    async def run(self) -> None:
        """Commit until cancelled."""
        while True:
            many = len(self.assigned)
            await asyncio.sleep(scaled_interval(_COMMIT_SECONDS, many, most=_MOST_COMMIT_SECONDS))
            await self.commit()
