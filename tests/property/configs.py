"""Configurations for tests, as the tables that TOML gives."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from ldpstream.agents.config import ConfigError, read_config

MINIMAL: dict[str, Any] = {
    "mechanism": "block-hadamard",
    "epsilon": 1.0,
    "domain": {"size": 8},
    "window": {"size": "1h"},
}


def with_keys(keys: dict[str, Any]) -> dict[str, Any]:
    """Return the minimal collection with keys (dots between tables) set to values."""
    table = deepcopy(MINIMAL)
    for path, value in keys.items():
        *parents, last = path.split(".")
        target = table
        for parent in parents:
            target = target.setdefault(parent, {})
        target[last] = value
    return table


def read(table: dict[str, Any], **others: Any) -> Any:
    return read_config({"collection": {"checkins": table}, **others}, base=Path(), environment={})


def refusal(tables: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        read_config(tables, base=Path(), environment={})
    message = str(caught.value)
    assert "\n" not in message
    return message
