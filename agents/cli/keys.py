"""`ldpstream keys`: every key of a configuration, as a page for readers and a JSON Schema.

Both are generated from the models that read the file.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

import click
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from ldpstream.agents.config.client_options import OPTIONS
from ldpstream.agents.config.tables import EXAMPLES, FileTable, described, toml
from ldpstream.mechanisms.base.times import format_duration
from ldpstream.mechanisms.domains.parse import DOMAIN_KEYS
from ldpstream.mechanisms.interface.settings import MECHANISM_KEYS
from ldpstream.mechanisms.registry.attributes import ATTRIBUTE_KEYS

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


@click.command()
@click.option("--schema", is_flag=True, help="Print a JSON Schema of the file instead.")
@click.option("--documents", is_flag=True, help="Print a JSON Schema of estimate documents.")
def keys(*, schema: bool, documents: bool) -> None:
    """Explain every key of a configuration: type, limits, default and meaning."""
    if documents:
        from ldpstream.agents.document.model import document_schema

        click.echo(json.dumps(document_schema(), indent=2))
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
