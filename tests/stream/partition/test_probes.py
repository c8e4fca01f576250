"""A partition is idle only by probes that follow each other without a break."""

import pytest

from ldpstream.agents.state.closing import UnbrokenProbes

IDLE_MS, GAP_MS = 5_000, 2_000


def probed(*asked_ms: int) -> UnbrokenProbes:
    probes = UnbrokenProbes(GAP_MS)
    for moment in asked_ms:
        probes.probed(moment)
    return probes


@pytest.mark.parametrize(
    ("asked", "now", "idle"),
    [
        ((), 60_000, False),
        ((0,), 0, False),
        (range(0, 5_001, 1_000), 5_000, True),
        (range(0, 5_001, 1_000), 4_999, False),
        (range(0, 5_001, 2_000), 6_000, True),
        # Two probes are too far apart, so the second begins a new series.
        ((0, 2_000, 4_001, 6_000), 6_000, False),
        ((0, 2_000, 4_001, 6_000, 8_000, 9_100), 9_100, True),
        # The last probe is too old.
        (range(0, 5_001, 1_000), 7_001, False),
        # A probe that is reported late neither breaks a series nor makes it longer.
        ((4_000, 5_000, 0, 6_000), 6_000, False),
        ((0, 2_000, 4_000, 5_000, 3_000), 7_000, True),
    ],
)
def test_an_unbroken_series_proves_idleness(asked: range, now: int, idle: bool) -> None:
    assert probed(*asked).last_for(IDLE_MS, now_ms=now) is idle


def test_a_broken_series_starts_again() -> None:
    probes = probed(*range(0, 5_001, 1_000))
    probes.broken()
    assert not probes.last_for(0, now_ms=5_000)
    probes.probed(6_000)
    assert not probes.last_for(IDLE_MS, now_ms=6_000)
    assert probes.last_for(0, now_ms=6_000)
