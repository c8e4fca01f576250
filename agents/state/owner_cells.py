"""The cells of a partition in its owner's memory: which it has, and which the next flush writes.

Values are held only where the owner may still change them (`CellValues`); of all other live cells
only the epoch is held, for the lineage.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from ldpstream.agents.state.cell_encoding import Totals
from ldpstream.agents.state.cell_kinds import KINDS, CellValues
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.disclosure_groups import DisclosureGroup, ReleasedPane
from ldpstream.agents.state.evaluation import Firsts, PaneIndex
from ldpstream.agents.state.records import Head, Name
from ldpstream.agents.state.replica import Replica
from ldpstream.agents.state.tokens import Numbers
from ldpstream.agents.state.windows import NEVER
from ldpstream.mechanisms.interface.mechanism import Reports

CELLS_LIMIT: Final = 20_000


class OwnedCells:
    """The cells of a partition in its owner's memory, loaded from its replica and a head.

    `parts`, `released` and `tokens` are those of its `CellValues`. Except in partition 0, the
    counts of panes below `handed_over` are partition 0's.
    """

    def __init__(
        self,
        context: Context,
        epoch: int,
        head: Head,
        replica: Replica,
        *,
        handed_over: int = NEVER,
    ) -> None:
        self._mechanism = context.spec.mechanism
        self._epoch = epoch
        self._origin: dict[Name, int] = {}
        self._epochs: Counter[int] = Counter()
        self._index = PaneIndex(context.window)
        self._dirty: set[Name] = set()
        self._handed_over = handed_over
        # Panes below it, all closed, are in groups or have too few reports for one.
        self.examined = NEVER
        self._scratch = self._mechanism.empty()
        self._values = CellValues(context, head)
        for name, cell in replica.cells.items():
            self._adopt(name, cell.epoch)
            self._index.add(name)
            KINDS[name.kind].load(self._values, name, replica.value)
        self._values.join_chunks()
        self.parts, self.released = self._values.parts, self._values.released
        self.tokens = self._values.tokens

    @property
    def full(self) -> bool:
        """Whether the next flush already has so many cells that it should come before any more."""
        return len(self._dirty) >= CELLS_LIMIT

    @property
    def finals_bytes(self) -> int:
        """The size of the finals whose contents are held."""
        return sum(map(len, self._values.finals.values()))

    @property
    def encoded_bytes(self) -> int:
        """The size of the chunks that the next flush writes as they are."""
        return sum(map(len, self._values.encoded.values()))

    def _adopt(self, name: Name, epoch: int) -> None:
        before = self._origin.get(name)
        if before != epoch:
            if before is not None:
                self._epochs[before] -= 1
            self._origin[name] = epoch
            self._epochs[epoch] += 1

    def _disown(self, name: Name) -> None:
        """Remove a cell from the state, whoever wrote it."""
        epoch = self._origin.pop(name, None)
        if epoch is not None:
            self._epochs[epoch] -= 1
        self._dirty.discard(name)

    def count(self, pane: int, reports: Reports) -> None:
        """Add the reports counted in an open pane, also to its reserve if it takes any."""
        values, few = self._values, self._mechanism.sparse_counts(reports)
        if few is not None:
            added = sum(count for _, count in few)
            chunks: Iterable[int] = values.counts.add_few(pane, few)
        else:
            self._mechanism.accumulate(self._scratch, reports)
            places = np.flatnonzero(self._scratch)
            counts = self._scratch[places]
            self._scratch[places] = 0
            added, chunks = int(counts.sum()), values.counts.add(pane, places, counts)
        for chunk in chunks:
            self._touch(Name("count", pane, chunk))
        n, late, total = values.totals.get(pane, Totals())
        self._set_totals(pane, Totals(n + len(reports), late, total + added))
        if values.reserves is not None:
            for chunk in values.reserves.add(pane, reports):
                self._touch(Name("reserve", pane, chunk))

    def _set_totals(self, pane: int, totals: Totals) -> None:
        self._values.totals[pane] = totals
        self._touch(Name("n", pane))

    def _set_late(self, pane: int, late: int) -> None:
        self._values.late[pane] = late
        self._touch(Name("late", pane))

    def count_tokens(self, pane: int, tokens: Numbers) -> None:
        """Add the tokens of the reports counted in an open pane."""
        for chunk in self.tokens.add(pane, tokens):
            self._touch(Name("token", pane, chunk))

    def late(self, pane: int, count: int) -> None:
        """Add late reports to a closed pane's totals."""
        if pane < self._handed_over:
            self._set_late(pane, self._values.late.get(pane, 0) + count)
        else:
            totals = self._values.totals.get(pane, Totals())
            self._set_totals(pane, totals._replace(late=totals.late + count))

    def _touch(self, name: Name) -> None:
        if name not in self._dirty:
            self._dirty.add(name)
            self._index.add(name)

    def final(self, window: int, content: bytes) -> None:
        """Add the final of a window."""
        self._values.finals[window] = content
        self._touch(Name("final", window))

    def finals(self, first: int, end: int) -> list[tuple[int, bytes]]:
        """Return the finals held for the windows in `[first, end)`, in order."""
        finals = self._values.finals.items()
        return sorted((w, content) for w, content in finals if first <= w < end)

    def forget_finals(self, published: int) -> None:
        """Drop the contents of the windows below `published`; their cells stay."""
        finals = self._values.finals
        for window in [window for window in finals if window < published]:
            del finals[window]

    def add_part(self, group: DisclosureGroup, attribute: int = 0) -> None:
        """Add a group, which is written with the next flush."""
        self.parts[attribute].add(group)
        self._touch(Name("part", group.end - 1, attribute))

    def release(self, pane: int, release: ReleasedPane, chunks: Mapping[int, bytes]) -> None:
        """Replace a pane's release, given its changed chunks."""
        self.released[pane] = release
        self._touch(Name("release", pane))
        self._put("open", pane, chunks)

    def gather(self, pane: int, *, n: int, total: int, chunks: Mapping[int, bytes]) -> int:
        """Store the counts of a pane over all partitions; return how many reports it gains.

        `n` are all its reports, `total` the sum of their statistic and `chunks` its values, by
        number. Late reports remain those of this partition.
        """
        before = self._values.totals.get(pane, Totals())
        self._set_totals(pane, Totals(n, before.late, total))
        self._put("count", pane, chunks)
        return n - before.n

    def _put(self, kind: str, pane: int, chunks: Mapping[int, bytes]) -> None:
        for number, value in chunks.items():
            name = Name(kind, pane, number)
            self._values.encoded[name] = value
            self._touch(name)

    def hand_over(self, pane: int) -> int:
        """Drop the counts of panes below this one, except late ones; return how many they had."""
        self._handed_over = pane
        return self.drop(Firsts(kept=pane, releases=pane), keep_late=True)

    def drop(self, firsts: Firsts, *, keep_late: bool = False) -> int:
        """Drop what is no longer part of the state; return how many counted reports that had.

        With `keep_late` the numbers of late reports become cells of their own.
        """
        gone = 0
        for name in self._index.pop_gone(firsts):
            self._disown(name)
            self._values.encoded.pop(name, None)
            totals = KINDS[name.kind].drop(self._values, name)
            if totals is not None:
                gone += totals.n
                if keep_late and totals.late:
                    self._set_late(name.number, totals.late)
        return gone

    def flush(
        self, closed: int, before: Mapping[int, int], seq: int
    ) -> tuple[list[tuple[Name, bytes]], dict[int, int]]:
        """Return the cells touched since the last flush, in order, and mark them as ours.

        Also returns the lineage of our head with this seq, given that of the base (rule 3). The
        counts of panes below `closed` are dropped from memory, since they never change again; their
        tokens are not part of the state from this flush on.
        """
        self.drop(Firsts(tokens=closed))
        values = self._values
        cells = [(name, KINDS[name.kind].encode(values, name)) for name in sorted(self._dirty)]
        for name in self._dirty:
            self._adopt(name, self._epoch)
        self._dirty.clear()
        values.flushed(closed)
        self._epochs = +self._epochs
        lineage = {epoch: before[epoch] for epoch in self._epochs if epoch != self._epoch}
        return cells, lineage | {self._epoch: seq}
