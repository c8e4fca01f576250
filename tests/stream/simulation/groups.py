"""The same world with two groups, each of which gives every partition to a worker of its own.

This happens while a rolling restart changes the number of shards: a collection's old group and its
new one both own all of its partitions, neither knows of the other, and both go on to the end.

In `TwoFormats` the first group holds the state in format 1 (rule 14), the second does not, and in
the end the first one leaves.
"""

from __future__ import annotations

import random
from dataclasses import replace

from ldpstream.agents.state.context import NEWEST
from tests.stream.simulation.setting import Setting, demand
from tests.stream.simulation.worker import Worker
from tests.stream.simulation.world import World

SWITCH_MS = 12


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


class FormatWorker(GroupWorker):
    """A worker that holds the state in format 1 if it belongs to the first group."""

    world: TwoFormats

    def load(self, p: int) -> None:
        world, now = self.world, self.world.context
        held = world.groups[self.name] == 0
        # A state without any head is new, and begins with the newest format.
        if held or world.official[0].seq:
            world.context = replace(now, format=1) if held else now
            super().load(p)
            world.context = now


class TwoFormats(TwoGroups):
    worker_class = FormatWorker
    # Where each message lets another group win, no owner lasts for as long as the idle time.
    endless = False

    def __init__(self, seed: int, *, kafka: bool = True) -> None:
        self.held_back = False
        super().__init__(seed, kafka=kafka)

    def choose_setting(self, rng: random.Random) -> Setting:
        setting = super().choose_setting(rng)
        return replace(setting, context=replace(setting.context, switch_ms=SWITCH_MS, gap_ms=3))

    def round(self, workers: list[Worker]) -> None:
        """Let either group be the faster one."""
        self.rng.shuffle(workers)
        super().round(workers)

    def quiesce(self) -> None:
        super().quiesce()
        self.held_back = self.official[0].format == 1
        for name in [name for name, group in self.groups.items() if group == 0]:
            del self.workers[name]
        for _ in range(4 * SWITCH_MS):
            self.now_ms += 1
            self.round(list(self.workers.values()))
        demand(self.official[0].format == NEWEST, "(10) the switch does not come")
