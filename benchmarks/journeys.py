"""How much code there is to follow: `python -m benchmarks.journeys [--before 5846c59]`.

Prints files, lines, the longest chain of imports, and for four journeys the number of calls of our
functions and of the files that these are in: a value to the bytes of a frame; a frame of 20 reports
to its window's final, and a ledger's report to a broker, both without one; a range over HTTP.
`--calls WORD` lists instead the calls of the journey with this word in its name, in each of the
commits: each function once, in the order of first calls.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from tests.checkouts import HERE, extract


def main() -> None:
    parser = argparse.ArgumentParser(description="Count what there is to follow.")
    parser.add_argument("--before", help="a commit to count as well")
    parser.add_argument("--calls", metavar="WORD", help="list a journey's calls")
    given = parser.parse_args()
    counted = {}
    if given.before:
        with tempfile.TemporaryDirectory(prefix="ldpstream-journeys-") as folder:
            counted[given.before] = count(extract(given.before, Path(folder)))
    counted["now"] = count(HERE)
    if given.calls:
        for commit, one in counted.items():
            for name, calls in one["journeys"].items():
                if given.calls in name:
                    print(f"{name}, {commit}", *dict.fromkeys(calls), "", sep="\n")
        return
    found = {commit: _rows(one) for commit, one in counted.items()}
    table = Table("what", *found)
    for row in found["now"]:
        table.add_row(row, *(f"{rows[row]:,}" for rows in found.values()))
    Console(width=100).print(table)


def count(checkout: Path) -> Any:
    """Return the `figures` of a checkout, and by journey its calls, each as `file function`."""
    script = HERE / "benchmarks" / "journeys_here.py"
    path = os.pathsep.join((str(checkout / "src"), str(checkout)))
    ran = subprocess.run(
        [sys.executable, str(script)],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"},
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(ran.stdout.splitlines()[-1])


def _rows(counted: Any) -> dict[str, int]:
    rows = dict(counted["figures"])
    for name, calls in counted["journeys"].items():
        rows[f"{name}: calls"] = len(calls)
        rows[f"{name}: functions"] = len(set(calls))
        rows[f"{name}: files"] = len({call.split()[0] for call in calls})
    return rows


if __name__ == "__main__":
    main()
