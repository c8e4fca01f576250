"""Ask the broker about topics: ids, partitions, whether they exist, and what is permitted on them.

aiokafka's own metadata request stops at version 5: it knows no topic ids, and its client sends it
in a way that lets a broker create the requested topics. The request here is version 12 of the same
API (Kafka 2.8 and later), which avoids both; it is a flexible request, which has tagged fields.
Brokers that do not support it get version 5, and their topics have no id.

Without a check of permissions a worker would wait for ever: a refused fetch looks like silence.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from io import BytesIO
from os import SEEK_CUR
from typing import Any, Final, TypeAlias
from uuid import UUID

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import (
    GroupAuthorizationFailedError,
    KafkaError,
    UnknownTopicOrPartitionError,
    for_code,
)
from aiokafka.protocol.abstract import AbstractType
from aiokafka.protocol.api import (
    Request,
    RequestHeader_v2,
    RequestStruct,
    Response,
    ResponseHeader_v1,
)
from aiokafka.protocol.group import HeartbeatRequest
from aiokafka.protocol.metadata import MetadataRequest_v5
from aiokafka.protocol.types import (
    Boolean,
    CompactArray,
    CompactString,
    Int16,
    Int32,
    Schema,
    UnsignedVarInt32,
)

from ldpstream.agents.broker.patches.admin_requests import known_brokers, send_request
from ldpstream.agents.config import CollectionConfig

_NO_ID = UUID(int=0)
_PATIENCE_SECONDS: Final = 3.0
_OPERATIONS = {"read": 3, "write": 4, "delete": 6}
_NOT_TOLD = -(1 << 31)
_FIXED_BYTES: Final = 2 + 4 + 4 + 4
"""Size of the fixed fields of a partition: error, number, leader, its epoch."""
_LEADER: Final = slice(6, 10)
"""Where the leader stands in them; negative if there is none."""
_NODE_LISTS: Final = 3
"""Lists after them: replicas, those in sync, those offline; four bytes for each node."""

Needed = Mapping[str, AbstractSet[str]]

WORKER: Final[Needed] = {
    "source": {"read"},
    "late": {"write"},
    "rejected": {"write"},
    "estimates": {"write"},
    "control": {"read"},
    "changelog": {"read", "write"},
}
"""What a worker does with each topic, by field of `Topics`."""
GATEWAY: Final[Needed] = {"source": {"write"}, "rounds": {"read"}}
"""What `gateway` does with topics."""


@dataclass(frozen=True)
class TopicState:
    """One existing topic."""

    partitions: int
    """The number of partitions, which are numbered from 0."""
    id: UUID | None
    """New whenever a topic with this name is created; None if the broker has no ids."""
    leaderless: int = 0
    """How many of the partitions have no leader, so that nobody can read or write them."""
    permitted: frozenset[str] | None = None
    """Which of "read", "write" and "delete" are permitted; None if the broker does not say."""


async def describe(client: AIOKafkaAdminClient, names: Iterable[str]) -> Mapping[str, TopicState]:
    """Return the state of those of the named topics that exist."""
    requested = sorted(set(names))
    response = await send_request(client, _MetadataRequest(requested))
    topics = {}
    for topic in response.to_object()["topics"]:
        error = for_code(topic["error_code"])
        if error is UnknownTopicOrPartitionError:
            continue
        if topic["error_code"]:
            raise error(f"topic {topic['topic']}")
        identity = topic.get("id") or _NO_ID
        topics[topic["topic"]] = TopicState(
            partitions=len(topic["partitions"] or ()),
            leaderless=sum(_has_no_leader(partition) for partition in topic["partitions"] or ()),
            id=None if identity == _NO_ID else identity,
            permitted=_permitted(topic.get("authorized_operations", _NOT_TOLD)),
        )
    return topics


async def why_unread(client: AIOKafkaAdminClient, topics: Iterable[str]) -> str:
    """Return why nothing is read of topics; empty if the broker does not answer that either."""
    names = sorted(topics)
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            states = await describe(client, names)
    except (KafkaError, TimeoutError):
        return ""
    if missing := [name for name in names if name not in states]:
        return f"the broker answers, but has no topic {', '.join(missing)}: was it deleted?"
    if led := [name for name in names if states[name].leaderless]:
        return (
            f"the broker answers, but partitions of {', '.join(led)} have no leader: are all "
            "brokers running?"
        )
    return f"the broker answers, but sends nothing of {', '.join(names)}"


def _has_no_leader(partition: bytes | Mapping[str, Any]) -> bool:
    if isinstance(partition, bytes):
        return int.from_bytes(partition[_LEADER], "big", signed=True) < 0
    return bool(partition["leader"] < 0)


def count_brokers(client: AIOKafkaAdminClient) -> int:
    """Return how many brokers a started client knows."""
    return len(known_brokers(client))


def _permitted(bits: int) -> frozenset[str] | None:
    if bits == _NOT_TOLD:
        return None
    return frozenset(name for name, bit in _OPERATIONS.items() if bits >> bit & 1)


class _TaggedFields(AbstractType[dict[int, bytes]]):
    """Tagged fields: none are written, and those read are passed over."""

    @classmethod
    def encode(cls, _value: dict[int, bytes]) -> bytes:
        """Return the bytes of no tagged fields."""
        return UnsignedVarInt32.encode(0)

    @classmethod
    def decode(cls, data: BytesIO) -> dict[int, bytes]:
        """Move past the tagged fields."""
        for _ in range(UnsignedVarInt32.decode(data)):
            UnsignedVarInt32.decode(data)  # the tag
            data.seek(UnsignedVarInt32.decode(data), SEEK_CUR)
        return {}


class _Uuid(AbstractType[UUID]):
    @classmethod
    def encode(cls, value: UUID) -> bytes:
        return value.bytes

    @classmethod
    def decode(cls, data: BytesIO) -> UUID:
        return UUID(bytes=data.read(16))


class _Partition(AbstractType[bytes]):
    """The raw bytes about a partition: there are many, and they are not used."""

    @classmethod
    def encode(cls, value: bytes) -> bytes:
        return value

    @classmethod
    def decode(cls, data: BytesIO) -> bytes:
        start = data.tell()
        data.seek(_FIXED_BYTES, SEEK_CUR)
        for _ in range(_NODE_LISTS):
            data.seek(4 * max(0, UnsignedVarInt32.decode(data) - 1), SEEK_CUR)
        _TaggedFields.decode(data)
        return data.getvalue()[start : data.tell()]


class _MetadataResponse_v12(Response):  # noqa: N801 (aiokafka's way of naming versions)
    API_KEY = 3
    API_VERSION = 12
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "brokers",
            CompactArray(
                ("node_id", Int32),
                ("host", CompactString("utf-8")),
                ("port", Int32),
                ("rack", CompactString("utf-8")),
                ("tags", _TaggedFields),
            ),
        ),
        ("cluster_id", CompactString("utf-8")),
        ("controller_id", Int32),
        (
            "topics",
            CompactArray(
                ("error_code", Int16),
                ("topic", CompactString("utf-8")),
                ("id", _Uuid),
                ("is_internal", Boolean),
                ("partitions", CompactArray(_Partition)),
                ("authorized_operations", Int32),
                ("tags", _TaggedFields),
            ),
        ),
        ("tags", _TaggedFields),
    )


class _MetadataRequest_v12(RequestStruct):  # noqa: N801 (aiokafka's way of naming versions)
    API_KEY = 3
    API_VERSION = 12
    RESPONSE_TYPE = _MetadataResponse_v12
    SCHEMA = Schema(
        (
            "topics",
            CompactArray(("id", _Uuid), ("topic", CompactString("utf-8")), ("tags", _TaggedFields)),
        ),
        ("allow_auto_topic_creation", Boolean),
        ("include_topic_authorized_operations", Boolean),
        ("tags", _TaggedFields),
    )

    # aiokafka 0.14 declares tagged fields as a type and marks the request; 0.15 declares them
    # beside the schema. With the headers given here, the request is the same bytes with both.

    def build_request_header(self, correlation_id: int, client_id: str) -> RequestHeader_v2:
        return RequestHeader_v2(self, correlation_id=correlation_id, client_id=client_id)

    def parse_response_header(self, read_buffer: BytesIO | bytes) -> ResponseHeader_v1:
        return ResponseHeader_v1.decode(read_buffer)


_Version: TypeAlias = MetadataRequest_v5 | _MetadataRequest_v12


class _MetadataRequest(Request[_Version]):
    API_KEY = 3

    def __init__(self, topics: list[str]) -> None:
        self._topics = topics

    def build(self, request_struct_class: type[_Version]) -> _Version:
        if request_struct_class is _MetadataRequest_v12:
            topics: list[tuple[UUID, str, dict[int, bytes]]] = [
                (_NO_ID, name, {}) for name in self._topics
            ]
            return _MetadataRequest_v12(topics, False, True, {})
        return MetadataRequest_v5(self._topics, False)


def missing_on_topics(
    collection: CollectionConfig, topics: Mapping[str, TopicState], *, needed: Needed = WORKER
) -> Iterator[str]:
    """Yield what is not permitted on those of a collection's topics that exist."""
    for field, operations in needed.items():
        name = getattr(collection.topics, field)
        yield from missing_on_topic(name, topics.get(name), operations)


def missing_on_topic(
    name: str, state: TopicState | None, operations: AbstractSet[str]
) -> Iterator[str]:
    """Yield which of these operations are not permitted on a topic, as far as the broker says."""
    if state is not None and state.permitted is not None:
        for operation in sorted(operations - state.permitted):
            yield f"topic {name}: expected permission to {operation}, got none"


async def missing_on_group(client: AIOKafkaAdminClient, group_id: str) -> Sequence[str]:
    """Return what is not permitted on the consumer group; empty if the broker does not say.

    The check is a heartbeat of a member that does not exist: it changes nothing, and any broker
    checks the permission before it looks for the member.
    """
    heartbeat = HeartbeatRequest(group_id, generation_id=0, member_id="")
    try:
        response = await send_request(client, heartbeat)
    except KafkaError:
        return []
    if response.to_object()["error_code"] == GroupAuthorizationFailedError.errno:
        return [f"group {group_id}: expected permission to read, got none"]
    return []
