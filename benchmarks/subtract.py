"""An attacker who asks everything and subtracts, against the state machine and what HTTP resolves.

    python -m benchmarks.subtract --runs 10000

Each run is a random collection (windows, `minimum`, partitions) under a random schedule of crashes,
takeovers, workers that lag behind, partitions added and panes that expire. Every report has a
symbol of its own, so each answer tells which reports it holds. Exit status 1 where reports fewer
than the minimum can be isolated; `--live` answers with all that is counted instead, withheld below
the minimum, and ends with the first run in which that is found out.
"""

import argparse
import json
import sys
import time

from tests.stream.simulation.broken_parts import LiveView
from tests.stream.simulation.curious import CuriousChecks, CuriousWorld, isolated
from tests.stream.simulation.run import explain, run


def main() -> int:
    """Run the attacker and print what there was to learn."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--live", action="store_true", help="without parts")
    asked = parser.parse_args()
    make = LiveView if asked.live else CuriousWorld
    began = time.monotonic()
    told = sets = finals = withheld = 0
    smallest: dict[int, int] = {}
    for seed in range(asked.first, asked.first + asked.runs):
        done = run(seed, make=make)
        if done.violated:
            print(f"seed {seed}, after {time.monotonic() - began:.0f} s: {done.violated}")
            if not asked.live:
                print(explain(seed, make=make))
            return 1
        checks = done.world.checks
        assert isinstance(checks, CuriousChecks)
        found = isolated(checks.told)
        told, sets = told + len(checks.told), sets + len(found)
        finals += len(checks.published)
        withheld += sum(json.loads(content)[-1] for content in checks.published.values())
        least = min((one.bit_count() for one in found), default=0)
        minimum = done.world.context.minimum
        if least:
            smallest[minimum] = min(smallest.get(minimum, least), least)
    print(
        f"{asked.runs:,} runs from seed {asked.first}: {told:,} answers that differ, {sets:,} sets "
        "of reports that they isolate; the smallest, by minimum: "
        f"{dict(sorted(smallest.items()))}; "
        f"{finals:,} finals, {withheld:,} of them withheld ({time.monotonic() - began:.0f} s)"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
