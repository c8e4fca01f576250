"""Check the permissions that a worker needs against those that the broker reports.

Without this check a worker would wait for ever: a refused fetch looks like silence.
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import GroupAuthorizationFailedError, KafkaError
from aiokafka.protocol.group import HeartbeatRequest

from ldpstream.agents.broker.metadata import TopicState
from ldpstream.agents.broker.patches.admin_requests import send_request
from ldpstream.agents.config import CollectionConfig

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


def missing_on_topics(
    collection: CollectionConfig, topics: Mapping[str, TopicState], *, needed: Needed = WORKER
) -> Iterator[str]:
    """Yield what is not permitted on those of a collection's topics that exist."""
    for field, operations in needed.items():
        name = getattr(collection.topics, field)
        state = topics.get(name)
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
