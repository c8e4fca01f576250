"""Whatever a stream leaves out, repeats or holds back, every message is ingested once, in order."""

import random

import pytest

from ldpstream.agents.reading.guard import BACKLOG_RECORDS
from ldpstream.agents.reading.source import Stretch
from tests.stream.untrusted_stream import MANY, Broker


@pytest.mark.parametrize("seed", range(300))
def test_every_message_is_ingested_once(seed: int) -> None:
    many = seed % 3 == 0
    broker = Broker(random.Random(seed), size=200, partitions=MANY if many else 2)
    for _ in range(150):
        broker.step()
    # The stream falls silent: what is missing is read all the same.
    broker.end = broker.size
    broker.state.full = False
    for _ in range(40):
        broker.now += 0.5
        broker.guard.look(broker.held)
        broker.read()
    assert broker.state.offsets == broker.log
    assert broker.state.next == broker.size
    assert not broker.failures


def test_of_many_partitions_none_comes_by_the_stream() -> None:
    broker = Broker(random.Random(0), size=100, existing=1.0, partitions=MANY)
    broker.end = 100
    # A rebalance lets it flow again.
    for hear in (lambda: broker.guard.deliver(broker.held, [(0, b"")]), broker.flow_news):
        assert broker.held_back
        broker.held_back = False
        hear()
    assert broker.held_back
    assert not broker.state.offsets
    while broker.state.next < 100:
        broker.read()
    assert broker.state.offsets == broker.log
    # At the end of the log it is watched on, however long it is silent.
    broker.now += 60.0
    broker.read()
    broker.guard.look(broker.held)
    assert broker.watching == 100
    assert broker.guard.end_offset(broker.held) == 100


def test_a_full_partition_rests_and_is_read_again() -> None:
    broker = Broker(random.Random(0), size=100, existing=1.0)
    broker.end = 100
    broker.state.full = True
    broker.read()
    broker.flow()
    assert broker.watching is None
    assert not broker.state.offsets
    broker.state.full = False
    broker.guard.look(broker.held)
    assert broker.watching == 0
    while broker.state.next < 100:
        broker.read()
    assert broker.state.offsets == broker.log


def test_reading_rests_while_the_stream_flows() -> None:
    broker = Broker(random.Random(0), size=100, existing=1.0)
    broker.end = 100
    broker.read()
    for _ in range(20):
        broker.streaming = broker.state.next
        broker.flow()
    assert broker.watching is None
    assert broker.state.offsets == broker.log


def test_a_backlog_is_read_while_the_stream_is_held() -> None:
    size = BACKLOG_RECORDS + 100
    broker = Broker(random.Random(0), size)
    broker.end = size
    broker.read()
    assert broker.held_back
    broker.flow()
    while broker.state.next < size:
        broker.read()
    assert not broker.held_back
    assert broker.streaming == size
    assert broker.state.offsets == broker.log


def test_retention_is_skipped_and_counted() -> None:
    broker = Broker(random.Random(0), size=50)
    broker.guard.outside(broker.held, 0, 10)
    assert (broker.state.next, broker.state.lost) == (10, 10)
    assert not broker.failures


def test_what_is_deleted_once_the_stream_has_brought_it_is_not_missed() -> None:
    broker = Broker(random.Random(0), size=50)
    # The reader was asked for offset 5 before the stream brought all up to 30.
    broker.state.next = 30
    for beginning in (10, 30):
        broker.guard.outside(broker.held, 5, beginning)
        assert (broker.state.next, broker.state.lost, broker.watching) == (30, 0, 30)
    broker.guard.outside(broker.held, 5, 40)
    assert (broker.state.next, broker.state.lost, broker.watching) == (40, 10, 40)
    assert not broker.failures


def test_a_log_that_begins_anew_is_refused() -> None:
    broker = Broker(random.Random(0), size=50)
    broker.state.next = 30
    broker.guard.outside(broker.held, 30, 0)
    (failure,) = broker.failures
    assert "was created anew" in failure


def test_a_log_that_is_short_for_a_moment_is_not_refused() -> None:
    broker = Broker(random.Random(0), size=50)
    broker.state.next = 30

    def read(end: int) -> None:
        broker.guard.stretch(broker.held, Stretch(30, 30, end, int(broker.now * 1000), []))

    for _ in range(9):
        read(25)
        broker.now += 1
    read(30)
    broker.now += 5
    read(25)
    assert not broker.failures
    broker.now += 11
    read(25)
    assert "ends at offset 25, before 30" in broker.failures[0]


def test_the_end_is_known_while_the_stream_flows() -> None:
    """What flows may all be of another spec, and the partition be idle for this one."""
    broker = Broker(random.Random(0), size=100, existing=1.0)
    broker.end = 100
    broker.read()
    while broker.state.next < 100:
        broker.streaming = broker.state.next
        broker.flow()
    assert broker.watching is None
    assert broker.guard.end_offset(broker.held) == 100
    broker.now += 2
    assert broker.guard.end_offset(broker.held) is None


def test_the_end_is_unknown_while_fetches_fail() -> None:
    broker = Broker(random.Random(0), size=50)
    broker.end = 50
    while broker.state.next < 50:
        broker.read()
    broker.now += 2
    broker.guard.look(broker.held)
    broker.read()
    assert broker.guard.end_offset(broker.held) == 50
    broker.now += 5
    assert broker.guard.end_offset(broker.held) is None


def test_what_a_rebalance_delivers_again_does_not_prove_the_end() -> None:
    broker = Broker(random.Random(0), size=100, existing=1.0)
    broker.end = 50
    while broker.state.next < 50:
        broker.read()
    broker.guard.look(broker.held)
    broker.now += 60.0
    broker.end = 100
    # Faust's stream has all that it brings behind it, and the end that it saw is the old one.
    broker.guard.deliver(broker.held, [(offset, b"") for offset in range(10, 50)])
    broker.guard.notice(broker.held, 49)
    assert broker.guard.end_offset(broker.held) is None
