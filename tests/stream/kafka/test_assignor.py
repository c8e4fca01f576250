"""The assignor of a worker's group: which partitions it assigns."""

from collections import Counter

import pytest
from aiokafka.cluster import ClusterMetadata
from aiokafka.protocol.metadata import MetadataResponse_v0

from ldpstream.agents.engine.patches.even_assignor import EvenAssignor
from ldpstream.agents.engine.patches.worker_app import WorkerApp


def _assigned(app: WorkerApp, cluster: ClusterMetadata) -> dict[str, list[int]]:
    assignor = EvenAssignor(app)
    found = assignor.assign(cluster, {"one": assignor.metadata({"city.reports"})})
    return dict(found["one"].assignment)


def _of(partitions: int) -> ClusterMetadata:
    cluster = ClusterMetadata()
    known = [(0, number, 1, [1], [1]) for number in range(partitions)]
    cluster.update_metadata(
        MetadataResponse_v0([(1, "127.0.0.1", 9092)], [(0, "city.reports", known)])
    )
    return cluster


@pytest.mark.parametrize(
    ("cluster", "many"),
    [(ClusterMetadata(), 4), (_of(4), 4), (_of(8), 8)],
    ids=["unknown", "known", "added"],
)
def test_a_leader_without_metadata_assigns_the_configured_partitions(
    cluster: ClusterMetadata, many: int
) -> None:
    """Metadata may fail to load while the group goes on; nobody would own anything then."""
    app = WorkerApp("group", broker="kafka://127.0.0.1:9092", store="memory://")
    app.partitions = Counter({"city.reports": 4})
    assert _assigned(app, cluster) == {"city.reports": [*range(many)]}
