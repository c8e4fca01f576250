"""Keys and values of the changelog: they are read as written, and anything else is refused."""

from collections.abc import Callable
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ldpstream.agents.state.cell_encoding import (
    Totals,
    chunk_sum,
    decode_chunk,
    decode_final,
    decode_totals,
    encode_chunk,
    encode_final,
    encode_totals,
)
from ldpstream.agents.state.encoding import (
    HEAD_COUNTS,
    HEAD_MOMENTS,
    decode_head,
    decode_key,
    encode_head,
    encode_key,
    state_prefix,
)
from ldpstream.agents.state.records import HEAD, REASONS, Head, Key, Name, RecordError
from ldpstream.agents.state.windows import Gap, WindowSpec
from tests.stream.harness import make_context, make_spec

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


@given(KEYS, KEYS)
def test_different_keys_have_different_bytes(one: Key, other: Key):
    assert (encode_key(PREFIX, one) == encode_key(PREFIX, other)) == (one == other)


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


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (lambda data: decode_head(Key(HEAD, 1, 1), data), encode_head(Head(lineage={1: 2}))),
        (chunk_sum, encode_chunk(np.arange(3))),
        (lambda data: decode_chunk(data, 3), encode_chunk(np.arange(3))),
        (decode_totals, encode_totals(Totals(1, 2, 3))),
        (decode_final, encode_final(b"content")),
        (lambda data: decode_key(PREFIX, data), encode_key(PREFIX, Key(HEAD, 1, 1))),
    ],
)
def test_records_of_another_version_are_refused_by_name(
    read: Callable[[bytes], object], value: bytes
):
    read(value)
    for broken in (b"\x09" + value[1:], b""):
        with pytest.raises(RecordError, match="version"):
            read(broken)


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
