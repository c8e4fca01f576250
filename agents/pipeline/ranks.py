"""Group the engines of a configuration into ranks that share readers.

States that share a source and a changelog have read them up to different offsets. So a collection's
own engine and those of the specs that it accepts each need their own readers, while engines of
different collections can share them. The first rank has every collection's own engine; each further
rank has at most one accepted spec of every collection.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from aiokafka import TopicPartition

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.pipeline.contexts import make_context
from ldpstream.agents.pipeline.engine import Engine
from ldpstream.agents.pipeline.services import Services
from ldpstream.agents.reading.intake import Channel
from ldpstream.agents.reading.source import Batch, Outside, SourceReader
from ldpstream.agents.served.health import note_error


@dataclass(frozen=True)
class Rank:
    """Engines of different collections, sharing readers of their sources and changelogs."""

    reader: SourceReader
    engines: tuple[Engine, ...]


def make_ranks(
    collections: Sequence[CollectionConfig],
    frames: SourceReader,
    channels: Mapping[str, Channel],
    services: Services,
) -> list[Rank]:
    """Return the engines of all collections.

    `frames` reads all frames topics. What is read of a collection goes through its channel, by
    name, as `(take, partition, item)`; the receiver must call `take(partition, item)`.
    """
    ranks = [_rank(collections, frames, channels, services, accepted=False)]
    own = {engine.config.name: engine for engine in ranks[0].engines}
    for place in range(max(len(c.accept) for c in collections)):
        having = [c.accept[place] for c in collections if c.accept[place:]]
        ranks.append(_rank(having, frames, channels, services, accepted=True))
        for engine in ranks[-1].engines:
            over = own[engine.config.name]
            over.accept((*over.accepted, engine))
    return ranks


def topic_partitions(topic: str, collection: CollectionConfig) -> list[TopicPartition]:
    """Return the partitions of one of a collection's topics."""
    return [TopicPartition(topic, partition) for partition in range(collection.partitions)]


def _rank(
    collections: Iterable[CollectionConfig],
    frames: SourceReader,
    channels: Mapping[str, Channel],
    services: Services,
    *,
    accepted: bool,
) -> Rank:
    found = list(collections)
    by_source: dict[str, Engine] = {}

    def deliver(partition: TopicPartition, item: Batch | Outside) -> None:
        engine = by_source[partition.topic]
        channels[engine.config.name].offer((engine.intake.take, partition.partition, item))

    partitions = [p for c in found for p in topic_partitions(c.topics.source, c)]
    reader = SourceReader(partitions, deliver=deliver, on_error=note_error)
    for collection in found:
        by_source[collection.topics.source] = Engine(
            collection,
            make_context(collection, partitions=len(partitions), accepted=accepted),
            reader,
            frames,
            channels[collection.name],
            services,
        )
    return Rank(reader, tuple(by_source.values()))
