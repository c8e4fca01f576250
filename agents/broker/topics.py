"""Create the topics of collections, and refuse those that contradict their configuration."""

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.new_partitions import NewPartitions
from aiokafka.errors import (
    BrokerResponseError,
    InvalidPartitionsError,
    TopicAlreadyExistsError,
    for_code,
)

from ldpstream.agents.broker.metadata import TopicState, describe
from ldpstream.agents.broker.topic_settings import uncompacted
from ldpstream.agents.config import CollectionConfig
from ldpstream.mechanisms.base.texts import count

# Small segments, so that compaction (which spares the newest segment) keeps a changelog short: it
# is read in full at every start. The broker sets its timestamps, which checks the workers' clocks.
_CHANGELOG: Final = {
    "cleanup.policy": "compact",
    "segment.bytes": str(64 << 20),
    "min.cleanable.dirty.ratio": "0.1",
    "message.timestamp.type": "LogAppendTime",
}
# The broker then decompresses batches, and refuses those larger than max.message.bytes.
_UNCOMPRESSED: Final = {"compression.type": "uncompressed"}
# A broker's controller writes at most 10,000 records per request: one per topic, partition and
# setting.
_PARTITIONS_A_REQUEST: Final = 5_000

_DELAYS_SECONDS: Final = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6)
"""A broker that creates thousands of partitions, or has few cores, is slow."""


class TopicError(RuntimeError):
    """A topic contradicts the configuration, or cannot be created; the message says which."""


async def declare_topics(
    client: AIOKafkaAdminClient,
    collections: Sequence[CollectionConfig],
    *,
    replication_factor: int,
    only: Collection[str] = (),
) -> Mapping[str, TopicState]:
    """Create the missing topics of collections, and return the state of them all by name.

    With `only` no other topics are described, because that requires a permission. A changelog with
    fewer partitions than its source gets more; everything else that exists stays as it is.

    Raises:
        TopicError: if a source does not have as many partitions as configured, if a changelog has
            more than its source or is not compacted, or if the broker refuses to create a topic.
    """
    names = frozenset(
        only or (name for collection in collections for name in collection.topics.names())
    )
    states = await describe(client, names)
    await _check_found(client, states, collections)
    await _grow_changelogs(client, states, collections)
    missing = [
        topic
        for collection in collections
        for topic in _new_topics(collection, replication_factor)
        if topic.name in names and topic.name not in states
    ]
    if not missing:
        return states
    await create_topics(client, missing)
    states = await await_topics(client, names, collections)
    # Another client, such as a sending device, may have created some of them meanwhile.
    await _check_found(client, states, collections)
    await _grow_changelogs(client, states, collections)
    return states


async def _check_found(
    client: AIOKafkaAdminClient,
    states: Mapping[str, TopicState],
    collections: Sequence[CollectionConfig],
) -> None:
    """Refuse topics that contradict the configuration of their collection."""
    changelogs = []
    for collection in collections:
        topics = collection.topics
        if topics.source in states:
            _check_source(states[topics.source].partitions, collection)
        if topics.changelog in states:
            _check_fewer(states[topics.changelog].partitions, collection)
            changelogs.append(topics.changelog)
    if problem := await uncompacted(client, changelogs):
        raise TopicError(problem)


async def check_topics(
    client: AIOKafkaAdminClient, collection: CollectionConfig
) -> tuple[Mapping[str, TopicState], tuple[str, ...]]:
    """Return the state of a collection's topics that exist, and the names of those missing.

    Changes nothing.
    """
    topics = collection.topics
    states = await describe(client, topics.names())
    await _check_found(client, states, [collection])
    return states, tuple(name for name in topics.names() if name not in states)


async def refused_topics(
    client: AIOKafkaAdminClient,
    collection: CollectionConfig,
    missing: Collection[str],
    *,
    replication_factor: int,
) -> list[str]:
    """Return which of a collection's missing topics a worker could not create, and why.

    Changes nothing on a broker that validates without creating. The embedded one creates.
    """
    new_topics = [new for new in _new_topics(collection, replication_factor) if new.name in missing]
    if not new_topics:
        return []
    return sorted(_refusals(await client.create_topics(new_topics, validate_only=True)))


def _new_topics(collection: CollectionConfig, replication_factor: int) -> list[NewTopic]:
    topics = collection.topics
    reports = {"retention.ms": str(collection.retention_ms)}
    # Documents are kept as long as the state they come from.
    documents = {"retention.ms": str(collection.window.retention_ms)}
    settings = [
        (topics.source, collection.partitions, reports | _UNCOMPRESSED),
        (topics.late, collection.partitions, reports),
        (topics.rejected, collection.partitions, reports),
        (topics.estimates, 1, documents),
        (topics.control, 1, {"retention.ms": str(collection.window.retention_ms)}),
        (topics.changelog, collection.partitions, _CHANGELOG),
    ]
    if topics.rounds is not None:
        settings.append((topics.rounds, 1, {"retention.ms": "-1"}))
    return [
        NewTopic(name, partitions, replication_factor, topic_configs=configs)
        for name, partitions, configs in settings
    ]


async def create_topics(client: AIOKafkaAdminClient, missing: Sequence[NewTopic]) -> None:
    """Create topics that others may create, too; raise TopicError if the broker refuses one."""
    for topics in _requests(missing):
        for refusal in _refusals(await client.create_topics(topics)):
            raise TopicError(refusal)


def _requests(missing: Sequence[NewTopic]) -> Iterator[list[NewTopic]]:
    """Yield topics in as few requests as a broker accepts."""
    topics, partitions = list[NewTopic](), 0
    for topic in missing:
        if topics and partitions + topic.num_partitions > _PARTITIONS_A_REQUEST:
            yield topics
            topics, partitions = [], 0
        topics.append(topic)
        partitions += topic.num_partitions
    if topics:
        yield topics


def _refusals(response: Any) -> Iterator[str]:
    """Yield the topics that could not be created according to a response, and why."""
    for name, code, *message in response.topic_errors:
        # Another worker may have been faster.
        if code and code != TopicAlreadyExistsError.errno:
            reason = next((text for text in message if text), for_code(code).description)
            yield f"topic {name} cannot be created: {reason}"


async def await_topics(
    client: AIOKafkaAdminClient,
    names: Collection[str],
    collections: Sequence[CollectionConfig] = (),
) -> Mapping[str, TopicState]:
    """Return the topics once all exist, with the sources' partitions if they arrive in time."""
    states: Mapping[str, TopicState] = {}
    for delay_seconds in _DELAYS_SECONDS:
        await asyncio.sleep(delay_seconds)
        states = await describe(client, names)
        sources = (
            (states.get(collection.topics.source), collection.partitions)
            for collection in collections
        )
        whole = all(state is None or state.partitions == expected for state, expected in sources)
        if len(states) == len(names) and whole:
            return states
    missing = sorted(set(names) - states.keys())
    if not missing:
        return states
    raise TopicError(f"topic {missing[0]} was created, but the broker does not show it")


def lacking_partitions(partitions: int, collection: CollectionConfig) -> str | None:
    """Return why nobody may send to a source with this many partitions, or None.

    It may have more than the collection: an accepted spec keeps the number that its devices know.
    """
    rule = collection.spec.one_report
    if rule is None or rule.partitions <= partitions:
        return None
    return (
        f"topic {collection.topics.source} has {count(partitions, 'partition')}, but "
        f"one_report sends to collection.{collection.name}.partitions, {rule.partitions}: make it "
        "the topic's"
    )


def _check_source(partitions: int, collection: CollectionConfig) -> None:
    expected = collection.partitions
    if partitions == expected:
        return
    topic, key = collection.topics.source, f"collection.{collection.name}.partitions"
    another = "" if collection.spec.one_report is None else " (another spec)"
    what_to_do = f"set {key} = {partitions}{another}"
    if partitions < expected:
        # A broker with auto.create.topics.enable makes a topic for whoever sends to it first.
        what_to_do += (
            f", or add partitions: kafka-topics.sh --bootstrap-server BROKER --alter --topic "
            f"{topic} --partitions {expected}"
        )
    number = "1 partition" if partitions == 1 else f"{partitions} partitions"
    raise TopicError(f"topic {topic} has {number}, but {key} is {expected}: {what_to_do}")


def _check_fewer(partitions: int, collection: CollectionConfig) -> None:
    if partitions > collection.partitions:
        raise TopicError(
            f"topic {collection.topics.source} has {count(collection.partitions, 'partition')}, "
            f"but the state in {collection.topics.changelog} is of {partitions}: a topic cannot "
            f"lose partitions, so this is another one; `ldpstream reset {collection.name}` starts "
            "over"
        )


async def _grow_changelogs(
    client: AIOKafkaAdminClient,
    states: Mapping[str, TopicState],
    collections: Sequence[CollectionConfig],
) -> None:
    """Add partitions to changelogs that have fewer than their source."""
    for collection in collections:
        name, partitions = collection.topics.changelog, collection.partitions
        if name not in states or states[name].partitions >= partitions:
            continue
        try:
            # Unlike `create_topics` this raises the broker's error about a topic.
            await client.create_partitions({name: NewPartitions(partitions)})
        except InvalidPartitionsError:
            pass  # Another worker was faster: the topic has enough partitions by now.
        except BrokerResponseError as error:
            if error.retriable:
                raise
            raise TopicError(f"topic {name} cannot be given more partitions: {error}") from error
