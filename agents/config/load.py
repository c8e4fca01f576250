"""The configuration file as a whole: reading it, and what holds between its tables."""

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from ldpstream.agents.config.collection import CollectionConfig, read_collection
from ldpstream.agents.config.errors import ConfigError, from_validation
from ldpstream.agents.config.kafka import KafkaConfig, read_options
from ldpstream.agents.config.tables import FileTable, KafkaTable, known_keys
from ldpstream.agents.config.topics import check_topics

BOOTSTRAP_VARIABLE: Final = "LDPSTREAM_KAFKA_BOOTSTRAP"

_TOML_POSITION: Final = re.compile(r"(.*) \(at (?:line (\d+), column \d+|(end of document))\)")


@dataclass(frozen=True, kw_only=True)
class WorkerConfig:
    """`[worker]`."""

    id: str
    http: str
    """`host:port`; port 0 is any free one."""
    store: str
    data: Path
    """A folder; a relative path is relative to the configuration file."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """A configuration, checked."""

    kafka: KafkaConfig
    worker: WorkerConfig
    collections: Mapping[str, CollectionConfig]
    """By name, in the order of the file; at least one."""


def load_config(path: str | Path, *, environment: Mapping[str, str] = os.environ) -> Config:
    """Load a configuration file.

    Raises:
        ConfigError: naming the file, the key or line, and what was expected.
    """
    file = Path(path)
    try:
        tables = tomllib.loads(file.read_text("utf-8-sig"))
    except OSError as error:
        raise ConfigError("", f"cannot read it: {error.strerror}", file=str(path)) from error
    except UnicodeDecodeError as error:
        raise ConfigError("", "expected UTF-8", file=str(path)) from error
    except tomllib.TOMLDecodeError as error:
        raise _syntax_error(str(error), str(path)) from error
    try:
        return read_config(tables, base=file.parent, environment=environment)
    except ConfigError as error:
        raise error.in_file(str(path)) from error


def read_config(
    tables: Mapping[str, Any], *, base: Path, environment: Mapping[str, str] = os.environ
) -> Config:
    """Return the configuration that TOML tables hold; files are relative to `base`.

    Raises:
        ConfigError: naming the key and what was expected.
    """
    try:
        file = FileTable.model_validate(tables)
    except ValidationError as error:
        raise from_validation(error, known_keys()) from error
    if not file.collection:
        raise ConfigError("collection", "expected at least one table [collection.NAME], got none")
    collections = {
        name: read_collection(
            name, table, tables["collection"][name], base=base, worker_id=file.worker.id
        )
        for name, table in file.collection.items()
    }
    check_topics((name, collection.topics) for name, collection in collections.items())
    return Config(
        kafka=KafkaConfig(
            bootstrap=_bootstrap(environment) or file.kafka.bootstrap,
            options=read_options(file.kafka.model_extra or {}, base=base, environment=environment),
        ),
        worker=WorkerConfig(
            id=file.worker.id,
            http=file.worker.http,
            store=file.worker.store,
            data=base / file.worker.data,
        ),
        collections=collections,
    )


def _bootstrap(environment: Mapping[str, str]) -> str | None:
    given = environment.get(BOOTSTRAP_VARIABLE)
    if not given:
        return None
    try:
        return KafkaTable(bootstrap=given).bootstrap
    except ValidationError as error:
        raise ConfigError(BOOTSTRAP_VARIABLE, from_validation(error, {}).problem) from error


def _syntax_error(message: str, file: str) -> ConfigError:
    match = _TOML_POSITION.fullmatch(message)
    if match is None:
        return ConfigError("", f"expected TOML: {message}", file=file)
    where = f"line {match[2]}" if match[2] else "at its end"
    return ConfigError(where, f"expected TOML: {match[1]}", file=file)
