"""Numbers, durations and times, read in one grammar at every edge, and not in Python's own."""

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ldpstream.agents.config.query.queries import parse_linear, parse_range
from ldpstream.agents.config.query.settings import TOP, UNIT
from ldpstream.agents.config.serving import is_port
from ldpstream.mechanisms.base.checks import read_budget
from ldpstream.mechanisms.base.errors import QueryError
from ldpstream.mechanisms.base.numbers import (
    parse_real,
    parse_reals,
    parse_whole,
    read_decimal,
    read_number,
    read_whole,
)
from ldpstream.mechanisms.base.times import (
    EARLIEST_MS,
    LATEST_MS,
    format_duration,
    format_time,
    format_times,
    parse_duration,
    parse_time,
    parse_times,
    read_times,
    resemble_seconds,
)
from ldpstream.mechanisms.domains.parse import Interval, Labels, Size
from ldpstream.mechanisms.ledger.spent import read_budget as read_ledger_budget
from ldpstream.mechanisms.ledger.terms import whole_ms
from tests.stream.cli import configured, invoke

FOREIGN = [
    "1_0",
    "１０",
    "١٠",
    "0x10",
    "1e1_0",
    "nan",
    "inf",
    "-inf",
    "1e999",
    "1e",
    ".",
    "",
    "1 0",
]
"""Texts that Python, numpy or JavaScript read as numbers, and people do not; and no numbers."""
SIZE, LINE = Size(11), Interval(((0.0, 100.0),), (10,))


@pytest.mark.parametrize("text", FOREIGN)
@pytest.mark.parametrize("read", [read_number, read_whole])
def test_nothing_but_decimals_is_a_number(read: Callable[[str], float], text: str):
    with pytest.raises(ValueError, match="number"):
        read(text)


@pytest.mark.parametrize("text", FOREIGN)
def test_cells_are_numbers_in_no_domain(text: str):
    assert math.isnan(parse_real(text))
    assert parse_whole(text) == -1
    for domain in (SIZE, LINE):
        with pytest.raises(ValueError, match="expected a"):
            domain.parse_columns([[text]])


@pytest.mark.parametrize("text", FOREIGN)
@pytest.mark.parametrize(
    "read",
    [
        UNIT.read,
        TOP.read,
        parse_duration,
        parse_time,
        lambda text: parse_duration(f"{text}s"),
        lambda text: read_budget(text, "policy", infinite=False),
        lambda text: parse_range(f"{text}..10", SIZE),
        lambda text: parse_linear(f"{text},1", Labels(("bus", "car")), 1),
        read_ledger_budget,
        lambda text: read_ledger_budget(f"1/{text}"),
    ],
)
def test_edges_refuse_what_is_no_number(read: Callable[[str], Any], text: str):
    with pytest.raises(ValueError):  # noqa: PT011 (each has a message of its own)
        read(text)


@pytest.mark.parametrize("text", [*FOREIGN, "65536", "99999", "1" * 5_000, "+80", " 80"])
def test_ports_are_digits(text: str):
    assert not is_port(text)
    assert is_port("6066")


@pytest.mark.parametrize(
    ("text", "number"),
    [("12", 12.0), ("+5", 5.0), ("-0.5", -0.5), (".5", 0.5), ("5.", 5.0), ("1E3", 1000.0)],
)
def test_what_people_write_is_read(text: str, number: float):
    assert read_number(text) == parse_real(f" {text}\t") == number
    assert read_decimal(text) == Fraction(number)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_double_comes_back(number: float):
    assert read_number(repr(number)) == number


@given(st.text(alphabet="0123456789.eE+-_ xinfa１٣", max_size=8))
def test_what_is_read_is_what_python_reads(text: str):
    try:
        number = read_decimal(text)
    except ValueError:
        return
    assert float(number) == float(text)


def test_only_the_word_inf_is_an_infinite_budget():
    assert read_budget(" inf", "policy") is None
    for text in ("Infinity", "INF", "+inf", "infinity"):
        with pytest.raises(ValueError, match="policy: expected a budget of at least 0 or inf"):
            read_budget(text, "policy")


PLAN = ("plan", "ages", "--json", "--respondents")


@pytest.mark.parametrize(
    "command",
    [
        ("privatize", "ages"),
        (*PLAN, "{}"),
        (*PLAN, "9", "--search", "{}"),
        (*PLAN, "9", "--limit", "{}"),
        (*PLAN, "9", "--width", "{}"),
        (*PLAN, "9", "--search", "0", "--prior", "counts"),
        ("certify", "ages", "--published", "{}", "--delta", "0.1"),
        ("certify", "ages", "--published", "9", "--delta", "{}"),
        ("certify", "ages", "--windows", "{}"),
        ("query", "http://127.0.0.1:1", "ages", "--last", "{}"),
        ("simulate", "ages", "--seconds", "{}"),
        ("simulate", "ages", "--seed", "{}"),
        ("simulate", "ages", "--rate", "{}"),
        ("send", "ages", "--batch", "{}"),
        ("demo", "--seconds", "{}"),
        ("demo", "--port", "{}"),
        ("devbroker", "--port", "{}"),
        ("close", "ages", "--yes", "--until", "{}"),
        ("worker", "--shard", "{}/2"),
        ("estimate", "ages", "--confidence", "{}"),
        ("estimate", "ages", "--quantile", "{}"),
        ("estimate", "ages", "--range", "{}..50"),
    ],
)
@pytest.mark.parametrize("text", ["1_0", "nan"])
def test_commands_refuse_what_is_no_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], text: str
):
    configured(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "counts").write_text(f"{text}\n" * 10)
    result = invoke(*(part.format(text) for part in command), stdin=f"{text}\n")
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    assert result.stderr.count("\n") == 1, result.stderr


ODD = [
    "1",
    "1_0",
    " 2 ",
    "\t3",
    "4\n",
    "\xa05",
    "nan",
    "inf",
    "1e999",
    "",
    "x",
    "\u0663",
    "1\x1f",
    "-0",
]


def test_cells_together_are_the_numbers_of_each():
    for one in ODD:
        for other in ODD:
            each = [repr(parse_real(one)), repr(parse_real(other))]
            assert [repr(number) for number in parse_reals([one, other])] == each
    assert parse_reals([]) == []


MODES = Labels(("bus", "car", "walk"))


@pytest.mark.parametrize("text", ["0,-1,1", "walk=1,car=-1", " walk = 1, car=-1", "car=-1,walk=1"])
def test_weights_are_written_in_order_or_by_label(text: str):
    for name in ("", "lead:"):
        query = parse_linear(f"{name}{text}", MODES, 2)
        assert query.name == (name.removesuffix(":") or "linear-2")
        assert query.weights.tolist() == [0.0, -1.0, 1.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("walk=1,2", r"W,W,\.\.\. with a number for each value, or .*LABEL=W"),
        ("walk=one", r"LABEL=W"),
        ("walk=1,walk=2", "each label once"),
        ("wlak=1", "labels of the domain, got 'wlak'"),
        ("1,2", "3 weights, one for each value, got 2"),
    ],
)
def test_weights_that_cannot_be_read_are_refused(text: str, message: str):
    with pytest.raises(QueryError, match=message):
        parse_linear(text, MODES, 1)


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
