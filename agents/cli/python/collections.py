"""Collections, from a configuration file or defined in place."""

from pathlib import Path
from typing import Any

from ldpstream.agents.config.collection import CollectionConfig
from ldpstream.agents.config.errors import ConfigError
from ldpstream.agents.config.load import load_config, read_config


def load_collection(path: str | Path, name: str) -> CollectionConfig:
    """Return one collection of a configuration file.

    Raises:
        ConfigError: a ValueError that names the file, the key and what was expected.
    """
    collections = load_config(path).collections
    if name not in collections:
        names = ", ".join(collections)
        raise ConfigError("collection", f"expected one of {names}, got {name}", file=str(path))
    return collections[name]


def define_collection(name: str, **keys: Any) -> CollectionConfig:
    """Return a collection, with the keys of a `[collection.NAME]` table as keywords.

    >>> define_collection("modes", mechanism="high-low", epsilon=1.0, sensitive=["bus"],
    ...     domain={"values": ["bus", "car"]}).spec.domain.size
    2

    Paths in keys are relative to the working directory.

    Raises:
        ConfigError: a ValueError that names the key and what was expected.
    """
    config = read_config({"collection": {name: keys}}, base=Path(), environment={})
    return config.collections[name]
