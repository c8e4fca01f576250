"""A reference of all configuration keys: a JSON Schema for editors, and a page for readers.

Both are generated from the models that read the file.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from ldpstream.agents.config.client_options import OPTIONS
from ldpstream.agents.config.examples import EXAMPLES, described, toml
from ldpstream.agents.config.tables import FileTable
from ldpstream.mechanisms.base.times import format_duration
from ldpstream.mechanisms.domains.parse import DOMAIN_KEYS
from ldpstream.mechanisms.interface.settings import MECHANISM_KEYS
from ldpstream.mechanisms.registry.attributes import ATTRIBUTE_KEYS

Schema = dict[str, Any]

_HEADING: Final = """# Configuration

Every key of `ldpstream.toml`, as `ldpstream keys` prints them from the models that read the file.
`ldpstream keys --schema` prints a JSON Schema for editors, `ldpstream init` writes a commented file
to start from. Keys without a default have an example in its place. A duration is a number and a
unit: `250ms`, `30s`, `5m`, `1h`, `7d`. Paths are relative to the configuration's folder.
"""
_TYPES: Final = {"integer": "whole number", "boolean": "true or false", "string": "text"}


class _Written(GenerateJsonSchema):
    """Defaults as written in TOML: durations as texts, and no key for None."""

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> Schema:
        written = schema.get("default")
        if written in (None, ()) or isinstance(written, BaseModel):
            return self.generate_inner(schema["schema"])
        found = super().default_schema(schema)
        default = found.get("default")
        if str(found.get("title", "")).startswith("duration") and isinstance(default, int):
            found["default"] = format_duration(default)
        return found


def json_schema() -> Schema:
    """Return the JSON Schema of a configuration file."""
    schema = FileTable.model_json_schema(schema_generator=_Written)
    definitions = schema["$defs"]
    collection = definitions["CollectionTable"]["properties"]
    collection |= {key: described(key, said) for key, said in MECHANISM_KEYS.items()}
    definitions["KafkaTable"]["properties"] |= {
        key: {"description": "The setting of aiokafka's clients"} for key in sorted(OPTIONS)
    }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def page() -> str:
    """Return docs/configuration.md."""
    definitions = json_schema()["$defs"]
    collection = definitions["CollectionTable"]["properties"]
    inner = {"window": "WindowTable", "spread": "SpreadTable", "publish": "PublishTable"}
    own = {key: one for key, one in collection.items() if key not in {*inner, *MECHANISM_KEYS}}
    kafka = {"bootstrap": definitions["KafkaTable"]["properties"]["bootstrap"]}
    parts = [
        _HEADING,
        _table("[kafka]", kafka),
        f"Every other key is a setting of aiokafka's clients: {_names(sorted(OPTIONS))}.\n",
        _table("[worker]", definitions["WorkerConfig"]["properties"]),
        _table("[gateway]", definitions["GatewayConfig"]["properties"]),
        _table("[collection.NAME]", own),
        "Each mechanism reads some of these keys, and refuses the others:\n",
        _meanings(MECHANISM_KEYS),
        "## `domain`\n",
        _meanings(DOMAIN_KEYS),
        "## `domain.attributes.NAME`\n",
        "The keys of a domain and of a mechanism, as above, and:\n",
        _meanings(ATTRIBUTE_KEYS),
        *(_table(key, definitions[name]["properties"]) for key, name in inner.items()),
    ]
    return "\n".join(parts)


def _table(name: str, keys: Mapping[str, Schema]) -> str:
    rows = (
        f"| `{key}` | {_type(one)} | {_default(one)} | {one['description']} |"
        for key, one in keys.items()
    )
    head = (f"## `{name}`", "", "| key | type | default | meaning |", "| --- | --- | --- | --- |")
    return "\n".join([*head, *rows, ""])


def _meanings(keys: Mapping[str, str]) -> str:
    rows = (f"| `{key}` | `{toml(EXAMPLES[key])}` | {said} |" for key, said in keys.items())
    return "\n".join(["| key | example | meaning |", "| --- | --- | --- |", *rows, ""])


def _default(one: Schema) -> str:
    """Return a key's default, and examples where there are any."""
    parts = [f"`{toml(one['default'])}`"] if "default" in one else []
    examples = " or ".join(f"`{toml(example)}`" for example in one.get("examples", ()))
    return ", ".join([*parts, *([f"e.g. {examples}"] if examples else [])])


def _type(one: Schema) -> str:
    return " or ".join(dict.fromkeys(_types(one))) + _limits(one)


def _types(one: Schema) -> Iterator[str]:
    if one.get("title") == "secret":
        yield 'text, `{ env = "NAME" }` or `{ file = "PATH" }`'
    elif "enum" in one:
        yield _names(one["enum"])
    elif "anyOf" in one:
        for other in one["anyOf"]:
            if other != {"type": "null"}:
                yield from _types(other)
    elif one.get("type") == "array":
        yield "list"
    elif one.get("type") == "object":
        yield "table"
    elif str(one.get("title", "")).startswith("duration"):
        yield str(one["title"])
    elif "type" in one:
        yield _TYPES.get(one["type"], str(one["type"]))


def _limits(one: Schema) -> str:
    low, high = one.get("minimum"), one.get("maximum")
    if low is None:
        return ""
    return f", {low:,} or more" if high is None else f", {low:,} to {high:,}"


def _names(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
