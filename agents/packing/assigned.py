"""A partition that a packer reads: what it knows of it, and sends of it."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from aiokafka import TopicPartition

from ldpstream.agents.kafka.answers import Answers
from ldpstream.agents.packing.batches import Run
from ldpstream.agents.packing.buffer import Buffer
from ldpstream.agents.partition.arrival import Dates, Int64s


@dataclass(frozen=True)
class PackOptions:
    """How long a record may wait for others, and how large a packed message may be."""

    linger_ms: int = 100
    limit_bytes: int = 512 << 10


@dataclass
class Dating:
    """Estimates when the records of a partition that is read from `position` on arrived.

    A packer reads the source like a worker with unpacked input, and knows as much. So what it packs
    late counts as if it had been read at once (`ldpstream.agents.partition.arrival`).
    """

    answers: Answers
    position: int
    recent: Sequence[int] = ()

    def read(
        self, taken: Sequence[Run], *, stop: int, end: int, steady_ms: int, now_ms: int
    ) -> tuple[Int64s, bool]:
        """Return when the runs' records arrived, and whether the broker has set all timestamps.

        Epoch ms, int64 `(N,)`. Call it even if nothing was found: the log was read up to `stop`,
        and ends at `end`. `steady_ms` is on the clock of `answers`.
        """
        since_ms = self.answers.read(self.position, stop, end=end)
        self.position = stop
        times_ms = list(chain.from_iterable(run.times_ms for run in taken))
        dates = Dates(times_ms, all(run.appended for run in taken), self.recent)
        self.recent = dates.up_to(len(times_ms))
        known = dates.arrivals(
            since_ms=None if since_ms is None else now_ms - (steady_ms - since_ms), now_ms=now_ms
        )
        arrived: Int64s = np.broadcast_to(np.asarray(known.clock_ms, np.int64), len(times_ms))
        return arrived, dates.appended


@dataclass
class AssignedPartition:
    """A partition of a source that is currently ours."""

    source: TopicPartition
    buffer: Buffer
    dating: Dating
    began: float = 0.0
    """When the first record in the buffer arrived."""
    acknowledged: int | None = None
    flight: "asyncio.Task[None] | None" = None
    given_up: bool = False
    astray: bool = False
    """Whether our position no longer exists in the source."""
