"""Secrets of `[kafka]` and `[worker]`: read where they are needed, and never shown.

A secret in the configuration, in an environment variable or in its own file becomes a `Secret`,
whose representation shows neither the secret nor where it was found. It is read when a client or
server is created: other commands do not need it.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


class SecretError(ValueError):
    """A secret that cannot be read; the text says what was expected where."""


class Secret(ABC):
    """A text that may be sent to a broker, or by a client, and to nobody else."""

    @abstractmethod
    def reveal(self) -> str:
        """Return the secret, which is never empty.

        Raises:
            SecretError: if it cannot be read.
        """


@dataclass(frozen=True)
class GivenSecret(Secret):
    """A secret in the configuration file itself."""

    text: str = field(repr=False)

    def reveal(self) -> str:
        """Return the secret.

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
        """Return the variable's value.

        Raises:
            SecretError: if there is no such variable, or it is empty.
        """
        found = self.environment.get(self.variable)
        if not found:
            raise SecretError(f"expected the environment variable {self.variable} to hold it")
        return found


@dataclass(frozen=True)
class FileSecret(Secret):
    """A secret in its own file, without the final newline: `{ file = "PATH" }`."""

    path: Path

    def reveal(self) -> str:
        """Return the file's current contents.

        Raises:
            SecretError: if it cannot be read, or is empty.
        """
        try:
            found = self.path.read_text("utf-8")
        except OSError as error:
            raise SecretError(f"cannot read {self.path}: {error.strerror}") from error
        except UnicodeDecodeError:
            # The error's own text would show part of the file.
            raise SecretError(f"expected UTF-8 in {self.path}") from None
        found = found.removesuffix("\n").removesuffix("\r")
        if not found:
            raise SecretError(f"expected {self.path} to hold it, but it is empty")
        return found
