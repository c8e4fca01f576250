"""Machines whose clocks are wrong, or are set: nothing is lost, and everything is said."""

import asyncio
import time
from pathlib import Path

import numpy as np
import pytest

from tests.brokers import Broker
from tests.lab import Lab
from tests.processes import Worker, eventually

pytestmark = pytest.mark.broker
LIBRARY = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")


def shifted(file: Path, shift: str) -> dict[str, str]:
    """The environment of a process whose wall clock, and that alone, is what a file says."""
    if not LIBRARY.exists():
        pytest.skip(f"no {LIBRARY}: apt-get install faketime")
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


async def counted(lab: Lab) -> int:
    return sum(head.n for head in await lab.heads())


def reasons(worker: Worker) -> str:
    problems = worker.get("/api/collections/trips/status")["problems"]
    return " ".join(problems) if worker.status("/readyz") == 503 else ""


@pytest.mark.parametrize("running", ["kafka"], indirect=True)  # the embedded one dates nothing
async def test_wrong_clocks_leave_and_nothing_is_lost(running: Broker, tmp_path: Path) -> None:
    lab = Lab(running, tmp_path, partitions=2, window='grace = "10s"')
    file = tmp_path / "clock"
    with lab.worker(environment=shifted(file, "+0")) as stepping:
        await send(lab, 20)
        set_clock(file, "-2h")
        await send(lab, 20)
        await eventually(lambda: "7,200.0 s behind the broker's" in reasons(stepping))
        await send(lab, 20)
        # Who has the right time counts all that the other one left.
        with lab.worker() as right:
            await eventually(lambda: counted_by(right, 2))
            await send(lab, 20)
            await until_counted(lab, 800)
            assert reasons(right) == ""
        set_clock(file, "+0")
        await eventually(lambda: counted_by(stepping, 2))
        await send(lab, 20)
        await until_counted(lab, 1_000)
        skew = stepping.metrics("ldpstream_clock_skew_seconds")
        assert abs(skew) < 1
        assert stepping.terminate() == 0
        said = stepping.errors()
        assert "has been set by -7200" in said
        assert "behind the broker's" in said
        assert "agrees with the broker's again" in said
    for head in await lab.heads():
        assert (head.late, dict(head.rejected)) == (0, {})


def counted_by(worker: Worker, partitions: int) -> bool:
    status = worker.get("/api/collections/trips/status")
    return sum(one["owned"] for one in status["partitions"]) == partitions


async def until_counted(lab: Lab, n: int) -> None:
    for _ in range(100):
        if await counted(lab) == n:
            return
        await asyncio.sleep(0.3)
    assert await counted(lab) == n
