"""All attacks at once, at full rate, during honest load. `python -m benchmarks.siege`.

On Apache Kafka: a worker of three collections and a gateway; devices that send over Kafka and over
the gateway; honest readers who ask worker and gateway for their health and for an estimate, each
time over a new connection. Meanwhile one process makes every attack of
`benchmarks.siege.attackers` as fast as it can. At the end every report is accounted for.

    python -m benchmarks.siege --seconds 600
    python -m benchmarks.siege --seconds 60 --checkout DIR     # the commands of another checkout

Exit status 1 if a report is lost or counted twice, or an honest request was not answered.
"""

import argparse
import asyncio
import json
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any

import numpy as np
from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector
from aiokafka import AIOKafkaProducer
from rich.console import Console
from rich.table import Table
from tests.attack.http import add_gateway
from tests.attack.stand import Stand, resident_bytes
from tests.brokers import KINDS, broker
from tests.processes import Worker

from ldpstream.agents.config import CollectionConfig, load_config
from ldpstream.agents.engine.metrics import RESULTS

HERE = Path(__file__).resolve().parents[2]
_COLLECTION = """mechanism = "block-hadamard"
epsilon = 1.0
domain = {{ size = {size} }}
partitions = {partitions}
precision = "1ms"
minimum = 1
window = {{ size = "10s", grace = "5s", future = "5s", idle = "2s" }}
publish = {{ every = "1s", top = 10 }}"""
_ASKED_SECONDS = 0.2
_SAMPLED_SECONDS = 10.0
_FRAME = 100


@dataclass
class Honest:
    """What honest devices sent, and how long honest requests took, by kind."""

    ending: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when everybody should finish: an upload in progress is repeated until it is accepted."""
    sent: int = 0
    uploaded: int = 0
    seconds: dict[str, list[float]] = field(default_factory=dict)
    failed: dict[str, list[str]] = field(default_factory=dict)
    memory: list[tuple[float, int, int]] = field(default_factory=list)


async def _produce(config: CollectionConfig, bootstrap: str, honest: Honest) -> None:
    async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
        draw = np.random.default_rng(1)
        while not honest.ending.is_set():
            frame = config.spec.frame(draw.integers(0, 12, _FRAME).tolist())
            await producer.send_and_wait(config.topics.source, frame)
            honest.sent += _FRAME
            await asyncio.sleep(0.02)


async def _upload(config: CollectionConfig, gateway: str, honest: Honest) -> None:
    """Upload one report at a time, and repeat each until it is accepted."""
    url = f"{gateway}/v1/collections/{config.name}/reports"
    while not honest.ending.is_set():
        frame = config.spec.frame([3])
        headers = {
            "Idempotency-Key": secrets.token_hex(16),
            "Content-Type": "application/vnd.ldpstream.frame",
        }
        accepted = False
        while not accepted:
            accepted = await _ask(honest, "upload", "POST", url, data=frame, headers=headers)
            await asyncio.sleep(_ASKED_SECONDS)
        honest.uploaded += 1


async def _ask(honest: Honest, what: str, method: str, url: str, **more: Any) -> bool:
    """Ask once over a new connection; note how long the answer took, or the failure."""
    began = time.monotonic()
    problem = ""
    try:
        async with (
            ClientSession(
                connector=TCPConnector(force_close=True), timeout=ClientTimeout(total=30)
            ) as session,
            session.request(method, url, **more) as answer,
        ):
            await answer.read()
            if answer.status != 200:
                problem = str(answer.status)
    except (ClientError, OSError, TimeoutError) as error:
        problem = type(error).__name__
    honest.seconds.setdefault(what, []).append(time.monotonic() - began)
    if problem:
        honest.failed.setdefault(what, []).append(problem)
    return not problem


async def _read(worker: str, gateway: str, name: str, honest: Honest) -> None:
    asked = {
        "worker health": f"{worker}/healthz",
        "worker metrics": f"{worker}/metrics",
        "estimate": f"{worker}/api/collections/{name}/estimate?top=3",
        "gateway health": f"{gateway}/healthz",
    }
    while not honest.ending.is_set():
        for what, url in asked.items():
            await _ask(honest, what, "GET", url)
        await asyncio.sleep(_ASKED_SECONDS)


async def _sample(worker: Worker, gateway: Worker, honest: Honest) -> None:
    began = time.monotonic()
    while not honest.ending.is_set() and worker.process.poll() is gateway.process.poll() is None:
        own, other = (resident_bytes(one.process.pid, most=False) for one in (worker, gateway))
        honest.memory.append((time.monotonic() - began, own, other))
        await asyncio.sleep(_SAMPLED_SECONDS)


async def _until_counted(
    worker: Worker, name: str, wanted: int, *, seconds: float
) -> dict[str, float]:
    """Wait until this many reports are accounted for; return them by result when time is over."""
    counted: dict[str, float] = {}
    deadline = time.monotonic() + seconds
    while sum(counted.values()) < wanted and time.monotonic() < deadline:
        await asyncio.sleep(0.2)
        with suppress(OSError, HTTPException):
            counted = await asyncio.to_thread(_accounted, worker, name)
    return counted


def _accounted(worker: Worker, name: str) -> dict[str, float]:
    what = "ldpstream_reports_total"
    return {one: worker.metrics(what, collection=name, result=one) for one in RESULTS}


async def _attacked(
    target: Mapping[str, object] | None, tasks: Sequence[asyncio.Task[None]], seconds: float
) -> dict[str, Any]:
    """Attack for some seconds, or until a task ends by itself; return the attacks made."""
    if target is None:
        await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return {"times": {}, "garbage": 0}
    attackers = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.siege.attackers"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=HERE,
    )
    try:
        assert attackers.stdin is not None
        attackers.stdin.write(json.dumps(target).encode() + b"\n")
        await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        attackers.stdin.close()
        said, _ = await asyncio.wait_for(attackers.communicate(), 60)
    finally:
        if attackers.returncode is None:
            attackers.kill()
    found: dict[str, Any] = json.loads(said)
    return found


async def _siege(
    stand: Stand, seconds: float, *, attacked: bool
) -> tuple[Honest, dict[str, Any], dict[str, float]]:
    honest = Honest()
    file = stand.configure(
        {
            "trips": _COLLECTION.format(size=12, partitions=4),
            "large": _COLLECTION.format(size=1_000_000, partitions=1),
            "bombed": _COLLECTION.format(size=12, partitions=1),
        }
    )
    add_gateway(file)
    config = load_config(file, environment={})
    trips = config.collections["trips"]
    with (
        stand.serving("worker", "-c", str(file)) as worker,
        stand.serving("gateway", "-c", str(file)) as gateway,
    ):
        bootstrap = stand.broker.bootstrap
        for name in ("large", "trips"):
            await _one_frame(config.collections[name], bootstrap)
        honest.sent += 3
        await _until_counted(worker, "trips", 3, seconds=60)
        target = {
            "worker": worker.url.removeprefix("http://"),
            "gateway": gateway.url.removeprefix("http://"),
            "bootstrap": bootstrap,
            "source": trips.topics.source,
            "controls": [trips.topics.control, config.collections["large"].topics.control],
            "bombed": config.collections["bombed"].topics.source,
            "collection": "trips",
            "costly": "large",
        }
        tasks = [
            asyncio.create_task(one)
            for one in (
                _produce(trips, bootstrap, honest),
                _upload(trips, gateway.url, honest),
                _read(worker.url, gateway.url, "trips", honest),
                _sample(worker, gateway, honest),
            )
        ]
        did = await _attacked(target if attacked else None, tasks, seconds)
        honest.ending.set()
        await asyncio.gather(*tasks)
        wanted = honest.sent + honest.uploaded + did["garbage"]
        counted = await _until_counted(worker, "trips", wanted, seconds=60)
    return honest, did, counted


async def _one_frame(config: CollectionConfig, bootstrap: str) -> None:
    async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
        await producer.send_and_wait(config.topics.source, config.spec.frame([1, 2, 3]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--checkout", type=Path, default=HERE, help="its commands are attacked")
    parser.add_argument("--broker", choices=KINDS, default="kafka")
    parser.add_argument("--peace", action="store_true", help="only the honest load")
    arguments = parser.parse_args()
    with broker(arguments.broker) as running, tempfile.TemporaryDirectory() as folder:
        stand = Stand(checkout=arguments.checkout, broker=running, folder=Path(folder))
        honest, did, counted = asyncio.run(
            _siege(stand, arguments.seconds, attacked=not arguments.peace)
        )
    console = Console(width=110)
    console.print(_attacks(did), _requests(honest), _memory(honest))
    garbage = int(did["garbage"])
    sent = honest.sent + honest.uploaded
    accounted = counted.get("counted", 0) + counted.get("late", 0)
    console.print(
        f"reports: sent {sent:,}, counted {counted.get('counted', 0):,.0f}, late "
        f"{counted.get('late', 0):,.0f}; garbage sent {garbage:,}, rejected "
        f"{counted.get('rejected', 0):,.0f}"
    )
    exact = accounted == sent and counted.get("rejected", 0) == garbage
    answered = not any(honest.failed.values())
    console.print(
        f"{'exact' if exact else 'NOT EXACT'}; {'all' if answered else 'NOT ALL'} answered"
    )
    return int(not (exact and answered))


def _attacks(did: dict[str, Any]) -> Table:
    table = Table("attack", "times")
    for name, count in sorted(did["times"].items()):
        table.add_row(name, f"{count:,}")
    return table


def _requests(honest: Honest) -> Table:
    table = Table("honest request", "asked", "median s", "p99 s", "worst s", "not answered")
    for what, seconds in honest.seconds.items():
        failed = honest.failed.get(what, [])
        kinds = ", ".join(sorted(set(failed)))
        quantiles = np.quantile(seconds, [0.5, 0.99, 1.0])
        row = [f"{value:.3f}" for value in quantiles]
        table.add_row(what, f"{len(seconds):,}", *row, f"{len(failed):,} {kinds}")
    return table


def _memory(honest: Honest) -> Table:
    table = Table("after s", "worker MB", "gateway MB")
    step = max(1, len(honest.memory) // 12)
    for seconds, worker, gateway in honest.memory[::step]:
        table.add_row(f"{seconds:.0f}", f"{worker / 1e6:.0f}", f"{gateway / 1e6:.0f}")
    return table


if __name__ == "__main__":
    sys.exit(main())
