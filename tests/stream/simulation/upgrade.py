"""The same world while releases are mixed: rule 14.

Workers begin with a release that reads format 1 alone. One by one they are replaced by this
release, and back again; an old worker stops when it reads a head that it cannot decode. In the end
all are of this release.

10. No state changes its format before all owners read the new one: every head that the owner of
    partition 0 has seen said so, for long enough and without a gap. All partitions follow, none
    goes back, no old worker has to stop before that, and in the end the format has changed.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from ldpstream.agents.state.cell_store import HeadRecord
from ldpstream.agents.state.context import NEWEST
from ldpstream.agents.state.records import Head, RecordError
from ldpstream.agents.state.replica import Replica
from ldpstream.agents.state.windows import NEVER
from tests.stream.simulation.checks import Checks
from tests.stream.simulation.patched import PatchedWorld
from tests.stream.simulation.setting import Setting, demand
from tests.stream.simulation.worker import Outcome, Reader, Watched, Worker

SWITCH_MS, GAP_MS = 4, 3


class OldReplica(Replica):
    """Reads as a release that knows format 1 alone, and refuses all others."""

    def _elect(self, heads: list[HeadRecord]) -> Head:
        head = super()._elect(heads)
        if head.format > 1 or head.gathered > NEVER:
            raise RecordError("this release reads version 1")
        return head


class OldReader(Reader):
    def __init__(self, worker: UpgradeWorker, p: int) -> None:
        super().__init__(worker.world, p)
        self.worker = worker
        self.replica = OldReplica(worker.world.context, p)

    def read(self, limit: int) -> None:
        try:
            super().read(limit)
        except RecordError:
            self.worker.stop()


class OldPartition(Watched):
    """Writes no head because of formats."""

    def prepare(self) -> None:
        super().prepare()
        self._changed = False


class UpgradeWorker(Worker):
    """A worker of one of two releases."""

    world: UpgradeWorld

    def __init__(self, world: UpgradeWorld, name: str) -> None:
        super().__init__(world, name)
        self.old, self.stopped = world.rng.random() < world.old_share, False
        # When the owner of partition 0 saw all heads, and what they all said that they read.
        self.said: list[tuple[int, int]] = []
        if self.old:
            self.readers = [OldReader(self, p) for p in range(len(world.source))]

    def stop(self) -> None:
        """Stop permanently; an operator replaces the worker with one of the new release."""
        demand(self.world.official[0].format > 1, "(10) an old worker has to stop before a switch")
        if not self.stopped:
            self.stopped, self.owned, self.held = True, set(), {}
            self.world.upgrade(self.name)

    def poll(self, p: int) -> None:
        if not self.stopped:
            super().poll(p)

    def load(self, p: int) -> None:
        heads = [replica.head for replica in self.replicas[: self.known]]
        if None in heads and (heads[0] is None or not heads[0].seq):
            return  # The state may be new.
        if not self.old:
            super().load(p)
            return
        world, new = self.world, self.partition_class
        now = world.context
        self.partition_class, world.context = OldPartition, replace(now, format=1)
        try:
            super().load(p)
        finally:
            self.partition_class, world.context = new, now

    def clock(self, p: int) -> None:
        held = self.held.get(p)
        before = None if held is None else held.part.work
        if held is not None and p == 0:
            shown = [replica.head for replica in self.replicas[: self.known]]
            if None not in shown:
                complete = len(shown) >= held.part.work.partitions
                reads = min(head.reads for head in shown) if complete else 1
                self.said.append((self.steady_ms, reads))
        super().clock(p)
        if p == 0 and before is not None and held.part.work.format > before.format:
            self.check_switch(held.part.work.format)

    def check_switch(self, to: int) -> None:
        last = first = self.steady_ms
        for at, reads in reversed(self.said):
            if reads < to or first - at > GAP_MS:
                break
            first = at
        demand(self.said[-1][1] >= to, "(10) a switch that not all heads allow")
        demand(last - first >= SWITCH_MS, "(10) a switch too early")


class UpgradeChecks(Checks):
    world: UpgradeWorld

    def win(self, p: int, before: Head, head: Head, outcomes: Sequence[Outcome]) -> None:
        super().win(p, before, head, outcomes)
        demand(head.format >= before.format, "(10) a format goes back")
        first = self.world.official[0].format
        demand(head.format <= first, "(10) a partition moves on before partition 0")
        self.world.switched += p == 0 and head.format > before.format

    def done(self) -> bool:
        return super().done() and self.world.official[0].format == NEWEST


class UpgradeWorld(PatchedWorld):
    worker_class = UpgradeWorker
    checks_class = UpgradeChecks

    def __init__(self, seed: int, *, kafka: bool = True) -> None:
        # The probability that a worker started from now on is old.
        self.old_share, self.switched, self.stopped = 1.0, 0, 0
        self.early = False
        super().__init__(seed, kafka=kafka)
        self.weights["tick"] = max(6, self.weights["tick"])
        self.weights["serve"] = self.rng.choice([2, 12])
        self.weights["replace"] = self.rng.choice([1, 4])

    def choose_partitions(self, rng: random.Random) -> int:
        return rng.choice([1, 1, 2, 2, 3])

    def choose_setting(self, rng: random.Random) -> Setting:
        setting = super().choose_setting(rng)
        context = replace(setting.context, switch_ms=SWITCH_MS, gap_ms=GAP_MS)
        return replace(setting, context=context)

    def upgrade(self, name: str) -> None:
        self.say("upgrade", name)
        self.old_share, self.stopped = 0.0, self.stopped + 1
        self.workers[name] = self.worker_class(self, name)
        self.workers[name].poll(0)

    def do_replace(self) -> None:
        """Replace a worker by one of either release, as rolling restarts do."""
        # A state without any head is new, and begins with the newest format.
        begun = any(head.seq for head in self.official)
        self.old_share = self.rng.choice([0.0, 0.0, 0.0, 0.5]) if begun else 1.0
        name = self.rng.choice(sorted(self.workers))
        self.say("replace", name)
        self.workers[name] = self.worker_class(self, name)
        self.rebalance()

    def do_serve(self) -> None:
        """Let all running workers do everything there is to do, as is usual."""
        self.now_ms += 1
        awake = [worker for worker in self.workers.values() if not worker.paused]
        for worker in awake:
            worker.poll(0)
        self.round(awake)

    def quiesce(self) -> None:
        self.early = self.switched > 0
        self.old_share = 0.0
        for name, worker in self.workers.items():
            if worker.old:
                self.workers[name] = self.worker_class(self, name)
        super().quiesce()
