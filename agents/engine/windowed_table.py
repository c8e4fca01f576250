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
from ldpstream.agents.state.replica import Replica, behind
from ldpstream.agents.state.view import totals


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
        return totals(self.context, self.replicas, start_ms, self._ends()[start_ms])

    def __iter__(self) -> Iterator[int]:
        return iter(self._ends())

    def __len__(self) -> int:
        return len(self._ends())

    def _ends(self) -> Mapping[int, int]:
        """Return the end of each span that is listed, by its start."""
        if any(replica.head is None for replica in self.replicas) or behind(self.replicas):
            raise NotReadyError("the collection's changelogs have not been read to their ends yet")
        return self._listed()

    def _listed(self) -> Mapping[int, int]:
        panes = {
            pane
            for replica in self.replicas
            for pane in replica.all_panes()
            if replica.totals(pane).n or replica.totals(pane).late
        }
        window = self.context.window
        return {window.start(pane): window.start(pane + 1) for pane in sorted(panes)}


class WindowedTable(_Spans):
    """A collection's windows by start, epoch ms; `table.panes` has the panes that they consist of.

    `table[start_ms]` is a window's `WindowTotals`: `n`, `late` and the mechanism's `statistic`.
    """

    def __repr__(self) -> str:
        try:
            text = self.context.window.format_time
            counts = ", ".join(f"{text(start)}: {window.n:,}" for start, window in self.items())
        except NotReadyError as error:
            counts = str(error)
        return f"<WindowedTable of reports by window: {counts or 'none'}>"

    @property
    def panes(self) -> Mapping[int, WindowTotals]:
        """The same by pane: a report is in exactly one pane, however many windows contain it."""
        return _Spans(self.context, self.replicas)

    def timestamp(self, seconds: float) -> WindowTotals:
        """Return the newest window that contains a time, in epoch seconds, even if it is empty."""
        self._ends()
        window = self.context.window
        newest = window.pane(int(seconds * 1000)) // window.hop_panes
        return totals(self.context, self.replicas, *window.span(newest))

    def now(self) -> WindowTotals:
        """Return the newest window that contains the present, even if it is empty."""
        return self.timestamp(time.time())

    def _listed(self) -> Mapping[int, int]:
        return {info.start_ms: info.end_ms for info in windows(self.context, self.replicas)}
