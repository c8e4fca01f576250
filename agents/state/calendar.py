"""Local days: where each begins, for windows of whole days in a time zone.

In Europe/Berlin 2026-10-25 has 25 hours: its window begins at 22:00 UTC of the 24th and ends at
23:00 UTC of the 25th. Days are numbered from 1970-01-01, and all moments are epoch milliseconds.

A local day begins at the first moment whose local date is this day's or a later one's, as in Java's
`LocalDate.atStartOfDay`. So where clocks go forward at midnight (America/Sao_Paulo), the day begins
at 01:00; where midnight comes twice, it begins at the first; and a day that a zone skipped
(Pacific/Apia, 2011-12-30) begins and ends at the same moment and holds nothing. In this way the
days of every zone follow each other without gap or overlap.
"""

from bisect import bisect_left
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from math import gcd
from typing import Final, Literal, get_args
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.times import format_time

DAY_MS: Final = 86_400_000
WEEK_MS: Final = 7 * DAY_MS
Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
WEEKDAYS: Final[tuple[Weekday, ...]] = get_args(Weekday)
_EPOCH_WEEKDAY: Final = WEEKDAYS.index("thursday")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND: Final = timedelta(seconds=1)
_MILLISECOND: Final = timedelta(milliseconds=1)
_FIRST_DAY: Final = date(1, 1, 3).toordinal() - _EPOCH.toordinal()
_LAST_DAY: Final = date(9999, 12, 29).toordinal() - _EPOCH.toordinal()
"""Days within these can be converted whatever the zone's offset, which is less than a day."""
_CACHED_DAYS: Final = 4_096


@dataclass(frozen=True)
class Calendar:
    """The days of a time zone, and with which one weeks begin.

    `week_start` only matters for windows of whole weeks; None elsewhere.
    """

    timezone: str = "UTC"
    week_start: Weekday | None = None

    @property
    def first_day(self) -> int:
        """The day from which days are grouped into windows."""
        if self.week_start is None:
            return 0
        return (WEEKDAYS.index(self.week_start) - _EPOCH_WEEKDAY) % 7

    def start(self, day: int) -> int:
        """Return the first moment of a day.

        >>> Calendar("Europe/Berlin").start(0)
        -3600000
        """
        return _day_start(self.timezone, day)

    def day(self, time_ms: int) -> int:
        """Return the number of the day that holds a moment.

        >>> Calendar("Europe/Berlin").day(-3_600_000)
        0
        """
        day = time_ms // DAY_MS
        # Offsets are less than a day, so the local day is this one or one next to it.
        return day - 1 + (time_ms >= self.start(day)) + (time_ms >= self.start(day + 1))

    def days(self, times_ms: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the same of many moments, int64 of the same shape."""
        distinct_days, place = np.unique(times_ms // DAY_MS, return_inverse=True)
        starts = np.array(
            [(self.start(day), self.start(day + 1)) for day in distinct_days.tolist()]
        )
        begun = times_ms[..., None] >= starts.reshape(-1, 2)[place.reshape(times_ms.shape)]
        days: NDArray[np.int64] = times_ms // DAY_MS - 1 + begun.sum(axis=-1)
        return days

    def format_time(self, time_ms: int) -> str:
        """Return a moment as RFC 3339 with the zone's offset.

        >>> Calendar("Europe/Berlin").format_time(0)
        '1970-01-01T01:00:00+01:00'
        """
        if self.timezone == "UTC":
            return format_time(time_ms)
        moment = _EPOCH + time_ms * _MILLISECOND
        local = moment.astimezone(time_zone(self.timezone))
        if _offset_seconds(local) % 60:
            # RFC 3339 has no seconds in offsets: local mean times, before some hundred years ago.
            return format_time(time_ms)
        return local.isoformat(timespec="milliseconds" if time_ms % 1000 else "seconds")


@lru_cache
def time_zone(name: str) -> tzinfo:
    """Return a time zone by its name in the IANA database.

    Raises:
        ValueError: for an unknown one, and for names whose meaning depends on the machine.
    """
    if name == "UTC":
        return UTC
    if "/" not in name or name.startswith(("posix/", "right/")):
        # Such as "localtime"; and zones under "right/" count leap seconds.
        raise ValueError(name)
    try:
        return ZoneInfo(name)
    except (LookupError, OSError) as error:
        raise ValueError(name) from error


def zones_are_known() -> bool:
    """Return whether this machine has the time zone database."""
    try:
        time_zone("Europe/London")
    except ValueError:
        return False
    return True


@lru_cache
def offsets_divisor_ms(name: str) -> int:
    """Return the greatest duration that divides a zone's offsets and a day: of 1970 to 2100."""
    zone = time_zone(name)
    months = (
        datetime(year, month, 1, tzinfo=zone)
        for year in range(1970, 2101)
        for month in range(1, 13)
    )
    return gcd(DAY_MS, *(1000 * _offset_seconds(month_s) for month_s in months))


@lru_cache(_CACHED_DAYS)
def _day_start(timezone: str, day: int) -> int:
    midnight_s = day * DAY_MS // 1000
    if timezone == "UTC" or not _FIRST_DAY <= day <= _LAST_DAY:
        return 1000 * midnight_s
    zone = time_zone(timezone)
    local = (_EPOCH + timedelta(days=day)).replace(tzinfo=zone)
    before, after = (_offset_seconds(local.replace(fold=fold)) for fold in (0, 1))
    if after <= before:
        return 1000 * (midnight_s - before)
    # The zone's clocks skipped midnight: the day begins with that change, which lies in between.
    changes = range(midnight_s - after, midnight_s - before)
    index = bisect_left(changes, True, key=lambda at_s: _local_second(zone, at_s) >= midnight_s)
    return 1000 * (midnight_s - after + index)


def _local_second(zone: tzinfo, at_s: int) -> int:
    moment = (_EPOCH + at_s * _SECOND).astimezone(zone)
    return at_s + _offset_seconds(moment)


def _offset_seconds(local: datetime) -> int:
    return (local.utcoffset() or timedelta()) // _SECOND
