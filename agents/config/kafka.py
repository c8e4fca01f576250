"""`[kafka]`: where the brokers are, and every other key for the clients."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ldpstream.agents.client_options import FILES, SECRETS
from ldpstream.agents.config.errors import ConfigError
from ldpstream.agents.secret import EnvironmentSecret, FileSecret, GivenSecret, Secret

_SOURCES: Final = '{ env = "NAME" } or { file = "PATH" }'


@dataclass(frozen=True, kw_only=True)
class KafkaConfig:
    """`[kafka]`, with files relative to the configuration file, and secrets concealed."""

    bootstrap: str
    options: Mapping[str, Any]
    """Settings as the functions of `ldpstream.agents.clients` take them."""


def read_options(
    table: Mapping[str, Any], *, base: Path, environment: Mapping[str, str]
) -> dict[str, Any]:
    """Return the keys of `[kafka]` for the clients: what they mean is checked there.

    Raises:
        ConfigError: for a secret in a form that we do not know.
    """
    options = dict(table)
    for key, value in table.items():
        if key in SECRETS:
            options[key] = _secret(key, value, base, environment)
        elif key in FILES and isinstance(value, str):
            options[key] = str(base / value)
    return options


def _secret(key: str, value: object, base: Path, environment: Mapping[str, str]) -> Secret:
    match value:
        case str():
            return GivenSecret(value)
        case {"env": str(name), **others} if name and not others:
            return EnvironmentSecret(name, environment)
        case {"file": str(path), **others} if path and not others:
            return FileSecret(base / path)
        case _:
            # What was got instead may be the secret itself.
            raise ConfigError(f"kafka.{key}", f"expected a string, {_SOURCES}")
