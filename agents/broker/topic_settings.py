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
_BROKER_TIMES: Final = ("message.timestamp.type", "LogAppendTime")


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


async def warn_of_compression(client: AIOKafkaAdminClient, name: str) -> str | None:
    """Return what is unsafe about how an existing source keeps compressed batches, or None.

    None also if the broker does not show its settings.
    """
    other = await _other_than(client, name, "compression.type", "uncompressed")
    return other and (
        f"{other} lets a device send a batch of kilobytes that unpacks to gigabytes: expected "
        "uncompressed"
    )


async def warn_of_timestamps(client: AIOKafkaAdminClient, changelog: str) -> str | None:
    """Return what is lost if the broker does not set a changelog's timestamps; None if it does."""
    other = await _other_than(client, changelog, *_BROKER_TIMES)
    return other and (
        f"{other}: nobody notices a worker whose clock is wrong, and what it takes in may be late "
        "or rejected: expected LogAppendTime"
    )


async def dates_arrivals(client: AIOKafkaAdminClient, source: str) -> bool:
    """Return whether the broker sets an existing source's timestamps, as far as it says so."""
    return await _other_than(client, source, *_BROKER_TIMES) is None


async def _other_than(
    client: AIOKafkaAdminClient, topic: str, name: str, expected: str
) -> str | None:
    """Return `NAME=VALUE` if the broker shows another value of a topic's setting, or None."""
    value = (await _settings(client, [topic], name)).get(topic, expected)
    return None if value == expected else f"{name}={value}"


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
