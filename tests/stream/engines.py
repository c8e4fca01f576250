"""An engine without a broker: a reader that reads nothing, and a sender that calls back."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import faust
import numpy as np
from aiokafka import TopicPartition

from ldpstream.agents.broker.identity import TopicIdentity
from ldpstream.agents.broker.producer import LastingProducer
from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.engine.engine import Engine
from ldpstream.agents.engine.flushing import Services
from ldpstream.agents.engine.metrics import Metrics
from ldpstream.agents.engine.patches.consumer_group import FaustGroup
from ldpstream.agents.engine.source import Answers, Batch, Outside, Session, SourceReader
from ldpstream.agents.state.context import Context, WindowTotals
from tests.stream.owning import Times
from tests.stream.serving import read_city
from tests.stream.simulation.intake import BatchList

STEP = 3


class Resting:
    """A reader that reads nothing."""

    def __init__(self) -> None:
        self.room = asyncio.Event()

    def begin(
        self, partition: TopicPartition, offset: int, call: Callable[[Session], None]
    ) -> Session:
        reader = cast("SourceReader", self)
        return Session(reader, partition, call, Answers(None, 0, offset))

    def end(self, session: Session) -> None: ...


class Sender:
    """A producer that hands every batch to a callback."""

    def __init__(self, take: Callable[[int, Sequence[tuple[bytes, bytes | None]]], None]) -> None:
        self._take = take

    async def send_whole(
        self, topic: str, partition: int, records: Sequence[tuple[bytes, bytes | None]]
    ) -> bool:
        self._take(partition, records)
        return True


@dataclass(frozen=True)
class Same:
    """Topics that never change, on a broker without topic ids."""

    sources: int

    def topic_id(self, _: str) -> bytes:
        return b""

    def partitions(self, _: str) -> int:
        return self.sources

    async def check(self, _: Sequence[str], *, then: str) -> None: ...


def make_engine(
    take: Callable[[int, Sequence[tuple[bytes, bytes | None]]], None] = lambda *_: None,
    *,
    make_final: Callable[[WindowTotals], bytes] = lambda _: b"",
    collection: CollectionConfig | None = None,
    accepted: bool = False,
    source: int = 0,
    read: Sequence[tuple[bytes, bytes]] = (),
) -> Engine:
    """Return an engine of `collection`, or of one with two partitions, whose replicas are read.

    It makes `STEP` finals at a time. `source` is the number of source partitions, where it differs
    from the collection's; `read` are the records of each changelog.
    """
    collection = read_city() if collection is None else collection
    partitions = source or collection.partitions
    reader = cast("SourceReader", Resting())
    engine = Engine(
        collection,
        Context(
            spec=collection.spec,
            window=collection.window,
            make_final=make_final,
            finals_a_step=STEP,
            accept=tuple(one.spec for one in collection.accept),
            accepted=accepted,
        ),
        reader,
        BatchList(),
        Services(
            producer=cast("LastingProducer", Sender(take)),
            identity=cast("TopicIdentity", Same(partitions)),
            metrics=Metrics(),
            clock=Times(lambda: 3_600_000),
        ),
    )
    for replica in engine.replicas:
        log = [(offset, *record) for offset, record in enumerate(read)]
        replica.read(log, position=len(log), end=len(log))
    return engine


def begun(engine: Engine) -> Engine:
    """Return an engine that owns partition 0 and has begun to read it."""
    engine.assign([0])
    engine.tick()
    return engine


def take(engine: Engine, partition: int, times_ms: Sequence[int]) -> None:
    """Hand a partition its first message, with a report at each of these times."""
    reports = np.zeros(len(times_ms), dtype=np.int64)
    value = engine.config.spec.frame_reports(reports, times_ms=np.array(times_ms))
    hand(
        engine, partition, Batch(partition=partition, start=0, stop=1, end=1, records=[(0, value)])
    )


def hand(engine: Engine, partition: int, item: Batch | Outside) -> None:
    """Hand the intake something that was read from a partition."""
    held = engine._loaded[partition]
    held.session.waiting.append(item)
    engine.intake._take_first(held, held.session)


def make_group(
    consumer: object, call_thread: Callable[..., Any], *, app: Any = None, **thread: object
) -> FaustGroup:
    """Return the group of an app whose consumer's thread is called by a function."""
    own = SimpleNamespace(_consumer=consumer, call_thread=call_thread, **thread)
    app = app or SimpleNamespace()
    app.consumer = SimpleNamespace(_thread=own)
    return FaustGroup(cast("faust.App", app))
