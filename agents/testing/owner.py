"""One partition with its owner: messages in, flushes into a changelog that is a list."""

from collections.abc import Sequence
from itertools import count

from ldpstream.agents.partition.copies import Copy
from ldpstream.agents.partition.flushes import Settled
from ldpstream.agents.partition.partition import Partition
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.replica import Replica


class Owner:
    """A partition of the source, its changelog, and who owns it: nobody, or the one in memory.

    What is sent lands at once and in order, so that every flush wins.
    """

    def __init__(self, context: Context, partition: int) -> None:
        self.replica = Replica(context, partition)
        self.copies: list[Copy] = []
        self.state: Partition | None = None
        self.end = 0
        """The source's end offset: all below has been taken in."""
        self._context = context
        self._partition = partition
        self._log_end = 0
        self._epochs = count(1)
        self._probed_ms: int | None = None
        self._append(())

    def load(self, replicas: Sequence[Replica]) -> Partition | None:
        """Return the state, loaded from the changelog where it is not in memory.

        None as long as partition 0's head does not count this partition.
        """
        if self.state is None:
            epoch = next(self._epochs)
            self.state = Partition.load(self._context, self._partition, replicas, epoch=epoch)
            self._probed_ms = None
        return self.state

    def drop(self) -> None:
        """Forget what is in memory, as a process that is killed does."""
        self.state = None

    def take(self, message: bytes | None, *, now_ms: int) -> None:
        """Take in the next message of the source; the state has to be in memory."""
        assert self.state is not None
        self.state.ingest([(self.end, message)], now_ms=now_ms)
        self.end += 1
        # The answer that brought it had been asked for before it came.
        self.state.read_to(self.end, end=self.end, asked_ms=now_ms - 1)

    def probe(self, *, now_ms: int) -> None:
        """Let the source's end have been asked for all the time since the last probe."""
        assert self.state is not None
        gap_ms, idle_ms = self._context.gap_ms, self._context.window.idle_ms or 0
        begun = now_ms if self._probed_ms is None else self._probed_ms
        # What was asked long before the idle time began does not matter.
        begun = max(begun, now_ms - idle_ms - 2 * gap_ms)
        for asked_ms in (*range(begun, now_ms, gap_ms), now_ms):
            self.state.read_to(self.end, end=self.end, asked_ms=asked_ms)
        self._probed_ms = now_ms

    def flush(self) -> bool:
        """Write what has changed, read it back, and delete what is dead; say whether it did."""
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
