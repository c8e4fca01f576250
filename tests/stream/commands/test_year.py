"""A year in words: what each kind of reader learns in 365 days, and the page to sign."""

import json
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest

from ldpstream.agents.config.privacy.over_time import SpreadConfig, charges
from ldpstream.agents.config.privacy.statement import central
from ldpstream.mechanisms.channels.permanent_draw import most_periods
from tests.stream.cli import certified, configured, configured_modes, invoke

MODES = """
[collection.modes]
mechanism = "randomized-response"
epsilon = 1.0
domain = { values = ["bus", "train", "walk", "car"] }
window = { size = "1d" }
"""
DAY_MS = 86_400_000
YEAR_MS = 365 * DAY_MS
OFF = 'publish = { every = "off" }\nminimum = 500\n'
SPREAD = 'spread = { reports = 4, horizon = "365d", rolling = true }\n'
LEDGER, WITHOUT, DOCUMENTS, PUBLIC = range(4)


def year_of(folder: Path, keys: str = "") -> dict[str, Any]:
    (one,) = certified(configured(folder, MODES + keys))
    year: dict[str, Any] = one["year"]
    return year


@pytest.mark.parametrize(
    ("keys", "loss", "factor", "sentence"),
    [
        ("", "366", "no limit", "it sends one report in each, 366 in all, unless its budget"),
        # The year may begin inside a window: 4 of 365 windows are up to 5 of 366.
        (SPREAD, "5", "149", "it takes part in at most 5 of them"),
        (SPREAD.replace("365d", "366d"), "4", "54.6", "it takes part in at most 4 of them"),
        ("hold = 91\n", "6", "404", "it draws at most 6 reports"),
        ("hold = 92\n", "5", "149", "it draws at most 5 reports"),
        ("hold = 14\n", "28", "no limit", "there is no limit to how sure they may become"),
    ],
)
def test_a_ledger_bounds_a_year_of_single_reports(
    tmp_path: Path, keys: str, loss: str, factor: str, sentence: str
) -> None:
    year = year_of(tmp_path, keys)
    reader = year["readers"][LEDGER]
    assert (reader["loss"], reader["factor"]) == (loss, factor)
    assert sentence in reader["said"]
    assert year["windows"] == 366
    # What the ledger's budget is, nobody else knows: without one nothing is promised.
    without = year["readers"][WITHOUT]
    assert (without["loss"], without["factor"]) == (None, "no limit")


WINDOW_MS = 3
LENGTHS_MS = range(1, 32)


def touched(start_ms: int, time_ms: int) -> range:
    """Return the numbers of the windows in which events of this time may lie."""
    return range(start_ms // WINDOW_MS, (start_ms + time_ms - 1) // WINDOW_MS + 1)


@pytest.mark.parametrize("time_ms", LENGTHS_MS)
def test_no_time_touches_more_windows_than_said(time_ms: int) -> None:
    found = max(len(touched(start_ms, time_ms)) for start_ms in range(WINDOW_MS))
    assert most_periods(time_ms, WINDOW_MS) == found


@pytest.mark.parametrize("windows", [2, 3, 5])
def test_no_time_holds_more_draws_than_said(tmp_path: Path, windows: int) -> None:
    """Every start of the time, and with each secret another start of the device's epochs."""
    spec = configured_modes(tmp_path, MODES + f"hold = {windows}\n").spec
    hold = spec.hold

    def draws(secret: bytes, start_ms: int, time_ms: int) -> int:
        starts_ms = [number * WINDOW_MS for number in touched(start_ms, time_ms)]
        key = {"window_ms": WINDOW_MS}
        return len({hold.epoch(secret, bytes(8), start_ms=one, **key) for one in starts_ms})

    for time_ms in LENGTHS_MS:
        found = max(
            draws(bytes([number]) * 32, start_ms, time_ms)
            for number in range(4)
            for start_ms in range(windows * WINDOW_MS)
        )
        assert charges(spec, None, most_periods(time_ms, WINDOW_MS)) == found


@pytest.mark.parametrize("rolling", [False, True])
@pytest.mark.parametrize(("reports", "windows"), [(1, 1), (1, 3), (2, 3), (2, 4), (3, 4)])
def test_no_time_holds_more_reports_of_a_spread_than_said(
    tmp_path: Path, reports: int, windows: int, rolling: bool
) -> None:
    """Every start of the time, and every draw of the windows of each period."""
    spec = configured_modes(tmp_path, MODES).spec
    spread = SpreadConfig(reports, windows, windows * WINDOW_MS, rolling)
    drawn = list(combinations(range(windows), reports))

    def most(numbers: range) -> int:
        if rolling:
            return max(sum(number % windows in one for number in numbers) for one in drawn)
        periods = {number // windows for number in numbers}
        return sum(
            max(sum(period * windows + place in numbers for place in one) for one in drawn)
            for period in periods
        )

    for time_ms in LENGTHS_MS:
        starts_ms = range(windows * WINDOW_MS)
        found = max(most(touched(start_ms, time_ms)) for start_ms in starts_ms)
        assert charges(spec, spread, most_periods(time_ms, WINDOW_MS)) == found


def test_a_ledger_counts_days_in_utc_where_windows_are_local_days(tmp_path: Path) -> None:
    """365 days touch up to 367 days of Berlin, and a device reports at most in 366 of UTC."""
    local = MODES.replace('"1d" }', '"1d", timezone = "Europe/Berlin" }')
    config = configured_modes(tmp_path, local)
    calendar, ledger_ms = config.window.calendar, config.window.pane_ms
    assert ledger_ms == DAY_MS
    starts_ms = range(1_704_067_200_000, 1_704_067_200_000 + YEAR_MS, DAY_MS // 48)
    ends_ms = [start_ms + YEAR_MS - 1 for start_ms in starts_ms]
    spans = list(zip(starts_ms, ends_ms, strict=True))
    assert max(calendar.day(end) - calendar.day(start) + 1 for start, end in spans) == 367
    found = max(end // DAY_MS - start // DAY_MS + 1 for start, end in spans)
    (one,) = certified(configured(tmp_path, local))
    assert one["year"]["windows"] == found == 366


def test_documents_of_a_year_lose_the_sum_of_those_of_each_report(tmp_path: Path) -> None:
    config = configured_modes(tmp_path, MODES + OFF + SPREAD)
    each = config.central
    year = year_of(tmp_path, OFF + SPREAD)
    documents = year["readers"][DOCUMENTS]
    assert 5 * each.epsilon <= float(documents["loss"]) <= 5 * each.epsilon + 0.01
    assert "a chance of one in 20,000,000" in documents["said"]
    assert "at least 500 report in each 1d" in documents["said"]
    # The public is told no more than documents say.
    assert year["readers"][PUBLIC]["loss"] == documents["loss"]


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ("", "since open windows are published, too"),
        ("hold = 91\n" + OFF, "since reports of several windows share one draw"),
    ],
)
def test_documents_without_a_bound_of_their_own_say_why(
    tmp_path: Path, keys: str, why: str
) -> None:
    readers = year_of(tmp_path, keys)["readers"]
    assert why in readers[DOCUMENTS]["said"]
    assert readers[DOCUMENTS]["loss"] == readers[LEDGER]["loss"]


def test_two_reports_in_a_local_day_are_not_bounded_as_two_of_different_days(
    tmp_path: Path,
) -> None:
    """A local day contains parts of two days of UTC, in each of which a device may report."""
    text = (MODES + OFF).replace('"1d" }', '"1d", timezone = "Europe/Berlin" }')
    (one,) = certified(configured(tmp_path, text))
    documents = one["year"]["readers"][DOCUMENTS]
    assert "since a device may report twice in a window" in documents["said"]
    assert documents["loss"] == one["year"]["readers"][LEDGER]["loss"] == "366"


def test_a_block_without_minimum_block_hides_no_report(tmp_path: Path) -> None:
    blocks = MODES.replace('"car"] }', '"car"], blocks = 2 }').replace(
        "randomized-response", "block-hadamard"
    )
    config = configured(tmp_path, blocks + OFF)
    (one,) = certified(config)
    said = one["year"]["readers"][DOCUMENTS]["said"]
    assert "since documents may be about single reports: minimum_block is off" in said
    assert one["year"]["unprotected"] == one["unprotected"]


def test_two_windows_lose_at_most_twice_what_one_does(tmp_path: Path) -> None:
    """All sums of two windows, each of the device's report and two known values of others."""
    mechanism = configured_modes(tmp_path, MODES + OFF).spec.mechanism
    delta = 0.2
    one = central(mechanism, reports=3, delta=delta)
    budget = one.epsilon
    assert budget < 1.0
    rows = [[float(row.get(y, 0)) for y in range(4)] for row in mechanism.channel().rows]

    def sums(values: tuple[int, ...]) -> dict[tuple[int, ...], float]:
        table: dict[tuple[int, ...], float] = {}
        for reports in product(range(4), repeat=len(values)):
            chance = 1.0
            for value, report in zip(values, reports, strict=True):
                chance *= rows[value][report]
            key = tuple(sorted(reports))
            table[key] = table.get(key, 0.0) + chance
        return table

    for others in product(range(4), repeat=2):
        first, other = sums((0, *others)), sums((1, *others))
        excess = sum(
            max(0.0, first[y] * first[z] - 2.718281828 ** (2 * budget) * other[y] * other[z])
            for y, z in product(first, repeat=2)
        )
        assert excess <= 2 * delta


def test_the_page_to_sign_says_the_same_and_no_power_of_ten(tmp_path: Path) -> None:
    year = year_of(tmp_path)
    printed = invoke("certify", "-c", configured(tmp_path, MODES), "--year").stdout
    words = " ".join(printed.split())
    for text in (year["about"], year["limits"], *year["disclosed"]):
        assert text in words
    for reader in year["readers"]:
        assert f"{reader['who']} {reader['said']}" in words
    assert "e+" not in json.dumps(year)
    assert printed.rstrip().splitlines()[-1].split("_")[0] == "Name "
    assert all(len(line) <= 88 for line in printed.splitlines())
    assert len(printed.splitlines()) < 60


def test_a_year_is_printed_alone(tmp_path: Path) -> None:
    config = configured(tmp_path, MODES)
    result = invoke("certify", "-c", config, "--year", "--windows", "4")
    assert result.exit_code == 2
    assert "--year: expected no --published, --windows or --pair with it" in result.stderr


def test_beliefs_are_also_of_the_two_values_that_are_hidden_least(tmp_path: Path) -> None:
    """Neighbours alone would look 1.35 times apart where both ends differ by e^4.5."""
    ages = '[collection.ages]\nmechanism = "l1-geometric"\nepsilon = 0.3\ndomain = { size = 16 }\n'
    (one,) = certified(configured(tmp_path, ages))
    near, far = one["odds"]
    assert (near["factor"], far["factor"]) == ("1.34986", one["largest_factor"])
    assert far["budget"] == pytest.approx(4.5)
    assert "more than 90.0172 times" in far["said"]


def test_beliefs_of_a_sensitive_value_say_which_of_the_two_is_hidden(tmp_path: Path) -> None:
    """A report may prove that somebody has none of the sensitive values, never that of one."""
    text = '[collection.health]\nmechanism = "high-low"\nepsilon = 1.0\nsensitive = ["hiv"]\n'
    text += 'domain = { values = ["none", "flu", "hiv"] }\n'
    (one,) = certified(configured(tmp_path, text))
    (odds,) = one["odds"]
    assert odds["said"] == (
        "No report is more than 2.71829 times likelier for a sensitive value than for any other: "
        "whatever was known before, even odds between the two become at most 73.11% for the former."
    )
