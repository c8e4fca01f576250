"""Keys and values of the changelog: read as written, refused when damaged, alike in any form."""

import random
import time
import tracemalloc
from contextlib import suppress
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ldpstream.agents.state import counts
from ldpstream.agents.state.cell_encoding import (
    Totals,
    chunk_sum,
    decode_chunk,
    decode_totals,
    encode_chunk,
    encode_few,
    encode_totals,
)
from ldpstream.agents.state.close_orders import MOST_ORDER_BYTES, ControlError, decode_control
from ldpstream.agents.state.counts import Counts
from ldpstream.agents.state.encoding import (
    HEAD_COUNTS,
    HEAD_MOMENTS,
    decode_head,
    decode_key,
    encode_head,
    encode_key,
    state_prefix,
)
from ldpstream.agents.state.flushes import COPIES_BYTES, COPIES_LIMIT
from ldpstream.agents.state.owner_cells import CELLS_LIMIT
from ldpstream.agents.state.records import HEAD, REASONS, Head, Key, Name, RecordError
from ldpstream.agents.state.replica import Replica
from ldpstream.agents.state.windows import Gap, WindowSpec
from tests.fuzz.mutations import DEEP, ENDLESS
from tests.fuzz.records import CONTEXT as FUZZED
from tests.fuzz.records import PREFIX as FUZZED_PREFIX
from tests.fuzz.records import Format, formats, fuzz_changelog
from tests.soak import chosen
from tests.stream.harness import Cluster, frame, make_context, make_spec

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
REACHED = st.integers(-(1 << 62), 1 << 62)
UINT64 = st.integers(0, (1 << 64) - 1)
COUNT = st.integers(0, 1 << 62)
PREFIX = state_prefix(make_context(WindowSpec(size_ms=8, hop_ms=4)))
NAMES = st.one_of(
    st.just(HEAD),
    st.builds(Name, st.just("count"), INT64, st.integers(0, (1 << 32) - 1)),
    st.builds(Name, st.sampled_from(["n", "final"]), INT64, st.just(0)),
)
KEYS = st.builds(Key, NAMES, UINT64, UINT64)
HEADS = st.builds(
    Head,
    epoch=UINT64,
    seq=UINT64,
    idle=st.booleans(),
    rejected=st.dictionaries(st.sampled_from(REASONS), st.integers(1, 1 << 62)),
    lineage=st.dictionaries(st.integers(1, (1 << 64) - 1), UINT64, max_size=5),
    source=st.sampled_from([b"", bytes(range(16))]),
    **dict.fromkeys(("clock", "closed", "expired", "final", "published"), REACHED),
    **dict.fromkeys(("cutover", "grouped", "gathered"), REACHED),
    **dict.fromkeys(("next", "n", "late", "lost", "gone", "partitions", "end"), COUNT),
    gaps=st.lists(st.builds(Gap, REACHED, REACHED, COUNT), max_size=3).map(tuple),
)


@given(KEYS)
def test_keys_are_read_as_written(key: Key):
    assert decode_key(PREFIX, encode_key(PREFIX, key)) == key


@given(HEADS)
def test_heads_are_read_as_written(head: Head):
    assert decode_head(Key(HEAD, head.epoch, head.seq), encode_head(head)) == head


@pytest.mark.parametrize(
    "other",
    [
        make_context(WindowSpec(size_ms=8, hop_ms=8)),
        make_context(WindowSpec(size_ms=4, hop_ms=4)),
        make_context(WindowSpec(size_ms=8, hop_ms=4), chunk=2),
        make_context(WindowSpec(size_ms=8, hop_ms=4), spec=make_spec(name="another")),
    ],
)
def test_keys_of_another_state_are_ignored(other: object):
    key = encode_key(state_prefix(other), Key(HEAD, 1, 1))
    assert decode_key(PREFIX, key) is None


@pytest.mark.parametrize("cut", [1, 5, 28])
def test_malformed_keys_are_refused(cut: int):
    with pytest.raises(RecordError, match="malformed key"):
        decode_key(PREFIX, encode_key(PREFIX, Key(HEAD, 1, 1))[:-cut])


def test_keys_of_an_unknown_kind_are_refused():
    key = bytearray(encode_key(PREFIX, Key(HEAD, 1, 1)))
    key[len(PREFIX)] = 77
    with pytest.raises(RecordError, match="malformed key"):
        decode_key(PREFIX, bytes(key))


def test_every_field_of_a_head_is_stored():
    others = ("epoch", "seq", "idle", "source", "rejected", "gaps", "lineage")
    assert {*others, *HEAD_COUNTS, *HEAD_MOMENTS} == {field.name for field in fields(Head)}


def test_the_reserved_bytes_of_a_head_are_zero_and_not_read():
    value, at = encode_head(Head(partitions=2, end=3)), 18 + 5 * 8
    assert value[at : at + 16] == bytes(8) + (3).to_bytes(8, "little")
    later = value[:at] + b"\x07" * 8 + value[at + 8 :]
    assert decode_head(Key(HEAD, 0, 0), later) == Head(partitions=2, end=3)


@pytest.mark.parametrize("cut", [1, 8, 16, 24, 36, 40, 64, 100])
def test_torn_heads_are_refused(cut: int):
    value = encode_head(Head(lineage={1: 2, 3: 4}, gaps=(Gap(5, 6, 7),)))
    with pytest.raises(RecordError, match="head"):
        decode_head(Key(HEAD, 1, 1), value[:-cut])


COUNTS = st.one_of(
    hnp.arrays(np.int64, st.integers(1, 300), elements=st.integers(-(1 << 40), 1 << 40)),
    hnp.arrays(np.int64, st.integers(1, 300), elements=st.integers(0, 300)),
    hnp.arrays(np.int64, st.integers(1, 300), elements=st.integers(0, 1), fill=st.just(0)),
)


@given(COUNTS)
def test_chunks_are_read_as_written(counts: np.ndarray):
    value = encode_chunk(counts)
    assert np.array_equal(decode_chunk(value, len(counts)), counts)
    assert chunk_sum(value) == counts.sum()
    assert decode_chunk(value, len(counts)).flags.writeable


@pytest.mark.parametrize(
    ("largest", "item"), [(127, 1), (128, 2), (32_767, 2), (32_768, 4), (1 << 31, 8), (-128, 1)]
)
def test_dense_chunks_take_the_smallest_integer(largest: int, item: int):
    counts = np.full(1000, largest)
    assert len(encode_chunk(counts)) == 14 + 1000 * item


def test_sparse_chunks_are_short():
    counts = np.zeros(4096, dtype=np.int64)
    counts[[5, 4000]] = 1, 70_000
    assert len(encode_chunk(counts)) == 14 + 2 * (2 + 4)
    assert np.array_equal(decode_chunk(encode_chunk(counts), 4096), counts)


def test_no_chunk_nears_a_megabyte():
    assert len(encode_chunk(np.full(65_536, 1 << 40))) < 600_000


@pytest.mark.parametrize("counts", [np.arange(10), np.eye(1, 4096, dtype=np.int64)[0]])
def test_damaged_chunks_are_refused(counts: np.ndarray):
    value = encode_chunk(counts)
    with pytest.raises(RecordError, match="expected 9"):
        decode_chunk(value, 9)
    with pytest.raises(RecordError, match=r"wrong length|does not add up"):
        decode_chunk(value[:-1], len(counts))
    with pytest.raises(RecordError, match="does not add up"):
        decode_chunk(value[:-1] + bytes([value[-1] ^ 1]), len(counts))


@given(COUNT, COUNT, INT64)
def test_totals_are_read_as_written(n: int, late: int, total: int):
    value = encode_totals(Totals(n, late, total))
    assert decode_totals(value) == Totals(n, late, total)
    with pytest.raises(RecordError, match="pane total has the wrong length"):
        decode_totals(value + b"\0")


EACH = chosen(120, soak=4_000)
CHANGELOGS = chosen(100, soak=2_000)
PEAK_BYTES = 64 << 20
FEW_SECONDS = 20.0
"""A generous limit: work quadratic in a megabyte would take hours."""


@pytest.mark.soak
@pytest.mark.parametrize("one", formats(), ids=lambda one: one.name)
def test_damaged_records_are_refused_by_the_declared_error_alone(one: Format):
    taken = sum(one.fuzz(random.Random(f"{one.name} {seed}")) for seed in range(EACH))
    assert taken < EACH
    # Some mutations leave a valid record; otherwise only nonsense would have been drawn.
    assert taken or one.name == "event"


@pytest.mark.soak
def test_damaged_changelogs_are_refused_or_used():
    taken = sum(fuzz_changelog(random.Random(seed)) for seed in range(CHANGELOGS))
    assert 0.16 < taken / CHANGELOGS < 0.84


def test_a_cell_of_an_epoch_that_no_head_names_is_not_part_of_the_state():
    replica = Replica(FUZZED, 0)
    head = encode_key(FUZZED_PREFIX, Key(Name("head"), 1, 1)), encode_head(Head(lineage={1: 1}))
    stray = encode_key(FUZZED_PREFIX, Key(Name("n", 3), 9, 0)), b"\1" + bytes(24)
    log = [(at, *record) for at, record in enumerate((stray, head))]
    assert replica.read(log, position=2, end=2)
    assert not replica.cells
    assert list(replica.dead()) == [stray[0]]


LONGEST = (
    *(
        one * (MOST_ORDER_BYTES // len(one) or 1)
        for one in (b"[", b'"\\', b'{"":', b"{}", b"9,", b"\\")
    ),
    *(*DEEP, *ENDLESS, bytes(20 * MOST_ORDER_BYTES)),
    b'{"close":{"until":"1500","ends":{' + b'"1":1,' * (MOST_ORDER_BYTES // 8) + b'"1":1}}}',
    b"[[" + b"0," * (MOST_ORDER_BYTES // 3) + b"0]]",
)


@pytest.mark.parametrize("data", LONGEST, ids=lambda data: f"{len(data)} bytes")
def test_no_order_takes_long(data: bytes):
    began = time.monotonic()
    with suppress(ControlError):
        decode_control(data)
    assert time.monotonic() - began < FEW_SECONDS


@pytest.mark.slow
@pytest.mark.parametrize("data", LONGEST[-3:], ids=lambda data: f"{len(data)} bytes")
def test_no_order_takes_much_memory(data: bytes):
    tracemalloc.start()
    try:
        with suppress(ControlError):
            decode_control(data)
        assert tracemalloc.get_traced_memory()[1] < PEAK_BYTES
    finally:
        tracemalloc.stop()


SIZE, CHUNK = 250, 100
ADDED = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, SIZE - 1), st.integers(-3, 300), st.booleans()),
    max_size=80,
)


@pytest.mark.soak
@settings(max_examples=chosen(60, soak=5_000, check=15), deadline=None)
@given(ADDED, st.integers(0, 4), st.integers(0, 4))
def test_every_form_of_a_chunk_is_stored_alike(
    added: list[tuple[int, int, int, bool]], few: int, arrays: int
):
    held, wanted = Counts(SIZE, CHUNK), np.zeros((4, SIZE), dtype=np.int64)
    touched = set()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counts, "FEW_ENTRIES", few)
        patch.setattr(counts, "ARRAY_BYTES", arrays * CHUNK * 8)
        for pane, place, count, alone in added:
            if alone:
                chunks = held.add_few(pane, [(place, count)])
            else:
                chunks = set(held.add(pane, np.array([place]), np.array([count])))
            assert chunks == {place // CHUNK}
            touched.add((pane, place // CHUNK))
            wanted[pane, place] += count
            assert held._array_bytes <= max(1, arrays) * CHUNK * 8
    for pane, number in touched:
        part = wanted[pane, number * CHUNK : (number + 1) * CHUNK]
        assert held.value(pane, number) == encode_chunk(part)
    held.drop_below(4)
    assert held._array_bytes == 0


@given(st.dictionaries(st.integers(0, 29), st.integers(-(1 << 40), 1 << 40), max_size=30))
def test_a_dictionary_is_stored_as_the_array_would_be(few: dict[int, int]):
    array = np.zeros(30, dtype=np.int64)
    array[list(few)] = list(few.values())
    assert encode_few(few, 30) == encode_chunk(array)
    np.testing.assert_array_equal(decode_chunk(encode_few(few, 30), 30), array)


def test_a_partition_is_full_of_copies_until_it_is_flushed():
    for values in ([b"x"] * COPIES_LIMIT, [bytes(70_000)] * (COPIES_BYTES // 65_536)):
        cluster = Cluster(make_context(WindowSpec(size_ms=10, hop_ms=10)))
        cluster.produce(0, *values[:-1])
        cluster.ingest(0)
        assert not cluster.part(0).full
        cluster.produce(0, values[-1])
        cluster.ingest(0)
        assert cluster.part(0).full
        cluster.flush(0)
        assert not cluster.part(0).full
        assert len(cluster.copies) == len(values)


@pytest.mark.slow
def test_a_partition_is_full_of_cells_until_it_is_flushed():
    context = make_context(WindowSpec(size_ms=10, hop_ms=10), spec=make_spec(300))
    cluster = Cluster(context, now_ms=10 * CELLS_LIMIT)
    cluster.produce(0, frame(*((10 * i, 1) for i in range(CELLS_LIMIT // 2)), spec=context.spec))
    cluster.ingest(0)
    assert cluster.part(0).full
    cluster.flush(0)
    assert not cluster.part(0).full
    assert cluster.head().n == CELLS_LIMIT // 2
