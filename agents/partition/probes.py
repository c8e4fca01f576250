"""Detect idleness by an unbroken series of end-of-log probes.

A probe is the answer to a fetch sent at a known time or later that left nothing of the source
unread. A single probe proves little: a lagging new leader may report too low an end, and the answer
is outdated once it arrives. So a partition is idle only if there is a series of probes in which
each was sent at most `gap_ms` after the one before, the first at least an idle time ago, and the
last at most `gap_ms` ago.

Anything else breaks the series: a report of this state, a fetch that leaves something unread,
another read session, or an error (which leaves a gap). Deliveries of known messages, ends seen
earlier, and silence prove nothing.
"""


class UnbrokenProbes:
    """The probes since a partition was loaded. All times are ms of one monotonic clock."""

    def __init__(self, gap_ms: int) -> None:
        self._gap_ms = gap_ms
        self._series: tuple[int, int] | None = None

    def broken(self) -> None:
        """Restart the series: something arrived, or may have arrived unseen."""
        self._series = None

    def probed(self, asked_ms: int) -> None:
        """Add a probe; `asked_ms` is no later than the time at which its fetch was sent."""
        first, last = self._series or (asked_ms, asked_ms)
        unbroken = asked_ms - last <= self._gap_ms
        self._series = (first if unbroken else asked_ms), max(last, asked_ms)

    def last_for(self, idle_ms: int, *, now_ms: int) -> bool:
        """Return whether the series is at least `idle_ms` long and still current."""
        if self._series is None:
            return False
        first, last = self._series
        return now_ms - first >= idle_ms and now_ms - last <= self._gap_ms
