"""The few insides of Faust that are used here, in one place, for one pinned version.

Faust commits what was acknowledged, which is not what we have made durable, and its own commit of
chosen offsets ends the worker when the broker is away; it cannot seek without leaving its thread;
and it reads records of aborted transactions unless it is told to write transactions too.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Container, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Any, Final, cast

import faust
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import IllegalStateError, KafkaError
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer, Transport
from faust.types import TP, ConsumerMessage

from ldpstream.agents.kafka.unpacking import BATCH_BYTES, bound
from ldpstream.agents.kafka.unreadable import pass_unreadable

STREAM_BYTES: Final = 16_384
TOO_LONG: Final = b"too long for the stream"
"""Stands, as this very object, for a message that Faust has not kept."""
_CALL_SECONDS: Final = 5.0

log = logging.getLogger(__name__)


class FaustStream:
    """What the pipeline may ask of an app's consumer; harmless before the app has started."""

    def __init__(self, app: faust.App) -> None:
        self._app = app
        self._pausing: set[TopicPartition] = set()
        self._pause: asyncio.Task[None] | None = None

    async def commit(self, offsets: Mapping[TopicPartition, int]) -> bool:
        """Commit next offsets for the group's view of progress; False if that did not work.

        Nothing here ever reads them back but Faust, to know where its stream begins.
        """
        assigned = self._assigned()
        ours = {partition: offset for partition, offset in offsets.items() if partition in assigned}
        try:
            return bool(ours) and await self._call(_commit, ours) is not None
        except (KafkaError, IllegalStateError):
            return False

    async def pass_unreadable(self, topics: Container[str], *, most_bytes: int) -> None:
        """Read on where a batch of these topics cannot be read: Faust would end the app.

        One that unpacks to more than `most_bytes` is not read either.
        """
        await self._call(_pass_unreadable, topics, most_bytes)

    async def ends(self) -> Mapping[TopicPartition, int]:
        """Return where the partitions of the stream end, as its last fetches said."""
        return await self._call(_highwaters) or {}

    def hold(self, partition: TopicPartition) -> None:
        """Let nothing come of a partition for now, from the loop's next turn on."""
        if partition in self._assigned():
            self._pausing.add(partition)
            if self._pause is None or self._pause.done():
                self._pause = asyncio.create_task(self._pause_all())

    async def _pause_all(self) -> None:
        """Fetch nothing of what is held: all at once, however many there are.

        Faust looks at every partition that it has, for each call.
        """
        while self._pausing:
            pausing = self._pausing & self._assigned()
            self._pausing.clear()
            self._app.consumer.pause_partitions({TP(*partition) for partition in pausing})
            # Faust only leaves out what has been fetched, and all of that would wait in memory.
            await self._call(_pause, pausing)

    async def release(self, partition: TopicPartition, offset: int) -> None:
        """Let a partition come again, from an offset on."""
        self._pausing.discard(partition)
        if await self._call(_seek, partition, offset) and partition in self._assigned():
            self._app.consumer.resume_partitions({TP(*partition)})

    async def leave(self) -> bool:
        """Leave the group, so that others get the partitions; False where it did not work.

        In an app that is not ours others may be using the consumer: it stays.
        """
        if not isinstance(self._app, WorkerApp) or not self._assigned():
            return False
        return bool(await self._call(_leave))

    async def come_back(self) -> bool:
        """Subscribe again to what the app's agents read; False where it did not work."""
        with suppress(KafkaError, RuntimeError):
            topics = cast("Any", self._app.topics)
            # What the conductor does itself when its topics change.
            await self._app.consumer.subscribe(await topics._update_indices())  # noqa: SLF001 (no other way)
            return True
        return False

    @property
    def _thread(self) -> AIOKafkaConsumerThread:
        consumer = cast("Consumer", self._app.consumer)
        return consumer._thread  # noqa: SLF001 (nothing public leads to the thread of the client)

    def _assigned(self) -> AbstractSet[TopicPartition]:
        consumer = self._thread._consumer  # noqa: SLF001 (nor to the client, None at first)
        return frozenset() if consumer is None else consumer.assignment()

    async def _call(self, function: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
        """Call a function of the consumer in its own thread; None if there is none to answer."""
        thread = self._thread
        consumer = thread._consumer  # noqa: SLF001 (nor to the client, None at first)
        if consumer is None:
            return None
        try:
            called = thread.call_thread(function, consumer, *arguments)
            return await asyncio.wait_for(called, _CALL_SECONDS)
        except TimeoutError:
            return None
        except RuntimeError:
            # An app that stops while its broker is away ends the thread, and keeps its partitions.
            if not thread.thread_loop.is_closed():
                raise
            return None


async def _leave(consumer: AIOKafkaConsumer) -> bool:
    consumer.unsubscribe()
    return True


async def _commit(consumer: AIOKafkaConsumer, offsets: Mapping[TopicPartition, int]) -> bool:
    # It asks for the group's coordinator without end, and the thread calls two functions at a time.
    async with asyncio.timeout(_CALL_SECONDS):
        await consumer.commit(dict(offsets))
    return True


async def _pass_unreadable(
    consumer: AIOKafkaConsumer, topics: Container[str], most_bytes: int
) -> None:
    pass_unreadable(consumer, only=topics)
    bound(consumer, most_bytes=most_bytes)


async def _highwaters(consumer: AIOKafkaConsumer) -> dict[TopicPartition, int]:
    ends = {partition: consumer.highwater(partition) for partition in consumer.assignment()}
    return {partition: end for partition, end in ends.items() if end is not None}


async def _pause(consumer: AIOKafkaConsumer, partitions: AbstractSet[TopicPartition]) -> None:
    fetcher = consumer._fetcher  # noqa: SLF001 (aiokafka has no way to drop what it fetched)
    for partition in partitions & consumer.assignment():
        consumer.pause(partition)
        if fetcher is not None:
            # What waits has not been consumed: it is fetched again.
            fetcher._records.pop(partition, None)  # noqa: SLF001 (as it does itself, on a seek)


async def _seek(consumer: AIOKafkaConsumer, partition: TopicPartition, offset: int) -> bool:
    if partition not in consumer.assignment():
        return False
    consumer.seek(partition, offset)
    consumer.resume(partition)
    return True


class _CommittedThread(AIOKafkaConsumerThread):
    def _create_worker_consumer(self, transport: Any) -> AIOKafkaConsumer:
        consumer = super()._create_worker_consumer(transport)
        # Read when the consumer starts. Faust asks for it under exactly_once alone, which also
        # makes producers transactional.
        consumer._isolation_level = "read_committed"  # noqa: SLF001 (no setting for this alone)
        return consumer

    async def on_start(self) -> None:
        await super().on_start()
        app = cast("WorkerApp", self.app)
        assert self._consumer is not None
        pass_unreadable(self._consumer)
        bound(self._consumer, most_bytes=app.batch_bytes)

    def highwater(self, tp: TP) -> int:
        """Return where a partition ends; 0 for one that the worker has just left."""
        try:
            return super().highwater(tp)
        except AssertionError:
            # aiokafka asserts that the partition is assigned.
            return 0

    async def on_thread_stop(self) -> None:
        # aiokafka's own waiting tasks cancel whoever stops a consumer while the broker is away.
        with suppress(asyncio.CancelledError):
            await super().on_thread_stop()

    def on_crash(self, msg: str, *fmt: Any, **_: Any) -> None:
        """Leave it to the worker to say in its own words why it ends; Faust prints a traceback."""
        log.debug(msg.format(*fmt), exc_info=True)


class _CommittedConsumer(Consumer):
    """Keeps no long messages: Faust's buffers hold thousands, whatever their length.

    They are read without the group, as all that the stream leaves out.
    """

    def _to_message(self, tp: TP, record: Any) -> ConsumerMessage:
        message = super()._to_message(tp, record)
        if message.value is not None and len(message.value) > STREAM_BYTES:
            message.value = TOO_LONG
        return message

    def _new_consumer_thread(self) -> AIOKafkaConsumerThread:
        return _CommittedThread(self, loop=self.loop, beacon=self.beacon)


class _CommittedTransport(Transport):
    Consumer = _CommittedConsumer


class WorkerApp(faust.App):
    """A Faust app that reads committed records only, of batches that unpack within a bound."""

    def __init__(self, name: str, *, batch_bytes: int = BATCH_BYTES, **settings: Any) -> None:
        super().__init__(name, **settings)
        self.batch_bytes = batch_bytes

    def _create_directories(self) -> None:
        """Make none: without tables nothing is kept on disk."""

    def _new_transport(self) -> Transport:
        return _CommittedTransport(self.conf.broker_consumer, self)
