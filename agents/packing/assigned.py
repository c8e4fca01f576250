"""A partition that a packer reads: what it knows of it, and sends of it."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from aiokafka import TopicPartition

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.kafka.answers import Answers
from ldpstream.agents.kafka.whole_batches import Run
from ldpstream.agents.packing.buffer import Buffer


@dataclass(frozen=True)
class PackOptions:
    """How long a record may wait for others, and how large a packed message may be."""

    linger_ms: int = 100
    limit_bytes: int = 512 << 10


@dataclass
class AssignedPartition:
    """A partition of a source that is currently ours."""

    collection: CollectionConfig
    source: TopicPartition
    buffer: Buffer
    answers: Answers
    read_to: int
    """Everything below has been read, and what it held is packed or in the buffer."""
    began: float = 0.0
    """When the first record in the buffer arrived."""
    acknowledged: int | None = None
    flight: "asyncio.Task[None] | None" = None
    given_up: bool = False
    astray: bool = False
    """Whether our position no longer exists in the source."""

    @property
    def named(self) -> tuple[str, int]:
        """The collection's name, and the partition's number."""
        return self.collection.name, self.source.partition

    def read(
        self, taken: Sequence[Run], *, stop: int, end: int, steady_ms: int, now_ms: int
    ) -> None:
        """Buffer what was read, dated as a worker that reads the source itself would date it.

        Call it even if nothing was found: the log was read up to `stop`, and ends at `end`.
        `steady_ms` is on the clock of `answers`.
        """
        since_ms = self.answers.read(self.read_to, stop, end=end)
        self.read_to = stop
        if taken:
            if not self.buffer.runs:
                self.began = time.monotonic()
            times_ms = list(chain.from_iterable(run.times_ms for run in taken))
            dates = self.answers.dates(times_ms, appended=all(run.appended for run in taken))
            ago_ms = None if since_ms is None else steady_ms - since_ms
            arrived = dates.arrivals(
                since_ms=None if ago_ms is None else now_ms - ago_ms, now_ms=now_ms
            )
            clock_ms = np.asarray(arrived.clock_ms, np.int64)
            self.buffer.add(taken, np.broadcast_to(clock_ms, len(times_ms)))
