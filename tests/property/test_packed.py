"""Packed messages: whatever is packed, cut, repeated or reordered counts as the source does."""

import random
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpstream.agents.packing.packed import (
    HEAD,
    Packed,
    PackedError,
    Record,
    decode_packed,
    encode_packed,
)
from ldpstream.agents.reading.taking import Taken, take
from ldpstream.agents.state.batch import read_batch, read_records
from ldpstream.agents.state.context import Context
from ldpstream.agents.state.partition import Partition
from ldpstream.agents.state.tail import Tail
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
CONTEXT = Context(spec=SPEC, window=WINDOW, compose=lambda _: b"", chunk=64)
ID = bytes(range(16))
NOW_MS = 1_000

values = st.none() | st.binary(max_size=30) | st.just(b"")


@st.composite
def some_records(draw: st.DrawFn) -> list[Record]:
    gaps = draw(st.lists(st.sampled_from([1, 1, 1, 2, 9]), min_size=1, max_size=20))
    same = draw(st.booleans())
    offsets = np.cumsum(gaps).tolist()
    return [(o, bytes([o % 256]) * 3 if same else draw(values)) for o in offsets]


def packed(records: list[Record], *, after: int, stop: int) -> bytes:
    return encode_packed(
        Packed(after, stop, stop + 5, make_records(records)), partition=3, topic_id=ID
    )


@given(some_records(), st.integers(0, 3), st.integers(0, 3))
def test_what_is_packed_comes_out(records: list[Record], before: int, behind: int):
    after, stop = max(0, records[0][0] - before), records[-1][0] + 1 + behind
    data = packed(records, after=after, stop=stop)
    found = decode_packed(data, partition=3, topic_id=ID)
    assert (found.after, found.next, found.end) == (after, stop, stop + 5)
    assert list(found.records) == records
    assert encode_packed(found, partition=3, topic_id=ID) == data
    for offset in range(after, stop + 1):
        assert list(found.records.since(offset)) == [r for r in records if r[0] >= offset]


@given(some_records(), st.randoms(use_true_random=False))
def test_damaged_bytes_are_refused_or_read(records: list[Record], rng: random.Random):
    data = bytearray(packed(records, after=0, stop=records[-1][0] + 1))
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
def test_no_bytes_raise_anything_else(data: bytes):
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


def loaded() -> Partition:
    tail = Tail(CONTEXT, 3)
    tail.read([], position=0, end=0)
    assert tail.head is not None
    return Partition(CONTEXT, tail, replace(tail.head, source=ID), epoch=1)


def outcome(part: Partition) -> tuple[object, ...]:
    flush = part.flush()
    assert flush is not None
    work = asdict(part.work)
    # Within a batch copies come in an order of their own.
    return work, flush.cells, sorted(flush.copies, key=lambda copy: (copy.headers, copy.value))


@pytest.mark.soak
@pytest.mark.parametrize("seed", seeds(25, soak=2_000))
def test_packed_counts_as_the_source_does(seed: int):
    rng = random.Random(seed)
    source = make_source(rng)
    end = source[-1][0] + 1
    direct = loaded()
    direct.ingest(source, now_ms=NOW_MS)

    # Packers that overlap, cut anywhere and begin anywhere, and whose messages come in any order.
    messages = []
    for _ in range(rng.randint(1, 4)):
        at = rng.choice([0, 0, rng.randrange(end)])
        while at < end:
            stop = min(end, at + rng.choice([1, 3, 20, 100]))
            inside = [record for record in source if at <= record[0] < stop]
            if inside:
                stop = inside[-1][0] + 1
                messages.append(packed(inside, after=at, stop=stop))
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
            through.ingest(missing, now_ms=NOW_MS)
            through.pass_over(found.after)
            assert take(through, found, now_ms=NOW_MS) is Taken.TAKEN
    through.ingest([r for r in source if r[0] >= through.next], now_ms=NOW_MS)
    assert outcome(through) == outcome(direct)


@pytest.mark.soak
@pytest.mark.parametrize("seed", seeds(15, soak=1_000))
def test_batches_are_the_same_whichever_way_they_are_read(seed: int):
    source = make_source(random.Random(seed))
    plain = read_batch(SPEC, frozenset(), [value for _, value in source])
    through = read_records(SPEC, frozenset(), make_records(source))
    assert (plain.refused, plain.passed) == (through.refused, through.passed)
    for name in ("message", "time_ms", "count", "payload"):
        np.testing.assert_array_equal(getattr(plain, name), getattr(through, name))


def test_a_message_of_nothing_does_not_take_memory():
    head = HEAD.pack(0x81, 3, 0, 0xFFFFFFFF, bytes(16), 0, 1 << 40, 1 << 40, 0, 0)
    with pytest.raises(PackedError, match="do not hold"):
        decode_packed(head, partition=0, topic_id=b"")
