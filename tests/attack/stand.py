"""Where an attack runs: one checkout's commands, one broker, one folder."""

import itertools
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from tests import forked
from tests.brokers import Broker
from tests.configuring import configuration
from tests.forked import Forked
from tests.processes import Worker

_MAIN: Final = "import sys; from ldpstream.agents.cli.main import main; main(sys.argv[1:])"
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


def each_and_all(
    name: str, claim: str, run: Callable[..., Awaitable[Outcome]], kinds: Iterable[str]
) -> tuple[Attack, ...]:
    """Return an attack of each kind, and one of all kinds together; `run` takes the kinds."""
    all_kinds = tuple(kinds)
    each = [Attack(f"{name}-{kind}", claim, partial(run, attacks=(kind,))) for kind in all_kinds]
    together = "the same under all of these together"
    return *each, Attack(f"{name}-all-at-once", together, partial(run, attacks=all_kinds))


@dataclass(frozen=True)
class Stand:
    """Runs the commands of a `checkout`, the root of a source tree, against a broker.

    `short` asks an attack to show the same with less time and memory, as the tests do.
    """

    checkout: Path
    broker: Broker
    folder: Path
    short: bool = True
    forked: bool = False
    """Whether commands are forked from a process that has imported this checkout's own code."""

    def configure(self, collections: Mapping[str, str], *, name: str = "ldpstream.toml") -> Path:
        """Write a configuration of whole tables by name, without `topic`, and return its path.

        Topics and the worker's id are used by no other attack.
        """
        run = f"attack-{os.getpid()}-{next(_numbers)}"
        file = self.folder / f"{run}-{name}"
        file.write_text(configuration(self.broker, collections, run=run))
        return file

    def run(
        self, *arguments: str, stdin: bytes = b"", stdout: Path | None = None, seconds: float = 120
    ) -> "subprocess.CompletedProcess[bytes]":
        """Run `ldpstream ARGUMENTS` to its end and return what it said, exit code included.

        With `stdout` its output goes to that file.
        """
        with ExitStack() as stack:
            if self.forked:
                return forked.run(
                    arguments,
                    stdin=stdin,
                    stdout=None if stdout is None else stack.enter_context(stdout.open("wb")),
                    seconds=seconds,
                    environment=self._environment(),
                    folder=self.folder,
                )
            out = subprocess.PIPE if stdout is None else stack.enter_context(stdout.open("wb"))
            return subprocess.run(
                self._command(arguments),
                input=stdin,
                stdout=out,
                stderr=subprocess.PIPE,
                cwd=self.folder,
                env=self._environment(),
                timeout=seconds,
            )

    def begin(self, *arguments: str) -> "subprocess.Popen[bytes] | Forked":
        """Begin `ldpstream ARGUMENTS`, whose end the caller sees to."""
        if self.forked:
            return Forked(arguments, environment=self._environment(), folder=self.folder)
        return subprocess.Popen(
            self._command(arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.folder,
            env=self._environment(),
        )

    @contextmanager
    def serving(self, *arguments: str, seconds: float = 120) -> Iterator[Worker]:
        """Run `ldpstream ARGUMENTS`, wait for its line `ready`, and kill it at the end."""
        if self.forked:
            worker = Worker(Forked(arguments, stderr=subprocess.PIPE, environment=os.environ))
        else:
            process = subprocess.Popen(
                self._command(arguments),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self.folder,
                env=self._environment(),
            )
            worker = Worker(process)
        try:
            worker.wait_ready(seconds=seconds)
            yield worker
        finally:
            worker.kill()

    @staticmethod
    def _command(arguments: tuple[str, ...]) -> list[str]:
        return [sys.executable, "-c", _MAIN, *arguments]

    def _environment(self) -> dict[str, str]:
        # Ahead of what is installed, so that another checkout's code runs in this environment.
        return {**os.environ, "PYTHONPATH": str(self.checkout / "src")}


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
