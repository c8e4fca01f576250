"""Read a configuration file, those that it accepts, and check the conditions between tables."""

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from ldpstream.agents.config.client_options import KafkaConfig, read_options
from ldpstream.agents.config.collection import (
    CollectionConfig,
    check_topics,
    read_collection,
    read_spec,
)
from ldpstream.agents.config.errors import (
    ConfigError,
    Problems,
    expected,
    from_validation,
    key_path,
)
from ldpstream.agents.config.gateway import GatewayConfig
from ldpstream.agents.config.tables import CollectionTable, FileTable, KafkaTable, known_keys
from ldpstream.agents.config.worker import Shard, WorkerConfig

BOOTSTRAP_VARIABLE: Final = "LDPSTREAM_KAFKA_BOOTSTRAP"
_TOML_POSITION: Final = re.compile(r"(.*) \(at (?:line (\d+), column \d+|(end of document))\)")
_WORKER_VARIABLES: Final = {"advertise": "LDPSTREAM_ADVERTISE", "instance": "LDPSTREAM_INSTANCE"}


@dataclass(frozen=True, kw_only=True)
class Config:
    """A validated configuration."""

    kafka: KafkaConfig
    worker: WorkerConfig
    gateway: GatewayConfig
    collections: Mapping[str, CollectionConfig]
    """By name, in the order of the file; not empty, except in a shard without collections."""
    shard: Shard = field(default_factory=Shard)

    @property
    def group(self) -> str:
        """The consumer group of the workers that run these collections."""
        return self.shard.group(self.worker.id)

    def of_shard(self, shard: Shard) -> "Config":
        """Return the configuration with only the collections of a shard."""
        collections = {
            name: collection for name, collection in self.collections.items() if shard.holds(name)
        }
        return replace(self, collections=collections, shard=shard)


def load_config(path: str | Path, *, environment: Mapping[str, str] = os.environ) -> Config:
    """Load a configuration file.

    Raises:
        ConfigError: naming the file, the key or line, and what was expected.
    """
    file = Path(path)
    tables = _read_tables(file, str(path))
    try:
        return read_config(tables, base=file.parent, environment=environment)
    except ConfigError as error:
        raise error.in_file(str(path)) from error


def read_config(
    tables: Mapping[str, Any], *, base: Path, environment: Mapping[str, str] = os.environ
) -> Config:
    """Return the configuration from TOML tables; paths are relative to `base`.

    Raises:
        ConfigError: naming the key and what was expected.
    """
    problems = Problems()
    file = _file({"worker": {}, **tables}, problems, {"base": base, "environment": environment})
    worker = file.worker
    if not file.collection:
        with problems.collect():
            what = "at least one table [collection.NAME]"
            raise ConfigError("collection", f"expected {what}, got none")
    collections = {}
    for name, table in file.collection.items():
        with problems.collect():
            raw = tables["collection"][name]
            collection = read_collection(name, table, raw, base=base, worker_id=worker.id)
            collections[name] = _with_accepted(collection, table.accept, base=base)
    for path, serving in (("worker", worker), ("gateway", file.gateway)):
        with problems.collect():
            serving.check_together(path)
    for key, variable in _WORKER_VARIABLES.items():
        with problems.collect():
            value = _read_variable(environment, variable, WorkerConfig, key)
            worker = worker if value is None else worker.model_copy(update={key: value})
    used = {} if worker.advertise is None else {worker.addresses_topic: "that of the workers"}
    with problems.collect():
        check_topics(((name, config.topics) for name, config in collections.items()), used)
    bootstrap = file.kafka.bootstrap
    with problems.collect():
        bootstrap = (
            _read_variable(environment, BOOTSTRAP_VARIABLE, KafkaTable, "bootstrap") or bootstrap
        )
    with problems.collect():
        extra = file.kafka.model_extra or {}
        options = read_options(extra, base=base, environment=environment)
    problems.check()
    return Config(
        kafka=KafkaConfig(bootstrap=bootstrap, options=options),
        worker=worker,
        gateway=file.gateway,
        collections=collections,
    )


def _file(tables: Mapping[str, Any], problems: Problems, context: Mapping[str, Any]) -> FileTable:
    """Return the file's valid tables, with defaults in place of invalid ones.

    The caller raises the collected problems before these defaults are used.
    """
    try:
        return FileTable.model_validate(tables, context=context)
    except ValidationError as error:
        refused = from_validation(error, known_keys())
        wrong = [detail["loc"] for detail in error.errors(include_url=False)]
    with problems.collect():
        raise refused
    bad_tables = {place[0] for place in wrong if place}
    sound = {key: table for key, table in tables.items() if key not in bad_tables}
    section = tables.get("collection")
    if "collection" in bad_tables and isinstance(section, dict):
        bad = {place[1] for place in wrong if place[0] == "collection" and len(place) > 1}
        sound["collection"] = {name: table for name, table in section.items() if name not in bad}
        for name in bad & section.keys():
            named = ("collection", name, "[key]") not in wrong
            if named and isinstance(section[name], dict):
                with problems.collect():
                    read_spec(name, section[name], base=context["base"])
    file = FileTable.model_validate({"worker": {}, **sound}, context=context)
    if not file.collection:
        # The existing collections were refused: do not also say that there are none.
        problems.check()
    return file


def _read_variable(
    environment: Mapping[str, str], variable: str, table: type[BaseModel], key: str
) -> Any:
    """Return the value of a variable that overrides a key of a table; None where it is not set."""
    text = environment.get(variable)
    if not text:
        return None
    try:
        return getattr(table.model_validate({key: text}), key)
    except ValidationError as error:
        raise ConfigError(variable, from_validation(error, {}).problem) from error


def _with_accepted(
    collection: CollectionConfig, files: Sequence[str], *, base: Path
) -> CollectionConfig:
    """Return a collection with those in its `accept`; paths are relative to `base`.

    Each earlier file must have a collection of the same name. It keeps everything that determines
    what its reports mean and how they are published: domain, mechanism, precision, `window`,
    `spread`, `minimum`, `minimum_block`, `confidence`, `estimand`, `method`, `sharpest`,
    `project` and `publish`. Topics, partitions and the handling of rejected messages are those of
    the new collection. The earlier file's own `accept` is not followed.
    """
    accepted: list[CollectionConfig] = []
    for place, file in enumerate(files):
        path = key_path(["collection", collection.name, "accept", place])
        try:
            earlier = _read_accepted(collection.name, base / file, file)
        except ConfigError as error:
            raise ConfigError(path, "; ".join(str(error).splitlines())) from error
        _check_accepted(path, file, collection, [collection, *accepted], earlier)
        accepted.append(
            replace(
                earlier,
                topics=collection.topics,
                partitions=collection.partitions,
                retention_ms=collection.retention_ms,
                rejected=collection.rejected,
            )
        )
    return replace(collection, accept=tuple(accepted))


def _read_accepted(name: str, file: Path, shown: str) -> CollectionConfig:
    tables = _read_tables(file, shown)
    try:
        table = _accepted_table(tables, name)
        raw = tables["collection"][name]
        return read_collection(name, table, raw, base=file.parent, worker_id="")
    except ConfigError as error:
        raise error.in_file(shown) from error


def _accepted_table(tables: Mapping[str, Any], name: str) -> CollectionTable:
    try:
        tables_by_name = FileTable.model_validate(tables).collection
    except ValidationError as error:
        raise from_validation(error, known_keys()) from error
    if name not in tables_by_name:
        what = f"a collection of the same name, {name}"
        raise ConfigError("collection", expected(what, ", ".join(tables_by_name)))
    return tables_by_name[name]


def _check_accepted(
    path: str,
    file: str,
    collection: CollectionConfig,
    earlier: Sequence[CollectionConfig],
    accepted: CollectionConfig,
) -> None:
    if accepted.topics.source != collection.topics.source:
        table = key_path(["collection", collection.name])
        what = f"the topic of [{table}], {collection.topics.source}"
        raise ConfigError(path, f"{file}: {expected(what, accepted.topics.source)}")
    if any(accepted.spec.fingerprint == other.spec.fingerprint for other in earlier):
        whose = (
            "this collection's"
            if accepted.spec.fingerprint == collection.spec.fingerprint
            else "another's"
        )
        raise ConfigError(
            path,
            f"{file}: expected a spec of its own, got {whose}, {accepted.spec.fingerprint.hex()}; "
            "reports with the same fingerprint are counted without accept",
        )


def _read_tables(file: Path, shown: str) -> dict[str, Any]:
    """Return the tables of a TOML file, called `shown` in messages."""
    try:
        return tomllib.loads(file.read_text("utf-8-sig"))
    except OSError as error:
        raise ConfigError("", f"cannot read it: {error.strerror}", file=shown) from error
    except UnicodeDecodeError as error:
        raise ConfigError("", "expected UTF-8", file=shown) from error
    except tomllib.TOMLDecodeError as error:
        raise _syntax_error(str(error), shown) from error


def _syntax_error(message: str, file: str) -> ConfigError:
    match = _TOML_POSITION.fullmatch(message)
    if match is None:
        return ConfigError("", f"expected TOML: {message}", file=file)
    where = f"line {match[2]}" if match[2] else "at its end"
    return ConfigError(where, f"expected TOML: {match[1]}", file=file)
