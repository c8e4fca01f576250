"""Every kind of fault: what it takes hold of, and what it does.

A fault holds its resources while it lasts, so that faults overlap but do not undo each other: a
worker that is stopped is not killed by somebody else, and of two faults of the broker one waits.
"""

import asyncio
import random
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tests.crash.faults.devices import Devices
from tests.crash.faults.fleet import Fleet, Place
from tests.crash.faults.surroundings import Services
from tests.crash.faults.waiting import holds
from tests.lab import Lab

SESSION_SECONDS = 6.0
"""The session timeout of the workers' group."""
STORM_ROUNDS = 3


@dataclass(frozen=True, eq=False)
class World:
    """All that faults take hold of: `workers` are always wanted, `visitors` come and go."""

    lab: Lab
    around: Services
    fleet: Fleet
    devices: Devices
    workers: list[Place]
    visitors: list[Place]
    flushing: Callable[[bool], Awaitable[None]]
    """Makes the broker's disk slow: it flushes every message before the next one."""


Act = Callable[[World, Place, random.Random], Awaitable[None]]
"""Carries a fault out, on a place that no other fault holds."""


@dataclass(frozen=True)
class Kind:
    """A kind of fault on some brokers; `holds` is `worker` (one of them), `workers`, `broker` or
    `devices`."""

    name: str
    act: Act
    holds: str
    brokers: frozenset[str]
    weight: int = 1


async def _kill_worker(world: World, place: Place, rng: random.Random) -> None:
    world.fleet.kill(place)
    if rng.random() < 0.25:
        # Killed again while it starts.
        await asyncio.sleep(rng.uniform(1.0, 3.0))
        world.fleet.kill(place)


async def _kill_all_workers(world: World, place: Place, rng: random.Random) -> None:
    for one in [*world.workers, *world.visitors]:
        world.fleet.kill(one)


async def _restart_worker(world: World, place: Place, rng: random.Random) -> None:
    await world.fleet.terminate(place)


async def _zombie(world: World, place: Place, rng: random.Random) -> None:
    world.fleet.pause(place)
    await asyncio.sleep(SESSION_SECONDS + rng.uniform(1.5, 4.0))
    world.fleet.resume(place)


async def _storm(world: World, place: Place, rng: random.Random) -> None:
    """Workers join and leave every few seconds, and one that stays is slow."""
    slowing = asyncio.create_task(_pulse(world, place))
    for _ in range(STORM_ROUNDS):
        for visitor in world.visitors:
            visitor.wanted = not visitor.wanted
            if not visitor.wanted:
                await _leave(world, visitor, killed=rng.random() < 0.5)
            await asyncio.sleep(rng.uniform(1.0, 3.0))
    for visitor in world.visitors:
        visitor.wanted = False
        await _leave(world, visitor, killed=False)
    slowing.cancel()
    await asyncio.gather(slowing, return_exceptions=True)


async def _leave(world: World, visitor: Place, *, killed: bool) -> None:
    if killed:
        world.fleet.kill(visitor)
    else:
        await world.fleet.terminate(visitor)


async def _pulse(world: World, place: Place) -> None:
    """Let a worker run for a fifth of the time only."""
    try:
        while True:
            world.fleet.pause(place)
            await asyncio.sleep(0.4)
            world.fleet.resume(place)
            await asyncio.sleep(0.1)
    finally:
        world.fleet.resume(place)


async def _kill_broker(world: World, place: Place, rng: random.Random) -> None:
    node = rng.choice(world.around.nodes)
    await asyncio.to_thread(node.stop)
    await asyncio.sleep(rng.choice((0.0, 1.0, 3.0, SESSION_SECONDS + 1)))
    await asyncio.to_thread(node.start)


async def _restart_node(world: World, place: Place, rng: random.Random) -> None:
    """End a node with SIGTERM: it hands its leaders to others first, and gets them back later."""
    number = rng.randrange(len(world.around.nodes))
    node = world.around.nodes[number]
    running = node.running
    world.around.signal(number, signal.SIGTERM)
    await holds(lambda: running is None or not running.running, seconds=30)
    await asyncio.to_thread(node.stop)
    await asyncio.to_thread(node.start)


async def _stall_broker(world: World, place: Place, rng: random.Random) -> None:
    node = _node(world, rng)
    try:
        world.around.signal(node, signal.SIGSTOP)
        await asyncio.sleep(rng.uniform(1.0, 8.0))
    finally:
        world.around.signal(node, signal.SIGCONT)


async def _slow_disk(world: World, place: Place, rng: random.Random) -> None:
    node = _node(world, rng)
    await world.flushing(True)
    try:
        for _ in range(rng.randint(5, 10)):
            world.around.signal(node, signal.SIGSTOP)
            await asyncio.sleep(rng.uniform(0.1, 0.5))
            world.around.signal(node, signal.SIGCONT)
            await asyncio.sleep(rng.uniform(0.05, 0.2))
    finally:
        world.around.signal(node, signal.SIGCONT)
        await world.flushing(False)


def _node(world: World, rng: random.Random) -> int:
    return rng.randrange(max(1, len(world.around.nodes)))


async def _kill_device(world: World, place: Place, rng: random.Random) -> None:
    for device in rng.sample(world.devices.all, rng.randint(1, len(world.devices.all))):
        world.devices.kill(device)


async def _cut(world: World, place: Place, rng: random.Random) -> None:
    seconds = rng.choice((0.0, 1.0, SESSION_SECONDS + 2))
    proxies = world.around.proxies[place.number]
    await asyncio.gather(*(proxy.cut(seconds) for proxy in proxies))


async def _hold(world: World, place: Place, rng: random.Random) -> None:
    seconds = rng.choice((2.0, SESSION_SECONDS + 3))
    proxies = world.around.proxies[place.number]
    await asyncio.gather(*(proxy.hold(seconds) for proxy in proxies))


async def _slow(world: World, place: Place, rng: random.Random) -> None:
    proxies = world.around.proxies[place.number]
    seconds = rng.uniform(4.0, 10.0)
    await asyncio.gather(*(proxy.slow(seconds) for proxy in proxies))


_ALL = frozenset({"embedded", "kafka", "cluster"})
_ONE, _FLEET, _BROKER = "worker", "workers", "broker"
KINDS = (
    Kind("worker killed", _kill_worker, _ONE, _ALL, 3),
    Kind("all workers killed", _kill_all_workers, _FLEET, _ALL),
    Kind("worker restarted", _restart_worker, _ONE, _ALL, 2),
    Kind("worker stopped, woken as a zombie", _zombie, _ONE, _ALL, 3),
    Kind("rebalance storm, slow consumer", _storm, _FLEET, _ALL, 2),
    Kind("broker killed", _kill_broker, _BROKER, frozenset({"kafka"}), 2),
    Kind("one node of three killed", _kill_broker, _BROKER, frozenset({"cluster"}), 3),
    Kind("node restarted, leaders move", _restart_node, _BROKER, frozenset({"cluster"}), 2),
    Kind("broker stopped for seconds", _stall_broker, _BROKER, _ALL, 2),
    Kind("slow disk", _slow_disk, _BROKER, _ALL, 2),
    Kind("devices killed", _kill_device, "devices", _ALL, 2),
    Kind("worker's connections cut", _cut, _ONE, _ALL, 2),
    Kind("worker's connections held", _hold, _ONE, _ALL, 2),
    Kind("worker's connections slow", _slow, _ONE, _ALL),
)


def draw(broker: str, faults: int, rng: random.Random) -> list[Kind]:
    """Return kinds for this many faults: each at least once where there is room, then by weight."""
    kinds = [kind for kind in KINDS if broker in kind.brokers]
    chosen = rng.sample(kinds, min(faults, len(kinds)))
    chosen += rng.choices(kinds, [kind.weight for kind in kinds], k=faults - len(chosen))
    rng.shuffle(chosen)
    return chosen
