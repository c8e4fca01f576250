"""The processes of all devices, started again whenever one was killed or lost its broker."""

import asyncio
import os
import time
from asyncio.subprocess import Process
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.crash.faults.device import TROUBLE, Order
from tests.crash.faults.journal import Journal
from tests.crash.faults.stream import PLANS, how_many
from tests.crash.faults.watch import Ends
from tests.lab import Lab

RESTART_SECONDS = 1.0
_ROOT = Path(__file__).resolve().parents[3]


@dataclass
class Device:
    """The device of one collection; `process` is the one that runs now."""

    name: str
    journal: Journal
    messages: int
    process: Process | None = None


class Devices:
    """One device a collection."""

    def __init__(
        self, lab: Lab, folder: Path, *, reports: int, seed: int, transactions: bool
    ) -> None:
        self.restarts = 0
        self.all = [
            Device(name, Journal(folder / f"{name}.journal"), how_many(PLANS[name], reports))
            for name in lab.config.collections
        ]
        self._lab = lab
        self._folder = folder
        self._reports = reports
        self._seed = seed
        self._transactions = transactions
        self._tasks: list[asyncio.Task[None]] = []

    def send(self, *, share: float, seconds: float) -> None:
        """Begin to send this share of all messages, evenly over so many seconds."""
        self._tasks = [
            asyncio.create_task(self._keep(device, share=share, seconds=seconds))
            for device in self.all
        ]

    async def finish(self) -> None:
        """Wait until all of it has been sent."""
        await asyncio.gather(*self._tasks)

    async def stop(self) -> None:
        """End all devices at once."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for device in self.all:
            if device.process is not None:
                _kill(device.process)
                await device.process.wait()

    def kill(self, device: Device) -> None:
        """Kill a device with -9; it is started again."""
        if device.process is not None:
            _kill(device.process)

    def ends(self) -> Ends:
        """Return the offset after the last message acknowledged, by collection and partition."""
        return {
            (device.name, partition): end
            for device in self.all
            for partition, end in device.journal.ends().items()
        }

    async def _keep(self, device: Device, *, share: float, seconds: float) -> None:
        until = round(device.messages * share)
        first = len({n for n in device.journal.read()["number"].tolist() if n >= 0})
        order = Order(
            file=str(self._lab.file),
            name=device.name,
            journal=str(device.journal.path),
            reports=self._reports,
            seed=self._seed,
            until=until,
            first=first,
            begun_ms=time.time_ns() // 1_000_000,
            rate=max(1, until - first) / seconds,
            transactions=self._transactions,
        )
        environment = {**os.environ, "PYTHONPATH": f"{_ROOT}:{os.environ.get('PYTHONPATH', '')}"}
        with (self._folder / f"device-{device.name}.log").open("ab") as log:
            while True:
                process = await asyncio.create_subprocess_exec(
                    *order.command(), stderr=log, env=environment
                )
                device.process = process
                code = await process.wait()
                if code == 0:
                    return
                if code not in {TROUBLE, -9}:
                    raise RuntimeError(f"the device of {device.name} ended with {code}: {log.name}")
                self.restarts += 1
                await asyncio.sleep(RESTART_SECONDS)


def _kill(process: Process) -> None:
    with suppress(ProcessLookupError):
        process.kill()
