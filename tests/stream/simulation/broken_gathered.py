"""Rule 13 taken away: closed panes are gathered, handed over, read and closed otherwise."""

import random
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Self

from ldpstream.agents.state.closing import gather, hand_over
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.evaluation import Firsts
from ldpstream.agents.state.flushes import Flush
from ldpstream.agents.state.records import Head
from ldpstream.agents.state.replica import Replica, behind
from ldpstream.agents.state.windows import NEVER
from tests.stream.simulation.patched import PatchedWorld, mutant
from tests.stream.simulation.worker import Watched, Worker

_CHECK = (
    "ldpstream.agents.state.replica.check_between",
    "ldpstream.agents.state.view.check_between",
    "ldpstream.agents.state.listing.check_between",
)


class Partitions(PatchedWorld):
    """A world of several partitions, where panes are gathered all the time."""

    def __init__(self, seed: int, *, kafka: bool = True) -> None:
        super().__init__(seed, kafka=kafka)
        self.weights["grow"] *= 10

    def choose_partitions(self, rng: random.Random) -> int:
        return rng.choice([2, 2, 3])


@mutant("13 gathered while open", 3, Partitions)
class GatheredOpen(Watched):
    """Panes are gathered once one partition has closed them."""

    def _decide(self, replicas: Sequence[Replica], heads: Sequence[Head]) -> None:
        closed = max(head.closed for head in heads)
        if closed > self.work.gathered and len(heads) > 1:
            self.work = gather(self._context, self._cells, self.work, replicas, closed)
        super()._decide(replicas, heads)


@mutant("13 named one head later", 2, Partitions)
class NamedLater(Watched):
    """Gathered panes are stored with one head, and named in the next."""

    named = NEVER

    def prepare(self) -> None:
        super().prepare()
        self.named = self.work.gathered

    def flush(self) -> Flush | None:
        work, self.work = self.work, replace(self.work, gathered=self.named)
        flush = super().flush()
        if flush is not None:
            self.named = work.gathered
        self.work = work
        return flush


@mutant("13 gathered again", 6, Partitions)
class GatheredAgain(Watched):
    """An owner that takes over partition 0 gathers all panes again."""

    def prepare(self) -> None:
        super().prepare()
        if self.partition == 0:
            self.work = replace(self.work, gathered=NEVER)


@mutant("13 late reports handed over", 3, Partitions)
class LateHandedOver(Watched):
    """Late reports are forgotten with the counts that are handed over."""

    def prepare(self) -> None:
        super().prepare()
        cells = self._cells

        def drop(pane: int) -> int:
            cells._handed_over = pane
            return cells.drop(Firsts(kept=pane))

        cells.hand_over = drop


@mutant("13 handed over before the head has won", 18, Partitions)
class HandedOverUnwon(Worker):
    """Panes are handed over as soon as the owner of partition 0 has gathered them in memory."""

    def clock(self, p: int) -> None:
        super().clock(p)
        held = self.held.get(p)
        owners = [worker.held[0].part for worker in self.world.workers.values() if 0 in worker.held]
        if held is not None and p and owners:
            part = held.part
            known = min(max(owner.work.gathered for owner in owners), part.base.closed)
            before = part.work
            if known > before.gathered:
                part.work = hand_over(part._cells, before, known)
            part._changed |= part.work.gone != before.gone


@mutant("13 new partition open", 35, Partitions)
class NewPartitionOpens(Watched):
    """The owner of a new partition closes the panes of decided windows, not the gathered ones."""

    @classmethod
    def load(
        cls, context: Context, partition: int, replicas: Sequence[Replica], **drawn: int
    ) -> Self:
        first, own = replicas[0].head, replicas[partition].head
        if partition and first is not None and own is not None and own.gathered == NEVER:
            unaware = SimpleNamespace(head=replace(first, gathered=NEVER))
            alone = [SimpleNamespace(head=own) for _ in replicas[1:]]
            alone[partition - 1] = replicas[partition]
            return super().load(context, partition, [unaware, *alone], **drawn)
        return super().load(context, partition, replicas, **drawn)


@mutant("13 own counts added", 2, Partitions, *_CHECK)
def _own_added(*_: object) -> int:
    return NEVER


@mutant("13 answered from behind", 185, Partitions, *_CHECK)
def _first_behind(replicas: Sequence[Replica], *_: object) -> int:
    return behind(replicas).start
