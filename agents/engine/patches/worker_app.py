"""The Faust app of a worker, whose client waits for a broker and reports no errors by itself.

Faust's own client ends the app if the broker is away at its start, prints a traceback when it
crashes, and looks for stalled partitions, although this one never fetches its assigned ones.

Seen in Faust 0.15. A user's app keeps Faust's own client.
"""

import asyncio
import logging
from collections import Counter
from contextlib import suppress
from typing import Any, Final

import faust
from aiokafka.errors import KafkaConnectionError
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer, Transport

from ldpstream.agents.broker.patches.joining_members import leave_while_joining
from ldpstream.agents.broker.patches.refused_members import coordinator_of
from ldpstream.agents.broker.patches.static_membership import DisplacedError, keep_place
from ldpstream.agents.broker.refusals import FENCED_INSTANCE_ID, error_code

_RETRY_SECONDS: Final = 0.1

log = logging.getLogger(__name__)


class QuietThread(AIOKafkaConsumerThread):
    """The thread of the client: waits for the broker, keeps its place, leaves when it ends."""

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
            keep_place(coordinator_of(self._consumer), self._displaced)

    def _displaced(self) -> None:
        conf = self.app.conf
        error = DisplacedError(conf.id, conf.consumer_group_instance_id)
        asyncio.run_coroutine_threadsafe(self.app.crash(error), self.parent_loop)

    async def on_thread_stop(self) -> None:
        """Leave the group, also while it waits for other members; a static member stays."""
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


class QuietConsumer(Consumer):
    """Faust's face of the client."""

    async def verify_all_partitions_active(self) -> None:
        """Skip the search for stalled partitions: this client never fetches its assigned ones."""

    def _new_consumer_thread(self) -> AIOKafkaConsumerThread:
        return QuietThread(self, loop=self.loop, beacon=self.beacon)


class QuietTransport(Transport):
    """Makes the client."""

    Consumer = QuietConsumer


class WorkerApp(faust.App):
    """A Faust app that leaves reporting errors to the worker."""

    partitions: Counter[str]
    """The least numbers of partitions, so that a leader can assign even without the broker."""

    def describe_crash(self) -> str:
        """Return why the app has crashed."""
        reason = self.crash_reason
        # aiokafka raises its own error of a displaced instance, too, and either may come first.
        if reason is not None and error_code(reason) == FENCED_INSTANCE_ID:
            reason = DisplacedError(self.conf.id, self.conf.consumer_group_instance_id)
        return str(reason) if isinstance(reason, DisplacedError) else repr(reason)

    def _create_directories(self) -> None:
        """Create none: without tables nothing is kept on disk."""

    def _new_transport(self) -> Transport:
        return QuietTransport(self.conf.broker_consumer, self)
