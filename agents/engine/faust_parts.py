"""All uses of Faust's internals, in one place, for one pinned version.

Three defaults of Faust do not fit:

- It commits what was acknowledged, which is not durable yet, and its own method to commit given
  offsets ends the worker when the broker is away.
- It fetches its assigned partitions, which are read without a group here.
- It assigns topics with equal numbers of partitions together, as joins of tables require: of three
  workers, one would own all of six collections with one partition.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Any, Final, cast

import faust
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.cluster import ClusterMetadata
from aiokafka.errors import IllegalStateError, KafkaConnectionError, KafkaError
from faust.assignor.client_assignment import ClientAssignment
from faust.assignor.partition_assignor import (
    MemberAssignmentMapping,
    MemberMetadataMapping,
    PartitionAssignor,
)
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer, Transport

from ldpstream.agents.broker.groups import assign
from ldpstream.agents.broker.patches.joining_members import is_joining, leave_while_joining
from ldpstream.agents.broker.patches.refused_members import refused_member
from ldpstream.agents.broker.patches.static_membership import (
    DisplacedError,
    give_up_place,
    keep_place,
)
from ldpstream.agents.engine.source import Batch

_CALL_SECONDS: Final = 5.0
_RETRY_SECONDS: Final = 0.1
_TRIES: Final = 100

log = logging.getLogger(__name__)


class BatchChannel(faust.Channel[Batch]):
    """Carries the batches of one collection to its agent; unbounded: the sender keeps it short."""

    @property
    def queue(self) -> Any:
        """The queue, created on first use and shared with the channel's readers."""
        if self._root is not None:
            return self._root.queue
        if self._queue is None:
            self._queue = self.app.FlowControlQueue(maxsize=0)
        return self._queue

    def send_batch(self, batch: Batch) -> None:
        """Append a batch, at once: Faust's own `send` has to be awaited."""
        self.queue.put_nowait(batch)

    def empty(self) -> bool:
        """Return whether it holds no batch."""
        return bool(self.queue.empty())


def add_agent(
    app: faust.App, channel: BatchChannel, name: str, count_batches: Callable[[Any], Any]
) -> None:
    """Add an agent as `app.agent` does, without registering it for a scan of modules.

    Registering reads the caller's source, which takes 15 ms for each of many agents.
    """
    failed = app._on_agent_error  # noqa: SLF001 (what every agent of an app is given)
    agent = faust.Agent(count_batches, name=name, app=app, channel=channel, on_error=failed)
    app.agents[name] = agent
    app.topics.beacon.add(agent)


class FaustGroup:
    """The group of an app's consumer; all methods are harmless before the app has started."""

    def __init__(self, app: faust.App) -> None:
        self._app = app
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def id(self) -> str:
        """The name of the group."""
        return str(self._app.conf.id)

    @property
    def session_ms(self) -> int:
        """How long a silent member keeps its partitions."""
        return round(self._app.conf.broker_session_timeout * 1000)

    async def commit(self, offsets: Mapping[TopicPartition, int]) -> bool:
        """Commit next offsets to show the group's progress; return whether that succeeded.

        All or none. Only Faust reads them back, to decide where its stream would begin.
        """
        try:
            ours = offsets.keys() <= self._assigned()
            return ours and bool(await self._call(_commit, offsets))
        except (KafkaError, IllegalStateError):
            return False

    def silence(self, partitions: AbstractSet[TopicPartition]) -> None:
        """Keep Faust's client from fetching partitions that have just been assigned."""
        task = asyncio.create_task(self._silence(partitions))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _silence(self, partitions: AbstractSet[TopicPartition]) -> None:
        for _ in range(_TRIES):
            if await self._call(_silence, partitions) or not partitions & self._assigned():
                return
            await asyncio.sleep(_RETRY_SECONDS)
        log.error("Faust's client cannot be kept from fetching what is read otherwise")

    async def refusal(self) -> KafkaError | None:
        """Return why the broker refuses this member; its client then tries again."""
        refused: KafkaError | None = await self._call(_refusal)
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
            # What Faust's listener does when partitions are revoked.
            self._app.on_rebalance_start()
            await cast("Consumer", self._app.consumer).on_partitions_revoked({*assigned})
        return bool(await self._call(_leave))

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

    def _assigned(self) -> AbstractSet[TopicPartition]:
        consumer = self._thread._consumer  # noqa: SLF001 (nor to the client, None at first)
        return frozenset() if consumer is None else consumer.assignment()

    async def _call(self, function: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
        """Call a function of the consumer in its own thread; return None if that is not running."""
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
            # An app that stops while its broker is away ends the thread but keeps its partitions.
            if not thread.thread_loop.is_closed():
                raise
            return None


async def _refusal(consumer: AIOKafkaConsumer) -> KafkaError | None:
    coordinator = consumer._coordinator  # noqa: SLF001 (nothing public leads to it, None at first)
    return None if coordinator is None else refused_member(coordinator)


async def _leave(consumer: AIOKafkaConsumer) -> bool:
    if consumer._group_instance_id is not None:  # noqa: SLF001 (what Faust was given)
        await give_up_place(consumer._coordinator)  # noqa: SLF001 (nothing public leads to it)
    consumer.unsubscribe()
    return True


async def _commit(consumer: AIOKafkaConsumer, offsets: Mapping[TopicPartition, int]) -> bool:
    if is_joining(consumer._coordinator):  # noqa: SLF001 (nothing public leads to it)
        return False
    # It looks for the group's coordinator without a limit, and the thread runs only two calls at a
    # time.
    async with asyncio.timeout(_CALL_SECONDS):
        await consumer.commit(dict(offsets))
    return True


async def _silence(consumer: AIOKafkaConsumer, partitions: AbstractSet[TopicPartition]) -> bool:
    fetcher = consumer._fetcher  # noqa: SLF001 (aiokafka has no way to drop what it fetched)
    # The consumer's own objects: it refuses Faust's equal ones, and `&` may return either.
    for partition in [own for own in consumer.assignment() if own in partitions]:
        consumer.pause(partition)
        subscription = consumer._subscription.subscription  # noqa: SLF001 (what Faust looks at)
        state = subscription.assignment.state_value(partition)
        # Faust logs an error where one of these is None, or the last fetch is five minutes ago.
        state.timestamp, state.highwater = float("inf"), state.highwater or 0
        if fetcher is not None:
            fetcher._records.pop(partition, None)  # noqa: SLF001 (as it does itself, on a seek)
    return True


class _QuietThread(AIOKafkaConsumerThread):
    async def on_start(self) -> None:
        """Connect, waiting for a broker that has gone away since the worker started."""
        while not self.should_stop:
            with suppress(KafkaConnectionError):
                await super().on_start()
                break
            assert self._consumer is not None
            await self._consumer.stop()
            await asyncio.sleep(_RETRY_SECONDS)
        if self._consumer is not None and self.app.conf.consumer_group_instance_id is not None:
            keep_place(self._consumer._coordinator, self._displaced)  # noqa: SLF001 (nothing public leads to it)

    def _displaced(self) -> None:
        conf = self.app.conf
        error = DisplacedError(
            f"another process has joined the group {conf.id} as the instance "
            f"{conf.consumer_group_instance_id}: each worker needs one of its own"
        )
        asyncio.run_coroutine_threadsafe(self.app.crash(error), self.parent_loop)

    async def on_thread_stop(self) -> None:
        coordinator = getattr(self._consumer, "_coordinator", None)
        leaving: asyncio.Task[None] | None = None
        # A static member keeps its partitions, for when it returns.
        if coordinator is not None and self.app.conf.consumer_group_instance_id is None:
            leaving = asyncio.create_task(leave_while_joining(coordinator))
        # aiokafka's own waiting tasks cancel the task that stops a consumer while the broker is
        # away.
        with suppress(asyncio.CancelledError):
            await super().on_thread_stop()
        if leaving is not None:
            leaving.cancel()

    def on_crash(self, msg: str, *fmt: Any, **_: Any) -> None:
        """Leave it to the worker to report why it ends; Faust would print a traceback."""
        log.debug(msg.format(*fmt), exc_info=True)


class _QuietConsumer(Consumer):
    async def verify_all_partitions_active(self) -> None:
        """Do not look for stalled partitions: this client never fetches its assigned ones."""

    def _new_consumer_thread(self) -> AIOKafkaConsumerThread:
        return _QuietThread(self, loop=self.loop, beacon=self.beacon)


class _QuietTransport(Transport):
    Consumer = _QuietConsumer


class EvenAssignor(PartitionAssignor):
    """Spreads the partitions of each topic, and of all, for an app without tables."""

    def _perform_assignment(
        self, cluster: ClusterMetadata, member_metadata: MemberMetadataMapping
    ) -> MemberAssignmentMapping:
        clients = {m: self._get_client_metadata(said) for m, said in member_metadata.items()}
        self._update_member_urls(clients)
        subscribed = {m: said.subscription for m, said in member_metadata.items()}
        topics = {topic for every in subscribed.values() for topic in every}
        owned = {m: said.assignment.active_tps for m, said in clients.items()}
        known = cast("WorkerApp", self.app).partitions
        partitions = {t: max(known[t], len(cluster.partitions_for_topic(t) or ())) for t in topics}
        found = {}
        for member, every in assign(owned, subscribed, partitions).items():
            actives: dict[str, list[int]] = {}
            for topic, partition in sorted(every):
                actives.setdefault(topic, []).append(partition)
            found[member] = ClientAssignment(actives=actives, standbys={})
        # Without tables, nothing asks which member has a key, or which topics go together.
        return self._protocol_assignments(found, {}, {}, {})


class WorkerApp(faust.App):
    """A Faust app that leaves reporting errors to the worker."""

    partitions: Counter[str]
    """The least numbers of partitions, so that a leader can assign even without the broker."""

    def _create_directories(self) -> None:
        """Create none: without tables nothing is kept on disk."""

    def _new_transport(self) -> Transport:
        return _QuietTransport(self.conf.broker_consumer, self)
