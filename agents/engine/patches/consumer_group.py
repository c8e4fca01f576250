"""The consumer group of a Faust app, as a pipeline uses it.

Faust commits what was acknowledged, which is not durable yet, and its own method to commit given
offsets ends the worker when the broker is away. So `FaustGroup` commits by the client itself.

Seen in Faust 0.15. Nothing is installed: the methods call into the thread of the app's client.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Any, Final, cast

import faust
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import IllegalStateError, KafkaError
from aiokafka.structs import OffsetAndMetadata
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer

from ldpstream.agents.broker.patches.joining_members import is_joining
from ldpstream.agents.broker.patches.refused_members import coordinator_of, refused_member
from ldpstream.agents.broker.patches.static_membership import give_up_place
from ldpstream.agents.engine.patches.silent_partitions import silence
from ldpstream.agents.engine.patches.worker_app import WorkerApp

_CALL_SECONDS: Final = 5.0
_RETRY_SECONDS: Final = 0.1
_TRIES: Final = 100

log = logging.getLogger(__name__)


class FaustGroup:
    """The group of an app's consumer; all methods are harmless before the app has started."""

    def __init__(self, app: faust.App, topics: AbstractSet[str] = frozenset()) -> None:
        self._app = app
        self._topics = topics
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def id(self) -> str:
        """The name of the group."""
        return str(self._app.conf.id)

    @property
    def session_ms(self) -> int:
        """How long a silent member keeps its partitions."""
        return round(self._app.conf.broker_session_timeout * 1000)

    async def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> bool:
        """Commit next offsets to show the group's progress; return whether that succeeded.

        Commits every offset or, on any error, none. Only Faust reads them back, to decide where its
        stream would begin.
        """
        return offsets.keys() <= self._assigned() and bool(await self._call(_commit, offsets))

    def silence(self, partitions: AbstractSet[TopicPartition]) -> None:
        """Keep Faust's client from fetching partitions that have just been assigned."""
        task = asyncio.create_task(self._silence(partitions))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _silence(self, partitions: AbstractSet[TopicPartition]) -> None:
        for _ in range(_TRIES):
            if await self._call(silence, partitions) or not partitions & self._assigned():
                return
            await asyncio.sleep(_RETRY_SECONDS)
        log.error("Faust's client cannot be kept from fetching what is read otherwise")

    async def refusal(self) -> KafkaError | None:
        """Return why the broker refuses this member; its client then tries again.

        The client also asks again about the pipeline's topics that it does not know.
        """
        refused: KafkaError | None = await self._call(_refusal, self._topics)
        return refused

    async def leave(self) -> bool:
        """Leave the group, so that others get the partitions; return False if that failed.

        Faust distributes all topics of an app together. So in a user's app its other agents stop
        here too, as in a rebalance, and continue in other instances of the group.
        """
        assigned = self._assigned()
        if not assigned:
            return False
        if not isinstance(self._app, WorkerApp):
            if self._app.rebalancing:
                # A subscription that is gone ends an app which restores its tables.
                return False
            # What Faust's listener does when partitions are revoked.
            self._app.on_rebalance_start()
            await cast("Consumer", self._app.consumer).on_partitions_revoked({*assigned})
        static = self._app.conf.consumer_group_instance_id is not None
        return bool(await self._call(_leave, static))

    async def come_back(self) -> bool:
        """Subscribe again to what the app's agents read; return whether that succeeded."""
        with suppress(KafkaError, RuntimeError):
            topics = cast("Any", self._app.topics)
            # What the conductor does when its topics change.
            await self._app.consumer.subscribe(await topics._update_indices())  # noqa: SLF001 (no other way)
            return True
        return False

    @property
    def _thread(self) -> AIOKafkaConsumerThread:
        consumer = cast("Consumer", self._app.consumer)
        return consumer._thread  # noqa: SLF001 (nothing public leads to the thread of the client)

    @staticmethod
    def _client(thread: AIOKafkaConsumerThread) -> AIOKafkaConsumer | None:
        return thread._consumer  # noqa: SLF001 (nor to the client, None at first)

    def _assigned(self) -> AbstractSet[TopicPartition]:
        consumer = self._client(self._thread)
        return frozenset() if consumer is None else consumer.assignment()

    async def _call(self, function: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
        """Call a function of the consumer in its own thread; return None if that is not running."""
        thread = self._thread
        consumer = self._client(thread)
        if consumer is None:
            return None
        try:
            async with asyncio.timeout(_CALL_SECONDS):
                return await thread.call_thread(function, consumer, *arguments)
        except TimeoutError:
            return None
        except RuntimeError:
            # An app that stops while its broker is away ends the thread but keeps its partitions.
            if not thread.thread_loop.is_closed():
                raise
            return None


async def _refusal(consumer: AIOKafkaConsumer, topics: AbstractSet[str]) -> KafkaError | None:
    if any(consumer.partitions_for_topic(t) is None for t in topics & consumer.subscription()):
        # A broker may not have heard of a new topic yet. Faust leaves its partitions to nobody
        # then, and the client would ask again after `metadata_max_age_ms`, five minutes.
        consumer._client.force_metadata_update()  # noqa: SLF001 (nothing public asks at once)
    coordinator = coordinator_of(consumer)
    return None if coordinator is None else refused_member(coordinator)


async def _leave(consumer: AIOKafkaConsumer, static: bool) -> bool:
    if static:
        await give_up_place(coordinator_of(consumer))
    consumer.unsubscribe()
    return True


async def _commit(
    consumer: AIOKafkaConsumer, offsets: Mapping[TopicPartition, OffsetAndMetadata]
) -> bool:
    if is_joining(coordinator_of(consumer)):
        return False
    try:
        # It looks for the group's coordinator without a limit, and the thread runs only two calls
        # at a time.
        async with asyncio.timeout(_CALL_SECONDS):
            await consumer.commit(dict(offsets))
    except (KafkaError, IllegalStateError):
        # The client says the latter of partitions that a rebalance has just taken.
        return False
    return True
