"""What became slower by 5%? `python -m benchmarks.compare_calls BEFORE [AFTER] [--only TEXT ...]`.

Measures the processor time of the library's calls (`benchmarks.speed.calls`: each mechanism, bound
method, kind of query, plans and certificates) and of commands (first output, and files of 20,000
lines) for two commits, by turns in one run; AFTER is this checkout by default. A third row of
processes, of BEFORE again, shows the machine's noise. What takes more than 1.05 times as long in
the median of the rounds is measured again, by new processes in three times as many rounds, and is
marked *slower* if it stays beyond 1.05 and beyond the noise. Exit status 1 if there is one.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final, Self

import numpy as np
from tests.checkouts import HERE, extract

from benchmarks.speed.calls import CALLS
from benchmarks.speed.start import COLLECTION, COMMAND, cpu_seconds, keep_compiled
from ldpstream.agents.cli.main import COMMANDS

MOST: Final = 1.05
_CALLS_FILE: Final = Path(__file__).parent / "speed" / "calls.py"


class MissingError(RuntimeError):
    """A commit does not have a call; the message is the error that it raises."""


@dataclass(frozen=True)
class Ratios:
    """Processor time of a call: seconds of both commits, and their ratios in each round."""

    name: str
    before: float
    after: float
    ratios: list[float]
    noise: list[float]

    @property
    def ratio(self) -> float:
        return median(self.ratios)

    @property
    def slower(self) -> bool:
        """Whether the ratio is above what is allowed, and above all but a few ratios by noise."""
        return self.ratio > max(MOST, float(np.quantile(self.noise, 0.9)))

    def __str__(self) -> str:
        mark = "slower" if self.slower else "noise" if self.ratio > MOST else ""
        low, high = np.quantile(self.noise, [0.1, 0.9])
        times = f"{1e3 * self.before:,.3f} | {1e3 * self.after:,.3f} | {self.ratio:.2f}"
        return f"| {self.name} | {times} | {low:.2f} to {high:.2f} | {mark} |"


class Process:
    """A process of a checkout that measures calls, and starts the checkout's commands."""

    def __init__(self, checkout: Path, folder: Path) -> None:
        self._environment = {
            **os.environ,
            "PYTHONPATH": str(checkout / "src"),
            "PYTHONHASHSEED": "0",
            "OPENBLAS_NUM_THREADS": "1",
        }
        self._process = subprocess.Popen(
            [sys.executable, str(_CALLS_FILE)],
            env=self._environment,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def measure(self, call: str, commands: Mapping[str, list[str]]) -> float:
        """Return the seconds of a call or a command.

        Raises:
            MissingError: if this commit does not have it.
        """
        if call in commands:
            try:
                return cpu_seconds(commands[call], environment=self._environment)
            except RuntimeError as error:
                raise MissingError(str(error)) from None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(call, file=self._process.stdin, flush=True)
        answer = json.loads(self._process.stdout.readline())
        if isinstance(answer, str):
            raise MissingError(f"{call}: {answer}")
        return float(answer)


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the speed of two commits' calls.")
    parser.add_argument("before")
    parser.add_argument("after", nargs="?", help="this checkout by default")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="*", default=[], help="texts, one of which names contain")
    given = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ldpstream-calls-")))
        keep_compiled(folder)
        commands = write_commands(folder)
        names = [
            name
            for name in (*CALLS, *commands)
            if not given.only or any(text in name for text in given.only)
        ]
        before = extract(given.before, folder)
        after = HERE
        if given.after is not None:
            (folder / "after").mkdir()
            after = extract(given.after, folder / "after")
        checkouts = (before, after, before)
        processes = [stack.enter_context(Process(checkout, folder)) for checkout in checkouts]
        print("| call | before, ms | after, ms | after / before | before / before | |", flush=True)
        print("|---|---:|---:|---:|---:|---|", flush=True)
        slower = False
        for name in names:
            row = compare(name, processes, commands, given.rounds)
            if isinstance(row, Ratios) and row.ratio > MOST:
                # A process may be slow by where its memory lies.
                with ExitStack() as again:
                    fresh = [again.enter_context(Process(one, folder)) for one in checkouts]
                    row = compare(name, fresh, commands, 3 * given.rounds)
            print(row, flush=True)
            slower |= isinstance(row, Ratios) and row.slower
    return int(slower)


def compare(
    name: str, processes: list[Process], commands: Mapping[str, list[str]], rounds: int
) -> Ratios | str:
    """Return what one call takes by turns, or a row that says that it is new.

    Raises:
        MissingError: if the later commit does not have it.
    """
    processes[1].measure(name, commands)
    seconds = np.empty((rounds, len(processes)))
    for number in range(rounds):
        # Each process is first as often as the others, as a machine's speed drifts.
        for turn in range(len(processes)):
            place = (number + turn) % len(processes)
            try:
                seconds[number, place] = processes[place].measure(name, commands)
            except MissingError:
                return f"| {name} | new | | | | |"
    before, after, again = seconds.T
    # Either process of the earlier commit is as good as the other.
    return Ratios(
        name,
        float(np.median(seconds[:, [0, 2]])),
        float(np.median(after)),
        (2.0 * after / (before + again)).tolist(),
        (again / before).tolist(),
    )


def write_commands(folder: Path) -> Mapping[str, list[str]]:
    """Return the arguments of Python for each command, over files that this writes."""
    config, values = folder / "ages.toml", folder / "values"
    timed, reports = folder / "timed", folder / "reports"
    config.write_text(COLLECTION)
    values.write_text("".join(f"{number % 256}\n" for number in range(20_000)))
    timed.write_text("".join(f"2026-11-29T10:{n % 60:02}:00Z,{n % 256}\n" for n in range(20_000)))
    base = ["-c", COMMAND, "privatize", "-c", str(config)]
    plain = [*base, "ages", str(values)]
    reports.write_bytes(subprocess.check_output([sys.executable, *plain]))

    def rows() -> Iterator[tuple[str, list[str]]]:
        yield "import ldpstream", ["-c", "import ldpstream"]
        yield "import ldpstream.mechanisms", ["-c", "import ldpstream.mechanisms as m; m.Mechanism"]
        yield "--help", ["-c", COMMAND, "--help"]
        for command in COMMANDS:
            yield f"{command} --help", ["-c", COMMAND, command, "--help"]
        yield "privatize, a file", plain
        yield "privatize, a file with times", [*base, "--times", "--replay", "ages", str(timed)]
        yield (
            "estimate, a file",
            ["-c", COMMAND, "estimate", "-c", str(config), "ages", str(reports)],
        )
        yield "certify, a collection", ["-c", COMMAND, "certify", "-c", str(config), "ages"]

    return dict(rows())


if __name__ == "__main__":
    sys.exit(main())
