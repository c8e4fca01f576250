"""One collection as configured, with all defaults filled in, and the names of its topics."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from pydantic import BaseModel

from ldpstream.agents.config.errors import ConfigError, Problems, key_path, shown
from ldpstream.agents.config.names import Names, read_names
from ldpstream.agents.config.privacy.factors import nominal_warning
from ldpstream.agents.config.privacy.over_time import SpreadConfig, limit_of, losses_over_time
from ldpstream.agents.config.privacy.statement import (
    Central,
    Privacy,
    central,
    hold_sentence,
    minimum_sentence,
    privacy_statement,
    words_sentence,
)
from ldpstream.agents.config.query.capabilities import (
    check_support,
    default_projection,
    disclosed_blocks,
)
from ldpstream.agents.config.query.options import KEYS, TOP_LIMIT, EstimateOptions
from ldpstream.agents.config.tables import AttributeTable, CollectionTable, PublishTable
from ldpstream.agents.config.windows import check_devices, read_spread, window_spec
from ldpstream.agents.state.disclosure_groups import blocks_of_reports
from ldpstream.agents.state.windows import WindowSpec
from ldpstream.mechanisms.base.checks import guess
from ldpstream.mechanisms.base.errors import QueryError, SpecError
from ldpstream.mechanisms.base.texts import canonical_text
from ldpstream.mechanisms.domains.queries import Subset, ValueSet, make_set
from ldpstream.mechanisms.registry.registry import check_id
from ldpstream.mechanisms.wire.spec import CollectionSpec

_QUANTILE_LIMIT: Final = 4_096

RejectedPolicy = Literal["copy", "count"]


@dataclass(frozen=True, kw_only=True)
class Topics:
    """The topics of one collection.

    Only `source` is written by devices; worker and operator write the others.
    """

    source: str
    late: str
    """Copies of reports that arrived after their pane had closed, as frames."""
    rejected: str
    """Copies of messages that could not be counted, with the reason in the headers."""
    estimates: str
    """Estimate documents, provisional and final, with different keys."""
    control: str
    """Orders to close panes, written by operators, never by devices."""
    changelog: str
    """Commit records and state entries, compacted, partition for partition with the source."""
    rounds: str | None = None
    """The questions of rounds, from `discover` to devices; None without unknown words."""

    @classmethod
    def derive(
        cls,
        source: str,
        *,
        worker_id: str,
        collection: str,
        words: bool = False,
    ) -> "Topics":
        """Return the topics of a collection that reads `source`."""
        return cls(
            source=source,
            late=f"{source}.late",
            rejected=f"{source}.rejected",
            estimates=f"{source}.estimates",
            control=f"{source}.control",
            changelog=f"{worker_id}-{collection}-changelog",
            rounds=f"{source}.rounds" if words else None,
        )

    def names(self) -> tuple[str, ...]:
        """Return all names, the source first."""
        names = (getattr(self, field.name) for field in fields(self))
        return tuple(name for name in names if name is not None)


def check_topics(
    collections: Iterable[tuple[str, Topics]], uses: Mapping[str, str] | None = None
) -> None:
    """Refuse topics that are used twice; `uses` are further topics, and what each is for.

    Names that differ only in dots and underscores count as equal: brokers refuse such pairs,
    whose metrics would collide.
    """
    uses_by_topic = {topic.replace(".", "_"): use for topic, use in (uses or {}).items()}
    for name, topics in collections:
        path = key_path(["collection", name])
        for topic_field in fields(topics):
            topic = getattr(topics, topic_field.name)
            if topic is None:
                continue
            use = f"the {topic_field.name} topic of {path}"
            other = uses_by_topic.setdefault(topic.replace(".", "_"), use)
            if other != use:
                raise ConfigError(
                    f"{path}.topic",
                    f"expected topics of its own, got {shown(topic)} as {use}, "
                    f"which is also {other}",
                )


@dataclass(frozen=True, kw_only=True)
class CollectionConfig:
    """One `[collection.NAME]` table."""

    name: str
    spec: CollectionSpec
    window: WindowSpec
    topics: Topics
    partitions: int
    """Of topics that workers create."""
    retention_ms: int
    """Of topics that workers create."""
    minimum: int
    """With fewer reports a document contains only their number."""
    minimum_block: int
    """Disclosed blocks with fewer reports are merged; 0 or 1: never."""
    rejected: RejectedPolicy
    publish_every_ms: int | None
    """Shortest interval between documents of an open window; None: none are published."""
    options: EstimateOptions
    """What published documents contain."""
    spread: SpreadConfig | None = None
    """How devices spread their budget; None: they may report in every pane."""
    names: Names = field(default_factory=Names)
    """What people call it."""
    accept: tuple["CollectionConfig", ...] = ()
    """Earlier collections of this name on the same topics whose reports are still counted."""

    @cached_property
    def attributes(self) -> Mapping[str, "CollectionConfig"]:
        """For records: by attribute, this collection as if devices reported only that one."""
        return {
            name: replace(self, spec=spec, accept=(), options=self.options.about(name))
            for name, spec in self.spec.attributes.items()
        }

    @cached_property
    def privacy(self) -> Privacy:
        """What the policy means in plain words; cached, because it is slow for a large matrix."""
        statement = privacy_statement(self.spec)
        of_blocks = self.minimum_block if _discloses_blocks(self.spec) else None
        records = bool(self.spec.attributes)
        further: list[str] = []
        if self.spec.words is not None:
            further.append(words_sentence(self.spec, self.spec.words))
        elif self.spec.hold is not None:
            further.append(hold_sentence(self.spec, self.spec.hold, self.window.pane_ms))
        elif self.spread is not None:
            further.append(self.spread.sentence(self.spec))
        if self.minimum > 1:
            further.append(minimum_sentence(self.minimum, of_blocks, attributes=records))
        if self.central is not None:
            further.append(self.central.sentence())
        return statement.model_copy(
            update={
                "protected": [*statement.protected, *further],
                "spent": losses_over_time(self.spec, self.spread, self.window.pane_ms),
                "limit": limit_of(self.spec, self.spread),
            }
        )

    @property
    def publish_every_seconds(self) -> float:
        """`publish_every_ms` in seconds; infinite for never."""
        return math.inf if self.publish_every_ms is None else self.publish_every_ms / 1000

    @property
    def smallest_part(self) -> int:
        """The fewest reports of one disclosed block that any answers differ by; 1: no minimum.

        While open windows are published, two answers may differ by any number of reports.
        """
        if self.publish_every_ms is not None:
            return 1
        blocks = self.spec.mechanism.policy.disclosed_blocks
        several = blocks is not None and blocks.count > 1
        return max(1, self.minimum_block if several else self.minimum)

    @cached_property
    def central(self) -> Central | None:
        """What a report loses in documents; None where that is not known to be less than by itself.

        With `hold`, documents contain several reports of one draw, for which no bound is known.
        """
        if self.smallest_part <= 1 or self.spec.hold is not None:
            return None
        bound = central(self.spec.mechanism, reports=self.smallest_part)
        return bound if bound and any(loss.bound != "report" for loss in bound.losses) else None


def nominal_warnings(collections: Iterable[CollectionConfig]) -> Iterator[str]:
    """Yield a warning for each collection, and each spec it accepts, that protects in name only."""
    for collection in collections:
        for accepted in (collection, *collection.accept):
            if warning := nominal_warning(accepted.name, accepted.spec.mechanism.policy):
                yield warning


def read_collection(
    name: str,
    table: CollectionTable,
    raw: Mapping[str, object],
    *,
    base: Path,
    worker_id: str,
) -> CollectionConfig:
    """Return a collection from its validated table, and the same table as parsed from TOML."""
    path = key_path(["collection", name])
    problems = Problems()
    with problems.collect():
        spec = read_spec(name, raw, base=base)
    with problems.collect():
        window = window_spec(path, table)
    problems.check()
    if table.publish.every is None and table.minimum <= 1:
        raise ConfigError(
            f"{path}.publish.every",
            'expected a duration, or minimum of at least 2, got "off": with minimum '
            f"{table.minimum} anybody may query open panes at any moment",
        )
    _check_minimum_block(f"{path}.minimum_block", table, spec)
    check_devices(path, window, spec, spread=table.spread is not None)
    if spec.words is not None and (window.hop_ms != window.size_ms or table.spread is not None):
        raise ConfigError(
            f"{path}.domain.words",
            "expected windows that do not overlap, one per round, and no spread: a device itself "
            "chooses the round in which it takes part",
        )
    # Before the options: published ranges may have the names of blocks.
    names = read_names(path, table, spec, base=base)
    return CollectionConfig(
        name=name,
        spec=spec,
        window=window,
        topics=Topics.derive(
            spec.topic, worker_id=worker_id, collection=name, words=spec.words is not None
        ),
        partitions=table.partitions,
        retention_ms=table.retention,
        minimum=table.minimum,
        minimum_block=table.minimum_block,
        rejected=table.rejected,
        publish_every_ms=table.publish.every,
        options=_options(path, table, spec),
        spread=read_spread(f"{path}.spread", table.spread, window, spec),
        names=names,
    )


def read_spec(name: str, raw: Mapping[str, object], *, base: Path) -> CollectionSpec:
    """Return the spec of the collection's devices, from its table as parsed from TOML."""
    problems = Problems()
    with problems.collect(), _as_config_error():
        check_id(raw.get("mechanism"), key_path(["collection", name]))
    with problems.collect(), _as_config_error():
        spec = CollectionSpec.from_mapping(name, raw, base=base)
    problems.check()
    return spec


def _discloses_blocks(spec: CollectionSpec) -> bool:
    """Return whether reports disclose blocks, of records those about some attribute."""
    return any(
        blocks_of_reports(spec_of_attribute) is not None
        for spec_of_attribute in spec.attributes.values() or (spec,)
    )


def _check_minimum_block(path: str, table: CollectionTable, spec: CollectionSpec) -> None:
    minimum = table.minimum_block
    if minimum <= 1:
        return
    if not _discloses_blocks(spec):
        raise ConfigError(
            path,
            f"expected 0, got {minimum:,}: it is for reports that disclose their value's block and "
            f"nothing else, unlike those of {spec.mechanism.id} over this domain",
        )
    if minimum > table.minimum:
        raise ConfigError(
            path,
            f"expected at most minimum = {table.minimum:,}, got {minimum:,}",
        )


@contextmanager
def _as_config_error() -> Iterator[None]:
    try:
        yield
    except SpecError as error:
        raise ConfigError(error.path, f"expected {error.expected}") from error


def _options(path: str, table: CollectionTable, spec: CollectionSpec) -> EstimateOptions:
    tables: _Tables = [(table, path), (table.publish, f"{path}.publish")]
    options = _resolved(EstimateOptions(project=default_projection(spec)), tables, spec)
    own = {
        name: replace(options, project=default_projection(attribute))
        for name, attribute in spec.attributes.items()
        if table.project is None and default_projection(attribute) != options.project
    }
    for name, written in table.publish.attributes.items():
        where = f"{path}.publish.{key_path(['attributes', name])}"
        if name not in spec.attributes:
            names = ", ".join(spec.attributes) or "none, because values are not records"
            raise ConfigError(where, f"expected {names}{guess(name, spec.attributes)}")
        previous = own.get(name, options)
        own[name] = _resolved(previous, [(written, where)], spec.attributes[name])
    options = replace(options, of_attributes=tuple(own.items()))
    try:
        check_support(options, spec)
    except QueryError as error:
        key = _PUBLISHED_BY.get(error.name)
        keys = [error.name] if key is None else ["publish", key]
        if error.entry is not None:
            in_sets = error.name == "range" and error.entry in table.publish.sets
            keys = ["publish", "sets" if in_sets else keys[-1], error.entry]
        raise ConfigError(f"{path}.{key_path(keys)}", f"expected {error.expected}") from error
    listed = sum(options.about(name).top or 0 for name in spec.attributes)
    if listed > TOP_LIMIT:
        what = f"expected at most {TOP_LIMIT:,} values over all attributes, got {listed:,}"
        raise ConfigError(f"{path}.publish.top", what)
    return options


_PUBLISHED_BY: Final = {
    "top": "top",
    "range": "ranges",
    "quantile": "quantiles",
    "linear": "linear",
}
"""The keys of `publish` for what has these names in requests."""
_Tables = Sequence[tuple[BaseModel, str]]


def _resolved(options: EstimateOptions, tables: _Tables, spec: CollectionSpec) -> EstimateOptions:
    """Return options, replaced where one of some tables, each with its path, has a key for them."""
    resolved: dict[str, Any] = {}
    for name, resolve in KEYS.items():
        # A key that is set to nothing, which only Python can, is not set.
        setters = [
            (table, where)
            for table, where in tables
            if name in table.model_fields_set and getattr(table, name) is not None
        ]
        if not setters:
            continue
        written, where = setters[0]
        if spec.attributes and name in {"ranges", "quantiles", "linear"} and getattr(written, name):
            what = f"expected none for records: set {name} of an attribute in attributes.NAME"
            raise ConfigError(f"{where}.{name}", what)
        try:
            resolved[name] = resolve(getattr(written, name), spec.domain.estimated)
        except QueryError as error:
            keys = [name] if error.entry is None else [name, error.entry]
            raise ConfigError(f"{where}.{key_path(keys)}", f"expected {error.expected}") from error
    for written, where in tables:
        if isinstance(written, PublishTable | AttributeTable) and written.sets:
            ranges = resolved.get("ranges", ())
            resolved["ranges"] = (*ranges, *_sets(written.sets, where, spec, ranges))
    if "top" not in resolved and spec.mechanism.unanswered(None) is not None:
        resolved["top"] = 0
    if resolved.get("quantiles"):
        _check_prefixes(f"{tables[-1][1]}.quantiles", spec)
    if resolved.get("project") == "ordered" and default_projection(spec) != "ordered":
        _check_prefixes(f"{tables[0][1]}.project", spec)
    return replace(options, **resolved)


def _sets(
    written: Mapping[str, Sequence[str | int]],
    where: str,
    spec: CollectionSpec,
    ranges: Sequence[Subset],
) -> Iterator[ValueSet]:
    blocks = disclosed_blocks(spec)
    names = {one.name for one in ranges}
    for key, labels in written.items():
        path, name = f"{where}.{key_path(['sets', key])}", canonical_text(key)
        if spec.attributes:
            what = "expected none for records: set sets of an attribute in attributes.NAME"
            raise ConfigError(path, what)
        if blocks is not None and name in (blocks.names or ()):
            raise ConfigError(path, "expected another name: it is that of a block of the domain")
        if name in names:
            raise ConfigError(path, "expected each name once, of ranges and sets")
        names.add(name)
        try:
            yield make_set(name, labels, spec.domain.estimated)
        except QueryError as error:
            raise ConfigError(path, f"expected {error.expected}") from error


def _check_prefixes(path: str, spec: CollectionSpec) -> None:
    # Prefixes cost time quadratic in this number, and a worker computes them every few seconds.
    groups = (spec.mechanism.marginal or spec.mechanism).decoder.groups()
    largest = spec.domain.estimated.size if groups is None else int(np.bincount(groups).max())
    if largest > _QUANTILE_LIMIT:
        raise ConfigError(
            path,
            f"expected at most {_QUANTILE_LIMIT:,} values that are not distinguished exactly, "
            f"got {largest:,}; ask for those of finer domains with query or estimate",
        )
