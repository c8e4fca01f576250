"""What all engines of a worker share: producer, topic identities, metrics, progress and clock."""

from dataclasses import dataclass

from ldpstream.agents.metrics import Metrics
from ldpstream.agents.pipeline.flush_writer import Sending
from ldpstream.agents.pipeline.identity import TopicIdentity
from ldpstream.agents.pipeline.progress import Progress
from ldpstream.agents.served.clock import Clock


@dataclass(frozen=True)
class Services:
    """The services that all engines of a worker share."""

    sending: Sending
    identity: TopicIdentity
    progress: Progress
    metrics: Metrics
    clock: Clock
