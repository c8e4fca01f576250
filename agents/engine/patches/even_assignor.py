"""Spread the partitions of a group's topics evenly over its members.

Faust assigns topics with equal numbers of partitions together, as joins of tables require: of three
workers, one would own all of six collections with one partition.

Seen in Faust 0.15. A worker gives it to its app as `PartitionAssignor`.
"""

from typing import cast

from aiokafka.cluster import ClusterMetadata
from faust.assignor.client_assignment import ClientAssignment
from faust.assignor.partition_assignor import (
    MemberAssignmentMapping,
    MemberMetadataMapping,
    PartitionAssignor,
)

from ldpstream.agents.broker.groups import assign
from ldpstream.agents.engine.patches.worker_app import WorkerApp


class EvenAssignor(PartitionAssignor):
    """Spreads the partitions of each topic, and of all, for an app without tables."""

    def _perform_assignment(
        self, cluster: ClusterMetadata, member_metadata: MemberMetadataMapping
    ) -> MemberAssignmentMapping:
        clients = {
            m: self._get_client_metadata(metadata) for m, metadata in member_metadata.items()
        }
        self._update_member_urls(clients)
        subscribed = {m: metadata.subscription for m, metadata in member_metadata.items()}
        topics = {topic for names in subscribed.values() for topic in names}
        owned = {m: metadata.assignment.active_tps for m, metadata in clients.items()}
        least = cast("WorkerApp", self.app).partitions
        partitions = {t: max(least[t], len(cluster.partitions_for_topic(t) or ())) for t in topics}
        assignments = {}
        for member, assigned in assign(owned, subscribed, partitions).items():
            actives: dict[str, list[int]] = {}
            for topic, partition in sorted(assigned):
                actives.setdefault(topic, []).append(partition)
            assignments[member] = ClientAssignment(actives=actives, standbys={})
        # Without tables, nothing asks which member has a key, or which topics go together.
        return self._protocol_assignments(assignments, {}, {}, {})
