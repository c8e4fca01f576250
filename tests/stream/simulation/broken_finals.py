"""Rules 8 and 9 taken away: deciding, publishing and marking finals, expiring and sweeping."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Self

from ldpstream.agents.state.closing import Publication, SeenHeads
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.records import Head
from ldpstream.agents.state.replica import Replica
from tests.stream.simulation.worker import Watched, Worker

FAR = 1 << 60


# 8: finals.


class FinalsFromMemory(Watched):
    """Finals are decided by the clock in memory, not yet in a winning head."""

    def _decide(self, replicas: Sequence[Replica], heads: Sequence[Head]) -> None:
        super()._decide(replicas, [self.work, *heads[1:]])


class PublishFirst(Worker):
    """Publishes before the final is stored."""

    def clock(self, p: int) -> None:
        super().clock(p)
        held = self.held.get(p)
        for window, content in held.part._cells.finals(-FAR, FAR) if held else ():
            self.world.publish(Publication(*self.world.context.window.span(window), content))


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


class MarkUnsent(Watched):
    """Marks all stored finals as published, even those that `publications` has not returned."""

    def mark_published(self) -> None:
        self._offered = self.base.final
        super().mark_published()


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


class NewPartitionOpen(Watched):
    """A new partition starts with all panes open."""

    def prepare(self) -> None:
        super().prepare()
        self.work = replace(self.work, closed=self.base.closed, clock=self.base.clock)


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


class PartitionsForgotten(Watched):
    """Finals wait for the partitions that the worker knows of, not for those in the head."""

    def _decide(self, replicas: Sequence[Replica], heads: Sequence[Head]) -> None:
        self.work = replace(self.work, partitions=0)
        super()._decide(replicas, heads)


# 9: sweep.


class NoSweep(Worker):
    """Nothing is deleted."""

    def sweep(self, p: int) -> None:
        pass


class SweepUndecided(Replica):
    """Records that are not part of the state are deleted, although they may yet become so."""

    def dead(self, most: int | None = None, but: AbstractSet[bytes] = frozenset()) -> list[bytes]:
        undecided = [key for cells in self._undecided.values() for key in cells]
        return [*super().dead(most, but), *undecided]
