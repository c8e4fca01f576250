"""A partition's changelog as its readers and its owner use it: a copy of the state in memory.

It says which records to delete, and which other states it has met in the log.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import islice
from typing import Final

from ldpstream.agents.state.context import Context
from ldpstream.agents.state.disclosure_groups import DisclosureGroups, ReleasedPane, decode_release
from ldpstream.agents.state.encoding import (
    encode_head,
    encode_key,
    state_prefix,
)
from ldpstream.agents.state.evaluation import Evaluation
from ldpstream.agents.state.records import HEAD, Head, Key, Name
from ldpstream.agents.state.reserves import Rows, decode_reserve
from ldpstream.agents.state.windows import NEVER, MissingMessages, missing_messages

DEAD_LIMIT: Final = 40_000
"""With this many records to delete, ingesting pauses: each takes memory until it is deleted, and a
flush leaves as many dead records as it writes."""


class Replica(Evaluation):
    """The state of one partition of a collection, as any worker reads it from its changelog."""

    @property
    def size_bytes(self) -> int:
        """Total length of the values of all live cells."""
        return 0 if self.head is None else self._live.size_bytes

    def all_panes(self) -> list[int]:
        """Return all panes that may have totals, in order."""
        return self.panes(NEVER, -NEVER)

    def parts(self, attribute: int = 0) -> DisclosureGroups:
        """Return partition 0's unexpired groups, for records those of an attribute.

        Empty until the end of the log has been reached.
        """
        return DisclosureGroups() if self.head is None else self._live.sums.parts[attribute]

    def released(self, first: int, end: int) -> list[tuple[int, ReleasedPane]]:
        """Return the releases of panes in `[first, end)`, as `(pane, release)` in order."""
        panes = []
        for pane in [] if self.head is None else self._live.index.between(first, end, "release"):
            name = Name("release", pane)
            if name in self.cells:
                panes.append((pane, decode_release(self.value(name))))
        return panes

    def released_chunks(self, pane: int) -> list[tuple[int, bytes]]:
        """Return the chunks of a release's statistic, as `(number, value)`."""
        return self.chunks(pane, "open")

    def reserve(self, pane: int) -> Rows:
        """Return the reports in this partition's reserve of a pane, in the order of counting."""
        return decode_reserve(self._context.spec.mechanism, dict(self.chunks(pane, "reserve")))

    @property
    def dead_records(self) -> int:
        """How many keys `dead` returns."""
        return len(self._dead)

    def dead(self, most: int | None = None, but: AbstractSet[bytes] = frozenset()) -> list[bytes]:
        """Return the keys of dead records whose deletion has not been read yet.

        Dead are lost, superseded and expired records.

        Returns at most `most`, those dead longest first, without those in `but`. Deleting a key
        twice, late or never does no harm.
        """
        return list(islice((key for key in self._dead if key not in but), most))

    def still_dead(self, keys: AbstractSet[bytes]) -> set[bytes]:
        """Return those of these keys that are dead and whose deletion has not been read yet."""
        return {key for key in keys if key in self._dead}


# --- what all partitions show of a span -----------------------------------------------------------


class BehindError(RuntimeError):
    """A replica has not yet read what another one refers to; retry in a moment."""


def expired(replicas: Iterable[Replica]) -> int:
    """Return the first pane that no partition has dropped; at least one replica has a head."""
    return max(replica.head.expired for replica in replicas if replica.head is not None)


def behind(replicas: Sequence[Replica]) -> range:
    """Return the panes that were handed over to partition 0, but are not shown by it yet.

    The range begins with the first pane of which every partition shows its own counts; those of the
    panes below are partition 0's.
    """
    head = replicas[0].head if replicas else None
    first = NEVER if head is None else head.gathered
    shown = [replica.head.gathered for replica in replicas if replica.head is not None]
    return range(first, max([first, *shown]))


def check_between(replicas: Sequence[Replica], first: int, end: int) -> int:
    """Check that all counts of the panes `[first, end)` are shown.

    Returns the first pane of which every partition shows its own counts.

    Raises:
        BehindError: if partition 0's replica is behind another one.
    """
    unread = behind(replicas)
    if unread and first < unread.stop and unread.start < end:
        raise BehindError
    return unread.start


def counted(replicas: Iterable[Replica], first: int, end: int) -> Counter[int]:
    """Return, by pane of `[first, end)`, how many reports these replicas show, if any."""
    reports: Counter[int] = Counter()
    for replica in replicas:
        for pane in replica.panes(first, end):
            if n := replica.totals(pane).n:
                reports[pane] += n
    return reports


def reports_by_pane(replicas: Sequence[Replica], first: int, end: int) -> Counter[int]:
    """Return by pane the reports that all partitions have counted in the panes `[first, end)`."""
    first_counted = check_between(replicas, first, end)
    return counted(replicas[:1], first, end) + counted(replicas[1:], max(first, first_counted), end)


def missing_between(replicas: Iterable[Replica], first: int, end: int) -> MissingMessages:
    """Return what retention deleted unread that may have belonged to the panes `[first, end)`."""
    return missing_messages(
        (() if replica.head is None else replica.head.gaps for replica in replicas), first, end
    )


def incomplete_panes(replicas: Iterable[Replica], first: int, end: int) -> set[int]:
    """Return the unexpired panes of `[first, end)` that may have lost messages."""
    return {
        pane
        for replica in replicas
        if replica.head is not None
        for gap in replica.head.gaps
        for pane in gap.panes(max(first, replica.head.expired), end)
    }


# --- a collection's state as a copy, for a back-up ------------------------------------------------


def fits(context: Context, heads: Sequence[Head], *, running: bool) -> bool:
    """Return whether these heads, by partition, are a state from which owners can continue.

    The changelogs of a collection are read one beside the other while a worker may write to all of
    them. So the copy of one partition can be older than what another one's refers to:

    - Partition 0 stores sums over all partitions. If another partition's copy is older than such a
      sum, its owner reads reports again that the sum contains, and takes them for late ones.
    - The others drop counts that partition 0 stores. If partition 0's copy is older than that, they
      are nowhere.

    Reading on for a moment mends both, because panes close and are handed over once. `running`:
    owners may be writing. Otherwise a partition without any head was just added.
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
