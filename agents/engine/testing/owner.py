"""What a test driver runs: a partition with its owner, and randomness that can be repeated.

Its messages are given to it, and its changelog is in memory.
"""

from collections.abc import Sequence
from itertools import count
from typing import Final

import numpy as np

from ldpstream.agents.state.context import Context
from ldpstream.agents.state.flushes import Copy, Settled
from ldpstream.agents.state.partition import Partition
from ldpstream.agents.state.replica import Replica
from ldpstream.mechanisms.exact.entropy import Words

_NOISE: Final = int.from_bytes(b"noise", "big")
"""Separates this stream from other uses of the same seed."""


class DriverPartition:
    """A partition of the source with its changelog, and its owner's state, None until loaded.

    Records land at once and in order, so every flush wins.
    """

    def __init__(self, context: Context, partition: int) -> None:
        self.replica = Replica(context, partition)
        self.copies: list[Copy] = []
        self.state: Partition | None = None
        self.end = 0
        """The source's end offset: every message below it has been ingested."""
        self._context = context
        self._partition = partition
        self._log_end = 0
        self._epochs = count(1)
        self._probed_ms: int | None = None
        self._append(())

    def load(self, replicas: Sequence[Replica]) -> Partition | None:
        """Return the state, loaded from the changelog if it is not in memory.

        None until partition 0's commit record counts this partition.
        """
        if self.state is None:
            epoch = next(self._epochs)
            self.state = Partition.load(self._context, self._partition, replicas, epoch=epoch)
            self._probed_ms = None
        return self.state

    def drop(self) -> None:
        """Discard what is in memory, like a killed process."""
        self.state = None

    def take(self, message: bytes | None, *, now_ms: int) -> None:
        """Ingest the next message of the source; the state must be in memory."""
        assert self.state is not None
        self.state.ingest([(self.end, message)], now_ms=now_ms)
        self.end += 1
        # The fetch that returned it was sent before it arrived.
        self.state.read_to(self.end, end=self.end, asked_ms=now_ms - 1)

    def probe(self, *, now_ms: int) -> None:
        """Act as if the source's end had been probed regularly since the last call."""
        assert self.state is not None
        gap_ms, idle_ms = self._context.gap_ms, self._context.window.idle_ms or 0
        begun = now_ms if self._probed_ms is None else self._probed_ms
        # Probes from long before the idle time do not matter.
        begun = max(begun, now_ms - idle_ms - 2 * gap_ms)
        for asked_ms in (*range(begun, now_ms, gap_ms), now_ms):
            self.state.read_to(self.end, end=self.end, asked_ms=asked_ms)
        self._probed_ms = now_ms

    def flush(self) -> bool:
        """Write what has changed, read it back, and delete what is dead; return whether any was."""
        flush = None if self.state is None else self.state.flush()
        if self.state is None or flush is None:
            return False
        self.copies += flush.copies
        self._append((*flush.cells, flush.head))
        assert self.state.settle() is Settled.WON, "nobody else writes to this changelog"
        self._append([(key, None) for key in self.replica.dead()])
        return True

    def _append(self, records: Sequence[tuple[bytes, bytes | None]]) -> None:
        begun = self._log_end
        self._log_end += len(records)
        placed = [(begun + place, *record) for place, record in enumerate(records)]
        self.replica.read(placed, position=self._log_end, end=self._log_end)


class SeededEntropy:
    """A reproducible generator (PCG64) of independent, uniform words: for tests, never for privacy.

    Its words differ from those of `numpy.random.default_rng(seed)`: simulations draw their values
    from that, and noise from the same words would depend on the values.
    """

    def __init__(self, seed: int) -> None:
        sequence = np.random.SeedSequence(seed, spawn_key=(_NOISE,))
        self._bits = np.random.PCG64(sequence)

    def words(self, n: int) -> Words:
        """Return the next `n` words, uint64 of shape `(n,)`."""
        return self._bits.random_raw(n)
