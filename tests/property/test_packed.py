"""Packed messages: whatever is packed, cut, repeated or reordered counts as the source does."""

import random
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpstream.agents.partition.batch import Arrivals, read_batch, read_records
from ldpstream.agents.partition.partition import Partition
from ldpstream.agents.reading.packed_intake import Taken, take
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.packed import (
    HEAD,
    Packed,
    PackedError,
    Record,
    decode_packed,
    encode_packed,
)
from ldpstream.agents.state.replica import Replica
from ldpstream.agents.state.windows import WindowSpec
from ldpstream.mechanisms.wire.spec import CollectionSpec
from tests.packing import make_records
from tests.soak import seeds

SPEC = CollectionSpec.from_mapping(
    "packed",
    {"mechanism": "block-hadamard", "epsilon": 1.0, "domain": {"size": 300}, "precision": "1ms"},
    base=Path(),
)
WINDOW = WindowSpec(size_ms=50, hop_ms=50, grace_ms=5, idle_ms=None, future_ms=5)
CONTEXT = Context(spec=SPEC, window=WINDOW, make_final=lambda _: b"", chunk=64)
ID = bytes(range(16))
NOW_MS = 1_000

values = st.none() | st.binary(max_size=30) | st.just(b"")


@st.composite
def some_records(draw: st.DrawFn) -> list[Record]:
    gaps = draw(st.lists(st.sampled_from([1, 1, 1, 2, 9]), min_size=1, max_size=20))
    same = draw(st.booleans())
    offsets = np.cumsum(gaps).tolist()
    return [(o, bytes([o % 256]) * 3 if same else draw(values)) for o in offsets]


def packed(records: list[Record], *, after: int, stop: int, **dated: Any) -> bytes:
    return encode_packed(
        Packed(after, stop, stop + 5, make_records(records, **dated)), partition=3, topic_id=ID
    )


@given(some_records(), st.integers(0, 3), st.integers(0, 3))
def test_packed_records_are_unpacked(records: list[Record], before: int, behind: int):
    after, stop = max(0, records[0][0] - before), records[-1][0] + 1 + behind
    data = packed(records, after=after, stop=stop)
    found = decode_packed(data, partition=3, topic_id=ID)
    assert (found.after, found.next, found.end) == (after, stop, stop + 5)
    assert list(found.records) == records
    assert encode_packed(found, partition=3, topic_id=ID) == data
    for offset in range(after, stop + 1):
        assert list(found.records.since(offset)) == [r for r in records if r[0] >= offset]


@given(some_records(), st.data(), st.booleans(), st.sampled_from([100, 1 << 31, 1 << 33]))
def test_packed_times_of_arrival_are_unpacked(
    records: list[Record], data: st.DataObject, appended: bool, span_ms: int
):
    n, first_ms = len(records), data.draw(st.integers(0, 1 << 41))
    times = st.integers(first_ms, first_ms + span_ms)
    arrived = data.draw(st.lists(times, min_size=n, max_size=n))
    encoded = packed(records, after=0, stop=records[-1][0] + 1, arrived=arrived, appended=appended)
    found = decode_packed(encoded, partition=3, topic_id=ID)
    assert list(found.records) == records
    assert found.records.arrived is not None
    limit_ms = min(arrived) + (1 << 32) - 1
    # A span of weeks is cut, and the times no longer count as the broker's.
    assert found.records.arrived.tolist() == [min(at, limit_ms) for at in arrived]
    assert found.records.appended == (appended and max(arrived) <= limit_ms)
    later = found.records.since(records[n // 2][0])
    assert later.arrived is not None
    assert later.arrived.tolist() == found.records.arrived[n // 2 :].tolist()
    assert encode_packed(found, partition=3, topic_id=ID) == encoded


@given(some_records(), st.randoms(use_true_random=False))
def test_damaged_bytes_are_refused_or_read(records: list[Record], rng: random.Random):
    dated = {"arrived": [o for o, _ in records]} if rng.random() < 0.5 else {}
    data = bytearray(packed(records, after=0, stop=records[-1][0] + 1, **dated))
    kind = rng.randrange(3)
    if kind == 0:
        data[rng.randrange(min(len(data), HEAD.size))] ^= 1 << rng.randrange(8)
    elif kind == 1:
        del data[rng.randrange(len(data)) :]
    else:
        data += rng.randbytes(rng.randint(1, 9))
    with suppress(PackedError):
        found = decode_packed(bytes(data), partition=3, topic_id=ID)
        offsets = [offset for offset, _ in found.records]
        assert found.after <= offsets[0]
        assert offsets[-1] < found.next <= found.end
        assert sorted(set(offsets)) == offsets


@given(st.binary(max_size=200))
def test_random_bytes_raise_nothing_else(data: bytes):
    with pytest.raises(PackedError):
        decode_packed(b"\x81" + data if len(data) % 2 else data, partition=0, topic_id=b"")


def make_source(rng: random.Random) -> list[Record]:
    """Messages good and bad, in one length mostly; some offsets do not exist."""
    made, offset = [], 0
    for _ in range(rng.randint(1, 60)):
        n = 1 if rng.random() < 0.8 else rng.randint(2, 4)
        symbols = np.array([rng.randrange(520) for _ in range(n)])
        times_ms = np.array([offset * 3 + rng.randint(-60, 10) for _ in range(n)])
        value: bytes | None = SPEC.frame_reports(symbols % 512, times_ms=times_ms)
        if rng.random() < 0.1:
            damaged = bytearray(value or b"")
            damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
            value = rng.choice([None, b"", b"no frame", bytes(damaged), bytes(26)])
        made.append((offset, value))
        offset += rng.choice([1, 1, 1, 1, 2, 5])
    return made


def loaded(context: Context = CONTEXT) -> Partition:
    replica = Replica(context, 3)
    replica.read([], position=0, end=0)
    assert replica.head is not None
    return Partition(context, replica, replace(replica.head, source=ID), epoch=1)


def outcome(part: Partition) -> tuple[object, ...]:
    flush = part.flush()
    assert flush is not None
    work = asdict(part.work)
    # The order of copies within a batch is not specified.
    return work, flush.cells, sorted(flush.copies, key=lambda copy: (copy.headers, copy.value))


def arrivals(source: list[Record], rng: random.Random) -> dict[int, int]:
    """Return when messages arrived, by offset: some time before or after the times in them."""
    arrived, at = {}, 0
    for offset, _ in source:
        at = arrived[offset] = max(at, offset * 3 + rng.randint(-10, 40))
    return arrived


def known(records: list[Record], arrived: dict[int, int], *, appended: bool) -> Arrivals:
    times_ms = np.array([arrived[offset] for offset, _ in records], dtype=np.int64)
    return Arrivals(times_ms if appended else NOW_MS, times_ms)


@pytest.mark.soak
@pytest.mark.parametrize("appended", [True, False])
@pytest.mark.parametrize("seed", seeds(25, soak=2_000))
def test_packed_counts_as_the_source_does(seed: int, appended: bool):
    rng = random.Random(seed)
    source = make_source(rng)
    arrived = arrivals(source, rng)
    end = source[-1][0] + 1

    def ingest(part: Partition, records: list[Record]) -> None:
        when = known(records, arrived, appended=appended)
        part.ingest(records, now_ms=NOW_MS, arrived=when)

    direct = loaded()
    ingest(direct, source)

    # Packers overlap, begin and cut anywhere, and their messages come in any order.
    messages = []
    for _ in range(rng.randint(1, 4)):
        at = rng.choice([0, 0, rng.randrange(end)])
        while at < end:
            stop = min(end, at + rng.choice([1, 3, 20, 100]))
            inside = [record for record in source if at <= record[0] < stop]
            if inside:
                stop = inside[-1][0] + 1
                dated = {"arrived": [arrived[o] for o, _ in inside], "appended": appended}
                messages.append(packed(inside, after=at, stop=stop, **dated))
            at = stop
    for _ in range(rng.randrange(6)):
        i, j = rng.randrange(len(messages)), rng.randrange(len(messages))
        messages[i], messages[j] = messages[j], messages[i]
    messages = [message for message in messages if rng.random() < 0.9]

    through = loaded()
    for data in messages:
        found = decode_packed(data, partition=3, topic_id=ID)
        taken = take(through, found, now_ms=NOW_MS)
        if taken is Taken.HOLE:
            missing = [r for r in source if through.next <= r[0] < found.after]
            ingest(through, missing)
            through.pass_over(found.after)
            assert take(through, found, now_ms=NOW_MS) is Taken.TAKEN
    ingest(through, [r for r in source if r[0] >= through.next])
    assert outcome(through) == outcome(direct)
    assert direct.work.next == end


def test_reports_packed_long_after_their_arrival_are_classified_by_it():
    """A packer that was away for an hour packs honest reports with one dated ahead of them."""
    hour_ms = 3_600_000
    window = replace(WINDOW, size_ms=60_000, hop_ms=60_000, grace_ms=5_000, future_ms=5_000)
    context = replace(CONTEXT, window=window)
    times_ms = [0, 1_000, 300_000, 2_000, 3_000]
    values = [SPEC.frame_reports(np.array([1]), times_ms=np.array([at])) for at in times_ms]
    arrived, late = [0, 1_000, 2_000, 2_000, 3_000], []
    for dated in ({}, {"arrived": arrived}, {"arrived": arrived, "appended": True}):
        data = packed(list(enumerate(values)), after=0, stop=5, **dated)
        part = loaded(context)
        found = decode_packed(data, partition=3, topic_id=ID)
        take(part, found, now_ms=2 * hour_ms)
        late.append((part.work.late, part.work.rejected.get("future", 0)))
    # Without times of arrival honest reports are late; with the broker's, the forged date fails.
    assert late == [(2, 0), (0, 0), (0, 1)]


@pytest.mark.soak
@pytest.mark.parametrize("seed", seeds(15, soak=1_000))
def test_batches_are_the_same_whichever_way_they_are_read(seed: int):
    source = make_source(random.Random(seed))
    plain = read_batch(SPEC, frozenset(), [value for _, value in source])
    through = read_records(SPEC, frozenset(), make_records(source))
    assert (plain.refused, plain.passed) == (through.refused, through.passed)
    for name in ("message", "time_ms", "count", "payload"):
        np.testing.assert_array_equal(getattr(plain, name), getattr(through, name))


def test_a_count_without_records_does_not_take_memory():
    head = HEAD.pack(0x81, 3, 0, 0xFFFFFFFF, bytes(16), 0, 1 << 40, 1 << 40, 0, 0)
    with pytest.raises(PackedError, match="do not hold"):
        decode_packed(head, partition=0, topic_id=b"")
