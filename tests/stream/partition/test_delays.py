"""Histograms of how late reports come, checked against the outcomes of other grace times."""

from dataclasses import replace
from itertools import accumulate

import numpy as np
import pytest

from ldpstream.agents.engine.metrics import Metrics
from ldpstream.agents.state.batch import Arrivals
from ldpstream.agents.state.classification import DELAY_MS, LATENESS_MS, Delays
from ldpstream.agents.state.flushes import Outcome
from ldpstream.agents.state.partition import Partition
from ldpstream.agents.state.windows import WindowSpec
from tests.stream.harness import frame, loaded, make_context, settle
from tests.stream.scraped import scrape, value

NOW_MS = 1_800_000_000_000
WINDOW = WindowSpec(size_ms=60_000, hop_ms=20_000, grace_ms=1_000, future_ms=1_000)


def taken(window: WindowSpec, *, n: int = 2_000) -> tuple[Partition, Delays]:
    """Let a partition ingest reports of ten minutes, two in five of them out of order."""
    rng = np.random.default_rng(5)
    arrived_ms = NOW_MS + np.sort(rng.integers(0, 600_000, n))
    ago_ms = np.rint(rng.lognormal(6, 4, n) * rng.integers(0, 2, n)).astype(np.int64)
    ago_ms = np.where(rng.random(n) < 0.1, -1_000, np.minimum(ago_ms, 3_000_000))
    replica, part = loaded(make_context(window))
    for start in range(0, n, 500):
        some = slice(start, start + 500)
        values = [frame((int(time_ms), 1)) for time_ms in (arrived_ms - ago_ms)[some]]
        arrived = Arrivals(arrived_ms[some], arrived_ms[some])
        part.ingest(list(enumerate(values, start)), now_ms=NOW_MS + 700_000, arrived=arrived)
    settle(replica, part)
    return part, part.outcome.delays


@pytest.mark.parametrize("grace_ms", [0, 1_000, 30_000, 300_000])
def test_a_bucket_holds_what_a_grace_of_its_bound_would_have_counted(grace_ms: int):
    _, delays = taken(WINDOW)
    other, _ = taken(replace(WINDOW, grace_ms=grace_ms))
    assert 0 < other.work.late < 1_000
    within = dict(zip(LATENESS_MS, accumulate(delays.lateness.counts.tolist()), strict=False))
    assert within[grace_ms] == other.work.n
    assert delays.lateness.counts.sum() == other.work.n + other.work.late


def test_delays_run_from_event_to_arrival_even_for_times_too_far_ahead():
    replica, part = loaded(make_context(WINDOW))
    times_ms = [NOW_MS, NOW_MS - 1, NOW_MS - 100, NOW_MS + 900, NOW_MS + 8_000]
    values = [frame((time_ms, 1)) for time_ms in times_ms]
    # Unreadable messages and impossible reports have no delay.
    values += [b"junk", frame((NOW_MS, 9))]
    part.ingest(list(enumerate(values)), now_ms=NOW_MS)
    assert part.work.rejected["future"] == 1
    settle(replica, part)
    counts = dict(zip((*DELAY_MS, None), part.outcome.delays.delay.counts.tolist(), strict=True))
    assert {bound: n for bound, n in counts.items() if n} == {-5_000: 1, 0: 2, 100: 2}


def test_later_reports_belong_to_the_next_head():
    replica, part = loaded(make_context(WINDOW))
    part.ingest([(0, frame((NOW_MS, 1)))], now_ms=NOW_MS)
    flush = part.flush()
    part.ingest([(1, frame((NOW_MS, 1))), (2, frame((NOW_MS, 1)))], now_ms=NOW_MS)
    records = [(at, *record) for at, record in enumerate([*flush.cells, flush.head])]
    replica.read(records, position=len(records), end=len(records))
    part.settle()
    outcome = part.outcome
    assert (outcome.counted, outcome.delays.lateness.counts.sum()) == (1, 1)
    settle(replica, part, start=99)
    outcome = part.outcome
    assert (outcome.counted, outcome.delays.lateness.counts.sum()) == (2, 2)


def test_the_histograms_are_exported_in_seconds():
    metrics, (_, delays) = Metrics(), taken(WINDOW, n=500)
    metrics.count_commit("city", Outcome(0, 0, {}, 0, delays))
    metrics.count_commit("city", Outcome(0, 0, {}, 0, delays))
    samples = scrape(metrics)
    name = "ldpstream_lateness_seconds"
    assert value(samples, f"{name}_count", collection="city") == 1_000
    assert value(samples, f"{name}_bucket", collection="city", le="+Inf") == 1_000
    within = 2 * delays.lateness.counts[: LATENESS_MS.index(2_500) + 1].sum()
    assert value(samples, f"{name}_bucket", collection="city", le="2.5") == within
    assert value(samples, f"{name}_sum", collection="city") == 2 * delays.lateness.sum_ms / 1000 > 0
    name = "ldpstream_delay_seconds"
    ahead = 2 * delays.delay.counts[: DELAY_MS.index(-1_000) + 1].sum()
    assert value(samples, f"{name}_bucket", collection="city", le="-1.0") == ahead > 0
