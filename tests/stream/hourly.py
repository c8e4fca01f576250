"""Hourly windows, and reports some minutes into an hour."""

from ldpstream.agents.state.windows import WindowSpec
from tests.stream.harness import HOUR_MS, Cluster, frame

MINUTE_MS = 60_000
SECOND_MS = 1_000
NOW_MS = 1_795_255_200_000
REPLAY_MS = 1_270_000_800_000
HOURLY = WindowSpec(size_ms=HOUR_MS, hop_ms=HOUR_MS, grace_ms=5 * MINUTE_MS, idle_ms=30 * SECOND_MS)


def at(minutes: float, *, start_ms: int = NOW_MS) -> bytes:
    """Return a frame of one report, some minutes after the start of an hour."""
    assert start_ms % HOUR_MS == 0
    return frame((start_ms + int(minutes * MINUTE_MS), 0))


def starts(cluster: Cluster) -> list[int]:
    return [(final.window_start_ms - NOW_MS) // HOUR_MS for final in cluster.published]
