"""Batches of messages against plain definitions: frames, fates, counts and copies."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldpstream.agents.state.batch import read_batch
from ldpstream.agents.state.cells import decode_chunk
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.copies import COPY_BYTES, Copy
from ldpstream.agents.state.judge import FATES, LATE
from ldpstream.agents.state.partition import Partition
from ldpstream.agents.state.tail import Tail
from ldpstream.agents.state.windows import WindowSpec
from ldpstream.mechanisms.frame import decode_frame, encode_frame
from tests.stream.harness import Cluster, frame, loaded, make_context, make_spec
from tests.stream.oracle import Oracle

NOW_MS = 1_270_000_000_000
WINDOW = WindowSpec(size_ms=40, hop_ms=20, grace_ms=10, future_ms=10)
WIDE = make_spec(size=300, precision="2ms")
OLD = make_spec(name="old")
TIMES = st.one_of(
    st.integers(NOW_MS - 100, NOW_MS + 15),
    st.integers(NOW_MS - 100, NOW_MS + 15),
    st.sampled_from([-(1 << 63), -(1 << 62), (1 << 63) - 1, 0]),
)


def contexts() -> list[Context]:
    narrow = make_context(WINDOW, accept=(OLD,), chunk=1)
    return [narrow, make_context(WINDOW, spec=WIDE, accept=(OLD,), chunk=100)]


@st.composite
def runs_out_of_order(draw: st.DrawFn, context: Context) -> bytes:
    """A frame as other senders may write it: runs in any order, and the same time twice."""
    width = context.spec.mechanism.report_bytes
    runs = draw(st.lists(st.tuples(TIMES, st.integers(1, 3)), min_size=1, max_size=4))
    reports = sum(count for _, count in runs)
    head = b"\x01\x00" + len(runs).to_bytes(2, "little") + context.spec.fingerprint
    table = b"".join(
        t.to_bytes(8, "little", signed=True) + c.to_bytes(4, "little") for t, c in runs
    )
    return head + table + draw(st.binary(min_size=width * reports, max_size=width * reports))


@st.composite
def messages(draw: st.DrawFn, context: Context) -> bytes | None:
    symbol = st.integers(0, context.spec.mechanism.outputs)
    reports = st.lists(st.tuples(TIMES, symbol), min_size=1, max_size=4)
    kind = draw(st.integers(0, 9))
    if kind < 6:
        return frame(*draw(reports), spec=context.spec)
    if kind < 8:
        return draw(runs_out_of_order(context))
    good = frame(*draw(reports), spec=draw(st.sampled_from([context.spec, OLD, make_spec(3)])))
    cut = draw(st.integers(0, len(good)))
    return draw(
        st.sampled_from([None, good, good[:cut], good + b"\0", draw(st.binary(max_size=40))])
    )


@st.composite
def sources(draw: st.DrawFn) -> tuple[Context, list[list[bytes | None]]]:
    context = draw(st.sampled_from(contexts()))
    batch = st.lists(messages(context), min_size=1, max_size=12)
    return context, draw(st.lists(batch, min_size=1, max_size=4))


def settle(tail: Tail, part: Partition) -> tuple[Copy, ...]:
    flush = part.flush()
    assert flush is not None
    records = [(at, *record) for at, record in enumerate([*flush.cells, flush.head])]
    tail.read(records, position=len(records), end=len(records))
    part.settle()
    return flush.copies


@settings(max_examples=300, deadline=None)
@given(sources())
def test_batches_decide_what_one_report_after_the_other_would(
    source: tuple[Context, list[list[bytes | None]]],
):
    context, batches = source
    oracle = Oracle(context)
    tail, part = loaded(context, now_ms=NOW_MS)
    offset = 0
    for batch in batches:
        records = list(enumerate(batch, start=offset))
        for at, value in records:
            oracle.message(at, value, NOW_MS)
        part.ingest(records, now_ms=NOW_MS)
        offset += len(batch)
        assert part.work.clock == oracle.clock
    copies = settle(tail, part)
    head = tail.head
    assert head is not None
    fates = Counter(fate.fate for fate in oracle.fates)
    assert (head.next, head.n, head.late) == (offset, fates["counted"], fates["late"])
    assert head.rejected == {fate: n for fate, n in fates.items() if fate in FATES[LATE + 1 :]}
    assert counted_by(context, tail) == counted_in(context, oracle)
    assert copied_by(context, copies, batches) == copied_in(oracle)


def counted_by(context: Context, tail: Tail) -> tuple[Counter, Counter]:
    counts, totals = Counter(), Counter()
    size = context.spec.mechanism.statistic_size
    for name, cell in tail.cells.items():
        if name.kind == "count":
            length = min(context.chunk, size - name.chunk * context.chunk)
            chunk = decode_chunk(cell.value, length)
            for at in np.flatnonzero(chunk).tolist():
                counts[name.number, name.chunk * context.chunk + at] = int(chunk[at])
        else:
            total = tail.totals(name.number)
            totals += Counter({(name.number, "n"): total.n, (name.number, "late"): total.late})
    return counts, totals


def counted_in(context: Context, oracle: Oracle) -> tuple[Counter, Counter]:
    counts, totals = Counter(), Counter()
    for _, fate, time_ms, symbol in oracle.fates:
        if fate in ("counted", "late"):
            pane = context.window.pane(time_ms)
            totals[pane, "n" if fate == "counted" else "late"] += 1
            if fate == "counted":
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
    return Counter(fate for fate in oracle.fates if fate.fate != "counted")


@settings(max_examples=200, deadline=None)
@given(sources())
def test_many_frames_are_read_as_each_alone(source: tuple[Context, list[list[bytes | None]]]):
    context, batches = source
    values = [value for batch in batches for value in batch] * 3
    accept = frozenset([OLD.fingerprint])
    together = read_batch(context.spec, accept, values)
    alone = [read_batch(context.spec, accept, [value]) for value in values]
    assert np.array_equal(
        together.message, np.repeat(np.arange(len(values)), [len(one.count) for one in alone])
    )
    for part in ("time_ms", "count", "payload"):
        parts = np.concatenate([getattr(one, part) for one in alone])
        assert np.array_equal(getattr(together, part), parts)
    assert together.refused == tuple(
        (place, reason) for place, one in enumerate(alone) for _, reason in one.refused
    )
    assert together.passed == sum(one.passed for one in alone)


def test_no_messages_change_nothing():
    _, part = loaded(contexts()[0], now_ms=NOW_MS)
    before = part.work
    part.ingest([], now_ms=NOW_MS)
    assert part.work == before
    assert part.flush() is None


def test_offsets_below_next_are_refused():
    _, part = loaded(contexts()[0], now_ms=NOW_MS)
    part.ingest([(0, frame((NOW_MS, 0))), (4, frame((NOW_MS, 0)))], now_ms=NOW_MS)
    assert part.next == 5
    with pytest.raises(ValueError, match="from next on"):
        part.ingest([(4, frame((NOW_MS, 0)))], now_ms=NOW_MS)


def test_bad_messages_never_move_the_watermark():
    cluster = Cluster(make_context(WINDOW), now_ms=NOW_MS)
    cluster.produce(0, frame((NOW_MS - 50, 0)))
    cluster.step()
    assert cluster.head().clock == NOW_MS - 50
    cluster.produce(0, frame((NOW_MS + 11, 0)), frame((NOW_MS, 9)), None, b"no frame")
    cluster.step()
    assert cluster.head().clock == NOW_MS - 50
    assert cluster.head().rejected == {"future": 1, "range": 1, "undecodable": 2}


def test_one_bad_report_in_a_frame_rejects_that_report():
    cluster = Cluster(make_context(WINDOW), now_ms=NOW_MS)
    cluster.produce(0, frame((NOW_MS, 0), (NOW_MS, 1), (NOW_MS, 7)))
    cluster.step()
    assert (cluster.head().n, cluster.head().rejected) == (2, {"range": 1})
    (copy,) = cluster.copies
    assert copy.value == frame((NOW_MS, 7))


def test_a_message_of_one_fate_is_copied_as_it_came():
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
    assert max(len(copy.value) for copy in cluster.copies) <= COPY_BYTES
    late = [copy.value for copy in cluster.copies if copy.kind == "late"]
    frames = [decode_frame(value, fingerprint=spec.fingerprint, report_bytes=1) for value in late]
    assert sum(len(decoded.payload) for decoded in frames) == count
    (rejected,) = (copy.value for copy in cluster.copies if copy.kind == "rejected")
    assert rejected == b"x" * COPY_BYTES


def test_rejected_messages_are_counted_only_where_asked():
    cluster = Cluster(make_context(WINDOW, copy_rejected=False), now_ms=NOW_MS)
    cluster.produce(0, frame((NOW_MS, 0)), None, frame((NOW_MS, 9)), frame((NOW_MS - 500, 0)))
    cluster.step()
    assert cluster.head().rejected == {"undecodable": 1, "range": 1}
    assert [copy.kind for copy in cluster.copies] == ["late"]


def test_frames_of_accepted_specs_are_left_to_their_own_state():
    mine = Cluster(make_context(WINDOW, accept=(OLD,)), now_ms=NOW_MS)
    theirs = Cluster(make_context(WINDOW, spec=OLD, accept=(make_spec(),)), now_ms=NOW_MS)
    stranger = frame((NOW_MS, 1), spec=make_spec(name="stranger"))
    for cluster in (mine, theirs):
        cluster.produce(0, frame((NOW_MS, 0)), frame((NOW_MS, 1), spec=OLD), stranger)
        cluster.step()
        assert (cluster.head().n, cluster.head().next) == (1, 3)
        assert cluster.head().rejected == {"fingerprint": 1}
