"""The simulated world read through the product's own intake: sessions, channels, idleness.

Workers read through `SourceReader`, a channel that may lose or repeat items, and `Intake`. Fetches
are sent and answered at any moment; a new leader may not know for a while, seldom for long, where
its log ends. This puts idleness at risk, so there are two more invariants:

10. No partition is idle while a record is unread that is older than a probe may be and a new leader
   may lag together; where a leader lags for longer, this holds for records up to the end that a
   winning head has stored.
11. No partition is idle if a report that counts came within the idle time, less the gap between
   probes.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from aiokafka import AIOKafkaConsumer, TopicPartition

from ldpstream.agents.engine.intake import Intake, OwnedPartition
from ldpstream.agents.engine.source import Batch, Record, SourceReader
from ldpstream.agents.state.batch import Arrivals
from ldpstream.agents.state.partition import Partition
from tests.stream.owning import Holder, Times
from tests.stream.serving import read_city
from tests.stream.simulation.brokers import MOST
from tests.stream.simulation.client import Answer, Client, run_now
from tests.stream.simulation.setting import Setting, demand
from tests.stream.simulation.worker import Outcome, Watched, Worker
from tests.stream.simulation.worker import OwnedPartition as SimulatedHeld
from tests.stream.simulation.world import World

CONFIG = read_city(precision="1ms")
assert CONFIG.spec.precision_ms == 1
GAP_MS, LAG_MS = 2, 1
READ = ("ask", "answer", "read", "take")
ACTS = ("ask", "answer", "read", "take", "look", "ask answer", "read take", " ".join(READ))

READING = {"elect": 14, "tick": 14, "produce": 5, "compact": 1, "close": 0}
"""Weights of runs that consist mostly of reading, elections and time."""


@dataclass
class BatchList:
    """A channel of batches."""

    items: list[Batch] = field(default_factory=list)

    def send_batch(self, batch: Batch) -> None:
        self.items.append(batch)

    def empty(self) -> bool:
        return not self.items


class Part(Watched):
    """Keeps outcomes of reports that retention deleted too, and checks them against arrivals."""

    world: World
    came: list[list[Outcome]]

    def prepare(self) -> None:
        super().prepare()
        self.came = []
        self.counted_at: int | None = None

    def ingest(
        self,
        records: Sequence[Record],
        *,
        now_ms: int,
        arrived: Arrivals | None = None,
    ) -> None:
        before = len(self.outcomes)
        super().ingest(records, now_ms=now_ms, arrived=arrived)
        self.came.append(self.outcomes[before:])
        counted = [o for o, _, outcome in self.outcomes[before:] if outcome == "counted"]
        self.counted_at = max(counted, default=self.counted_at)

    def check(self) -> None:
        """Check the outcomes since the last time against arrivals."""
        came, self.came = self.came, []
        for outcomes in came:
            self.world.times.check(self.partition, self, outcomes)

    def skip_to(self, offset: int, *, now_ms: int) -> int:
        self.outcomes += self.world.lost_outcomes(self.partition, self.next, offset)
        return super().skip_to(offset, now_ms=now_ms)


class Reader(SourceReader):
    """The product's reader; it waits for nothing."""

    async def _wait_for_room(self) -> None: ...


class Failing(Holder):
    """An owner for which any problem is a violation."""

    def fail(self, problem: str) -> None:
        demand(False, f"(4) {problem}")


class IntakeWorker(Worker):
    """A worker that reads as the product does."""

    world: "IntakeWorld"
    partition_class: type[Watched] = Part
    intake_class: type[Intake] = Intake
    reader_class: type[SourceReader] = Reader

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self.channel = BatchList()
        self.taken: dict[int, OwnedPartition] = {}
        self.reader = self.reader_class(
            [TopicPartition(CONFIG.topics.source, p) for p in range(MOST)],
            now_ms=lambda: self.steady_ms,
        )
        self.client = Client(self.fetch, lambda partition: self.world.start[partition.partition])
        self.reader.start(cast("AIOKafkaConsumer", self.client))
        self.intake = self.intake_class(
            CONFIG,
            self.reader,
            self.channel,
            Failing(),
            Times(
                now_ms=lambda: self.now_ms,
                steady_ms=lambda: self.steady_ms,
                seconds=lambda: self.steady_ms / 1000,
            ),
        )

    def fetch(self, partition: TopicPartition, offset: int) -> Answer:
        p, rng = partition.partition, self.world.rng
        source, start = self.world.source[p], self.world.start[p]
        if offset < start:
            return Answer([], -1, len(source))
        end = min(self.world.lagging.get(p, len(source)), len(source))
        stop = max(offset, min(end, offset + rng.choice([1, 2, 2, 5])))
        records = [(o, source[o].value) for o in range(offset, stop)]
        return Answer(records, stop, end, self.world.times.dates(p, range(offset, stop)))

    def follow(self) -> None:
        """Read exactly the partitions that are held now."""
        for p in [p for p, one in self.taken.items() if self.part(p) is not one.state]:
            self.intake.end(self.taken.pop(p))
        for p in self.held.keys() - self.taken.keys():
            self.taken[p] = OwnedPartition(self.held[p].part)
            self.intake.begin(self.taken[p])

    def part(self, p: int) -> Partition | None:
        return self.held[p].part if p in self.held else None

    def load(self, p: int) -> None:
        super().load(p)
        if p in self.held:
            cast("Part", self.held[p].part).world = self.world
        self.follow()

    def ingest(self, p: int) -> None:
        for act in self.world.reading():
            getattr(self, act)(p)

    def ask(self, p: int) -> None:
        self.follow()
        if self.world.rng.random() >= self.world.fetch_errors:
            self.client.ask(TopicPartition(CONFIG.topics.source, p))

    def answer(self, p: int) -> None:
        self.client.answer(TopicPartition(CONFIG.topics.source, p))

    def read(self, _p: int) -> None:
        self.follow()
        run_now(self.reader.poll())

    def take(self, _p: int) -> None:
        self.follow()
        for _ in range(min(2, len(self.channel.items))):
            self.intake.count(self.channel.items.pop(0))
        self.check()

    def look(self, p: int) -> None:
        self.follow()
        if p in self.taken:
            self.intake.resume_reading(self.taken[p])
        self.check()

    def check(self) -> None:
        for held in self.held.values():
            cast("Part", held.part).check()

    def clock(self, p: int) -> None:
        super().clock(p)
        held = self.held.get(p)
        if held is None:
            return
        # Until all heads are known, `idle` is that of the loaded head.
        if held.part.work.idle and all(
            replica.head is not None for replica in self.replicas[: self.known]
        ):
            self.world.check_idle(p, cast("Part", held.part))

    def probe(self, p: int, held: SimulatedHeld) -> None:
        """Do nothing: the intake probes."""


class IntakeWorld(World):
    """A world whose workers read as the product does; in steady runs at nearly every moment."""

    worker_class: type[Worker] = IntakeWorker

    def __init__(self, seed: int, *, kafka: bool = True) -> None:
        self.arrived: list[list[int]] = [[] for _ in range(MOST)]
        # The ends that lagging leaders know; `until` is when they catch up.
        self.lagging: dict[int, int] = {}
        self.elected, self.until = [-(1 << 62)] * MOST, [-(1 << 62)] * MOST
        self.quiet, self.idle = False, 0
        super().__init__(seed, kafka=kafka)
        self.steady = self.rng.random() < 0.5
        self.weights |= {"spill": 1, "elect": 2}
        if self.rng.random() < 0.3:
            self.steady = True
            self.weights |= READING

    def choose_setting(self, rng: Any) -> Setting:
        setting = super().choose_setting(rng)
        return replace(setting, context=replace(setting.context, gap_ms=GAP_MS))

    def lagged_ms(self, p: int) -> int:
        return self.until[p] + self.setting.ahead_ms

    def reading(self) -> tuple[str, ...]:
        if self.quiet:
            return (*READ, *READ, "look", "look")
        return tuple(self.rng.choice(ACTS).split())

    def do_produce(self) -> None:
        super().do_produce()
        self.arrive()

    def uncounted(self, p: int, rng: random.Random, *, accepted: bool | None = None) -> None:
        super().uncounted(p, rng, accepted=accepted)
        self.arrive()

    def arrive(self) -> None:
        for p, source in enumerate(self.source):
            self.arrived[p] += [self.now_ms] * (len(source) - len(self.arrived[p]))

    def do_tick(self) -> None:
        super().do_tick()
        for p in [p for p in self.lagging if self.now_ms >= self.until[p]]:
            del self.lagging[p]
        if self.steady:
            for worker in [w for w in self.workers.values() if not w.paused]:
                for p in range(self.partitions):
                    for act in ("replica", "settle", "load", *READ, *READ, "look", "clock"):
                        if self.rng.random() < 0.85:
                            getattr(worker, act)(p)

    def do_elect(self) -> None:
        rng, p = self.rng, self.any_partition()
        if self.now_ms - max(self.elected[p], self.until[p]) > 2 * GAP_MS + LAG_MS:
            self.elected[p], n = self.now_ms, len(self.source[p])
            self.lagging[p] = rng.randint(max(self.start[p], n - 3), n)
            self.until[p] = self.now_ms + rng.choice([LAG_MS, LAG_MS, LAG_MS, 9])
            self.say("elect", p, self.lagging[p], self.until[p])

    def do_spill(self) -> None:
        """Empty a channel, or lose its first item, or repeat that."""
        channel = cast("IntakeWorker", self.rng.choice(list(self.workers.values()))).channel
        kind = self.rng.randrange(3)
        items = channel.items
        items[:] = ([], items[1:], items[:1] + items)[kind]
        self.say("spill", kind)

    def check_idle(self, p: int, part: Part) -> None:
        self.idle += 1
        long = self.until[p] > self.elected[p] + LAG_MS
        long = long and self.now_ms <= self.until[p] + GAP_MS
        there = part.base.end if long else len(self.source[p])
        oldest_ms = self.now_ms - GAP_MS - LAG_MS
        late = [o for o in range(part.next, there) if self.arrived[p][o] < oldest_ms]
        demand(not late, f"(10) idle at {self.now_ms} and next {part.next}, unread: {late}")
        counted_at = part.counted_at
        came_ms = -(1 << 62) if counted_at is None else self.arrived[p][counted_at]
        quiet_ms = (self.context.window.idle_ms or 0) - GAP_MS
        demand(self.now_ms - came_ms >= quiet_ms, f"(11) idle at {self.now_ms}, came at {came_ms}")

    def quiesce(self) -> None:
        self.quiet = True
        self.lagging.clear()
        super().quiesce()


class Harsh(IntakeWorld):
    """A world of mostly reading, elections, pauses and time."""

    def __init__(self, seed: int, *, kafka: bool = True) -> None:
        super().__init__(seed, kafka=kafka)
        self.steady = True
        self.weights |= {**READING, "fault": 6, "work": 25, "analyse": 1}
