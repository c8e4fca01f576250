"""The read-only interface of a running pipeline for HTTP and metrics.

The pipeline of `ldpstream.agents.worker` implements these protocols; anything else that keeps
replicas of a collection's changelog can do so, too.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol

from ldpstream.agents.broker.health import BrokerWatch
from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.engine.clock import WorkerClock
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.replica import Replica
from ldpstream.mechanisms.base.times import format_time


@dataclass(frozen=True)
class Wait:
    """A partition that open windows wait for.

    `window_end_ms`, epoch ms, is the end of the oldest of them; `seconds` is for how long they have
    waited, beyond the idle time.
    """

    partition: int
    window_end_ms: int
    seconds: float
    reason: str

    def __str__(self) -> str:
        """Return it as a sentence."""
        since = f" for {self.seconds:,.0f} s longer than usual" if self.seconds >= 1 else ""
        end = format_time(self.window_end_ms)
        return f"windows up to {end} wait for partition {self.partition}{since}: {self.reason}"


class Described(Protocol):
    """A collection that this worker or another one runs."""

    @property
    def config(self) -> CollectionConfig:
        """The collection's configuration."""

    @property
    def ready(self) -> bool:
        """Whether it can be queried."""

    @property
    def accepted(self) -> Sequence["Described"]:
        """The same topics under the specs that it accepts in addition to its own."""


class WorkerCollection(Protocol):
    """One collection as one worker sees it."""

    @property
    def config(self) -> CollectionConfig:
        """The collection's configuration."""

    @property
    def context(self) -> Context:
        """What the collection's state machine needs."""

    @property
    def replicas(self) -> Sequence[Replica]:
        """The reader of every partition's changelog, by partition."""

    @property
    def accepted(self) -> Sequence["WorkerCollection"]:
        """The same topics under the specs that it accepts in addition to its own."""

    @property
    def owned(self) -> AbstractSet[int]:
        """The partitions assigned to this worker."""

    @property
    def end_offsets(self) -> Mapping[int, int]:
        """The source's end offsets last seen, by partition; a partition may be missing."""

    @property
    def ready(self) -> bool:
        """Whether every replica has reached its log's end."""

    @property
    def stopped(self) -> bool:
        """Whether it has stopped for good because of an error."""

    @property
    def partial(self) -> bool:
        """Whether a worker with other windows counts part of the reports."""

    @property
    def waits(self) -> Sequence[Wait]:
        """The partitions that open windows wait for."""

    @property
    def notices(self) -> Sequence[str]:
        """What waits for other workers, one sentence each; it works all the same."""

    @property
    def problems(self) -> Sequence[str]:
        """The problems that keep it from working, one sentence each; empty if there are none."""


class WorkerPipeline(Protocol):
    """All collections of one worker."""

    @property
    def collections(self) -> Mapping[str, WorkerCollection]:
        """The collections by name."""

    @property
    def clock(self) -> WorkerClock:
        """The worker's clock, and how far the broker's differs."""

    @property
    def broker_watch(self) -> BrokerWatch:
        """Whether the broker answers."""

    @property
    def failed(self) -> bool:
        """Whether what all collections depend on has ended, so that only a restart helps."""
