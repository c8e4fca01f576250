"""The containers' configuration run without containers: Kafka, two workers, devices, Prometheus.

Only hosts, ports and paths are replaced; `tests/ops/test_compose.py` shows that those agree.
"""

import asyncio
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import ClientSession

from ldpstream.agents.config import load_config
from tests.brokers import KafkaServer, skip_without_kafka
from tests.forked import Forked
from tests.ops.monitoring import Prometheus, prometheus, skip_without_prometheus
from tests.ops.queries import board_expressions, recorded
from tests.ops.test_compose import COMPOSE, CONFIG, DOCKER, OWN, SERVICES, property_lines
from tests.ports import free_ports
from tests.processes import Worker, eventually

pytestmark = pytest.mark.broker
_WORKERS = ("worker-1", "worker-2")


@pytest.fixture
def bootstrap(tmp_path: Path) -> Iterator[str]:
    """Kafka with the containers' settings, but for its addresses and its folder."""
    skip_without_kafka()
    shipped = property_lines("compose.properties")
    addressed = {name for name, value in shipped.items() if ":9" in value or "HOST:" in value}
    kept = {k: v for k, v in shipped.items() if k not in {*addressed, "log.dirs"}}
    assert addressed == {
        "controller.quorum.voters",
        "listeners",
        "advertised.listeners",
        "listener.security.protocol.map",
    }
    # Named in the map that is left out.
    kept.pop("inter.broker.listener.name")
    with KafkaServer.prepared(settings=kept) as server:
        server.start()
        try:
            yield server.bootstrap
        finally:
            server.stop()


def healthy(port: int, *, of: dict[str, Any] | None = None) -> bool:
    """Run the health check of a container, by default a worker's, against another port."""
    test = (of or COMPOSE["x-worker"])["healthcheck"]["test"]
    assert test[:2] == ["CMD", "python"]
    there, found = re.subn(r"127\.0\.0\.1:\d+/", f"127.0.0.1:{port}/", test[3])
    assert found == 1
    command = [sys.executable, test[2], there]
    return subprocess.run(command, capture_output=True).returncode == 0


def kafka_healthy(bootstrap: str) -> bool:
    """Run the health check of Kafka's container against another address."""
    command = SERVICES["kafka"]["healthcheck"]["test"]
    assert command[:3] == ["CMD", "bash", "-c"]
    text = command[3].replace("$$", "$")
    assert text.count("kafka/9092") == 1
    script = text.replace("kafka/9092", bootstrap.replace(":", "/"))
    return subprocess.run(["bash", "-c", script], capture_output=True).returncode == 0


def configured(folder: Path, bootstrap: str, token: Path, port: int) -> Path:
    """Return the containers' configuration for one worker, or the gateway, of this machine."""
    text = (DOCKER / "ldpstream.toml").read_text()
    for old, new in (
        ("kafka:9092", bootstrap),
        ("0.0.0.0:6066", f"127.0.0.1:{port}"),
        ("0.0.0.0:8080", f"127.0.0.1:{port}"),
        ('"/var/lib/ldpstream"', f'"{folder}"'),
        ("/run/secrets/read-token", str(token)),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    path = folder / f"{port}.toml"
    path.write_text(text)
    return path


def start(command: list[str], config: Path) -> Forked:
    return Forked([str(config) if word == CONFIG else word for word in command])


async def upload(gateway: Worker, config: Path) -> None:
    """Upload a report and an invalid one, over and over."""
    spec = load_config(config, environment={}).collections["checkins"].spec
    url = f"{gateway.url}/v1/collections/checkins/reports"
    async with ClientSession() as session:
        while True:
            frame = spec.frame([[0, 0]], times_ms=[time.time_ns() // 1_000_000_000 * 1000])
            for body, status in ((frame, 200), (b"junk", 400)):
                headers = {
                    "Content-Type": "application/vnd.ldpstream.frame",
                    "Idempotency-Key": secrets.token_hex(16),
                }
                async with session.post(url, data=body, headers=headers) as answer:
                    assert answer.status == status, await answer.text()


async def check_intake(server: Prometheus) -> None:
    """Wait until every query about gateways has an answer, and those of its rules."""
    asked = [text for board, text in board_expressions() if board.startswith("intake")]
    for expression in [*asked, *recorded("ldpstream-intake-recording")]:
        await eventually(partial(server.answers, expression), what=expression)


async def test_the_containers_configuration_counts_and_is_scraped(bootstrap: str, tmp_path: Path):
    skip_without_prometheus()
    await eventually(lambda: kafka_healthy(bootstrap))
    assert not kafka_healthy(f"127.0.0.1:{free_ports(1)[0]}")
    token = tmp_path / "read-token"
    token.write_text("0123456789abcdef" * 4)
    ports = dict(zip((*_WORKERS, "gateway"), free_ports(3), strict=True))
    configs = {n: configured(tmp_path, bootstrap, token, port) for n, port in ports.items()}
    targets = {
        job["job_name"]: [f"127.0.0.1:{ports[target.split(':')[0]]}" for target in named["targets"]]
        for job in yaml.safe_load((DOCKER / "prometheus" / "prometheus.yml").read_text())[
            "scrape_configs"
        ]
        for named in job["static_configs"]
    }
    assert len(targets["ldpstream"]) == 2
    with ExitStack() as stack:
        workers = [Worker(start(["worker", "-c", CONFIG], configs[name])) for name in _WORKERS]
        for worker in workers:
            stack.callback(worker.kill)
        for worker in workers:
            worker.wait_ready()
        for name in _WORKERS:
            await eventually(lambda name=name: healthy(ports[name]))
        gateway = Worker(start(SERVICES["gateway"]["command"], configs["gateway"]))
        stack.callback(gateway.kill)
        gateway.wait_ready()
        await eventually(lambda: healthy(ports["gateway"], of=SERVICES["gateway"]))
        # Uploads need no token, metrics that of readers.
        assert gateway.get("/v1/collections/checkins/spec")["collection"] == "checkins"
        assert gateway.status("/metrics") == 401
        devices = {
            name: Worker(start(SERVICES[name]["command"], configs["worker-1"]))
            for name in OWN
            if SERVICES[name].get("command", [""])[0] == "simulate"
        }
        for device in devices.values():
            stack.callback(device.kill)
        server = stack.enter_context(prometheus(tmp_path, targets=targets, token=token, holds=60))
        counted = 'sum by (collection) (ldpstream_reports_total{result="counted"})'
        await eventually(
            lambda: (
                {
                    sample["metric"]["collection"]: float(sample["value"][1]) > 1_000
                    for sample in server.query(counted)
                }
                == dict.fromkeys(devices, True)
            )
        )
        # A scrape that takes longer than a second counts as down until the next.
        await eventually(lambda: len(server.query('up{job="ldpstream"} == 1')) == 2)
        problems = "ldpstream_problems > 0"
        assert server.query(problems) == []
        uploading = asyncio.create_task(upload(gateway, configs["gateway"]))
        try:
            await check_intake(server)
        finally:
            uploading.cancel()
            with suppress(asyncio.CancelledError):
                await uploading
        for running in (*devices.values(), gateway, *workers):
            assert running.terminate() == 0
            assert running.errors() == ""
        assert not healthy(ports["worker-1"])
