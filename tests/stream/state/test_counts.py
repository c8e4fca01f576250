"""Counts in memory: every form of a chunk is stored in the same way."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldpstream.agents.state import counts
from ldpstream.agents.state.cell_encoding import decode_chunk, encode_chunk, encode_few
from ldpstream.agents.state.counts import Counts
from ldpstream.agents.state.flushes import COPIES_BYTES, COPIES_LIMIT
from ldpstream.agents.state.owner_cells import CELLS_LIMIT
from ldpstream.agents.state.windows import WindowSpec
from tests.soak import chosen
from tests.stream.harness import Cluster, frame, make_context, make_spec

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
