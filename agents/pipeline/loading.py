"""Loading the partitions that a worker owns, from the replicas of their changelog."""

import logging
import secrets
import time
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.partition.partition import Partition
from ldpstream.agents.pipeline.identity import SourceChangedError, TopicIdentity
from ldpstream.agents.pipeline.sibling_specs import SiblingSpecs
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.gathered import missing
from ldpstream.agents.state.replica import Replica

RETRY_SECONDS: Final = 1.0

log = logging.getLogger(__name__)


class Loader:
    """Loads the partitions of one collection, each under its own epoch."""

    def __init__(
        self,
        title: str,
        config: CollectionConfig,
        context: Context,
        replicas: Sequence[Replica],
        identity: TopicIdentity,
    ) -> None:
        self._title = title
        self._config = config
        self._context = context
        self._replicas = replicas
        self._identity = identity
        self._grown = False
        self._not_before: dict[int, float] = {}

    def pause(self, partition: int) -> None:
        """Delay the next load of this partition, because it could not be written."""
        self._not_before[partition] = time.monotonic() + RETRY_SECONDS

    def worth_trying(self, partitions: AbstractSet[int]) -> list[int]:
        """Return those of these partitions that partition 0's head allows to be loaded.

        Trying the others one by one would take long with thousands of them.
        """
        first = self._replicas[0].head
        if first is None or not partitions:
            return []
        return [p for p in partitions if p == 0 or p < first.partitions]

    def load(self, partition: int, others: SiblingSpecs) -> Partition | None:
        """Load a partition; return None if that is not possible yet.

        Raises:
            SourceChangedError: if its state was counted from another topic of this name.
        """
        if time.monotonic() < self._not_before.get(partition, 0.0):
            return None
        siblings = others.siblings(partition)
        if siblings is None:
            return None
        state = Partition.load(
            self._context,
            partition,
            self._replicas,
            epoch=secrets.randbelow((1 << 64) - 1) + 1,
            source=self._identity.source_id(self._config.topics),
            siblings=siblings,
        )
        if state is not None and state.base.source not in {b"", state.work.source}:
            raise SourceChangedError(
                f"topic {self._config.topics.source} is another one than its state was counted "
                f"from: it was created again; `ldpstream reset {self._config.name}` starts over "
                "with it"
            )
        return state

    @property
    def problem(self) -> str:
        """Why nothing can be loaded, if panes are missing in partition 0; empty if none are."""
        if not missing(self._replicas):
            return ""
        return (
            "partition 0 of its changelog lacks panes that it stores for all partitions: it was "
            f"emptied or cut, or is being read; `ldpstream reset {self._config.name}` counts "
            "again what the source still holds"
        )

    def known_partitions(self) -> int:
        """Return the number of the source's partitions; if more than configured, time stands still.

        If windows closed without the new partitions, all their reports would be late.
        """
        found, configured = self._identity.partitions(self._config.topics), self._config.partitions
        if found > configured and not self._grown:
            log.warning(
                "collection %s: topic %s now has %d partitions, but collection.%s.partitions is "
                "%d: no window closes until all workers are restarted with %d",
                *(self._title, self._config.topics.source, found, self._config.name, configured),
                found,
            )
        self._grown = found > configured
        return max(found, configured)
