"""A collection's state as a copy: when the partitions' copies fit together, and where they go on.

The changelogs of a collection are read one beside the other while a worker may write to all of
them. So the copy of one partition can be older than what another one's refers to:

- Partition 0 stores sums over all partitions. If another partition's copy is older than such a sum,
  its owner reads reports again that the sum contains, and takes them for late ones.
- The others drop counts that partition 0 stores. If partition 0's copy is older than that, they
  are nowhere.

`fits` finds both; reading on for a moment mends them, because panes close and are handed over once.
"""

from collections.abc import Sequence
from dataclasses import replace

from ldpstream.agents.state.context import Context
from ldpstream.agents.state.encoding import encode_head, encode_key, state_prefix
from ldpstream.agents.state.records import HEAD, Head, Key
from ldpstream.agents.state.replica import Replica
from ldpstream.agents.state.windows import NEVER


def fits(context: Context, heads: Sequence[Head], *, running: bool) -> bool:
    """Return whether these heads, by partition, are a state from which owners can continue.

    `running`: owners may be writing. Otherwise a partition without any head was just added.
    """
    first, window = heads[0], context.window
    included = max(1, first.partitions)
    decided = max(window.closing(first.final), first.grouped, first.gathered)
    first_kept = NEVER if first.published == NEVER else first.published * window.hop_panes
    for partition, head in enumerate(heads[1:], 1):
        if partition >= included and head.seq:
            return False
        if partition < included and head.closed < decided and (running or head.seq):
            return False
        if head.gathered > first.gathered or head.expired > first_kept:
            return False
    return True


def live_records(replica: Replica) -> list[tuple[bytes, bytes]]:
    """Return the cells of one partition's state, `(key, value)`; its head is not among them.

    The replica has reached the end of its log.
    """
    return [(cell.key, replica.value(name)) for name, cell in replica.cells.items()]


def head_record(context: Context, head: Head) -> tuple[bytes, bytes]:
    """Return the record of a head, `(key, value)`."""
    key = encode_key(state_prefix(context), Key(HEAD, head.epoch, head.seq))
    return key, encode_head(head)


def at_beginning(head: Head, *, epoch: int, source: bytes) -> Head:
    """Return the head that continues this one at the beginning of another source topic.

    It is that of a new owner, with an `epoch` of its own, so it wins over the one before. What the
    state has counted of its old source stays counted; `source` is the new topic's id.
    """
    # From the first offset on, the collection's own state decides as before.
    cutover = NEVER if head.cutover == NEVER else 0
    moved = replace(head, epoch=epoch, seq=head.seq + 1, source=source, cutover=cutover)
    return replace(moved, next=0, end=0, idle=False)
