"""Share heads between the states of one collection, if it accepts several specs.

`ldpstream.agents.partition.cutover` decides which state handles which messages. This module gives
each state the others' heads, and warns the operator.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.partition.cutover import SiblingHeads
from ldpstream.agents.state.records import Head
from ldpstream.agents.state.replica import Replica
from ldpstream.agents.state.windows import NEVER

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SiblingSpecs:
    """The replicas, by partition, of a collection's other states.

    `own` are those of the collection's own spec, None for its own state; `accepted` those of the
    specs that it accepts.
    """

    own: Sequence[Replica] | None = None
    accepted: Sequence[Sequence[Replica]] = ()

    def siblings(self, partition: int) -> SiblingHeads | None:
        """Return their heads, or None until all have been read to their end."""
        own = None if self.own is None else self.own[partition].head
        heads = [replicas[partition].head for replicas in self.accepted]
        if (self.own is not None and own is None) or None in heads:
            return None
        return SiblingHeads(own, tuple(head for head in heads if head is not None))


def waits_for(title: str, replicas: Sequence[Replica], partitions: Iterable[int]) -> str:
    """Return the problem of waiting for a stopped accepted state; empty if it has handed over.

    `partitions` are those that the collection's own state has not loaded.
    """
    heads = (replicas[partition].head for partition in partitions)
    if all(head is not None and head.cutover != NEVER for head in heads):
        return ""
    return f"it waits for {title} to hand over, which has stopped"


class Warner:
    """Warns once about what may be intended or not, for one collection's own state."""

    def __init__(self, config: CollectionConfig) -> None:
        self._config = config
        self._handed_over = False
        self._left_behind: set[bytes] = set()

    def loaded(self, head: Head, left_behind: Iterable[bytes]) -> None:
        """Note the head of a loaded partition, and the specs left behind in its changelog."""
        if head.cutover != NEVER:
            if not self._handed_over:
                self._warn_of_cutover()
            self._handed_over = True
            return
        for fingerprint in left_behind:
            if fingerprint not in self._left_behind:
                self._warn_of(fingerprint)
            self._left_behind.add(fingerprint)

    def _warn_of_cutover(self) -> None:
        """Warn that messages left to another spec's state may have nobody to decide them."""
        log.warning(
            "collection %s: its state was handed over to another spec: messages that are not "
            "reports of %s are left to workers that accept it; to go back to it for good, name "
            "that spec's file under collection.%s.accept",
            *(self._config.name, self._config.spec.fingerprint.hex(), self._config.name),
        )

    def _warn_of(self, fingerprint: bytes) -> None:
        """Warn that reports of another spec may have nobody to count them."""
        log.warning(
            "collection %s: its changelog also holds the state of another spec, %s: reports of "
            "that one are rejected, and its open windows are not published, unless its file is "
            "named under collection.%s.accept (docs/changes.md)",
            *(self._config.name, fingerprint.hex(), self._config.name),
        )
