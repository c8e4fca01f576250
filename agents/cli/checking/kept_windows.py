"""Find the spec and the windows of a collection's state, from a changelog's end.

Size and hop are in every key. A running worker writes commit records, or at least one record every
few seconds for its timestamp, so the last record of a changelog comes from the latest writer. This
avoids reading the whole topic.
"""

import time
from collections.abc import Collection
from typing import Final

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaTimeoutError

from ldpstream.agents.kafka.offsets import end_offsets
from ldpstream.agents.state.records import RecordError, state_windows
from ldpstream.mechanisms.wire.spec import CollectionSpec

RECENT_MS: Final = 120_000
"""States written to within this time before the last record count as current, too."""
_STEP_OFFSETS: Final = 1_000
_WAIT_MS: Final = 1_000
_PATIENCE_SECONDS: Final = 60.0

Windows = tuple[int, int]
State = tuple[bytes, int, int]
"""A spec's fingerprint, and size and hop of the windows, ms."""


async def kept_windows(
    reader: AIOKafkaConsumer, topic: str, partitions: int, spec: CollectionSpec
) -> Collection[Windows]:
    """Return size and hop (ms) of a spec's states written to last; empty for a new topic.

    `reader` is started, and has no group.

    Raises:
        KafkaError: if the broker does not answer.
    """
    found: dict[Windows, int] = {}
    assigned = [TopicPartition(topic, partition) for partition in range(partitions)]
    ends = await end_offsets(reader, assigned)
    for partition, end in ends.items():
        last = await _last(reader, partition, end, spec)
        if last is not None:
            (_, size_ms, hop_ms), dated_ms = last
            windows = size_ms, hop_ms
            found[windows] = max(dated_ms, found.get(windows, dated_ms))
    newest_ms = max(found.values(), default=0)
    return [windows for windows, dated_ms in found.items() if newest_ms - dated_ms < RECENT_MS]


async def last_specs(reader: AIOKafkaConsumer, topic: str, partitions: int) -> set[bytes]:
    """Return the fingerprints of the specs that wrote the last record of each partition.

    Raises:
        KafkaError: if the broker does not answer.
    """
    assigned = [TopicPartition(topic, partition) for partition in range(partitions)]
    ends = await end_offsets(reader, assigned)
    found = [await _last(reader, partition, end, None) for partition, end in ends.items()]
    return {last[0][0] for last in found if last is not None}


async def _last(
    reader: AIOKafkaConsumer, partition: TopicPartition, end: int, spec: CollectionSpec | None
) -> tuple[State, int] | None:
    """Return state and timestamp of the last record, of a spec or of any; None: no record."""
    beginning = (await reader.beginning_offsets([partition]))[partition]
    stop, step = end, _STEP_OFFSETS
    while stop > beginning:
        start = max(beginning, stop - step)
        last = await _last_between(reader, partition, start, stop, spec)
        if last is not None:
            return last
        stop, step = start, step * 10
    return None


async def _last_between(
    reader: AIOKafkaConsumer,
    partition: TopicPartition,
    start: int,
    stop: int,
    spec: CollectionSpec | None,
) -> tuple[State, int] | None:
    reader.assign([partition])
    reader.seek(partition, start)
    last, deadline = None, time.monotonic() + _PATIENCE_SECONDS
    while await reader.position(partition) < stop:
        if time.monotonic() > deadline:
            raise KafkaTimeoutError(f"no answer about {partition.topic}[{partition.partition}]")
        for record in (await reader.getmany(partition, timeout_ms=_WAIT_MS)).get(partition, ()):
            state = _state(record.key, spec)
            if state is not None and record.offset < stop:
                last = state, record.timestamp
    return last


def _state(key: bytes | None, spec: CollectionSpec | None) -> State | None:
    try:
        state = state_windows(key or b"")
    except RecordError:
        return None
    return state if spec is None or state[0] == spec.fingerprint else None
