"""A collection's pipeline without a broker and with its own clock, for tests of users' code.

Messages go in, finals come out, and time passes only by `advance`. The state machine is the
worker's own; only the broker is missing. Compare Kafka Streams' TopologyTestDriver.
"""

from collections.abc import Sequence
from itertools import count, cycle
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ldpstream.agents.config.collection import CollectionConfig
from ldpstream.agents.config.query.capabilities import request_options
from ldpstream.agents.config.query.options import EstimateRequest
from ldpstream.agents.document.build import build_document
from ldpstream.agents.document.model import EstimateDocument
from ldpstream.agents.engine.contexts import make_context
from ldpstream.agents.engine.windowed_table import WindowedTable
from ldpstream.agents.state.close_orders import Control
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.flushes import Copy, Settled
from ldpstream.agents.state.listing import windows
from ldpstream.agents.state.partition import Partition
from ldpstream.agents.state.replica import Replica
from ldpstream.agents.state.view import add_up, answer
from ldpstream.mechanisms.base.times import format_time, parse_duration, parse_time
from ldpstream.mechanisms.exact.entropy import Words

_NOISE: Final = int.from_bytes(b"noise", "big")
"""Separates this stream from other uses of the same seed."""
START: Final = "2026-01-01T00:00:00Z"
_ROUNDS: Final = 100_000


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


class Driver:
    """The pipeline of one collection, for tests: no broker, no waiting, reproducible.

    The clock starts at `start`, an RFC 3339 time or epoch milliseconds, and moves only by
    `advance`. All randomness comes from `seed`, so a test gives the same numbers each time; never
    use it for people's values.

    Raises:
        ValueError: for an invalid start, or a collection that accepts earlier specs, each of which
            has a state of its own.
    """

    def __init__(
        self, collection: CollectionConfig, *, start: str | int = START, seed: int = 0
    ) -> None:
        if collection.accept:
            raise ValueError(f"collection.{collection.name}.accept: expected none in a test driver")
        self.collection = collection
        try:
            self.now_ms = parse_time(str(start))
        except ValueError as error:
            raise ValueError(f"start: expected {error}, got {start!r}") from None
        self.finals: list[EstimateDocument] = []
        """The documents of final windows, in the order in which they were published."""
        self._entropy = SeededEntropy(seed)
        self._context = make_context(collection, partitions=collection.partitions)
        self._owners = [
            DriverPartition(self._context, number) for number in range(collection.partitions)
        ]
        self._replicas = [owner.replica for owner in self._owners]
        self._turn = cycle(range(collection.partitions))
        self._controls: list[Control] = []
        self._settle()

    @property
    def now(self) -> str:
        """The time on the driver's clock, RFC 3339 in UTC."""
        return format_time(self.now_ms)

    # --- what devices and operators do -----------------------------------------------------------

    def send(
        self,
        values: Sequence[Any] | NDArray[Any],
        *,
        times: Sequence[str | int] | None = None,
        partition: int | None = None,
    ) -> None:
        """Privatize values as devices do, and produce one message with all reports.

        Each value has its own time, by default now. Messages go to the partitions in turn.

        Raises:
            ValueOutsideDomainError: naming the position of the first bad value.
            ValueError: for no values, or if there is not one time for each; with `one_report`,
                whose devices make their own messages: pass these to `produce`.
        """
        count = len(values)
        if not count:
            raise ValueError("values: expected at least one")
        times_ms = [self.now_ms] * count if times is None else [parse_time(str(t)) for t in times]
        frame = self.collection.spec.frame(values, times_ms=times_ms, entropy=self._entropy)
        self.produce(frame, partition=partition)

    def produce(self, message: bytes | None, *, partition: int | None = None) -> None:
        """Let any message arrive: a device's frame, or anything else.

        Raises:
            ValueError: for a partition that does not exist.
        """
        chosen = next(self._turn) if partition is None else partition
        if not 0 <= chosen < len(self._owners):
            most = len(self._owners) - 1
            raise ValueError(f"partition: expected a number in 0..{most}, got {partition}")
        self._owners[chosen].take(message, now_ms=self.now_ms)
        self._settle()

    def advance(self, duration: str | int) -> None:
        """Let time pass, such as `"90s"` or a number of milliseconds, while nothing arrives.

        Partitions become idle and windows close, as in a running worker.

        Raises:
            ValueError: for an invalid duration, or one below 0.
        """
        try:
            ms = parse_duration(duration) if isinstance(duration, str) else duration
        except ValueError as error:
            raise ValueError(f"duration: expected {error}") from None
        if ms < 0:
            raise ValueError(f"duration: expected at least 0, got {duration}")
        end_ms = self.now_ms + ms
        while self.now_ms < end_ms:
            left_ms = end_ms - self.now_ms
            self.now_ms += min(left_ms, self._step_ms(left_ms))
            self._settle()

    def close(self, until: str | int) -> None:
        """Close all panes up to a time, as `ldpstream close` does at the end of a replay."""
        ends = {number: owner.end for number, owner in enumerate(self._owners)}
        self._controls.append(Control(parse_time(str(until)), ends))
        self._settle()

    def restart(self) -> None:
        """Discard all memory, and load the state from the changelogs, as after a kill -9."""
        for owner in self._owners:
            owner.drop()
        self._settle()

    # --- what comes out --------------------------------------------------------------------------

    @property
    def counted(self) -> int:
        """Reports that were counted."""
        return sum(self._heads("n"))

    @property
    def late(self) -> int:
        """Reports that arrived after their pane had closed; `copies` has their messages."""
        return sum(self._heads("late"))

    @property
    def rejected(self) -> dict[str, int]:
        """Rejected messages and reports, by reason; `copies` has them."""
        reasons: dict[str, int] = {}
        for by_reason in self._heads("rejected"):
            for reason, number in by_reason.items():
                reasons[reason] = reasons.get(reason, 0) + number
        return reasons

    @property
    def copies(self) -> list[Copy]:
        """The messages for the topics of late and rejected ones, by partition."""
        return [copy for owner in self._owners for copy in owner.copies]

    @property
    def windows(self) -> WindowedTable:
        """The exact counts, as `pipeline.windows(NAME)` has them in an app."""
        return WindowedTable(self._context, self._replicas)

    def estimate(
        self, request: EstimateRequest | None = None, *, start: str | None = None
    ) -> EstimateDocument:
        """Return a worker's estimates of the window that starts at `start`; by default the newest.

        Raises:
            LookupError: where there is no such window with reports.
            ValueError: for a query that does not fit the collection.
        """
        listed = windows(self._context, self._replicas)
        start_ms = None if start is None else parse_time(start)
        chosen = next((w for w in reversed(listed) if start_ms in {None, w.start_ms}), None)
        if chosen is None:
            raise LookupError("start: expected a window with reports, got none")
        span = chosen.start_ms, chosen.end_ms
        snapshot = answer(self._context, self._replicas, *span, final=chosen.final)
        options = self.collection.options
        if request is not None:
            options = request_options(options, self.collection.spec, request)
        totals = add_up(self._context, snapshot)
        return build_document(
            self.collection, totals, window=span, final=chosen.final, options=options
        )

    # --- the machine -----------------------------------------------------------------------------

    def _step_ms(self, left_ms: int) -> int:
        """Return how far time may jump without skipping a decision of a worker.

        A worker's interval until all partitions are idle; then, while a window is open, to the next
        end of a pane.
        """
        window = self.collection.window
        if window.idle_ms is None:
            return left_ms
        if not all(self._heads("idle")):
            return self._context.gap_ms
        if all(listed.final for listed in windows(self._context, self._replicas)):
            return left_ms
        return window.start(window.pane(self.now_ms) + 1) - self.now_ms

    def _heads(self, field: str) -> list[Any]:
        return [getattr(r.head, field) for r in self._replicas if r.head is not None]

    def _settle(self) -> None:
        """Do everything that is due at this time, until nothing changes any more."""
        for owner in self._owners:
            if owner.load(self._replicas) is not None:
                owner.probe(now_ms=self.now_ms)
        for _ in range(_ROUNDS):
            wrote = [self._turn_over(owner) for owner in self._owners]
            if not any(wrote):
                return
        raise AssertionError("the state keeps changing although no time passes")

    def _turn_over(self, owner: DriverPartition) -> bool:
        """Let one partition decide, publish and flush; return whether it wrote anything."""
        state = owner.load(self._replicas)
        if state is None:
            return False
        state.clock(
            replicas=self._replicas,
            controls=self._controls,
            known_partitions=len(self._owners),
            now_ms=self.now_ms,
        )
        if state.partition == 0:
            for publication in state.publications():
                document = EstimateDocument.model_validate_json(publication.content)
                self.finals.append(document)
            state.mark_published()
        return owner.flush()
