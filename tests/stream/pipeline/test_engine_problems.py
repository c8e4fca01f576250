"""An engine whose services fail: what stops, and what is logged."""

import asyncio
import time

import pytest

from ldpstream.agents.broker.identity import SourceChangedError
from ldpstream.agents.engine.flushing import FlushPace
from ldpstream.agents.engine.periodic_tasks import keep_checking_topics, keep_ticking
from ldpstream.agents.engine.source import Batch, Outside
from ldpstream.agents.engine.waits import Wait
from ldpstream.agents.state.encoding import encode_head, encode_key, state_prefix
from ldpstream.agents.state.records import HEAD, Head, Key
from tests.processes import eventually
from tests.stream.engines import Same, begun, hand, make_engine, take


async def changed(*_: object, then: str) -> None:
    raise SourceChangedError("topic city.reports was deleted and created again")


async def test_an_unexpected_error_of_a_flush_stops_the_collection() -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("in a client")

    engine = begun(make_engine(fail))
    take(engine, 0, [0])
    engine.tick()
    await eventually(lambda: engine.problems)
    assert engine.problems == ("internal error: ZeroDivisionError('in a client')",)
    assert not engine.loaded_partitions
    await asyncio.sleep(0)


async def test_a_topic_that_was_created_again_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The reader notices missing offsets, and seconds later a check finds another topic id."""
    monkeypatch.setattr("ldpstream.agents.engine.periodic_tasks._WATCH_SECONDS", 0.0)
    monkeypatch.setattr(Same, "check", changed)
    engine = begun(make_engine())
    watching = asyncio.create_task(keep_checking_topics([engine]))
    await asyncio.sleep(0)
    hand(engine, 0, Outside(1, 0))
    for _ in range(9):
        await asyncio.sleep(0)
    watching.cancel()
    (problem,) = engine.problems
    assert problem.startswith("topic city.reports ends before offset ")
    assert caplog.messages == [f"collection city stops: {problem}"]


@pytest.mark.parametrize("item", [Batch(partition=0, start=0, stop=1, end=1), Outside(0, 0)])
async def test_an_unexpected_error_in_what_was_read_stops_this_collection_alone(
    item: Batch | Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("x" * 10_000)

    engine = begun(make_engine())
    assert engine.loaded_partitions
    monkeypatch.setattr(engine.intake, "_take", fail)
    # The error does not reach the caller, which serves other states as well.
    hand(engine, 0, item)
    (problem,) = engine.problems
    assert problem.startswith("internal error: ZeroDivisionError('xxx")
    assert len(problem) == 1_000
    assert (engine.stopped, engine.loaded_partitions) == (True, frozenset())


async def test_a_noted_problem_is_logged_once_and_stops_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    engine = begun(make_engine())
    for _ in range(2):
        engine.report_problem("orders are not read")
    assert (engine.stopped, engine.ready, engine.loaded_partitions) == (False, True, frozenset({0}))
    assert engine.problems == ("orders are not read",)
    assert caplog.messages == ["collection city: orders are not read"]


async def test_a_state_that_was_counted_from_another_topic_stops_its_collection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Same, "topic_id", lambda *_: bytes(16))
    prefix, head = (
        state_prefix(make_engine().context),
        Head(epoch=7, seq=1, source=b"other topic's id"),
    )
    engine = make_engine(read=[(encode_key(prefix, Key(HEAD, 7, 1)), encode_head(head))])
    engine.assign([0])
    ticking = asyncio.create_task(keep_ticking([engine], FlushPace()))
    await eventually(lambda: engine.problems)
    ticking.cancel()
    (problem,) = engine.problems
    assert problem.startswith("topic city.reports is another one than its state was counted from:")


async def test_a_topic_that_is_created_again_during_a_flush_stops_the_collection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Same, "check", changed)
    engine = begun(make_engine())
    take(engine, 0, [0])
    engine.tick()
    await eventually(lambda: engine.problems)
    assert engine.problems == ("topic city.reports was deleted and created again",)
    assert not engine.loaded_partitions


def test_an_added_partition_that_waits_for_the_owner_of_partition_0_is_no_problem() -> None:
    """A rolling restart goes on as workers are ready, so none may wait for one restarted later."""
    prefix = state_prefix(make_engine().context)
    head = encode_head(Head(epoch=7, seq=1, partitions=1))
    engine = make_engine(read=[(encode_key(prefix, Key(HEAD, 7, 1)), head)])
    engine.assign([1])
    engine.tick()
    assert not engine.settled
    assert engine.problems == ()
    (problem,) = engine.notices
    assert problem.startswith("partition 1 was added, and waits for the owner of partition 0")
    assert problem.endswith("workers with collection.city.partitions = 2")


def test_a_new_state_has_no_problem_before_its_first_head() -> None:
    engine = make_engine()
    engine.assign([1])
    engine.tick()
    assert not engine.settled
    assert (engine.problems, engine.notices) == ((), ())


ADDED = (
    "topic city.reports now has 3 partitions, but collection.city.partitions is 2: partition 2 "
    "waits, and no window closes, until all workers are restarted with 3"
)


async def test_counting_goes_on_in_the_known_partitions_after_others_were_added(
    caplog: pytest.LogCaptureFixture,
) -> None:
    engine = make_engine(source=3)
    engine.assign([0, 1, 2])
    engine.tick()
    assert engine.loaded_partitions == {0}  # The others wait for its first head.
    assert (engine.stopped, engine.problems) == (False, (ADDED,))
    take(engine, 0, [0])
    engine.tick()
    assert caplog.messages == [f"collection city: {ADDED}"]


def test_windows_that_added_partitions_hold_open_wait_for_nothing_else() -> None:
    engine = make_engine()
    engine.assign([0])
    wait = Wait(1, 0, 0.0, "another worker owns it")
    engine._waits.waits = [wait]  # As if it had looked.
    assert engine.waits == [wait]
    engine.assign([0, 2])
    assert engine.waits == ()
    assert engine.problems == (ADDED,)


def test_the_group_shows_added_partitions_before_the_next_look_at_the_topic() -> None:
    engine = make_engine()
    engine.assign([0, 3])
    (problem,) = engine.problems
    assert "now has 4 partitions" in problem
    assert "partitions 2 to 3 wait, and no window closes, until" in problem


def test_a_stopped_accepted_state_is_told_of_where_partitions_were_added() -> None:
    engine, accepted = make_engine(), make_engine(accepted=True)
    engine.accept([accepted])
    accepted.fail("its topic was created again")
    engine.assign([1, 2])
    waits, added = engine.problems
    assert waits.startswith("it waits for city (")
    assert waits.endswith("which has stopped")
    assert "now has 3 partitions" in added


async def test_a_flush_that_the_client_sends_for_ever_is_a_problem_unless_nobody_answers(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An idempotent producer sends again for ever what too few replicas store."""
    engine = begun(make_engine())
    (held,) = engine._loaded.values()
    held.flight = asyncio.create_task(asyncio.Event().wait())
    held.flushed = time.monotonic()
    engine.tick()
    assert engine.problems == ()
    held.flushed -= 60
    watch = engine._services.broker
    watch.silent = True
    engine.tick()
    assert engine.problems == ()
    watch.silent, watch.answers_since = False, time.monotonic()
    engine.tick()
    assert engine.problems == ()
    watch.answers_since = 0.0
    for _ in range(2):
        engine.tick()
        (problem,) = engine.problems
        assert problem.startswith("1 of its partitions, 0 the first, wait for the broker to store")
    assert caplog.messages == [f"collection city: {problem}"]
    held.flushed = time.monotonic()
    engine.tick()
    assert engine.problems == ()
    held.flight.cancel()
