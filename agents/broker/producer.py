"""One producer for everything that a worker writes, replaced when it fails.

An idempotent producer that has lost its place in a partition's sequence (because its state on the
broker expired, say) fails from then on. What it has sent may still be stored later; the state
machine tolerates that, so a new producer can continue at once.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Protocol

from aiokafka import AIOKafkaProducer
from aiokafka.errors import (
    KafkaError,
    MessageSizeTooLargeError,
    TopicAuthorizationFailedError,
    UnknownError,
    UnknownTopicOrPartitionError,
)
from aiokafka.structs import RecordMetadata

from ldpstream.agents.broker import clients
from ldpstream.agents.broker.record_time import now_ms
from ldpstream.agents.broker.refusals import INVALID_RECORD, error_code, name_topic
from ldpstream.agents.config.client_options import ClientOptionError

_APPENDED: Final = 1
"""The type of a timestamp that the broker has set (LogAppendTime)."""
# These concern the message or the topic, not the producer.
_HARMLESS: Final = frozenset(
    {MessageSizeTooLargeError.errno, TopicAuthorizationFailedError.errno, INVALID_RECORD}
)

log = logging.getLogger(__name__)


class NoIdempotenceError(RuntimeError):
    """The broker does not support idempotent producers."""


class AppendWatch(Protocol):
    """Is notified of the timestamps that the broker gives to what was sent."""

    def sent(self) -> int:
        """Return the time of sending, epoch milliseconds."""

    def acknowledged(self, sent_ms: int, appended_ms: int) -> None:
        """Take the broker's timestamp of a batch sent at `sent_ms` and acknowledged now."""


class LastingProducer:
    """Sends messages, alone or in batches, all acknowledged by all replicas.

    `watch` is notified of batches sent to topics with LogAppendTime.
    """

    def __init__(
        self, bootstrap: str, options: Mapping[str, Any], *, watch: AppendWatch | None = None
    ) -> None:
        self._bootstrap = bootstrap
        self._watch = watch
        self._options = options
        self._producer: AIOKafkaProducer | None = None
        self._lock = asyncio.Lock()

    async def start(self) -> None:
        """Connect."""
        producer = clients.producer(self._bootstrap, self._options)
        try:
            await producer.start()
        except UnknownError as error:
            await clients.stop_client(producer.stop)
            if error.errno != UnknownError.errno:
                raise
            raise NoIdempotenceError(
                "the broker has no idempotent producers: set enable_idempotence = false under "
                "[kafka] if it is a development broker"
            ) from error
        except BaseException:
            await clients.stop_client(producer.stop)
            raise
        self._producer = producer

    async def stop(self) -> None:
        """Disconnect; unacknowledged messages may or may not arrive."""
        producer, self._producer = self._producer, None
        if producer is not None:
            await clients.stop_client(producer.stop)

    async def send(
        self,
        topic: str,
        partition: int | None,
        key: bytes | None,
        value: bytes | None,
        *,
        timestamp_ms: int | None = None,
    ) -> None:
        """Send a message and wait until it is acknowledged; its timestamp is now by default."""
        async with self._working_producer(topic) as producer:
            async with _refreshing_metadata(producer, topic, partition):
                sent = await producer.send(
                    topic,
                    value=value,
                    key=key,
                    partition=partition,
                    timestamp_ms=timestamp_ms,
                )
            await sent

    async def send_all(
        self,
        topic: str,
        partition: int,
        messages: Sequence[tuple[bytes, Sequence[tuple[str, bytes]]]],
    ) -> None:
        """Send messages without keys, `(value, headers)`, in as few batches as hold them.

        They go to a partition of the topic: this one, modulo their number. Returns when all are
        acknowledged.
        """
        async with (
            self._working_producer(topic) as producer,
            _refreshing_metadata(producer, topic, None),
        ):
            partitions = sorted(await producer.partitions_for(topic))
            target = partitions[partition % len(partitions)]
            records = ((None, value, headers) for value, headers in messages)
            await _send_batches(producer, topic, target, records)

    async def send_records(
        self, topic: str, partition: int, records: Sequence[tuple[bytes, bytes | None]]
    ) -> None:
        """Send messages to one partition, `(key, value)`, in as few batches as hold them.

        Returns when all are acknowledged.
        """
        async with (
            self._working_producer(topic) as producer,
            _refreshing_metadata(producer, topic, partition),
        ):
            keyed = ((key, value, ()) for key, value in records)
            sent_ms = None if self._watch is None else self._watch.sent()
            self._acknowledged(sent_ms, await _send_batches(producer, topic, partition, keyed))

    async def send_whole(
        self, topic: str, partition: int, records: Sequence[tuple[bytes, bytes | None]]
    ) -> bool:
        """Send messages to one partition, `(key, value)`, in one batch, stored whole or not at all.

        Returns True when it is acknowledged, and False, with nothing sent, if they do not fit into
        one batch.
        """
        async with (
            self._working_producer(topic) as producer,
            _refreshing_metadata(producer, topic, partition),
        ):
            batch, sent_at_ms = producer.create_batch(), now_ms()
            for key, value in records:
                if batch.append(timestamp=sent_at_ms, key=key, value=value) is None:
                    return False
            batch.close()
            sent_ms = None if self._watch is None else self._watch.sent()
            self._acknowledged(
                sent_ms, await (await producer.send_batch(batch, topic, partition=partition))
            )
            return True

    def _acknowledged(self, sent_ms: int | None, metadata: RecordMetadata) -> None:
        if self._watch is None or sent_ms is None or metadata.timestamp_type != _APPENDED:
            return
        if metadata.timestamp is not None:
            self._watch.acknowledged(sent_ms, metadata.timestamp)

    @asynccontextmanager
    async def _working_producer(self, topic: str) -> AsyncIterator[AIOKafkaProducer]:
        """Yield a working producer; an error raised inside may cause its replacement.

        The error names the topic.
        """
        async with self._lock:
            if self._producer is None:
                await self._start_again()
        producer = self._producer
        assert producer is not None
        try:
            yield producer
        except KafkaError as error:
            name_topic(error, topic)
            if not error.retriable and error_code(error) not in _HARMLESS:
                await self._replace(producer, error)
            raise

    async def _start_again(self) -> None:
        try:
            await self.start()
        except (ClientOptionError, NoIdempotenceError) as error:
            # A file with a secret or a certificate has gone since the start, or the broker refuses
            # its old contents: both may be temporary.
            raise KafkaError(str(error)) from error

    async def _replace(self, producer: AIOKafkaProducer, error: KafkaError) -> None:
        """Replace the producer before the next message; concurrent failures replace it once."""
        if self._producer is producer:
            self._producer = None
            log.debug("the producer is replaced after %r", error)
            await clients.stop_client(producer.stop)


async def _send_batches(
    producer: AIOKafkaProducer,
    topic: str,
    partition: int,
    records: Iterable[tuple[bytes | None, bytes | None, Sequence[tuple[str, bytes]]]],
) -> RecordMetadata:
    """Send `(key, value, headers)` in as few batches as hold them, until all are acknowledged.

    Returns the broker's metadata of the last batch.
    """
    sent: list[asyncio.Future[Any]] = []
    batch = producer.create_batch()
    sent_at_ms = now_ms()
    for key, value, headers in records:
        fields = {"key": key, "value": value, "headers": list(headers)}
        if batch.append(timestamp=sent_at_ms, **fields) is None:
            sent.append(
                _retrieving_error(await producer.send_batch(batch, topic, partition=partition))
            )
            batch = producer.create_batch()
            batch.append(timestamp=sent_at_ms, **fields)
            await asyncio.sleep(0)
    sent.append(_retrieving_error(await producer.send_batch(batch, topic, partition=partition)))
    metadata: list[RecordMetadata] = await asyncio.gather(*sent)
    return metadata[-1]


def _retrieving_error(sent: "asyncio.Future[Any]") -> "asyncio.Future[Any]":
    """Return a batch's future, which may fail without anybody waiting for it.

    If a batch cannot be sent, nobody waits for those before it, and asyncio would log an error.
    """
    sent.add_done_callback(lambda done: done.cancelled() or done.exception())
    return sent


@asynccontextmanager
async def _refreshing_metadata(
    producer: AIOKafkaProducer, topic: str, partition: int | None
) -> AsyncIterator[None]:
    """Refresh the metadata of an unknown partition: it may have been added since.

    The client asks for all topics of the cluster until it knows which ones it needs.
    """
    producer.client.add_topic(topic)
    try:
        yield
    except AssertionError as error:
        await producer.client.force_metadata_update()
        raise UnknownTopicOrPartitionError(f"{topic}[{partition}]") from error
