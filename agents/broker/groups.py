"""The consumer groups of workers: who is in them, and who gets which partitions.

Partitions are assigned evenly and with as few moves as possible (`assign`). Every topic is spread
evenly, and so are all topics together: three workers of one collection with four partitions own 2,
1 and 1; with six collections of one partition they own two each. Only what evenness requires moves.
"""

import asyncio
import struct
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata
from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    GroupCoordinatorNotAvailableError,
    KafkaError,
)
from aiokafka.protocol.admin import DescribeAclsRequest

from ldpstream.agents.broker.patches.admin_requests import send_request
from ldpstream.agents.config.worker import is_group

_DELAYS_SECONDS: Final = (0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)

FAUST_PROTOCOL: Final = "consumer", "faust"
"""Type and name of the protocol by which Faust's members share partitions."""
Partition = tuple[str, int]

_COMMIT_MARK: Final = "ldpstream "
_GROUPS_AT_ONCE: Final = 32
_ANY, _ACLS_OF_GROUP = 1, 3
"""Numbers of Kafka's protocol."""


@dataclass(frozen=True)
class GroupState:
    """Who is in a group; a protocol is empty where there is none, or the broker does not say."""

    members: tuple[bytes, ...] = ()
    """What each member said of itself when it joined, in Kafka's consumer protocol."""
    protocol_type: str = ""
    """What kind of software uses it: `consumer`, or `connect` and others."""
    protocol: str = ""
    """How the members share the partitions."""
    static: bool = False
    """Whether a member has an instance, and so stays when it stops."""


async def worker_groups(admin: AIOKafkaAdminClient, worker_id: str) -> list[str]:
    """Return the groups of an id's workers, of all present and past shards.

    The id's own comes first, and is alone if the broker does not list groups.
    """
    try:
        listed = [str(group[0]) for group in await admin.list_consumer_groups()]
    except KafkaError:
        listed = []
    groups = {group for group in listed if is_group(group, worker_id)}
    return [worker_id, *sorted(groups - {worker_id})]


async def describe_group(admin: AIOKafkaAdminClient, group_id: str) -> GroupState:
    """Return who is in a group: nobody, if the broker does not say."""
    try:
        responses = await admin.describe_consumer_groups([group_id])
    except KafkaError:
        return GroupState()
    groups = [group for response in responses for group in response.to_object()["groups"]]
    # The embedded broker also lists members that have left, and all members without a host.
    present = [one for group in groups for one in group["members"] if one["client_host"]]
    members = tuple(one["member_metadata"] for one in present)
    # Brokers name a member for its instance if it has one, and for its client otherwise.
    static = any(not one["member_id"].startswith(one["client_id"] + "-") for one in present)
    if len(groups) != 1:
        return GroupState(members, static=static)
    (group,) = groups
    return GroupState(members, group["protocol_type"], group["protocol"], static)


@dataclass(frozen=True)
class TopicReader:
    """A consumer group that reads a topic, or has read it."""

    group_id: str
    topic: str
    members: int
    """How many read it now, as far as the broker says."""
    protocol: str
    """How they share the partitions; empty if nobody does, or the broker does not say."""
    changelog: str
    """Where workers of the group keep their state. Empty for other software, in the first second of
    workers, and where the broker keeps no metadata of commits (the embedded one)."""


def commit_metadata(changelog: str) -> str:
    """Return what workers write beside the offsets that they commit: where their state is."""
    return _COMMIT_MARK + changelog


async def may_list_groups(admin: AIOKafkaAdminClient) -> bool:
    """Return whether the broker lists all groups to this login; else it leaves some out.

    The check is a request that needs the same permission, and is refused without it.
    """
    request = DescribeAclsRequest(
        resource_type=_ACLS_OF_GROUP,
        resource_name="ldpstream",
        resource_pattern_type_filter=_ANY,
        principal="User:ldpstream",
        host="*",
        operation=_ANY,
        permission_type=_ANY,
    )
    try:
        response = await send_request(admin, request)
    except KafkaError:
        return True
    return bool(response.error_code != ClusterAuthorizationFailedError.errno)


async def topic_readers(
    admin: AIOKafkaAdminClient, topics: Mapping[str, int]
) -> Sequence[TopicReader]:
    """Return the groups that read any topic, or have committed offsets in it.

    `topics` has numbers of partitions by topic.
    """
    listed = await admin.list_consumer_groups()
    groups = sorted(str(group[0]) for group in listed)
    readers: list[TopicReader] = []
    # A shared cluster may have thousands of groups.
    for start in range(0, len(groups), _GROUPS_AT_ONCE):
        some = groups[start : start + _GROUPS_AT_ONCE]
        for found in await asyncio.gather(*(_readers(admin, one, topics) for one in some)):
            readers += found
    return readers


async def _readers(
    admin: AIOKafkaAdminClient, group_id: str, topics: Mapping[str, int]
) -> list[TopicReader]:
    group = await describe_group(admin, group_id)
    # Named, since the embedded broker sends what cannot be read where all are requested.
    partitions = [TopicPartition(t, p) for t, number in topics.items() for p in range(number)]
    try:
        offsets = await admin.list_consumer_group_offsets(group_id, partitions=partitions)
    except KafkaError:
        offsets = {}
    readers = []
    for topic in topics:
        commits = [c for at, c in offsets.items() if at.topic == topic and c.offset >= 0]
        members = sum(topic in (_subscription(metadata) or ()) for metadata in group.members)
        if commits or members:
            changelogs = [c.metadata for c in commits if c.metadata.startswith(_COMMIT_MARK)]
            changelog = max(changelogs, default="").removeprefix(_COMMIT_MARK)
            readers.append(TopicReader(group_id, topic, members, group.protocol, changelog))
    return readers


async def has_coordinator(admin: AIOKafkaAdminClient, group_id: str) -> bool:
    """Return whether a broker coordinates a group, as far as the broker says.

    The first question makes the cluster choose one, which takes a moment.
    """
    for delay_seconds in _DELAYS_SECONDS:
        await asyncio.sleep(delay_seconds)
        try:
            await admin.find_coordinator(group_id)
        except GroupCoordinatorNotAvailableError:
            continue
        except KafkaError:
            return True
        return True
    return False


async def count_members(
    admin: AIOKafkaAdminClient, group_id: str, *, topic: str | None = None
) -> int:
    """Return how many members a group has, 0 if the broker does not say.

    With a `topic` only those that read it. A member whose topics are not known may read any.
    """
    members = (await describe_group(admin, group_id)).members
    return sum(topic is None or _may_read(metadata, topic) for metadata in members)


def _may_read(metadata: bytes, topic: str) -> bool:
    topics = _subscription(metadata)
    return topics is None or topic in topics


def _subscription(metadata: bytes) -> Collection[str] | None:
    """Return the topics in a member's metadata; the broker has none while members join."""
    if not metadata:
        return None
    try:
        topics: Collection[str] = ConsumerProtocolMemberMetadata.decode(metadata).subscription
    except (ValueError, struct.error):
        return None
    return topics


async def count_workers(admin: AIOKafkaAdminClient, worker_id: str) -> int:
    """Return how many workers with an id run, in all shards, 0 if the broker does not say."""
    return sum(
        [await count_members(admin, group) for group in await worker_groups(admin, worker_id)]
    )


def assign(
    owned: Mapping[str, Iterable[Partition]],
    subscribed: Mapping[str, Collection[str]],
    partitions: Mapping[str, int],
) -> dict[str, set[Partition]]:
    """Return the partitions of every member; the leader of the group calls this.

    `owned` is what members own so far, `subscribed` the topics of each member, `partitions` the
    number of partitions of each topic. Each partition of a topic with subscribers gets one of them
    as its owner. Two subscribers' numbers of partitions of a topic differ by at most one; so do
    their totals, if they have equal numbers of all their topics.
    """
    sharing = _Sharing(subscribed)
    free = {(topic, p) for topic, number in partitions.items() for p in range(number)}
    for member in sorted(subscribed):
        for partition in sorted(set(owned.get(member, ())) & free):
            # After a pause, two members may both claim a partition.
            if partition[0] in subscribed[member]:
                sharing.give(partition, member)
                free.remove(partition)
    for partition in sorted(free):
        least = sharing.least(partition[0])
        if least is not None:
            sharing.give(partition, least)
    while sharing.even_out():
        pass
    return sharing.partitions


class _Sharing:
    """The partitions given to members so far."""

    def __init__(self, subscribed: Mapping[str, Collection[str]]) -> None:
        self.partitions = {member: set[Partition]() for member in sorted(subscribed)}
        self._of_topic: Counter[tuple[str, str]] = Counter()
        self._members: dict[str, list[str]] = {}
        for member in self.partitions:
            for topic in subscribed[member]:
                self._members.setdefault(topic, []).append(member)

    def give(self, partition: Partition, member: str) -> None:
        self.partitions[member].add(partition)
        self._of_topic[member, partition[0]] += 1

    def least(self, topic: str) -> str | None:
        """Return the subscriber with the fewest partitions of a topic, then the fewest of all."""
        return min(self._members.get(topic, ()), key=lambda m: self._load(m, topic), default=None)

    def even_out(self) -> bool:
        """Move partitions from members that have too many; return whether any had.

        It ends, because each move lowers the sum of squares of the members' numbers per topic, or
        keeps that and lowers the sum of squares of their totals.
        """
        moved = False
        for topic in sorted(self._members):
            for member in self._members[topic]:
                for partition in sorted(p for p in self.partitions[member] if p[0] == topic):
                    least = self.least(topic)
                    if least is not None and self._has_too_many(member, least, topic):
                        self.partitions[member].remove(partition)
                        self._of_topic[member, topic] -= 1
                        self.give(partition, least)
                        moved = True
        return moved

    def _load(self, member: str, topic: str) -> tuple[int, int]:
        return self._of_topic[member, topic], len(self.partitions[member])

    def _has_too_many(self, member: str, other: str, topic: str) -> bool:
        (number, total), (least, least_total) = self._load(member, topic), self._load(other, topic)
        return number - least > 1 or (number - least == 1 and total - least_total > 1)
