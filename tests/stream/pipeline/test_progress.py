"""What the group is told, which does not always take it."""

from collections.abc import Mapping

from aiokafka import TopicPartition

from ldpstream.agents.pipeline.services import Progress


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
    stream = Group()
    progress = Progress(stream)
    sources = [TopicPartition("city.reports", partition) for partition in range(3)]

    stream.takes = False
    for partition in range(3):
        progress.won(sources[partition], 5)
    await progress.commit()
    progress.won(sources[1], 6)
    # The others commit what they have counted themselves.
    progress.assigned({*sources[:2]})
    stream.takes = True
    await progress.commit()
    assert stream.offsets == {sources[0]: 5, sources[1]: 6}
    stream.offsets.clear()
    await progress.commit()
    assert stream.offsets == {}
