"""What engines are given of the worker around them: producer, identities, metrics, the stream."""

import asyncio
from dataclasses import dataclass, replace
from functools import partial

from aiokafka import TopicPartition

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.kafka.producing import LastingProducer
from ldpstream.agents.metrics import Metrics
from ldpstream.agents.pipeline.clock import WorkerClock
from ldpstream.agents.pipeline.hooks import Hooks
from ldpstream.agents.pipeline.identity import TopicIdentity
from ldpstream.agents.pipeline.progress import Progress, Stream
from ldpstream.agents.reading.taking import FramesHooks


class Steering:
    """Holds partitions of the stream and lets them come again, without waiting for it."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._releases: set[asyncio.Task[None]] = set()

    def hold(self, source: str, partition: int) -> None:
        """Let nothing of a partition come for now."""
        self._stream.hold(TopicPartition(source, partition))

    def release(self, source: str, partition: int, offset: int) -> None:
        """Let a partition come again, from an offset on."""
        task = asyncio.create_task(self._stream.release(TopicPartition(source, partition), offset))
        self._releases.add(task)
        task.add_done_callback(self._releases.discard)


@dataclass(frozen=True)
class Surroundings:
    """What all engines of a worker share."""

    producer: LastingProducer
    identity: TopicIdentity
    progress: Progress
    metrics: Metrics
    steering: Steering
    clock: WorkerClock

    def hooks(self, collection: CollectionConfig, *, accepted: bool) -> Hooks:
        """Return the hooks of a collection's engine, or of one for a spec that it accepts."""
        topics, name = collection.topics, collection.name
        hooks = Hooks(
            sending=self.producer,
            source_id=partial(self.identity.source_id, topics),
            source_partitions=partial(self.identity.partitions, topics),
            check_source=partial(self.identity.check, name, topics),
            won=partial(self.progress.won, collection),
            hold=partial(self.steering.hold, topics.source),
            release=partial(self.steering.release, topics.source),
            now_ms=self.clock.now_ms,
            trouble=lambda: self.clock.problem,
            frames=FramesHooks(
                told=partial(self.metrics.packed, name),
                lag=partial(self.metrics.pack_lag, name),
            ),
        )
        if not accepted:
            return hooks
        # The stream is steered by the collection's own engine, and the group's view is its view.
        return replace(
            hooks,
            won=partial(self.progress.won, collection, accepted=True),
            hold=lambda _: None,
            release=lambda *_: None,
        )
