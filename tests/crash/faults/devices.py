"""The processes of all devices, started again whenever one was killed or lost its broker."""

import asyncio
import math
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.crash.faults.device import TROUBLE, Order
from tests.crash.faults.journal import Journal
from tests.crash.faults.stream import PLANS, how_many
from tests.crash.faults.waiting import holds
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
    process: "subprocess.Popen[bytes] | None" = None


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
        """Begin to send this share of all messages, evenly over this many seconds."""
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
                device.process.kill()
                await asyncio.to_thread(device.process.wait)

    def kill(self, device: Device) -> None:
        """Kill a device with -9; it is started again."""
        if device.process is not None:
            device.process.kill()

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
        with (self._folder / f"device-{device.name}.log").open("ab") as log:
            while True:
                device.process = _start(order, log)
                code = await _code(device.process)
                if code == 0:
                    return
                if code not in {TROUBLE, -9}:
                    raise RuntimeError(f"the device of {device.name} ended with {code}: {log.name}")
                self.restarts += 1
                await asyncio.sleep(RESTART_SECONDS)


def _start(order: Order, log: IO[bytes]) -> "subprocess.Popen[bytes]":
    environment = {**os.environ, "PYTHONPATH": f"{_ROOT}:{os.environ.get('PYTHONPATH', '')}"}
    return subprocess.Popen(order.command(), stderr=log, env=environment)


async def _code(process: "subprocess.Popen[bytes]") -> int:
    """Wait until a process ends, and return its exit code.

    It polls, as `kill` does: asyncio would wait in a thread, which reports 255 where `kill` has
    learnt the code first.
    """
    await holds(lambda: process.poll() is not None, seconds=math.inf)
    return process.returncode
