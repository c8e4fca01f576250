"""`ldpstream reset`: delete a collection's state, replace it by a back-up, or erase everything."""

import asyncio
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import click
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError, UnknownTopicOrPartitionError, for_code

from ldpstream.agents.broker import clients
from ldpstream.agents.broker.groups import count_members, describe_group, worker_groups
from ldpstream.agents.broker.metadata import count_brokers, describe
from ldpstream.agents.broker.offsets import end_offsets
from ldpstream.agents.broker.producer import LastingProducer
from ldpstream.agents.broker.topics import declare_topics
from ldpstream.agents.cli.backup import (
    Description,
    Record,
    contexts,
    digest,
    messages,
    read_description,
    read_records,
)
from ldpstream.agents.cli.terminal import broker
from ldpstream.agents.cli.terminal.common import confirm, count, load_collection
from ldpstream.agents.cli.terminal.errors import Failed, Refused
from ldpstream.agents.config import CollectionConfig, Config, client_options
from ldpstream.agents.state.encoding import decode_head, decode_key, state_prefix
from ldpstream.agents.state.records import HEAD
from ldpstream.agents.state.replica import at_beginning, head_record

_PATIENCE_SECONDS: Final = 30.0
_LOOK_SECONDS: Final = 0.1
_EXPIRY_SECONDS: Final = 1.0
"""How long a broker may take to notice the end of a session."""
_TOGETHER: Final = 1_000
"""How many records of a back-up are acknowledged at once."""


def reset_collection(
    config_file: str, name: str, *, file: Path | None, erase: bool, yes: bool
) -> None:
    """Delete, replace or erase the state of a collection."""
    config, collection = load_collection(config_file, name)
    if file is not None and erase:
        raise Refused("--erase: expected no --restore with it, got both")
    if file is not None:
        _restore(config, collection, file, config_file, yes=yes)
    elif erase:
        _erase(config, collection, config_file, yes=yes)
    else:
        _start_over(config, collection, config_file, yes=yes)


# --- start over ----------------------------------------------------------------------------------


def _start_over(
    config: Config, collection: CollectionConfig, config_file: str, *, yes: bool
) -> None:
    name = collection.name
    if not yes:
        confirm(
            f"Delete all state of {name}? Workers then count {collection.topics.source} from its "
            "beginning."
        )
    # An order to close names offsets of the old source: it must not apply to the new one.
    names = [collection.topics.changelog, collection.topics.control]
    deleted = broker.run(_delete_stopped(config, collection, names), config.kafka, config_file)
    if deleted:
        click.echo(f"{name} starts over: deleted {' and '.join(deleted)}")
    else:
        click.echo(f"{name} had no state")


async def _delete_stopped(
    config: Config, collection: CollectionConfig, names: Sequence[str]
) -> list[str]:
    """Delete those of these topics that exist, once nothing counts the collection; return them."""
    async with broker.admin(config.kafka) as admin:
        await _check_stopped(admin, config, collection)
        return await _delete(admin, names)


async def _check_stopped(
    admin: AIOKafkaAdminClient, config: Config, collection: CollectionConfig
) -> None:
    """Return once no member of a group reads the collection.

    A worker that was killed, or that has an instance, stays a member until its session ends, which
    looks like one that runs.
    """
    for group_id in await worker_groups(admin, config.worker.id):
        deadline: float | None = None
        while members := await count_members(admin, group_id, topic=collection.topics.source):
            running = f"the group {group_id} has {members} running"
            if deadline is None:
                static = (await describe_group(admin, group_id)).static
                times = client_options.group_times(config.kafka.options, static=static)
                wait_seconds = times.session_ms / 1000 + _EXPIRY_SECONDS
                deadline = time.monotonic() + wait_seconds
                waiting = "for killed ones, and for stopped ones with an instance"
                click.echo(f"{running}: waiting up to {wait_seconds:g} s {waiting}", err=True)
            if time.monotonic() > deadline:
                raise Failed(
                    f"nothing was changed: {running}; stop all workers first, or restart them "
                    f"without {collection.name}"
                )
            await asyncio.sleep(_LOOK_SECONDS)


async def _delete(admin: AIOKafkaAdminClient, names: Sequence[str]) -> list[str]:
    """Delete those of these topics that exist, and return them in their order."""
    states = await describe(admin, names)
    present = [name for name in names if name in states]
    if not present:
        return []
    response: Any = await admin.delete_topics(present)
    for name, code in response.topic_error_codes:
        if code and code != UnknownTopicOrPartitionError.errno:
            raise for_code(code)(f"topic {name}")
    # A deletion is acknowledged before it is done, and until then the name is taken.
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while remaining := await describe(admin, present):
        if time.monotonic() > deadline:
            raise Failed(f"the broker still shows {min(remaining)} after {_PATIENCE_SECONDS:g} s")
        await asyncio.sleep(_LOOK_SECONDS)
    return present


# --- erase ---------------------------------------------------------------------------------------


def _erase(config: Config, collection: CollectionConfig, config_file: str, *, yes: bool) -> None:
    name, names = collection.name, collection.topics.names()
    if not yes:
        confirm(f"Delete {', '.join(names)}, with all reports and estimates of {name}?")
    # The source first: whatever still sends to it, or counts it, notices at once.
    deleted = broker.run(_erase_stopped(config, collection, names), config.kafka, config_file)
    if deleted:
        click.echo(f"{name} is erased at the broker: deleted {', '.join(deleted)}")
    else:
        click.echo(f"{name} had no topics")


async def _erase_stopped(
    config: Config, collection: CollectionConfig, names: Sequence[str]
) -> list[str]:
    deleted = await _delete_stopped(config, collection, names)
    async with broker.admin(config.kafka) as admin:
        for group_id in await worker_groups(admin, config.worker.id):
            await _forget(admin, group_id, collection.topics.source)
    return deleted


async def _forget(admin: AIOKafkaAdminClient, group_id: str, topic: str) -> None:
    """Return once a group's offsets in a deleted topic are gone: brokers delete them afterwards."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while await _has_offsets(admin, group_id, topic):
        if time.monotonic() > deadline:
            raise Failed(
                f"the topics are deleted, but after {_PATIENCE_SECONDS:g} s the broker still has "
                f"offsets of the group {group_id} in {topic}: delete them by "
                f"kafka-consumer-groups.sh --bootstrap-server BROKER --delete-offsets "
                f"--group {group_id} --topic {topic}"
            )
        await asyncio.sleep(_LOOK_SECONDS)


async def _has_offsets(admin: AIOKafkaAdminClient, group_id: str, topic: str) -> bool:
    """Return whether a group has committed offsets in a topic, False if the broker does not say."""
    try:
        offsets = await admin.list_consumer_group_offsets(group_id)
    except KafkaError:
        return False
    return any(partition.topic == topic for partition in offsets)


# --- continue a back-up --------------------------------------------------------------------------


@dataclass(frozen=True)
class _Restored:
    """Where a restored state goes on: in the topic it was counted from, or `moved` to another."""

    moved: bool
    records: int
    uncounted: int
    deleted: int


def _restore(
    config: Config, collection: CollectionConfig, file: Path, config_file: str, *, yes: bool
) -> None:
    name, source = collection.name, collection.topics.source
    description = read_description(file)
    _check_states(collection, description, file, config_file)
    if not yes:
        confirm(f"Replace all state of {name} by that of {description.time}?")
    task = _restore_stopped(config, collection, description, file)
    restored = broker.run(task, config.kafka, config_file)
    click.echo(f"{name} has the state of {description.time}: {count(restored.records, 'record')}")
    where = f"{source}, a new topic, is" if restored.moved else f"what {source} got since is"
    click.echo(f"{where} counted next: {count(restored.uncounted, 'message')} so far")
    if restored.deleted:
        click.echo(
            f"{count(restored.deleted, 'message')} of {source} not counted by then are deleted "
            "already: documents of their windows will have `lost`",
            err=True,
        )


def _check_states(
    collection: CollectionConfig, description: Description, file: Path, config_file: str
) -> None:
    """Refuse a back-up of a state that this configuration would not continue."""
    name, partitions = collection.name, collection.partitions
    if len(description.next) != partitions:
        raise Refused(
            f"{config_file}: collection.{name}.partitions: expected {len(description.next)}, as "
            f"{file} has them, got {partitions}"
        )
    prefixes = {state_prefix(context).hex() for context in contexts(collection)}
    if not prefixes.issuperset(description.states):
        raise Refused(
            f"{file}: expected a state of {name} in {config_file}, got one of another spec or "
            "window: restore it with the configuration that it was stored with, and change that "
            "afterwards"
        )


async def _restore_stopped(
    config: Config, collection: CollectionConfig, description: Description, file: Path
) -> _Restored:
    topics, kafka = collection.topics, config.kafka
    async with broker.admin(kafka) as admin:
        await _check_stopped(admin, config, collection)
        factor = clients.replication_factor(kafka.options, brokers=count_brokers(admin))
        # Not the changelog: it is replaced, whatever is wrong with it.
        only = [topics.source]
        states = await declare_topics(admin, [collection], replication_factor=factor, only=only)
        source = states[topics.source].id
        source_id = "" if source is None else source.hex
        moved = source_id != description.source_id
        uncounted, deleted = await _unread(config, collection, description, moved=moved, file=file)
        # Orders to close name offsets of the source that they were given for.
        await _delete(admin, [topics.changelog, *([topics.control] if moved else [])])
        await declare_topics(admin, [collection], replication_factor=factor)
    records = read_records(file)
    if moved:
        records = _moved(collection, records, b"" if source is None else source.bytes)
    written = await _write(config, topics.changelog, records)
    return _Restored(moved, written, uncounted, deleted)


async def _unread(
    config: Config,
    collection: CollectionConfig,
    description: Description,
    *,
    moved: bool,
    file: Path,
) -> tuple[int, int]:
    """Return how many messages are to be counted next, and how many of those are deleted.

    Raises:
        Failed: if the state cannot go on in the source without counting twice or leaving out.
    """
    source = collection.topics.source
    if moved and (description.workers or description.uncounted):
        raise Failed(
            f"nothing was changed: {source} is not the topic from which {file} was counted, and of "
            f"that one {count(description.uncounted, 'message')} had not been counted, with "
            f"{count(description.workers, 'worker')} running: let devices send here, let a worker "
            "there count the rest, stop it, and store the state once more"
        )
    partitions = [TopicPartition(source, p) for p in range(collection.partitions)]
    async with broker.reader(config.kafka) as reader:
        ends = await end_offsets(reader, partitions)
        begins = await reader.beginning_offsets(partitions)
        if moved:
            await _check_no_copy(reader, description, ends, file)
    starts = [0] * len(partitions) if moved else description.next
    for partition, start in zip(partitions, starts, strict=True):
        if ends[partition] < start:
            raise Failed(
                f"nothing was changed: {source}[{partition.partition}] ends at offset "
                f"{ends[partition]}, but {file} has counted it up to {start}: it is another topic"
            )
    behind = [
        (begins[p] - start, ends[p] - start) for p, start in zip(partitions, starts, strict=True)
    ]
    return sum(end for _, end in behind), sum(max(0, begin) for begin, _ in behind)


async def _check_no_copy(
    reader: AIOKafkaConsumer,
    description: Description,
    ends: Mapping[TopicPartition, int],
    file: Path,
) -> None:
    """Refuse a source that holds the last message that the state has counted of its own.

    A copy keeps messages and, where the topic does not set them, their timestamps.
    """
    for partition, end in ends.items():
        last = description.last[partition.partition]
        if last is None:
            continue
        time_ms, last_digest = last
        position = (await reader.offsets_for_times({partition: int(time_ms)}))[partition]
        if position is None:
            continue
        async for record in messages(reader, partition, position.offset, end):
            if digest(record.value) == last_digest:
                raise Failed(
                    f"nothing was changed: {partition.topic}[{partition.partition}] has a copy of "
                    f"what {file} has counted, which would count twice: expected a topic that only "
                    "devices have sent to, since they left the old one"
                )
            if record.timestamp > int(time_ms):
                break


def _moved(
    collection: CollectionConfig, records: Iterator[Record], source: bytes
) -> Iterator[Record]:
    """Yield records, each head followed by one that continues at the beginning of the source."""
    states = {state_prefix(context): context for context in contexts(collection)}
    for record in records:
        yield record
        for prefix, context in states.items():
            key = decode_key(prefix, record.key)
            if key is not None and key.name == HEAD:
                epoch = secrets.randbelow((1 << 64) - 1) + 1
                head = at_beginning(decode_head(key, record.value), epoch=epoch, source=source)
                yield Record(record.partition, *head_record(context, head))


async def _write(config: Config, changelog: str, records: Iterator[Record]) -> int:
    producer, written = LastingProducer(config.kafka.bootstrap, config.kafka.options), 0
    await producer.start()
    try:
        for partition, by_partition in groupby(records, key=attrgetter("partition")):
            batch: list[tuple[bytes, bytes | None]] = []
            for record in by_partition:
                batch.append((record.key, record.value))
                if len(batch) == _TOGETHER:
                    await producer.send_records(changelog, partition, batch)
                    batch, written = [], written + len(batch)
            await producer.send_records(changelog, partition, batch)
            written += len(batch)
    finally:
        await producer.stop()
    return written
