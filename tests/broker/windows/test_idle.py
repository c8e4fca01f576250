"""Messages that decide nothing hold no window open, on Kafka."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.broker.conftest import on_kafka
from tests.brokers import Broker
from tests.lab import Lab
from tests.processes import PATIENCE_SECONDS, Worker, eventually
from tests.stream.cli import invoke

pytestmark = [pytest.mark.broker, on_kafka]

WINDOW = 'grace = "1s", idle = "3s"'
ACCEPTING = ("epsilon = 1.0", 'epsilon = 2.0\naccept = ["ldpstream.toml"]')


def report(lab: Lab) -> bytes:
    """Return a frame of one report of now, and enter it."""
    now_ms = time.time_ns() // 1_000_000
    return lab.frame(1, first_ms=now_ms, last_ms=now_ms)


async def send(
    lab: Lab, messages: Sequence[tuple[int, Lab | bytes]], stop: asyncio.Event, *, seconds: float
) -> None:
    """Send these messages, or reports of these labs, to partitions again and again."""
    async with lab.producer() as producer:
        while not stop.is_set():
            for partition, message in messages:
                value = message if isinstance(message, bytes) else report(message)
                await producer.send(lab.collection.topics.source, value, partition=partition)
            await asyncio.sleep(seconds)


async def first_finals(lab: Lab, count: int) -> None:
    """Wait until some windows are final."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(await lab.finals()) < count:
        assert time.monotonic() < deadline, await lab.heads()
        await asyncio.sleep(0.3)


async def test_windows_close_while_a_partition_gets_only_refused_messages(
    running: Broker, tmp_path: Path
) -> None:
    lab = Lab(running, tmp_path, partitions=2, window=WINDOW)
    stop = asyncio.Event()
    with lab.worker() as worker:
        sending = asyncio.create_task(
            send(lab, [(0, lab), (0, lab), (1, b"old device")], stop, seconds=0.5)
        )
        await first_finals(lab, 2)
        stop.set()
        await sending
        # The last window closes, too, and nothing is said to be waited for once that is stored.
        await lab.check_exact()
        source = "/api/collections/trips/status"
        await eventually(
            lambda: [p["wait"] for p in worker.get(source)["partitions"]] == [None] * 2
        )
        assert worker.get(source)["partitions"][1]["rejected"].keys() == {"undecodable"}
        assert worker.metrics("ldpstream_wait_seconds") == 0


async def test_windows_that_wait_say_so_everywhere(running: Broker, tmp_path: Path) -> None:
    """With `idle` off a silent partition holds windows open: a worker is ready all the same."""
    lab = Lab(running, tmp_path, partitions=2, window='grace = "0s", idle = "off"')
    stop = asyncio.Event()
    with lab.worker() as worker:
        sending = asyncio.create_task(send(lab, [(0, lab)], stop, seconds=0.2))
        waits = "ldpstream_wait_seconds"
        await eventually(lambda: worker.metrics(waits, partition="1") > 1, what="a wait")
        stop.set()
        await sending

        def waited_for() -> list[bool]:
            return ["wait for partition 1" in one for one in worker.get("/readyz")["waits"]]

        # Of the other one the broker may not have stored yet that it has closed the window.
        await eventually(lambda: waited_for() == [True], what="a wait for nothing else")
        assert worker.metrics(waits, partition="0") == 0
        assert worker.get("/readyz")["ready"] is True
        result = await asyncio.to_thread(invoke, "status", worker.url)
        assert "windows wait for partition 1" in result.stdout
        assert "idle is off" in result.stdout


async def test_accept_is_removed_once_the_last_window_of_the_old_spec_is_published(
    running: Broker, tmp_path: Path
) -> None:
    """What docs/how-to/change-spec.md says to wait for: no open window.

    The new spec's reports go on meanwhile.
    """
    old = Lab(running, tmp_path, partitions=2, window=WINDOW)
    new = old.changed("new.toml", ACCEPTING)
    stop, upgraded = asyncio.Event(), asyncio.Event()
    with old.worker() as worker:
        # Devices go on reporting by the old spec until they are upgraded, too.
        leaving = asyncio.create_task(send(old, [(0, old), (1, old)], upgraded, seconds=0.3))
        await eventually(lambda: worker.metrics("ldpstream_reports_total", result="counted") >= 2)
        assert await asyncio.to_thread(worker.terminate) == 0
    with new.worker() as worker:
        sending = asyncio.create_task(send(new, [(0, new), (1, new)], stop, seconds=0.3))
        name = "ldpstream_accepted_open_windows"
        await eventually(lambda: worker.metrics(name) == open_windows(worker, old) > 0)
        upgraded.set()
        await leaving
        await eventually(lambda: worker.metrics(name) == open_windows(worker, old) == 0)
        assert await asyncio.to_thread(worker.terminate) == 0
    text = new.file.read_text()
    new.file.write_text(text.replace('accept = ["ldpstream.toml"]', ""))
    new.reload()
    with new.worker() as worker:
        stop.set()
        await sending
        await old.check_exact()
        await new.check_exact()
        assert worker.terminate() == 0


def open_windows(worker: Worker, lab: Lab) -> int:
    fingerprint = lab.collection.spec.fingerprint.hex()
    status = worker.get(f"/api/collections/trips/status?fingerprint={fingerprint}")
    return int(status["open_windows"])
