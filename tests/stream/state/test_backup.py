"""Copies of a state: those that fit together lose and double nothing, and others are told apart."""

import random
from itertools import count

from ldpstream.agents.state.replica import (
    BehindError,
    at_beginning,
    fits,
    head_record,
    live_records,
)
from ldpstream.agents.state.windows import WindowSpec
from tests.replicas import stored_final
from tests.stream.harness import Cluster, frame, make_context

PARTITIONS = 3
WINDOW = WindowSpec(size_ms=10, hop_ms=5, idle_ms=None, retention_ms=60)
CONTEXT = make_context(WINDOW)
_END_MS = 200


def run(seed: int) -> tuple[Cluster, list[tuple[int, ...]]]:
    """Count reports in event time's order, and return the cluster and its logs' lengths over time.

    Each step is of one partition, so the others' logs lag behind by as much as they like.
    """
    rng = random.Random(seed)
    cluster = Cluster(CONTEXT, partitions=PARTITIONS, now_ms=1_000)
    cluster.step()
    moments = []
    for time_ms in range(0, _END_MS, 2):
        for p in range(PARTITIONS):
            cluster.produce(p, frame((time_ms, rng.randrange(2))))
        for p in rng.sample(range(PARTITIONS), rng.randrange(1, PARTITIONS + 1)):
            cluster.ingest(p)
            cluster.clock(p)
            if p == 0:
                cluster.publish()
            cluster.flush(p)
            if rng.random() < 0.3:
                cluster.sweep(p)
            moments.append(tuple(len(log) for log in cluster.log[:PARTITIONS]))
    return cluster, moments


def copied(cluster: Cluster, lengths: tuple[int, ...], *, moved: bool = False) -> Cluster:
    """Return a cluster whose logs hold what a back-up has of these prefixes of another's logs.

    Its source is the same, or if `moved` what the states had not counted.
    """
    read = Cluster(CONTEXT, partitions=PARTITIONS)
    for p, length in enumerate(lengths):
        read.log[p] = cluster.log[p][:length]
        read.catch_up(p)
    found = Cluster(CONTEXT, partitions=PARTITIONS, now_ms=cluster.now_ms)
    found.epochs = count(1_000)
    for p in range(PARTITIONS):
        head = read.head(p)
        records = live_records(read.replicas[p])
        records += [head_record(CONTEXT, head)] if head.seq else []
        found.source[p] = list(cluster.source[p])
        if moved and head.seq:
            new = at_beginning(head, epoch=500 + p, source=b"another topic's.")
            records.append(head_record(CONTEXT, new))
            found.source[p] = found.source[p][head.next :]
        found.log[p] = [(at, key, value) for at, (key, value) in enumerate(records)]
        found.catch_up(p)
    return found


def fit(cluster: Cluster, *, running: bool = True) -> bool:
    return fits(CONTEXT, [cluster.head(p) for p in range(PARTITIONS)], running=running)


def outcome(cluster: Cluster) -> tuple[int, int, list[bytes | None]]:
    """Count all that there is, and return reports counted and late, and the last finals."""
    # The last reports close every window before them.
    for p in range(PARTITIONS):
        cluster.produce(p, frame((_END_MS + 40, 0)))
    cluster.steps(4)
    heads = [cluster.head(p) for p in range(PARTITIONS)]
    shown = cluster.replicas[:PARTITIONS]
    finals = [stored_final(CONTEXT, shown, start) for start in range(_END_MS - 20, _END_MS, 5)]
    return sum(h.n for h in heads), sum(h.late for h in heads), finals


def test_copies_that_fit_lose_and_double_nothing_and_others_would():
    wrong = right = 0
    for seed in range(4):
        cluster, moments = run(seed)
        expected = outcome(copied(cluster, moments[-1]))
        assert expected[:2] == (PARTITIONS * (_END_MS // 2 + 1), 0)
        assert None not in expected[2]
        rng = random.Random(seed)
        for _ in range(30):
            near = rng.randrange(len(moments) - 8)
            # Each partition is read at a moment of its own.
            lengths = tuple(moments[near + rng.randrange(8)][p] for p in range(PARTITIONS))
            for moved in (False, True):
                restored = copied(cluster, lengths, moved=moved)
                if fit(restored):
                    assert outcome(restored) == expected, (seed, lengths, moved)
                    right += 1
                else:
                    wrong += differs(restored, expected)
    assert right > 40
    assert wrong > 5, "the rule refuses what would have done no harm"


def differs(restored: Cluster, expected: tuple[int, int, list[bytes | None]]) -> bool:
    try:
        return outcome(restored) != expected
    except (BehindError, AssertionError):
        # Nobody loads, or answers about, what partition 0 lacks.
        return True


def test_one_moment_always_fits():
    for seed in range(2):
        cluster, moments = run(seed)
        assert all(fit(copied(cluster, lengths)) for lengths in moments[::4])


def test_a_partition_that_was_just_added_fits_once_nothing_runs():
    cluster, moments = run(1)
    restored = copied(cluster, (*moments[-1][:2], 0))
    assert not fit(restored)
    assert fit(restored, running=False)
