"""The configuration file as a whole: reading it, and what holds between its tables."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from ldpstream.agents.config.accepted import with_accepted
from ldpstream.agents.config.collection import CollectionConfig, read_collection
from ldpstream.agents.config.errors import ConfigError, from_validation
from ldpstream.agents.config.files import read_tables
from ldpstream.agents.config.gateway import GatewayConfig, read_gateway
from ldpstream.agents.config.kafka import KafkaConfig, read_options
from ldpstream.agents.config.secrets import read_secret
from ldpstream.agents.config.tables import FileTable, KafkaTable, WorkerTable, known_keys
from ldpstream.agents.config.topics import check_topics
from ldpstream.agents.kafka.secret import Secret

BOOTSTRAP_VARIABLE: Final = "LDPSTREAM_KAFKA_BOOTSTRAP"


@dataclass(frozen=True, kw_only=True)
class WorkerConfig:
    """`[worker]`."""

    id: str
    http: str
    """`host:port`; port 0 is any free one."""
    token: Secret | None
    """What readers of HTTP have to know."""
    certificate: Path | None
    """For HTTPS, a chain in PEM format, with `key`."""
    key: Path | None
    open_to_everybody: bool
    """Whether HTTP may do without a token where other machines reach it."""
    store: str
    data: Path
    """A folder; a relative path is relative to the configuration file."""

    @property
    def pack_group(self) -> str:
        """The consumer group of all packers."""
        return f"{self.id}.pack"


@dataclass(frozen=True, kw_only=True)
class Config:
    """A configuration, checked."""

    kafka: KafkaConfig
    worker: WorkerConfig
    gateway: GatewayConfig
    collections: Mapping[str, CollectionConfig]
    """By name, in the order of the file; at least one."""


def load_config(path: str | Path, *, environment: Mapping[str, str] = os.environ) -> Config:
    """Load a configuration file.

    Raises:
        ConfigError: naming the file, the key or line, and what was expected.
    """
    file = Path(path)
    tables = read_tables(file, str(path))
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
        name: with_accepted(
            read_collection(
                name, table, tables["collection"][name], base=base, worker_id=file.worker.id
            ),
            table.accept,
            base=base,
        )
        for name, table in file.collection.items()
    }
    worker = file.worker
    if (worker.certificate is None) != (worker.key is None):
        missing = "key" if worker.key is None else "certificate"
        raise ConfigError(f"worker.{missing}", "expected certificate and key, or neither")
    check_topics((name, collection.topics) for name, collection in collections.items())
    return Config(
        kafka=KafkaConfig(
            bootstrap=_bootstrap(environment) or file.kafka.bootstrap,
            options=read_options(file.kafka.model_extra or {}, base=base, environment=environment),
        ),
        worker=_worker(worker, base, environment),
        gateway=read_gateway(file.gateway, base=base, environment=environment),
        collections=collections,
    )


def _worker(table: WorkerTable, base: Path, environment: Mapping[str, str]) -> WorkerConfig:
    token = table.token
    if token is not None:
        token = read_secret("worker.token", token, base=base, environment=environment)
    return WorkerConfig(
        id=table.id,
        http=table.http,
        token=token,
        certificate=None if table.certificate is None else base / table.certificate,
        key=None if table.key is None else base / table.key,
        open_to_everybody=table.open_to_everybody,
        store=table.store,
        data=base / table.data,
    )


def _bootstrap(environment: Mapping[str, str]) -> str | None:
    given = environment.get(BOOTSTRAP_VARIABLE)
    if not given:
        return None
    try:
        return KafkaTable(bootstrap=given).bootstrap
    except ValidationError as error:
        raise ConfigError(BOOTSTRAP_VARIABLE, from_validation(error, {}).problem) from error
