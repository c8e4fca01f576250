"""Finals, queries, and readers of the changelog: what they keep, show and refuse."""

from dataclasses import replace

import numpy as np
import pytest

from ldpstream.agents.state.cell_encoding import Totals, encode_chunk, encode_totals
from ldpstream.agents.state.classification import Delays
from ldpstream.agents.state.encoding import encode_head, encode_key, state_prefix
from ldpstream.agents.state.flushes import Outcome, Settled
from ldpstream.agents.state.listing import WindowInfo, windows
from ldpstream.agents.state.records import HEAD, Head, Key, Name, RecordError
from ldpstream.agents.state.replica import Replica
from ldpstream.agents.state.view import totals
from ldpstream.agents.state.windows import NEVER, WindowSpec
from tests.stream.harness import Cluster, frame, make_context, make_spec

WINDOW = WindowSpec(size_ms=10, hop_ms=10, idle_ms=None, retention_ms=20)
NOW_MS = 1_000_000
NONE = Delays()


def test_many_finals_are_made_a_few_at_a_step():
    cluster = Cluster(make_context(WINDOW, finals_a_step=3), now_ms=NOW_MS)
    cluster.produce(0, *(frame((t, 0)) for t in range(0, 100, 10)), frame((500, 0)))
    cluster.steps(3)
    assert len(cluster.published) == 3
    cluster.steps(6)
    assert [final.window_start_ms for final in cluster.published] == list(range(0, 100, 10))


def test_panes_expire_a_retention_after_closing_and_never_unpublished():
    cluster = Cluster(make_context(WINDOW), now_ms=NOW_MS)
    cluster.produce(0, frame((5, 0)), frame((100, 0)))
    for _ in range(4):
        cluster.ingest(0)
        cluster.clock(0)
        cluster.flush(0)
    assert cluster.replicas[0].totals(0).n == 1
    cluster.steps(4)
    assert cluster.head().gone == 1
    assert cluster.head().expired == 8
    assert {name.number for name in cluster.replicas[0].cells} == {10}
    cluster.sweep(0)
    assert len(cluster.replicas[0]._keys) == 3


def test_a_late_report_of_an_expired_pane_counts_in_the_head_only():
    cluster = Cluster(make_context(WINDOW), now_ms=NOW_MS)
    cluster.produce(0, frame((5, 0)), frame((100, 0)))
    cluster.steps(5)
    cluster.produce(0, frame((6, 0)), frame((85, 0)))
    cluster.step()
    assert cluster.head().late == 2
    late = {pane: cluster.replicas[0].totals(pane).late for pane in cluster.replicas[0].all_panes()}
    assert late == {8: 1, 10: 0}


def test_the_loser_is_told_and_the_winner_learns_what_it_added():
    cluster = Cluster(make_context(WINDOW), now_ms=NOW_MS)
    cluster.produce(0, frame((5, 0), (5, 9)), None)
    zombie, owner = cluster.take_over(0), cluster.take_over(0)
    for part in (zombie, owner):
        part.ingest(list(enumerate(cluster.source[0])), now_ms=NOW_MS)
        assert part.settle() is Settled.WAITING
    late = zombie.flush()
    assert zombie.flush() is None
    cluster.flush(0)
    assert replace(owner.outcome, delays=NONE) == Outcome(
        1, 0, {"range": 1, "undecodable": 1}, 0, NONE
    )
    for key, value in (*late.cells, late.head):
        cluster.log[0].append((len(cluster.log[0]), key, value))
    cluster.catch_up(0)
    assert zombie.settle() is Settled.LOST
    assert owner.settle() is Settled.WAITING
    assert cluster.head().epoch == owner.epoch
    assert len(cluster.replicas[0].dead()) == len(late.cells) + 1


def test_offsets_without_records_are_passed_over():
    cluster = Cluster(make_context(WINDOW), now_ms=NOW_MS)
    part = cluster.part()
    part.ingest([(0, frame((5, 0)))], now_ms=NOW_MS)
    part.read_to(2, end=2, asked_ms=None)
    cluster.flush(0)
    assert (cluster.head().next, cluster.head().lost) == (2, 0)
    # After an aborted transaction there are no records, and its offsets no longer count as lag.
    part.read_to(4, end=4, asked_ms=None)
    cluster.flush(0)
    assert (part.next, cluster.head().next, cluster.head().n) == (4, 4, 1)
    part.read_to(3, end=4, asked_ms=None)
    assert part.next == 4
    assert part.flush() is None


def test_only_touched_chunks_are_written():
    cluster = Cluster(make_context(WINDOW, chunk=1), now_ms=NOW_MS)
    cluster.produce(0, frame((5, 0), (5, 1)))
    cluster.step()
    cluster.produce(0, frame((6, 1)))
    (flush,) = cluster.step()
    assert len(flush.cells) == 2
    assert cluster.replicas[0].totals(0).n == 3


HOPPING = WindowSpec(size_ms=20, hop_ms=10, idle_ms=None)


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster(make_context(HOPPING, chunk=1), partitions=2, now_ms=1_000_000)
    cluster.steps(2)
    cluster.produce(0, frame((3, 0), (14, 1)), frame((55, 0)), frame((4, 1)), None)
    cluster.produce(1, frame((11, 1)), frame((31, 1)))
    cluster.steps(3)
    return cluster


def test_any_span_of_whole_panes_is_an_exact_sum(cluster: Cluster):
    everything = totals(cluster.context, cluster.replicas, 0, 60)
    assert (everything.n, everything.late, everything.rejected) == (5, 1, 1)
    assert everything.statistic.tolist() == [2, 3]
    assert totals(cluster.context, cluster.replicas, 10, 20).statistic.tolist() == [0, 2]
    assert totals(cluster.context, cluster.replicas, 60, 600).n == 0


@pytest.mark.parametrize(("start_ms", "end_ms"), [(0, 0), (10, 0), (5, 10), (0, 15)])
def test_other_spans_are_refused(cluster: Cluster, start_ms: int, end_ms: int):
    with pytest.raises(ValueError, match="whole panes of 10 ms"):
        totals(cluster.context, cluster.replicas, start_ms, end_ms)


def test_windows_are_listed_with_what_they_hold(cluster: Cluster):
    assert windows(cluster.context, cluster.replicas) == [
        WindowInfo(-1, -10, 10, 1, 1, final=True, published=True),
        WindowInfo(0, 0, 20, 3, 1, final=True, published=True),
        WindowInfo(1, 10, 30, 2, 0, final=True, published=True),
        WindowInfo(2, 20, 40, 1, 0, final=False, published=False),
        WindowInfo(3, 30, 50, 1, 0, final=False, published=False),
        WindowInfo(4, 40, 60, 1, 0, final=False, published=False),
        WindowInfo(5, 50, 70, 1, 0, final=False, published=False),
    ]


def test_unread_replicas_list_no_windows():
    context = make_context(HOPPING)
    assert windows(context, []) == []
    assert windows(context, Cluster(context).replicas) == []


READ = make_context(WindowSpec(size_ms=8, hop_ms=4), chunk=1)
PREFIX = state_prefix(READ)
COUNT, TOTAL = Name("count", 3, 1), Name("n", 3)


def head(epoch: int, seq: int, *, n: int, **lineage: int) -> tuple[bytes, bytes]:
    own = {int(name[1:]): last for name, last in lineage.items()} | {epoch: seq}
    return encode_key(PREFIX, Key(HEAD, epoch, seq)), encode_head(Head(n=n, lineage=own))


def one(value: int) -> bytes:
    return encode_chunk(np.array([value]))


def flush(epoch: int, seq: int, *, n: int, **lineage: int) -> list[tuple[bytes, bytes]]:
    return [
        (encode_key(PREFIX, Key(COUNT, epoch, seq)), one(n)),
        (encode_key(PREFIX, Key(TOTAL, epoch, seq)), encode_totals(Totals(n, 0, n))),
        head(epoch, seq, n=n, **lineage),
    ]


def read(replica: Replica, *records: tuple[bytes, bytes | None], start: int = 0) -> int:
    log = [(at, key, value) for at, (key, value) in enumerate(records, start=start)]
    assert replica.read(log, position=start + len(log), end=start + len(log))
    return start + len(log)


def test_an_empty_log_is_the_empty_state():
    replica = Replica(READ, 0)
    assert replica.read([], position=0, end=0)
    assert replica.head == Head()


def test_records_of_another_state_are_left_alone():
    other = Cluster(make_context(WindowSpec(size_ms=8, hop_ms=8), chunk=1))
    other.produce(0, frame((1, 0)))
    other.steps(3)
    replica = Replica(READ, 0)
    foreign = [(key, value) for _, key, value in other.log[0]]
    read(replica, *foreign, *flush(1, 1, n=2), *((key, None) for key, _ in foreign))
    assert replica.totals(3).n == 2
    assert not replica.dead()


def of_other(seq: int, *, cutover: int = NEVER, size: int = 4) -> tuple[bytes, bytes]:
    """Return the head of another spec's state."""
    prefix = state_prefix(make_context(READ.window, spec=make_spec(size)))
    return encode_key(prefix, Key(HEAD, 7, seq)), encode_head(Head(cutover=cutover))


def left_behind(*records: tuple[bytes, bytes | None], accept: int | None = None) -> list[int]:
    """Return the sizes of the domains whose states were left behind in a log."""
    specs = () if accept is None else (make_spec(accept),)
    replica = Replica(make_context(READ.window, chunk=1, accept=specs), 0)
    read(replica, *records)
    sizes = {make_spec(size).fingerprint: size for size in (2, 4, 8)}
    return [sizes[fingerprint] for fingerprint in replica.others.left_behind()]


def test_a_state_that_did_not_hand_over_was_left_behind():
    assert left_behind(*flush(1, 1, n=2)) == []
    assert left_behind(of_other(1)) == [4]
    assert sorted(left_behind(of_other(1), of_other(1, size=8))) == [4, 8]
    # The newest head decides whether it handed over; of two with one seq the first counts.
    assert left_behind(of_other(1), of_other(2, cutover=5)) == []
    assert left_behind(of_other(1, cutover=5), of_other(2)) == [4]
    assert left_behind(of_other(2, cutover=5), of_other(2), of_other(1)) == []
    assert left_behind(of_other(1), accept=4) == []
    # A state of the same spec with other windows is not left behind.
    windows = make_context(WindowSpec(size_ms=8, hop_ms=8))
    assert left_behind((encode_key(state_prefix(windows), Key(HEAD, 7, 1)), b"")) == []


def test_only_heads_read_at_the_start_count_as_left_behind():
    """In a rolling restart workers with an earlier configuration see heads of their successors."""
    replica = Replica(READ, 0)
    end = read(replica, *flush(1, 1, n=2))
    read(replica, of_other(1), start=end)
    assert not replica.others.left_behind()
    # Malformed records and those of a later version do not count either.
    key, value = of_other(1)
    assert left_behind((key[:40], value), (key, b"\x09" + value[1:])) == []


def test_nothing_of_another_state_is_kept_while_a_log_is_read():
    other = Cluster(make_context(READ.window, spec=make_spec(4)))
    other.produce(0, frame((1, 0), spec=make_spec(4)))
    other.steps(3)
    replica = Replica(READ, 0)
    assert not replica.read(other.log[0], position=len(other.log[0]), end=1_000)
    assert not replica._staged
    assert len(other.log[0]) > 2


def test_a_pane_whose_chunks_do_not_add_up_is_an_error_by_name():
    replica = Replica(READ, 5)
    torn = flush(1, 1, n=2)
    torn[0] = (torn[0][0], one(1))
    records = [(at, *record) for at, record in enumerate(torn)]
    for _ in range(2):
        with pytest.raises(RecordError, match="partition 5: the chunks of pane 3 add up to 1"):
            replica.read(records, position=3, end=3)


def test_panes_that_do_not_add_up_to_the_head_are_an_error_by_name():
    replica = Replica(READ, 5)
    records = [*flush(1, 1, n=2)[:2], head(1, 1, n=3)]
    with pytest.raises(RecordError, match="partition 5: its panes hold 2 reports"):
        read(replica, *records)


def test_memory_keeps_no_values_of_dead_records():
    replica = Replica(READ, 0)
    end = 0
    for seq in range(1, 50):
        end = read(replica, *flush(1, seq, n=seq), start=end)
    kept = [record for record in replica._keys.values() if record is not None]
    assert len(kept) == len(replica.cells) == 2
    read(replica, *((key, None) for key in replica.dead()), start=end)
    assert len(replica._keys) == 3
