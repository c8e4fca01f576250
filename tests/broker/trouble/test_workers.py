"""Several workers share the partitions and give the same answers; idle partitions close."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.broker.conftest import on_kafka, on_one_broker
from tests.brokers import Broker
from tests.configuring import collection
from tests.forked import Forked
from tests.lab import START_MS, Lab
from tests.ledger import WINDOW_MS
from tests.processes import Worker, eventually

pytestmark = pytest.mark.broker


def owned(worker: Worker) -> set[int]:
    """Return the partitions that a worker says it owns."""
    partitions = worker.get("/api/collections/trips/status")["partitions"]
    return {partition["partition"] for partition in partitions if partition["owned"]}


@on_kafka
async def test_two_workers_give_the_same_answers(lab: Lab) -> None:
    source = lab.collection.topics.source
    with lab.worker() as one, lab.worker() as two:
        await eventually(lambda: len(owned(one)) == len(owned(two)) == 2)
        assert owned(one) | owned(two) == {0, 1, 2, 3}
        async with lab.producer() as producer:
            for partition in range(4):
                value = lab.frame(100, first_ms=START_MS, last_ms=START_MS + WINDOW_MS - 1)
                await producer.send_and_wait(source, value, partition=partition)
            await lab.close(START_MS + WINDOW_MS)
            await lab.check_exact()
            path = "/api/collections/trips/windows"
            await eventually(lambda: one.get(path)["windows"] == two.get(path)["windows"] != [])
            window = one.get(path)["windows"][0]
            span = window["window"]
            query = f"start={span['start']}&end={span['end']}&top=all"
            answers = [w.get(f"/api/collections/trips/estimate?{query}") for w in (one, two)]
            assert answers[0] == answers[1]
            assert answers[0]["n"] == 400

            # The one that goes hands its partitions over; nothing is lost on the way.
            assert one.terminate() == 0
            await eventually(lambda: owned(two) == {0, 1, 2, 3})
            at_ms = START_MS + WINDOW_MS
            for partition in range(4):
                value = lab.frame(100, first_ms=at_ms, last_ms=at_ms)
                await producer.send_and_wait(source, value, partition=partition)
        await lab.close(at_ms + WINDOW_MS)
        await lab.check_exact()
        assert two.terminate() == 0


_TOLD_NOTHING = """
from aiokafka.client import AIOKafkaClient
from ldpstream.agents.cli.main import main

asked = AIOKafkaClient._metadata_update

async def asks(client, cluster, topics):
    of_the_group = client._client_id.startswith("faust")
    return False if of_the_group else await asked(client, cluster, topics)

AIOKafkaClient._metadata_update = asks
main()
"""


@on_kafka  # the embedded broker tells a client of all topics as it connects
def test_a_leader_assigns_partitions_of_topics_missing_from_its_metadata(lab: Lab) -> None:
    """aiokafka assigns after it has asked about topics, answered or not."""
    worker = Worker(Forked(["worker", "-c", str(lab.file)], program=_TOLD_NOTHING))
    try:
        worker.wait_ready()
        assert owned(worker) == {0, 1, 2, 3}
        assert worker.terminate() == 0
    finally:
        worker.kill()


@on_one_broker
async def test_workers_own_as_many_of_each_collection_and_of_all(
    running: Broker, tmp_path: Path
) -> None:
    alone = collection(partitions=1, window='idle = "off"', extra="")
    four = collection(partitions=4, window='idle = "off"', extra="")
    names = ["trips", "walks", "rides"]
    lab = Lab(running, tmp_path, collections={n: four if n == "trips" else alone for n in names})

    def owns(workers: list[Worker]) -> list[list[int]]:
        """Return how many partitions of `trips` workers own, and of all, each in order."""
        every = [
            [
                sum(p["owned"] for p in worker.get(f"/api/collections/{n}/status")["partitions"])
                for n in names
            ]
            for worker in workers
        ]
        return [sorted(own[0] for own in every), sorted(map(sum, every))]

    with ExitStack() as stack:
        workers = [stack.enter_context(lab.worker()) for _ in range(3)]
        await eventually(lambda: owns(workers) == [[1, 1, 2], [2, 2, 2]])
        workers.pop().kill()
        await eventually(lambda: owns(workers) == [[2, 2], [3, 3]])


@on_kafka  # the embedded broker forgets members whose connections end
async def test_a_worker_says_that_it_waits_for_one_that_was_killed(
    running: Broker, tmp_path: Path
) -> None:
    long = ("session_timeout_ms = 6000", "session_timeout_ms = 20000")
    lab = Lab(running, tmp_path).changed("long.toml", long)
    said = []
    for number in range(2):
        log = tmp_path / f"{number}.log"
        with log.open("wb") as stderr:
            worker = lab.start_worker(stderr=stderr)
        try:
            worker.wait_ready()
        finally:
            worker.kill()
        said.append(log.read_text().count("up to 20 s (session_timeout_ms)"))
    assert said == [0, 1]
