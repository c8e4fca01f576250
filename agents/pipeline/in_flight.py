"""Flushes in flight: sent to the broker, read back, and won or lost."""

import asyncio
import math
import time
from collections.abc import Collection
from typing import Final

from ldpstream.agents.kafka.complaints import Complaints
from ldpstream.agents.partition.flushes import Flush, Settled
from ldpstream.agents.pipeline.flush_writer import FlushWriter
from ldpstream.agents.pipeline.identity import SourceChangedError
from ldpstream.agents.reading.interval import PARTITIONS, scaled_interval
from ldpstream.agents.reading.owned_partition import OwnedPartition, Owner

FLUSH_SECONDS: Final = 0.25


class InFlightFlushes:
    """The flushes of one collection, at most one in flight for each partition.

    A partition flushes at most every `every_seconds`.
    """

    def __init__(
        self,
        title: str,
        carrier: FlushWriter,
        owner: Owner,
        *,
        every_seconds: float = FLUSH_SECONDS,
    ) -> None:
        self._title = title
        self._writer = carrier
        self._owner = owner
        self._complaints = Complaints()
        self._least_seconds = self._every_seconds = every_seconds
        self._last_round = -math.inf

    def tick(self, now: float, partitions: int) -> None:
        """Set the time, on the monotonic clock, and the number of held partitions.

        Many partitions flush together, in rounds, so that they share requests to the broker.
        """
        if partitions <= PARTITIONS:
            self._every_seconds = self._least_seconds
        elif now - self._last_round < scaled_interval(self._least_seconds, partitions):
            self._every_seconds = math.inf
        else:
            self._every_seconds, self._last_round = 0.0, now

    def start(self, held: OwnedPartition) -> None:
        """Flush a partition that is due or full, if it has something new and no flush in flight."""
        now = time.monotonic()
        soon = now - held.flushed < self._every_seconds and not held.state.full
        if held.flight is not None or soon or held.leaving:
            return
        flush = held.state.flush()
        if flush is not None:
            held.flushed = now
            held.flight = asyncio.create_task(self._fly(held, flush))
            held.flight.add_done_callback(self._flown)

    def soon(self, held: OwnedPartition) -> None:
        """Schedule a flush of a partition with something new for when it is due."""
        wait = held.flushed + self._every_seconds - time.monotonic()
        if wait <= 0 or held.state.full:
            self.start(held)
        elif held.timer is None and wait < math.inf:
            held.timer = asyncio.get_running_loop().call_later(wait, self._due, held)

    def _due(self, held: OwnedPartition) -> None:
        held.timer = None
        self.start(held)

    async def drain(self, partitions: Collection[OwnedPartition], deadline: float) -> None:
        """Flush what has been taken in by now, until the monotonic clock reaches `deadline`.

        What arrives meanwhile is left to the next owner: with a steady stream this would never end,
        and the next flush would be cut off, its copies sent and its head not.
        `partitions` may shrink meanwhile.
        """
        flushing = [asyncio.create_task(self._flush_all(held, partitions)) for held in partitions]
        if flushing:
            _, late = await asyncio.wait(flushing, timeout=max(0.0, deadline - time.monotonic()))
            for one in late:
                one.cancel()

    async def _flush_all(
        self, held: OwnedPartition, partitions: Collection[OwnedPartition]
    ) -> None:
        if held.flight is not None:
            # It started before the newest data arrived.
            await asyncio.wait([held.flight])
        if any(one is held for one in partitions):
            self._every_seconds = 0.0
            self.start(held)
            held.leaving = True
        if held.flight is not None:
            await asyncio.wait([held.flight])

    async def _fly(self, held: OwnedPartition, flush: Flush) -> None:
        """Send one flush to the broker and wait for its outcome."""
        try:
            error = await self._writer.carry(held.partition, flush)
            if error is not None:
                what = f"collection {self._title}: partition {held.partition}"
                self._complaints.note(held.partition, error, what)
            elif await self._settled(held) is Settled.WON:
                assert held.state.flushes.outcome is not None
                seconds = time.monotonic() - held.flushed
                self._owner.won(held, flush.next, held.state.flushes.outcome, seconds)
                self._complaints.over(held.partition)
                return
            self._owner.lost(held, refused=error is not None)
        except SourceChangedError as error:
            self._owner.fail(str(error))
        finally:
            held.flight = None

    async def _settled(self, held: OwnedPartition) -> Settled:
        while (outcome := held.state.settle()) is Settled.WAITING:
            held.read.clear()
            await held.read.wait()
        return outcome

    def _flown(self, flight: "asyncio.Task[None]") -> None:
        """Stop the collection after an unexpected error: its partition must not seem alive."""
        error = None if flight.cancelled() else flight.exception()
        if error is not None:
            self._owner.fail(f"internal error: {error!r}")
