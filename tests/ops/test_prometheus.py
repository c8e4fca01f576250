"""A real Prometheus scrapes a real worker: alerts fire, and every query of the dashboards answers.

The rules are the shipped ones in a hurry: what has to hold for five minutes, here for one second.
"""

import asyncio
import json
import time
import urllib.request
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tests.brokers import broker
from tests.lab import Lab
from tests.ops.monitoring import (
    Prometheus,
    prometheus,
    skip_without_prometheus,
    until_alerts,
)
from tests.ops.queries import board_expressions, recorded
from tests.pages import shown_alone
from tests.processes import PATIENCE_SECONDS, eventually

pytestmark = pytest.mark.broker

HURRY = 300
TOKEN = "0123456789abcdef" * 2
EXPECTED = {
    ("LdpstreamRejected", "trips"),
    ("LdpstreamLate", "trips"),
    ("LdpstreamSilentPartition", "trips"),
    ("LdpstreamPriorWrong", "ill"),
    ("LdpstreamPartitionStalled", "doors"),
    ("LdpstreamWithheld", "few"),
}
"""All that fires: nothing does for `calm`."""
ILL = """
[collection.ill]
mechanism = "lip"
epsilon = 1.0
prior = 0.1
domain = { values = ["well", "ill"] }
topic = "TOPIC"
partitions = 1
minimum = 1
window = { size = "1s", grace = "0s", idle = "300ms" }
publish = { every = "500ms" }
"""
DOORS = """
[collection.NAME]
mechanism = "randomized-response"
epsilon = 1.0
domain = { size = 4 }
topic = "NAME-TOPIC"
partitions = 2
minimum = 1
window = { size = "1s", idle = "off" }
"""
FEW = """
[collection.few]
mechanism = "randomized-response"
epsilon = 1.0
domain = { size = 4 }
topic = "few-TOPIC"
partitions = 1
minimum = 10_000
window = { size = "1s", grace = "0s", idle = "300ms" }
"""
FARES = """
[collection.fares]
mechanism = "tree"
epsilon = 40.0
domain = { size = 8 }
topic = "fares-TOPIC"
partitions = 1
minimum = 1
window = { size = "5s", grace = "0s", idle = "300ms" }
publish = { quantiles = [0.5] }
"""


async def send(lab: Lab, stop: asyncio.Event) -> None:
    """Fill partition 0 of `trips` with good, late and bad messages, and `ill` with a wrong prior.

    Some of `trips` are of the other specification that it accepts. A partition of `doors` falls
    silent half an hour before the other, `few` has fewer reports than its minimum, and nothing is
    wrong with `calm`.

    Nine in ten are ill where the prior says one: far more than 2,000 reports could hide by chance.
    Of `fares` every report says 4 without noise, however few there are in a window.
    """
    trips, ill = lab.config.collections["trips"], lab.config.collections["ill"]
    fares = lab.config.collections["fares"]
    doors, calm, few = (lab.config.collections[name] for name in ("doors", "calm", "few"))
    rng = np.random.default_rng(3)
    async with lab.producer() as producer:
        before_ms = time.time_ns() // 1_000_000 - 1_800_000
        old = doors.spec.frame(rng.integers(0, 4, 9), times_ms=np.full(9, before_ms))
        await producer.send_and_wait(doors.topics.source, old, partition=1)
        while not stop.is_set():
            now_ms = time.time_ns() // 1_000_000
            for one, partition in ((doors, 0), (calm, 0), (calm, 1), (few, 0)):
                frame = one.spec.frame(rng.integers(0, 4, 9), times_ms=np.full(9, now_ms))
                await producer.send(one.topics.source, frame, partition=partition)
            good = trips.spec.frame(rng.integers(0, 12, 50), times_ms=np.full(50, now_ms))
            late = trips.spec.frame(rng.integers(0, 12, 9), times_ms=np.full(9, now_ms - 60_000))
            people = [("well", "ill")[int(x)] for x in rng.random(2_000) < 0.9]
            sick = ill.spec.frame(people, times_ms=np.full(2_000, now_ms))
            old = trips.accept[0].spec.frame(rng.integers(0, 12, 20), times_ms=np.full(20, now_ms))
            for value in (good, old, late, *[b"junk"] * 9):
                await producer.send(trips.topics.source, value, partition=0)
            await producer.send_and_wait(ill.topics.source, sick, partition=0)
            ride = fares.spec.frame(np.full(50, 4), times_ms=np.full(50, now_ms))
            await producer.send(fares.topics.source, ride, partition=0)
            await asyncio.sleep(0.1)


async def check_answers(server: Prometheus) -> None:
    """Wait until every query about workers, and every series recorded for it, has an answer."""
    asked = [text for board, text in board_expressions() if not board.startswith("intake")]
    asked += recorded("ldpstream-recording")
    for expression in asked:
        # Where a scrape took longer than a second, series are missing for a moment.
        await eventually(partial(server.answers, expression), what=expression)


def counted(url: str) -> int:
    """Return how many reports of `trips` the worker has counted, as its API says."""
    request = urllib.request.Request(
        f"{url}/api/collections/trips/status", headers={"Authorization": f"Bearer {TOKEN}"}
    )
    with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
        return int(json.loads(answer.read())["counted"])


def scraped(server: Prometheus) -> int:
    """Return the same number as Prometheus has it, without those of the accepted specification."""

    def total(name: str) -> int:
        samples = server.query(f'{name}{{collection="trips", result="counted"}}')
        return sum(int(sample["value"][1]) for sample in samples)

    return total("ldpstream_reports_total") - total("ldpstream_accepted_reports_total")


async def test_alerts_fire_and_dashboards_answer(tmp_path: Path):
    skip_without_prometheus()
    token = tmp_path / "read-token"
    token.write_text(TOKEN)
    window = 'grace = "1s", idle = "300ms", future = "1s"'
    with broker("embedded") as running:
        lab = Lab(running, tmp_path, partitions=2, window=window)
        lab.changed("old.toml", ("epsilon = 1.0", "epsilon = 2.0"))
        text = lab.file.read_text().replace("[worker]", f'[worker]\ntoken = {{ file = "{token}" }}')
        text += '\naccept = ["old.toml"]'
        text += ILL.replace("TOPIC", f"ill-{lab.collection.topics.source}")
        for name in ("doors", "calm"):
            text += DOORS.replace("NAME", name).replace("TOPIC", lab.collection.topics.source)
        for body in (FARES, FEW):
            text += body.replace("TOPIC", lab.collection.topics.source)
        lab.file.write_text(text)
        lab.reload()
        with lab.worker() as worker:
            targets = {"ldpstream": [worker.url.removeprefix("http://")]}
            stop = asyncio.Event()
            sending = asyncio.create_task(send(lab, stop))
            try:
                with prometheus(tmp_path, targets=targets, token=token, holds=HURRY) as server:
                    await until_alerts(server, EXPECTED)
                    await check_answers(server)
                    asked = shown_alone(
                        "docs/how-to/consume-estimates.md", "In Prometheus"
                    ).code.replace("3600", "5")
                    # Of the five seconds that have just ended, once they are final.
                    await eventually(lambda: bool(server.query(asked)))
                    (median,) = server.query(asked) or [{"value": (0, "4")}]
                    assert float(median["value"][1]) == 4.0
                    stop.set()
                    await sending
                    await eventually(lambda: scraped(server) == counted(worker.url) > 0)
                    stopped = {("LdpstreamReportsStopped", name) for name in ("trips", "calm")}
                    await eventually(lambda: server.alerts() >= stopped)
                    assert worker.terminate() == 0
                    down = {("LdpstreamWorkerDown", worker.url.removeprefix("http://"))}
                    await eventually(lambda: server.firing() >= down)
            finally:
                stop.set()
                await sending
