"""Collections of a running pipeline, described as the HTTP API answers them."""

from collections.abc import Sequence

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.http.answers import (
    Collection,
    CollectionStatus,
    PartitionStatus,
    Readiness,
    Span,
    Windows,
    WindowState,
)
from ldpstream.agents.records import REASONS
from ldpstream.agents.served import ServedCollection, ServedPipeline
from ldpstream.agents.tail import Tail
from ldpstream.agents.view import WindowInfo
from ldpstream.agents.windows import NEVER
from ldpstream.mechanisms.times import format_time


def describe_collection(served: ServedCollection) -> Collection:
    """Return a collection as configured."""
    config: CollectionConfig = served.config
    window = config.window
    return Collection(
        name=config.name,
        fingerprint=config.spec.fingerprint.hex(),
        mechanism=config.spec.mechanism.id,
        values=config.spec.domain.estimated.size,
        topic=config.topics.source,
        precision_ms=config.spec.precision_ms,
        window=Windows(
            size_ms=window.size_ms,
            hop_ms=window.hop_ms,
            grace_ms=window.grace_ms,
            pane_ms=window.pane_ms,
        ),
        minimum=config.minimum,
        confidence=config.confidence,
        estimand=config.estimand,
        method=config.method,
        sharpest=config.sharpest,
        top=config.publish.top,
        quantiles=list(config.publish.quantiles),
        ranges=[named.name for named in config.publish.ranges],
        ready=served.ready,
    )


def describe_window(info: WindowInfo) -> WindowState:
    """Return one window of a collection."""
    return WindowState(
        window=Span(start=format_time(info.start_ms), end=format_time(info.end_ms)),
        n=info.n,
        late=info.late,
        final=info.final,
        published=info.published,
    )


def describe_status(served: ServedCollection) -> CollectionStatus:
    """Return how far a collection is, as the winning heads of all partitions tell it."""
    partitions = [_partition(served, tail) for tail in served.tails]
    return CollectionStatus(
        collection=served.config.name,
        fingerprint=served.config.spec.fingerprint.hex(),
        ready=served.ready,
        problems=list(served.problems),
        counted=sum(one.counted for one in partitions),
        late=sum(one.late for one in partitions),
        rejected=sum(sum(one.rejected.values()) for one in partitions),
        lost_offsets=sum(one.lost_offsets for one in partitions),
        partitions=partitions,
    )


def describe_readiness(pipeline: ServedPipeline) -> Readiness:
    """Return whether every collection can be asked, with what is missing."""
    reasons: list[str] = []
    for name, served in pipeline.collections.items():
        reasons.extend(f"{name}: {problem}" for problem in served.problems)
        if not served.ready and not served.problems:
            reasons.append(f"{name}: {_unread(served.tails)}")
    return Readiness(ready=not reasons, reasons=reasons)


def _unread(tails: Sequence[Tail]) -> str:
    waiting = [str(partition) for partition, tail in enumerate(tails) if tail.head is None]
    if not waiting:
        return "the worker is starting"
    return f"the state of partitions {', '.join(waiting)} has not been read to its end yet"


def _partition(served: ServedCollection, tail: Tail) -> PartitionStatus:
    head = tail.head
    owned = tail.partition in served.owned
    # Only its owner keeps an eye on where a partition ends.
    end = served.end_offsets.get(tail.partition) if owned else None
    return PartitionStatus(
        partition=tail.partition,
        owned=owned,
        next=None if head is None else head.next,
        end_offset=end,
        lag=None if head is None or end is None else max(0, end - head.next),
        watermark=None if head is None or head.clock == NEVER else format_time(head.clock),
        idle=head is not None and head.idle,
        counted=0 if head is None else head.n,
        late=0 if head is None else head.late,
        rejected={
            reason: head.rejected[reason]
            for reason in REASONS
            if head is not None and head.rejected.get(reason)
        },
        lost_offsets=0 if head is None else head.lost,
    )
