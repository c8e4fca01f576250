"""Commands about the configuration file: `init`, `keys`, `check` and `spec`.

The keys, as a page for readers and as a JSON Schema, are generated from the models that read it.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from ldpstream.agents.cli.terminal.common import (
    load_collection,
    load_shard,
    warn_of_nominal,
)
from ldpstream.agents.cli.terminal.errors import Failed, Refused
from ldpstream.agents.config.client_options import OPTIONS
from ldpstream.agents.config.tables import EXAMPLES, FileTable, described, toml
from ldpstream.agents.config.worker import Shard
from ldpstream.mechanisms.base.times import format_duration
from ldpstream.mechanisms.domains.parse import DOMAIN_KEYS
from ldpstream.mechanisms.interface.settings import MECHANISM_KEYS
from ldpstream.mechanisms.registry.attributes import ATTRIBUTE_KEYS

TEMPLATE: Final = """\
# ldpstream: what devices report, how it is randomised, and which estimates are published.
# Every command takes this file (-c FILE); `ldpstream check -c FILE` checks it against the broker.
# `ldpstream keys` explains every key.

[kafka]
bootstrap = "127.0.0.1:9092"    # several with commas; LDPSTREAM_KAFKA_BOOTSTRAP overrides
# enable_idempotence = false    # only for `ldpstream devbroker`, which has no idempotence
# Other keys are passed to the Kafka clients (TLS, logins):
# security_protocol = "SASL_SSL"
# sasl_mechanism = "SCRAM-SHA-512"
# sasl_plain_username = "ldpstream"
# sasl_plain_password = { env = "KAFKA_PASSWORD" }    # or { file = "PATH" }
# ssl_cafile = "ca.pem"

[worker]
id = "ldpstream"                # consumer group, and prefix of the worker's own topics
http = "127.0.0.1:6066"         # page, API and /metrics; any other address needs a token:
# token = { env = "LDPSTREAM_READ_TOKEN" }    # or { file = "PATH" }
data = "./data"                 # directory for the keys of accepted uploads

[gateway]                       # `ldpstream gateway`: uploads over HTTP
http = "127.0.0.1:8080"
origins = []                    # web pages that may upload, such as "https://survey.example"

# One table per collection. Changing mechanism, epsilon, domain, sensitive or precision makes it a
# different collection to devices and workers: old and new reports are never mixed.
[collection.checkins]
# block-hadamard: a value's block is disclosed, the value within the block is protected.
# randomized-response, subset-selection, projective-geometry: the same, often with less noise;
#                 `ldpstream plan NAME --respondents N` says which has the least here.
# tree:           ordered domains, for ranges and quantiles, with several times less error; made for
#                 `workload = "ranges"` (the default) or "prefixes", a list of [first, last], or
#                 "levels" for whole distributions and maps. Shares are projected, slightly biased,
#                 with the bounds of the unbiased ones, which `project = "none"` publishes.
#                 Where only fixed ranges, sets or linear queries are published, the first four take
#                 `workload = "published"`: reports on what those tell apart, with less error.
# groups:         only the values in `sensitive = [...]` are protected; `share = 0.3` of the people
#                 are taken to have one of them. high-low: the same, with more noise. Or blocks
#                 with a budget each, `epsilon = [0.5, 2.0]`; with `epsilon_outside = 4.0` they are
#                 hidden from each other, too. `sensitive` may be lists with a budget each, and
#                 `epsilon_rest` that of all other values.
# binary:         two values, `epsilon = [from first to second, from second to first]`.
# lip:            two values and `prior = 0.1`, or `prior = { levels = 64 }` and each device's own
#                 prior given with its value; `epsilon` may be a list to choose from, too.
# prior = [0.5, 0.3, 0.2]  the known shares of all values, where a mechanism counts its reports:
#                 Bayesian estimates beside the unbiased ones; `policy = { prior = [...] }` protects
#                 by what a report changes for whoever knows them, `ldpstream plan` has channels.
# l1-geometric:   ordered domains; values d index steps apart are protected by d times epsilon;
#                 with `policy = { metric = "l2" }` d is their straight distance on a grid.
# l1-bits:        the same with a noisy bit per position: for ranges where epsilon * size is small.
# matrix:         any `policy = {...}`, with a `strategy` of linear queries such as "prefix".
# optimal:        a `channel` from a file that `ldpstream plan --optimise FILE` writes.
# Both l1 mechanisms take `weights = { private = 10 }`: devices add a weight in 0..10 to their
#                 value, protected by epsilon per unit, and documents estimate its sums; with
#                 `{ public = 10 }`, which most others take, it is sent in the clear for all.
mechanism = "block-hadamard"
epsilon = 1.0                   # finite and above 0: the smaller, the more private

# Domains: { values = ["bus", "train"] }   { size = 1000 }   { grid = [rows, columns] }
#          { sizes = [64, 64] }   { interval = [0.0, 100.0], bins = 64 }   { file = "places.csv" }
#          { interval = [0.0, 100.0], bins = 10, rounding = "random" }: with l1 mechanisms, numbers
#          are protected by their exact distance, epsilon per width of a bin. 10 bins are for 10,000
#          reports, epsilon = 0.2 and densities of up to kappa = 4 times the even one; `plan` says
#          how many others deserve: B^3 (2 B + a) = kappa^2 a^2 n/32, a = B epsilon.
# Blocks:  absent (one block: classical LDP), a number of consecutive values, [height, width] on a
#          grid, a list of lists of values, or a second column in the file.
domain = { grid = [125, 350], blocks = [25, 35] }

topic = "checkins.reports"      # others get .late .rejected .estimates .control after this name
partitions = 4                  # of the topics that ldpstream creates
# one_report = true             # devices send tokens; one report per device and window counts
# hold = 24                     # devices draw a value's report once in 24 windows and repeat it, at
#                               # the cost of one report; or { windows = 24, epsilon = 2.0 }
retention = "7d"                # of the topics that ldpstream creates
precision = "1s"                # event times are cut to this on the device
minimum = 100                   # no combination of answers is about fewer reports; 0: no promise
# minimum_block = 20            # the same for disclosed blocks; open windows are not shown then

# Windows [start, end) of event time, aligned to the UTC epoch. hop < size makes them overlap.
# A report that arrives within `grace` of its event time is counted, whatever others send; one that
# arrives after its window has closed (end + grace) is late: it is counted as late and copied.
# idle:   a partition silent for this long no longer holds the others back; "off" waits for it.
# future: reports dated more than this after their arrival are rejected; at most grace.
# If only one of grace and future is set, the other equals it; without both they are 1m, or as long
# as size and hop allow. For replays of old events there is also witnesses = 3, say: no window
# closes before this many messages are past it, so that a few wrong dates close nothing.
window = { size = "1h", hop = "1h", grace = "5m", idle = "30s", future = "1m", retention = "7d" }

confidence = 0.95
# spread = { reports = 4, horizon = "1d" }      # devices take part in 4 of the panes of a day
estimand = "respondents"        # or "population": respondents are a sample of a larger population;
                                # or "active": of all who could have reported, by `spread`
# method: padded: holds at one moment, for few reports or many; exact: proved for every number of
# reports, and wider; anytime: holds at every moment of a window at once, for numbers that are
# watched, narrowest at `sharpest` reports; also normal (wrong for rare values) and bernstein.
method = "padded"
sharpest = 10000
rejected = "copy"               # or "count": do not copy rejected messages

# Ranges include both ends; on an interval they lie between edges of bins; one pair per dimension.
# Quantiles need an order; on a grid they are those of each coordinate. Means give values a weight:
# linear = { fare = { bus = 2.5, train = 4 } }, or weights in a list.
publish = { every = "5s", top = 20, ranges = { downtown = [[40, 60], [100, 120]] } }
"""

Schema = dict[str, Any]

_HEADING: Final = """# Configuration

Every key of `ldpstream.toml`, printed by `ldpstream keys` (`--schema`: as a JSON Schema for
editors). `ldpstream init` writes a commented file to start from. A duration is a number and a unit:
`250ms`, `30s`, `5m`, `1h`, `7d`. Paths are relative to the configuration's folder. Of several
values the first is the default.
"""
_ADDED: Final = {
    "secret": '`{ file = "PATH" }` or a text',
    'duration or "off"': 'or `"off"`',
}
"""What a default or an example leaves open, by the title of a type."""


def write_template(file: Path) -> None:
    """Write a commented configuration to a file that does not exist yet."""
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(TEMPLATE)
    except FileExistsError:
        raise Refused(f"{file} already exists: choose another name, or remove it") from None
    except OSError as error:
        # On a full disk it exists by now, and would keep the next try from writing it.
        if file.is_file():
            file.unlink()
        raise Refused(f"{file}: cannot write it: {error.strerror}") from error
    click.echo(f"wrote {file}; next: ldpstream check -c {file}", err=True)


class _Written(GenerateJsonSchema):
    """Defaults as written in TOML: durations as texts, and no key for None."""

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> Schema:
        written = schema.get("default")
        if written in (None, ()) or isinstance(written, BaseModel):
            return self.generate_inner(schema["schema"])
        described_schema = super().default_schema(schema)
        default = described_schema.get("default")
        if str(described_schema.get("title", "")).startswith("duration") and isinstance(
            default, int
        ):
            described_schema["default"] = format_duration(default)
        return described_schema


def print_keys(*, schema: bool, documents: bool) -> None:
    """Print every key of a configuration, or a JSON Schema."""
    if documents:
        from ldpstream.agents.document.model import ChangeDocument, document_schema

        documents_schema, change = document_schema(), ChangeDocument.model_json_schema()
        documents_schema["$defs"] |= change.pop("$defs") | {"ChangeDocument": change}
        click.echo(json.dumps(documents_schema, indent=2))
        return
    click.echo(json.dumps(json_schema(), indent=2) if schema else page(), nl=schema)


def json_schema() -> Schema:
    """Return the JSON Schema of a configuration file."""
    schema = FileTable.model_json_schema(schema_generator=_Written)
    definitions = schema["$defs"]
    collection = definitions["CollectionTable"]["properties"]
    collection |= {key: described(key, meaning) for key, meaning in MECHANISM_KEYS.items()}
    definitions["KafkaTable"]["properties"] |= {
        key: {"description": "The setting of aiokafka's clients"} for key in sorted(OPTIONS)
    }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def page() -> str:
    """Return what `ldpstream keys` prints."""
    definitions = json_schema()["$defs"]
    collection = definitions["CollectionTable"]["properties"]
    inner = {"window": "WindowTable", "spread": "SpreadTable", "publish": "PublishTable"}
    collection_keys = {
        key: key_schema
        for key, key_schema in collection.items()
        if key not in {*inner, *MECHANISM_KEYS}
    }
    kafka = {"bootstrap": definitions["KafkaTable"]["properties"]["bootstrap"]}
    worker = definitions["WorkerConfig"]["properties"]
    gateway = definitions["GatewayConfig"]["properties"]
    shared = [key for key, key_schema in gateway.items() if worker.get(key) == key_schema]
    sections = [
        _HEADING,
        _table("[kafka]", kafka),
        f"Every other key is a setting of aiokafka's clients: {_names(sorted(OPTIONS))}.\n",
        _table("[worker]", worker),
        _table(
            "[gateway]",
            {key: key_schema for key, key_schema in gateway.items() if key not in shared},
        ),
        f"And {_names(shared)}, as under `[worker]`.\n",
        _table("[collection.NAME]", collection_keys),
        "Each mechanism reads some of these keys, and refuses the others:\n",
        _meanings(MECHANISM_KEYS),
        "## `domain`\n",
        _meanings(DOMAIN_KEYS),
        "## `domain.attributes.NAME`\n",
        "The keys of a domain and of a mechanism, as above, and:\n",
        _meanings(ATTRIBUTE_KEYS),
        *(_table(key, definitions[name]["properties"]) for key, name in inner.items()),
    ]
    return "\n".join(sections)


def _table(name: str, keys: Mapping[str, Schema]) -> str:
    rows = (
        f"| `{key}` | {_value(key_schema)} | {_meaning(key_schema)} |"
        for key, key_schema in keys.items()
    )
    head = (f"## `{name}`", "", "| key | default, or an example | meaning |", "| --- | --- | --- |")
    return "\n".join([*head, *rows, ""])


def _meanings(keys: Mapping[str, str]) -> str:
    rows = (f"| `{key}` | `{toml(EXAMPLES[key])}` | {meaning} |" for key, meaning in keys.items())
    return "\n".join(["| key | example | meaning |", "| --- | --- | --- |", *rows, ""])


def _value(key_schema: Schema) -> str:
    """Return a key's default and examples, and what else it may be."""
    if "enum" in key_schema:
        names = _names(
            sorted(key_schema["enum"], key=lambda value: value != key_schema.get("default"))
        )
        return names if "default" in key_schema else f"one of {names}"
    texts = [f"`{toml(key_schema['default'])}`"] if "default" in key_schema else []
    examples = [f"`{toml(example)}`" for example in key_schema.get("examples", ())]
    if examples:
        texts.append(f"e.g. {' or '.join(examples)}")
    titles = [str(other.get("title", "")) for other in (key_schema, *key_schema.get("anyOf", ()))]
    return ", ".join([*texts, *(_ADDED[title] for title in titles if title in _ADDED)])


def _meaning(key_schema: Schema) -> str:
    meaning: str = key_schema["description"]
    low, high = key_schema.get("minimum"), key_schema.get("maximum")
    return meaning if high is None else f"{meaning}; {low:,} to {high:,}"


def _names(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def check_configuration(config_file: str, shard: Shard) -> None:
    """Check configuration, broker, topics and permissions."""
    config = load_shard(config_file, shard).of_shard(shard)
    # Imported late: the Kafka clients take three times as long to load as the configuration.
    from ldpstream.agents.cli.plans.bins import bins_warnings
    from ldpstream.agents.cli.terminal.problems import find_problems

    names = ", ".join(config.collections) or "none"
    warn_of_nominal(config.collections.values())
    for warning in bins_warnings(config.collections.values()):
        click.echo(warning, err=True)
    click.echo(f"{config_file}: collections {names}")
    if shard.total > 1:
        click.echo(f"shard {shard}: group {config.group}")
    for collection in config.collections.values():
        for accepted in collection.accept:
            specs = f"{collection.spec.fingerprint.hex()} and still takes"
            click.echo(f"{collection.name}: counts {specs} {accepted.spec.fingerprint.hex()}")
    if problems := find_problems(config, config_file):
        raise Failed("\n".join(problems))
    click.echo("ok")


def print_spec(config_file: str, name: str) -> None:
    """Print the device document of a collection."""
    _, collection = load_collection(config_file, name)
    click.echo(json.dumps(collection.spec.device_document(), separators=(",", ":")))
