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
from tests.processes import PATIENCE_SECONDS, Worker

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

    def configure(self, collections: Mapping[str, str]) -> Path:
        """Write a configuration of whole tables by name, without `topic`, and return its path.

        Topics and the worker's id are used by no other attack.
        """
        run = f"attack-{os.getpid()}-{next(_numbers)}"
        file = self.folder / f"{run}-ldpstream.toml"
        file.write_text(configuration(self.broker, collections, run=run))
        return file

    def run(self, *arguments: str, stdin: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
        """Run `ldpstream ARGUMENTS` to its end and return what it said, exit code included."""
        return forked.run(arguments, stdin=stdin, seconds=PATIENCE_SECONDS, folder=self.folder)

    @contextmanager
    def serving(self, *arguments: str) -> Iterator[Worker]:
        """Run `ldpstream ARGUMENTS`, wait for its line `ready`, and kill it at the end."""
        worker = Worker(Forked(arguments))
        try:
            worker.wait_ready()
            yield worker
        finally:
            worker.kill()


def resident_bytes(pid: int) -> int:
    """Return the most memory so far of a process and of those it has started."""
    process = Path(f"/proc/{pid}")
    started = [
        int(one)
        for children in process.glob("task/*/children")
        for one in children.read_text().split()
    ]
    status = process.joinpath("status").read_text().splitlines()
    own = sum(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM:"))
    return own + sum(map(resident_bytes, started))
