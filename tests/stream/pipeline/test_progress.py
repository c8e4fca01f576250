"""What the group is told, which does not always take it."""

from collections.abc import Mapping

from aiokafka import TopicPartition

from ldpstream.agents.pipeline.rounds import Progress
from ldpstream.agents.state.records import Head
from tests.stream.engines import make_engine


class Group:
    """Takes commits, or does not."""

    def __init__(self) -> None:
        self.takes = True
        self.offsets: dict[TopicPartition, int] = {}

    async def commit(self, offsets: Mapping[TopicPartition, int]) -> bool:
        if self.takes:
            self.offsets |= offsets
        return self.takes

    def silence(self, partitions: object) -> None: ...


async def test_what_could_not_be_committed_is_committed_later() -> None:
    """Nothing may be won there for long: until then the group would seem to lag."""
    stream, engine = Group(), make_engine()
    progress = Progress(stream, [engine])
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


async def test_what_the_owner_before_could_not_commit_is_committed_by_the_next() -> None:
    """Nothing may come for long: until then the group would seem to lag."""
    stream, engine = Group(), make_engine()
    progress = Progress(stream, [engine])
    engine.replicas[0].head, engine.replicas[1].head = Head(next=5), None
    await progress.commit()
    assert stream.offsets == {}
    # One of another collection, and one of which nothing is known yet.
    at = TopicPartition("city.reports", 0)
    progress.assigned = frozenset({at, at._replace(partition=1), at._replace(topic="others")})
    await progress.commit()
    assert stream.offsets == {at: 5}
