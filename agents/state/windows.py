"""Windows of event time, and the panes that they consist of.

Windows are `[start, end)`, aligned to the UTC epoch: window number `i` is
`[i * hop, i * hop + size)`. State is kept by pane, whose length is the greatest common divisor of
size and hop: pane number `p` is `[p * pane, (p + 1) * pane)`. A report touches one pane, however
many windows contain it, and every window is a whole number of panes. All times are epoch
milliseconds.

With a calendar, size and hop are whole days, and panes consist of the calendar's days in place of
days in UTC. A pane may then be an hour shorter or longer than `pane_ms`, so nothing but
`WindowSpec` turns times into numbers of panes and back; all else counts panes.

A *pointer* is the first number not yet reached: panes below `closed` are closed, windows below
`final` are decided. Pointers are computed, never advanced one by one: event time may begin in 2010,
and pane numbers with it.

Retention may delete messages of the source unread. If the offsets `[a, b)` are gone, their reports
may have belonged to any pane between the first that was open at `a` and the latest that a message
before the first remaining record could have been in. A head keeps such *gaps* as long as their
panes, and every document about an affected pane reports them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ldpstream.agents.state.calendar import DAY_MS, WEEK_MS, WEEKDAYS, Calendar, Weekday
from ldpstream.mechanisms.base.times import (
    EARLIEST_MS,
    LATEST_MS,
    format_duration,
    format_time,
)

NEVER: Final = -(1 << 62)
"""Earlier than any time: the clock and the pointers of a partition that has seen nothing."""
GAPS_LIMIT: Final = 8
"""The most gaps in a head; with more, the two nearest are merged."""
_LISTED_PANES: Final = 1_000
"""Only the first panes of a gap, this many, get documents if nothing else is left of them."""


class WindowIdentity(NamedTuple):
    """What tells a collection's windows from others: states and documents of two never mix.

    `timezone` is None without a calendar.
    """

    size_ms: int
    hop_ms: int
    timezone: str | None = None
    first_day: int = 0

    @property
    def week_start(self) -> Weekday | None:
        """The weekday with which windows of whole weeks begin; None for others."""
        return None if self.hop_ms % WEEK_MS else WEEKDAYS[(3 + self.first_day) % 7]

    @property
    def label(self) -> str:
        """The same as a short text, which documents have as their `size`.

        >>> WindowIdentity(900_000, 300_000).label
        '15m every 5m'
        >>> WindowIdentity(WEEK_MS, WEEK_MS, "Europe/Berlin", first_day=4).label
        '7d from monday, Europe/Berlin'
        """
        text = format_duration(self.size_ms)
        if self.hop_ms != self.size_ms:
            text += f" every {format_duration(self.hop_ms)}"
        if self.timezone is None:
            return text
        start = "" if self.week_start is None else f" from {self.week_start}"
        return f"{text}{start}, {self.timezone}"


@dataclass(frozen=True, kw_only=True)
class WindowSpec:
    """How a collection divides event time; all durations in milliseconds.

    - `grace_ms`: how far the watermark must be past a pane's end to close it.
    - `idle_ms`: how long a partition without news still holds back the clock (None: for ever).
    - `future_ms`: how far after its arrival an event may be dated.
    - `retention_ms`: how long a closed pane is kept.
    - `witnesses`: the watermark is the latest event time that this many distinct messages have
      reached.
    - `calendar`: the days that windows consist of; None: windows count from the UTC epoch.

    Raises:
        ValueError: for a size or hop below 1, a hop above the size, a negative duration, less than
        one witness, or a calendar with a size or hop that is not whole days.
    """

    size_ms: int
    hop_ms: int
    grace_ms: int = 0
    idle_ms: int | None = 30_000
    future_ms: int = 60_000
    retention_ms: int = 604_800_000
    witnesses: int = 1
    calendar: Calendar | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.hop_ms <= self.size_ms:
            raise ValueError("expected 1 <= hop <= size")
        if min(self.grace_ms, self.idle_ms or 0, self.future_ms, self.retention_ms) < 0:
            raise ValueError("expected durations of at least 0")
        if self.witnesses < 1:
            raise ValueError("expected at least one witness")
        if self.calendar is not None and self.pane_ms % DAY_MS:
            raise ValueError("expected size and hop of whole days, because of the calendar")

    @cached_property
    def pane_ms(self) -> int:
        """The length of a pane; with a calendar, if all its days have 24 hours."""
        return gcd(self.size_ms, self.hop_ms)

    @cached_property
    def size_panes(self) -> int:
        """The number of panes in a window."""
        return self.size_ms // self.pane_ms

    @cached_property
    def hop_panes(self) -> int:
        """The number of panes from one window's start to the next one's."""
        return self.hop_ms // self.pane_ms

    @cached_property
    def open_panes(self) -> int:
        """How many panes can be open at once.

        They span the time from a grace behind the watermark to as far ahead as reports may be
        dated.
        """
        return (self.grace_ms + self.future_ms) // self.pane_ms + 2

    @cached_property
    def earliest_ms(self) -> int:
        """The earliest event time accepted: its windows start within the year 1 or later."""
        return EARLIEST_MS + self.size_ms + self._zone_ms

    @cached_property
    def latest_ms(self) -> int:
        """The latest event time accepted: its windows end within the year 9999 or earlier."""
        return LATEST_MS - self.size_ms - self._zone_ms

    @cached_property
    def _zone_ms(self) -> int:
        """How far a calendar's days, and times as its zone writes them, are from those in UTC."""
        return 0 if self.calendar is None else self.pane_ms + 3 * DAY_MS

    @cached_property
    def _pane_days(self) -> int:
        return self.pane_ms // DAY_MS

    @cached_property
    def identity(self) -> WindowIdentity:
        """Size, hop and calendar: windows that differ in one of them have another state."""
        if self.calendar is None:
            return WindowIdentity(self.size_ms, self.hop_ms)
        zone, first_day = self.calendar.timezone, self.calendar.first_day
        return WindowIdentity(self.size_ms, self.hop_ms, zone, first_day)

    def pane(self, time_ms: int) -> int:
        """Return the number of the pane that holds a time."""
        if self.calendar is None:
            return time_ms // self.pane_ms
        return (self.calendar.day(time_ms) - self.calendar.first_day) // self._pane_days

    def panes_of(self, times_ms: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the numbers of the panes that hold many times, int64 of the same shape."""
        if self.calendar is None:
            return times_ms // self.pane_ms
        return (self.calendar.days(times_ms) - self.calendar.first_day) // self._pane_days

    def start(self, pane: int) -> int:
        """Return the first moment of a pane, which is the end of the one before."""
        if self.calendar is None:
            return pane * self.pane_ms
        return self.calendar.start(pane * self._pane_days + self.calendar.first_day)

    def starts(self, panes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the first moments of many panes, int64 of the same shape."""
        if self.calendar is None:
            return panes * self.pane_ms
        distinct, place = np.unique(panes, return_inverse=True)
        starts_ms = np.array([self.start(pane) for pane in distinct.tolist()], dtype=np.int64)
        return starts_ms[place].reshape(panes.shape)

    def edge(self, time_ms: int) -> int | None:
        """Return the number of the pane that begins at a time; None if none does.

        If several do, all but the last one are empty.
        """
        pane = self.pane(time_ms)
        return pane if self.start(pane) == time_ms else None

    def starting(self, time_ms: int) -> int | None:
        """Return the number of the window that starts at a time; None if none does."""
        pane = self.edge(time_ms)
        return None if pane is None or pane % self.hop_panes else pane // self.hop_panes

    def format_time(self, time_ms: int) -> str:
        """Return a time as documents of these windows write it."""
        return format_time(time_ms) if self.calendar is None else self.calendar.format_time(time_ms)

    def panes(self, window: int) -> range:
        """Return the numbers of a window's panes."""
        first = self.first_pane(window)
        return range(first, first + self.size_panes)

    def first_pane(self, window: int) -> int:
        """Return the number of a window's first pane; NEVER for NEVER."""
        return NEVER if window == NEVER else window * self.hop_panes

    def windows(self, pane: int) -> range:
        """Return the numbers of the windows that contain a pane: at least one."""
        return range(-((self.size_panes - 1 - pane) // self.hop_panes), pane // self.hop_panes + 1)

    def span(self, window: int) -> tuple[int, int]:
        """Return `(start, end)` of a window."""
        first = self.first_pane(window)
        return self.start(first), self.start(first + self.size_panes)

    def is_empty(self, window: int) -> bool:
        """Return whether a window consists of days that its calendar's zone skipped."""
        if self.calendar is None:
            return False
        start_ms, end_ms = self.span(window)
        return start_ms == end_ms

    def closed(self, clock_ms: int) -> int:
        """Return the first pane still open at this clock: a pane closes a grace after its end."""
        return NEVER if clock_ms == NEVER else self.pane(clock_ms - self.grace_ms)

    def expired(self, clock_ms: int) -> int:
        """Return the first pane kept at this clock: a pane expires a retention after it closes."""
        kept_ms = self.grace_ms + self.retention_ms
        return NEVER if clock_ms == NEVER else self.pane(clock_ms - kept_ms)

    def final(self, closed: int) -> int:
        """Return the first window with a pane that is not below `closed`."""
        return NEVER if closed == NEVER else (closed - self.size_panes) // self.hop_panes + 1

    def closing(self, final: int) -> int:
        """Return the first pane that no window below `final` contains."""
        return NEVER if final == NEVER else (final - 1) * self.hop_panes + self.size_panes


class Gap(NamedTuple):
    """Panes `first` to `last`, both included, lack up to `offsets` messages of the source."""

    first: int
    last: int
    offsets: int

    def meets(self, first: int, end: int) -> bool:
        """Return whether any of the panes `[first, end)` may lack something."""
        return self.first < end and first <= self.last

    def panes(self, first: int, end: int) -> range:
        """Return the panes of `[first, end)` that may have lost everything, at most _LISTED_PANES.

        Empty if nothing had been counted before the gap: then no window is known to have begun.
        """
        if self.first == NEVER:
            return range(0)
        return range(max(self.first, first), min(self.first + _LISTED_PANES, self.last + 1, end))


@dataclass(frozen=True)
class MissingMessages:
    """What documents report: at most `offsets` messages are missing, of these partitions."""

    offsets: int = 0
    partitions: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        """Return whether anything may be missing."""
        return bool(self.partitions)


NOTHING_LOST: Final = MissingMessages()


def add_gap(gaps: Sequence[Gap], gap: Gap) -> tuple[Gap, ...]:
    """Return the gaps with one more, in order; beyond GAPS_LIMIT the two nearest become one."""
    sorted_gaps = sorted([*gaps, gap])
    while len(sorted_gaps) > GAPS_LIMIT:
        at = min(
            range(len(sorted_gaps) - 1),
            key=lambda i: sorted_gaps[i + 1].first - sorted_gaps[i].last,
        )
        before, right = sorted_gaps[at], sorted_gaps[at + 1]
        merged = Gap(before.first, max(before.last, right.last), before.offsets + right.offsets)
        sorted_gaps[at : at + 2] = [merged]
    return tuple(sorted_gaps)


def end_gap(gaps: Sequence[Gap], gap: Gap, last: int) -> tuple[Gap, ...]:
    """Return the gaps after `gap`, which keeps its first pane, was found to end at pane `last`."""
    return tuple(
        each._replace(last=max(each.first, last)) if each == gap else each for each in gaps
    )


def missing_messages(
    gaps_by_partition: Iterable[Sequence[Gap]], first: int, end: int
) -> MissingMessages:
    """Return what the panes `[first, end)` may lack, given every partition's gaps in order."""
    offsets = [
        sum(gap.offsets for gap in gaps if gap.meets(first, end)) for gaps in gaps_by_partition
    ]
    return MissingMessages(sum(offsets), tuple(p for p, missing in enumerate(offsets) if missing))


def windows_with(window: WindowSpec, panes: Iterable[int], *, first: int = NEVER) -> Iterator[int]:
    """Yield the windows, from `first` on, that contain any of these panes (in order)."""
    for pane in panes:
        holding = window.windows(pane)
        numbers = range(max(holding.start, first), holding.stop)
        # Messages may be lost from a day that a zone skipped, but nobody can ask about it.
        yield from (number for number in numbers if not window.is_empty(number))
        first = max(first, holding.stop)
