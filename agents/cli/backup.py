"""`ldpstream backup`: store a collection's state in a file, compressed, one JSON object a line.

The first line says of which collection, topic and moment it is. The records follow in the order in
which they have to be written: cells first, then heads, partition 0's last. Without its heads a cell
counts for nothing, so a restore that ends early leaves no state that looks whole. Gzip's checksum
covers all of it.
"""

import asyncio
import gzip
import hashlib
import json
import time
import zlib
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, NamedTuple

import click
from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from ldpstream.agents.broker.groups import count_members, worker_groups
from ldpstream.agents.broker.metadata import TopicState, describe
from ldpstream.agents.broker.offsets import end_offsets
from ldpstream.agents.broker.record_time import now_ms
from ldpstream.agents.cli.terminal import broker
from ldpstream.agents.cli.terminal.common import count, load_collection
from ldpstream.agents.cli.terminal.errors import Failed, Refused
from ldpstream.agents.config import CollectionConfig, Config
from ldpstream.agents.engine.changelog import ChangelogReader
from ldpstream.agents.engine.contexts import make_context
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.encoding import state_prefix
from ldpstream.agents.state.records import Head
from ldpstream.agents.state.replica import Replica, fits, head_record, live_records
from ldpstream.mechanisms.base.files import check_replaceable, replaced_file
from ldpstream.mechanisms.base.times import format_time

_PATIENCE_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.1
_POLL_MS: Final = 500
_FORMAT: Final = "ldpstream-backup-1"


@dataclass(frozen=True, kw_only=True)
class Description:
    """The first line of a back-up.

    - `time`: when it was made, RFC 3339. `workers`: how many were counting then.
    - `source`: the topic that was counted, `source_id` its id, empty if the broker has none.
    - `states`: the `state_prefix` of each state, hexadecimal, the collection's own first.
    - `next`: by partition, the first offset of the source not counted. `uncounted`: how many
      offsets the source had beyond. `last`: `[timestamp, SHA-256]` of the message before `next`,
      None if there is none: a copy of the source is known by it.
    """

    collection: str
    time: str
    workers: int
    source: str
    source_id: str
    states: Sequence[str]
    next: Sequence[int]
    uncounted: int
    last: Sequence[Sequence[int | str] | None]


class Record(NamedTuple):
    """A record of a changelog's partition."""

    partition: int
    key: bytes
    value: bytes


@dataclass(frozen=True)
class _State:
    """One state of the collection, at one moment: heads and cells by partition."""

    context: Context
    heads: Sequence[Head]
    cells: Sequence[Sequence[tuple[bytes, bytes]]]


class _SharedLog:
    """Replicas of all states in one partition: of one prefix of its log, so they fit together."""

    def __init__(self, replicas: Sequence[Replica]) -> None:
        self._replicas = replicas

    def read(
        self, records: Sequence[tuple[int, bytes, bytes | None]], *, position: int, end: int
    ) -> bool:
        evaluated = [r.read(records, position=position, end=end) for r in self._replicas]
        return all(evaluated)


def back_up(config_file: str, name: str, file: Path) -> None:
    """Store the state of a collection in a file."""
    config, collection = load_collection(config_file, name)
    try:
        check_replaceable(file)
    except ValueError as error:
        raise Refused(str(error)) from error
    try:
        description, size, left_out = broker.run(
            _backup(config, collection, file), config.kafka, config_file
        )
    except OSError as error:
        raise Refused(f"{file}: {error.strerror or error}") from error
    states = count(len(description.states), "state")
    click.echo(f"{file}: {states} of {name}, {count(size, 'byte')}")
    source = description.source
    if description.uncounted:
        uncounted = count(description.uncounted, "message")
        click.echo(f"{uncounted} of {source} not counted by then: they will be after a restore")
    elif description.workers:
        running = count(description.workers, "worker")
        click.echo(f"all of {source} counted by then, with {running} still counting")
    else:
        click.echo(f"all of {source} counted, and no worker runs: it can move to another cluster")
    for fingerprint in left_out:
        click.echo(
            f"left out: the state of another spec, {fingerprint.hex()}, which is not under "
            f"collection.{name}.accept",
            err=True,
        )


async def _backup(
    config: Config, collection: CollectionConfig, file: Path
) -> tuple[Description, int, Sequence[bytes]]:
    topics = collection.topics
    async with broker.admin(config.kafka) as admin:
        topic_states = await describe(admin, [topics.source, topics.changelog])
        for topic in (topics.source, topics.changelog):
            if topic not in topic_states:
                raise Failed(f"topic {topic} does not exist: {collection.name} has no state")
            if (present := topic_states[topic].partitions) != collection.partitions:
                raise Failed(
                    f"topic {topic} has {present} partitions, but collection.{collection.name}."
                    f"partitions is {collection.partitions}: expected those of the workers"
                )
        running = await count_workers_of(admin, config, collection)
        async with broker.reader(config.kafka) as reader:
            states, left_out = await _read_states(reader, collection, running=running)
        _check_source(collection, states, topic_states[topics.source])
        # One that has started meanwhile counts on.
        running = max(running, await count_workers_of(admin, config, collection))
        async with broker.reader(config.kafka) as reader:
            source = [TopicPartition(topics.source, p) for p in range(collection.partitions)]
            ends = await end_offsets(reader, source)
            counted = _counted(states, collection.partitions)
            last = [
                await _last(reader, partition, counted[partition.partition]) for partition in source
            ]
        description = _describe(
            collection, states, topic_states[topics.source], ends, running, last
        )
    records = _records(states, collection.partitions)
    return description, await asyncio.to_thread(write_backup, file, description, records), left_out


async def count_workers_of(
    admin: AIOKafkaAdminClient, config: Config, collection: CollectionConfig
) -> int:
    """Return how many workers count a collection, in all shards, 0 if the broker does not say."""
    groups = await worker_groups(admin, config.worker.id)
    source = collection.topics.source
    return sum([await count_members(admin, group, topic=source) for group in groups])


def contexts(collection: CollectionConfig) -> list[Context]:
    """Return the state machine's view of a collection, then of each spec that it accepts."""
    return [
        make_context(spec_config, partitions=collection.partitions, accepted=place > 0)
        for place, spec_config in enumerate((collection, *collection.accept))
    ]


async def _read_states(
    reader: AIOKafkaConsumer, collection: CollectionConfig, *, running: int
) -> tuple[list[_State], Sequence[bytes]]:
    """Read the changelog until what was read of its partitions fits together.

    Returns the collection's states, and fingerprints of others.
    """
    all_contexts, changelog = contexts(collection), collection.topics.changelog
    replicas = [
        [Replica(context, p) for p in range(collection.partitions)] for context in all_contexts
    ]
    broken: list[str] = []
    logs = {
        TopicPartition(changelog, p): _SharedLog([state[p] for state in replicas])
        for p in range(collection.partitions)
    }
    reading = ChangelogReader(
        reader,
        logs,
        on_read=lambda _: None,
        on_broken=lambda p, why: broken.append(f"{p.topic}[{p.partition}] cannot be used: {why}"),
    )
    task = asyncio.create_task(reading.run())
    try:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while (read_states := _states(all_contexts, replicas, running=running)) is None:
            if task.done():
                task.result()
            if broken:
                raise Failed(f"nothing was stored: the state in {broken[0]}")
            if time.monotonic() > deadline:
                raise Failed(
                    f"nothing was stored: the partitions of {changelog} do not fit together after "
                    f"{_PATIENCE_SECONDS:g} s: stop the workers, and try again"
                )
            await asyncio.sleep(_LOOK_SECONDS)
        return read_states, replicas[0][0].others.left_behind()
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def _states(
    all_contexts: Sequence[Context], replicas: Sequence[Sequence[Replica]], *, running: int
) -> list[_State] | None:
    """Return the states that replicas show now; None while their partitions do not fit together."""
    states = []
    for context, partitions in zip(all_contexts, replicas, strict=True):
        heads = [replica.head for replica in partitions if replica.head is not None]
        if len(heads) < len(partitions) or not fits(context, heads, running=running > 0):
            return None
        states.append(_State(context, heads, [live_records(replica) for replica in partitions]))
    return states


def _check_source(
    collection: CollectionConfig, states: Sequence[_State], source: TopicState
) -> None:
    """Refuse states of a topic that was deleted: there is nothing that could go on from them."""
    ids = {b"", b"" if source.id is None else source.id.bytes}
    if any(head.source not in ids for state in states for head in state.heads):
        raise Failed(
            f"nothing was stored: topic {collection.topics.source} is another one than the state "
            f"was counted from; `ldpstream reset {collection.name}` starts over with it"
        )


def _describe(
    collection: CollectionConfig,
    states: Sequence[_State],
    source: TopicState,
    ends: Mapping[TopicPartition, int],
    running: int,
    last: Sequence[Sequence[int | str] | None],
) -> Description:
    by_partition = {partition.partition: end for partition, end in ends.items()}
    counted = _counted(states, collection.partitions)
    return Description(
        collection=collection.name,
        time=format_time(now_ms()),
        workers=running,
        source=collection.topics.source,
        source_id="" if source.id is None else source.id.hex,
        states=[state_prefix(state.context).hex() for state in states],
        next=counted,
        uncounted=sum(max(0, by_partition[p] - at) for p, at in enumerate(counted)),
        last=last,
    )


def _counted(states: Sequence[_State], partitions: int) -> list[int]:
    """Return, by partition, the first offset that a state has not counted."""
    return [min(state.heads[p].next for state in states) for p in range(partitions)]


async def _last(
    reader: AIOKafkaConsumer, partition: TopicPartition, counted: int
) -> Sequence[int | str] | None:
    """Return `[timestamp, SHA-256]` of the message before an offset, None if there is none."""
    if not counted:
        return None
    async for record in messages(reader, partition, counted - 1, counted):
        return [record.timestamp, digest(record.value)]
    return None


async def messages(
    reader: AIOKafkaConsumer, partition: TopicPartition, first: int, end: int
) -> AsyncIterator[ConsumerRecord[bytes, bytes]]:
    """Yield the messages of a partition in `[first, end)` that are there, in order.

    There has to be something at `end`, or the log ends there.
    """
    reader.assign([partition])
    (begin,) = (await reader.beginning_offsets([partition])).values()
    reader.seek(partition, max(first, begin))
    while await reader.position(partition) < end:
        for record in (await reader.getmany(partition, timeout_ms=_POLL_MS)).get(partition, ()):
            if record.offset < end:
                yield record


def digest(value: bytes | None) -> str:
    """Return the SHA-256 of a message, hexadecimal."""
    return hashlib.sha256(value or b"").hexdigest()


def _records(states: Sequence[_State], partitions: int) -> Iterator[Record]:
    for state in states:
        for partition, cells in enumerate(state.cells):
            for key, value in cells:
                yield Record(partition, key, value)
    # A head makes cells count, and partition 0's refers to those of all others.
    for partition in reversed(range(partitions)):
        for state in states:
            if (head := state.heads[partition]).seq:
                yield Record(partition, *head_record(state.context, head))


def write_backup(file: Path, description: Description, records: Iterable[Record]) -> int:
    """Write a back-up, readable by its owner alone, and return its length in bytes.

    A file of this name is replaced once the new one is whole.
    """
    with (
        replaced_file(file, mode=0o600) as raw,
        gzip.open(raw, "wt", encoding="ascii", compresslevel=6) as out,
    ):
        out.write(json.dumps({"format": _FORMAT, **asdict(description)}) + "\n")
        for partition, key, value in records:
            line = [partition, b64encode(key).decode(), b64encode(value).decode()]
            out.write(json.dumps(line) + "\n")
    return file.stat().st_size


def read_description(file: Path) -> Description:
    """Return the first line of a back-up, after checking that the whole file can be read."""
    lines = _lines(file)
    head = next(lines, None)
    if not isinstance(head, dict) or head.pop("format", None) != _FORMAT:
        raise Refused(f"{file}: expected a file that `ldpstream backup` wrote")
    for _ in lines:
        pass
    return Description(**head)


def read_records(file: Path) -> Iterator[Record]:
    """Yield the records of a back-up."""
    lines = _lines(file)
    next(lines)
    for line in lines:
        assert isinstance(line, list), "the description is the only object"
        yield Record(line[0], b64decode(line[1]), b64decode(line[2]))


def _lines(file: Path) -> Iterator[object]:
    try:
        with gzip.open(file, "rt", encoding="ascii") as lines:
            yield from map(json.loads, lines)
    except OSError as error:
        reason = error.strerror or "expected a file that `ldpstream backup` wrote"
        raise Refused(f"{file}: {reason}") from error
    except (EOFError, zlib.error, ValueError) as error:
        raise Refused(f"{file}: damaged or cut short: {error}") from error
