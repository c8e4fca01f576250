"""Group the engines of a configuration into ranks that share readers.

States that share a source and a changelog have read them up to different offsets. So a collection's
own engine and those of the specs that it accepts each need their own readers, while engines of
different collections can share them. The first rank has every collection's own engine; each further
rank has at most one accepted spec of every collection.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aiokafka import TopicPartition

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.pipeline.contexts import make_context
from ldpstream.agents.pipeline.engine import Engine
from ldpstream.agents.pipeline.services import Services
from ldpstream.agents.reading.intake import Channel
from ldpstream.agents.reading.source import SourceReader


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
    name.
    """

    def make_rank(found: Sequence[CollectionConfig], *, accepted: bool) -> Rank:
        sources = topic_partitions({c.topics.source: c for c in found})
        reader, engines = SourceReader(sources), list[Engine]()
        for one in found:
            context = make_context(one, partitions=len(sources), accepted=accepted)
            engines.append(Engine(one, context, reader, frames, channels[one.name], services))
        return Rank(reader, tuple(engines))

    ranks = [make_rank(collections, accepted=False)]
    own = {engine.config.name: engine for engine in ranks[0].engines}
    for place in range(max((len(c.accept) for c in collections), default=0)):
        having = [c.accept[place] for c in collections if c.accept[place:]]
        ranks.append(make_rank(having, accepted=True))
        for engine in ranks[-1].engines:
            over = own[engine.config.name]
            over.accept((*over.accepted, engine))
    return ranks


def topic_partitions(topics: Mapping[str, CollectionConfig]) -> list[TopicPartition]:
    """Return all partitions of topics, each with its collection."""
    return [TopicPartition(topic, p) for topic, c in topics.items() for p in range(c.partitions)]
