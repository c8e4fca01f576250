"""Every rule taken away in turn, by overriding the product's code or the simulated shell's.

A rule whose absence the simulation does not notice is superfluous, or not tested.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Self

from ldpstream.agents.state.batch import Arrivals
from ldpstream.agents.state.closing import Publication, SeenHeads
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.evaluation import Firsts
from ldpstream.agents.state.records import HEAD, CellRecord, Head, HeadRecord
from ldpstream.agents.state.replica import Replica
from tests.stream.simulation.evaluation import read_key
from tests.stream.simulation.patched import mutant
from tests.stream.simulation.setting import demand
from tests.stream.simulation.worker import Flight, OwnedPartition, Reader, Watched, Worker
from tests.stream.simulation.world import World

# 1: keys.


@mutant("1 keys overwritten", 18)
class KeysOverwritten(World):
    """Compaction as it would be if the keys had no seq: an epoch overwrites its own cells."""

    def compact(self, p: int, upto: int, *, drop_deletions: bool) -> None:
        last = {}
        for offset, data, value in self.log[p]:
            key = read_key(self.prefix, data)
            if offset < upto and value is not None and key.name != HEAD:
                last[key[:2]] = offset
        self.log[p][:] = [
            (offset, data, value)
            for offset, data, value in self.log[p]
            if offset >= upto
            or value is None
            or last.get(read_key(self.prefix, data)[:2], offset) == offset
        ]
        super().compact(p, upto, drop_deletions=drop_deletions)


# 2 and 3: evaluation.


@mutant("2 last head wins", 12)
class LastWins(Replica):
    """Of the heads with one seq the last in the log wins."""

    def _elect(self, heads: list[HeadRecord]) -> Head:
        return super()._elect([head._replace(offset=-head.offset) for head in heads])


@mutant("3 no lineage", 9)
class NoLineage(Replica):
    """A cell counts if its seq is not above the head's, whoever wrote it."""

    def _decide(self, cell: CellRecord, head: Head, firsts: Firsts) -> None:
        super()._decide(cell, replace(head, lineage={cell.epoch: cell.seq}), firsts)


@mutant("3 lineage of one epoch", 3)
class ShortLineage(Watched):
    """A head names its own epoch only: cells of earlier owners are lost."""

    def prepare(self) -> None:
        super().prepare()
        flush = self._cells.flush
        self._cells.flush = lambda *given: (flush(*given)[0], {self.epoch: given[-1]})


# 5: readers.


class Anywhere(Reader):
    """A reader evaluates after every fetch; what it shows must at least have won once."""

    def read(self, limit: int) -> None:
        records, end = self.world.fetch(self.p, self.position, limit)
        self.position = end if len(records) < limit else records[-1][0] + 1
        before = self.replica.head
        self.replica.read(records, position=end, end=end)
        if self.position == end:
            self.world.check_view(self, before)
        elif self.replica.head.seq:
            won = self.world.won[self.p].get(self.replica.head.seq)
            demand(won == self.replica.head.epoch, "(5) shows a head that never won")


@mutant("5 view anywhere", 345)
class ViewAnywhere(World):
    shadow = False
    reader_class = Anywhere


# 6: load.


@mutant("6 same epoch", 5)
class SameEpoch(Worker):
    """A worker uses one epoch for all its loads."""

    def draw_epoch(self, p: int) -> int:
        if not hasattr(self, "epoch"):
            self.epoch = super().draw_epoch(p)
        return self.epoch


@mutant("6 early commit", 0)
class EarlyCommit(Worker):
    """Commits what is in memory when the flush starts."""

    def flush(self, p: int) -> None:
        super().flush(p)
        held = self.held.get(p)
        if held and held.flight:
            self.world.commit(p, held.part.work.next, self.generation)


@mutant("6 load at the committed offset", 3)
class FromCommitted(Worker):
    """Loads at the committed offset."""

    def load(self, p: int) -> None:
        fresh, committed = p not in self.held, self.world.committed[p]
        super().load(p)
        if fresh and p in self.held:
            part = self.held[p].part
            part.work = replace(part.work, next=committed)


# 7: decisions take effect with the head.


@mutant("7 closed but not said", 0)
class LateUnsaid(Watched):
    """What closed in memory is not written: heads repeat the closed panes of the base."""

    def clock(self, **moment: object) -> None:
        super().clock(**moment)
        self.work = replace(self.work, closed=self.base.closed)


@mutant("7 lost but not counted", 5)
class LostUncounted(Watched):
    """Offsets that retention deleted are passed over without being counted."""

    def skip_to(self, offset: int, *, now_ms: int) -> None:
        self.read_to(offset, end=self.work.end, asked_ms=None)


@mutant("7 event times beyond arrival", 5)
class Uncapped(Worker):
    """Event times move the clock as far ahead of their arrival as is accepted."""

    def arrivals(self, p: int, offsets: range, held: OwnedPartition) -> Arrivals:
        known = super().arrivals(p, offsets, held)
        return replace(known, clock_ms=known.latest_ms + self.world.context.window.future_ms)


@mutant("7 the worker's clock while catching up", 6)
class WorkersClock(Worker):
    """What is read while catching up arrives now, on the worker's clock."""

    def arrivals(self, p: int, offsets: range, held: OwnedPartition) -> Arrivals:
        return Arrivals.at(self.now_ms)


# The model's own assumption.


@mutant("idempotence: duplicates and compaction", 676)
class Duplicates(World):
    """A producer that is not idempotent, on a broker that compacts."""

    def __init__(self, seed: int, *, kafka: bool) -> None:
        super().__init__(seed, kafka=True)

    def do_land(self) -> None:
        if self.flying and self.rng.random() < 0.3:
            self.land(self.rng.randrange(len(self.flying)), duplicate=True)
        super().do_land()


@mutant("4 head without acknowledgements", 37)
class EagerHead(Worker):
    """The head is sent without waiting for the cells that it makes valid."""

    def acknowledged(self, flight: Flight) -> bool:
        return all(send.state == "acked" for send in flight.sends if send.copy is not None)


@mutant("4 head without the copies' acknowledgements", 35)
class EagerCopies(Worker):
    """The head is sent without waiting for the copies."""

    def acknowledged(self, flight: Flight) -> bool:
        return all(send.state == "acked" for send in flight.sends if send.copy is None)


@mutant("4 failures ignored", 34)
class FailureIgnored(Worker):
    """A failed send counts as still in flight, and then as acknowledged."""

    def flush(self, p: int) -> None:
        held = self.held.get(p)
        for send in held.flight.sends if held and held.flight else ():
            send.state = "acked" if send.state == "failed" else send.state
        super().flush(p)


@mutant("4 no reading back", 15)
class Pipelined(Worker):
    """The next flush starts when the head is acknowledged, without reading it back."""

    def flush(self, p: int) -> None:
        held = self.held.get(p)
        if held and held.flight and held.flight.head_sent and self.acknowledged(held.flight):
            part = held.part
            part.base, part.flight = part.flight, None
            held.flight = None
        super().flush(p)

    def settle(self, p: int) -> None:
        held, seen = self.held.get(p), self.replicas[p].head
        if held and seen.seq > held.part.base.seq and seen.epoch != held.part.epoch:
            del self.held[p]
        elif held:
            self.world.commit(p, held.part.base.next, self.generation)


@mutant("4 retry in the same epoch", 67)
class Retry(Worker):
    """After a failed send the same epoch flushes its newer state again under the same seq."""

    def flush(self, p: int) -> None:
        held = self.held.get(p)
        if not (held and held.flight and any(s.state == "failed" for s in held.flight.sends)):
            super().flush(p)
            return
        part, before = held.part, held.flight.flush
        outcomes, part.outcomes = held.flight.outcomes + part.outcomes, []
        part.flight, part._changed = None, True
        again = part.flush()
        cells = {**dict(before.cells), **dict(again.cells)}
        sends = [self.world.send_copy(p, copy) for copy in (*before.copies, *again.copies)]
        sends += [self.world.send(p, key, value) for key, value in cells.items()]
        held.flight = Flight(replace(again, cells=tuple(cells.items())), outcomes, sends)


FAR = 1 << 60


# 8: finals.


@mutant("8 finals from memory", 4)
class FinalsFromMemory(Watched):
    """Finals are decided by the clock in memory, not yet in a winning head."""

    def _decide(self, replicas: Sequence[Replica], heads: Sequence[Head]) -> None:
        super()._decide(replicas, [self.work, *heads[1:]])


@mutant("8 publish first", 18)
class PublishFirst(Worker):
    """Publishes before the final is stored."""

    def clock(self, p: int) -> None:
        super().clock(p)
        held = self.held.get(p)
        for window, content in held.part._cells.finals(-FAR, FAR) if held else ():
            self.world.publish(Publication(*self.world.context.window.span(window), content))


@mutant("8 mark first", 4)
class MarkFirst(Worker):
    """`published` is stored with the final, which is published when its head has won."""

    def clock(self, p: int) -> None:
        super().clock(p)
        held = self.held.get(p)
        if held:
            part = held.part
            finals = part._cells.finals(part.work.published, part.work.final)
            part.todo = {**getattr(part, "todo", {}), **dict(finals)}
            part.work = replace(part.work, published=part.work.final)

    def publish(self, p: int) -> None:
        held = self.held.get(p)
        todo = getattr(held.part, "todo", {}) if held else {}
        for window in [window for window in todo if window < held.part.base.final]:
            span = self.world.context.window.span(window)
            self.world.publish(Publication(*span, todo.pop(window)))

    def mark(self, p: int) -> None:
        pass


@mutant("8 mark what was not sent", 16)
class MarkUnsent(Watched):
    """Marks all stored finals as published, even those that `publications` has not returned."""

    def mark_published(self) -> None:
        self._offered = self.base.final
        super().mark_published()


@mutant("8 expire alone", 1)
class ExpireAlone(Watched):
    """A pane expires by its own partition's clock, final or not."""

    def clock(
        self, *, replicas: Sequence[Replica], heads_seen: SeenHeads | None = None, **given: Any
    ) -> None:
        seen, published = (
            heads_seen or SeenHeads.of(replicas),
            FAR // self._context.window.hop_panes,
        )
        heads = tuple(replace(head, published=published) for head in seen.heads)
        super().clock(replicas=replicas, heads_seen=replace(seen, heads=heads), **given)


@mutant("8 new partition open", 152)
class NewPartitionOpen(Watched):
    """A new partition starts with all panes open."""

    def prepare(self) -> None:
        super().prepare()
        self.work = replace(self.work, closed=self.base.closed, clock=self.base.clock)


@mutant("8 new partition at once", 2836)
class NewPartitionAtOnce(Watched):
    """The owner of a new partition does not wait for partition 0's head to include it."""

    @classmethod
    def load(
        cls, context: Context, partition: int, replicas: Sequence[Replica], **drawn: int
    ) -> Self:
        first = replicas[0].head
        if partition and first is not None:
            included = replace(first, partitions=max(first.partitions, partition + 1))
            replicas = [SimpleNamespace(head=included), *replicas[1:]]
        return super().load(context, partition, replicas, **drawn)


@mutant("8 partitions forgotten", 10727)
class PartitionsForgotten(Watched):
    """Finals wait for the partitions that the worker knows of, not for those in the head."""

    def _decide(self, replicas: Sequence[Replica], heads: Sequence[Head]) -> None:
        self.work = replace(self.work, partitions=0)
        super()._decide(replicas, heads)


# 9: sweep.


@mutant("9 no sweep", 0)
class NoSweep(Worker):
    """Nothing is deleted."""

    def sweep(self, p: int) -> None:
        pass


@mutant("9 sweep of the undecided", 12)
class SweepUndecided(Replica):
    """Records that are not part of the state are deleted, although they may yet become so."""

    def dead(self, most: int | None = None, but: AbstractSet[bytes] = frozenset()) -> list[bytes]:
        undecided = [key for cells in self._undecided.values() for key in cells]
        return [*super().dead(most, but), *undecided]
