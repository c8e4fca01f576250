"""`accept`: collections of earlier configuration files whose reports are still counted.

Each earlier file must have a collection of the same name. It keeps everything that determines what
its reports mean and how they are published: domain, mechanism, precision, `window`, `spread`,
`minimum`, `minimum_block`, `confidence`, `estimand`, `method`, `sharpest` and `publish`. Topics,
partitions and the handling of rejected messages are those of the new collection. The earlier file's
own `accept` is not followed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ldpstream.agents.config.collection import CollectionConfig, read_collection
from ldpstream.agents.config.errors import ConfigError, from_validation, key_path
from ldpstream.agents.config.files import read_tables
from ldpstream.agents.config.tables import CollectionTable, FileTable, known_keys
from ldpstream.agents.query.errors import expected


def with_accepted(own: CollectionConfig, files: Sequence[str], *, base: Path) -> CollectionConfig:
    """Return a collection with those in its `accept`; paths are relative to `base`.

    Raises:
        ConfigError: naming the place in `accept`, the file, and what was expected.
    """
    found: list[CollectionConfig] = []
    for place, file in enumerate(files):
        path = key_path(["collection", own.name, "accept", place])
        try:
            one = _read(own.name, base / file, file)
        except ConfigError as error:
            raise ConfigError(path, "; ".join(str(error).splitlines())) from error
        _check(path, file, own, [own, *found], one)
        # `pack` writes the messages of all specs to one topic; only the new spec's state reads it.
        topics, kept = replace(own.topics, frames=None), own.retention_ms
        found.append(
            replace(
                one,
                topics=topics,
                partitions=own.partitions,
                format=own.format,
                retention_ms=kept,
                rejected=own.rejected,
            )
        )
    return replace(own, accept=tuple(found))


def _read(name: str, file: Path, shown: str) -> CollectionConfig:
    tables = read_tables(file, shown)
    try:
        table = _validated(tables, name)
        raw = tables["collection"][name]
        return read_collection(name, table, raw, base=file.parent, worker_id="")
    except ConfigError as error:
        raise error.in_file(shown) from error


def _validated(tables: Mapping[str, Any], name: str) -> CollectionTable:
    try:
        known = FileTable.model_validate(tables).collection
    except ValidationError as error:
        raise from_validation(error, known_keys()) from error
    if name not in known:
        what = f"a collection of the same name, {name}"
        raise ConfigError("collection", expected(what, ", ".join(known)))
    return known[name]


def _check(
    path: str,
    file: str,
    own: CollectionConfig,
    taken: Sequence[CollectionConfig],
    one: CollectionConfig,
) -> None:
    if one.topics.source != own.topics.source:
        what = f"the topic of [{key_path(['collection', own.name])}], {own.topics.source}"
        raise ConfigError(path, f"{file}: {expected(what, one.topics.source)}")
    if any(one.spec.fingerprint == other.spec.fingerprint for other in taken):
        whose = "this collection's" if one.spec.fingerprint == own.spec.fingerprint else "another's"
        raise ConfigError(
            path,
            f"{file}: expected a spec of its own, got {whose}, {one.spec.fingerprint.hex()}; "
            "reports with the same fingerprint are counted without accept",
        )
