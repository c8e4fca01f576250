"""What a newcomer waits for: `python -m benchmarks.speed.start [--rounds N]`.

Prints the processor time (median, user and system) of `import ldpstream`, of each command's help,
and of two commands over 1,000 lines, each in a process of its own and beside a limit of the same
round: Python that imports numpy, or, for help, click. Modules are compiled, as an installed package
has them; compiling those of a checkout at each start takes half as long again. Then what a worker
without a backlog takes from its start until it is ready, over the embedded broker, its resident
memory, and what imports add to the memory of a process, package by package in the worker's order.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table
from tests.brokers import broker
from tests.lab import Lab
from tests.processes import Worker

from ldpstream.agents.cli.main import COMMANDS

_IDLE_SECONDS = 2.0
"""Until memory is read: what a worker loads once it is ready belongs to it."""
COMMAND = "from ldpstream.agents.cli.main import main; main()"
COLLECTION = """
[collection.ages]
mechanism = "block-hadamard"
epsilon = 1.0
domain = { size = 256 }
window = { size = "1h" }
"""
_IMPORTS = """
import builtins, sys
def resident():
    for line in open("/proc/self/status"):
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
owner, added, last = [], {"python": resident()}, resident()
plain = builtins.__import__
def charge():
    global last
    now = resident()
    name = owner[-1] if owner else "python"
    added[name] = added.get(name, 0.0) + now - last
    last = now
def traced(name, *rest, **named):
    relative = len(rest) > 3 and rest[3]
    top = (rest[0]["__package__"] if relative else name).partition(".")[0]
    if owner and owner[-1] == top or top in sys.builtin_module_names:
        return plain(name, *rest, **named)
    charge()
    known = top in sys.stdlib_module_names
    owner.append(owner[-1] if known and owner else top)
    try:
        return plain(name, *rest, **named)
    finally:
        charge()
        owner.pop()
builtins.__import__ = traced
from ldpstream.agents.cli.main import find_command
find_command("worker")
import ldpstream.agents.worker, ldpstream.agents.web.server
builtins.__import__ = plain
for name, size in sorted(added.items(), key=lambda item: -item[1])[:12]:
    print(name, f"{size:.1f}")
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the first output of everything.")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        keep_compiled(Path(folder))
        _show_commands(Path(folder), given.rounds)
        _show_worker(Path(folder), given.rounds)
    _show_imports()


def _show_commands(folder: Path, rounds: int) -> None:
    file = folder / "ages.toml"
    file.write_text(COLLECTION)
    values, reports = folder / "values", folder / "reports"
    values.write_text("".join(f"{number % 256}\n" for number in range(1_000)))
    privatize = ["-c", COMMAND, "privatize", "-c", str(file), "ages", str(values)]
    reports.write_bytes(subprocess.check_output([sys.executable, *privatize]))
    calls = {
        "import numpy": ["-c", "import numpy"],
        "import ldpstream": ["-c", "import ldpstream"],
        "from ldpstream import mechanisms": ["-c", "import ldpstream.mechanisms as m; m.Mechanism"],
        "privatize, 1,000 lines": privatize,
        "estimate, 1,000 lines": [
            "-c",
            COMMAND,
            "estimate",
            "-c",
            str(file),
            "ages",
            str(reports),
        ],
        "import click": ["-c", "import click"],
        "--help": ["-c", COMMAND, "--help"],
        **{f"{name} --help": ["-c", COMMAND, name, "--help"] for name in COMMANDS},
    }
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, arguments in calls.items():
            seconds[name].append(cpu_seconds(arguments))
    table = Table(title=f"processor time, median of {rounds}")
    for heading in ("what", "ms", "times import numpy"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    for name, times in seconds.items():
        ratio = median(a / b for a, b in zip(times, seconds["import numpy"], strict=True))
        table.add_row(name, f"{1000 * median(times):.0f}", f"{ratio:.1f}")
    Console(width=100).print(table)


def keep_compiled(folder: Path) -> None:
    """Have new processes find modules compiled, as an installed package has them.

    The first round compiles them.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")


def cpu_seconds(
    arguments: Sequence[str],
    *,
    output: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> float:
    """Return the processor time of a Python with these arguments, whose output goes to a file."""
    with (output or Path(os.devnull)).open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            stdout=file,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{arguments} ended with {process.returncode}")
    return used.ru_utime + used.ru_stime


def _show_worker(folder: Path, rounds: int) -> None:
    seconds, memory = [], []
    for number in range(rounds):
        own = folder / str(number)
        own.mkdir()
        with broker("embedded") as running:
            lab = Lab(running, own)
            process = subprocess.Popen(
                [sys.executable, "-c", COMMAND, "worker", "-c", str(lab.file)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            worker = Worker(process)
            try:
                worker.wait_ready()
                fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
                # utime and stime, in hundredths of a second on every Linux.
                seconds.append((int(fields[11]) + int(fields[12])) / 100)
                time.sleep(_IDLE_SECONDS)
                pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
                memory.append(pages * os.sysconf("SC_PAGE_SIZE") / 2**20)
            finally:
                worker.kill()
    print(
        f"worker: ready after {median(seconds):.2f} s of processor time, {median(memory):.0f} MiB"
    )


def _show_imports() -> None:
    print("what its imports add to the memory of a process, MiB:")
    print(subprocess.check_output([sys.executable, "-c", _IMPORTS], text=True), end="")


if __name__ == "__main__":
    main()
