"""States of several specs over one source: each report is counted once, each bad message once.

Owners with the old and the new configuration work at the same time, as in a rolling restart, on one
changelog, and any of them may be a zombie.
"""

import random
from dataclasses import dataclass, field
from itertools import count

import pytest

from ldpstream.agents.state.context import Context
from ldpstream.agents.state.flushes import Settled
from ldpstream.agents.state.loading import OtherHeads
from ldpstream.agents.state.partition import Partition
from ldpstream.agents.state.records import Head
from ldpstream.agents.state.replica import Replica
from ldpstream.agents.state.windows import WindowSpec
from ldpstream.mechanisms.wire.spec import CollectionSpec
from tests.soak import seeds
from tests.stream.harness import frame, make_context, make_spec

WINDOW = WindowSpec(size_ms=1_000, hop_ms=1_000, idle_ms=None)
OLD, NEW, OTHER = make_spec(), make_spec(4), make_spec(8)
OLD_OWN = [make_context(WINDOW, spec=OLD)]
NEW_OWN = [
    make_context(WINDOW, spec=NEW, accept=(OLD,)),
    make_context(WINDOW, spec=OLD, accepted=True),
]
BACK_OWN = [
    make_context(WINDOW, spec=OLD, accept=(NEW,)),
    make_context(WINDOW, spec=NEW, accepted=True),
]
MESSAGES: dict[str, bytes | None] = {
    "old": frame((5, 1), spec=OLD),
    "new": frame((5, 1), spec=NEW),
    "other": frame((5, 1), spec=OTHER),
    "torn old": frame((5, 1), spec=OLD) + b"more",
    "unreadable": b"no frame",
    "none": None,
}
Log = list[tuple[int, bytes, bytes | None]]


@dataclass
class World:
    """One partition of a source and its changelog, shared by all owners."""

    rng: random.Random
    source: list[str] = field(default_factory=list)
    log: Log = field(default_factory=list)
    epochs: "count[int]" = field(default_factory=lambda: count(1))

    def produce(self, n: int) -> None:
        self.source += self.rng.choices(list(MESSAGES), k=n)

    def heads(self) -> dict[CollectionSpec, Head]:
        found = {}
        for context in (OLD_OWN[0], NEW_OWN[0]):
            replica = Replica(context, 0)
            replica.read(self.log, position=len(self.log), end=len(self.log))
            assert replica.head is not None
            found[context.spec] = replica.head
        return found


class Owner:
    """A worker that believes that it owns the partition; the first context is its own spec's."""

    def __init__(self, world: World, contexts: list[Context]) -> None:
        self.world, self.contexts = world, contexts
        self.replicas = [Replica(context, 0) for context in contexts]
        self.parts: list[Partition | None] = [None for _ in contexts]
        self.read = 0

    def catch_up(self) -> None:
        log, self.read = self.world.log[self.read :], len(self.world.log)
        for replica in self.replicas:
            replica.read(log, position=self.read, end=self.read)

    def step(self, *, honest: bool = False) -> None:
        """Do some things at random; `honest` owners do everything, without faults."""
        rng = self.world.rng
        for place in range(len(self.contexts)):
            if honest or rng.random() < 0.7:
                self._ingest(place, 1_000 if honest else rng.randrange(8))
            if honest or rng.random() < 0.5:
                self._flush(place, honest=honest)
            if honest or rng.random() < 0.7:
                self.catch_up()
            part = self.parts[place]
            if part is not None and part.settle() is Settled.LOST:
                self.parts[place] = None

    def _ingest(self, place: int, n: int) -> None:
        part = self.parts[place] or self._load(place)
        if part is not None:
            first = part.next
            names = self.world.source[first : first + n]
            records = [(first + i, MESSAGES[name]) for i, name in enumerate(names)]
            part.ingest(records, now_ms=10)

    def _load(self, place: int) -> Partition | None:
        others = [
            replica.head for replica in self.replicas[1:] if replica is not self.replicas[place]
        ]
        if any(replica.head is None for replica in self.replicas):
            return None
        own = None if place == 0 else self.replicas[0].head
        siblings = OtherHeads(own, tuple(head for head in others if head is not None))
        part = Partition.load(
            self.contexts[place],
            0,
            [self.replicas[place]],
            epoch=next(self.world.epochs),
            other_heads=siblings,
        )
        self.parts[place] = part
        return part

    def _flush(self, place: int, *, honest: bool) -> None:
        part = self.parts[place]
        flush = None if part is None else part.flush()
        if flush is None:
            return
        records = [*flush.cells, flush.head]
        if not honest and self.world.rng.random() < 0.2:
            records = records[: self.world.rng.randrange(len(records))]
            self.parts[place] = None
        for key, value in records:
            self.world.log.append((len(self.world.log), key, value))


def run(world: World, configurations: list[Context], *others: list[Context]) -> None:
    """Let owners with all these configurations work at once; one with the first finishes."""
    owners = [Owner(world, contexts) for contexts in (configurations, configurations, *others)]
    for _ in range(30):
        world.produce(world.rng.randrange(6))
        world.rng.choice(owners).step()
    last = Owner(world, configurations)
    for _ in range(4 * len(configurations)):
        last.catch_up()
        last.step(honest=True)


def rejections(heads: dict[CollectionSpec, Head]) -> dict[str, int]:
    reasons = ("undecodable", "fingerprint")
    return {r: sum(head.rejected.get(r, 0) for head in heads.values()) for r in reasons}


@pytest.mark.soak
@pytest.mark.parametrize("seed", seeds(20, soak=1_000))
def test_a_spec_changes_by_a_rolling_restart(seed: int) -> None:
    world = World(random.Random(seed))
    run(world, OLD_OWN)
    run(world, NEW_OWN, OLD_OWN)
    run(world, NEW_OWN)
    heads, source = world.heads(), world.source
    assert heads[OLD].next == heads[NEW].next == len(source)
    assert heads[OLD].n == source.count("old")
    assert heads[NEW].n == source.count("new")
    bad = sum(source.count(name) for name in ("torn old", "unreadable", "none"))
    # Owners with the old configuration reject reports of the new spec.
    early = source[: heads[OLD].cutover].count("new")
    assert rejections(heads) == {
        "undecodable": bad,
        "fingerprint": source.count("other") + early,
    }


@pytest.mark.soak
@pytest.mark.parametrize("seed", seeds(10, soak=1_000))
def test_a_spec_changes_and_changes_back(seed: int) -> None:
    world = World(random.Random(seed))
    run(world, OLD_OWN)
    run(world, NEW_OWN)
    # All workers stop before this.
    run(world, BACK_OWN)
    run(world, NEW_OWN)
    heads, source = world.heads(), world.source
    assert heads[OLD].n == source.count("old")
    assert heads[NEW].n == source.count("new")
    bad = sum(source.count(name) for name in ("torn old", "unreadable", "none"))
    assert rejections(heads)["undecodable"] == bad


def test_an_owner_with_the_old_configuration_leaves_handed_over_offsets() -> None:
    world = World(random.Random(1), source=["old", "none"])
    for contexts in (OLD_OWN, NEW_OWN):
        last = Owner(world, contexts)
        for _ in range(6):
            last.catch_up()
            last.step(honest=True)
    world.source += ["new", "old", "none"]
    last = Owner(world, OLD_OWN)
    for _ in range(3):
        last.catch_up()
        last.step(honest=True)
    head = world.heads()[OLD]
    assert (head.next, head.cutover, head.n, dict(head.rejected)) == (5, 2, 2, {"undecodable": 1})


def test_deleted_offsets_that_an_accepted_state_has_decided_are_not_lost() -> None:
    world = World(random.Random(1), source=["old"] * 5)
    old = Owner(world, OLD_OWN)
    for _ in range(2):
        old.catch_up()
        old.step(honest=True)
    new = Owner(world, NEW_OWN)
    for _ in range(4):
        new.catch_up()
        new._ingest(1, 0)
        new._flush(1, honest=True)
    new.catch_up()
    part = new._load(0)
    assert part.skip_to(5, now_ms=10) == 0
    assert part.skip_to(8, now_ms=10) == 3
    assert (part.work.next, part.work.lost) == (8, 3)
