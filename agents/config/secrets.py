"""Read where a secret is: in the configuration, in an environment variable, or in a file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ldpstream.agents.config.errors import ConfigError
from ldpstream.agents.config.secret import EnvironmentSecret, FileSecret, GivenSecret, Secret

_SOURCES: Final = '{ env = "NAME" } or { file = "PATH" }'


def read_secret(path: str, value: object, *, base: Path, environment: Mapping[str, str]) -> Secret:
    """Return the secret that a key's value refers to; paths are relative to `base`.

    Raises:
        ConfigError: for an unknown form, naming the key's path.
    """
    match value:
        case str():
            return GivenSecret(value)
        case {"env": str(name), **others} if name and not others:
            return EnvironmentSecret(name, environment)
        case {"file": str(file), **others} if file and not others:
            return FileSecret(base / file)
        case _:
            # The value may be the secret itself, so it is not shown.
            raise ConfigError(path, f"expected a string, {_SOURCES}")
