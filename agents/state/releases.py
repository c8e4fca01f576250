"""Release counts of open panes in steps of at least `minimum` reports.

What answers hold of a pane while it is open is a *release*, a cell of partition 0. It has all
reports that were counted at some moment except `minimum` that are left out (rule 12):

1. Once a pane has `2 * minimum` reports, the owner of partition 0 chooses the first `minimum` that
   the partitions' reserves hold (`ldpstream.agents.state.reserves`), and releases all others.
2. It releases all but the same reports again once `minimum` more have been counted.
3. Once the pane is closed in every partition, it is in a part with all of its reports.

So the releases of a pane and its reports as a whole contain each other, and two of them differ by
at least `minimum` reports: by those counted in between, or those left out. No release is empty, and
a pane with a release has enough reports to complete a part. Of n reports answers lack fewer than
`2 * minimum`, whatever the sizes of frames and flushes are, because a reserve is cut at a report.

Everything is computed from winning heads and cells, so a new owner continues without a gap.

Of records this holds for the reports about each attribute: a release has a slice of the statistic
for each, which advances by itself.

A partition's count of a pane only grows, by whole flushes, so the number of reports per partition
identifies a set of reports: one set contains another if it has at least as many from each
partition.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from ldpstream.agents.state.cell_encoding import add_chunks, encode_chunk
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.disclosure_groups import ReleasedPane
from ldpstream.agents.state.owner_cells import OwnedCells
from ldpstream.agents.state.records import Head
from ldpstream.agents.state.replica import Replica, expired
from ldpstream.mechanisms.base.arrays import Integers
from ldpstream.mechanisms.interface.mechanism import Mechanism, Reports, Statistic

_END: Final = 1 << 62
_LOOK_MS: Final = 200
"""How often to look for what can be released, at most."""
_QUIET_MS: Final = 500
"""For how long a pane must have had no more reports to be released before its time."""
_NOTHING: Final = ReleasedPane(0, 0, {}, {})


class Releases:
    """What the owner of partition 0 has released, and when."""

    def __init__(self, context: Context, cells: OwnedCells) -> None:
        self._context = context
        self._cells = cells
        # The released chunks of each pane, by number.
        self._chunks: dict[int, dict[int, bytes]] = {}
        # How many reports each pane had when it was last examined.
        self._examined: dict[int, int] = {}
        self._looked_ms: int | None = None
        self._released_ms: int | None = None
        # Since when each pane has had its number of reports.
        self._quiet: dict[int, tuple[int, int]] = {}

    def release(self, replicas: Sequence[Replica], work: Head, *, now_ms: int) -> bool:
        """Release what is ready in panes that are in no group; return whether anything was.

        `replicas` are those of all partitions, `work` the head in memory of partition 0. Within
        `release_ms` of the last release it releases only of panes that get no more reports, so that
        what was sent at once is soon shown.
        """
        context, release_ms = self._context, self._context.release_ms
        if not context.keeps_reserves or release_ms is None:
            return False
        if _within(self._looked_ms, min(release_ms, _LOOK_MS), now_ms=now_ms):
            return False
        self._looked_ms = now_ms
        # Gathered panes that are in no group have too few reports, even together.
        first = max(work.grouped, work.gathered, expired(replicas))
        self._forget(first)
        early = _within(self._released_ms, release_ms, now_ms=now_ms)
        released = False
        for pane, counted in _counted(replicas, first).items():
            if self._is_quiet(pane, sum(counted.values()), now_ms) or not early:
                released |= self._advance(replicas, pane, counted)
        if released:
            self._released_ms = now_ms
        return released

    def _is_quiet(self, pane: int, n: int, now_ms: int) -> bool:
        number, since_ms = self._quiet.get(pane, (0, now_ms))
        if number != n:
            since_ms = now_ms
        self._quiet[pane] = n, since_ms
        return now_ms - since_ms >= _QUIET_MS

    def _forget(self, first: int) -> None:
        for pane in [pane for pane in self._quiet if pane < first]:
            del self._quiet[pane]
            self._examined.pop(pane, None)
            self._chunks.pop(pane, None)

    def _advance(self, replicas: Sequence[Replica], pane: int, counted: Mapping[int, int]) -> bool:
        """Release of a pane what can be; return whether that is anything."""
        minimum, mechanism = self._context.minimum, self._context.spec.mechanism
        last, n = self._cells.released.get(pane, _NOTHING), sum(counted.values())
        # 1. Is there enough? With several attributes, any report may be the one that is missing.
        several = len(mechanism.slices) > 1
        enough = sum(last.counted.values()) + (1 if several else minimum)
        if n < max(enough, 2 * minimum) or n == self._examined.get(pane):
            return False
        if any(counted.get(partition, 0) < few for partition, few in last.counted.items()):
            return False
        self._examined[pane] = n
        # 2. Of which attributes?
        before, total = self._before(replicas[0], pane), self._sum(replicas, pane)
        had, counts = [last.n], [n]
        if several:
            had, counts = mechanism.counts(before), mechanism.counts(total)
        reserves = Reserved.of(mechanism, replicas, pane)
        left_out, ready = dict(last.left_out), []
        for attribute in range(len(mechanism.slices)):
            chosen = _of_attribute(left_out, attribute) or reserves.choose(attribute, minimum)
            few = sum(chosen.values())
            # With fewer, a smaller minimum was configured before.
            if few >= minimum and counts[attribute] - few >= had[attribute] + minimum:
                ready.append(attribute)
                had[attribute] = counts[attribute] - few
                left_out |= {(attribute, p): some for p, some in chosen.items()}
        if not ready:
            return False
        # 3. All but what is left out.
        total -= reserves.statistic({of: few for of, few in left_out.items() if of[0] in ready})
        for attribute, rows in enumerate(mechanism.slices):
            if attribute not in ready:
                total[rows] = before[rows]
        self._release(
            pane, total, ReleasedPane(sum(had), int(total.sum()), dict(counted), left_out)
        )
        return True

    def _before(self, replica: Replica, pane: int) -> Statistic:
        """Return the statistic of a pane's last release; zeros without one."""
        if pane not in self._chunks:
            # Loaded, and unchanged since: what this owner releases is kept from then on.
            self._chunks[pane] = dict(replica.released_chunks(pane))
        return self._add_up(self._chunks[pane].items())

    def _sum(self, replicas: Sequence[Replica], pane: int) -> Statistic:
        return self._add_up(chunk for replica in replicas for chunk in replica.chunks(pane))

    def _add_up(self, chunks: Iterable[tuple[int, bytes]]) -> Statistic:
        statistic = self._context.spec.mechanism.empty()
        add_chunks(statistic, chunks, self._context.chunk)
        return statistic

    def _release(self, pane: int, statistic: Statistic, release: ReleasedPane) -> None:
        """Add a release to the cells, with its changed chunks."""
        released, length, changed = self._chunks[pane], self._context.chunk, {}
        for number, start in enumerate(range(0, len(statistic), length)):
            rows = statistic[start : start + length]
            if number in released or rows.any():
                value = encode_chunk(rows)
                if released.get(number) != value:
                    released[number] = changed[number] = value
        self._cells.release(pane, release, changed)


@dataclass(frozen=True, eq=False)
class Reserved:
    """The reports in all partitions' reserves of a pane, and the attribute of each."""

    mechanism: Mechanism
    reports: Sequence[Reports]
    attributes: Sequence[Integers]

    @classmethod
    def of(cls, mechanism: Mechanism, replicas: Sequence[Replica], pane: int) -> Self:
        """Return what the replicas show."""
        reports = [mechanism.decode(replica.reserve(pane))[0] for replica in replicas]
        return cls(mechanism, reports, [mechanism.attributes_of(some) for some in reports])

    def choose(self, attribute: int, minimum: int) -> dict[int, int]:
        """Return, by partition, how many reports about an attribute to leave out.

        These are `minimum` together, or fewer if there are no more.
        """
        chosen: dict[int, int] = {}
        for partition, attributes in enumerate(self.attributes):
            number = int(np.count_nonzero(attributes == attribute))
            if few := min(number, minimum - sum(chosen.values())):
                chosen[partition] = few
        return chosen

    def statistic(self, left_out: Mapping[tuple[int, int], int]) -> Statistic:
        """Return the statistic of the reports that are left out."""
        statistic = self.mechanism.empty()
        for (attribute, partition), few in left_out.items():
            places = np.flatnonzero(self.attributes[partition] == attribute)[:few]
            self.mechanism.accumulate(statistic, self.reports[partition][places])
        return statistic


def _within(since_ms: int | None, interval_ms: int, *, now_ms: int) -> bool:
    """Return whether less than an interval has passed; not if the clock has been set back."""
    return since_ms is not None and 0 <= now_ms - since_ms < interval_ms


def _of_attribute(left_out: Mapping[tuple[int, int], int], attribute: int) -> dict[int, int]:
    return {partition: few for (of, partition), few in left_out.items() if of == attribute}


def _counted(replicas: Sequence[Replica], first: int) -> dict[int, dict[int, int]]:
    """Return, by pane from `first` on, how many reports each partition has counted in it."""
    counts: dict[int, dict[int, int]] = {}
    for partition, replica in enumerate(replicas):
        for pane in replica.panes(first, _END):
            n = replica.totals(pane).n
            if n:
                counts.setdefault(pane, {})[partition] = n
    return counts
