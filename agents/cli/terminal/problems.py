"""What `ldpstream check` looks at, once the configuration is read.

The spec and the windows of a collection's state come from the end of its changelog: they are in
every key, and a running worker writes a record every few seconds, so the last record of a changelog
is from the latest writer. That avoids reading the whole topic.
"""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

import click
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError, KafkaTimeoutError

from ldpstream.agents.broker.clients import max_batch_bytes, replication_factor
from ldpstream.agents.broker.groups import (
    FAUST_PROTOCOL,
    TopicReader,
    count_workers,
    describe_group,
    has_coordinator,
    may_list_groups,
    topic_readers,
)
from ldpstream.agents.broker.metadata import (
    count_brokers,
    describe,
    missing_on_group,
    missing_on_topic,
    missing_on_topics,
)
from ldpstream.agents.broker.offsets import end_offsets
from ldpstream.agents.broker.refusals import NO_COORDINATOR, explain
from ldpstream.agents.broker.shards import ADDRESS_OPERATIONS
from ldpstream.agents.broker.topic_settings import (
    broker_settings,
    unwise_settings,
    wrong_settings,
)
from ldpstream.agents.broker.topics import TopicError, check_topics, refused_topics
from ldpstream.agents.cli.terminal import broker
from ldpstream.agents.cli.terminal.common import count
from ldpstream.agents.cli.terminal.errors import Failed
from ldpstream.agents.config import CollectionConfig, Config, KafkaConfig, WorkerConfig
from ldpstream.agents.config.client_options import ClientOptionError, group_times
from ldpstream.agents.config.worker import is_group
from ldpstream.agents.edge.gateway_process import check_gateway
from ldpstream.agents.engine.loading import differences
from ldpstream.agents.state.encoding import split_state
from ldpstream.agents.state.records import RecordError
from ldpstream.agents.state.windows import WindowIdentity
from ldpstream.agents.web import HttpUnavailableError, check_serving
from ldpstream.mechanisms.wire.spec import CollectionSpec

_STEP_OFFSETS: Final = 1_000
_RECENT_MS: Final = 120_000
"""States written to within this time before the last record count as current, too."""
_WAIT_MS: Final = 1_000
_PATIENCE_SECONDS: Final = 60.0

_SESSION_LIMITS: Final = ("group.min.session.timeout.ms", "group.max.session.timeout.ms")
_MOST_MEMBERS: Final = "group.max.size"

_State = tuple[bytes, WindowIdentity]
"""A spec's fingerprint, and size and hop of the windows, ms."""


def find_problems(config: Config, config_file: str) -> list[str]:
    """Return what would keep a worker from running, one sentence each; prints what exists."""
    problems = _check_http(config)
    try:
        group_times(config.kafka.options, static=config.worker.instance is not None)
    except ClientOptionError as error:
        problems.append(str(error))
    try:
        return problems + broker.run(_check(config), config.kafka, config_file)
    except Failed as error:
        # Without an answer from the broker, still report what was found before.
        return [*problems, error.message]


def _check_http(config: Config) -> list[str]:
    problems = []
    try:
        check_serving(config.worker)
    except HttpUnavailableError as error:
        problems.append(str(error))
    try:
        check_gateway(config)
    except HttpUnavailableError as error:
        problems.append(str(error))
    # Both check worker.token, and report the same problem.
    return list(dict.fromkeys(problems))


async def _check(config: Config) -> list[str]:
    async with broker.admin(config.kafka) as admin:
        brokers = count_brokers(admin)
        click.echo(f"{config.kafka.bootstrap}: {count(brokers, 'broker')}")
        problems = [*_check_replication(config.kafka, brokers)]
        missing = {}
        for name, collection in config.collections.items():
            missing[name], wrong = await _check_collection(admin, collection, config.kafka)
            problems += wrong
        await _tell_of_readers(admin, config, missing)
        problems += await _check_addresses(admin, config.worker)
        problems += await missing_on_group(admin, config.group)
        problems += await _check_group(admin, config)
        if not problems:
            problems += await _check_windows(admin, config, missing)
        # Starting an idempotent producer already requires its permission.
        try:
            async with broker.producer(config.kafka):
                click.echo("producer: permitted")
        except KafkaError as error:
            return [*problems, await explain(error, config.kafka)]
        factor = replication_factor(config.kafka.options, brokers=brokers)
        if config.kafka.options.get("enable_idempotence", True) and factor <= brokers:
            # A broker without idempotent producers may create topics that it should only validate.
            for name, collection in config.collections.items():
                problems += await refused_topics(
                    admin, collection, missing[name], replication_factor=factor
                )
    return problems


def _check_replication(kafka: KafkaConfig, brokers: int) -> Iterator[str]:
    factor = replication_factor(kafka.options, brokers=brokers)
    if factor > brokers:
        yield (
            f"kafka.replication_factor: expected at most {count(brokers, 'broker')}, got {factor}"
        )


async def _check_collection(
    admin: AIOKafkaAdminClient, collection: CollectionConfig, kafka: KafkaConfig
) -> tuple[Sequence[str], list[str]]:
    """Return the names of a collection's missing topics, and what is wrong."""
    try:
        existing, missing = await check_topics(admin, collection)
    except TopicError as error:
        return (), [str(error)]
    for name, partitions in _partitions(collection).items():
        if name in missing:
            click.echo(f"{name}: missing; a worker creates it, {count(partitions, 'partition')}")
        else:
            click.echo(f"{name}: {count(existing[name].partitions, 'partition')}")
    for line in await unwise_settings(admin, collection, existing):
        click.echo(line)
    batch_bytes = max_batch_bytes(kafka.options)
    wrong = await wrong_settings(admin, collection, existing, batch_bytes=batch_bytes)
    return missing, [*missing_on_topics(collection, existing), *wrong]


async def _check_group(admin: AIOKafkaAdminClient, config: Config) -> list[str]:
    """Return why the broker would refuse a worker in its group, as far as it shows its limits."""
    problems = []
    limits = await broker_settings(admin, [*_SESSION_LIMITS, _MOST_MEMBERS])
    least, most = (int(limits[name]) if name in limits else None for name in _SESSION_LIMITS)
    with suppress(ClientOptionError):  # It has been reported.
        times = group_times(config.kafka.options, static=config.worker.instance is not None)
        if least is not None and most is not None and not least <= times.session_ms <= most:
            problems.append(
                f"kafka.session_timeout_ms: expected {least} to {most}, as the broker's "
                f"{' and '.join(_SESSION_LIMITS)} say, got {times.session_ms}"
            )
    if not await has_coordinator(admin, config.group):
        problems.append(f"group {config.group} (COORDINATOR_NOT_AVAILABLE): {NO_COORDINATOR}")
        return problems
    group = await describe_group(admin, config.group)
    if group.members and (group.protocol_type, group.protocol) not in {FAUST_PROTOCOL, ("", "")}:
        problems.append(
            f"group {config.group}: other software uses it, by the protocol "
            f"{group.protocol or group.protocol_type}: give the workers a worker.id of their own"
        )
    if 0 < int(limits.get(_MOST_MEMBERS, 0)) <= len(group.members):
        click.echo(
            f"group {config.group}: note: it has {count(len(group.members), 'member')}, as many as "
            f"the broker's {_MOST_MEMBERS} allows: another worker gets no partitions"
        )
    return problems


async def _tell_of_readers(
    admin: AIOKafkaAdminClient, config: Config, missing: Mapping[str, Sequence[str]]
) -> None:
    """Say who else reads the sources: workers of another deployment would count all again."""
    collections = {
        collection.topics.source: collection
        for name, collection in config.collections.items()
        if collection.topics.source not in missing[name]
    }
    if not collections:
        return
    partitions = {source: collection.partitions for source, collection in collections.items()}
    try:
        readers, complete = await topic_readers(admin, partitions), await may_list_groups(admin)
    except KafkaError:
        readers, complete = [], False
    if not complete:
        click.echo(
            "groups: note: whether others read the sources was not looked at: this login may not "
            "list them (Describe on the cluster)"
        )
    for reader in readers:
        collection = collections[reader.topic]
        own = {collection.topics.changelog}
        if is_group(reader.group_id, config.worker.id):
            own.add("")  # Before their first commit.
        if reader.changelog not in own:
            click.echo(f"{reader.topic}: {_describe_reader(reader, collection.name)}")


def _describe_reader(reader: TopicReader, name: str) -> str:
    """Return what to say of a group whose state, if it has any, is not that of these workers."""
    group, members = reader.group_id, count(reader.members, "member")
    if not reader.changelog:
        by = f", by the protocol {reader.protocol}" if reader.protocol else ""
        return f"note: group {group}, {members}, reads it too{by}"
    if reader.changelog.endswith(f"-{name}-changelog"):
        consequence = (
            "every report counts in both, and `minimum` holds only for the answers of one. To "
            "share the work, give all the same worker.id; or stop the others, and delete their "
            "group"
        )
    else:
        consequence = (
            f"not as {name}: those under one name reject the reports made for the other. Give the "
            "collection one name, or each name its own topic"
        )
    return (
        f"warning: other workers count it too, in group {group} ({members}, as far as the broker "
        f"says), with their state in {reader.changelog}: {consequence}"
    )


async def _check_addresses(admin: AIOKafkaAdminClient, worker: WorkerConfig) -> list[str]:
    """Return what is wrong with the topic of workers' addresses, if they advertise any."""
    if worker.advertise is None:
        return []
    topic = worker.addresses_topic
    state = (await describe(admin, [topic])).get(topic)
    if state is None:
        click.echo(f"{topic}: missing; a worker creates it, 1 partition")
        return []
    click.echo(f"{topic}: {count(state.partitions, 'partition')}")
    return [*missing_on_topic(topic, state, ADDRESS_OPERATIONS)]


async def _check_windows(
    admin: AIOKafkaAdminClient, config: Config, missing: Mapping[str, Sequence[str]]
) -> list[str]:
    """Refuse windows that differ from those of running workers: each would count a part.

    Says where the state is of another spec.
    """
    begun = [
        (name, collection)
        for name, collection in config.collections.items()
        if collection.topics.changelog not in missing[name]
    ]
    if not begun:
        return []
    running = await count_workers(admin, config.worker.id)
    problems = []
    async with broker.reader(config.kafka) as reader:
        for name, collection in begun:
            topic = collection.topics.changelog
            partitions = (await describe(admin, [topic]))[topic].partitions
            fingerprints = {
                spec_config.spec.fingerprint for spec_config in (collection, *collection.accept)
            }
            written, stored_windows = await _last_states(reader, topic, partitions, collection.spec)
            for other in sorted(written - fingerprints):
                click.echo(
                    f"{name}: note: the state in {topic} is of another spec, {other.hex()}: a "
                    "worker rejects its reports and does not publish its open windows, unless its "
                    f"file is named under collection.{name}.accept"
                )
            for differ in filter(
                None, (differences(collection, windows) for windows in stored_windows)
            ):
                if running:
                    problems.append(
                        f"collection {name}: the state in {topic} has {differ}, and "
                        f"{count(running, 'worker')} with id {config.worker.id} may be using it: "
                        "workers with different windows count a part of the reports each; stop "
                        "them first"
                    )
                else:
                    click.echo(
                        f"{name}: note: the state in {topic} has {differ}: a worker counts all "
                        "that the source still holds into windows of its own"
                    )
    return problems


def _partitions(collection: CollectionConfig) -> dict[str, int]:
    topics = collection.topics
    single = {topics.estimates, topics.control}
    return {name: 1 if name in single else collection.partitions for name in topics.names()}


async def _last_states(
    reader: AIOKafkaConsumer, topic: str, partitions: int, spec: CollectionSpec
) -> tuple[set[bytes], Collection[WindowIdentity]]:
    """Return the specs of each partition's last record, and the windows of `spec` written to last.

    `reader` is started, and has no group.
    """
    fingerprints, dates_ms = set[bytes](), dict[WindowIdentity, int]()
    assigned = [TopicPartition(topic, partition) for partition in range(partitions)]
    for partition, end in (await end_offsets(reader, assigned)).items():
        last = await _last_state(reader, partition, end, None)
        if last is None:
            continue
        fingerprints.add(last[0][0])
        if last[0][0] != spec.fingerprint:
            last = await _last_state(reader, partition, end, spec)
        if last is not None:
            (_, windows), dated_ms = last
            dates_ms[windows] = max(dated_ms, dates_ms.get(windows, dated_ms))
    newest_ms = max(dates_ms.values(), default=0)
    return fingerprints, [
        windows for windows, dated_ms in dates_ms.items() if newest_ms - dated_ms < _RECENT_MS
    ]


async def _last_state(
    reader: AIOKafkaConsumer, partition: TopicPartition, end: int, spec: CollectionSpec | None
) -> tuple[_State, int] | None:
    """Return state and timestamp of the last record, of a spec or of any; None: no record."""
    beginning = (await reader.beginning_offsets([partition]))[partition]
    stop, step = end, _STEP_OFFSETS
    while stop > beginning:
        start = max(beginning, stop - step)
        last = await _last_state_between(reader, partition, start, stop, spec)
        if last is not None:
            return last
        stop, step = start, step * 10
    return None


async def _last_state_between(
    reader: AIOKafkaConsumer,
    partition: TopicPartition,
    start: int,
    stop: int,
    spec: CollectionSpec | None,
) -> tuple[_State, int] | None:
    reader.assign([partition])
    reader.seek(partition, start)
    last, deadline = None, time.monotonic() + _PATIENCE_SECONDS
    while await reader.position(partition) < stop:
        if time.monotonic() > deadline:
            raise KafkaTimeoutError(f"no answer about {partition.topic}[{partition.partition}]")
        for record in (await reader.getmany(partition, timeout_ms=_WAIT_MS)).get(partition, ()):
            state = _state_of(record.key, spec)
            if state is not None and record.offset < stop:
                last = state, record.timestamp
    return last


def _state_of(key: bytes | None, spec: CollectionSpec | None) -> _State | None:
    try:
        _, fingerprint, windows = split_state(key or b"")
    except RecordError:
        return None
    return (fingerprint, windows) if spec is None or fingerprint == spec.fingerprint else None
