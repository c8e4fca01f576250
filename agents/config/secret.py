"""Secrets in the configuration: read only where they are needed, and never shown.

A secret in the configuration, an environment variable or a file of its own becomes a `Secret`,
whose repr does not show it. It is read when a client or server is created; other commands do
not need it.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


class SecretError(ValueError):
    """A secret cannot be read; the message says what was expected where."""


class Secret(ABC):
    """A text that only a client or server may use."""

    @abstractmethod
    def reveal(self) -> str:
        """Return the secret, which is never empty."""


@dataclass(frozen=True)
class GivenSecret(Secret):
    """A secret in the configuration file itself."""

    text: str = field(repr=False)

    def reveal(self) -> str:
        if not self.text:
            raise SecretError("expected a text, got an empty one")
        return self.text


@dataclass(frozen=True)
class EnvironmentSecret(Secret):
    """A secret in an environment variable: `{ env = "NAME" }`."""

    variable: str
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)

    def reveal(self) -> str:
        value = self.environment.get(self.variable)
        if not value:
            raise SecretError(f"expected the environment variable {self.variable} to be set")
        return value


@dataclass(frozen=True)
class FileSecret(Secret):
    """A secret in its own file, without the final newline: `{ file = "PATH" }`."""

    path: Path

    def reveal(self) -> str:
        try:
            text = self.path.read_text("utf-8")
        except OSError as error:
            raise SecretError(f"cannot read {self.path}: {error.strerror}") from error
        except UnicodeDecodeError:
            # The original message would show part of the file.
            raise SecretError(f"expected UTF-8 in {self.path}") from None
        text = text.removesuffix("\n").removesuffix("\r")
        if not text:
            raise SecretError(f"expected the secret in {self.path}, but the file is empty")
        return text
