"""Offsets that are committed to the group, which may refuse them."""

import asyncio
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, cast

import faust
import pytest
from aiokafka import TopicPartition
from aiokafka.structs import OffsetAndMetadata

from ldpstream.agents.engine.isolation import isolate_errors
from ldpstream.agents.engine.patches.consumer_group import FaustGroup
from ldpstream.agents.engine.periodic_tasks import OffsetCommitter
from ldpstream.agents.state.encoding import encode_head, encode_key, state_prefix
from ldpstream.agents.state.records import HEAD, Head, Key
from tests.stream.engines import Same, make_engine


class Group:
    """Accepts commits, or refuses them."""

    def __init__(self) -> None:
        self.takes = True
        self.offsets: dict[TopicPartition, int] = {}

    async def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> bool:
        if self.takes:
            self.offsets |= {at: commit.offset for at, commit in offsets.items()}
        return self.takes

    def silence(self, partitions: object) -> None: ...


async def test_offsets_that_could_not_be_committed_are_committed_later() -> None:
    """The next flush may be long in coming, and until then the group would seem to lag."""
    stream, engine = Group(), make_engine()
    progress = OffsetCommitter(stream, [engine])
    sources = [TopicPartition("city.reports", partition) for partition in range(2)]
    progress.assigned = frozenset(sources)

    stream.takes = False
    engine.replicas[0].head, engine.replicas[1].head = Head(next=5), Head(next=5)
    await progress.commit()
    engine.replicas[1].head = Head(next=6)
    stream.takes = True
    await progress.commit()
    assert stream.offsets == {sources[0]: 5, sources[1]: 6}
    stream.offsets.clear()
    await progress.commit()
    assert stream.offsets == {}


async def test_an_internal_error_of_one_collection_does_not_keep_others_from_committing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream, odd, well = Group(), make_engine(), make_engine()
    monkeypatch.setattr(odd, "replicas", None)
    progress = OffsetCommitter(stream, [odd, well])
    well.replicas[0].head = Head(next=5)
    at = TopicPartition("city.reports", 0)
    progress.assigned = frozenset({at})
    await progress.commit()
    assert stream.offsets == {at: 5}
    assert (odd.stopped, well.stopped) == (True, False)


async def test_offsets_that_an_owner_could_not_commit_are_committed_by_the_next() -> None:
    """The next message may be long in coming, and until then the group would seem to lag."""
    stream, engine = Group(), make_engine()
    progress = OffsetCommitter(stream, [engine])
    engine.replicas[0].head, engine.replicas[1].head = Head(next=5), None
    # The second partition belongs to another collection.
    at = TopicPartition("city.reports", 0)
    progress.assigned = frozenset({at, at._replace(topic="others")})
    await progress.commit()
    assert stream.offsets == {}
    engine.replicas[1].head = Head(next=6)
    await progress.commit()
    assert stream.offsets == {at: 5}


async def test_offsets_of_another_topic_of_this_name_are_not_committed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The group would seem to have read offsets that the new topic does not have yet."""
    monkeypatch.setattr(Same, "topic_id", lambda *_: bytes(16))
    key = encode_key(state_prefix(make_engine().context), Key(HEAD, 7, 1))
    head = Head(epoch=7, seq=1, next=1_000, source=b"other topic's id")
    stream, engine = Group(), make_engine(read=[(key, encode_head(head))])
    progress = OffsetCommitter(stream, [engine])
    progress.assigned = frozenset({TopicPartition("city.reports", 0)})
    engine.assign([0])
    await progress.commit()
    with isolate_errors(engine.fail):
        engine.tick()
    assert engine.stopped
    await progress.commit()
    await engine.revoke()
    await progress.commit()
    assert stream.offsets == {}


def make_group(consumer: object, call_thread: Callable[..., Any]) -> FaustGroup:
    own = SimpleNamespace(_thread=SimpleNamespace(_consumer=consumer, call_thread=call_thread))
    return FaustGroup(cast("faust.App", SimpleNamespace(consumer=own)))


async def test_a_partition_that_the_client_has_lost_is_committed_later() -> None:
    """The client loses it before the worker knows, and may be given it again."""
    kept, lost = (TopicPartition("city.reports", partition) for partition in range(2))
    assigned, committed = {kept, lost}, dict[TopicPartition, int]()

    async def commit(offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        committed.update({at: commit.offset for at, commit in offsets.items()})

    async def call_thread(function: Callable[..., Any], *arguments: Any) -> Any:
        return await function(*arguments)

    coordinator = SimpleNamespace(_rejoin_needed_fut=asyncio.Future())
    consumer = SimpleNamespace(assignment=lambda: assigned, commit=commit, _coordinator=coordinator)
    group = make_group(consumer, call_thread)
    engine = make_engine()
    progress = OffsetCommitter(group, [engine])
    progress.assigned = frozenset({kept, lost})
    engine.replicas[0].head, engine.replicas[1].head = Head(next=5), Head(next=6)
    assigned.remove(lost)
    await progress.commit()
    assigned.add(lost)
    await progress.commit()
    assert committed == {kept: 5, lost: 6}


async def test_a_task_ends_that_is_cancelled_as_the_client_answers() -> None:
    """A pipeline that stops waits for it."""
    answer = asyncio.get_running_loop().create_future()

    async def call_thread(*_: object) -> object:
        return await answer

    async def ask_again() -> None:
        while True:
            await group.refusal()
            await asyncio.sleep(0)

    group = make_group(object(), call_thread)
    asking = asyncio.create_task(ask_again())
    await asyncio.sleep(0.01)
    answer.set_result(None)
    # Of a task of its own for the call, the end is known only in the next step.
    for _ in range(2):
        asking.cancel()
        await asyncio.wait([asking], timeout=0)
    await asyncio.wait([asking], timeout=5)
    assert asking.cancelled()
