"""Rule 8, second half: finals are published once the head that stores them has won.

The following head records this. After a takeover in between they are published again, with the same
content. A pane expires after the retention, and only once all windows that contain it are
published.
"""

from dataclasses import replace

from ldpstream.agents.partition.outcomes import Publication
from ldpstream.agents.partition.owned import OwnedCells
from ldpstream.agents.state.records import Head
from ldpstream.agents.state.windows import WindowSpec


class Publishing:
    """Which finals partition 0's owner has to publish, and which it may mark as published.

    `offered` is the first window that has not been handed out for publishing.
    """

    def __init__(self, window: WindowSpec, cells: OwnedCells, published: int) -> None:
        self.offered = published
        self._window = window
        self._cells = cells

    def offer(self, base: Head, work: Head) -> list[Publication]:
        """Return the finals that the winning head has stored and that are not marked published."""
        self.offered = base.final
        return [
            Publication(*self._window.span(window), content)
            for window, content in self._cells.finals(work.published, self.offered)
        ]

    def mark(self, work: Head) -> Head:
        """Return the next head with all offered windows marked as published."""
        if self.offered <= work.published:
            return work
        self._cells.forget_finals(self.offered)
        return replace(work, published=self.offered)


def expire(window: WindowSpec, cells: OwnedCells, work: Head, published: int) -> Head:
    """Drop the panes that expire; return the head without them.

    Windows below `published` have been published, according to partition 0's winning head.
    """
    expired = min(window.expired(work.clock), window.first_pane(published))
    if expired <= work.expired:
        return work
    gaps = tuple(gap for gap in work.gaps if gap.last >= expired)
    return replace(work, expired=expired, gone=work.gone + cells.expire(expired), gaps=gaps)
