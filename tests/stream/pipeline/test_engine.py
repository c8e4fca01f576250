"""An engine by itself: what it logs, shares and waits for, and what stops as services fail."""

import asyncio
import time
import tomllib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from ldpstream.agents.broker.identity import SourceChangedError
from ldpstream.agents.config import CollectionConfig, read_config
from ldpstream.agents.engine.contexts import finals_a_step
from ldpstream.agents.engine.flushing import FlushPace
from ldpstream.agents.engine.periodic_tasks import keep_checking_topics, keep_ticking
from ldpstream.agents.engine.source import Batch, Outside
from ldpstream.agents.engine.waits import Wait
from ldpstream.agents.state.close_orders import MOST_ORDERS, Control
from ldpstream.agents.state.context import WindowTotals
from ldpstream.agents.state.encoding import encode_head, encode_key, state_prefix
from ldpstream.agents.state.records import HEAD, Head, Key
from tests.pages import shown_alone
from tests.processes import eventually
from tests.stream.engines import STEP, Same, begun, hand, make_engine, take

OLD = """[collection.city]
mechanism = "block-hadamard"
epsilon = 1.0
domain = { size = 12 }
"""
WINDOWS = 40


async def test_added_partitions_are_logged_as_docs_changes_md_shows(
    caplog: pytest.LogCaptureFixture,
) -> None:
    engine = begun(make_engine(source=4))
    engine.tick()
    shown = shown_alone("docs/how-to/change-spec.md", "More partitions").output.strip()
    assert caplog.messages == [shown.replace("trips", "city")]


async def test_partitions_that_cannot_be_loaded_yet_are_not_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[int] = []
    engine = make_engine()
    monkeypatch.setattr(engine._loader, "load", tried.append)
    engine.assign([0, 1])
    engine.tick()
    # The head of partition 0 does not include the other one.
    assert tried == [0]
    engine.replicas[0].head = None
    engine.tick()
    engine.replicas[0].head = Head(partitions=2)
    engine.tick()
    assert tried == [0, 0, 1]


async def test_giving_up_partitions_does_not_wait_for_an_endless_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only messages that came before the revocation are flushed, for there are always more."""
    log: list[tuple[int, bytes, bytes | None]] = []
    heads: list[int] = []

    def flow() -> None:
        at = engine.first.next
        value = engine.config.spec.frame_reports(np.array([0]), times_ms=np.array([0]))
        hand(
            engine, 0, Batch(partition=0, start=at, stop=at + 1, end=at + 1, records=[(at, value)])
        )

    def send(partition: int, records: Sequence[tuple[bytes, bytes | None]]) -> None:
        before = len(log)
        log.extend((before + number, *record) for number, record in enumerate(records))
        engine.replicas[partition].read(log[before:], position=len(log), end=len(log))
        engine.replica_read(partition)
        head = engine.replicas[0].head
        heads.append(head.next)
        flow()

    monkeypatch.setattr("ldpstream.agents.engine.engine.REVOKE_SECONDS", 3_600)
    engine = begun(make_engine(send))
    flow()
    # A flush is in flight, and more has come since it began.
    engine.tick()
    flow()
    came = engine.first.next
    async with asyncio.timeout(30):
        await engine.revoke()
    assert not engine.loaded_partitions
    assert heads[-1] >= came == 2
    assert len(heads) <= 3


async def test_other_tasks_run_while_many_windows_are_decided(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logs: dict[int, list[tuple[int, bytes, bytes | None]]] = {0: [], 1: []}
    made = 0

    def send(partition: int, records: Sequence[tuple[bytes, bytes | None]]) -> None:
        log, before = logs[partition], len(logs[partition])
        log += [(before + number, *record) for number, record in enumerate(records)]
        engine.replicas[partition].read(log[before:], position=len(log), end=len(log))
        engine.replica_read(partition)

    def make_final(_: WindowTotals) -> bytes:
        nonlocal made
        made += 1
        return b""

    engine = make_engine(send, make_final=make_final)
    monkeypatch.setattr("ldpstream.agents.engine.flushing.FLUSH_SECONDS", 0.0)
    engine.assign([0, 1])

    def loaded() -> bool:
        engine.tick()
        return engine.loaded_partitions == {0, 1}

    await eventually(loaded)
    size_ms = engine.config.window.size_ms
    for partition in (0, 1):
        take(engine, partition, [window * size_ms for window in range(WINDOWS + 9)])
    engine.tick()
    first = engine.first
    assert first is not None
    await eventually(lambda: all(replica.head and replica.head.n for replica in engine.replicas))
    assert made == 0
    # The clock makes nothing due: ticks continue only because there are more windows to decide.
    monkeypatch.setattr("ldpstream.agents.engine.periodic_tasks.TICK_SECONDS", 3_600)
    running = asyncio.create_task(keep_ticking([engine], FlushPace()))
    seen = [0]
    while seen[-1] < WINDOWS and len(seen) < 1_000:
        await asyncio.sleep(0)
        seen.append(made)
    running.cancel()
    assert seen[-1] >= WINDOWS
    assert max(after - before for before, after in pairwise(seen)) <= STEP


def test_orders_that_all_partitions_include_are_forgotten() -> None:
    engine = make_engine()
    for hour in range(100):
        until_ms = hour * 3_600_000
        engine.apply_control(Control(until_ms, {0: hour, 1: 0}))
        for replica in engine.replicas:
            replica.head = Head(next=hour, clock=until_ms + engine.config.window.grace_ms)
        assert len(engine._controls) == 1
    engine.replicas[1].head = Head()
    engine.apply_control(Control(0, {}))
    assert len(engine._controls) == 2


def city_and_before(tmp_path: Path, *, accept: bool) -> CollectionConfig:
    """Return a collection whose spec was OLD before, which it may `accept`."""
    (tmp_path / "old.toml").write_text(OLD)
    old = tomllib.loads(OLD)["collection"]["city"]
    changed = {**old, "epsilon": 2.0} | ({"accept": ["old.toml"]} if accept else {})
    config = read_config({"collection": {"city": changed}}, base=tmp_path, environment={})
    return config.collections["city"]


async def test_a_spec_that_was_changed_without_accept_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ldpstream.agents.engine.engine.REVOKE_SECONDS", 0.0)
    was = city_and_before(tmp_path, accept=True).accept[0]
    before = make_engine(collection=was)
    key = Key(HEAD, 7, 1)
    head = encode_key(state_prefix(before.context), key), encode_head(Head(epoch=7, seq=1))
    for accept in (True, False):
        engine = make_engine(collection=city_and_before(tmp_path, accept=accept), read=[head])
        engine.assign([0, 1])
        for _ in range(3):
            engine.tick()
        engine.replicas[0].head = Head(partitions=2)
        engine.tick()
        assert engine.loaded_partitions == {0, 1}
        assert len(caplog.messages) == (not accept)
        await engine.revoke()
    (said,) = caplog.messages
    assert said.startswith(
        "collection city: its changelog also holds the state of another spec, "
        f"{was.spec.fingerprint.hex()}: "
    )
    assert "collection.city.accept" in said


def test_the_larger_the_domain_the_fewer_finals_are_made_at_once() -> None:
    steps = [finals_a_step(1 << power) for power in range(24)]
    assert steps[0] == 128
    assert steps == sorted(steps, reverse=True)
    assert all(step == 1 or step << power <= 1 << 18 for power, step in enumerate(steps))
    assert steps[-1] == 1


def test_an_accepted_spec_that_stops_before_it_hands_over_is_shown_as_a_problem(
    tmp_path: Path,
) -> None:
    collection = city_and_before(tmp_path, accept=True)
    own = make_engine(collection=collection)
    accepted = make_engine(collection=collection.accept[0], accepted=True)
    own.accept([accepted])
    for engine in (own, accepted):
        engine.assign([0, 1])
    accepted.fail("its state cannot be used")
    own.tick()
    assert not own.loaded_partitions
    assert own.problems == (f"it waits for {accepted.title} to hand over, which has stopped",)
    # The collection itself is waiting, and has not stopped.
    assert not own.stopped
    own.assign([])
    assert own.problems == ()


async def test_orders_that_never_apply_are_bounded_and_block_no_others() -> None:
    engine = begun(make_engine())
    for number in range(1_000):
        engine.apply_control(
            Control(number, {0: 1 << 62, 1: 1 << 62} | dict.fromkeys(range(2, 50), 0))
        )
    engine.apply_control(Control(120_000, {0: 0}))
    assert len(engine._controls) == MOST_ORDERS
    # Ends of partitions that the collection does not have are dropped.
    assert engine._controls[0] == Control(1_000 - MOST_ORDERS + 1, {0: 1 << 62, 1: 1 << 62})
    engine.tick()
    assert engine.first.work.clock >= 120_000


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
