"""Write a flush to the broker, in the order that makes it all or nothing."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from aiokafka.errors import KafkaError

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.partition.copies import Copy
from ldpstream.agents.partition.flushes import Flush
from ldpstream.agents.pipeline.identity import TopicIdentity

Headers: TypeAlias = Sequence[tuple[str, bytes]]


class Sending(Protocol):
    """Sends messages; the methods raise KafkaError if the messages may not have arrived."""

    async def send(
        self, topic: str, partition: int | None, key: bytes | None, value: bytes | None
    ) -> None:
        """Send a message; return when it is acknowledged."""

    async def send_records(
        self, topic: str, partition: int, records: Sequence[tuple[bytes, bytes | None]]
    ) -> None:
        """Send `(key, value)` in few batches; return when all are acknowledged."""

    async def send_whole(
        self, topic: str, partition: int, records: Sequence[tuple[bytes, bytes | None]]
    ) -> bool:
        """Send them as one batch; return False, having sent nothing, if they do not fit in one."""

    async def send_all(
        self, topic: str, partition: int, messages: Sequence[tuple[bytes, Headers]]
    ) -> None:
        """Send `(value, headers)` in few batches, to this partition modulo their number."""


_CELLS_A_STEP: Final = 1_000

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FlushWriter:
    """Writes the flushes of one collection."""

    collection: CollectionConfig
    sending: Sending
    identity: TopicIdentity

    async def carry(self, partition: int, flush: Flush) -> KafkaError | None:
        """Write a flush. Returns why some of it may not have arrived, or None.

        1. Send copies and cells, and wait for all acknowledgements.
        2. Check that the source is still the topic that was counted from.
        3. Send the head.

        If cells and head fit into one batch, they are sent as one, which is stored whole or not at
        all. After an error, what was sent may still be stored.

        Raises:
            SourceChangedError: before the head is sent.
        """
        changelog, cells = self.collection.topics.changelog, flush.cells
        try:
            await asyncio.gather(
                *(self._copies(partition, kind, flush.copies) for kind in ("late", "rejected")),
                # After the last message, before the head: so all messages were from the known
                # topic.
                self.check_source(),
            )
            whole = (*cells, flush.head)
            if len(cells) > _CELLS_A_STEP or not await self.sending.send_whole(
                changelog, partition, whole
            ):
                # Send cells in steps: one message may have touched a hundred thousand.
                for at in range(0, len(cells), _CELLS_A_STEP):
                    await self.sending.send_records(
                        changelog, partition, cells[at : at + _CELLS_A_STEP]
                    )
                await self.check_source()
                await self.sending.send_records(changelog, partition, (flush.head,))
        except KafkaError as error:
            log.debug("flush of %s[%d] failed: %r", changelog, partition, error)
            return error
        return None

    async def check_source(self) -> None:
        """Check that source and changelog are still the topics that were counted from.

        Raises:
            SourceChangedError: if one of them has been deleted or replaced.
            KafkaError: if the broker does not answer, or currently does not know one of them.
        """
        name, topics = self.collection.name, self.collection.topics
        then = f"`ldpstream reset {name}` starts over with it"
        await self.identity.check((topics.source, topics.changelog), then=then)

    async def _copies(self, partition: int, kind: str, copies: Sequence[Copy]) -> None:
        chosen = [(copy.value, copy.headers) for copy in copies if copy.kind == kind]
        if chosen:
            topic = (
                self.collection.topics.late if kind == "late" else self.collection.topics.rejected
            )
            await self.sending.send_all(topic, partition, chosen)
