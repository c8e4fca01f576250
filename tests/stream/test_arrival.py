"""Arrival bounds event time: what is known of it, and that no forged date makes others late."""

import numpy as np
import pytest
from benchmarks.forged_times import WINDOWS, Late, measure

from ldpstream.agents.reading.source import Batch
from ldpstream.agents.state.arrival import Dates
from ldpstream.agents.state.windows import WindowSpec

NOW_MS = 1_800_000_000_000


def known(dates: Dates, *, since_ms: int | None = None) -> tuple[list[int], list[int]]:
    """Return the latest and the best known arrivals of two records."""
    found = dates.arrivals(since_ms=since_ms, now_ms=NOW_MS, precision_ms=1_000)
    return tuple(np.broadcast_to(of, 2).tolist() for of in (found.latest_ms, found.clock_ms))


def test_a_broker_s_timestamp_is_the_arrival():
    assert known(Dates((5, 7), appended=True)) == ([5, 7], [5, 7])


def test_what_senders_say_is_bounded_by_what_a_reader_knows():
    assert known(Dates()) == ([NOW_MS] * 2, [NOW_MS] * 2)
    assert known(Dates((-1, -1))) == ([NOW_MS] * 2, [NOW_MS] * 2)
    for dated_ms, since_ms, clock_ms in (
        (NOW_MS - 60_000, None, NOW_MS - 59_000),
        (NOW_MS - 60_000, NOW_MS - 200, NOW_MS - 200),
        (NOW_MS + 60_000, NOW_MS - 200, NOW_MS),
        (NOW_MS - 500, None, NOW_MS),
    ):
        dates = Dates((dated_ms, dated_ms))
        assert known(dates, since_ms=since_ms) == ([NOW_MS] * 2, [clock_ms] * 2)


def test_the_median_of_what_is_read_together_counts():
    dates = Dates((NOW_MS + 9_000, NOW_MS - 60_000, 0))
    assert known(dates)[1] == [NOW_MS - 59_000] * 2


def test_slices_keep_the_timestamps_of_their_records():
    records = [(offset, b"x" * 100_000) for offset in range(7)]
    dates = Dates(tuple(range(7)), appended=True)
    batch = Batch(session=1, start=0, stop=7, end=7, records=records, dates=dates)
    slices = list(batch.slices())
    assert len(slices) > 2
    for part in slices:
        assert part.dates == Dates(tuple(offset for offset, _ in part.records), appended=True)


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
@pytest.mark.parametrize("away", [False, True])
def test_forged_dates_make_no_honest_report_late(window: WindowSpec, *, away: bool):
    assert measure(window, "LogAppendTime", seconds=80, away=away).late == 0


def test_without_the_bound_they_do():
    window = WINDOWS["10s, grace = 5s"]
    honest, late = measure(window, "no bound", seconds=20, away=False)
    assert late > honest / 20
    assert measure(window, "CreateTime", seconds=20, away=False) == Late(honest, 0)
