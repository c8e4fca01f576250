"""The same world with two groups, each of which gives every partition to a worker of its own.

This happens while a rolling restart changes the number of shards: a collection's old group and its
new one both own all of its partitions, neither knows of the other, and both go on to the end.
"""

from __future__ import annotations

from tests.stream.simulation.patched import mutant
from tests.stream.simulation.worker import Watched, Worker
from tests.stream.simulation.world import World


class GroupWorker(Worker):
    """A worker that asks its own group."""

    lost = 0

    def poll(self, p: int) -> None:
        group = self.world.groups[self.name]
        self.world.assignment = self.world.assignments[group]
        super().poll(p)

    def settle(self, p: int) -> None:
        held = self.held.get(p)
        super().settle(p)
        self.world.lost += held is not None and p not in self.held


class TwoGroups(World):
    worker_class = GroupWorker

    def __init__(self, seed: int, *, kafka: bool = True) -> None:
        self.groups = {name: number % 2 for number, name in enumerate("ABCD")}
        self.assignments: list[dict[int, str]] = [{}, {}]
        self.lost = 0
        super().__init__(seed, kafka=kafka)
        self.workers = {name: self.worker_class(self, name) for name in self.groups}
        self.rebalance()

    def rebalance(self) -> None:
        """Move partitions within each group; the other group does not notice."""
        super().rebalance()
        for group in (0, 1):
            names = [name for name, own in self.groups.items() if own == group]
            self.assignments[group] = {p: self.rng.choice(names) for p in range(self.partitions)}

    def commit(self, p: int, offset: int, generation: int) -> bool:
        """Take the commits of both groups, and keep the larger one."""
        before = self.committed[p]
        taken = super().commit(p, offset, generation)
        self.committed[p] = max(before, self.committed[p])
        return taken


@mutant("groups: not yet proved idle", 2, TwoGroups, worker=GroupWorker)
class UnprovedTold(Watched):
    """That a load has not yet proved idleness is written at once, as a change: for ever."""

    def clock(self, **moment: object) -> None:
        before = self.work.idle
        super().clock(**moment)
        self._changed |= before and not self.work.idle
