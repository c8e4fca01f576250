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
from ldpstream.agents.pipeline.flushing import Services
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
    ranks, own = list[Rank](), dict[str, Engine]()
    for place in range(1 + max((len(c.accept) for c in collections), default=0)):
        found = [one for c in collections for one in (c, *c.accept)[place : place + 1]]
        sources = topic_partitions({c.topics.source: c for c in found})
        reader, engines = SourceReader(sources), list[Engine]()
        for one in found:
            context = make_context(one, partitions=len(sources), accepted=place > 0)
            engine = Engine(one, context, reader, frames, channels[one.name], services)
            engines.append(engine)
            if (over := own.setdefault(one.name, engine)) is not engine:
                over.accept((*over.accepted, engine))
        ranks.append(Rank(reader, tuple(engines)))
    return ranks


def topic_partitions(topics: Mapping[str, CollectionConfig]) -> list[TopicPartition]:
    """Return all partitions of topics, each with its collection."""
    return [TopicPartition(topic, p) for topic, c in topics.items() for p in range(c.partitions)]
