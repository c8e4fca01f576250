"""A read-only windowed table of a collection, for the surrounding app.

It is indexed by window, like Faust's own windowed tables, and shows what winning heads
have counted, each report once. Its values are exact, and the same in all workers, because each
reads the changelogs of all partitions.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ldpstream.agents.state.context import Context, WindowTotals
from ldpstream.agents.state.listing import windows
from ldpstream.agents.state.replica import Replica
from ldpstream.agents.state.view import behind, totals
from ldpstream.mechanisms.base.times import format_time


class NotReadyError(LookupError):
    """The changelogs have not been read to their ends yet."""


@dataclass(frozen=True, eq=False)
class _Spans(Mapping[int, WindowTotals]):
    """Totals of spans of event time, by their start in epoch ms, oldest first.

    Spans without reports and expired spans are not listed. Every access raises NotReadyError until
    the changelogs have been read.
    """

    context: Context
    replicas: Sequence[Replica]

    def __getitem__(self, start_ms: int) -> WindowTotals:
        if start_ms not in self._starts():
            raise KeyError(start_ms)
        return totals(self.context, self.replicas, start_ms, start_ms + self.size_ms)

    def __iter__(self) -> Iterator[int]:
        return iter(self._starts())

    def __len__(self) -> int:
        return len(self._starts())

    @property
    def size_ms(self) -> int:
        """The length of a span."""
        return self.context.window.pane_ms

    def _starts(self) -> Sequence[int]:
        if any(replica.head is None for replica in self.replicas) or behind(self.replicas):
            raise NotReadyError("the collection's changelogs have not been read to their ends yet")
        return self._listed()

    def _listed(self) -> Sequence[int]:
        found = {
            pane
            for replica in self.replicas
            for pane in replica.all_panes()
            if replica.totals(pane).n or replica.totals(pane).late
        }
        return [pane * self.size_ms for pane in sorted(found)]


class WindowedTable(_Spans):
    """A collection's windows by start, epoch ms; `table.panes` has the panes that they consist of.

    `table[start_ms]` is a window's `WindowTotals`: `n`, `late` and the mechanism's `statistic`.
    """

    def __repr__(self) -> str:
        try:
            counts = ", ".join(f"{format_time(start)}: {one.n:,}" for start, one in self.items())
        except NotReadyError as error:
            counts = str(error)
        return f"<WindowedTable of reports by window: {counts or 'none'}>"

    @property
    def size_ms(self) -> int:
        """The length of a window."""
        return self.context.window.size_ms

    @property
    def panes(self) -> Mapping[int, WindowTotals]:
        """The same by pane: a report is in exactly one pane, however many windows contain it."""
        return _Spans(self.context, self.replicas)

    def timestamp(self, seconds: float) -> WindowTotals:
        """Return the newest window that contains a time, in epoch seconds, even if it is empty."""
        self._starts()
        hop_ms = self.context.window.hop_ms
        start_ms = int(seconds * 1000) // hop_ms * hop_ms
        return totals(self.context, self.replicas, start_ms, start_ms + self.size_ms)

    def now(self) -> WindowTotals:
        """Return the newest window that contains the present, even if it is empty."""
        return self.timestamp(time.time())

    def _listed(self) -> Sequence[int]:
        return [info.start_ms for info in windows(self.context, self.replicas)]
