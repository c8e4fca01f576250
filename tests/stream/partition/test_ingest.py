"""Batches of messages against plain definitions: frames, outcomes, counts and copies."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldpstream.agents.state.batch import Arrivals
from ldpstream.agents.state.cell_encoding import decode_chunk
from ldpstream.agents.state.classification import LATE, OUTCOMES, count
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.flushes import Copy, Settled
from ldpstream.agents.state.partition import Partition
from ldpstream.agents.state.records import Head
from ldpstream.agents.state.replica import Replica
from ldpstream.agents.state.windows import WindowSpec
from ldpstream.mechanisms.wire.frame import decode_frame, encode_frame
from tests.soak import chosen
from tests.stream.batches import NOW_MS, WINDOW, contexts, sources
from tests.stream.harness import Cluster, frame, loaded, make_context, make_spec, settle
from tests.stream.oracle import Oracle

ARRIVED = st.integers(NOW_MS - 60, NOW_MS + 20)


@pytest.mark.soak
@settings(max_examples=chosen(100, soak=5_000, check=20), deadline=None)
@given(sources(), st.lists(st.tuples(ARRIVED, ARRIVED), min_size=48, max_size=48))
def test_batches_get_the_fates_of_their_reports_one_by_one(
    source: tuple[Context, list[list[bytes | None]]], arrivals: list[tuple[int, int]]
):
    context, batches = source
    oracle = Oracle(context)
    replica, part = loaded(context)
    offset = 0
    for batch in batches:
        records = list(enumerate(batch, start=offset))
        times = arrivals[offset : offset + len(batch)]
        for (at, value), (latest_ms, clock_ms) in zip(records, times, strict=True):
            oracle.message(at, value, latest_ms, min(latest_ms, clock_ms))
        latest, clock = np.array(times, dtype=np.int64).T
        part.ingest(records, now_ms=NOW_MS, arrived=Arrivals(latest, np.minimum(latest, clock)))
        offset += len(batch)
        assert part.work.clock == oracle.clock
    copies = settle(replica, part).copies
    head = replica.head
    outcomes = Counter(one.outcome for one in oracle.outcomes)
    assert (head.next, head.n, head.late) == (offset, outcomes["counted"], outcomes["late"])
    assert head.rejected == {
        outcome: n for outcome, n in outcomes.items() if outcome in OUTCOMES[LATE + 1 :]
    }
    assert counted_by(context, replica) == counted_in(context, oracle)
    assert copied_by(context, copies, batches) == copied_in(oracle)


def counted_by(context: Context, replica: Replica) -> tuple[Counter, Counter]:
    counts, totals = Counter(), Counter()
    size = context.spec.mechanism.statistic_size
    for name in replica.cells:
        if name.kind == "count":
            length = min(context.chunk, size - name.chunk * context.chunk)
            chunk = decode_chunk(replica.value(name), length)
            for at in np.flatnonzero(chunk).tolist():
                counts[name.number, name.chunk * context.chunk + at] = int(chunk[at])
        else:
            total = replica.totals(name.number)
            totals += Counter({(name.number, "n"): total.n, (name.number, "late"): total.late})
    return counts, totals


def counted_in(context: Context, oracle: Oracle) -> tuple[Counter, Counter]:
    counts, totals = Counter(), Counter()
    for _, outcome, time_ms, symbol in oracle.outcomes:
        if outcome in ("counted", "late"):
            pane = context.window.pane(time_ms)
            totals[pane, "n" if outcome == "counted" else "late"] += 1
            if outcome == "counted":
                counts[pane, symbol] += 1
    return counts, totals


def copied_by(context: Context, copies: tuple[Copy, ...], batches: list[list[bytes | None]]):
    values = [value for batch in batches for value in batch]
    copied = Counter()
    for copy in copies:
        headers = dict(copy.headers)
        offset, reason = int(headers["offset"]), headers["reason"].decode()
        assert copy.headers == (
            ("reason", reason.encode()),
            ("partition", b"0"),
            ("offset", str(offset).encode()),
        )
        assert copy.kind == ("late" if reason == "late" else "rejected")
        if reason in ("undecodable", "fingerprint"):
            assert copy.value == (values[offset] or b"")
            copied[offset, reason, None, None] += 1
            continue
        spec = context.spec
        decoded = decode_frame(
            copy.value, fingerprint=spec.fingerprint, report_bytes=spec.mechanism.report_bytes
        )
        times_ms = decoded.times_ms.repeat(decoded.counts).tolist()
        for time_ms, row in zip(times_ms, decoded.payload, strict=True):
            copied[offset, reason, time_ms, int.from_bytes(row.tobytes(), "little")] += 1
    return copied


def copied_in(oracle: Oracle) -> Counter:
    return Counter(one for one in oracle.outcomes if one.outcome != "counted")


def test_a_half_ingested_batch_is_never_flushed(monkeypatch: pytest.MonkeyPatch):
    """A flush would count reports twice, or store a state that never adds up."""
    context = make_context(WindowSpec(size_ms=8, hop_ms=8))
    replica, part = loaded(context)
    part.ingest([(0, frame((1, 0)))], now_ms=0)

    def half(*given: Any) -> Head:
        count(*given)
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr("ldpstream.agents.state.partition.count", half)
        with pytest.raises(MemoryError):
            part.ingest([(1, frame((2, 1)))], now_ms=0)
    assert part.settle() is Settled.LOST
    # Messages that come before the loss is noticed change nothing.
    part.ingest([(1, frame((2, 1)))], now_ms=0)
    assert part.flush() is None
    assert part.settle() is Settled.LOST
    again = Partition.load(context, 0, [replica], epoch=2)
    assert again.next == 0


def test_offsets_below_next_are_refused():
    _, part = loaded(contexts()[0])
    part.ingest([(0, frame((NOW_MS, 0))), (4, frame((NOW_MS, 0)))], now_ms=NOW_MS)
    assert part.next == 5
    with pytest.raises(ValueError, match="offsets of at least next"):
        part.ingest([(4, frame((NOW_MS, 0)))], now_ms=NOW_MS)


def test_a_message_with_one_fate_is_copied_unchanged():
    cluster = Cluster(make_context(WINDOW), now_ms=NOW_MS)
    message = frame((NOW_MS + 100, 0), (NOW_MS + 200, 1))
    cluster.produce(0, message)
    cluster.step()
    assert [copy.value for copy in cluster.copies] == [message]


def test_copies_never_exceed_64_kib():
    spec = make_spec()
    cluster = Cluster(make_context(WINDOW), now_ms=NOW_MS)
    count = 100_000
    late_ms, symbols = np.full(count, NOW_MS - 500), np.zeros((count, 1), dtype=np.uint8)
    cluster.produce(0, frame((NOW_MS, 0)))
    cluster.produce(0, encode_frame(spec.fingerprint, late_ms, symbols), b"x" * 100_000)
    cluster.step()
    assert cluster.head().late == count
    assert max(len(copy.value) for copy in cluster.copies) <= 64 * 1024
    late = [copy.value for copy in cluster.copies if copy.kind == "late"]
    frames = [decode_frame(value, fingerprint=spec.fingerprint, report_bytes=1) for value in late]
    assert sum(len(decoded.payload) for decoded in frames) == count
    (rejected,) = (copy.value for copy in cluster.copies if copy.kind == "rejected")
    assert rejected == b"x" * (64 * 1024)


def test_rejected_messages_are_not_copied_where_that_is_off():
    cluster = Cluster(make_context(WINDOW, copy_rejected=False), now_ms=NOW_MS)
    cluster.produce(0, frame((NOW_MS, 0)), None, frame((NOW_MS, 9)), frame((NOW_MS - 500, 0)))
    cluster.step()
    assert cluster.head().rejected == {"undecodable": 1, "range": 1}
    assert [copy.kind for copy in cluster.copies] == ["late"]
