"""One stream, many faults: what happened, how long recovery took, what was counted."""

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError

from ldpstream.agents.config import CollectionConfig
from ldpstream.mechanisms.base.texts import count
from tests.brokers import Broker
from tests.crash.faults.check import close_and_check, uncompacted
from tests.crash.faults.devices import Devices
from tests.crash.faults.fleet import Fleet, Place
from tests.crash.faults.kinds import Kind, World, draw
from tests.crash.faults.result import Fault, Result, Settings
from tests.crash.faults.stream import tables
from tests.crash.faults.surroundings import Services, surroundings
from tests.crash.faults.watch import Counted, Heads, Scrapes
from tests.lab import Lab
from tests.stream.cli import spawn

log = logging.getLogger(__name__)

RECOVERY_SECONDS = 300.0
AT_ONCE = 3


async def disturb(world: World, result: Result, heads: Heads) -> None:
    """Do one fault after the other, at most `AT_ONCE` of them at a time."""
    settings = result.settings
    rng = random.Random(settings.seed)
    kinds = draw(settings.broker, settings.faults, rng)
    moments = sorted(rng.uniform(0.02, 0.92) * settings.seconds for _ in kinds)
    holding = _Holding(world, heads, result)
    async with asyncio.TaskGroup() as group:
        for number, (kind, moment) in enumerate(zip(kinds, moments, strict=True)):
            await asyncio.sleep(max(0.0, holding.begun + moment - time.monotonic()))
            await holding.room.acquire()
            chance = random.Random(f"{settings.seed}/{number}")
            group.create_task(holding.one(kind, chance))


class _Holding:
    """Runs faults, each of which locks what it needs for as long as it lasts."""

    def __init__(self, world: World, heads: Heads, result: Result) -> None:
        self.begun = time.monotonic()
        self.room = asyncio.Semaphore(AT_ONCE)
        self._world = world
        self._heads = heads
        self._result = result
        self._places = [asyncio.Lock() for _ in world.workers]
        self._others = {name: asyncio.Lock() for name in ("broker", "devices")}

    async def one(self, kind: Kind, rng: random.Random) -> None:
        """Do one fault, and wait until it is over."""
        async with AsyncExitStack() as stack:
            stack.callback(self.room.release)
            place = await self._take(stack, kind, rng)
            begun = time.monotonic()
            log.info("%6.1f %s (%d)", begun - self.begun, kind.name, place.number)
            await kind.act(self._world, place, rng)
            ended = time.monotonic()
        ends = self._world.devices.ends()
        reached = await self._heads.reach(ends, seconds=RECOVERY_SECONDS)
        decided = time.monotonic() - ended if reached else None
        with suppress(TimeoutError):
            await self._world.fleet.all_ready(seconds=RECOVERY_SECONDS)
        ready = time.monotonic() - ended
        log.info("%6.1f %s: decided after %s", ended - self.begun + ready, kind.name, decided)
        if not reached:
            self._result.wrong.append(
                f"not decided {RECOVERY_SECONDS:.0f} s after: {kind.name}: "
                f"{'; '.join(self._heads.behind(ends))}"
            )
        lasted = ended - begun
        self._result.faults.append(Fault(kind.name, begun - self.begun, lasted, decided, ready))

    async def _take(self, stack: AsyncExitStack, kind: Kind, rng: random.Random) -> Place:
        """Lock what a kind needs; return a place that is free for it."""
        number = rng.randrange(len(self._places))
        if kind.holds == "worker":
            free = [n for n, lock in enumerate(self._places) if not lock.locked()]
            number = rng.choice(free) if free else number
            await stack.enter_async_context(self._places[number])
        elif kind.holds == "workers":
            for lock in self._places:
                await stack.enter_async_context(lock)
        else:
            await stack.enter_async_context(self._others[kind.holds])
        return self._world.workers[number]


EAGER = {
    "cleanup.policy": "compact",
    "segment.ms": "2000",
    "min.cleanable.dirty.ratio": "0.001",
    "delete.retention.ms": "0",
}


_PATIENCE_SECONDS: Final = 60.0
_RETRY_SECONDS: Final = 0.5


class FaultLab(Lab):
    """The collections of a run on a broker; with `idle`, partitions of all of them fall idle."""

    def __init__(self, broker: Broker, folder: Path, *, idle: bool = False) -> None:
        super().__init__(broker, folder, collections=tables(idle=idle))

    async def prepare(self, replicas: int) -> None:
        """Create the topics whose settings differ from the default."""
        for config in self.config.collections.values():
            await self.create(
                config.topics.changelog,
                partitions=config.partitions,
                replicas=replicas,
                configs=EAGER,
            )
            await self.create(
                config.topics.source,
                partitions=config.partitions,
                replicas=replicas,
                configs=_stamped(config),
            )

    async def flushing(self, on: bool) -> None:
        """Let every record of every changelog and source reach the disk before the next one.

        Waits for a broker that another fault has just ended.
        """
        more = {"flush.messages": "1"} if on else {}
        resources = [
            ConfigResource(ConfigResourceType.TOPIC, topic, {**configs, **more})
            for config in self.config.collections.values()
            for topic, configs in (
                (config.topics.changelog, EAGER),
                (config.topics.source, _stamped(config)),
            )
        ]
        async with asyncio.timeout(_PATIENCE_SECONDS):
            while True:
                try:
                    async with self.admin() as admin:
                        await admin.alter_configs(resources)
                except KafkaError:
                    await asyncio.sleep(_RETRY_SECONDS)
                else:
                    return


def _stamped(config: CollectionConfig) -> dict[str, str]:
    """Return the setting by which the broker dates messages, if partitions can fall idle."""
    live = config.window.idle_ms is not None
    return {"message.timestamp.type": "LogAppendTime"} if live else {}


KEPT = 0.05
"""The share of messages that is sent after the last fault."""
QUIET_SECONDS = 4.0
PROGRESS_SECONDS = 5.0


async def run(settings: Settings, folder: Path) -> Result:
    """Send, disturb, and compare everything with the truth; logs are left in `folder`."""
    # Every worker has a thread that reads its output.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(64))
    result = Result(settings)
    async with surroundings(settings.broker, settings.places) as around:
        lab = FaultLab(around.broker, folder, idle=settings.idle)
        await lab.prepare(max(1, len(around.nodes)))
        fleet = Fleet(lab, _places(lab, around, settings), folder)
        devices = Devices(
            lab,
            folder,
            reports=settings.reports,
            seed=settings.seed,
            transactions=settings.broker != "embedded",
        )
        flushing = lab.flushing if settings.broker != "embedded" else _nothing
        world = World(
            lab,
            around,
            fleet,
            devices,
            fleet.places[: settings.workers],
            fleet.places[settings.workers :],
            flushing,
        )
        async with _watched(lab, fleet) as (heads, scrapes):
            try:
                await _go(world, result, heads, scrapes)
            except (TimeoutError, RuntimeError) as error:
                result.wrong.append(str(error))
            finally:
                await devices.stop()
                await fleet.stop()
            result.wrong += heads.broken + fleet.unexpected + fleet.complaints()
    return result


def _places(lab: FaultLab, around: Services, settings: Settings) -> list[Place]:
    """Return the places of workers and visitors."""
    return [
        Place(
            number,
            bootstrap,
            lab.file,
            wanted=number < settings.workers,
        )
        for number, bootstrap in enumerate(around.bootstraps)
    ]


async def _nothing(_: bool) -> None:
    """Stand in for what a broker does not offer."""


async def _go(world: World, result: Result, heads: Heads, scrapes: Scrapes) -> None:
    settings, fleet, devices = result.settings, world.fleet, world.devices
    fleet.run()
    await fleet.all_ready(seconds=180)
    result.wrong += await _unreplicated(world.lab, max(1, len(world.around.nodes)))
    begun = time.monotonic()
    devices.send(share=1 - KEPT, seconds=settings.seconds)
    await disturb(world, result, heads)
    await devices.finish()
    await _quiet(world, result, heads, scrapes)
    result.figures["seconds"] = time.monotonic() - begun
    result.figures["workers that became ready"] = scrapes.began
    result.figures["starts given up: no broker"] = fleet.gave_up
    result.figures["device restarts"] = devices.restarts
    if scrapes.processes < 0.8 * (scrapes.began - scrapes.cut_off):
        result.wrong.append(f"the metrics show {scrapes.processes} processes of {scrapes.began}")
    result.checked = await close_and_check(world.lab, devices)
    if settings.broker != "embedded":
        # Killed workers have deleted few tombstones, and the broker compacts when it gets to it.
        result.wrong += await uncompacted(world.lab, seconds=RECOVERY_SECONDS)
    for place in world.workers:
        await fleet.terminate(place)


async def _unreplicated(lab: Lab, nodes: int) -> list[str]:
    """Return the topics that not all nodes keep; `check` has to see as many nodes."""
    said = (await asyncio.to_thread(spawn, "check", "-c", str(lab.file))).stdout.decode()
    wrong = [] if f"{lab.broker.bootstrap}: {count(nodes, 'broker')}\n" in said else [said]
    for config in lab.config.collections.values():
        async with lab.admin() as admin:
            topics = await admin.describe_topics(list(config.topics.names()))
        kept = {one["topic"]: {len(p["replicas"]) for p in one["partitions"]} for one in topics}
        wrong += [f"{topic}: {found} replicas" for topic, found in kept.items() if found != {nodes}]
    return wrong


async def _quiet(world: World, result: Result, heads: Heads, scrapes: Scrapes) -> None:
    """Send what is left without faults: counters of all workers advance just as the heads do."""
    await world.fleet.all_ready(seconds=180)
    if not await heads.reach(world.devices.ends(), seconds=RECOVERY_SECONDS):
        raise TimeoutError("what was sent under faults was not decided")
    before = await _settled(heads, scrapes)
    world.devices.send(share=1.0, seconds=QUIET_SECONDS)
    await world.devices.finish()
    if not await heads.reach(world.devices.ends(), seconds=RECOVERY_SECONDS):
        raise TimeoutError("what was sent after the last fault was not decided")
    after = await _settled(heads, scrapes)
    decided, counted = (after[which] - before[which] for which in (0, 1))
    if decided != counted or not decided:
        result.wrong.append(f"heads advanced by {dict(decided)}, metrics by {dict(counted)}")
    for key, seen in after[1].items():
        if seen > after[0][key]:
            result.wrong.append(f"metrics counted {seen} of {key}, the heads {after[0][key]}")
    result.figures["counted, as metrics show"] = sum(
        seen for (_, kind), seen in after[1].items() if kind == "counted"
    )


async def _settled(heads: Heads, scrapes: Scrapes) -> tuple[Counted, Counted]:
    """Return heads and counters once neither moves any more."""
    deadline, before = time.monotonic() + RECOVERY_SECONDS, (Counted(), Counted())
    while time.monotonic() < deadline:
        await asyncio.sleep(1.5)
        await scrapes.once()
        now = heads.totals(), scrapes.sums()
        if now == before:
            return now
        before = now
    raise TimeoutError("counters still move although nothing is sent")


@asynccontextmanager
async def _watched(lab: Lab, fleet: Fleet) -> AsyncIterator[tuple[Heads, Scrapes]]:
    heads, scrapes = Heads(lab), Scrapes(fleet)
    running = heads.run(), scrapes.run(), _tell_progress(lab, fleet, heads)
    tasks = [asyncio.create_task(run) for run in running]
    try:
        yield heads, scrapes
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _tell_progress(lab: Lab, fleet: Fleet, heads: Heads) -> None:
    """Log, over and over, how far every partition is, and which places have a ready worker."""
    begun = time.monotonic()
    while True:
        await asyncio.sleep(PROGRESS_SECONDS)
        nexts = (f"{n} {[h.next for h in heads.heads(n)]}" for n in lab.config.collections)
        ready = [place.number for place in fleet.places if place.ready]
        log.info("%6.1f ready %s; %s", time.monotonic() - begun, ready, ", ".join(nexts))
