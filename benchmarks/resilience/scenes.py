"""Scenes in which workers come, go, die and are restarted while reports are counted.

They use only what earlier releases have too, so that a scene runs with their code as well. Workers
have the default session timeout.
"""

import asyncio
import importlib
import importlib.util
import json
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.broker.flow import Flow
from tests.brokers import Broker
from tests.crash.faults.check import compare_documents
from tests.crash.faults.recount import Truth
from tests.lab import Lab
from tests.processes import Worker, eventually

from benchmarks.launch import launch
from benchmarks.resilience.progress import arrivals, total_seconds, waits, winning_heads

STALLED_SECONDS = 1.0
"""Shorter waits are not added up: a flush takes that long."""
_SESSION = "session_timeout_ms = 6000\nheartbeat_interval_ms = 1000"


def _has(name: str) -> bool:
    """Return whether this release has a `module:name`."""
    module, _, part = name.partition(":")
    found = importlib.util.find_spec(module)
    return found is not None and hasattr(importlib.import_module(module), part)


_EVEN = _has("ldpstream.agents.engine.patches.even_assignor:EvenAssignor")
_NAMES = ("rides", "modes", "trips", "city")
"""Names in shards 1, 2, 3 and 4 of 4, and so two in each of 2 shards."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of one scene; `wrong` has a sentence for every difference."""

    scene: str
    reports: int
    windows: int
    published: int
    """Final documents; more than windows if some were published again."""
    longest_seconds: float
    """The longest time in which a partition had a message and counted none."""
    stalled_seconds: float
    """The total time in which any partition had waited like this for more than a second."""
    wrong: Sequence[str]


class Fleet:
    """The workers of a configuration; each one's output is in a file of its own."""

    def __init__(self, lab: Lab, stack: ExitStack, *, step_seconds: float) -> None:
        self.lab = lab
        self.wrong: list[str] = []
        self._stack = stack
        self._step_seconds = step_seconds
        self._started = 0

    async def start(self, **environment: str) -> Worker:
        """Start a worker, and wait until it is ready."""
        self._started += 1
        with (self.lab.file.parent / f"worker-{self._started}.log").open("wb") as log:
            worker = launch(self.lab.file, environment=environment, stderr=log)
        self._stack.callback(worker.kill)
        await asyncio.to_thread(worker.wait_ready)
        return worker

    async def start_all(self, number: int) -> list[Worker]:
        """Start several workers at once, and wait until they share the partitions evenly."""
        workers = list(await asyncio.gather(*(self.start() for _ in range(number))))
        await self.balanced(workers)
        return workers

    async def end(self, worker: Worker) -> None:
        """Stop a worker cleanly."""
        code = await asyncio.to_thread(worker.terminate)
        if code:
            self.wrong.append(f"a worker ended with exit code {code}")

    async def balanced(self, workers: Sequence[Worker]) -> None:
        """Wait until these workers own all partitions, evenly shared.

        Releases without an assignor of their own may leave a worker without any.
        """
        partitions = self.lab.collection.partitions
        least = partitions // len(workers) if _EVEN else 0

        def even() -> bool:
            numbers = [len(self.owned(worker)) for worker in workers]
            return sum(numbers) == partitions and min(numbers) >= least

        await eventually(even, what=f"{partitions} partitions owned by {len(workers)} workers")

    def owned(self, worker: Worker) -> set[int]:
        """Return the partitions that a worker says it owns."""
        path = f"/api/collections/{self.lab.collection.name}/status"
        return {one["partition"] for one in worker.get(path)["partitions"] if one["owned"]}

    async def step(self) -> None:
        """Let reports flow for a while."""
        await asyncio.sleep(self._step_seconds)


Begin = Callable[[Fleet], Awaitable[list[Worker]]]
Play = Callable[[Fleet, list[Worker]], Awaitable[None]]


@dataclass(frozen=True)
class Scene:
    """The workers that are started before reports flow, and what happens to them meanwhile."""

    name: str
    begin: Begin
    play: Play
    collections: Sequence[str] = ("trips",)
    needs: str = "ldpstream.agents.worker:run_worker"
    """The `module:name` that a release needs to play the scene."""

    @property
    def possible(self) -> bool:
        """Whether this release can play the scene."""
        return _has(self.needs)


async def _one(fleet: Fleet) -> list[Worker]:
    return await fleet.start_all(1)


async def _three(fleet: Fleet) -> list[Worker]:
    return await fleet.start_all(3)


async def _three_instances(fleet: Fleet) -> list[Worker]:
    starting = (fleet.start(LDPSTREAM_INSTANCE=str(number)) for number in range(3))
    workers = list(await asyncio.gather(*starting))
    await fleet.balanced(workers)
    return workers


async def _two_shards(fleet: Fleet) -> list[Worker]:
    return await _shards(fleet, 2)


async def _shards(fleet: Fleet, total: int) -> list[Worker]:
    # They are not asked about other shards.
    address = "http://127.0.0.1:1"
    starting = (
        fleet.start(LDPSTREAM_SHARD=f"{number}/{total}", LDPSTREAM_ADVERTISE=address)
        for number in range(1, total + 1)
    )
    return list(await asyncio.gather(*starting))


async def _grow(fleet: Fleet, workers: list[Worker]) -> None:
    workers += await asyncio.gather(*(fleet.start() for _ in range(3)))
    await fleet.balanced(workers)
    await fleet.step()
    while len(workers) > 1:
        await fleet.end(workers.pop(0))
    await fleet.balanced(workers)


async def _kill(fleet: Fleet, workers: list[Worker]) -> None:
    # The owner of the first partition makes the finals of all of them.
    making = next(worker for worker in workers if 0 in fleet.owned(worker))
    workers.remove(making)
    making.kill()
    await fleet.balanced(workers)
    workers.append(await fleet.start())
    await fleet.balanced(workers)


async def _roll(fleet: Fleet, workers: list[Worker]) -> None:
    for number, worker in enumerate(workers):
        await fleet.end(worker)
        workers[number] = await fleet.start()
        await fleet.balanced(workers)


async def _roll_instances(fleet: Fleet, workers: list[Worker]) -> None:
    for number, worker in enumerate(workers):
        owned = fleet.owned(worker)
        await fleet.end(worker)
        workers[number] = await fleet.start(LDPSTREAM_INSTANCE=str(number))
        await fleet.balanced(workers)
        if fleet.owned(workers[number]) != owned:
            fleet.wrong.append(f"instance {number} has other partitions than before")


async def _split(fleet: Fleet, workers: list[Worker]) -> None:
    new = await _shards(fleet, 4)
    await fleet.step()
    for worker in workers:
        await fleet.end(worker)
    workers[:] = new


SCENES = (
    Scene("1 to 4 to 1 workers", _one, _grow),
    Scene("kill -9 of the making owner, 1 of 3", _three, _kill),
    Scene("rolling restart of 3", _three, _roll),
    Scene(
        "rolling restart of 3 instances",
        _three_instances,
        _roll_instances,
        needs="ldpstream.agents.engine.patches.worker_app:keep_place",
    ),
    Scene(
        "2 to 4 shards",
        _two_shards,
        _split,
        collections=_NAMES,
        needs="ldpstream.agents.config:Shard",
    ),
)


async def play(scene: Scene, running: Broker, folder: Path, *, step_seconds: float) -> Outcome:
    """Play a scene while reports flow, close all windows, and compare with what was sent."""
    made = Lab(running, folder, names=scene.collections)
    lab = made.changed("defaults.toml", (_SESSION, ""))
    labs = [lab.of(name) for name in scene.collections]
    with ExitStack() as stack:
        fleet = Fleet(lab, stack, step_seconds=step_seconds)
        workers = await scene.begin(fleet)
        async with lab.producer() as producer:
            flow = Flow(producer, labs)
            async with flow.run():
                await fleet.step()
                await scene.play(fleet, workers)
                await fleet.step()
        for one in labs:
            await one.close(flow.end_ms)
        wrong = [sentence for one in labs for sentence in await _differences(one)]
        for worker in workers:
            await fleet.end(worker)
    found = [waits(await winning_heads(one), await arrivals(one)) for one in labs]
    stretches = [stretch for of_one in found for stretch in of_one]
    long = [(begun, ended) for begun, ended in stretches if ended - begun > STALLED_SECONDS]
    return Outcome(
        scene=scene.name,
        reports=sum(one.ledger.n for one in labs),
        windows=sum(len(one.ledger.windows) for one in labs),
        published=sum([sum(map(len, (await one.finals()).values())) for one in labs]),
        longest_seconds=max(ended - begun for begun, ended in stretches),
        stalled_seconds=total_seconds(long),
        wrong=[*wrong, *fleet.wrong],
    )


async def _differences(lab: Lab) -> list[str]:
    """Return all differences from the record, including windows of which two finals differ."""
    wrong = []
    try:
        await lab.check_exact()
    except AssertionError as error:
        wrong.append(f"{lab.collection.name}: {error}")
    finals = await lab.finals()
    # Nothing was late, and nothing rejected.
    wrong += compare_documents(lab.collection, Truth(), lab.ledger.windows, finals)
    contents: dict[str, set[bytes]] = {}
    for record in await lab.records(lab.collection.topics.estimates):
        document = json.loads(record.value or b"")
        if document["final"]:
            contents.setdefault(document["window"]["start"], set()).add(record.value or b"")
    for start, different in contents.items():
        if len(different) > 1:
            wrong.append(f"{lab.collection.name}, {start}: finals of {len(different)} contents")
    return wrong


def play_all(names: Sequence[str], running: Broker, *, step_seconds: float) -> list[Outcome]:
    """Play the scenes of these names that this release can play."""
    outcomes = []
    for scene in SCENES:
        if scene.name in names and scene.possible:
            folder = Path(tempfile.mkdtemp(prefix="ldpstream-scene-"))
            playing = play(scene, running, folder, step_seconds=step_seconds)
            outcomes.append(asyncio.run(playing))
            print(folder, outcomes[-1], file=sys.stderr, flush=True)
    return outcomes
