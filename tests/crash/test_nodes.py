"""One of three Kafka nodes is killed in the middle of a window and comes back: counts stay exact.

The long form is `python -m tests.crash.run --broker cluster`.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.brokers import skip_without_kafka
from tests.crash.cluster import NODES, Cluster, kafka_cluster
from tests.crash.nodes import run_with_nodes_killed
from tests.lab import Lab
from tests.stream.cli import invoke

pytestmark = [pytest.mark.broker, pytest.mark.crash]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    skip_without_kafka()
    with kafka_cluster() as running:
        yield running


async def test_a_node_is_killed_and_comes_back(cluster: Cluster, tmp_path: Path) -> None:
    lab = Lab(cluster.broker, tmp_path)
    await run_with_nodes_killed(lab, cluster, times=1, reports=20_000, seed=1)
    async with lab.admin() as admin:
        described = await admin.describe_topics(list(lab.collection.topics.names()))
    replicas = {len(p["replicas"]) for topic in described for p in topic["partitions"]}
    assert replicas == {NODES}


def test_check_counts_the_nodes(cluster: Cluster, tmp_path: Path) -> None:
    lab = Lab(cluster.broker, tmp_path)
    result = invoke("check", "-c", str(lab.file))
    assert (result.exit_code, result.stderr) == (0, "")
    assert f"{cluster.broker.bootstrap}: {NODES} brokers\n" in result.stdout
