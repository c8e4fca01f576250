"""Check the settings of existing topics."""

from collections.abc import Container, Sequence
from typing import Any, Final

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError

from ldpstream.agents.broker.patches.admin_requests import any_broker
from ldpstream.agents.config import CollectionConfig

_COMPACTED: Final = {
    "source": "which loses all reports with the same key but the newest, unseen",
    "late": "which takes no copies, since they have no key, and stops their partitions",
    "rejected": "which takes no copies, since they have no key, and stops their partitions",
    "control": "which takes no orders to close, since they have no key",
    "rounds": "which takes no rounds, since they have no key",
}
"""What a topic loses by compaction, by field of `Topics`."""
_WRITTEN: Final = frozenset({"late", "rejected", "estimates", "changelog"})
"""The topics that a worker writes, by field of `Topics`."""
_FIELDS: Final = sorted({*_COMPACTED, *_WRITTEN})
_SIZE: Final = "max.message.bytes"
_LOOKED_AT: Final = ("cleanup.policy", _SIZE)
_RECORD_BYTES: Final = 72 << 10
"""The largest single record but a final document: a copy of a message, with its headers."""
_ADVISED: Final = {
    ("source", "compression.type", "uncompressed"): (
        "{topic}: warning: compression.type={value} lets a device send a batch of kilobytes that "
        "unpacks to gigabytes: expected uncompressed"
    ),
    ("source", "message.timestamp.type", "LogAppendTime"): (
        "{topic}: note: senders set its timestamps (message.timestamp.type={value}): a worker that "
        "catches up estimates arrival times from most senders' clocks. To do without, let the "
        "broker set them: kafka-configs.sh --bootstrap-server BROKER --alter --topic {topic} "
        "--add-config message.timestamp.type=LogAppendTime"
    ),
    ("changelog", "message.timestamp.type", "LogAppendTime"): (
        "{topic}: warning: message.timestamp.type={value}: nobody notices a worker whose clock is "
        "wrong, and what it takes in may be late or rejected: expected LogAppendTime"
    ),
}
"""What to say where a field of `Topics` has a topic whose setting is not the last of the key."""


async def uncompacted(client: AIOKafkaAdminClient, changelogs: Sequence[str]) -> str | None:
    """Return why a changelog is refused if the broker deletes its records by age, or None."""
    for name, policy in (await _settings(client, changelogs, "cleanup.policy")).items():
        if policy != "compact":
            return (
                f"topic {name} has cleanup.policy={policy}, which would delete state: expected "
                "compact"
            )
    return None


async def wrong_settings(
    client: AIOKafkaAdminClient,
    collection: CollectionConfig,
    existing: Container[str],
    *,
    batch_bytes: int,
) -> list[str]:
    """Return the settings of a collection's topics by which something is lost, or stops.

    Of its topics those that exist are looked at, as far as the broker shows their settings.
    `batch_bytes` is the most that the worker's producer puts into a batch.
    """
    fields = {name: field for field in _FIELDS if (name := getattr(collection.topics, field))}
    topics = [name for name in fields if name in existing]
    by_topic = await _described(client, ConfigResourceType.TOPIC, topics, _LOOKED_AT)
    problems, needed = [], max(batch_bytes, _RECORD_BYTES)
    for topic, settings in by_topic.items():
        field, policy = fields[topic], settings.get("cleanup.policy", "")
        if field in _COMPACTED and "compact" in policy:
            problems.append(
                f"topic {topic} has cleanup.policy={policy}, {_COMPACTED[field]}: set it to delete"
            )
        most = _number(settings.get(_SIZE, ""), needed)
        if field in _WRITTEN and most < needed:
            problems.append(
                f"topic {topic} has {_SIZE}={most}, less than a batch of the worker may have: set "
                f"it to {needed} or more, or kafka.max_batch_size to {most} or less"
                if most >= _RECORD_BYTES
                else f"topic {topic} has {_SIZE}={most}, less than a single record may have: set "
                f"it to {needed} or more"
            )
    return problems


async def unwise_settings(
    client: AIOKafkaAdminClient, collection: CollectionConfig, existing: Container[str]
) -> list[str]:
    """Return what is unsafe or inexact about a collection's existing topics, each with its topic.

    Settings that the broker does not show are as they should be.
    """
    lines = []
    for (field, name, expected), line in _ADVISED.items():
        topic = getattr(collection.topics, field)
        if topic in existing:
            value = (await _settings(client, [topic], name)).get(topic, expected)
            if value != expected:
                lines.append(line.format(topic=topic, value=value))
    return lines


async def broker_settings(client: AIOKafkaAdminClient, names: Sequence[str]) -> dict[str, str]:
    """Return those of a broker's settings that it shows: all of them, or none."""
    broker = str(any_broker(client))
    return (await _described(client, ConfigResourceType.BROKER, [broker], names)).get(broker, {})


def _number(text: str, otherwise: int) -> int:
    return int(text) if text.isdecimal() else otherwise


async def _settings(
    client: AIOKafkaAdminClient, topics: Sequence[str], name: str
) -> dict[str, str]:
    """Return a setting by topic, for those topics for which the broker shows it."""
    by_topic = await _described(client, ConfigResourceType.TOPIC, topics, [name])
    return {topic: settings[name] for topic, settings in by_topic.items() if name in settings}


async def _described(
    client: AIOKafkaAdminClient,
    kind: ConfigResourceType,
    resources: Sequence[str],
    names: Sequence[str],
) -> dict[str, dict[str, str]]:
    """Return settings by resource, for those for which the broker shows them."""
    settings = dict.fromkeys(names)
    requests = [ConfigResource(kind, resource, configs=settings) for resource in resources]
    try:
        responses: list[Any] = await client.describe_configs(requests)
    except KafkaError:
        return {}
    return {
        resource: {entry[0]: str(entry[1]) for entry in entries if entry[0] in settings}
        for response in responses
        for code, _, _, resource, entries in response.resources
        if not code
    }
