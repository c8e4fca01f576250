"""A worker in the simulation: a shell around the product's state machine, one call a step.

It does what the real worker does (fetch, send, wait for acknowledgements, commit) with the
simulated brokers; all decisions are the product's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ldpstream.agents.state.batch import Arrivals
from ldpstream.agents.state.classification import LATE, OUTCOMES, Classified
from ldpstream.agents.state.flushes import Flush, Settled
from ldpstream.agents.state.partition import Partition
from ldpstream.agents.state.records import CellRecord, Name
from ldpstream.agents.state.replica import Replica
from tests.stream.simulation.evaluation import Store, add
from tests.stream.simulation.setting import PASSED, demand

if TYPE_CHECKING:
    from tests.stream.simulation.brokers import Send
    from tests.stream.simulation.world import World

Outcome = tuple[int, int, str]


class Watched(Partition):
    """The product's partition, which keeps each report's (offset, index, outcome) as well."""

    outcomes: list[Outcome]
    moved: int
    """How far other partitions or orders have moved the partition's clock."""

    def prepare(self) -> None:
        """Set up what tests add, after loading."""
        self.outcomes = []

    def _classify(
        self, records: Sequence[tuple[int, bytes | None]], arrived: Arrivals
    ) -> Classified:
        classified = super()._classify(records, arrived)
        self.outcomes += outcomes_of(records, classified)
        return classified


def outcomes_of(
    records: Sequence[tuple[int, bytes | None]], classified: Classified
) -> list[Outcome]:
    outcomes = [(records[place][0], 0, reason) for place, reason in classified.batch.refused]
    row, seen = 0, {}
    batch = classified.batch
    runs = zip(
        batch.message.tolist(), batch.count.tolist(), classified.outcome.tolist(), strict=True
    )
    for place, count, outcome in runs:
        for _ in range(count):
            index = seen[place] = seen.get(place, -1) + 1
            why = OUTCOMES[outcome]
            if not classified.good[row] and outcome <= LATE:
                why = "range" if classified.why is None else OUTCOMES[classified.why[row]]
            outcomes.append((records[place][0], index, why))
            row += 1
    decided = {offset for offset, _, _ in outcomes}
    passed = [(offset, 0, PASSED) for offset, _ in records if offset not in decided]
    demand(len(passed) == batch.passed, "(1) a message without an outcome")
    return outcomes + passed


class Reader:
    """A replica, its position in the log, and the records as they were read."""

    def __init__(self, world: World, p: int) -> None:
        self.world, self.p = world, p
        self.replica: Replica = world.replica_class(world.context, p)
        self.position = 0
        self.store: Store = {}
        self.shown: dict[Name, CellRecord] = {}
        self.news = False

    def read(self, limit: int) -> None:
        records, end = self.world.fetch(self.p, self.position, limit)
        if self.world.shadow:
            for record in records:
                add(self.store, *record)
        self.position = end if len(records) < limit else records[-1][0] + 1
        before = self.replica.head
        self.news = self.news or bool(records) or before is None
        if not self.replica.read(records, position=self.position, end=end):
            same = self.replica.head is before and dict(self.replica.cells) == self.shown
            demand(same, "(3) a view changes in the middle of the log")
        elif self.news:
            self.news = False
            self.shown = dict(self.replica.cells)
            self.world.check_view(self, before)


@dataclass
class Flight:
    """A flush in flight: its sends, and whether the head is among them."""

    flush: Flush
    outcomes: list[Outcome]
    sends: list[Send]
    head_sent: bool = False


@dataclass
class OwnedPartition:
    """A partition that a worker holds."""

    part: Watched
    flight: Flight | None = None
    ended_ms: int | None = None
    """When the source was last seen to end at the next offset, on the worker's clock."""


class Worker:
    """One process of the group."""

    partition_class: type[Watched] = Watched

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name, self.paused = world, name, False
        self.skew_ms = world.rng.choice([-1, 0, 0, 1])
        self.readers = [world.reader_class(world, p) for p in range(len(world.source))]
        self.owned: set[int] = set()
        self.known, self.generation = world.partitions, -1
        self.held: dict[int, OwnedPartition] = {}

    @property
    def replicas(self) -> list[Replica]:
        return [reader.replica for reader in self.readers]

    @property
    def now_ms(self) -> int:
        return self.world.wall_ms + self.skew_ms

    @property
    def steady_ms(self) -> int:
        """The process's own clock, which nobody sets."""
        return self.world.now_ms

    def poll(self, _p: int) -> None:
        """Call the group: only here does a worker learn of a rebalance."""
        self.generation, self.known = self.world.generation, self.world.partitions
        self.owned = {q for q, name in self.world.assignment.items() if name == self.name}
        self.held = {q: held for q, held in self.held.items() if q in self.owned}
        for q in self.held:
            self.commit(q)

    def replica(self, p: int) -> None:
        rng = self.world.rng
        self.readers[rng.randrange(self.world.partitions)].read(rng.randint(1, 6))
        self.readers[p].read(rng.choice([2, 99]))

    def load(self, p: int) -> None:
        if p in self.owned and p not in self.held:
            part = self.partition_class.load(
                self.world.context, p, self.replicas, epoch=self.draw_epoch(p)
            )
            if part is not None:
                part.prepare()
                self.world.times.loaded(p, part)
                self.held[p] = OwnedPartition(part)
                self.loaded(p)

    def commit(self, p: int) -> bool:
        """Commit the next offset of the winning head; return False after a rebalance."""
        return self.world.commit(p, self.held[p].part.base.next, self.generation)

    def loaded(self, p: int) -> None:
        """Commit at once, for the owner before may have ended before it could."""
        self.commit(p)

    def draw_epoch(self, _p: int) -> int:
        return self.world.rng.getrandbits(40) + 1

    def ingest(self, p: int) -> None:
        held = self.held.get(p)
        if held is None:
            return
        part, source, start = held.part, self.world.source[p], self.world.start[p]
        if part.next < start:
            part.outcomes += self.world.lost_outcomes(p, part.next, start)
            part.skip_to(start, now_ms=self.now_ms)
        if part.next == len(source) and self.world.rng.random() < self.world.fetch_errors:
            part.interrupted()
        stop = min(part.next + self.world.rng.choice([1, 2, 2, 5]), len(source))
        offsets, before = range(part.next, stop), len(part.outcomes)
        records = [(offset, source[offset].value) for offset in offsets]
        part.ingest(records, now_ms=self.now_ms, arrived=self.arrivals(p, offsets, held))
        self.world.times.check(p, part, part.outcomes[before:])
        held.ended_ms = self.now_ms if stop == len(source) else None
        part.read_to(part.next, end=len(source), asked_ms=self.steady_ms)

    def arrivals(self, p: int, offsets: range, held: OwnedPartition) -> Arrivals:
        return self.world.times.arrivals(p, offsets, held, self.now_ms)

    def clock(self, p: int) -> None:
        held = self.held.get(p)
        if held is not None:
            self.probe(p, held)
            before = held.part.work.clock
            held.part.clock(
                replicas=self.replicas,
                controls=self.world.controls,
                known_partitions=self.known,
                now_ms=self.steady_ms,
            )
            if held.part.work.clock > before and not self.all_idle(held.part):
                held.part.moved = max(held.part.moved, held.part.work.clock)

    def all_idle(self, part: Watched) -> bool:
        """Return whether nothing but time and reports can have moved a partition's clock."""
        heads = [replica.head for replica in self.replicas[: self.known]]
        idle = (head.idle for p, head in enumerate(heads) if p != part.partition)
        return part.work.idle and all(idle) and not self.world.controls

    def probe(self, p: int, held: OwnedPartition) -> None:
        """Probe the end of the source, as if at every moment."""
        end = len(self.world.source[p])
        held.part.read_to(held.part.next, end=end, asked_ms=self.steady_ms)

    def flush(self, p: int) -> None:
        held = self.held.get(p)
        if held is None:
            return
        if held.flight is None:
            flush = held.part.flush()
            if flush is not None:
                self.world.times.flushed(p, held.part)
                outcomes, held.part.outcomes = held.part.outcomes, []
                sends = [self.world.send_copy(p, copy) for copy in flush.copies]
                sends += [self.world.send(p, key, value) for key, value in flush.cells]
                held.flight = Flight(flush, outcomes, sends)
        elif any(send.state == "failed" for send in held.flight.sends):
            del self.held[p]
        elif not held.flight.head_sent and self.acknowledged(held.flight):
            head = self.world.send(p, *held.flight.flush.head)
            head.outcomes = held.flight.outcomes
            held.flight.sends = [head]
            held.flight.head_sent = True

    def acknowledged(self, flight: Flight) -> bool:
        return all(send.state == "acked" for send in flight.sends)

    def settle(self, p: int) -> None:
        held = self.held.get(p)
        if held is None:
            return
        settled = held.part.settle()
        if settled is Settled.WON:
            assert held.flight is not None
            held.flight = None
            if not self.commit(p):
                self.poll(p)
        elif settled is Settled.LOST:
            del self.held[p]

    def publish(self, p: int) -> None:
        held = self.held.get(p)
        if held is not None:
            for publication in held.part.publications():
                self.world.publish(publication)

    def mark(self, p: int) -> None:
        held = self.held.get(p)
        if held is not None:
            held.part.mark_published()

    def sweep(self, p: int) -> None:
        if p in self.held:
            for key in self.readers[p].replica.dead():
                self.world.send(p, key, None)
