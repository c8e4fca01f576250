"""The topic in which workers of several shards tell where they answer."""

import asyncio
from collections.abc import Sequence
from typing import Final

from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from ldpstream.agents.kafka.declare import DELAYS_SECONDS, TopicError, create_topics
from ldpstream.agents.kafka.metadata import describe

# Workers renew what they tell every few seconds, so that nothing old is of use.
_CONFIGS: Final = {
    "cleanup.policy": "compact,delete",
    "retention.ms": "3600000",
    "segment.ms": "600000",
}
_NEEDED: Final = {"read", "write"}


async def declare_addresses(
    client: AIOKafkaAdminClient, topic: str, *, replication_factor: int
) -> Sequence[str]:
    """Create the topic if it is missing; return what is not permitted on it.

    Raises:
        TopicError: if the broker refuses to create it.
        KafkaError: if the broker does not answer.
    """
    found = await describe(client, [topic])
    if topic not in found:
        new = NewTopic(topic, 1, replication_factor, topic_configs=_CONFIGS)
        await create_topics(client, [new])
        for delay_seconds in DELAYS_SECONDS:
            await asyncio.sleep(delay_seconds)
            found = await describe(client, [topic])
            if topic in found:
                break
        else:
            raise TopicError(f"topic {topic} was created, but the broker does not show it")
    return missing_on_addresses(topic, found[topic].permitted)


def missing_on_addresses(topic: str, permitted: frozenset[str] | None) -> list[str]:
    """Return what is not permitted on the topic; empty if the broker does not say."""
    lacking = sorted(_NEEDED - permitted) if permitted is not None else ()
    return [f"topic {topic}: expected permission to {one}, got none" for one in lacking]
