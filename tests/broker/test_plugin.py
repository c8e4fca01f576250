"""The pipeline inside a user's own Faust app: the app goes on working, and counts are exact."""

import asyncio
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.broker.conftest import on_kafka, on_one_broker
from tests.lab import START_MS, Lab
from tests.ledger import WINDOW_MS
from tests.ports import free_ports
from tests.processes import PATIENCE_SECONDS, Worker, eventually

pytestmark = pytest.mark.broker


@on_one_broker
async def test_attached_to_a_users_own_app(lab: Lab, tmp_path: Path) -> None:
    orders = f"orders-{lab.collection.topics.source}"
    (port,) = free_ports(1)
    # A leader that does not know the topic yet leaves its partitions to nobody at first.
    unknown = {"UNKNOWN_TOPIC": lab.collection.topics.source}
    worker = start_app(lab, orders, tmp_path / "data", port, unknown)
    try:
        worker.wait_ready()
        await eventually(lambda: worker.metrics("ldpstream_owned") == 4)
        async with lab.producer() as producer, asyncio.timeout(PATIENCE_SECONDS):
            # Faust alone may drop what arrives while it starts: begin once the app counts.
            while not orders_of(port):
                await producer.send_and_wait(orders, b'"water"', partition=0)
                await asyncio.sleep(0.2)
            for number in range(60):
                value = lab.frame(10, first_ms=START_MS, last_ms=START_MS + WINDOW_MS - 1)
                await producer.send(lab.collection.topics.source, value, partition=number % 4)
                order = json.dumps(["tea", "milk", "tea"][number % 3]).encode()
                await producer.send(orders, order, partition=0)
            await producer.flush()
        await lab.close(START_MS + WINDOW_MS)
        await lab.check_exact()
        assert worker.get("/api/collections/trips/windows")["windows"][0]["n"] == 600
        await eventually(lambda: orders_of(port).items() >= {"tea": 40, "milk": 20}.items())
        assert worker.terminate() == 0
    finally:
        worker.kill()


@on_kafka
async def test_an_app_whose_own_agent_has_crashed_counts_on_and_ends_when_told(
    lab: Lab, tmp_path: Path
) -> None:
    """Faust starts the agent again; the crash is the app's own, and ends nothing of ours."""
    orders = f"orders-{lab.collection.topics.source}"
    (port,) = free_ports(1)
    worker = start_app(lab, orders, tmp_path / "data", port)
    try:
        worker.wait_ready()
        async with lab.producer() as producer, asyncio.timeout(PATIENCE_SECONDS):
            while not orders_of(port):
                await producer.send_and_wait(orders, b'"water"', partition=0)
                await asyncio.sleep(0.2)
            await producer.send_and_wait(orders, b'"spoilt"', partition=0)
            while "milk" not in orders_of(port):
                await producer.send_and_wait(orders, b'"milk"', partition=0)
                await asyncio.sleep(0.2)
            value = lab.frame(30, first_ms=START_MS, last_ms=START_MS)
            await producer.send_and_wait(lab.collection.topics.source, value, partition=2)
        await lab.close(START_MS + WINDOW_MS)
        await lab.check_exact()
        assert worker.terminate() == 0
        assert "ValueError: spoilt" in worker.errors()
    finally:
        worker.kill()


@on_kafka  # the only one with transactions
async def test_an_own_app_counts_no_aborted_transactions(lab: Lab, tmp_path: Path) -> None:
    source = lab.collection.topics.source
    (port,) = free_ports(1)
    worker = start_app(lab, f"orders-{source}", tmp_path / "data", port)
    try:
        worker.wait_ready()
        aborted = lab.collection.spec.frame([1] * 10, times_ms=[START_MS] * 10)
        async with lab.transactional_producer() as producer:
            for number in range(40):
                await producer.begin_transaction()
                if number % 2:
                    await producer.send(source, aborted, partition=number % 4)
                    # Longer than the app needs to read it.
                    await asyncio.sleep(0.1)
                    await producer.abort_transaction()
                else:
                    value = lab.frame(10, first_ms=START_MS, last_ms=START_MS)
                    await producer.send(source, value, partition=number % 4)
                    await producer.send(source, aborted, partition=3)
                    await producer.abort_transaction()
                    await producer.begin_transaction()
                    await producer.send(source, value, partition=number % 4)
                    await producer.commit_transaction()
        await lab.close(START_MS + WINDOW_MS)
        await lab.check_exact()
        assert worker.terminate() == 0
    finally:
        worker.kill()


def start_app(
    lab: Lab,
    orders: str,
    data: Path,
    port: int,
    environment: Mapping[str, str] | None = None,
) -> Worker:
    command = [sys.executable, "-m", "tests.broker.own_app", str(lab.file), orders, str(data)]
    command += ["worker", "--web-port", str(port), "--loglevel", "error"]
    root = Path(__file__).parent.parent.parent
    return Worker(
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=root,
            env={**os.environ, **(environment or {})},
        )
    )


def orders_of(port: int) -> dict[str, int]:
    """Return what the user's own page shows, nothing until Faust serves it."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/orders/", timeout=5) as answer:
            counts: dict[str, int] = json.loads(answer.read())
    except OSError:
        return {}
    return counts
