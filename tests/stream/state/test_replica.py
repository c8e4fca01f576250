"""Readers of the changelog: what they leave alone, what they keep, and damage by name."""

import numpy as np
import pytest

from ldpstream.agents.state.cell_encoding import Totals, encode_chunk, encode_totals
from ldpstream.agents.state.encoding import encode_head, encode_key, state_prefix
from ldpstream.agents.state.records import HEAD, Head, Key, Name, RecordError
from ldpstream.agents.state.replica import Replica
from ldpstream.agents.state.windows import NEVER, WindowSpec
from tests.stream.harness import Cluster, frame, make_context, make_spec

CONTEXT = make_context(WindowSpec(size_ms=8, hop_ms=4), chunk=1)
PREFIX = state_prefix(CONTEXT)
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
    replica = Replica(CONTEXT, 0)
    assert replica.read([], position=0, end=0)
    assert replica.head == Head()


def test_records_of_another_state_are_left_alone():
    other = Cluster(make_context(WindowSpec(size_ms=8, hop_ms=8), chunk=1))
    other.produce(0, frame((1, 0)))
    other.steps(3)
    replica = Replica(CONTEXT, 0)
    foreign = [(key, value) for _, key, value in other.log[0]]
    read(replica, *foreign, *flush(1, 1, n=2), *((key, None) for key, _ in foreign))
    assert replica.totals(3).n == 2
    assert not replica.dead()


def of_other(seq: int, *, cutover: int = NEVER, size: int = 4) -> tuple[bytes, bytes]:
    """Return the head of another spec's state."""
    prefix = state_prefix(make_context(CONTEXT.window, spec=make_spec(size)))
    return encode_key(prefix, Key(HEAD, 7, seq)), encode_head(Head(cutover=cutover))


def left_behind(*records: tuple[bytes, bytes | None], accept: int | None = None) -> list[int]:
    """Return the sizes of the domains whose states were left behind in a log."""
    specs = () if accept is None else (make_spec(accept),)
    replica = Replica(make_context(CONTEXT.window, chunk=1, accept=specs), 0)
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
    replica = Replica(CONTEXT, 0)
    end = read(replica, *flush(1, 1, n=2))
    read(replica, of_other(1), start=end)
    assert not replica.others.left_behind()
    # Malformed records and those of a later version do not count either.
    key, value = of_other(1)
    assert left_behind((key[:40], value), (key, b"\x09" + value[1:])) == []


def test_nothing_of_another_state_is_kept_while_a_log_is_read():
    other = Cluster(make_context(CONTEXT.window, spec=make_spec(4)))
    other.produce(0, frame((1, 0), spec=make_spec(4)))
    other.steps(3)
    replica = Replica(CONTEXT, 0)
    assert not replica.read(other.log[0], position=len(other.log[0]), end=1_000)
    assert not replica._staged
    assert len(other.log[0]) > 2


def test_a_pane_whose_chunks_do_not_add_up_is_an_error_by_name():
    replica = Replica(CONTEXT, 5)
    torn = flush(1, 1, n=2)
    torn[0] = (torn[0][0], one(1))
    records = [(at, *record) for at, record in enumerate(torn)]
    for _ in range(2):
        with pytest.raises(RecordError, match="partition 5: the chunks of pane 3 add up to 1"):
            replica.read(records, position=3, end=3)


def test_panes_that_do_not_add_up_to_the_head_are_an_error_by_name():
    replica = Replica(CONTEXT, 5)
    records = [*flush(1, 1, n=2)[:2], head(1, 1, n=3)]
    with pytest.raises(RecordError, match="partition 5: its panes hold 2 reports"):
        read(replica, *records)


def test_memory_keeps_no_values_of_dead_records():
    replica = Replica(CONTEXT, 0)
    end = 0
    for seq in range(1, 50):
        end = read(replica, *flush(1, seq, n=seq), start=end)
    kept = [record for record in replica._keys.values() if record is not None]
    assert len(kept) == len(replica.cells) == 2
    read(replica, *((key, None) for key in replica.dead()), start=end)
    assert len(replica._keys) == 3
