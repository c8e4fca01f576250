"""A process of devices, driven by lines on its standard input, killed and started again."""

import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Process:
    """A process of the devices `first..end - 1`."""

    fleet: Path
    first: int
    end: int
    running: subprocess.Popen[str] = field(init=False)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Start the process, for the first time or again."""
        words = (
            "benchmarks.resilience.fleet_devices",
            str(self.fleet),
            str(self.first),
            str(self.end),
        )
        self.running = subprocess.Popen(
            [sys.executable, "-m", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def tell(self, line: str) -> None:
        """Write a line to its standard input."""
        assert self.running.stdin is not None
        self.running.stdin.write(f"{line}\n")
        self.running.stdin.flush()

    def answer(self) -> dict[str, int]:
        """Return its answer once the work is done."""
        found = self.answer_or_death()
        if found is None:
            raise RuntimeError(f"devices {self.first} to {self.end} ended by themselves")
        return found

    def answer_or_death(self) -> dict[str, int] | None:
        """Return its answer once the work is done; None if it was killed."""
        assert self.running.stdout is not None
        line = self.running.stdout.readline()
        found: dict[str, int] | None = json.loads(line) if line else None
        return found

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        self.running.kill()
        self.running.communicate()
