"""`hold` end to end: devices with ledgers on disk, one killed, and a worker that counts them."""

import asyncio
import os
import signal
from pathlib import Path

import numpy as np
import pytest

from ldpstream.agents.device import Sender
from ldpstream.mechanisms.ledger import Ledger
from ldpstream.mechanisms.wire.spec import CollectionSpec
from tests.broker.conftest import on_one_broker
from tests.brokers import Broker
from tests.lab import START_MS, Lab
from tests.ledger import WINDOW_MS
from tests.stream.cli import spawn

pytestmark = pytest.mark.broker

DEVICES, WINDOWS, EPOCH = 3, 4, 2


@pytest.fixture
def lab(running: Broker, tmp_path: Path) -> Lab:
    return Lab(running, tmp_path, partitions=1, extra=f"hold = {EPOCH}")


def ledger_of(folder: Path, number: int, spec: CollectionSpec) -> Ledger:
    return Ledger(folder / f"{number}.ledger", specs=[(spec, WINDOW_MS)], budget=3)


def draw_and_die(folder: Path, spec: CollectionSpec) -> None:
    """Draw the last device's first report in another process, which is killed before it sends."""
    child = os.fork()
    if child == 0:
        ledger_of(folder, DEVICES - 1, spec).release(spec, 3, time_ms=START_MS)
        os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL


@on_one_broker
async def test_devices_repeat_what_they_drew_and_windows_count_it(lab: Lab, tmp_path: Path) -> None:
    spec = lab.collection.spec
    draw_and_die(tmp_path, spec)
    options = lab.broker.options
    with lab.worker():
        async with Sender(spec, lab.broker.bootstrap, options=options) as sender:
            sent: dict[int, list[int]] = {number: [] for number in range(DEVICES)}
            for time_ms in range(START_MS, START_MS + WINDOWS * WINDOW_MS, WINDOW_MS):
                for number, before in sent.items():
                    label = (number + len(before)) % 12
                    # The file is all that a device remembers; its value changes every time.
                    with ledger_of(tmp_path, number, spec) as ledger:
                        await sender.send_once(label, ledger=ledger, time_ms=time_ms)
                        release = ledger.release(spec, 0, time_ms=time_ms)
                    reports, _ = spec.mechanism.decode(release.payload)
                    lab.ledger.add(reports, np.array([release.time_ms]))
                    before.append(int(reports[0]))
        await lab.close(START_MS + WINDOWS * WINDOW_MS)
        await lab.check_exact()
    assert lab.ledger.n == DEVICES * WINDOWS
    assert len(await lab.records(lab.collection.topics.source)) == DEVICES * WINDOWS
    for number, reports in sent.items():
        with ledger_of(tmp_path, number, spec) as ledger:
            spent = ledger.spent()
        assert spent.total == len(spent.windows) in (2, 3)
        for epoch in spent.windows:
            first = max(0, (epoch.start_ms - START_MS) // WINDOW_MS)
            assert len({*reports[first : (epoch.end_ms - START_MS) // WINDOW_MS]}) == 1
    # `ldpstream ledger` prints what has been spent.
    ended = await asyncio.to_thread(spawn, "ledger", str(tmp_path / f"{DEVICES - 1}.ledger"))
    assert f'"exact": "{spent.total}"' in ended.stdout.decode()
