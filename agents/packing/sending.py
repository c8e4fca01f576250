"""Send packed messages, retrying until they are acknowledged."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from aiokafka.errors import KafkaError, MessageSizeTooLargeError

from ldpstream.agents.kafka.complaints import Complaints
from ldpstream.agents.kafka.producing import LastingProducer
from ldpstream.agents.metrics.packing import PackMetrics
from ldpstream.agents.packing.assigned import AssignedPartition
from ldpstream.agents.packing.joining import halves
from ldpstream.agents.state.packed import Packed, encode_packed

RETRY_SECONDS: Final = 1.0


@dataclass(frozen=True)
class PackedSender:
    """Sends packed messages to the frames topics, with a producer that the caller starts.

    `topic_ids` are the ids of the source topics, 16 bytes, or empty if the broker has no ids.
    """

    topic_ids: Mapping[str, bytes]
    producer: LastingProducer
    metrics: PackMetrics
    _complaints: Complaints = field(default_factory=Complaints)

    async def send_all(self, share: AssignedPartition, cut: Sequence[Packed]) -> None:
        """Send messages of a partition one by one; stop early if it is given up."""
        left = list(reversed(cut))
        while left and not share.given_up:
            left += reversed(await self._send(share, left.pop()))

    async def _send(self, share: AssignedPartition, packed: Packed) -> Sequence[Packed]:
        """Send one message until it is acknowledged; return what to send instead, if too large."""
        (name, partition), frames = share.named, share.collection.topics.frames
        assert frames is not None
        topic_id = self.topic_ids[share.source.topic]
        value = encode_packed(packed, partition=partition, topic_id=topic_id)
        while not share.given_up:
            try:
                await self.producer.send(frames, partition, None, value)
            except MessageSizeTooLargeError:
                parts = halves(packed)
                self.metrics.left_out(name, 0 if parts else 1)
                return parts
            except KafkaError as error:
                self.metrics.failed(name)
                self._complaints.note(share.source, error, f"topic {frames}[{partition}]")
                await asyncio.sleep(RETRY_SECONDS)
            else:
                self.metrics.packed(name, len(packed.records), len(value))
                break
        self._complaints.over(share.source)
        return ()
