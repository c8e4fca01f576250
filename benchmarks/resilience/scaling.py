"""How long counting stops while workers come, go, die and are restarted, and whether it is exact.

    python -m benchmarks.resilience.scaling
    python -m benchmarks.resilience.scaling --before 5846c59 --rounds 3

Every scene is played while reports flow to four partitions of each collection. Then all windows are
closed: every final has to agree with the record of all that was sent, and a window's finals have to
be the same bytes, however often they were published. *Longest* is the longest time in which a
partition had a message and counted none; *in all* is the total of such times that lasted for more
than a second in any partition. With `--before` the scenes that an earlier commit knows are played
with its code too. Exits with 1 on any difference, and names the folder of logs.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table
from tests.brokers import KINDS, broker
from tests.checkouts import HERE, extract

from benchmarks.resilience.scenes import SCENES, Outcome, play_all

# These benchmarks are copied into an earlier checkout, whose harness has some other names.
_EARLIER = """
from tests.lab import Lab
if not hasattr(Lab, "context"):
    Lab.context = Lab._context
from benchmarks.resilience.scaling import main
main()
"""


def main() -> None:
    """Play the scenes, print the outcomes, and exit with 1 if one is wrong."""
    parser = argparse.ArgumentParser(description="Change the number of workers under load.")
    parser.add_argument("--broker", choices=KINDS, default="kafka")
    parser.add_argument("--scenes", nargs="*", help="parts of names; by default all")
    parser.add_argument("--seconds", type=float, default=4.0, help="of flow between two steps")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--before", metavar="COMMIT", help="compare with its code")
    parser.add_argument("--json", action="store_true", help="print outcomes and exit with 0")
    given = parser.parse_args()
    wanted = given.scenes or [""]
    names = [scene.name for scene in SCENES if any(part in scene.name for part in wanted)]
    found: dict[str, list[Outcome]] = {}
    with tempfile.TemporaryDirectory(prefix="ldpstream-scaling-") as folder:
        before = _prepared(given.before, Path(folder)) if given.before else None
        for _ in range(given.rounds):
            if before is not None:
                found.setdefault(given.before, []).extend(_played(before, given))
            with broker(given.broker) as running:
                outcomes = play_all(names, running, step_seconds=given.seconds)
            found.setdefault("now", []).extend(outcomes)
    if given.json:
        print(json.dumps([asdict(outcome) for outcome in found["now"]]))
        return
    Console(width=130).print(_table(names, found))
    wrong = [
        f"{code}, {outcome.scene}: {sentence}"
        for code, outcomes in found.items()
        for outcome in outcomes
        for sentence in outcome.wrong
    ]
    print(*wrong, sep="\n", file=sys.stderr)
    sys.exit(any(outcome.wrong for outcome in found["now"]))


def _prepared(commit: str, folder: Path) -> Path:
    """Return a checkout of an earlier commit that has the benchmarks of this one."""
    checkout = extract(commit, folder)
    shutil.copytree(HERE / "benchmarks", checkout / "benchmarks", dirs_exist_ok=True)
    shutil.copy(HERE / "tests" / "checkouts.py", checkout / "tests")
    return checkout


def _played(checkout: Path, given: argparse.Namespace) -> list[Outcome]:
    options = ["--json", "--broker", given.broker, "--seconds", str(given.seconds)]
    if given.scenes:
        options += ["--scenes", *given.scenes]
    ran = subprocess.run(
        [sys.executable, "-c", _EARLIER, *options],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(checkout / "src"), str(checkout)))},
        stdout=subprocess.PIPE,
        check=True,
    )
    return [Outcome(**outcome) for outcome in json.loads(ran.stdout.splitlines()[-1])]


def _table(names: Sequence[str], found: dict[str, list[Outcome]]) -> Table:
    table = Table(title="seconds without progress, worst of all rounds", title_justify="left")
    for column in ("scene", "code"):
        table.add_column(column)
    for column in ("longest s", "in all s", "reports", "windows", "finals sent", "exact"):
        table.add_column(column, justify="right")
    for name in names:
        for code, outcomes in found.items():
            rounds = [outcome for outcome in outcomes if outcome.scene == name]
            if not rounds:
                table.add_row(name, code, *["-"] * 5, "has no such thing")
                continue
            table.add_row(
                name,
                code,
                f"{max(one.longest_seconds for one in rounds):.1f}",
                f"{max(one.stalled_seconds for one in rounds):.1f}",
                *(
                    f"{sum(numbers):,}"
                    for numbers in zip(
                        *((one.reports, one.windows, one.published) for one in rounds), strict=True
                    )
                ),
                "no" if any(one.wrong for one in rounds) else "yes",
            )
    return table


if __name__ == "__main__":
    main()
