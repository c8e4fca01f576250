"""The tables of a configuration file: keys, types, limits and defaults.

Conditions on several keys are checked in `config.collection`, `.windows` and `.spread`; the keys
that devices read, too (`domain` and `MECHANISM_KEYS`), in `ldpstream.mechanisms.wire.spec`.

The models here, in `worker` and in `gateway` hold examples of their own keys. Those of the keys
that mechanisms and domains read themselves, without a model, are in `EXAMPLES`, with schemas.
"""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    model_validator,
)

from ldpstream.agents.config.durations import (
    DAY_MS,
    HOUR_MS,
    SECOND_MS,
    Duration,
    DurationOrOff,
    PositiveDuration,
)
from ldpstream.agents.config.errors import key_path, refused
from ldpstream.agents.config.gateway import GatewayConfig
from ldpstream.agents.config.query.options import TOP_LIMIT, Unit
from ldpstream.agents.config.query.settings import HELPS, Projection
from ldpstream.agents.config.serving import Table
from ldpstream.agents.config.texts import Brokers, Label, Names, Text, TimeZone
from ldpstream.agents.config.worker import Name, WorkerConfig
from ldpstream.agents.state.calendar import Weekday
from ldpstream.estimators.bounds.options import SHARPEST, Estimand, Method
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.domains.parse import DOMAIN_KEYS, OF_RECORDS
from ldpstream.mechanisms.interface.settings import MECHANISM_KEYS
from ldpstream.mechanisms.ledger.spread import MAX_SPREAD_WINDOWS
from ldpstream.mechanisms.registry.attributes import ATTRIBUTE_KEYS
from ldpstream.mechanisms.registry.registry import MECHANISMS
from ldpstream.mechanisms.wire.hold import MAX_HELD_WINDOWS
from ldpstream.mechanisms.wire.one_report import DEFAULT_PARTITIONS

EXAMPLES: Final[Mapping[str, Json]] = {
    "values": ["bus", "train", "bicycle"],
    "size": 24,
    "grid": [100, 100],
    "sizes": [24, 7],
    "interval": [0.0, 100.0],
    "file": "places.csv",
    "words": {"bits": 32, "rounds": 4, "kept": 64},
    "bins": 64,
    "rounding": "random",
    "blocks": 6,
    "attributes": {
        "age": {"size": 4},
        "smokes": {"values": ["yes", "no"], "mechanism": "randomized-response", "epsilon": 2.0},
    },
    "pairs": [["age", "smokes"]],
    "header": True,
    "epsilon": 1.0,
    "sensitive": ["train", "bicycle"],
    "epsilon_outside": 2.0,
    "epsilon_rest": 4.0,
    "share": 0.3,
    "policy": {"metric": "l1"},
    "prior": 0.1,
    "strategy": "prefix",
    "workload": "ranges",
    "scales": [2.0, 2.5, 2.0],
    "channel": "roads.channel",
    "weights": {"private": 10},
    "mechanism": "block-hadamard",
    "probability": 0.5,
}
"""By key of `DOMAIN_KEYS`, `MECHANISM_KEYS` and `ATTRIBUTE_KEYS`."""

_PARTITIONS_LIMIT: Final = 10_000
_ACCEPT_LIMIT: Final = 8
_WITNESSES_LIMIT: Final = 1_000
_SHARPEST_LIMIT: Final = 1_000_000_000_000


def described(key: str, meaning: str) -> dict[str, Json]:
    """Return the JSON Schema of one of these keys, described by `meaning`."""
    return {"description": meaning, "examples": [EXAMPLES[key]]}


_ATTRIBUTE_SCHEMA: Final = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        key: described(key, meaning)
        for key, meaning in {**DOMAIN_KEYS, **MECHANISM_KEYS, **ATTRIBUTE_KEYS}.items()
        if key not in OF_RECORDS
    },
}
DOMAIN_SCHEMA: Final = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        key: described(key, meaning)
        | ({"additionalProperties": _ATTRIBUTE_SCHEMA} if key == "attributes" else {})
        for key, meaning in DOMAIN_KEYS.items()
    },
}


def toml(value: object) -> str:
    """Return a value of texts, numbers, lists and tables as one line of TOML."""
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{key_path([key])} = {toml(entry)}" for key, entry in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml, value))}]"
    return json.dumps(value)


_PAIR_SCHEMA: Final = {"items": {"type": "number"}, "minItems": 2, "maxItems": 2}
_HOLD_SCHEMA: Final = {
    "anyOf": [
        {"type": "integer", "minimum": 2, "maximum": MAX_HELD_WINDOWS},
        {
            "type": "object",
            "additionalProperties": False,
            "required": ["windows"],
            "properties": {
                "windows": {"type": "integer"},
                "epsilon": {"type": ["number", "array"], **_PAIR_SCHEMA},
            },
        },
    ]
}


class KafkaTable(Table):
    """`[kafka]`: every key except `bootstrap` is passed to the Kafka client."""

    model_config = ConfigDict(extra="allow")

    bootstrap: Brokers = Field(
        default="127.0.0.1:9092", description="Brokers, `host:port`, several with commas"
    )


class WindowTable(Table):
    """`window`: durations in milliseconds; `idle` is None for "off".

    `config.windows` has the defaults of `grace` and `future`.
    """

    size: PositiveDuration = Field(default=HOUR_MS, description="Length of a window")
    hop: PositiveDuration | None = Field(
        default=None,
        description="From the start of one window to the start of the next; by default `size`",
        examples=["10m"],
    )
    timezone: TimeZone = Field(
        default="UTC",
        description="Whose days windows consist of, if `size` and `hop` are whole days: a day in "
        "which clocks change has 23 or 25 hours",
        examples=["Europe/Berlin"],
    )
    week_start: Weekday | None = Field(
        default=None,
        description="The day with which windows of whole weeks begin; by default `monday` with "
        "`timezone`, else `thursday`, the epoch's",
        examples=["monday"],
    )
    grace: Duration | None = Field(
        default=None,
        description="How long a window accepts reports after its end; by default `future`, or the "
        "shorter of a minute and a pane",
        examples=["5m"],
    )
    idle: DurationOrOff = Field(
        default=30 * SECOND_MS,
        description=(
            "How long a partition must have been read to its end, without a report that counts, "
            "before it no longer keeps windows open"
        ),
    )
    future: Duration | None = Field(
        default=None,
        description="How far after arrival a report may be dated; at most `grace`, the default",
        examples=["1m"],
    )
    retention: PositiveDuration = Field(
        default=7 * DAY_MS, description="How long closed windows are kept and can be queried"
    )
    witnesses: int = Field(
        default=1,
        ge=1,
        le=_WITNESSES_LIMIT,
        description="Messages past a time that the watermark needs to reach it; for replays",
    )


def _listed(top: Any) -> Any:
    if top == "all":
        # The number of values is not known here, and published documents are bounded.
        what = f"a whole number up to {TOP_LIMIT:,}, such as the number of values"
        raise refused(f"{what} (`query --top all` lists any)", top)
    return top


def _weights(value: Any) -> Any:
    numbers = list(value.values()) if isinstance(value, dict) else value
    if not (isinstance(numbers, list) and all(type(number) in (int, float) for number in numbers)):
        raise refused("a list of numbers, or a table of them by label", value)
    return value


class PublishedQueries(Table):
    """What is estimated by itself: keys of `publish`, and of an attribute of records."""

    top: Annotated[int, Field(ge=0, le=TOP_LIMIT), BeforeValidator(_listed)] = Field(
        default=20, description="The N largest shares; the number of values lists them all"
    )
    ranges: dict[str, list[Any]] = Field(
        default_factory=dict, description=HELPS["ranges"], examples=[{"night": [0, 5]}]
    )
    quantiles: list[Unit] = Field(
        default_factory=list, description=HELPS["quantiles"], examples=[[0.25, 0.5, 0.75]]
    )
    linear: dict[str, Annotated[Any, AfterValidator(_weights)]] = Field(
        default_factory=dict,
        description=HELPS["linear"],
        examples=[{"fare": {"bus": 2.5, "train": 4}}],
    )


class _Sets(Table):
    sets: dict[str, list[Label]] = Field(
        default={},
        description="Of labels: the share of each of these sets, by its name",
        examples=[{"public": ["bus", "train"]}],
    )


# Keys are listed in reversed order of the bases.
class AttributeTable(PublishedQueries, _Sets):
    """`publish.attributes.NAME`."""


class _Published(_Sets):
    attributes: dict[str, AttributeTable] = Field(
        default={},
        description="Of records: by attribute, a table of the keys below",
        examples=[{"age": {"top": 4, "quantiles": [0.5]}}],
    )
    every: DurationOrOff = Field(
        default=5 * SECOND_MS,
        description='Shortest interval of documents of open windows; "off": only closed windows',
    )


class PublishTable(PublishedQueries, _Published):
    """`publish`."""


class SpreadTable(Table):
    """`spread`: in how many panes of a period devices take part."""

    reports: int = Field(
        ge=1,
        le=MAX_SPREAD_WINDOWS,
        description="Windows of a period in which a device takes part",
        examples=[4],
    )
    horizon: PositiveDuration = Field(description="The period", examples=["1d"])
    rolling: bool = Field(
        default=False, description="Whether the bound holds in every span as long as the period"
    )


class CollectionTable(Table):
    """`[collection.NAME]`; `mechanism` and `domain` are checked with its spec."""

    mechanism: Annotated[Any, WithJsonSchema({"type": "string", "enum": sorted(MECHANISMS)})] = (
        Field(
            default=None, description="How values are privatized", examples=[EXAMPLES["mechanism"]]
        )
    )
    domain: Annotated[Any, WithJsonSchema(DOMAIN_SCHEMA)] = Field(
        default=None, description="The values", examples=[{"size": 24}]
    )
    accept: list[Annotated[str, Field(min_length=1)]] = Field(
        default=[],
        max_length=_ACCEPT_LIMIT,
        description="Files of earlier specs whose reports are still counted",
        examples=[["before-june.toml"]],
    )
    topic: Name | None = Field(
        default=None,
        description="The source topic; by default `NAME.reports`",
        examples=["checkins.reports"],
    )
    hold: Annotated[Any, WithJsonSchema(_HOLD_SCHEMA)] = Field(
        default=None,
        description="Windows of an epoch, in which a device draws once; with the `epsilon` of that "
        "draw, reports are randomised again",
        examples=[24, {"windows": 24, "epsilon": 2.0}],
    )
    one_report: bool = Field(
        default=False, description="Whether devices send a token, and count once in each window"
    )
    partitions: int = Field(
        default=DEFAULT_PARTITIONS,
        ge=1,
        le=_PARTITIONS_LIMIT,
        description="Of topics that the worker creates",
    )
    retention: PositiveDuration = Field(
        default=7 * DAY_MS, description="Of messages in topics that the worker creates"
    )
    precision: PositiveDuration = Field(
        default=SECOND_MS, description="Devices round event times down to this; a divisor of a pane"
    )
    minimum: int = Field(
        default=100, ge=0, description="No combination of answers is about fewer reports"
    )
    minimum_block: int = Field(
        default=0,
        ge=0,
        description="The same for disclosed blocks; above 1, open windows are never shown",
    )
    window: WindowTable = WindowTable()
    spread: SpreadTable | None = None
    rejected: Literal["copy", "count"] = Field(
        default="copy", description="Whether to copy rejected and late messages to their topics"
    )
    publish: PublishTable = PublishTable()
    estimand: Estimand = Field(default="respondents", description=HELPS["estimand"])
    method: Method = Field(default="padded", description=HELPS["method"])
    project: Projection | None = Field(
        default=None, description=HELPS["project"], examples=["none"]
    )
    confidence: Unit = Field(default=0.95, description=HELPS["confidence"])
    sharpest: int = Field(
        default=SHARPEST,
        ge=1,
        le=_SHARPEST_LIMIT,
        description="Reports at which anytime bounds are narrowest",
    )

    title: Text | None = Field(
        default=None, description="What people call it", examples=["Trips by mode"]
    )
    description: Annotated[str, Field(max_length=1_000)] | None = Field(
        default=None, description="What it is about, in a sentence", examples=["Main mode of a day"]
    )
    unit: Text | None = Field(
        default=None, description="Of its values, or of the numbers of an interval", examples=["km"]
    )
    axes: list[Text] | None = Field(
        default=None, description="Names of the dimensions", examples=[["hour", "zone"]]
    )
    block_names: list[Text] | None = Field(
        default=None,
        description="Names of the disclosed blocks, in order; ranges ask for them by name",
        examples=[["north", "south"]],
    )
    value_labels: dict[str, Names] = Field(
        default={},
        description="What people read in place of a value's label; for records by attribute",
        examples=[{"1": "never", "2": "daily"}],
    )
    geojson: str | None = Field(
        default=None,
        description="A file with the shapes of the blocks, whose `id` is a number or name",
        examples=["districts.geojson"],
    )
    annotations: str | None = Field(
        default=None,
        description="A CSV file of events, `time,text`, that the page shows with its windows; read "
        "again whenever it is asked for",
        examples=["events.csv"],
    )

    @model_validator(mode="before")
    @classmethod
    def _leave_to_the_mechanism(cls, table: object) -> object:
        if not isinstance(table, dict):
            return table
        return {key: value for key, value in table.items() if key not in MECHANISM_KEYS}


class FileTable(Table):
    """The whole file."""

    kafka: KafkaTable = KafkaTable()
    worker: WorkerConfig = WorkerConfig()
    gateway: GatewayConfig = GatewayConfig()
    collection: dict[Name, CollectionTable] = Field(default={})


def known_keys() -> dict[str, list[str]]:
    """Return the keys of every table by its path, names of collections and attributes as `"*"`."""
    tables: dict[str, type[BaseModel]] = {
        "": FileTable,
        "worker": WorkerConfig,
        "gateway": GatewayConfig,
        'collection."*"': CollectionTable,
        'collection."*".window': WindowTable,
        'collection."*".spread': SpreadTable,
        'collection."*".publish': PublishTable,
        'collection."*".publish.attributes."*"': AttributeTable,
    }
    keys = {
        path: [field.alias or name for name, field in table.model_fields.items()]
        for path, table in tables.items()
    }
    keys['collection."*"'][1:1] = MECHANISM_KEYS
    return keys
