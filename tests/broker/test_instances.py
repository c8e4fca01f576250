"""Workers with an instance id, which a restart leaves where they are, and workers of shards."""

import asyncio
import json
import re
import signal
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from aiokafka.admin import AIOKafkaAdminClient

from ldpstream.agents.config import Shard
from tests.broker.conftest import on_kafka
from tests.broker.flow import Flow
from tests.broker.test_rolling import fleet
from tests.broker.trouble.test_groups import owned
from tests.brokers import Broker
from tests.configuring import collection
from tests.lab import START_MS, Lab
from tests.ports import free_ports
from tests.processes import Worker, eventually
from tests.stream.cli import spawn

pytestmark = [pytest.mark.broker, on_kafka]


def static(running: Broker, folder: Path) -> Lab:
    """Return a lab whose workers have the default session timeout."""
    return Lab(running, folder).changed("static.toml", ("session_timeout_ms = 6000\n", ""))


async def start(workers: list[Worker], lab: Lab, instance: str) -> Worker:
    with (lab.file.parent / f"{len(workers)}.log").open("wb") as said:
        worker = lab.start_worker(
            environment={"LDPSTREAM_INSTANCE": instance}, arguments=["--verbose"], stderr=said
        )
    workers.append(worker)
    await asyncio.to_thread(worker.wait_ready)
    return worker


def generations(lab: Lab, number: int) -> list[str]:
    """Return the generations of the group that the worker of this number has joined, in turn."""
    said = (lab.file.parent / f"{number}.log").read_text()
    return re.findall(r"Joined group .* \(generation (\d+)\)", said)


async def members(admin: AIOKafkaAdminClient, group: str) -> set[tuple[str, bytes]]:
    """Return the members of a group, and what each is assigned."""
    (response,) = await admin.describe_consumer_groups([group])
    (found,) = response.to_object()["groups"]
    return {(one["member_id"], one["member_assignment"]) for one in found["members"]}


async def restart(
    workers: list[Worker], lab: Lab, number: int, instance: str, *, stays: int
) -> None:
    """Restart the worker of a number; neither it nor the one that stays sees a rebalance."""
    before, theirs = generations(lab, stays), [owned(workers[n]) for n in (number, stays)]
    async with lab.admin() as admin:
        group = await members(admin, lab.config.group)
        assert await asyncio.to_thread(workers[number].terminate) == 0
        await asyncio.sleep(1)
        back = await start(workers, lab, instance)
        await eventually(lambda: owned(back) == theirs[0])
        assert owned(workers[stays]) == theirs[1]
        assert generations(lab, stays) == before
        assert generations(lab, len(workers) - 1) == before[-1:]
        assert len(group & await members(admin, lab.config.group)) == 1


async def test_a_restart_moves_nothing(running: Broker, tmp_path: Path) -> None:
    lab = static(running, tmp_path)
    with fleet() as workers:
        one, two = await asyncio.gather(start(workers, lab, "one"), start(workers, lab, "two"))
        await eventually(lambda: len(owned(one)) == len(owned(two)) == 2)
        async with lab.producer() as producer:
            flow = Flow(producer, [lab])
            async with flow.run():
                # The leader of the group, and a follower.
                await restart(workers, lab, 0, "one", stays=1)
                await restart(workers, lab, 1, "two", stays=2)
            await lab.close(flow.end_ms)
        await lab.check_exact()
        for worker in workers[2:]:
            assert worker.terminate() == 0


async def test_the_older_of_two_workers_with_one_id_stops_and_says_why(
    running: Broker, tmp_path: Path
) -> None:
    lab = static(running, tmp_path)
    with fleet() as workers:
        first = await start(workers, lab, "one")
        second = await start(workers, lab, "one")
        assert await asyncio.to_thread(first.wait) == 1
        said = f"another process has joined the group {lab.config.group} as the instance one:"
        assert said in (lab.file.parent / "0.log").read_text()
        async with lab.producer() as producer:
            value = lab.frame(20, first_ms=START_MS, last_ms=START_MS)
            await producer.send_and_wait(lab.collection.topics.source, value, partition=1)
        await lab.close(START_MS + 20_000)
        await lab.check_exact()
        assert second.terminate() == 0


async def test_a_worker_whose_session_has_ended_takes_its_place_again(
    running: Broker, tmp_path: Path
) -> None:
    lab = Lab(running, tmp_path)
    with fleet() as workers:
        await start(workers, lab, "one")
        two = await start(workers, lab, "two")
        workers[0].process.send_signal(signal.SIGSTOP)
        await eventually(lambda: len(owned(two)) == 4)
        workers[0].process.send_signal(signal.SIGCONT)
        await eventually(lambda: len(owned(workers[0])) == len(owned(two)) == 2)
        for worker in workers:
            assert worker.terminate() == 0


async def test_a_reset_waits_for_stopped_workers_with_an_instance(
    running: Broker, tmp_path: Path
) -> None:
    lab = static(running, tmp_path)
    with fleet() as workers:
        await start(workers, lab, "one")
        assert await asyncio.to_thread(workers[0].terminate) == 0
        # The command's own environment says nothing of instances.
        done = await asyncio.to_thread(spawn, "reset", "-c", str(lab.file), "--yes", "trips")
        assert done.returncode == 0, done.stderr
        assert b"has 1 running: waiting up to 31 s" in done.stderr


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
