"""Collections of a running pipeline, as answers of the HTTP API."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

from ldpstream.agents.broker.shards import Elsewhere
from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.config.names import Names
from ldpstream.agents.config.query.capabilities import disclosed_blocks
from ldpstream.agents.config.query.options import KEYS
from ldpstream.agents.config.tables import PublishedQueries
from ldpstream.agents.document.answers import (
    AcceptedSpec,
    Annotation,
    Attribute,
    Collection,
    CollectionStatus,
    DomainShape,
    PartitionStatus,
    Readiness,
    Windows,
    WindowState,
)
from ldpstream.agents.document.model import Window
from ldpstream.agents.engine.engine import Engine
from ldpstream.agents.engine.isolation import isolate_errors
from ldpstream.agents.engine.pipeline import Pipeline
from ldpstream.agents.state.listing import WindowInfo, open_windows
from ldpstream.agents.state.records import REASONS
from ldpstream.agents.state.replica import Replica
from ldpstream.agents.state.windows import NEVER, WindowSpec
from ldpstream.mechanisms.base.times import EARLIEST_MS, LATEST_MS, format_time
from ldpstream.mechanisms.domains.attributes import Attributes
from ldpstream.mechanisms.domains.queries import Linear, Subset
from ldpstream.mechanisms.exact.entropy import WORD
from ldpstream.mechanisms.wire.spec import CollectionSpec


def describe_collection(collection: Engine | Elsewhere) -> Collection:
    """Return a collection as configured."""
    config = collection.config
    return Collection(
        name=config.name,
        fingerprint=config.spec.fingerprint.hex(),
        mechanism=config.spec.mechanism.id,
        values=config.spec.domain.estimated.size,
        domain=_domain(config.spec),
        privacy=config.privacy,
        topic=config.topics.source,
        precision_ms=config.spec.precision_ms,
        window=_windows(config.window),
        minimum=config.minimum,
        minimum_block=config.minimum_block,
        **{name: _configured(getattr(config.options, name)) for name in KEYS},
        attributes=_attributes(config),
        accepted=[_accepted(accepted) for accepted in collection.accepted],
        ready=_is_ready(collection),
        **_names(config.names),
    )


def _names(names: Names) -> dict[str, Any]:
    fields = asdict(names)
    del fields["events"]
    annotations = [
        Annotation(time=format_time(time_ms), text=text) for time_ms, text in names.annotations
    ]
    return {
        **fields,
        "value_labels": names.value_labels.get(None, {}),
        "geojson": names.geojson is not None,
        "annotations": annotations,
    }


def _is_ready(collection: Engine | Elsewhere) -> bool:
    """Return whether a collection can be queried; False if finding that out fails."""
    with isolate_errors(lambda _: None):
        return collection.ready
    return False


def _attributes(config: CollectionConfig) -> list[Attribute]:
    spec, published = config.spec, PublishedQueries.model_fields
    if not isinstance(spec.domain, Attributes):
        return []
    pairs = zip(spec.attributes.items(), spec.domain.probabilities, strict=True)
    return [
        Attribute(
            name=name,
            mechanism=attribute.mechanism.id,
            probability=probability / WORD,
            values=attribute.domain.estimated.size,
            domain=_domain(attribute),
            value_labels=dict(config.names.value_labels.get(name, {})),
            **{key: _configured(getattr(config.options.about(name), key)) for key in published},
        )
        for (name, attribute), probability in pairs
    ]


def _configured(option: Any) -> Any:
    """Return an option as shown in a collection: queries by their names."""
    if not isinstance(option, tuple):
        return option
    return [query.name if isinstance(query, Subset | Linear) else query for query in option]


def _accepted(collection: Engine | Elsewhere) -> AcceptedSpec:
    config = collection.config
    return AcceptedSpec(
        fingerprint=config.spec.fingerprint.hex(),
        mechanism=config.spec.mechanism.id,
        values=config.spec.domain.estimated.size,
        precision_ms=config.spec.precision_ms,
        window=_windows(config.window),
        ready=_is_ready(collection),
    )


def _windows(window: WindowSpec) -> Windows:
    return Windows(
        size_ms=window.size_ms,
        hop_ms=window.hop_ms,
        grace_ms=window.grace_ms,
        idle_ms=window.idle_ms,
        pane_ms=window.pane_ms,
        size=window.identity.label,
        timezone=window.identity.timezone or "UTC",
        week_start=window.identity.week_start,
    )


def _domain(spec: CollectionSpec) -> DomainShape:
    domain, blocks = spec.domain.estimated, disclosed_blocks(spec)
    return DomainShape(
        kind=domain.kind,
        shape=list(domain.shape),
        ordered=domain.ordered,
        intervals=[[axis.low, axis.high] for axis in domain.axes] or None,
        rounded=domain.rounded,
        blocks=0 if blocks is None or blocks.count < 2 else blocks.count,
    )


def describe_window(window: WindowSpec, info: WindowInfo) -> WindowState:
    """Return one window of a collection as an answer."""
    start, end = map(window.format_time, (info.start_ms, info.end_ms))
    return WindowState(
        window=Window(start=start, end=end),
        n=info.n,
        late=info.late,
        final=info.final,
        published=info.published,
    )


def describe_status(collection: Engine) -> CollectionStatus:
    """Return a collection's progress, from the winning heads of all partitions."""
    partitions = [_partition(collection, replica) for replica in collection.replicas]
    return CollectionStatus(
        collection=collection.config.name,
        fingerprint=collection.config.spec.fingerprint.hex(),
        ready=collection.ready,
        stopped=collection.stopped,
        problems=[*collection.problems, *collection.notices],
        open_windows=open_windows(collection.context, collection.replicas),
        counted=sum(partition.counted for partition in partitions),
        late=sum(partition.late for partition in partitions),
        rejected=sum(sum(partition.rejected.values()) for partition in partitions),
        lost_offsets=sum(partition.lost_offsets for partition in partitions),
        size=collection.config.window.identity.label,
        other_sizes=sorted(
            {windows.label for r in collection.replicas for windows in r.others.windows()}
        ),
        partitions=partitions,
    )


def describe_readiness(
    pipeline: Pipeline, elsewhere: Mapping[str, Elsewhere] = MappingProxyType({})
) -> Readiness:
    """Return whether every collection can be queried, and what is missing or waited for.

    A worker whose windows wait counts and answers: it is ready, and a restart would not help.
    Collections of other shards, `elsewhere`, are listed if missing, but do not make this worker
    unready: it must not be restarted because another one is down.
    """
    watch = pipeline.broker_watch
    reasons = [watch.problem] if watch.silent else []
    for name, collection in pipeline.collections.items():
        for title, state in _states(name, collection):
            reasons += _reasons(title, state)
    waits = [
        f"{title}: {wait}"
        for name, collection in pipeline.collections.items()
        for title, state in _states(name, collection)
        for wait in (*state.notices, *state.waits)
    ]
    missing = [other.problem for other in elsewhere.values() if not other.ready]
    return Readiness(ready=not reasons, reasons=reasons + missing, waits=waits)


def _states(name: str, collection: Engine) -> Iterator[tuple[str, Engine]]:
    """Yield a collection and the specs that it accepts, each with its name in messages."""
    yield name, collection
    for accepted in collection.accepted:
        yield f"{name} ({accepted.config.spec.fingerprint.hex()})", accepted


def _reasons(name: str, collection: Engine) -> list[str]:
    """Return why a collection is not ready; an error while finding that out is a reason, too."""
    reasons: list[str] = []
    with isolate_errors(lambda why: reasons.append(f"{name}: {why}")):
        subject = f"{name} has stopped" if collection.stopped else name
        reasons += [f"{subject}: {problem}" for problem in collection.problems]
        if not collection.ready and not collection.problems:
            reasons.append(f"{name}: {_unread(collection.replicas)}")
    return reasons


def _unread(replicas: Sequence[Replica]) -> str:
    waiting = [str(partition) for partition, replica in enumerate(replicas) if replica.head is None]
    if not waiting:
        return "the worker is starting"
    return f"the state of partitions {', '.join(waiting)} has not been read to its end yet"


def _time(clock_ms: int) -> str:
    """Return a watermark as text; an order to close may have moved it past the year 9999."""
    return format_time(min(max(clock_ms, EARLIEST_MS), LATEST_MS))


def _partition(collection: Engine, replica: Replica) -> PartitionStatus:
    head = replica.head
    owned = replica.partition in collection.owned
    # Only the owner follows a partition's end offset.
    end = collection.end_offsets.get(replica.partition) if owned else None
    wait = next(
        (candidate for candidate in collection.waits if candidate.partition == replica.partition),
        None,
    )
    return PartitionStatus(
        partition=replica.partition,
        owned=owned,
        next=None if head is None else head.next,
        end_offset=end,
        lag=None if head is None or end is None else max(0, end - head.next),
        watermark=None if head is None or head.clock == NEVER else _time(head.clock),
        idle=head is not None and head.idle,
        counted=0 if head is None else head.n,
        late=0 if head is None else head.late,
        rejected={
            reason: head.rejected[reason]
            for reason in REASONS
            if head is not None and head.rejected.get(reason)
        },
        lost_offsets=0 if head is None else head.lost,
        wait=None if wait is None else wait.reason,
        wait_seconds=0.0 if wait is None else wait.seconds,
    )
