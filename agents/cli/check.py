"""`ldpstream check`: configuration, broker, topics, permissions."""

from collections.abc import Iterator

import click
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from ldpstream.agents.cli import broker
from ldpstream.agents.cli.common import config_option, count, load
from ldpstream.agents.cli.errors import Failed
from ldpstream.agents.clients import replication_factor
from ldpstream.agents.config import CollectionConfig, Config, KafkaConfig
from ldpstream.agents.declare import TopicError, check_topics
from ldpstream.agents.permissions import missing_on_group, missing_on_topics
from ldpstream.agents.refusals import explain


@click.command()
@config_option
def check(config_file: str) -> None:
    """Check the configuration, the broker, the topics, and what we may do with them.

    Changes nothing. Exit 1 if something is wrong that would keep a worker from running.
    """
    config = load(config_file)
    names = ", ".join(config.collections)
    click.echo(f"{config_file}: collections {names}")
    problems = broker.run(_check(config), config.kafka, config_file)
    if problems:
        raise Failed("\n".join(problems))
    click.echo("ok")


async def _check(config: Config) -> list[str]:
    problems: list[str] = []
    async with broker.admin(config.kafka) as admin:
        brokers = len((await admin.describe_cluster())["brokers"])
        click.echo(f"{config.kafka.bootstrap}: {count(brokers, 'broker')}")
        problems += _check_replication(config.kafka, brokers)
        for collection in config.collections.values():
            problems += await _check_collection(admin, collection)
        problems += await missing_on_group(admin, config.worker.id)
    # Starting it asks for what idempotent production needs.
    try:
        async with broker.producer(config.kafka):
            click.echo("producer: permitted")
    except KafkaError as error:
        problems.append(await explain(error, config.kafka))
    return problems


def _check_replication(kafka: KafkaConfig, brokers: int) -> Iterator[str]:
    factor = replication_factor(kafka.options, brokers=brokers)
    if factor > brokers:
        yield (
            f"kafka.replication_factor: expected at most {count(brokers, 'broker')}, got {factor}"
        )


async def _check_collection(admin: AIOKafkaAdminClient, collection: CollectionConfig) -> list[str]:
    try:
        found, missing = await check_topics(admin, collection)
    except TopicError as error:
        return [str(error)]
    for name, partitions in _partitions(collection).items():
        if name in missing:
            click.echo(f"{name}: missing; a worker creates it, {count(partitions, 'partition')}")
        else:
            click.echo(f"{name}: {count(found[name].partitions, 'partition')}")
    return list(missing_on_topics(collection, found))


def _partitions(collection: CollectionConfig) -> dict[str, int]:
    topics = collection.topics
    single = {topics.estimates, topics.control}
    return {name: 1 if name in single else collection.partitions for name in topics.names()}
