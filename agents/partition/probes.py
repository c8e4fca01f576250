"""Whether nothing comes any more: end-of-log probes that follow each other without a break.

A probe is an answer that left nothing of the source unread, to a fetch that was asked for at a
known moment or later. One of them proves little: its end may be a lagging new leader's, and it is
old as soon as it is there. So a partition is idle only by a series of probes in which none was
asked for longer than a gap after the one before, the first of them an idle time ago and the last no
longer ago than the gap. Anything else breaks the series: a report of this state, an answer that
leaves something unread, another read session, an error (which is no answer, so a gap).

Deliveries of what is known, ends that were once seen, and silence prove nothing.
"""


class UnbrokenProbes:
    """The probes of one load of a partition. All moments are ms of one steady clock."""

    def __init__(self, gap_ms: int) -> None:
        self._gap_ms = gap_ms
        self._series: tuple[int, int] | None = None

    def broken(self) -> None:
        """Begin again: something came, or may have come unseen."""
        self._series = None

    def probed(self, asked_ms: int) -> None:
        """Take a probe; `asked_ms` is a moment at or before that at which it was asked for."""
        first, last = self._series or (asked_ms, asked_ms)
        unbroken = asked_ms - last <= self._gap_ms
        self._series = (first if unbroken else asked_ms), max(last, asked_ms)

    def last_for(self, idle_ms: int, *, now_ms: int) -> bool:
        """Return whether they go back so far and are still news."""
        if self._series is None:
            return False
        first, last = self._series
        return now_ms - first >= idle_ms and now_ms - last <= self._gap_ms
