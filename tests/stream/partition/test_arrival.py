"""Arrival bounds event time: how it is known, and that no forged date makes others late."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate, repeat

import numpy as np
import pytest
from benchmarks.resilience.forged_times import WINDOWS, Late, measure

from ldpstream.agents.state.batch import MEMORY, Dates
from ldpstream.agents.state.windows import WindowSpec

NOW_MS = 1_800_000_000_000


def known(dates: Dates, *, since_ms: int | None = None) -> tuple[list[int], list[int]]:
    """Return the latest possible and the best known arrivals of two records."""
    found = replace(dates, since_ms=since_ms).arrivals(now_ms=NOW_MS)
    return tuple(np.broadcast_to(of, 2).tolist() for of in (found.latest_ms, found.clock_ms))


def test_a_brokers_timestamp_is_the_arrival():
    assert known(Dates((5, 7), appended=True)) == ([5, 7], [5, 7])


def test_senders_timestamps_are_bounded_by_what_a_reader_knows():
    assert known(Dates()) == ([NOW_MS] * 2, [NOW_MS] * 2)
    assert known(Dates((-1, -1))) == ([NOW_MS] * 2, [NOW_MS] * 2)
    for dated_ms, since_ms, clock_ms in (
        (NOW_MS - 60_000, None, NOW_MS - 60_000),
        (NOW_MS - 60_000, NOW_MS - 200, NOW_MS - 200),
        (NOW_MS + 60_000, NOW_MS - 200, NOW_MS),
        (NOW_MS + 500, None, NOW_MS),
    ):
        dates = Dates((dated_ms, dated_ms))
        assert known(dates, since_ms=since_ms) == ([NOW_MS] * 2, [clock_ms] * 2)


def read(
    times_ms: Sequence[int], sizes: Iterable[int], *, since_ms: int | None = None
) -> list[int]:
    """Return the best known arrivals of records that are read in batches of these sizes."""
    found: list[int] = []
    dates = Dates(times_ms, since_ms=since_ms)
    while len(found) < len(times_ms):
        part = dates.part(len(found), len(found) + next(iter(sizes)))
        arrived = part.arrivals(now_ms=NOW_MS)
        found += np.broadcast_to(arrived.clock_ms, len(part.times_ms)).tolist()
    return found


@pytest.mark.parametrize("most", [1, 7, 300, 5_000])
def test_known_times_are_never_after_the_arrival_though_a_third_lies(most: int):
    rng = random.Random(3)
    arrived = sorted(NOW_MS - rng.randrange(3_600_000) for _ in range(4_000))
    lies = [at + (3_600_000 if rng.random() < 0.3 else 0) for at in arrived]
    sizes = iter(lambda: rng.randint(1, most), 0)
    for place, (at, known_ms) in enumerate(zip(arrived, read(lies, sizes), strict=True)):
        assert known_ms <= at
        # The bound is a median over MEMORY records, computed once for some records in a row.
        assert known_ms >= arrived[max(0, place - MEMORY - 200)]


@pytest.mark.parametrize("lie_ms", [0, NOW_MS, 1 << 60])
def test_an_arrival_is_the_least_date_at_first_then_a_median_of_the_records_before_it(lie_ms: int):
    times = [NOW_MS - 9_000 + (place * 37) % 8_000 for place in range(4 * MEMORY)]
    times[1] = times[2 * MEMORY] = lie_ms
    medians = [
        sorted(times[max(0, first - MEMORY) : max(MEMORY, first)])[0 if first < MEMORY else 255]
        for first in range(0, len(times), 128)
    ]
    latest = list(accumulate(medians, max))
    assert read(times, repeat(len(times))) == [latest[place // 128] for place in range(len(times))]


def test_records_that_do_not_say_when_are_passed_over():
    times = [NOW_MS - 9_000] * MEMORY + [-1, NOW_MS - 8_000] * MEMORY
    assert read(times, repeat(100))[-1] == NOW_MS - 8_000
    assert read([-1] * 3, repeat(2)) == [NOW_MS] * 3
    assert read(times, repeat(100), since_ms=NOW_MS - 5)[-1] == NOW_MS - 5


@pytest.mark.slow
@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
@pytest.mark.parametrize("away", [False, True])
def test_forged_dates_make_no_honest_report_late(window: WindowSpec, *, away: bool):
    assert measure(window, "LogAppendTime", seconds=80, away=away).late == 0


def test_forged_dates_make_nothing_late_while_a_worker_catches_up():
    assert measure(WINDOWS["10s, grace = 5s"], "CreateTime", seconds=130, away=True).late == 0


def test_without_the_bound_forged_dates_make_reports_late():
    window = WINDOWS["10s, grace = 5s"]
    honest, late = measure(window, "no bound", seconds=20, away=False)
    assert late > honest / 20
    assert measure(window, "CreateTime", seconds=20, away=False) == Late(honest, 0)
