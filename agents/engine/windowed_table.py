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
class WindowedTable(Mapping[int, WindowTotals]):
    """A collection's windows by start, epoch ms, oldest first.

    `table[start_ms]` is a window's `WindowTotals`: `n`, `late` and the mechanism's `statistic`.
    Windows without reports and expired ones are not listed. Every access raises NotReadyError until
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

    def __repr__(self) -> str:
        try:
            text = self.context.window.format_time
            counts = ", ".join(f"{text(start)}: {window.n:,}" for start, window in self.items())
        except NotReadyError as error:
            counts = str(error)
        return f"<WindowedTable of reports by window: {counts or 'none'}>"

    def timestamp(self, seconds: float) -> WindowTotals:
        """Return the newest window that contains a time, in epoch seconds, even if it is empty."""
        self._ends()
        window = self.context.window
        newest = window.pane(int(seconds * 1000)) // window.hop_panes
        return totals(self.context, self.replicas, *window.span(newest))

    def now(self) -> WindowTotals:
        """Return the newest window that contains the present, even if it is empty."""
        return self.timestamp(time.time())

    def _ends(self) -> Mapping[int, int]:
        """Return the end of each window that is listed, by its start."""
        if any(replica.head is None for replica in self.replicas) or behind(self.replicas):
            raise NotReadyError("the collection's changelogs have not been read to their ends yet")
        return {info.start_ms: info.end_ms for info in windows(self.context, self.replicas)}
