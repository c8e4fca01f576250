"""Examples and schemas of the keys that mechanisms and domains read themselves, without a model.

The models in `tables`, `worker` and `gateway` hold examples of their own keys.
"""

import json
from collections.abc import Mapping
from typing import Final

from ldpstream.agents.config.errors import key_path
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.domains.parse import DOMAIN_KEYS, OF_RECORDS
from ldpstream.mechanisms.interface.settings import MECHANISM_KEYS
from ldpstream.mechanisms.registry.attributes import ATTRIBUTE_KEYS

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
