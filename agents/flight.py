"""Carrying a flush to the broker, in the order that makes it count all or nothing."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from aiokafka.errors import KafkaError

from ldpstream.agents.copies import Copy
from ldpstream.agents.outcomes import Flush
from ldpstream.agents.topics import Topics

Send = Callable[
    [str, int | None, bytes | None, bytes, Sequence[tuple[str, bytes]]], Awaitable[None]
]
"""Sends `(topic, partition, key, value, headers)`; returns when it has been acknowledged."""

log = logging.getLogger(__name__)


class SourceChangedError(RuntimeError):
    """The source topic is not the one that the state was counted from."""


@dataclass(frozen=True)
class Carrier:
    """Sends the flushes of one collection."""

    topics: Topics
    send: Send
    check_source: Callable[[], Awaitable[None]]
    """Raises SourceChangedError, or KafkaError if the broker cannot tell."""

    async def carry(self, partition: int, flush: Flush) -> KafkaError | None:
        """Send cells and copies and, once all are acknowledged, the head.

        Returns why any of it may not have arrived, or None; what was sent may land all the same.

        Raises:
            SourceChangedError: before the head is sent.
        """
        changelog = self.topics.changelog
        try:
            await asyncio.gather(
                *(self.send(changelog, partition, key, value, ()) for key, value in flush.cells),
                *(self._copy(copy) for copy in flush.copies),
                # After the last message, before the head: all of them were of the known topic.
                self.check_source(),
            )
            await self.send(changelog, partition, *flush.head, ())
        except KafkaError as error:
            log.debug("flush of %s[%d] failed: %r", changelog, partition, error)
            return error
        return None

    def _copy(self, copy: Copy) -> Awaitable[None]:
        topic = self.topics.late if copy.kind == "late" else self.topics.rejected
        return self.send(topic, None, None, copy.value, copy.headers)
