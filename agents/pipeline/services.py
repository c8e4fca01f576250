"""What all engines of a worker share: producer, topic identities, metrics, progress."""

from dataclasses import dataclass
from functools import partial

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.kafka.producing import LastingProducer
from ldpstream.agents.metrics import Metrics
from ldpstream.agents.pipeline.hooks import Hooks
from ldpstream.agents.pipeline.identity import TopicIdentity
from ldpstream.agents.pipeline.progress import Progress
from ldpstream.agents.reading.taking import FramesHooks
from ldpstream.agents.served.clock import WorkerClock


@dataclass(frozen=True)
class Services:
    """The services that all engines of a worker share."""

    producer: LastingProducer
    identity: TopicIdentity
    progress: Progress
    metrics: Metrics
    clock: WorkerClock

    def hooks(self, collection: CollectionConfig, *, accepted: bool) -> Hooks:
        """Return the callbacks for a collection's own engine, or that of an accepted spec."""
        topics, name = collection.topics, collection.name
        return Hooks(
            sending=self.producer,
            source_id=partial(self.identity.source_id, topics),
            source_partitions=partial(self.identity.partitions, topics),
            check_source=partial(self.identity.check, name, topics),
            # Progress in the group is that of the collection's own spec.
            won=partial(self.progress.won, collection, accepted=accepted),
            now_ms=self.clock.now_ms,
            trouble=lambda: self.clock.problem,
            frames=FramesHooks(
                told=partial(self.metrics.packed, name),
                lag=partial(self.metrics.pack_lag, name),
            ),
        )
