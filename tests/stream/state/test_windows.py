"""Windows, panes and local days against plain definitions, also where clocks change."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpstream.agents.state.calendar import (
    DAY_MS,
    WEEK_MS,
    WEEKDAYS,
    Calendar,
    offsets_divisor_ms,
    time_zone,
)
from ldpstream.agents.state.encoding import decode_key, encode_key, split_state, state_prefix
from ldpstream.agents.state.records import HEAD, Key, RecordError
from ldpstream.agents.state.windows import NEVER, WindowSpec
from ldpstream.mechanisms.base.times import parse_time
from tests.stream.harness import make_context

NUMBERS = st.integers(-(10**13), 10**13)


@st.composite
def window_specs(draw: st.DrawFn) -> WindowSpec:
    size_ms = draw(st.integers(1, 200))
    return WindowSpec(
        size_ms=size_ms,
        hop_ms=draw(st.integers(1, size_ms)),
        grace_ms=draw(st.integers(0, 50)),
        retention_ms=draw(st.integers(0, 500)),
    )


@given(window_specs(), NUMBERS)
def test_a_pane_is_in_exactly_the_windows_that_hold_it(window: WindowSpec, pane: int):
    holding = window.windows(pane)
    assert len(holding) >= 1
    assert all(pane in window.panes(number) for number in holding)
    assert pane not in window.panes(holding.start - 1)
    assert pane not in window.panes(holding.stop)


@given(window_specs(), NUMBERS)
def test_a_window_is_a_whole_number_of_panes(window: WindowSpec, number: int):
    start_ms, end_ms = window.span(number)
    panes = window.panes(number)
    assert (start_ms, end_ms) == (panes.start * window.pane_ms, panes.stop * window.pane_ms)
    assert window.first_pane(number) == window.pane(start_ms) == panes.start
    assert window.pane(end_ms - 1) == panes.stop - 1
    assert window.size_ms % window.pane_ms == window.hop_ms % window.pane_ms == 0


@given(window_specs(), NUMBERS)
def test_windows_are_final_when_all_their_panes_are_closed(window: WindowSpec, closed: int):
    final = window.final(closed)
    assert window.panes(final - 1)[-1] < closed
    assert window.panes(final)[-1] >= closed
    assert window.closing(final) == window.panes(final - 1)[-1] + 1 <= closed


def test_never_stays_never():
    window = WindowSpec(size_ms=7, hop_ms=3, grace_ms=2)
    assert window.closed(NEVER) == window.expired(NEVER) == window.final(NEVER) == NEVER
    assert window.closing(NEVER) == window.first_pane(NEVER) == NEVER


@pytest.mark.parametrize(
    "wrong", [{"hop_ms": 0}, {"hop_ms": 9}, {"grace_ms": -1}, {"idle_ms": -1}, {"future_ms": -1}]
)
def test_impossible_windows_are_refused(wrong: dict[str, int]):
    with pytest.raises(ValueError, match="expected"):
        WindowSpec(**{"size_ms": 8, "hop_ms": 4} | wrong)


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
HOUR_MS = 3_600_000
CHANGES = [
    ("Europe/Berlin", "2026-03-29", 23),
    ("Europe/Berlin", "2026-10-25", 25),
    ("America/New_York", "2026-11-01", 25),
    ("Asia/Kolkata", "2026-10-25", 24),
    ("Australia/Lord_Howe", "2026-10-04", 23.5),
    ("Australia/Lord_Howe", "2026-04-05", 24.5),
    ("America/Sao_Paulo", "2018-11-04", 23),  # clocks go forward at midnight
    ("America/Sao_Paulo", "2018-02-17", 25),  # and back at midnight, to the day before
    ("America/St_Johns", "2010-11-07", 25),  # midnight comes twice, a minute of this day between
    ("America/St_Johns", "2010-11-06", 24),
    ("America/Toronto", "1919-03-31", 23.5),  # clocks skip from 23:30 to 00:30
    ("Asia/Beirut", "2022-03-27", 23),
    ("Africa/Cairo", "2026-04-24", 23),
    ("Pacific/Apia", "2011-12-29", 24),
    ("Pacific/Apia", "2011-12-30", 0),  # skipped
    ("Pacific/Kwajalein", "1993-08-21", 0),
]
ZONES = sorted({zone for zone, _, _ in CHANGES} | {"UTC", "Asia/Kathmandu", "Pacific/Kiritimati"})


def number_of(day: date) -> int:
    return (day - EPOCH.date()).days


def local_date(zone: str, time_ms: int) -> date:
    return (EPOCH + timedelta(milliseconds=time_ms)).astimezone(ZoneInfo(zone)).date()


@st.composite
def calendars(draw: st.DrawFn) -> WindowSpec:
    hop, times = draw(st.sampled_from([1, 1, 2, 7, 14])), draw(st.integers(1, 3))
    week_start = draw(st.sampled_from(WEEKDAYS)) if hop % 7 == 0 else None
    return WindowSpec(
        size_ms=(hop * times + draw(st.sampled_from([0, 0, 1]))) * DAY_MS,
        hop_ms=hop * DAY_MS,
        grace_ms=draw(st.integers(0, 2 * HOUR_MS)),
        calendar=Calendar(draw(st.sampled_from(ZONES)), week_start),
    )


TIMES = st.one_of(
    st.integers(parse_time("1900-01-01T00:00:00Z"), parse_time("2100-01-01T00:00:00Z")),
    st.integers(parse_time("0001-03-01T00:00:00Z"), parse_time("9999-10-01T00:00:00Z")),
    st.sampled_from(
        [
            int((datetime.fromisoformat(f"{day}T00:00Z") - EPOCH).total_seconds()) * 1000 + hour
            for _, day, _ in CHANGES
            for hour in range(-14 * HOUR_MS, 27 * HOUR_MS, HOUR_MS // 2)
        ]
    ),
)


@pytest.mark.parametrize(("zone", "day", "hours"), CHANGES)
def test_a_day_begins_with_the_first_minute_of_its_date_or_a_later_one(
    zone: str, day: str, hours: float
):
    calendar, number = Calendar(zone), number_of(date.fromisoformat(day))
    assert calendar.start(number + 1) - calendar.start(number) == hours * HOUR_MS
    begun: dict[int, int] = {}
    latest = number - 3
    for minute in range((number - 2) * 1440, (number + 3) * 1440):
        found = number_of(local_date(zone, 60_000 * minute))
        begun |= dict.fromkeys(range(latest + 1, found + 1), 60_000 * minute)
        latest = max(latest, found)
        assert calendar.day(60_000 * minute) == latest
    for one in range(number - 1, number + 2):
        assert calendar.start(one) == begun[one]


@given(calendars(), TIMES)
def test_a_time_is_in_exactly_one_pane(window: WindowSpec, time_ms: int):
    pane = window.pane(time_ms)
    assert window.start(pane) <= time_ms < window.start(pane + 1)
    assert window.pane(window.start(pane)) == window.edge(window.start(pane)) == pane
    assert window.edge(time_ms) in {None, pane}
    assert window.earliest_ms < time_ms < window.latest_ms
    days = (window.start(pane + 1) - window.start(pane)) / DAY_MS
    assert abs(days - window.pane_ms / DAY_MS) <= 1
    weekday = (EPOCH + timedelta(days=window.calendar.first_day)).strftime("%A").lower()
    assert window.calendar.week_start in {None, weekday}
    assert window.identity.week_start == window.calendar.week_start


@given(calendars(), st.lists(TIMES, max_size=20))
def test_many_times_are_in_the_same_panes(window: WindowSpec, times_ms: list[int]):
    times = np.array([*times_ms, NEVER, NEVER + 1, -NEVER], dtype=np.int64)
    panes = window.panes_of(times)
    assert panes.tolist() == [window.pane(time_ms) for time_ms in times.tolist()]
    assert window.panes_of(times.reshape(1, -1)).tolist() == [panes.tolist()]
    assert window.starts(panes).tolist() == [window.start(pane) for pane in panes.tolist()]


@given(calendars(), TIMES)
def test_windows_consist_of_panes(window: WindowSpec, time_ms: int):
    holding = window.windows(window.pane(time_ms))
    for number in range(holding.start - 1, holding.stop + 1):
        start_ms, end_ms = window.span(number)
        assert (start_ms <= time_ms < end_ms) == (number in holding)
        assert window.is_empty(number) == (start_ms == end_ms)
        told = window.starting(start_ms)
        assert told is not None
        assert window.span(told)[0] == start_ms
        if window.start(window.first_pane(number) + 1) > start_ms:
            assert told == number


@given(calendars(), TIMES)
def test_times_are_written_in_the_zone(window: WindowSpec, time_ms: int):
    text = window.format_time(time_ms)
    assert parse_time(text) == time_ms
    if not text.endswith("Z"):
        assert text[:10] == local_date(window.calendar.timezone, time_ms).isoformat()


def test_the_ends_of_time_have_windows():
    window = WindowSpec(size_ms=WEEK_MS, hop_ms=DAY_MS, calendar=Calendar("Pacific/Apia"))
    for time_ms in (window.earliest_ms, window.latest_ms):
        for number in window.windows(window.pane(time_ms)):
            for edge_ms in window.span(number):
                assert parse_time(window.format_time(edge_ms)) == edge_ms


def test_windows_of_hours_have_no_calendar():
    with pytest.raises(ValueError, match="whole days"):
        WindowSpec(size_ms=DAY_MS, hop_ms=HOUR_MS, calendar=Calendar("Europe/Berlin"))


@pytest.mark.parametrize(
    ("zone", "hours"),
    [("UTC", 24), ("Europe/Berlin", 1), ("Asia/Kolkata", 0.5), ("Asia/Kathmandu", 0.25)],
)
def test_devices_cut_times_to_a_divisor_of_the_zones_offsets(zone: str, hours: float):
    assert offsets_divisor_ms(zone) == hours * HOUR_MS


@pytest.mark.parametrize(
    "name", ["", "Berlin", "localtime", "America", "America/Argentina", "Europe/Nowhere", "../x/y",
             "/etc/passwd", "right/Europe/Berlin", "posix/Europe/Berlin", "CET", "a/\0"]
)  # fmt: skip
def test_names_that_depend_on_the_machine_are_no_zones(name: str):
    with pytest.raises(ValueError, match=r"^"):
        time_zone(name)


def test_states_of_other_windows_are_told_apart():
    windows = [
        WindowSpec(size_ms=WEEK_MS, hop_ms=WEEK_MS),
        WindowSpec(size_ms=WEEK_MS, hop_ms=DAY_MS),
        *(
            WindowSpec(size_ms=WEEK_MS, hop_ms=WEEK_MS, calendar=Calendar(zone, start))
            for zone in ("UTC", "Europe/Berlin", "Europe/Berlin2")
            for start in (None, "monday", "sunday")
        ),
    ]
    contexts = [make_context(window) for window in windows]
    for context in contexts:
        prefix = state_prefix(context)
        key = encode_key(prefix, Key(HEAD, 7, 3))
        assert decode_key(prefix, key) == Key(HEAD, 7, 3)
        state, fingerprint, identity = split_state(key)
        assert (state, fingerprint) == (prefix, context.spec.fingerprint)
        assert identity == context.window.identity
        others = [state_prefix(other) for other in contexts if other is not context]
        assert len(others) == len(contexts) - 1
        assert all(decode_key(other, key) is None for other in others)
    assert len({window.identity.label for window in windows}) == len(windows)


def test_the_key_of_a_calendars_state_is_pinned():
    calendar = Calendar("Asia/Kolkata", "monday")
    window = WindowSpec(size_ms=WEEK_MS, hop_ms=WEEK_MS, calendar=calendar)
    prefix = state_prefix(make_context(window, chunk=16))
    assert prefix[:1] == b"\x01"
    assert prefix[9:].hex() == (
        "007cf3dbffffffff"  # the size, negated
        "00840c2400000000"  # the hop
        "10000000"  # entries per chunk
        "040c" + b"Asia/Kolkata".hex()  # the first day, and the zone
    )


def test_a_malformed_calendar_is_no_state():
    prefix = state_prefix(
        make_context(WindowSpec(size_ms=DAY_MS, hop_ms=DAY_MS, calendar=Calendar("Asia/Kolkata")))
    )
    for key in (prefix[:29], prefix[:30], prefix[:31] + b"\xff" * 12, prefix[:-1]):
        with pytest.raises(RecordError):
            split_state(key)


@given(st.one_of(st.tuples(window_specs(), NUMBERS), st.tuples(calendars(), TIMES)))
def test_a_clock_closes_the_panes_that_ended_a_grace_ago(drawn: tuple[WindowSpec, int]):
    window, clock_ms = drawn
    closed = window.closed(clock_ms)
    assert window.start(closed) + window.grace_ms <= clock_ms
    assert window.start(closed + 1) + window.grace_ms > clock_ms
    expired = window.expired(clock_ms)
    assert window.start(expired) + window.grace_ms + window.retention_ms <= clock_ms
    assert window.closed(NEVER) == NEVER
