"""Secrets of `[kafka]` and `[worker]`: read where they are needed, and shown nowhere.

A secret in the file itself, in an environment variable or in a file of its own all become a
`Secret`, which shows neither itself nor where it was found in the representation of a
configuration. It is read when a client or server is made: commands that need neither need no
secret.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


class SecretError(ValueError):
    """A secret that cannot be read; the text says what was expected where."""


class Secret(ABC):
    """Something to be told to a broker, or by a client, and to nobody else."""

    @abstractmethod
    def reveal(self) -> str:
        """Return it; never empty.

        Raises:
            SecretError: if it is not where it should be.
        """


@dataclass(frozen=True)
class GivenSecret(Secret):
    """A secret that the configuration file holds itself."""

    text: str = field(repr=False)

    def reveal(self) -> str:
        """Return it.

        Raises:
            SecretError: if it is empty.
        """
        if not self.text:
            raise SecretError("expected a text that is not empty")
        return self.text


@dataclass(frozen=True)
class EnvironmentSecret(Secret):
    """A secret in an environment variable: `{ env = "NAME" }`."""

    variable: str
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)

    def reveal(self) -> str:
        """Return what the variable holds.

        Raises:
            SecretError: if there is no such variable, or nothing in it.
        """
        found = self.environment.get(self.variable)
        if not found:
            raise SecretError(f"expected the environment variable {self.variable} to hold it")
        return found


@dataclass(frozen=True)
class FileSecret(Secret):
    """A secret in a file of its own, without the end of its last line: `{ file = "PATH" }`."""

    path: Path

    def reveal(self) -> str:
        """Return what the file holds now.

        Raises:
            SecretError: if it cannot be read, or is empty.
        """
        try:
            found = self.path.read_text("utf-8")
        except OSError as error:
            raise SecretError(f"cannot read {self.path}: {error.strerror}") from error
        except UnicodeDecodeError:
            # Its text would show a part of what the file holds.
            raise SecretError(f"expected UTF-8 in {self.path}") from None
        found = found.removesuffix("\n").removesuffix("\r")
        if not found:
            raise SecretError(f"expected {self.path} to hold it, but it is empty")
        return found
