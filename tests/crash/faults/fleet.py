"""Workers in places of their own, started again whenever they end, as a service manager does.

A worker that cannot start because no broker answers ends with a clear line and is started again;
one that has been ready must not end by itself.
"""

import asyncio
import math
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.crash.faults.waiting import holds
from tests.lab import Lab
from tests.processes import Worker

RESTART_SECONDS = 1.0
TERMINATE_SECONDS = 120.0


@dataclass
class Place:
    """Where one worker runs after the other; `wanted` says whether one should.

    It runs with the configuration `file` and the broker `bootstrap`.
    """

    number: int
    bootstrap: str
    file: Path
    wanted: bool = True
    worker: Worker | None = None
    ready: bool = False
    ending: bool = False


class Fleet:
    """All places. `unexpected` are ends of workers that nobody asked for."""

    def __init__(self, lab: Lab, places: list[Place], logs: Path) -> None:
        self.places = places
        self.unexpected: list[str] = []
        self.started = self.became_ready = self.gave_up = 0
        self.on_ready: Callable[[Place], object] = lambda _: None
        self._lab = lab
        self._logs = logs
        self._tasks: list[asyncio.Task[None]] = []

    def run(self) -> None:
        """Start a worker in every wanted place, and keep it running."""
        self._tasks = [asyncio.create_task(self._keep(place)) for place in self.places]

    async def stop(self) -> None:
        """End all workers at once."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for place in self.places:
            if place.worker is not None:
                place.worker.process.kill()
                await asyncio.to_thread(place.worker.process.wait)
                if place.worker.process.stdout is not None:
                    await asyncio.to_thread(place.worker.process.stdout.close)

    def complaints(self) -> list[str]:
        """Return the errors that workers logged: no fault of a run should cause one."""
        found = []
        for log in sorted(self._logs.glob("*-[0-9]*.log")):
            lines = log.read_text(errors="replace").splitlines()
            bad = (line for line in lines if " ERROR " in line or line.startswith("Traceback"))
            found += [f"{log.name}: {line}" for line in bad]
        return found

    def kill(self, place: Place) -> None:
        """Kill the worker of a place with -9."""
        if place.worker is not None:
            place.ending = True
            place.worker.process.kill()

    def pause(self, place: Place) -> None:
        """Stop the process of a place."""
        self._signal(place, signal.SIGSTOP)

    def resume(self, place: Place) -> None:
        """Let the process of a place go on."""
        self._signal(place, signal.SIGCONT)

    def _signal(self, place: Place, number: signal.Signals) -> None:
        if place.worker is not None and place.worker.process.poll() is None:
            place.worker.process.send_signal(number)

    async def terminate(self, place: Place) -> None:
        """End the worker of a place with SIGTERM, and see that it ends well."""
        worker = place.worker
        if worker is None or worker.process.poll() is not None:
            return
        was_ready, place.ending = place.ready, True
        worker.process.send_signal(signal.SIGTERM)
        await holds(lambda: worker.process.poll() is not None, seconds=TERMINATE_SECONDS)
        code = worker.process.poll()
        if code is None:
            worker.process.kill()
        if was_ready and code not in {0, -signal.SIGKILL}:
            self.unexpected.append(f"worker {place.number} ended with {code} after SIGTERM")

    async def all_ready(self, *, seconds: float) -> None:
        """Wait until every wanted place has a ready worker."""
        if not await holds(lambda: not self._missing(), seconds=seconds):
            raise TimeoutError(f"workers {self._missing()} were not ready in {seconds:.0f} s")

    def _missing(self) -> list[int]:
        return [place.number for place in self.places if place.wanted and not place.ready]

    async def _keep(self, place: Place) -> None:
        while True:
            await holds(lambda: place.wanted, seconds=math.inf)
            self.started += 1
            name = f"worker-{place.number}-{self.started:03d}.log"
            log = (self._logs / name).open("wb")
            with log:
                await self._one(place, log)
            await asyncio.sleep(RESTART_SECONDS)

    async def _one(self, place: Place, log: IO[bytes]) -> None:
        """Run one worker until it ends."""
        bootstrap = {"LDPSTREAM_KAFKA_BOOTSTRAP": place.bootstrap}
        worker = self._lab.start_worker(
            file=place.file,
            environment=bootstrap,
            stderr=log,
        )
        place.worker, place.ready, place.ending = worker, False, False
        waiting = asyncio.create_task(asyncio.to_thread(_url, worker))
        while worker.process.poll() is None:
            if waiting.done() and not place.ready and waiting.result():
                worker.url, place.ready = waiting.result(), True
                self.became_ready += 1
                self.on_ready(place)
            await asyncio.sleep(0.05)
        was_ready, place.ready = place.ready, False
        with suppress(asyncio.CancelledError):
            await waiting
        assert worker.process.stdout is not None
        worker.process.stdout.close()
        if not place.ending:
            # Only a worker that finds no broker at its start may end by itself.
            if was_ready or worker.process.returncode != 1:
                self.unexpected.append(
                    f"worker {place.number} ended by itself "
                    f"with {worker.process.returncode}: {log.name}"
                )
            self.gave_up += 1


def _url(worker: Worker) -> str:
    """Return the URL that a worker prints once it is ready; nothing if it ends before."""
    assert worker.process.stdout is not None
    for line in map(bytes.decode, worker.process.stdout):
        if line.startswith("ready"):
            return line.split()[-1]
    return ""
