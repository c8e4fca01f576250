"""Two workers with one file, which are restarted, killed and given changed files."""

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aiokafka import TopicPartition
from aiokafka.admin import NewPartitions

from ldpstream.agents.broker.groups import count_members
from tests.brokers import Broker
from tests.crash.day.setting import COLLECTIONS, Span
from tests.crash.day.watch import Watch
from tests.lab import Lab
from tests.processes import PATIENCE_SECONDS, Worker
from tests.stream.cli import spawn

WORKERS = 2
_SETTLING_SECONDS = 5.0
"""How long workers that are ready may go on loading, and read what has waited meanwhile."""


class Fleet:
    """The workers and their file.

    - `halts`: when windows were held open on purpose.
    - `stops`: when no worker ran.
    - `moves`: when partitions moved between them, because one came or went.
    - `problems`: what did not hold.
    """

    def __init__(self, broker: Broker, folder: Path, watch: Watch) -> None:
        self.lab = Lab(broker, folder, collections=COLLECTIONS)
        self.halts: list[Span] = []
        self.stops: list[Span] = []
        self.moves: list[Span] = []
        self.problems: list[str] = []
        self.restarts = self.kills = 0
        self._watch = watch
        self._workers: list[Worker] = []
        self._log = (folder / "workers.log").open("ab")
        self._stopped = 0.0

    def end(self) -> None:
        """Kill all workers."""
        for worker in self._workers:
            worker.kill()
        self._log.close()

    def log(self) -> str:
        """Return what all workers have logged."""
        return Path(self._log.name).read_text("utf-8", errors="replace")

    @property
    def first(self) -> Worker:
        return self._workers[0]

    async def start(self) -> None:
        """Start all workers, and wait until they are ready."""
        began = time.time()
        self._workers = [self._start() for _ in range(WORKERS)]
        for worker in self._workers:
            await self._ready(worker)
        if self._stopped:
            self.stops.append(Span(self._stopped, time.time()))
        self._moved(self._stopped or began)

    async def stop(self) -> None:
        """Stop all workers: nothing is counted until `start`."""
        self._stopped = time.time()
        self._watch.urls = ()
        for worker in self._workers:
            assert await asyncio.to_thread(worker.terminate) == 0
            worker.kill()
        self._workers = []
        # A member that was stopped while it joined stays for a session.
        group = self.lab.config.worker.id
        async with self.lab.admin() as admin, asyncio.timeout(PATIENCE_SECONDS):
            while await count_members(admin, group):  # noqa: ASYNC110 (no event)
                await asyncio.sleep(0.5)

    async def restart(self) -> None:
        """Restart the workers one after another, each once the one before is ready."""
        began = time.time()
        for place, worker in enumerate(self._workers):
            assert await asyncio.to_thread(worker.terminate) == 0
            worker.kill()
            self._workers[place] = self._start()
            await self._ready(self._workers[place])
            self.restarts += 1
        self._moved(began)

    async def kill(self) -> None:
        """Kill -9 each worker in turn, and start it again."""
        for place, worker in enumerate(self._workers):
            began = time.time()
            worker.kill()
            self._workers[place] = self._start()
            await self._ready(self._workers[place])
            self.kills += 1
            await asyncio.sleep(5)
            self._moved(began)

    def edit(self, name: str, *changes: tuple[str, str]) -> None:
        """Change the table of a collection in the workers' file."""
        before, heading, rest = self.lab.file.read_text().partition(f"[collection.{name}]\n")
        table, following, after = rest.partition("\n[collection.")
        for old, new in changes:
            assert old in table, f"{old} in the table of {name}"
            table = table.replace(old, new)
        self.lab.file.write_text(before + heading + table + following + after)
        self.lab.reload()

    def remove(self, name: str) -> None:
        """Take the table of a collection out of the workers' file."""
        before, _, rest = self.lab.file.read_text().partition(f"[collection.{name}]\n")
        _, following, after = rest.partition("\n[collection.")
        self.lab.file.write_text(before + following.lstrip() + after)
        self.lab.reload()

    async def add_partitions(self, name: str, total: int) -> None:
        """Add partitions to a source; the workers' file stays as it is."""
        async with self.lab.admin() as admin:
            source = self.lab.config.collections[name].topics.source
            await admin.create_partitions({source: NewPartitions(total)})

    async def command(self, *words: str | Path) -> str:
        """Run `ldpstream`, which has to succeed, and return what it printed."""
        result = await asyncio.to_thread(spawn, *map(str, words))
        assert result.returncode == 0, f"{words}: {result.stderr.decode()}"
        return result.stdout.decode()

    async def drained(self) -> None:
        """Wait until all that the sources hold now is counted, whatever devices go on to send."""
        ends = dict[tuple[str, int], int]()
        async with self.lab.reader() as reader:
            for name, one in self.lab.config.collections.items():
                source = [TopicPartition(one.topics.source, p) for p in range(one.partitions)]
                found = await reader.end_offsets(source)
                ends |= {(name, place.partition): end for place, end in found.items()}
        deadline = time.monotonic() + PATIENCE_SECONDS
        while left := await self._uncounted(ends):
            assert time.monotonic() < deadline, f"not counted: {left}"
            await asyncio.sleep(0.5)

    async def _uncounted(self, ends: Mapping[tuple[str, int], int]) -> list[str]:
        """Return the partitions that are not counted up to these ends."""
        found = []
        for name in self.lab.config.collections:
            answer = await asyncio.to_thread(self.first.get, f"/api/collections/{name}/status")
            for one in answer["partitions"]:
                end, after = ends[name, one["partition"]], one["next"] or 0
                if after < end:
                    found.append(f"{name}[{one['partition']}] at {after} of {end}")
        return found

    def _moved(self, began: float) -> None:
        self.moves.append(Span(began, time.time() + _SETTLING_SECONDS))

    def _start(self) -> Worker:
        return self.lab.start_worker(stderr=self._log)

    async def _ready(self, worker: Worker) -> None:
        """Wait for a worker's first answer, and for 200 at /readyz."""
        await asyncio.to_thread(worker.wait_ready)
        self._watch.urls = tuple(one.url for one in self._workers if one.url)
        deadline, reasons = time.monotonic() + 60, list[Any]()
        while await asyncio.to_thread(worker.status, "/readyz") != 200:
            if time.monotonic() > deadline:
                reasons = self._watch.reasons(time.time() - 5)
                self.problems.append(f"a worker was not ready in 60 s; it said {reasons}")
                return
            await asyncio.sleep(0.5)
