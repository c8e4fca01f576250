"""Machines whose clocks are wrong, or are set: nothing is lost, and everything is reported."""

import asyncio
import re
import time
from pathlib import Path

import numpy as np
import pytest

from tests import missing
from tests.broker.asking import until_counted
from tests.broker.conftest import on_kafka
from tests.broker.test_plugin import orders_of, start_app
from tests.brokers import Broker
from tests.lab import Lab
from tests.ports import free_ports
from tests.processes import Worker, eventually

pytestmark = pytest.mark.broker
LIBRARY = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")


def shifted(file: Path, shift: str) -> dict[str, str]:
    """Return the environment of a process whose wall clock, and nothing else, follows a file."""
    if not LIBRARY.exists():
        missing.skip(f"there is no {LIBRARY}; on Debian: apt-get install faketime")
    set_clock(file, shift)
    return {
        "LD_PRELOAD": str(LIBRARY),
        "FAKETIME_TIMESTAMP_FILE": str(file),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }


def set_clock(file: Path, shift: str) -> None:
    new = file.with_suffix(".new")
    new.write_text(shift + "\n")
    new.replace(file)


async def send(lab: Lab, n: int) -> None:
    """Send frames of ten honest reports each, dated now, to all partitions."""
    spec, source = lab.collection.spec, lab.collection.topics.source
    async with lab.producer() as producer:
        for number in range(n):
            now_ms = time.time_ns() // 1_000_000 // 1_000 * 1_000
            value = spec.frame_reports(lab.reports(10), times_ms=np.full(10, now_ms))
            await producer.send_and_wait(source, value, partition=number % 2)
            await asyncio.sleep(0.02)


def reasons(worker: Worker) -> str:
    problems = worker.get("/api/collections/trips/status")["problems"]
    return " ".join(problems) if worker.status("/readyz") == 503 else ""


def two_hours(which: str, said: str) -> bool:
    """Whether a text says that the clock is two hours behind or ahead, to a second."""
    return re.search(rf"7,(199\.\d|200\.\d) s {which} the broker's", said) is not None


@pytest.mark.parametrize("instance", [{}, {"LDPSTREAM_INSTANCE": "one"}], ids=["", "instance"])
@on_kafka  # the embedded one dates nothing
async def test_a_worker_with_a_wrong_clock_leaves_and_nothing_is_lost(
    running: Broker, tmp_path: Path, instance: dict[str, str]
) -> None:
    """Workers leave the group at once: with these sessions nobody could wait for their end."""
    lab = Lab(running, tmp_path, partitions=2, window='grace = "10s"').changed(
        "long.toml",
        ("session_timeout_ms = 6000", "session_timeout_ms = 600000"),
    )
    file = tmp_path / "clock"
    with lab.worker(environment=shifted(file, "+0") | instance) as stepping:
        await send(lab, 20)
        set_clock(file, "-2h")
        await send(lab, 20)
        await eventually(lambda: two_hours("behind", reasons(stepping)))
        await send(lab, 20)
        # The worker with the right time counts all that the other one left.
        with lab.worker() as right:
            await eventually(lambda: counted_by(right, 2))
            await send(lab, 20)
            await until_counted(lab, 800)
            assert reasons(right) == ""
            assert right.terminate() == 0
        set_clock(file, "+0")
        await eventually(lambda: counted_by(stepping, 2))
        await send(lab, 20)
        await until_counted(lab, 1_000)
        skew = stepping.metrics("ldpstream_clock_skew_seconds")
        assert abs(skew) < 1
        assert stepping.terminate() == 0
        said = stepping.errors()
        assert "has jumped by -7200" in said
        assert "behind the broker's" in said
        assert "agrees with the broker's again" in said
    for head in await lab.heads():
        assert (head.late, dict(head.rejected)) == (0, {})


@on_kafka
async def test_a_users_own_app_with_a_wrong_clock_leaves_too(
    running: Broker, tmp_path: Path
) -> None:
    """It starts two hours ahead; its own agent stops with the pipeline, and comes back with it."""
    lab = Lab(running, tmp_path, partitions=2, window='grace = "10s"')
    orders, file = f"orders-{lab.collection.topics.source}", tmp_path / "clock"
    ports = free_ports(2)
    ahead = start_app(lab, orders, tmp_path / "1", ports[0], shifted(file, "+2h"))
    try:
        ahead.wait_ready()
        await eventually(lambda: two_hours("ahead of", reasons(ahead)))
        await send(lab, 20)
        right = start_app(lab, orders, tmp_path / "2", ports[1])
        try:
            right.wait_ready()
            await eventually(lambda: counted_by(right, 2))
            await order(lab, orders, ports[1])
            await send(lab, 20)
            await until_counted(lab, 400)
            assert right.terminate() == 0
        finally:
            right.kill()
        set_clock(file, "+0")
        await eventually(lambda: counted_by(ahead, 2))
        await send(lab, 20)
        await until_counted(lab, 600)
        await order(lab, orders, ports[0])
        assert ahead.terminate() == 0
        said = ahead.errors()
        assert two_hours("ahead of", said)
        # Not so Faust, which may say that its recovery of tables was cut short.
        assert "ldpstream/agents" not in said.partition("Traceback")[2]
    finally:
        ahead.kill()
    for head in await lab.heads():
        assert (head.late, dict(head.rejected)) == (0, {})


async def order(lab: Lab, orders: str, port: int) -> None:
    """Send orders to the app's own agent until it counts one more."""
    before = orders_of(port).get("tea", 0)
    async with lab.producer() as producer:
        for _ in range(100):
            await producer.send_and_wait(orders, b'"tea"', partition=0)
            if orders_of(port).get("tea", 0) > before:
                return
            await asyncio.sleep(0.3)
    raise AssertionError("the app's own agent reads nothing")


def counted_by(worker: Worker, partitions: int) -> bool:
    status = worker.get("/api/collections/trips/status")
    return sum(one["owned"] for one in status["partitions"]) == partitions
