"""`[kafka]`: the brokers' addresses, and settings of the clients."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ldpstream.agents.config.client_options import FILES, OPTIONS, SECRETS
from ldpstream.agents.config.errors import ConfigError, key_path, unknown_key
from ldpstream.agents.config.serving import read_secret


@dataclass(frozen=True, kw_only=True)
class KafkaConfig:
    """`[kafka]`, with files relative to the configuration file, and concealed secrets."""

    bootstrap: str
    options: Mapping[str, Any]
    """Settings for the functions of `ldpstream.agents.kafka.clients`."""


def read_options(
    table: Mapping[str, Any], *, base: Path, environment: Mapping[str, str]
) -> dict[str, Any]:
    """Return the clients' settings from `[kafka]`; the clients check the values.

    Raises:
        ConfigError: for an unknown key, or an unknown form of secret.
    """
    for key in table:
        if key not in OPTIONS:
            known = ["bootstrap", *sorted(OPTIONS)]
            raise ConfigError(key_path(["kafka", key]), unknown_key(key, known))
    options = dict(table)
    for key, value in table.items():
        if key in SECRETS:
            options[key] = read_secret(f"kafka.{key}", value, base=base, environment=environment)
        elif key in FILES and isinstance(value, str):
            options[key] = str(base / value)
    return options
