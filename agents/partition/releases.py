"""Release counts of open panes in steps of at least `minimum` reports.

The owner of partition 0 takes what the winning heads show of a pane as a *candidate* once it has
`minimum` reports more than the pane's last release. It *releases* the candidate once another
`minimum` reports have been counted after it. So each release adds at least `minimum` reports, and
at least as many remain when the pane closes: with the panes pending before it, that remainder
completes a part. A release is a cell of partition 0, so all workers give the same answer. If the
owner is lost, only its candidates are.

A partition's count of a pane only grows, by whole flushes, so the number of reports per partition
identifies a set of reports: one set contains another if it has at least as many from each
partition.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ldpstream.agents.partition.owned import OwnedCells
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.encoding import sum_chunks
from ldpstream.agents.state.parts import Release
from ldpstream.agents.state.records import Head
from ldpstream.agents.state.replica import Replica
from ldpstream.agents.state.view import expired

_END: Final = 1 << 62
_NOTHING: Final = Release(0, 0, {})


class Candidate(NamedTuple):
    """A pane at one moment; `chunks` are, by number, the `(key, value)` of each partition."""

    release: Release
    chunks: Mapping[int, Sequence[tuple[bytes, bytes]]]


class Releases:
    """The candidates of partition 0's owner."""

    def __init__(self, context: Context, cells: OwnedCells) -> None:
        self._context = context
        self._cells = cells
        self._candidates: dict[int, Candidate] = {}
        # For each released chunk, a hash of the (unique) keys of the cells it was made from.
        self._made: dict[tuple[int, int], int] = {}
        self._looked_ms: int | None = None

    def look(self, replicas: Sequence[Replica], work: Head, *, now_ms: int) -> bool:
        """Release what is ready in panes that are in no part; return whether anything was.

        `replicas` are those of all partitions, `work` the head in memory of partition 0. Does
        nothing if the last call was less than `release_ms` ago.
        """
        context, minimum = self._context, self._context.minimum
        if minimum <= 1 or not context.tells_of_open or context.release_ms is None:
            return False
        # Releases must not stop if the clock is set back.
        if self._looked_ms is not None and 0 <= now_ms - self._looked_ms < context.release_ms:
            return False
        self._looked_ms = now_ms
        # Gathered panes that are in no part have too few reports, even together.
        first = max(work.grouped, work.gathered, expired(replicas))
        self._forget(first)
        released = False
        for pane, counted in _counted(replicas, first).items():
            n = sum(counted.values())
            candidate = self._candidates.get(pane)
            if candidate is not None:
                if n < candidate.release.n + minimum or not _holds(counted, candidate.release):
                    continue
                self._release(pane, self._candidates.pop(pane))
                released = True
            last = self._cells.released.get(pane, _NOTHING)
            if n >= last.n + minimum and _holds(counted, last):
                self._candidates[pane] = _take(replicas, pane, counted)
        return released

    def _forget(self, first: int) -> None:
        for pane in [pane for pane in self._candidates if pane < first]:
            del self._candidates[pane]
        for key in [key for key in self._made if key[0] < first]:
            del self._made[key]

    def _release(self, pane: int, candidate: Candidate) -> None:
        """Add a release to the cells, with its changed chunks."""
        changed = {}
        for number, found in candidate.chunks.items():
            made_of = hash(tuple(key for key, _ in found))
            if self._made.get((pane, number)) != made_of:
                self._made[pane, number] = made_of
                length = self._context.chunk_length(number)
                changed[number] = sum_chunks([value for _, value in found], length)
        self._cells.release(pane, candidate.release, changed)


def _counted(replicas: Sequence[Replica], first: int) -> dict[int, dict[int, int]]:
    """Return, by pane from `first` on, how many reports each partition has counted in it."""
    found: dict[int, dict[int, int]] = {}
    for partition, replica in enumerate(replicas):
        for pane in replica.panes(first, _END):
            n = replica.totals(pane).n
            if n:
                found.setdefault(pane, {})[partition] = n
    return found


def _holds(counted: Mapping[int, int], release: Release) -> bool:
    return all(counted.get(partition, 0) >= n for partition, n in release.counted.items())


def _take(replicas: Sequence[Replica], pane: int, counted: Mapping[int, int]) -> Candidate:
    chunks: dict[int, list[tuple[bytes, bytes]]] = {}
    for replica in replicas:
        for name in replica.names(pane):
            if name.kind == "count":
                found = replica.cells[name].key, replica.value(name)
                chunks.setdefault(name.chunk, []).append(found)
    total = sum(replica.totals(pane).sum for replica in replicas)
    return Candidate(Release(sum(counted.values()), total, dict(counted)), chunks)
