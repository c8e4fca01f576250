"""Durations and times as people write them."""

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ldpstream.mechanisms.base.times import (
    EARLIEST_MS,
    LATEST_MS,
    cut,
    format_duration,
    format_time,
    format_times,
    parse_duration,
    parse_time,
    parse_times,
    read_times,
    resemble_seconds,
)
from ldpstream.mechanisms.ledger.terms import whole_ms

times = st.integers(EARLIEST_MS, LATEST_MS)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@given(times)
def test_a_time_survives_its_text(time_ms: int):
    text = format_time(time_ms)
    assert text.endswith("Z")
    assert parse_time(text) == time_ms
    assert ("." in text) == (time_ms % 1000 != 0)
    assert datetime.fromisoformat(text) == EPOCH + timedelta(milliseconds=time_ms)


@given(st.lists(times, min_size=1, max_size=5), st.sampled_from([1, 1000]))
def test_many_times_are_written_and_read_as_one_is(many: list[int], unit: int):
    many = [max(time_ms - time_ms % unit, EARLIEST_MS) for time_ms in many]
    rows = format_times(np.array(many))
    texts = [row.tobytes().rstrip(b"\0") for row in rows]
    assert texts == [format_time(time_ms).encode() for time_ms in many]
    if len(set(map(len, texts))) == 1:
        assert parse_times(rows[:, : len(texts[0])]).tolist() == many


@pytest.mark.parametrize(
    "text",
    [
        *("0000-01-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-02-20T24:00:00Z", "1795255200"),
        *("1990-12-31T23:59:60Z", "2026-02-20t23:59:50Z", "2026-02-20T23:59:50.5Z", "-1", "9" * 15),
    ],
)
def test_other_times_are_left_to_be_read_one_by_one(text: str):
    assert parse_times(np.frombuffer(text.encode(), dtype=np.uint8)[np.newaxis]) is None


@given(st.integers(-(10**13), LATEST_MS))
def test_a_time_may_come_as_epoch_milliseconds(time_ms: int):
    assume(not resemble_seconds(time_ms))
    assert parse_time(f" {time_ms}\n") == time_ms


@given(st.integers(-6 * 10**13, 10**14), st.integers(-1439, 1439))
def test_an_offset_is_the_same_moment(time_ms: int, offset_minutes: int):
    sign, minutes = "-" if offset_minutes < 0 else "+", abs(offset_minutes)
    local = format_time(time_ms + offset_minutes * 60_000).removesuffix("Z")
    text = f"{local}{sign}{minutes // 60:02}:{minutes % 60:02}"
    assert parse_time(text) == time_ms


@given(st.integers(1970, 9998), st.integers(1, 12), st.integers(-1439, 1439))
def test_a_leap_second_ends_a_month_in_utc(year: int, month: int, offset_minutes: int):
    midnight = datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC)
    ends_ms = (midnight - EPOCH) // timedelta(milliseconds=1)
    zone = timezone(timedelta(minutes=offset_minutes))
    local = (midnight - timedelta(seconds=1)).astimezone(zone).isoformat()
    for leap in (":60", ":60.25"):
        text = leap.join([local[:16], local[19:]])
        assert parse_time(text) == ends_ms - 1
        assert parse_time(text) > parse_time(local)


@pytest.mark.parametrize(
    "text",
    [
        "2016-12-30T23:59:60Z",
        "2016-12-31T22:59:60Z",
        "2016-12-31T23:58:60Z",
        "2016-12-31T23:59:60+01:00",
        "2016-12-31T23:59:61Z",
        "0001-01-01T00:59:60+01:00",
    ],
)
def test_no_other_minute_has_61_seconds(text: str):
    with pytest.raises(ValueError, match="RFC 3339"):
        parse_time(text)


def test_fractions_of_a_millisecond_are_cut_off():
    assert parse_time("1970-01-01T00:00:01.0019999Z") == 1001
    assert parse_time("1969-12-31 23:59:59.9999z") == -1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026-11-21",
        "2026-11-21T10:00:00",
        "2026-11-21T10:00Z",
        "2026-13-01T00:00:00Z",
        "2026-02-30T00:00:00Z",
        "2026-11-21T24:00:01Z",
        "2026-11-21T10:00:00+25:00",
        "1.5",
        "1e3",
        "9" * 15,
        "-" + "9" * 15,
        "10:00:00Z",
        "٢٠٢٦-11-21T10:00:00Z",
        "\u00a02026-11-21T10:00:00Z",
        "1700000000000\x1c",
    ],
)
def test_texts_that_are_not_times_are_refused(text: str):
    with pytest.raises(ValueError, match="RFC 3339"):
        parse_time(text)


@given(st.integers(1, 10**11))
def test_a_duration_survives_its_text(duration_ms: int):
    assert parse_duration(format_duration(duration_ms)) == duration_ms


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [("250ms", 250), ("1s", 1000), ("5m", 300_000), ("1h", 3_600_000), ("7d", 604_800_000)],
)
def test_durations_are_a_number_and_a_unit(text: str, duration_ms: int):
    assert parse_duration(text) == duration_ms
    assert format_duration(duration_ms) == text


def test_a_week_is_seven_days():
    assert parse_duration("2w") == parse_duration("14d")


@pytest.mark.parametrize("text", ["", "5", "m", "5 m", "-1s", "1.5h", "1y", "1S", "1s1s", "٣s"])
def test_texts_that_are_not_durations_are_refused(text: str):
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)


@given(times, st.integers(1, 10**9))
def test_a_time_is_cut_to_the_multiple_before_it(time_ms: int, precision_ms: int):
    result = cut(time_ms, precision_ms)
    assert result % precision_ms == 0
    assert 0 <= time_ms - result < precision_ms


@given(st.integers(946_684_800, 4_102_444_799))
def test_seconds_of_this_century_are_refused_and_never_repeated(seconds: int):
    for refuse in (
        lambda: parse_time(str(seconds)),
        lambda: read_times([1_795_255_200_000, seconds], 2),
        lambda: whole_ms(seconds),
    ):
        with pytest.raises(ValueError, match=r"looks? like seconds") as caught:
            refuse()
        assert str(seconds) not in str(caught.value)
    assert parse_time(format_time(seconds)) == seconds
