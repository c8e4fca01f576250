"""Load the partitions that a worker owns, from the replicas of their changelog.

If a collection accepts several specs, each has a state of its own over the same topics.
`ldpstream.agents.state.loading` decides which state handles which messages; here each state is
given the heads of the others, and the operator is warned. Another state may also come from a worker
that is configured otherwise by mistake (`ConflictingWorkers`).
"""

import logging
import secrets
import time
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

from ldpstream.agents.broker.identity import SourceChangedError, TopicIdentity
from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.loading import OtherHeads, included
from ldpstream.agents.state.partition import Partition
from ldpstream.agents.state.replica import Replica, behind
from ldpstream.agents.state.windows import NEVER, WindowIdentity
from ldpstream.mechanisms.base.times import format_duration

_RETRY_SECONDS: Final = 1.0
RECENT_SECONDS: Final = 120.0
"""How long another state counts as active after its last record."""

log = logging.getLogger(__name__)


def waits_for(title: str, replicas: Sequence[Replica], partitions: Iterable[int]) -> str:
    """Return the problem of waiting for a stopped accepted state; empty if it has handed over.

    `partitions` are those that the collection's own state has not loaded.
    """
    heads = (replicas[partition].head for partition in partitions)
    if all(head is not None and head.cutover != NEVER for head in heads):
        return ""
    return f"it waits for {title} to hand over, which has stopped"


@dataclass(eq=False)
class Loader:
    """Loads the partitions of one collection, each under its own epoch."""

    title: str
    config: CollectionConfig
    context: Context
    replicas: Sequence[Replica]
    identity: TopicIdentity
    other_states: Sequence[Sequence[Replica]] = ()
    """The replicas, by partition, of the collection's other states: first its own state, if this is
    an accepted one."""
    assigned: int = 0
    """How many partitions the source has at least, because the group has assigned them."""
    _warned: set[str] = field(default_factory=set)
    _not_before: dict[int, float] = field(default_factory=dict)

    def pause(self, partition: int) -> None:
        """Delay the next load of this partition, because it could not be written."""
        self._not_before[partition] = time.monotonic() + _RETRY_SECONDS

    def loadable_partitions(self, partitions: AbstractSet[int]) -> list[int]:
        """Return those of these partitions, maybe thousands, that partition 0's head includes.

        These are none while it lacks panes that it stores for all partitions (`problem`).
        """
        most = 0 if partitions and behind(self.replicas) else included(self.replicas)
        return [partition for partition in partitions if partition < most]

    def load(self, partition: int) -> Partition | None:
        """Load a partition; return None if that is not possible yet."""
        other_heads = self._other_heads(partition)
        if other_heads is None or time.monotonic() < self._not_before.get(partition, 0.0):
            return None
        state = Partition.load(
            self.context,
            partition,
            self.replicas,
            epoch=secrets.randbelow((1 << 64) - 1) + 1,
            source=self.identity.topic_id(self.config.topics.source),
            other_heads=other_heads,
        )
        if state is not None and state.base.source not in {b"", state.work.source}:
            raise SourceChangedError(
                f"topic {self.config.topics.source} is another one than its state was counted "
                "from: it was created again, or the state was copied from another cluster, whose "
                f"offsets mean nothing here; `ldpstream reset {self.config.name}` starts over with "
                "it, and with `--restore FILE` a back-up goes on there"
            )
        if state is not None and not self.context.accepted:
            self._warn_of_specs(state, self.replicas[partition].others.left_behind())
        return state

    def _other_heads(self, partition: int) -> OtherHeads | None:
        """Return the heads of the other states, or None until all have been read to their end."""
        heads = [replicas[partition].head for replicas in self.other_states]
        read_heads = tuple(head for head in heads if head is not None)
        if len(read_heads) < len(heads):
            return None
        if self.context.accepted:
            return OtherHeads(read_heads[0], read_heads[1:])
        return OtherHeads(None, read_heads)

    def problem(self, unloaded: AbstractSet[int]) -> str:
        """Return why these partitions cannot be loaded, if an operator has to act; else empty."""
        if unloaded and behind(self.replicas):
            return (
                "partition 0 of its changelog lacks panes that it stores for all partitions: it "
                f"was emptied or cut, or is being read; `ldpstream reset {self.config.name}` "
                "counts again what the source still holds"
            )
        return ""

    def notice(self, unloaded: AbstractSet[int]) -> str:
        """Return which of these partitions was added, and waits for other workers' restart.

        That is no problem of this worker: where each is restarted once the one before is ready,
        the others would never be.
        """
        head, added = self.replicas[0].head, max(unloaded, default=0)
        if not (head and head.seq) or added < included(self.replicas):
            return ""
        return (
            f"partition {added} was added, and waits for the owner of partition 0: restart all "
            f"workers with collection.{self.config.name}.partitions = {self.config.partitions}"
        )

    def known_partitions(self) -> int:
        """Return the number of the source's partitions; if more than configured, time stands still.

        If windows closed without the new partitions, all their reports would be late.
        """
        if self.added:
            self._warn(f"collection {self.title}: {self.added}")
        return max(self._source_partitions, self.config.partitions)

    @property
    def added(self) -> str:
        """What partitions that were added to the source wait for; empty if there are none."""
        configured, present = self.config.partitions, self._source_partitions
        if present <= configured:
            return ""
        single = present == configured + 1
        new = f"partition {configured} waits" if single else f"{configured} to {present - 1} wait"
        return (
            f"topic {self.config.topics.source} now has {present} partitions, but "
            f"collection.{self.config.name}.partitions is {configured}: "
            f"{'' if single else 'partitions '}{new}, and no window closes, until all workers are "
            f"restarted with {present}"
        )

    @property
    def _source_partitions(self) -> int:
        return max(self.assigned, self.identity.partitions(self.config.topics.source))

    def _warn_of_specs(self, state: Partition, left_behind: Iterable[bytes]) -> None:
        """Warn that messages of other specs may have nobody to decide or count them."""
        name = self.config.name
        if state.work.cutover != NEVER:
            self._warn(
                f"collection {name}: its state was handed over to another spec: messages that are "
                f"not reports of {self.config.spec.fingerprint.hex()} are left to workers that "
                "accept it; to go back to it for good, name that spec's file under "
                f"collection.{name}.accept"
            )
            return
        for fingerprint in left_behind:
            self._warn(
                f"collection {name}: its changelog also holds the state of another spec, "
                f"{fingerprint.hex()}: reports of that one are rejected, and its open windows are "
                f"not published, unless its file is named under collection.{name}.accept"
            )

    def _warn(self, text: str) -> None:
        """Log a warning, each text once: what it warns of may be intended."""
        if text not in self._warned:
            self._warned.add(text)
            log.warning("%s", text)


class ConflictingWorkers:
    """Detects workers with the same id but different windows: each counts only part of the reports.

    The windows are in the state's key, so such workers split one source between two states, whose
    records they both write into one changelog.
    """

    def __init__(self, config: CollectionConfig) -> None:
        self._config = config
        self._last_seq: dict[tuple[int, WindowIdentity], int] = {}
        self._moved: dict[WindowIdentity, float] = {}
        self.problem = ""
        """The problem, as text; empty if there is none."""

    def update(self, replicas: Iterable[Replica], seconds: float) -> None:
        """Update the problem from what the replicas show at a time of the monotonic clock."""
        for replica in replicas:
            for windows, seq in replica.others.conflicts().items():
                if self._last_seq.get((replica.partition, windows)) != seq:
                    self._last_seq[replica.partition, windows] = seq
                    if windows not in self._moved:
                        log.error("collection %s: %s", self._config.name, self._describe(windows))
                    self._moved[windows] = seconds
        recent = [w for w, moved in self._moved.items() if seconds - moved < RECENT_SECONDS]
        self.problem = self._describe(recent[0]) if recent else ""

    def _describe(self, windows: WindowIdentity) -> str:
        return (
            f"another worker with this id has {differences(self._config, windows)}: each counts "
            "only part of the reports; give all workers the same windows"
        )


def differences(config: CollectionConfig, windows: WindowIdentity) -> str:
    """Describe how windows differ from the configured ones; empty if they do not."""
    ours = _settings(config.window.identity)
    return " and ".join(
        f"window.{name} = {value}, here {ours[name]}"
        for name, value in _settings(windows).items()
        if value != ours[name]
    )


def _settings(windows: WindowIdentity) -> dict[str, str]:
    return {
        "size": format_duration(windows.size_ms),
        "hop": format_duration(windows.hop_ms),
        "timezone": windows.timezone or "UTC",
        "week_start": windows.week_start or "none",
    }
