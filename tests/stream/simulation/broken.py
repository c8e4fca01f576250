"""Every rule taken away in turn, by overriding the product's code or the simulated shell's.

A rule whose absence the simulation does not notice is superfluous, or not tested. Mutants of
flushing and of finals are in `broken_flushes` and `broken_finals`.
"""

from collections.abc import Mapping
from dataclasses import replace

from ldpstream.agents.state.batch import Arrivals
from ldpstream.agents.state.evaluation import Firsts
from ldpstream.agents.state.records import HEAD, CellRecord, Head, HeadRecord
from ldpstream.agents.state.replica import Replica
from tests.stream.simulation.broken_finals import (
    ExpireAlone,
    FinalsFromMemory,
    MarkFirst,
    MarkUnsent,
    NewPartitionAtOnce,
    NewPartitionOpen,
    NoSweep,
    PartitionsForgotten,
    PublishFirst,
    SweepUndecided,
)
from tests.stream.simulation.broken_flushes import (
    EagerCopies,
    EagerHead,
    FailureIgnored,
    Pipelined,
    Retry,
)
from tests.stream.simulation.evaluation import read_key
from tests.stream.simulation.patched import with_partition, with_worker
from tests.stream.simulation.setting import demand
from tests.stream.simulation.worker import OwnedPartition, Reader, Watched, Worker
from tests.stream.simulation.world import World

# 1: keys.


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


class LastWins(Replica):
    """Of the heads with one seq the last in the log wins."""

    def _elect(self, heads: list[HeadRecord]) -> Head:
        return super()._elect([head._replace(offset=-head.offset) for head in heads])


class NoLineage(Replica):
    """A cell counts if its seq is not above the head's, whoever wrote it."""

    def _decide(self, cell: CellRecord, head: Head, firsts: Firsts) -> None:
        super()._decide(cell, replace(head, lineage={cell.epoch: cell.seq}), firsts)


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


class ViewAnywhere(World):
    shadow = False
    reader_class = Anywhere


# 6: load.


class SameEpoch(Worker):
    """A worker uses one epoch for all its loads."""

    def draw_epoch(self, p: int) -> int:
        if not hasattr(self, "epoch"):
            self.epoch = super().draw_epoch(p)
        return self.epoch


class EarlyCommit(Worker):
    """Commits what is in memory when the flush starts."""

    def flush(self, p: int) -> None:
        super().flush(p)
        held = self.held.get(p)
        if held and held.flight:
            self.world.commit(p, held.part.work.next, self.generation)


class FromCommitted(Worker):
    """Loads at the committed offset."""

    def load(self, p: int) -> None:
        fresh, committed = p not in self.held, self.world.committed[p]
        super().load(p)
        if fresh and p in self.held:
            part = self.held[p].part
            part.work = replace(part.work, next=committed)


# 7: decisions take effect with the head.


class LateUnsaid(Watched):
    """What closed in memory is not written: heads repeat the closed panes of the base."""

    def clock(self, **moment: object) -> None:
        super().clock(**moment)
        self.work = replace(self.work, closed=self.base.closed)


class LostUncounted(Watched):
    """Offsets that retention deleted are passed over without being counted."""

    def skip_to(self, offset: int, *, now_ms: int) -> None:
        self.read_to(offset, end=self.work.end, asked_ms=None)


class Uncapped(Worker):
    """Event times move the clock as far ahead of their arrival as is accepted."""

    def arrivals(self, p: int, offsets: range, held: OwnedPartition) -> Arrivals:
        known = super().arrivals(p, offsets, held)
        return replace(known, clock_ms=known.latest_ms + self.world.context.window.future_ms)


class WorkersClock(Worker):
    """What is read while catching up arrives now, on the worker's clock."""

    def arrivals(self, p: int, offsets: range, held: OwnedPartition) -> Arrivals:
        return Arrivals.at(self.now_ms)


# The model's own assumption.


class Duplicates(World):
    """A producer that is not idempotent, on a broker that compacts."""

    def __init__(self, seed: int, *, kafka: bool) -> None:
        super().__init__(seed, kafka=True)

    def do_land(self) -> None:
        if self.flying and self.rng.random() < 0.3:
            self.land(self.rng.randrange(len(self.flying)), duplicate=True)
        super().do_land()


def with_replica(replica: type[Replica]) -> type[World]:
    """Return a world without the full evaluation, which would notice before the invariants do."""
    return type(replica.__name__, (World,), {"replica_class": replica, "shadow": False})


MUTANTS: Mapping[str, type[World]] = {
    "1 keys overwritten": KeysOverwritten,
    "2 last head wins": with_replica(LastWins),
    "3 no lineage": with_replica(NoLineage),
    "3 lineage of one epoch": with_partition(ShortLineage),
    "4 head without acknowledgements": with_worker(EagerHead),
    "4 head without the copies' acknowledgements": with_worker(EagerCopies),
    "4 failures ignored": with_worker(FailureIgnored),
    "4 no reading back": with_worker(Pipelined),
    "4 retry in the same epoch": with_worker(Retry),
    "5 view anywhere": ViewAnywhere,
    "6 same epoch": with_worker(SameEpoch),
    "6 early commit": with_worker(EarlyCommit),
    "6 load at the committed offset": with_worker(FromCommitted),
    "7 closed but not said": with_partition(LateUnsaid),
    "7 lost but not counted": with_partition(LostUncounted),
    "7 event times beyond arrival": with_worker(Uncapped),
    "7 the worker's clock while catching up": with_worker(WorkersClock),
    "8 finals from memory": with_partition(FinalsFromMemory),
    "8 publish first": with_worker(PublishFirst),
    "8 mark first": with_worker(MarkFirst),
    "8 mark what was not sent": with_partition(MarkUnsent),
    "8 expire alone": with_partition(ExpireAlone),
    "8 new partition open": with_partition(NewPartitionOpen),
    "8 new partition at once": with_partition(NewPartitionAtOnce),
    "8 partitions forgotten": with_partition(PartitionsForgotten),
    "9 no sweep": with_worker(NoSweep),
    "9 sweep of the undecided": with_replica(SweepUndecided),
    "idempotence: duplicates and compaction": Duplicates,
}
