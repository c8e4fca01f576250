"""Rule 14: a state moves to a newer format once all owners have announced it for a while."""

from dataclasses import replace

import pytest

from ldpstream.agents.partition.loading import FormatSwitch
from ldpstream.agents.partition.partition import Partition
from ldpstream.agents.state.context import NEWEST, SWITCH_MS
from ldpstream.agents.state.records import Head
from tests.stream.harness import Cluster, frame, make_context
from tests.stream.hourly import HOURLY, NOW_MS

CONTEXT = make_context(HOURLY)
OLD = replace(CONTEXT, format=1)
BOTH = 1, 1
UNDISTURBED_MS = SWITCH_MS + 30_000
"""The switch time plus the idle time, after which an idle owner announces what it reads."""


def make_cluster() -> Cluster:
    """Return a state of two partitions whose owners hold it in format 1."""
    cluster = Cluster(OLD, partitions=2, now_ms=NOW_MS)
    for p in (0, 1):
        cluster.produce(p, frame((NOW_MS, 0)))
    cluster.steps(3)
    assert formats(cluster) == BOTH
    return cluster


def formats(cluster: Cluster) -> tuple[int, ...]:
    return tuple(cluster.head(p).format for p in range(cluster.partitions))


def reads(cluster: Cluster) -> tuple[int, ...]:
    return tuple(cluster.head(p).reads for p in range(cluster.partitions))


def restart(cluster: Cluster, p: int, *, held: bool = False) -> None:
    cluster.context = OLD if held else CONTEXT
    cluster.take_over(p)


def wait(cluster: Cluster, ms: int) -> None:
    cluster.steps(ms // 1_000, 1_000)


def test_a_new_state_begins_with_the_newest_format():
    cluster = Cluster(CONTEXT, partitions=2, now_ms=NOW_MS)
    cluster.produce(1, frame((NOW_MS, 0)))
    cluster.steps(2)
    assert cluster.head(1).format == NEWEST


def test_the_format_rises_once_all_owners_have_announced_it_for_a_session():
    cluster = make_cluster()
    restart(cluster, 0)
    wait(cluster, 2 * SWITCH_MS)
    assert (formats(cluster), reads(cluster)) == (BOTH, (NEWEST, 1))
    restart(cluster, 1)
    # The new owner announces it although no message comes.
    wait(cluster, UNDISTURBED_MS - 1_000)
    assert reads(cluster) == (NEWEST, 1)
    wait(cluster, 2_000)
    assert reads(cluster) == (NEWEST, NEWEST)
    wait(cluster, SWITCH_MS - 1_000)
    assert formats(cluster) == BOTH
    wait(cluster, 3_000)
    assert formats(cluster)[0] == NEWEST
    cluster.produce(1, frame((NOW_MS, 0)))
    cluster.steps(2)
    assert formats(cluster) == (NEWEST, NEWEST)


def test_a_worker_that_holds_the_format_takes_back_what_was_said():
    cluster = make_cluster()
    for p in (0, 1):
        restart(cluster, p)
    # Each owner announces it with the head that says that its partition is idle.
    wait(cluster, UNDISTURBED_MS - SWITCH_MS // 2)
    assert reads(cluster) == (NEWEST, NEWEST)
    restart(cluster, 1, held=True)
    cluster.step()
    assert reads(cluster) == (NEWEST, 1)
    wait(cluster, 2 * SWITCH_MS)
    assert (formats(cluster), reads(cluster)) == (BOTH, (NEWEST, 1))


def test_a_format_never_goes_back():
    cluster = make_cluster()
    for p in (0, 1):
        restart(cluster, p)
    wait(cluster, UNDISTURBED_MS + SWITCH_MS + 3_000)
    for p in (0, 1):
        restart(cluster, p, held=True)
        cluster.produce(p, frame((NOW_MS, 0)))
    cluster.steps(3)
    assert formats(cluster) == (NEWEST, NEWEST)


def test_a_release_that_reads_more_says_so_once_and_is_not_followed():
    cluster = make_cluster()
    for p in (0, 1):
        restart(cluster, p)
    wait(cluster, UNDISTURBED_MS + SWITCH_MS + 3_000)
    cluster.context = replace(CONTEXT, format=NEWEST + 1)
    assert cluster.take_over(1) is not None
    wait(cluster, UNDISTURBED_MS + 1_000)
    assert cluster.head(1).reads == NEWEST + 1
    restart(cluster, 1)
    assert cluster.flush(1) is not None
    assert cluster.head(1).reads == NEWEST
    restart(cluster, 1)
    assert cluster.flush(1) is None


@pytest.mark.parametrize("pause_ms", [0, 10_000])
def test_a_process_that_was_suspended_waits_again(pause_ms: int):
    switch = FormatSwitch(CONTEXT, 0)
    work, heads = Head(seq=1, reads=NEWEST), [Head(seq=1, reads=NEWEST)] * 2
    half = range(0, SWITCH_MS // 2 + 1, 1_000)
    switched = False
    for now_ms in (*half, *(half[-1] + pause_ms + at for at in half)):
        work, switched = switch.look(work, heads, now_ms=now_ms)
    assert switched == (pause_ms == 0)


def test_partitions_that_a_worker_does_not_know_hold_the_switch_back():
    switch = FormatSwitch(CONTEXT, 0)
    work, heads = Head(seq=1, partitions=3, reads=NEWEST), [Head(seq=1, reads=NEWEST)] * 2
    for now_ms in range(0, 2 * SWITCH_MS, 1_000):
        assert switch.look(work, heads, now_ms=now_ms) == (work, False)


def test_the_outcome_of_the_winning_flush_names_the_switch():
    cluster = make_cluster()
    for p in (0, 1):
        restart(cluster, p)
    told = []
    for _ in range((UNDISTURBED_MS + SWITCH_MS) // 1_000 + 3):
        cluster.step(1_000)
        part: Partition = cluster.part(0)
        told.append(part.outcome and part.outcome.switched)
    assert told.index(NEWEST) >= SWITCH_MS // 1_000 - 1
