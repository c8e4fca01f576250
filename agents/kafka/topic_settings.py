"""Check the settings of existing topics."""

from collections.abc import Sequence
from typing import Any, Final

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError

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
    client: AIOKafkaAdminClient, topic: str, name: str, wanted: str
) -> str | None:
    """Return `NAME=VALUE` if the broker shows another value of a topic's setting, or None."""
    found = (await _settings(client, [topic], name)).get(topic, wanted)
    return None if found == wanted else f"{name}={found}"


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
