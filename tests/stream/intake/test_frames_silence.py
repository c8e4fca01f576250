"""When an intake waits for packers, and when it reads the source instead."""

import random

import pytest

from ldpstream.agents.reading.packed_intake import NEAR_RECORDS
from tests.stream.untrusted_packers import Broker, silent


def test_the_source_is_not_read_while_packed_messages_come() -> None:
    broker = Broker(random.Random(0), size=500, existing=1.0)
    for _ in range(25):
        broker.source.end += 20
        broker.pack(broker.position, broker.source.end)
        broker.now += 1
        broker.look()
        broker.read_frames()
        assert broker.source.at is None
    assert broker.state.next == 500
    assert (broker.told, broker.lag) == ({"taken": 25}, 0)


def test_a_packer_that_is_down_leaves_no_partition_idle_with_a_backlog() -> None:
    broker = Broker(random.Random(0), size=100, existing=1.0)
    broker.source.end = 100
    assert not broker.state.probes
    for _ in range(2):
        broker.now += 2.5
        broker.look()
        broker.read_source()
    assert not broker.state.probes
    while broker.state.next < 100:
        broker.read_source()
    assert broker.told["reread"] == 100
    broker.read_source()
    assert broker.state.probes


def test_packed_messages_do_not_show_where_the_source_ends() -> None:
    broker = Broker(random.Random(0), size=100, existing=1.0)
    broker.source.end = 20
    broker.pack(0, 20)
    broker.source.end = 100
    broker.read_frames()
    # Offset 20 was the end when the message was packed, which says nothing of now.
    assert broker.state.next == 20
    assert not broker.state.probes


def test_the_source_is_read_while_only_reports_of_other_specs_are_packed() -> None:
    broker = Broker(random.Random(0), size=500, existing=1.0)
    broker.state.passing = True
    for _ in range(20):
        broker.source.end += 20
        broker.pack(broker.position, broker.source.end)
        broker.now += 1
        broker.look()
        broker.read_frames()
        for _ in range(5):
            broker.read_source()
    assert broker.state.probes
    broker.state.passing = False
    broker.source.end += 20
    broker.pack(broker.position, broker.source.end)
    broker.read_frames()
    assert broker.state.next == 420
    assert broker.source.at is None


def test_after_a_silence_the_source_is_read_until_the_packer_is_back() -> None:
    broker = Broker(random.Random(0), size=500, existing=1.0)
    broker.source.end = 20
    broker.pack(0, 20)
    broker.read_frames()
    silent(broker)
    broker.source.end = 500
    broker.read_source()
    assert broker.source.at == broker.state.next > 20
    # A repeated message shows that the packer will soon be ahead.
    broker.pack(broker.position, broker.position + 1)
    broker.read_frames()
    assert broker.source.at is None
    broker.pack(broker.position, 500)
    broker.read_frames()
    assert broker.state.offsets == list(range(500))
    assert {what for what in broker.told if what != "reread"} == {"taken", "repeat"}


def test_a_packer_that_is_down_costs_no_freshness() -> None:
    broker = Broker(random.Random(0), size=500, existing=1.0)
    silent(broker)
    while broker.source.end < 400:
        silent(broker)
        broker.source.end += 20
        # The source is read at once, until packed messages come.
        while broker.state.next < broker.source.end:
            broker.read_source()
    broker.source.end = 420
    broker.pack(400, 420)
    broker.read_frames()
    assert (broker.state.next, broker.source.at) == (420, None)


@pytest.mark.slow
def test_a_packer_that_only_repeats_old_messages_is_not_waited_for() -> None:
    broker = Broker(random.Random(0), size=500, existing=1.0)
    broker.state.next = NEAR_RECORDS + 100
    silent_at = broker.state.next
    broker.source.offsets = list(range(silent_at + 50))
    broker.size = broker.source.end = silent_at + 50
    for _ in range(20):
        broker.now += 0.5
        broker.look()
        broker.pack(broker.position, broker.position + 5)
        broker.read_frames()
        broker.read_source()
    assert broker.state.next > silent_at
