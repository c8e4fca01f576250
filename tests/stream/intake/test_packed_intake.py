"""Whatever packers send, and whatever happens to it, every message is ingested once, in order."""

import random

import pytest

from ldpstream.agents.reading.source import Outside
from ldpstream.agents.state.packed import Packed, encode_packed
from tests.packing import make_records
from tests.soak import seeds
from tests.stream.untrusted_packers import ID, Broker, silent


@pytest.mark.soak
@pytest.mark.parametrize("seed", seeds(25, soak=2_000))
def test_every_message_is_ingested_once(seed: int) -> None:
    broker = Broker(random.Random(seed))
    for _ in range(400):
        broker.step()
    # The packers fall silent, so the rest is read from the source.
    broker.source.end = broker.size
    for _ in range(150):
        broker.wait()
        broker.look()
        broker.read_frames()
        broker.read_source()
    assert broker.state.offsets == broker.source.offsets
    assert broker.state.next == broker.size
    assert not broker.failures


def test_a_hole_is_read_from_the_source_before_what_follows() -> None:
    broker = Broker(random.Random(0), size=40, existing=1.0)
    broker.source.end = 40
    broker.pack(30, 40)
    broker.read_frames()
    assert (broker.state.next, broker.source.at) == (0, 0)
    while broker.state.next < 30:
        broker.read_source()
    assert broker.source.at is None
    broker.read_frames()
    assert broker.state.offsets == broker.source.offsets
    assert broker.told["hole"] == 1


def test_offsets_beyond_the_source_hold_nothing_up_for_long() -> None:
    broker = Broker(random.Random(0), size=40, existing=1.0)
    broker.source.end = 40
    beyond = Packed(10_000, 10_001, 10_001, make_records([(10_000, b"x")]))
    broker.packed.append(encode_packed(beyond, partition=0, topic_id=ID))
    broker.read_frames()
    for _ in range(30):
        broker.now += 1
        broker.read_source()
    assert broker.state.next == 40
    assert broker.packed.at == 1
    assert broker.told["offsets"] == 1


def test_offsets_that_the_source_has_lost_are_taken_from_packed_messages() -> None:
    broker = Broker(random.Random(0), size=40, existing=1.0)
    broker.source.end = 40
    broker.pack(0, 20)
    broker.intake._outside(broker.held, Outside(0, 15))
    assert (broker.state.next, broker.state.lost) == (0, 0)
    broker.read_frames()
    assert (broker.state.next, broker.state.lost) == (20, 0)
    # Everything before offset 15 came packed, while the broker was asked where the source begins.
    broker.intake._outside(broker.held, Outside(0, 15))
    assert (broker.state.next, broker.state.lost, broker.failures) == (20, 0, [])
    broker.intake._outside(broker.held, Outside(20, 30))
    assert (broker.state.next, broker.state.lost) == (30, 10)


def test_packed_messages_before_the_start_of_the_source_are_not_lost() -> None:
    broker = Broker(random.Random(0), size=80, existing=1.0)
    broker.source.end = 80
    broker.pack(10, 60)
    broker.read_frames()
    assert broker.source.at == 0
    # Retention deletes the missing offsets, and others that were packed.
    broker.intake._outside(broker.held, Outside(0, 50))
    assert (broker.state.next, broker.state.lost) == (10, 10)
    broker.read_frames()
    assert (broker.state.next, broker.state.lost) == (60, 10)


def test_a_frames_topic_that_has_been_deleted_holds_nothing_up_for_ever() -> None:
    broker = Broker(random.Random(0), size=80, existing=1.0)
    broker.source.end, broker.packed.client.exists = 80, False
    # The frames topic was never read to its end, and retention deletes from the source.
    for exists in (False, True):
        broker.packed.client.exists = exists
        broker.intake._outside(broker.held, Outside(0, 15))
        assert (broker.state.next, broker.state.lost) == (0, 0)
        broker.now += 50
    broker.packed.client.exists = False
    for _ in range(61):
        broker.intake._outside(broker.held, Outside(0, 15))
        assert (broker.state.next, broker.state.lost) == (0, 0)
        broker.now += 1
    broker.intake._outside(broker.held, Outside(0, 15))
    assert (broker.state.next, broker.state.lost) == (15, 15)
    while broker.state.next < 80:
        broker.read_source()


def test_a_hole_after_a_silence_is_read_at_once() -> None:
    broker = Broker(random.Random(0), size=40, existing=1.0)
    silent(broker)
    broker.source.end = 40
    broker.pack(30, 40)
    broker.read_frames()
    while broker.state.next < 30:
        assert broker.source.at is not None
        broker.read_source()
    broker.read_frames()
    assert broker.state.offsets == broker.source.offsets


def test_a_partition_stopped_by_a_waiting_item_is_read_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker = Broker(random.Random(0), size=40, existing=1.0)
    held = broker.held

    def drop(_: str) -> None:
        held.leaving = True
        broker.intake.end(held)

    monkeypatch.setattr(broker.owner, "fail", drop)
    broker.source.end = 40
    broker.pack(30, 40)
    broker.read_frames()
    broker.state.full = True
    # The source begins and ends below the counted offsets: the topic was created again.
    assert held.session is not None
    held.session.give(Outside(0, 0))
    broker.take_all()
    assert broker.source.at is not None
    broker.state.full = False
    broker.look()
    broker.take_all()
    broker.look()
    assert (broker.source.at, broker.packed.at) == (None, None)
