"""Workers with an instance id: a restart moves nothing, and an id is used by one at a time."""

import asyncio
import re
import signal
from pathlib import Path

import pytest
from aiokafka.admin import AIOKafkaAdminClient

from tests.broker.conftest import on_kafka
from tests.broker.flow import Flow
from tests.broker.test_rolling import fleet
from tests.broker.trouble.test_workers import owned
from tests.brokers import Broker
from tests.lab import START_MS, Lab
from tests.processes import Worker, eventually
from tests.stream.cli import spawn

pytestmark = [
    pytest.mark.broker,
    # The embedded broker forgets members that go without leaving.
    on_kafka,
]


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
