"""One of three Kafka nodes is killed in the middle of a window and comes back: counts stay exact.

The long form is `python -m benchmarks.resilience.faults --broker cluster`.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.flow import Flow
from tests.brokers import skip_without_kafka
from tests.crash.cluster import NODES, Cluster, kafka_cluster
from tests.lab import Lab
from tests.stream.cli import invoke

pytestmark = [pytest.mark.broker, pytest.mark.crash]
DOWN_SECONDS = 5.0
"""Longer than the session of a node that has gone: its partitions get other leaders."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    skip_without_kafka()
    with kafka_cluster() as running:
        yield running


async def test_a_node_is_killed_and_comes_back(cluster: Cluster, tmp_path: Path) -> None:
    lab = Lab(cluster.broker, tmp_path)
    with lab.worker() as worker:
        async with lab.producer() as producer:
            flow = Flow(producer, [lab], garbage=True)
            async with flow.run():
                await asyncio.sleep(2)
                await asyncio.to_thread(cluster.nodes[0].stop)
                await asyncio.sleep(DOWN_SECONDS)
                await asyncio.to_thread(cluster.nodes[0].start)
                await asyncio.sleep(1)
        await lab.close(flow.end_ms)
        await lab.check_exact()
        assert worker.terminate() == 0
    heads = await lab.heads()
    assert sum(head.n for head in heads) == lab.ledger.n
    assert sum(head.late + head.lost for head in heads) == 0
    async with lab.admin() as admin:
        described = await admin.describe_topics(list(lab.collection.topics.names()))
    replicas = {len(p["replicas"]) for topic in described for p in topic["partitions"]}
    assert replicas == {NODES}


def test_check_counts_the_nodes(cluster: Cluster, tmp_path: Path) -> None:
    lab = Lab(cluster.broker, tmp_path)
    result = invoke("check", "-c", str(lab.file))
    assert (result.exit_code, result.stderr) == (0, "")
    assert f"{cluster.broker.bootstrap}: {NODES} brokers\n" in result.stdout
