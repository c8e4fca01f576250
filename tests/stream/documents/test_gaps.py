"""Offsets that retention deleted unread are marked in every document that may lack them."""

from typing import Any

import pytest

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.document.build import build_document
from ldpstream.agents.state.batch import Dates
from ldpstream.agents.state.context import WindowTotals
from ldpstream.agents.state.listing import windows
from ldpstream.agents.state.view import snapshot
from ldpstream.agents.state.windows import (
    GAPS_LIMIT,
    Gap,
    MissingMessages,
    add_gap,
    missing_messages,
)
from tests.property.configs import read, with_keys
from tests.stream.harness import HOUR_MS, Cluster, make_context
from tests.stream.hourly import HOURLY, MINUTE_MS, NOW_MS, at


def tell_lost(totals: WindowTotals) -> bytes:
    return f"{totals.start_ms} {totals.n} {totals.lost.offsets} {totals.lost.partitions}".encode()


@pytest.fixture
def cluster() -> Cluster:
    """Ten minutes into an hour, one report has come."""
    cluster = Cluster(make_context(HOURLY, make_final=tell_lost), now_ms=NOW_MS + 10 * MINUTE_MS)
    cluster.produce(0, at(10))
    cluster.steps(2)
    return cluster


def deleted(cluster: Cluster, minutes: float, *, next_at: float) -> None:
    """Let some time pass, two messages be deleted, and the next one arrive."""
    cluster.now_ms = NOW_MS + int(minutes * MINUTE_MS)
    part = cluster.part()
    assert part.skip_to(part.next + 2, now_ms=cluster.now_ms) == 2
    cluster.produce(0, at(0), at(0), at(next_at))
    arrived_ms = NOW_MS + int(next_at * MINUTE_MS)
    arrived = Dates([arrived_ms], appended=True).arrivals(now_ms=cluster.now_ms)
    part.ingest([(part.next, at(next_at))], now_ms=cluster.now_ms, arrived=arrived)


def test_windows_that_may_lack_something_say_so_even_where_nothing_is_left(cluster: Cluster):
    # Hours 0 to 2 are affected: the next message arrived in hour 2, long before now.
    deleted(cluster, 600, next_at=150)
    assert cluster.part().work.gaps == (Gap(NOW_MS // HOUR_MS, NOW_MS // HOUR_MS + 2, 2),)
    cluster.flush(0)
    span = NOW_MS, NOW_MS + HOUR_MS
    assert snapshot(cluster.context, cluster.replicas[:1], *span).lost == MissingMessages(2, (0,))
    cluster.produce(0, at(250))
    cluster.steps(5)
    assert cluster.finals() == [
        f"{NOW_MS} 1 2 (0,)",
        f"{NOW_MS + HOUR_MS} 0 2 (0,)",
        f"{NOW_MS + 2 * HOUR_MS} 1 2 (0,)",
    ]
    listed = windows(cluster.context, cluster.replicas[:1])
    assert [info.n for info in listed] == [1, 0, 1, 1]
    last = listed[-1].start_ms, listed[-1].end_ms
    assert not snapshot(cluster.context, cluster.replicas[:1], *last).lost


def test_a_gap_ends_with_the_next_message_where_the_clock_is_behind_the_broker(cluster: Cluster):
    deleted(cluster, 40, next_at=61)
    hour = NOW_MS // HOUR_MS
    assert cluster.part().work.gaps == (Gap(hour, hour + 1, 2),)


def test_a_gap_covers_what_a_broker_ahead_of_the_clock_could_have_accepted(cluster: Cluster):
    # This clock is two seconds before the hour, and no message follows that the broker has dated.
    cluster.now_ms = NOW_MS + HOUR_MS - HOURLY.future_ms - 2_000
    part = cluster.part()
    assert part.skip_to(part.next + 2, now_ms=cluster.now_ms) == 2
    hour = NOW_MS // HOUR_MS
    assert part.work.gaps == (Gap(hour, hour + 1, 2),)


def test_gaps_expire_with_their_panes(cluster: Cluster):
    deleted(cluster, 20, next_at=20)
    retention_hours = HOURLY.retention_ms // HOUR_MS
    cluster.now_ms = NOW_MS + (retention_hours + 9) * HOUR_MS
    cluster.produce(0, at(60.0 * (retention_hours + 8)))
    cluster.steps(5)
    assert (cluster.head().gaps, cluster.head().lost) == ((), 2)


def test_beyond_the_limit_the_nearest_gaps_are_merged():
    gaps: tuple[Gap, ...] = ()
    for first in (0, 100, 200, 300, 340, 400, 500, 600, 700):
        gaps = add_gap(gaps, Gap(first, first + 10, 1))
    assert len(gaps) == GAPS_LIMIT
    assert Gap(300, 350, 2) in gaps
    assert sum(gap.offsets for gap in gaps) == 9
    assert missing_messages([(), gaps], 345, 401) == MissingMessages(3, (1,))
    assert missing_messages([gaps], 11, 100) == MissingMessages()


@pytest.mark.parametrize("minimum", [0, 100])
def test_documents_state_lost_offsets_withheld_or_not(minimum: int):
    config: CollectionConfig = read(with_keys({"minimum": minimum})).collections["checkins"]
    statistic = config.spec.mechanism.empty()
    whole = WindowTotals(0, HOUR_MS, statistic, 0, 0, 0)
    missing = WindowTotals(0, HOUR_MS, statistic, 0, 0, 0, lost=MissingMessages(7, (1, 3)))

    def told(totals: WindowTotals) -> dict[str, Any]:
        return build_document(config, totals, window=(0, HOUR_MS), final=True).model_dump(
            mode="json", exclude_unset=True
        )

    assert told(missing)["lost"] == {"offsets": 7, "partitions": [1, 3]}
    assert "lost" not in told(whole)
