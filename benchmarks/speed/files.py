"""Reports in files: `python -m benchmarks.speed.files [--lines N] [--rounds N]`.

Prints the processor time (median of the rounds, user and system) of `privatize` and `estimate` over
a file of values and over the reports of these, without times and with times of a day, as lines and
as Arrow tables, each in a process of its own. The limit of the same round is a Python that reads
the lines and does nothing.
"""

import argparse
import random
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.speed.start import COLLECTION, COMMAND, cpu_seconds, keep_compiled
from ldpstream.agents.cli.terminal.columnar import import_arrow
from ldpstream.mechanisms.base.times import format_time

_READ = "import sys\nfor line in open(sys.argv[1], 'rb'): pass"
_START_MS = 1_795_255_200_000


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure commands that read and write files.")
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        keep_compiled(Path(folder))
        rows = _measure(Path(folder), given.lines, given.rounds)
    table = Table(title=f"{given.lines:,} lines, median of {given.rounds}")
    for heading in ("what", "CPU s", "times reading the lines"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    for name, (own, limit) in rows.items():
        ratio = median(a / b for a, b in zip(own, limit, strict=True))
        table.add_row(name, f"{median(own):.2f}", f"{ratio:.1f}")
    Console(width=100).print(table)


def _measure(
    folder: Path, lines: int, rounds: int
) -> Mapping[str, tuple[Sequence[float], Sequence[float]]]:
    """Return the seconds of each command, and those of reading its lines."""
    drawn = random.Random(1)
    numbers = [drawn.randrange(256) for _ in range(lines)]
    moments = [format_time(_START_MS + 1_000 * drawn.randrange(86_400)) for _ in range(lines)]
    config = folder / "ages.toml"
    config.write_text(COLLECTION)
    plain, timed = folder / "values", folder / "timed"
    plain.write_text("".join(f"{number}\n" for number in numbers))
    timed.write_text("".join(f"{t},{n}\n" for t, n in zip(moments, numbers, strict=True)))
    pa = import_arrow("pyarrow")
    columns = {"value": pa.array(numbers)}
    _write(folder / "values.arrow", columns)
    times = pa.array(moments).cast(pa.timestamp("ms", tz="UTC"))
    _write(folder / "timed.arrow", {"time": times, **columns})
    rows: dict[str, tuple[list[float], list[float]]] = {}
    for _ in range(rounds):
        for name, suffix, options in (
            ("values", "", []),
            ("timed", ", times", ["--times", "--replay"]),
            ("values.arrow", ", tables", ["--to", str(folder / "reports.arrow")]),
            (
                "timed.arrow",
                ", tables with times",
                ["--times", "--replay", "--to", str(folder / "reports.arrow")],
            ),
        ):
            values = folder / name
            reports = folder / ("reports.arrow" if "--to" in options else "reports")
            base = ["-c", COMMAND, "privatize", "-c", str(config), *options, "ages"]
            commands = {
                f"privatize{suffix}": (values, [*base, str(values)]),
                f"estimate{suffix}": (
                    reports,
                    ["-c", COMMAND, "estimate", "-c", str(config), "ages", str(reports)],
                ),
            }
            for command, (source, arguments) in commands.items():
                own, limit = rows.setdefault(command, ([], []))
                output = reports if source is values and "--to" not in options else None
                own.append(cpu_seconds(arguments, output=output))
                limit.append(cpu_seconds(["-c", _READ, str(source)]))
    return rows


def _write(path: Path, columns: Mapping[str, Any]) -> None:
    table = import_arrow("pyarrow").table(dict(columns))
    with import_arrow("pyarrow.ipc").new_file(path, table.schema) as writer:
        writer.write_table(table)


if __name__ == "__main__":
    main()
