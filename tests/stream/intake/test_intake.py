"""What an intake takes from its reader: when it waits, what it refuses, and when things arrived.

`tests.stream.simulation.intake` shows that whatever a channel loses or repeats, and retention
deletes, every message is ingested once and in order.
"""

import random

import numpy as np
import pytest

from ldpstream.agents.engine.source import Outside
from ldpstream.agents.state.batch import Dates
from tests.stream.intake_stream import Broker


def test_a_full_partition_makes_its_reader_wait_and_nothing_is_read_twice() -> None:
    broker = Broker(random.Random(0), size=100)
    broker.source.most = 10
    broker.source.end = 100
    broker.state.full = True
    for _ in range(9):
        broker.read()
    session = broker.held.session
    assert session is not None
    assert not broker.state.offsets
    assert len(session.waiting) == 2
    assert broker.source.at == session.waiting[-1].stop
    broker.state.full = False
    while broker.state.next < 100:
        broker.read()
    assert broker.state.offsets == broker.source.offsets
    assert broker.held.session is session


def test_a_log_that_begins_again_is_refused() -> None:
    broker = Broker(random.Random(0), size=50)
    broker.state.next, broker.source.begins = 30, 31
    broker.intake.begin(broker.held)
    # The log was created again before the broker was asked where it begins.
    assert broker.held.session is not None
    broker.held.session.give(Outside(30, 0))
    broker.take()
    (failure,) = broker.failures
    assert "was created again" in failure


def test_a_log_that_is_short_for_a_moment_is_not_refused() -> None:
    broker = Broker(random.Random(0), size=50)
    broker.state.next = 30
    broker.intake.begin(broker.held)

    def read(end: int) -> None:
        broker.source.end = end
        broker.read()

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


def test_a_probe_is_dated_before_it_was_asked_for() -> None:
    broker = Broker(random.Random(0), size=50, existing=1.0)
    broker.source.most = 50
    source = broker.source
    # This fetch is sent before the session begins, and answered in it.
    source.client.ask(source.partition)
    broker.intake.begin(broker.held)
    asked: list[float] = []
    for _ in range(9):
        broker.now += 1.0
        source.client.answer(source.partition)
        broker.poll()
        broker.take()
        broker.now += 1.0
        asked.append(broker.now)
        source.client.ask(source.partition)
    # The first has no date; each later one is dated when the answer before it was seen.
    assert len(broker.state.probes) == 8
    assert all(ms <= at * 1000 for ms, at in zip(broker.state.probes, asked, strict=False))
    assert broker.state.probes == sorted(broker.state.probes)
    assert broker.intake.end_offsets == {0: 0}


@pytest.mark.parametrize("appended", [True, False])
def test_a_batch_arrived_when_its_records_say(appended: bool) -> None:
    broker = Broker(random.Random(0), size=3, existing=1.0)
    broker.now, broker.source.dates = 1_000.0, Dates((7_000, 7_500, 999_000), appended)
    broker.source.end = 3
    # Its first record is counted already when it is taken.
    broker.source.read()
    broker.state.next = 1
    broker.take()
    arrived = broker.state.arrived
    assert arrived is not None
    if appended:
        assert np.array_equal(arrived.clock_ms, [7_500, 999_000])
        assert np.array_equal(arrived.latest_ms, [7_500, 999_000])
    else:
        assert np.array_equal(arrived.clock_ms, [7_000, 7_000])
        assert arrived.latest_ms == 1_000_000


def test_a_batch_arrived_after_the_log_was_seen_to_end_before_it() -> None:
    broker = Broker(random.Random(0), size=3, existing=1.0)
    broker.now, broker.source.dates = 1_000.0, Dates((7_000, 7_500, 9_000))
    # The wall clock differs from the reader's steady clock.
    broker.wall_ms = 5_000_000
    for _ in range(3):
        broker.read()
        broker.now += 1.0
    broker.source.end = 3
    broker.read()
    arrived = broker.state.arrived
    assert arrived is not None
    # The answer before it was seen one second ago, and was asked for at most two seconds earlier.
    assert np.array_equal(arrived.clock_ms, [5_000_000 - 3_000] * 3)
    assert arrived.latest_ms == 5_000_000
