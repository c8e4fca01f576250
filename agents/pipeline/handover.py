"""What the states of one collection know of each other, where it accepts several specs.

Which of them decides what is `ldpstream.agents.state.handover`'s; here is where each sees the
others' heads, and what an operator is told of it.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.state.handover import Beside
from ldpstream.agents.state.tail import Tail
from ldpstream.agents.state.windows import NEVER

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Others:
    """The tails, by partition, of a collection's other states.

    `own` are those of the collection's own spec, None for its own state; `accepted` those of the
    specs that it accepts.
    """

    own: Sequence[Tail] | None = None
    accepted: Sequence[Sequence[Tail]] = ()

    def beside(self, partition: int) -> Beside | None:
        """Return their heads, None before all have been read to their end."""
        own = None if self.own is None else self.own[partition].head
        heads = [tails[partition].head for tails in self.accepted]
        if (self.own is not None and own is None) or None in heads:
            return None
        return Beside(own, tuple(head for head in heads if head is not None))


def waits_for(title: str, tails: Sequence[Tail], partitions: Iterable[int]) -> str:
    """Return what to say of an accepted state that has stopped; nothing if it handed over before.

    `partitions` are those that the collection's own state has not loaded.
    """
    heads = (tails[partition].head for partition in partitions)
    if all(head is not None and head.handover != NEVER for head in heads):
        return ""
    return f"it waits for {title} to hand over, which has stopped"


def warn_of_handover(config: CollectionConfig) -> None:
    """Say that nobody may be there to decide what this state left to another spec's."""
    log.warning(
        "collection %s: its state was handed over to another spec: messages that are no reports of "
        "%s are left to workers that accept it; to go back to it for good, name that spec's file "
        "under collection.%s.accept",
        *(config.name, config.spec.fingerprint.hex(), config.name),
    )
