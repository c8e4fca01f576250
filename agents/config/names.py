"""What people call a collection, its values and its blocks: only shown, never sent or counted."""

import csv
import io
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import Final

from ldpstream.agents.config.errors import ConfigError, key_path
from ldpstream.agents.config.query.capabilities import disclosed_blocks
from ldpstream.agents.config.tables import CollectionTable
from ldpstream.mechanisms.base.checks import guess
from ldpstream.mechanisms.base.errors import QueryError
from ldpstream.mechanisms.base.texts import canonical_text
from ldpstream.mechanisms.base.times import parse_time
from ldpstream.mechanisms.domains.base import Domain
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.domains.queries import make_set
from ldpstream.mechanisms.wire.spec import CollectionSpec

_GEOJSON_BYTES: Final = 4 << 20
_ANNOTATIONS_LENGTH: Final = 64 << 10

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Names:
    """Names of a collection; None where it has none.

    `axes` are one for each dimension, `value_labels` by attribute, None where there are none, and
    by the text of a label. `geojson` is a FeatureCollection of the blocks, as JSON, `events` the
    file of annotations.
    """

    title: str | None = None
    description: str | None = None
    unit: str | None = None
    axes: tuple[str, ...] | None = None
    block_names: tuple[str, ...] | None = None
    value_labels: Mapping[str | None, Mapping[str, str]] = field(default_factory=dict)
    geojson: bytes | None = field(default=None, repr=False)
    events: Path | None = None

    @property
    def annotations(self) -> Sequence[tuple[int, str]]:
        """The events in the file now: epoch ms and text, oldest first; none if it is broken."""
        if self.events is None:
            return []
        try:
            return _read_events("annotations", self.events)
        except ConfigError as error:
            log.warning("%s", error)
            return []


def read_names(path: str, table: CollectionTable, spec: CollectionSpec, *, base: Path) -> Names:
    """Return the names of a collection, and give its disclosed blocks theirs."""
    domain, blocks = spec.domain.estimated, disclosed_blocks(spec)
    if spec.attributes and table.axes:
        raise ConfigError(f"{path}.axes", "expected none for records")
    if table.axes is not None and len(table.axes) != len(domain.shape):
        what = f"expected {len(domain.shape)} names, one for each dimension, got {len(table.axes)}"
        raise ConfigError(f"{path}.axes", what)
    events = None if table.annotations is None else base / table.annotations
    if events is not None:
        _read_events(f"{path}.annotations", events)
    names = _block_names(f"{path}.block_names", table.block_names, blocks)
    return Names(
        title=table.title,
        description=table.description,
        unit=table.unit,
        axes=None if table.axes is None else tuple(table.axes),
        block_names=names,
        value_labels=_value_labels(f"{path}.value_labels", table, spec.domain),
        geojson=_geojson(f"{path}.geojson", table.geojson, blocks, base=base),
        events=events,
    )


def _value_labels(
    path: str, table: CollectionTable, domain: Domain
) -> Mapping[str | None, Mapping[str, str]]:
    """Return names by attribute and by the text of a label, as the domain spells it."""
    of_values = {label: name for label, name in table.value_labels.items() if isinstance(name, str)}
    if not domain.members:
        if len(of_values) < len(table.value_labels):
            raise ConfigError(path, "expected a text for each label: values are no records")
        return {None: _spelled(path, of_values, domain.estimated)}
    names: dict[str | None, Mapping[str, str]] = {}
    attributes = [name for name, one in domain.members.items() if one.kind != "pair"]
    for attribute, labels in table.value_labels.items():
        if attribute not in attributes or isinstance(labels, str):
            known = f"{', '.join(attributes)}{guess(attribute, attributes)}"
            what = f"expected a table of labels for any of {known}"
            raise ConfigError(f"{path}.{key_path([attribute])}", what)
        of_attribute = domain.members[attribute].estimated
        names[attribute] = _spelled(f"{path}.{key_path([attribute])}", labels, of_attribute)
    return names


def _spelled(path: str, names: Mapping[str, str], domain: Domain) -> Mapping[str, str]:
    if not names:
        return names
    try:
        make_set("value_labels", list(names), domain)
        # As the domain spells them: whoever shows a value looks up its own label.
        written = domain.written
        places = written.parse_columns([[label] for label in names])
    except QueryError as error:
        raise ConfigError(path, f"expected {error.expected}") from error
    labels = [str(written.label(place)) for place in places.tolist()]
    return dict(zip(labels, names.values(), strict=True))


def _read_events(path: str, file: Path) -> Sequence[tuple[int, str]]:
    """Return the rows `time,text` of a file, oldest first; times are epoch ms."""
    try:
        with file.open(encoding="utf-8", newline="") as opened:
            text = opened.read(_ANNOTATIONS_LENGTH + 1)
        if len(text) > _ANNOTATIONS_LENGTH:
            raise ConfigError(path, f"expected at most {_ANNOTATIONS_LENGTH} characters")
        return _parse_events(path, file.name, text)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(path, f"expected a CSV file of events, time,text: {error}") from error


@lru_cache(maxsize=64)
def _parse_events(path: str, name: str, text: str) -> Sequence[tuple[int, str]]:
    # Kept by its text: every description of a collection has its events, which seldom change.
    rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    events: list[tuple[int, str]] = []
    for number, row in enumerate(rows, 1):
        try:
            time, event = row
            events.append((parse_time(time), event))
        except ValueError as error:
            what = f"expected a time, RFC 3339, and a text in row {number} of {name}"
            raise ConfigError(path, what) from error
    return sorted(events, key=itemgetter(0))


def _block_names(
    path: str, names: list[str] | None, blocks: Blocks | None
) -> tuple[str, ...] | None:
    if names is None:
        return None if blocks is None else blocks.names
    if blocks is None:
        raise ConfigError(path, "expected none: reports disclose no blocks of the domain")
    if blocks.names is not None:
        raise ConfigError(path, "expected none: the domain's file names its blocks")
    names = [canonical_text(name) for name in names]
    if len(names) != blocks.count or len(set(names)) < len(names):
        what = f"expected {blocks.count} different names, one for each block, got {len(names)}"
        raise ConfigError(path, what)
    # Only people read them: neither the spec's identity nor its equality depends on names.
    object.__setattr__(blocks, "names", tuple(names))
    return blocks.names


def _geojson(path: str, file: str | None, blocks: Blocks | None, *, base: Path) -> bytes | None:
    """Return the file with the shapes of blocks, each with its number or name as `id`."""
    if file is None:
        return None
    if blocks is None:
        raise ConfigError(path, "expected none: reports disclose no blocks of the domain")
    try:
        with (base / file).open("rb") as opened:
            raw = opened.read(_GEOJSON_BYTES + 1)
        shapes = json.loads(raw[:_GEOJSON_BYTES])
    except (OSError, ValueError) as error:
        what = f"expected a GeoJSON file of at most {_GEOJSON_BYTES >> 20} MiB: {error}"
        raise ConfigError(path, what) from error
    features = shapes.get("features") if isinstance(shapes, dict) else None
    if not isinstance(features, list) or shapes.get("type") != "FeatureCollection":
        raise ConfigError(path, 'expected a "FeatureCollection" with a list "features"')
    known = {*range(blocks.count), *(blocks.names or ())}
    for number, feature in enumerate(features):
        name = feature.get("id") if isinstance(feature, dict) else None
        if isinstance(name, str):
            feature["id"] = name = canonical_text(name)
        if not isinstance(name, str | int) or name not in known:
            what = (
                f'expected an "id" that is the number of a block, 0..{blocks.count - 1}, or its '
                f"name, in feature {number}"
            )
            raise ConfigError(path, what)
    return json.dumps(shapes, separators=(",", ":")).encode()
