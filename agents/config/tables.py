"""The tables of a configuration file: their keys, types, limits and defaults.

What depends on several keys at once, or on the mechanism and its domain, is checked in
`ldpstream.agents.config.windows`, `.topics` and `.publishing`; the keys that a device needs too
(`domain` and those of `MECHANISM_KEYS`) by `ldpstream.mechanisms.wire.spec`.
"""

import re
from collections.abc import Callable
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    create_model,
    model_validator,
)

from ldpstream.agents.config.address import http_address, is_port, network
from ldpstream.agents.config.durations import (
    DAY_MS,
    HOUR_MS,
    SECOND_MS,
    Duration,
    DurationOrOff,
    PositiveDuration,
)
from ldpstream.agents.config.errors import refused
from ldpstream.agents.config.gateway import GatewayTable
from ldpstream.agents.query.options import KEYS
from ldpstream.mechanisms.interface.settings import MECHANISM_KEYS
from ldpstream.mechanisms.ledger.spread import MAX_SPREAD_WINDOWS
from ldpstream.mechanisms.wire.one_report import DEFAULT_PARTITIONS

PARTITIONS_LIMIT: Final = 10_000
ACCEPT_LIMIT: Final = 8
WITNESSES_LIMIT: Final = 1_000

_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")
_NAME_LENGTH: Final = 200  # Kafka allows topics 249 characters, and we append to this


def _name(value: str) -> str:
    if not _NAME.fullmatch(value) or value in {".", ".."} or value.startswith("__"):
        raise refused("letters, digits, dots, dashes and underscores (not '__' first)", value)
    if len(value) > _NAME_LENGTH:
        raise refused(f"at most {_NAME_LENGTH} characters", value)
    return value


def _brokers(value: str) -> str:
    """Refuse anything but a list of `host` or `host:port`; the default port is 9092."""
    for broker in value.split(","):
        host, colon, port = broker.strip().rpartition(":")
        if not (is_port(port) if colon else port) or (colon and not host) or "/" in broker:
            raise refused('host:port, several with commas, such as "127.0.0.1:9092"', value)
    return value


Brokers = Annotated[str, AfterValidator(_brokers)]
Name = Annotated[str, AfterValidator(_name)]
Model = TypeVar("Model", bound=BaseModel)


class Table(BaseModel):
    """A TOML table: unknown keys and values of another type are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class KafkaTable(Table):
    """`[kafka]`: every key except `bootstrap` is passed to the Kafka client."""

    model_config = ConfigDict(extra="allow")

    bootstrap: Brokers = "127.0.0.1:9092"


class WorkerTable(Table):
    """`[worker]`."""

    id: Name = "ldpstream"
    http: Annotated[str, AfterValidator(http_address)] = "127.0.0.1:6066"
    token: Any = None
    certificate: str | None = Field(default=None, min_length=1)
    key: str | None = Field(default=None, min_length=1)
    open_to_everybody: bool = False
    trusted_proxies: list[Annotated[str, AfterValidator(network)]] = []
    store: Literal["memory", "rocksdb"] = "memory"
    data: str = Field(default="./data", min_length=1)


class WindowTable(Table):
    """`window`: durations in milliseconds; `idle` is None for "off".

    `config.windows` has the defaults of `grace` and `future`.
    """

    size: PositiveDuration = HOUR_MS
    hop: PositiveDuration | None = None
    grace: Duration | None = None
    idle: DurationOrOff = 30 * SECOND_MS
    future: Duration | None = None
    retention: PositiveDuration = 7 * DAY_MS
    witnesses: int = Field(default=1, ge=1, le=WITNESSES_LIMIT)


def _with_options(table: str) -> Callable[[type[Model]], type[Model]]:
    """Add the options of documents that are configured in a table: their keys, types, defaults."""

    def add(model: type[Model]) -> type[Model]:
        keys: dict[str, Any] = {
            name: (key.type, key.default) for name, key in KEYS.items() if key.table == table
        }
        return create_model(
            model.__name__, __base__=model, __doc__=model.__doc__, __module__=__name__, **keys
        )

    return add


@_with_options("publish")
class PublishTable(Table):
    """`publish`."""

    every: PositiveDuration = 5 * SECOND_MS


class SpreadTable(Table):
    """`spread`: in how many panes of a period devices' ledgers take part."""

    reports: int = Field(ge=1, le=MAX_SPREAD_WINDOWS)
    horizon: PositiveDuration
    rolling: bool = False


@_with_options("collection")
class CollectionTable(Table):
    """`[collection.NAME]`; `mechanism` and `domain` are checked with its spec."""

    mechanism: Any = None
    domain: Any = None
    accept: list[Annotated[str, Field(min_length=1)]] = Field(default=[], max_length=ACCEPT_LIMIT)
    topic: Name | None = None
    one_report: bool = False
    partitions: int = Field(default=DEFAULT_PARTITIONS, ge=1, le=PARTITIONS_LIMIT)
    retention: PositiveDuration = 7 * DAY_MS
    precision: PositiveDuration = SECOND_MS
    minimum: int = Field(default=100, ge=0)
    minimum_block: int = Field(default=0, ge=0)
    input: Literal["topic", "frames"] = "topic"
    window: WindowTable = WindowTable()
    spread: SpreadTable | None = None
    rejected: Literal["copy", "count"] = "copy"
    publish: PublishTable = PublishTable()

    @model_validator(mode="before")
    @classmethod
    def _leave_to_the_mechanism(cls, table: object) -> object:
        if not isinstance(table, dict):
            return table
        return {key: value for key, value in table.items() if key not in MECHANISM_KEYS}


class FileTable(Table):
    """The whole file."""

    kafka: KafkaTable = KafkaTable()
    worker: WorkerTable = WorkerTable()
    gateway: GatewayTable = GatewayTable()
    collection: dict[Name, CollectionTable] = {}


def known_keys() -> dict[str, list[str]]:
    """Return the keys of every table, by its path, with every collection's name as `"*"`."""
    tables: dict[str, type[BaseModel]] = {
        "": FileTable,
        "worker": WorkerTable,
        "gateway": GatewayTable,
        'collection."*"': CollectionTable,
        'collection."*".window': WindowTable,
        'collection."*".spread': SpreadTable,
        'collection."*".publish': PublishTable,
    }
    keys = {path: list(table.model_fields) for path, table in tables.items()}
    keys['collection."*"'][1:1] = MECHANISM_KEYS
    return keys
