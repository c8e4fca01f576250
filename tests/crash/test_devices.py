"""The processes of devices in a run with faults: a kill differs from an unexpected end."""

import asyncio
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.crash.faults import devices
from tests.crash.faults.device import Order
from tests.crash.faults.devices import Devices
from tests.processes import PATIENCE_SECONDS

pytestmark = pytest.mark.crash


def one(folder: Path, monkeypatch: pytest.MonkeyPatch, *command: str) -> Devices:
    """Return the device of one collection, which runs another command."""
    monkeypatch.setattr(Order, "command", lambda _: command)
    monkeypatch.setattr(devices, "RESTART_SECONDS", 0.0)
    lab = SimpleNamespace(config=SimpleNamespace(collections={"trips": None}), file="")
    return Devices(lab, folder, reports=1_000, seed=1, transactions=False)


async def test_a_device_that_is_killed_while_it_ends_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill may learn the exit code first; the task that waits has to learn the same."""
    running = one(tmp_path, monkeypatch, "sleep", "60")
    (device,), before = running.all, None
    running.send(share=1.0, seconds=1.0)
    async with asyncio.timeout(PATIENCE_SECONDS):
        for _ in range(40):
            while device.process is before:
                assert not running._tasks[0].done(), running._tasks[0].exception()
                await asyncio.sleep(0.001)
            before, until = device.process, time.monotonic() + 0.005
            while time.monotonic() < until:
                running.kill(device)
    await running.stop()
    assert running.restarts >= 39


async def test_a_device_that_ends_by_itself_is_named_with_its_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = one(tmp_path, monkeypatch, "sh", "-c", "exit 5")
    running.send(share=1.0, seconds=1.0)
    with pytest.raises(RuntimeError, match="the device of trips ended with 5"):
        await running.finish()
