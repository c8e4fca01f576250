"""Durations and times as people write them, in integer milliseconds."""

import re
from calendar import monthrange
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import numbers_of

_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_DURATION = re.compile(r"([0-9]{1,12})(ms|s|m|h|d|w)")
_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}"
    r"(\.[0-9]{1,9})?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_SECONDS = slice(17, 19)
_LEAP = re.compile(r":60(\.[0-9]+)?")
_DAY_MS = _UNITS_MS["d"]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
LATEST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999."""
EARLIEST_MS = -62_135_596_800_000
"""The first millisecond of the year 1."""
_FORM = np.frombuffer(b"0000-00-00T00:00:00.000Z", dtype=np.uint8)
_PAIRS = np.array([f"{number:02}".encode() for number in range(100)]).view(np.uint8).reshape(-1, 2)
_ZERO, _NINE = b"09"
_SECONDS_FROM = 946_684_800
_SECONDS_TO = 4_102_444_800


def parse_duration(text: str) -> int:
    """Return a duration such as "250ms", "1s", "5m", "1h", "7d" or "1w" in milliseconds.

    Raises:
        ValueError: if the text is not a whole number with one of those units.

    >>> parse_duration("5m")
    300000
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError('a duration such as "250ms", "1s", "5m", "1h" or "7d"')
    return int(match[1]) * _UNITS_MS[match[2]]


def resemble_seconds(times_ms: int | NDArray[np.int64]) -> bool:
    """Return whether any of these epoch milliseconds looks like a number of epoch seconds.

    Epoch seconds of the years 2000 to 2099, read as milliseconds, lie between 11 January and
    17 February 1970.

    >>> resemble_seconds(1_795_255_200_000), resemble_seconds(1_795_255_200)
    (False, True)
    """
    if isinstance(times_ms, int):
        return _SECONDS_FROM <= times_ms < _SECONDS_TO
    times = np.asarray(times_ms)
    return bool(((times >= _SECONDS_FROM) & (times < _SECONDS_TO)).any())


def parse_time(text: str) -> int:
    """Return an RFC 3339 time (with Z or an offset), or integer epoch milliseconds, as epoch ms.

    Fractions of a millisecond are rounded toward the past. A leap second, 23:59:60 in UTC at the
    end of a month, is the last millisecond before midnight: it belongs to the day that it ends, and
    comes after all other moments of that day. An integer that looks like seconds is
    refused; the times of early 1970 that it would mean can be written as RFC 3339.

    Raises:
        ValueError: if the text is neither, looks like seconds, or lies outside the years 1 to
            9999.

    >>> parse_time("1970-01-01T01:00:00+01:00"), parse_time("1500")
    (0, 1500)
    >>> parse_time("1990-12-31T23:59:60Z") == parse_time("1990-12-31T23:59:59.999Z")
    True
    """
    text, leap = text.strip(" \t\r\n"), False
    expected = "an RFC 3339 time with Z or an offset, or epoch milliseconds"
    if re.fullmatch(r"-?[0-9]{1,15}", text):
        time_ms = int(text)
        if resemble_seconds(time_ms):
            raise ValueError(f"{expected} (this looks like seconds)")
    elif _TIME.fullmatch(text):
        leap = text[_SECONDS] == "60"
        if leap:
            text = _LEAP.sub(":59.999", text)
        try:
            moment = datetime.fromisoformat(text.upper().replace(" ", "T"))
        except ValueError as error:
            raise ValueError(expected) from error
        time_ms = time_of(moment)
    else:
        raise ValueError(expected)
    if not EARLIEST_MS <= time_ms <= LATEST_MS or (leap and not _ends_month(time_ms)):
        raise ValueError(expected)
    return time_ms


def time_of(moment: datetime) -> int:
    """Return a datetime with a zone as epoch milliseconds, rounded toward the past."""
    return (moment - _EPOCH) // _MILLISECOND


def _ends_month(time_ms: int) -> bool:
    """Return whether this is the last millisecond of a month in UTC."""
    day = _EPOCH + (time_ms // _DAY_MS) * timedelta(days=1)
    ends = day.day == monthrange(day.year, day.month)[1]
    return ends and time_ms % _DAY_MS == _DAY_MS - 1


def format_time(time_ms: int) -> str:
    """Return epoch milliseconds as RFC 3339 in UTC; whole seconds are shown without a fraction.

    Raises:
        OverflowError: outside the years 1 to 9999.

    >>> format_time(1795255200000), format_time(1)
    ('2026-11-21T10:00:00Z', '1970-01-01T00:00:00.001Z')
    """
    moment = _EPOCH + time_ms * _MILLISECOND
    precision = "milliseconds" if time_ms % 1000 else "seconds"
    return moment.isoformat(timespec=precision).replace("+00:00", "Z")


def parse_times(texts: NDArray[np.uint8]) -> NDArray[np.int64] | None:
    """Return n times as epoch milliseconds, given their characters, uint8 `(n, length)`.

    None unless all are in the form of `format_time`, or all are digits, and none is out of range or
    looks like epoch seconds: `parse_time` reads them one by one, and says what is wrong.
    """
    length = texts.shape[1]
    digits = (texts >= _ZERO) & (texts <= _NINE)
    if digits.all() and 0 < length <= 15:
        times_ms = np.ascontiguousarray(texts).view(f"S{length}")[:, 0].astype(np.int64)
        return None if resemble_seconds(times_ms) or times_ms.max() > LATEST_MS else times_ms
    form = _FORM if length == _FORM.size else np.append(_FORM[:19], _FORM[-1])
    if length != form.size or not ((texts == form) | (digits & (form == _ZERO))).all():
        return None
    unit = "ms" if length == _FORM.size else "s"
    moments = np.ascontiguousarray(texts[:, :-1]).view(f"S{length - 1}")[:, 0]
    try:
        times_ms = moments.astype(f"datetime64[{unit}]").astype("datetime64[ms]").astype(np.int64)
    except ValueError:
        return None
    return None if times_ms.min() < EARLIEST_MS else times_ms


def format_times(times_ms: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return the characters of `format_time` for n times, uint8 `(n, 20)`, or `(n, 24)`.

    The longer form is that of times that are not all whole seconds; zeros fill those that are. The
    times must be within the years 1 to 9999.
    """
    seconds, thousandths = np.divmod(times_ms, 1000)
    days, seconds = np.divmod(seconds, _DAY_MS // 1000)
    first, last = int(days.min()), int(days.max())
    if last - first < len(days):
        days, which = np.arange(first, last + 1), days - first
    else:
        days, which = np.unique(days, return_inverse=True)
    dates = np.datetime_as_string(days.astype("datetime64[D]")).astype("S10").view(np.uint8)
    rows = np.tile(_FORM, (len(times_ms), 1))
    rows[:, :10] = dates.reshape(-1, 10)[which]
    rows[:, 11:19] = _clock()[seconds]
    if not thousandths.any():
        rows[:, 19] = _FORM[-1]
        return rows[:, :20]
    rows[:, 20] = _ZERO + thousandths // 100
    rows[:, 21:23] = _PAIRS[thousandths % 100]
    whole = thousandths == 0
    rows[whole, 19] = _FORM[-1]
    rows[whole, 20:] = 0
    return rows


@lru_cache(maxsize=1)
def _clock() -> NDArray[np.uint8]:
    """Return `hh:mm:ss` of each second of a day, `(86400, 8)`."""
    seconds = np.arange(_DAY_MS // 1000)
    rows = np.tile(_FORM[11:19], (len(seconds), 1))
    for place, number in ((0, seconds // 3600), (3, seconds // 60 % 60), (6, seconds % 60)):
        rows[:, place : place + 2] = _PAIRS[number]
    return rows


def format_duration(duration_ms: int) -> str:
    """Return a duration in its largest whole unit up to days, as `parse_duration` reads it.

    >>> format_duration(90_000), format_duration(86_400_000)
    ('90s', '1d')
    """
    for unit in ("d", "h", "m", "s"):
        unit_ms = _UNITS_MS[unit]
        if duration_ms % unit_ms == 0 and duration_ms:
            return f"{duration_ms // unit_ms}{unit}"
    return f"{duration_ms}ms"


def read_times(times_ms: Sequence[int] | NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Return n event times in epoch milliseconds as int64 `(n,)`.

    Raises:
        ValueError: if they are not n integers within the years 1 to 9999, or look like seconds.
    """
    times = numbers_of(times_ms)
    if (
        times is None
        or times.shape != (n,)
        or times.dtype.kind not in "iu"
        or not ((times >= EARLIEST_MS) & (times <= LATEST_MS)).all()
    ):
        raise ValueError("expected one time for each label, in whole milliseconds since the epoch")
    if resemble_seconds(times):
        raise ValueError("expected times in milliseconds since the epoch: these look like seconds")
    return times.astype(np.int64)
