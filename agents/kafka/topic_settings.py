"""Check the settings of existing topics."""

from collections.abc import Sequence
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError


async def uncompacted(client: AIOKafkaAdminClient, changelogs: Sequence[str]) -> str | None:
    """Return why a changelog is refused if the broker deletes its records by age, or None."""
    for name, policy in (await _settings(client, changelogs, "cleanup.policy")).items():
        if policy != "compact":
            return (
                f"topic {name} has cleanup.policy={policy}, which would delete state: expected "
                "compact"
            )
    return None


async def warn_of_compression(client: AIOKafkaAdminClient, name: str) -> str | None:
    """Return what is unsafe about how an existing source keeps compressed batches, or None.

    None also if the broker does not show its settings.
    """
    kept = await _setting(client, name, "compression.type")
    if kept is None or kept == "uncompressed":
        return None
    return (
        f"compression.type={kept} lets a device send a batch of kilobytes that unpacks to "
        "gigabytes: expected uncompressed (docs/kafka.md)"
    )


async def warn_of_timestamps(client: AIOKafkaAdminClient, changelog: str) -> str | None:
    """Return what is lost if the broker does not set a changelog's timestamps; None if it does."""
    kept = await _setting(client, changelog, "message.timestamp.type")
    if kept is None or kept == "LogAppendTime":
        return None
    return (
        f"message.timestamp.type={kept}: nobody notices a worker whose clock is wrong, and what it "
        "takes in may be late or rejected: expected LogAppendTime (docs/operations.md, Clocks)"
    )


async def dates_arrivals(client: AIOKafkaAdminClient, source: str) -> bool:
    """Return whether the broker sets an existing source's timestamps, as far as it says so."""
    return await _setting(client, source, "message.timestamp.type") in (None, "LogAppendTime")


async def _setting(client: AIOKafkaAdminClient, topic: str, name: str) -> str | None:
    """Return a setting of a topic; None if the broker does not show it."""
    return (await _settings(client, [topic], name)).get(topic)


async def _settings(
    client: AIOKafkaAdminClient, topics: Sequence[str], name: str
) -> dict[str, str]:
    """Return a setting by topic, for those topics for which the broker shows it."""
    asked = [
        ConfigResource(ConfigResourceType.TOPIC, topic, configs={name: None}) for topic in topics
    ]
    try:
        responses: list[Any] = await client.describe_configs(asked)
    except KafkaError:
        return {}
    return {
        topic: str(entry[1])
        for response in responses
        for code, _, _, topic, entries in response.resources
        for entry in entries
        if not code and entry[0] == name
    }
