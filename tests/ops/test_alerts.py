"""Alerts that need Apache Kafka, fired by a real Prometheus out of what workers export.

Retention deletes records while the worker is away, a topic takes no finals, and a machine's clock
is set wrong; alerts that an embedded broker can show are in `test_prometheus`. A short run of
`benchmarks.resilience.quiet` shows that nothing alerts without trouble.
"""

import asyncio
import time
from pathlib import Path

import numpy as np
import pytest
from aiokafka import TopicPartition
from benchmarks.resilience.quiet import run

from tests.broker.conftest import on_kafka
from tests.broker.trouble.test_clocks import set_clock, shifted
from tests.brokers import Broker
from tests.configuring import collection
from tests.lab import Lab
from tests.ops.monitoring import prometheus, skip_without_prometheus, until_alerts
from tests.processes import eventually

pytestmark = pytest.mark.broker

HURRY = 300
SHORT = """
mechanism = "randomized-response"
epsilon = 1.0
domain = { size = 4 }
partitions = 1
minimum = 1
window = { size = "1s", grace = "0s", idle = "300ms" }
"""


async def send(lab: Lab, *, partition: int, n: int = 1) -> None:
    """Send n frames of ten honest reports each, dated now."""
    async with lab.producer() as producer:
        for _ in range(n):
            now_ms = np.full(10, time.time_ns() // 1_000_000)
            value = lab.collection.spec.frame_reports(lab.reports(10), times_ms=now_ms)
            await producer.send_and_wait(lab.collection.topics.source, value, partition=partition)


async def send_on(lab: Lab, stop: asyncio.Event) -> None:
    """Send to both partitions for as long as the test runs."""
    while not stop.is_set():
        for partition in range(2):
            await send(lab, partition=partition)
        await asyncio.sleep(0.1)


@on_kafka
async def test_deleted_records_and_a_wrong_clock_alert(running: Broker, tmp_path: Path):
    skip_without_prometheus()
    token, clock, stop = tmp_path / "read-token", tmp_path / "clock", asyncio.Event()
    token.write_text("")
    environment = shifted(clock, "+0")
    trips = collection(partitions=2, window='grace = "10s", retention = "1h"', extra="")
    lab = Lab(running, tmp_path, collections={"trips": trips, "short": SHORT})
    short = lab.of("short").collection
    # No document is as short as that.
    await lab.create(short.topics.estimates, partitions=1, configs={"max.message.bytes": "100"})
    with lab.worker() as away:
        await send(lab, partition=0, n=3)
        await eventually(lambda: away.metrics("ldpstream_reports_total", result="counted") > 0)
        assert away.terminate() == 0
    await send(lab, partition=0, n=5)
    now_ms = np.full(9, time.time_ns() // 1_000_000)
    async with lab.producer() as producer:
        frame = short.spec.frame(np.zeros(9, dtype=np.int64), times_ms=now_ms)
        await producer.send_and_wait(short.topics.source, frame, partition=0)
    await lab.delete_before(TopicPartition(lab.collection.topics.source, 0), 8)
    with lab.worker(environment=environment) as stepping, lab.worker() as right:
        sending = asyncio.create_task(send_on(lab, stop))
        addresses = [one.url.removeprefix("http://") for one in (stepping, right)]
        targets = {"ldpstream": addresses}
        try:
            with prometheus(tmp_path, targets=targets, token=token, holds=HURRY) as server:
                before = {
                    ("LdpstreamLostOffsets", "trips"),
                    ("LdpstreamFinalOverdue", "short"),
                    ("LdpstreamProblem", "short"),
                }
                await until_alerts(server, before)
                set_clock(clock, "-2h")
                # The collection has a problem on that worker alone, and is ready on the other.
                wrong = ("LdpstreamClockWrong", addresses[0])
                problem = ("LdpstreamProblem", "trips")
                await until_alerts(server, before | {wrong, problem})
                set_clock(clock, "+0")
                await until_alerts(server, before)
        finally:
            stop.set()
            await sending


def test_nothing_alerts_without_trouble(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    skip_without_prometheus()
    assert asyncio.run(run(10, "embedded", tmp_path)) == 0
    quiet, junk = capsys.readouterr().out.splitlines()
    assert ": fired nothing; " in quiet
    assert junk.endswith("LdpstreamRejected fired")
