"""One fault after the other, several at a time, and how long it takes to recover from each."""

import asyncio
import logging
import random
import time
from contextlib import AsyncExitStack, suppress

from tests.crash.faults.fleet import Place
from tests.crash.faults.kinds import Kind, World, draw
from tests.crash.faults.result import Fault, Result
from tests.crash.faults.watch import Heads

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
