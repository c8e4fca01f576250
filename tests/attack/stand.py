"""Where an attack runs: the commands of this checkout, one broker, one folder."""

import itertools
import os
import subprocess
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests import forked
from tests.brokers import Broker
from tests.configuring import configuration
from tests.forked import Forked
from tests.processes import Worker

COLLECTION: Final = """mechanism = "block-hadamard"
epsilon = 1.0
domain = { size = 12 }
partitions = 1
precision = "1s"
minimum = 1
window = { size = "1m" }"""
_numbers = itertools.count()


@dataclass(frozen=True)
class Outcome:
    """What came of an attack: whether the product held, and the figure that shows it."""

    held: bool
    figure: str


@dataclass(frozen=True)
class Attack:
    """One attack. `claim` is what must hold; `run` tries to break it."""

    name: str
    claim: str
    run: Callable[["Stand"], Awaitable[Outcome]]


@dataclass(frozen=True)
class Stand:
    """Runs commands against a broker.

    `short` asks an attack to show the same with less time and memory, as the tests do.
    """

    broker: Broker
    folder: Path
    short: bool = True

    def configure(self, collections: Mapping[str, str], *, name: str = "ldpstream.toml") -> Path:
        """Write a configuration of whole tables by name, without `topic`, and return its path.

        Topics and the worker's id are used by no other attack.
        """
        run = f"attack-{os.getpid()}-{next(_numbers)}"
        file = self.folder / f"{run}-{name}"
        file.write_text(configuration(self.broker, collections, run=run))
        return file

    def run(
        self, *arguments: str, stdin: bytes = b"", seconds: float = 120
    ) -> "subprocess.CompletedProcess[bytes]":
        """Run `ldpstream ARGUMENTS` to its end and return what it said, exit code included."""
        return forked.run(arguments, stdin=stdin, seconds=seconds, folder=self.folder)

    def begin(self, *arguments: str) -> Forked:
        """Begin `ldpstream ARGUMENTS`, whose end the caller sees to."""
        return Forked(arguments, folder=self.folder)

    @contextmanager
    def serving(self, *arguments: str, seconds: float = 120) -> Iterator[Worker]:
        """Run `ldpstream ARGUMENTS`, wait for its line `ready`, and kill it at the end."""
        worker = Worker(Forked(arguments))
        try:
            worker.wait_ready(seconds=seconds)
            yield worker
        finally:
            worker.kill()


def resident_bytes(pid: int, *, most: bool = True) -> int:
    """Return the memory of a process and of those it has started: the most so far, or now."""
    process = Path(f"/proc/{pid}")
    started = [
        int(one)
        for children in process.glob("task/*/children")
        for one in children.read_text().split()
    ]
    status = process.joinpath("status").read_text().splitlines()
    field = "VmHWM:" if most else "VmRSS:"
    own = sum(int(line.split()[1]) << 10 for line in status if line.startswith(field))
    return own + sum(resident_bytes(one, most=most) for one in started)
