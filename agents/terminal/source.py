"""The source topic, for commands that produce to it."""

import click

from ldpstream.agents.config import CollectionConfig, KafkaConfig
from ldpstream.agents.kafka.clients import replication_factor
from ldpstream.agents.kafka.declare import declare_topics, lacking_partitions
from ldpstream.agents.kafka.metadata import count_brokers, describe
from ldpstream.agents.terminal import broker
from ldpstream.agents.terminal.errors import Failed


async def source_partitions(kafka: KafkaConfig, collection: CollectionConfig) -> int:
    """Return how many partitions the source has; create it as configured if it is missing.

    Raises:
        Failed: where `one_report` needs more partitions than there are.
    """
    topic = collection.topics.source
    async with broker.admin(kafka) as admin:
        found = await describe(admin, [topic])
        if topic not in found:
            factor = replication_factor(kafka.options, brokers=count_brokers(admin))
            found = await declare_topics(admin, [collection], replication_factor=factor)
            click.echo(f"created the topics of {collection.name}", err=True)
    there = found[topic].partitions
    if lacking := lacking_partitions(there, collection):
        raise Failed(lacking)
    return there
