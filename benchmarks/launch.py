"""Workers that are started as operators start them: a new process that imports all it needs."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from tests.processes import Worker

_PROGRAM = "import sys; from ldpstream.agents.cli.main import main; main(sys.argv[1:])"


def launch(
    file: Path,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    stderr: int | IO[bytes] | None = None,
) -> Worker:
    """Start a worker by a configuration; the caller has to kill it."""
    words = [sys.executable, "-c", _PROGRAM, "worker", "-c", str(file), *arguments]
    variables = {**os.environ, **(environment or {})}
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=stderr, env=variables)
    return Worker(process)
