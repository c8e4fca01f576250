"""Running commands in tests: in this process, or as processes of their own."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from ldpstream.agents.cli.main import main
from ldpstream.agents.config import CollectionConfig, load_config
from tests import forked
from tests.forked import Forked
from tests.stream.logs import logging_restored

PLACES = """
[collection.places]
mechanism = "block-hadamard"
epsilon = 3.0
domain = { grid = [2, 3], blocks = [2, 1] }
minimum = 1

[collection.modes]
mechanism = "high-low"
epsilon = 1.0
domain = { values = ["bus", "train", "walk, slowly"] }
sensitive = ["bus"]
minimum = 1

[collection.ages]
mechanism = "block-hadamard"
epsilon = 3.0
domain = { interval = [0.0, 100.0], bins = 10 }
minimum = 1
"""


def configured(folder: Path, text: str = PLACES) -> str:
    """Write a configuration and return its path."""
    file = folder / "ldpstream.toml"
    file.write_text(text)
    return str(file)


def configured_modes(folder: Path, text: str) -> CollectionConfig:
    """Write a configuration and return its collection `modes`."""
    return load_config(configured(folder, text)).collections["modes"]


def invoke(*arguments: str, stdin: str | bytes = "") -> Result:
    """Run a command in this process."""
    with logging_restored():
        return CliRunner().invoke(main, list(arguments), input=stdin)


def certified(file: str, *options: str) -> list[dict[str, Any]]:
    """Return what `certify` prints of each collection of a file, whether it passes or not."""
    printed: list[dict[str, Any]] = json.loads(invoke("certify", "-c", file, *options).stdout)[
        "collections"
    ]
    return printed


def begin(*arguments: str) -> Forked:
    """Start a command as a process of its own."""
    return Forked(arguments, strict=True)


def spawn(
    *arguments: str, stdin: bytes = b"", environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a command as a process of its own."""
    return forked.run(arguments, stdin=stdin, environment=environment, strict=True)


def refused(result: Result, code: int = 2) -> str:
    """Return the one plain message of a command that was refused."""
    assert result.exit_code == code, result.output
    assert isinstance(result.exception, SystemExit)
    assert "Traceback" not in result.stderr
    assert result.stderr.count("\n") == 1
    return result.stderr.removesuffix("\n")
