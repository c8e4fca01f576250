"""Records damaged in every way are refused with their declared error, or read."""

import random
import time
import tracemalloc
from contextlib import suppress

import pytest

from ldpstream.agents.state.close_orders import MOST_ORDER_BYTES, ControlError, decode_control
from ldpstream.agents.state.encoding import encode_head, encode_key
from ldpstream.agents.state.records import Head, Key, Name
from ldpstream.agents.state.replica import Replica
from tests.fuzz.mutations import DEEP, ENDLESS
from tests.fuzz.records import CONTEXT, PREFIX, Format, formats, fuzz_changelog
from tests.soak import chosen

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
    replica = Replica(CONTEXT, 0)
    head = encode_key(PREFIX, Key(Name("head"), 1, 1)), encode_head(Head(lineage={1: 1}))
    stray = encode_key(PREFIX, Key(Name("n", 3), 9, 0)), b"\1" + bytes(24)
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
