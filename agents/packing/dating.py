"""Estimate when the records of one partition arrived, as a packer knows it.

A packer reads the source like a worker with unpacked input, and knows as much. So what it packs
late counts as if it had been read at once (`ldpstream.agents.partition.arrival`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from ldpstream.agents.kafka.answers import Answers
from ldpstream.agents.packing.batches import Run
from ldpstream.agents.partition.arrival import Dates, Int64s


@dataclass
class Dating:
    """What is known about a partition that is read from `position` on."""

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
