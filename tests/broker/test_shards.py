"""Shards: any worker answers for all collections, and two become four while reports flow."""

import asyncio
import json
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from ldpstream.agents.config import Shard
from tests.broker.conftest import on_kafka
from tests.broker.flow import Flow
from tests.broker.test_rolling import fleet
from tests.brokers import Broker
from tests.configuring import collection
from tests.lab import Lab
from tests.ports import free_ports
from tests.processes import Worker, eventually
from tests.stream.cli import spawn

pytestmark = [pytest.mark.broker, on_kafka]

NAMES = ("rides", "modes", "trips", "city")
"""In shards 1, 2, 3 and 4 of 4, so in 1, 2, 1 and 2 of 2."""


def counted(worker: Worker) -> dict[str, int]:
    """Return how many reports every collection has counted, as a worker says; 0 at first.

    A worker is ready before it knows where the others answer.
    """
    paths = {name: f"/api/collections/{name}/status" for name in NAMES}
    try:
        return {name: worker.get(path)["counted"] for name, path in paths.items()}
    except urllib.error.HTTPError as error:
        with error:
            if error.code != 503:
                raise
        return dict.fromkeys(NAMES, 0)


def refusal(worker: Worker, path: str) -> tuple[int, str]:
    """Return the status and the reason of a refused request."""
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(worker.url + path)
    with refused.value as error:
        return error.code, json.loads(error.read())["error"]


async def test_two_shards_become_four_while_reports_flow(running: Broker, tmp_path: Path) -> None:
    body = collection(partitions=2, window='grace = "0s", idle = "off"', extra="")
    lab = Lab(running, tmp_path, collections=dict.fromkeys(NAMES, body))
    labs = {name: lab.of(name) for name in NAMES}

    async def start(shard: str) -> Worker:
        (port,) = free_ports(1)
        address = f"127.0.0.1:{port}"
        own = lab.changed(f"{port}.toml", ("127.0.0.1:0", address))
        environment = {"LDPSTREAM_SHARD": shard, "LDPSTREAM_ADVERTISE": f"http://{address}"}
        worker = own.start_worker(environment=environment)
        workers.append(worker)
        await asyncio.to_thread(worker.wait_ready)
        return worker

    with fleet() as workers:
        old = await asyncio.gather(start("1/2"), start("2/2"))
        async with lab.producer() as producer:
            flow = Flow(producer, [*labs.values()])
            async with flow.run():
                await eventually(lambda: all(min(counted(one).values()) > 0 for one in old))
                # Two groups own the same partitions, until the old one goes.
                new = await asyncio.gather(*(start(f"{number}/4") for number in range(1, 5)))
                await asyncio.sleep(1)
                for worker in old:
                    assert await asyncio.to_thread(worker.terminate) == 0
                await asyncio.sleep(1)
        for one in labs.values():
            await one.close(flow.end_ms)
            await one.check_exact()
        sent = {name: one.ledger.n for name, one in labs.items()}
        # No collection falls to this one's shard.
        for worker in (*new, await start("2/8")):
            await eventually(lambda worker=worker: counted(worker) == sent)
            listed = worker.get("/api/collections")["collections"]
            assert [(one["name"], one["ready"]) for one in listed] == [(n, True) for n in NAMES]
            # It runs, and holds, the one collection of its shard.
            assert worker.metrics("ldpstream_ready") == (worker in new)
        done = await asyncio.to_thread(spawn, "reset", "-c", str(lab.file), "--yes", "rides")
        group = Shard(1, 4).group(lab.config.worker.id)
        assert f"the group {group} has 1 running" in done.stderr.decode()
        # A worker that leaves says so; what is asked about its shard is refused by name.
        assert new[3].terminate() == 0
        problem = (503, "city: shard 4/4 has no worker that answers")
        assert refusal(new[0], "/api/collections/city/status") == problem
        await eventually(lambda: not new[0].get("/api/collections")["collections"][3]["ready"])
        assert new[0].get("/readyz") == {"ready": True, "reasons": [problem[1]], "waits": []}
        for worker in new[:3]:
            assert worker.terminate() == 0
            assert worker.errors() == ""
