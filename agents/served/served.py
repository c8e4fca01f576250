"""What HTTP and metrics need of a running pipeline: nothing but to look.

The pipeline of `ldpstream.agents.worker` fulfils these protocols; so does anything else that keeps
tails of a collection's changelog.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Protocol

from ldpstream.agents.served.clock import WorkerClock
from ldpstream.agents.served.health import BrokerWatch
from ldpstream.agents.stores.choice import Tailed


class ServedCollection(Tailed, Protocol):
    """One collection as one worker sees it."""

    @property
    def accepted(self) -> Sequence["ServedCollection"]:
        """The same topics under the specs that it accepts beside its own."""

    @property
    def owned(self) -> AbstractSet[int]:
        """The partitions assigned to this worker."""

    @property
    def end_offsets(self) -> Mapping[int, int]:
        """The source's end offsets last seen, by partition; a partition may be missing."""

    @property
    def ready(self) -> bool:
        """Whether every tail has been at its log's end."""

    @property
    def stopped(self) -> bool:
        """Whether something stopped it for good."""

    @property
    def partial(self) -> bool:
        """Whether a part of the reports is counted elsewhere, by windows of another size or hop."""

    @property
    def problems(self) -> Sequence[str]:
        """What keeps it from working, one sentence each; empty when all is well."""


class ServedPipeline(Protocol):
    """All collections of one worker."""

    @property
    def collections(self) -> Mapping[str, ServedCollection]:
        """The collections by name."""

    @property
    def clock(self) -> WorkerClock:
        """The worker's clock, and what its broker says of it."""

    @property
    def broker_watch(self) -> BrokerWatch:
        """What tells whether the broker answers."""

    @property
    def failed(self) -> bool:
        """Whether what all collections depend on has ended: nothing but a restart helps."""
