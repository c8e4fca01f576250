"""An attacker who asks everything and subtracts, against the state machine and what HTTP resolves.

    python -m benchmarks.resilience.subtract --runs 10000

Each run is a random collection (windows, `minimum`, partitions; half of them with blocks and
`minimum_block`) under a random schedule of crashes, takeovers, workers that lag behind, partitions
added and panes that expire. Every report has a symbol of its own, so each answer reveals which
reports it holds. Exit status 1 if fewer reports than the minimum can be isolated, of a pane or of a
disclosed block. To show that the attack works, `--live` answers with all that is counted, withheld
only below the minimum, and `--unmerged` with every block by itself: these end with the first run in
which the attacker succeeds.
"""

import argparse
import json
import sys
import time

from tests.stream.mutants import MUTANTS
from tests.stream.simulation.curious import CuriousChecks, CuriousWorld, isolated
from tests.stream.simulation.curious_blocks import BlockChecks, BlockWorld
from tests.stream.simulation.run import explain, run

_EVERY = 500


def _world(seed: int) -> type[CuriousWorld]:
    # The lower bits of a seed choose the broker and the kind of timestamps.
    return BlockWorld if seed // 16 % 2 else CuriousWorld


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    broken = parser.add_mutually_exclusive_group()
    live, unmerged = "minimum: the live view", "minimum_block: nothing merged"
    broken.add_argument("--live", action="store_const", dest="broken", const=MUTANTS[live].make)
    broken.add_argument(
        "--unmerged", action="store_const", dest="broken", const=MUTANTS[unmerged].make
    )
    asked = parser.parse_args()
    began = time.monotonic()
    told = sets = finals = withheld = 0
    smallest: dict[str, int] = {}
    for seed in range(asked.first, asked.first + asked.runs):
        make = asked.broken or _world(seed)
        done = run(seed, make=make)
        if done.violated:
            print(f"seed {seed}, after {time.monotonic() - began:.0f} s: {done.violated}")
            if not asked.broken:
                print(explain(seed, make=make))
            return 1
        checks = done.world.checks
        assert isinstance(checks, CuriousChecks)
        found = isolated(checks.told)
        told, sets = told + len(checks.told), sets + len(found)
        finals += len(checks.published)
        withheld += sum(json.loads(content)[7] for content in checks.published.values())
        context = done.world.context
        _note(smallest, f"minimum {context.minimum}", found)
        if isinstance(checks, BlockChecks):
            blocks = isolated(checks.told_blocks)
            told, sets = told + len(checks.told_blocks), sets + len(blocks)
            _note(smallest, f"minimum_block {context.minimum_block}", blocks)
        ran = seed - asked.first + 1
        if ran % _EVERY == 0:
            print(f"{ran:,} runs: {sets:,} sets ({time.monotonic() - began:.0f} s)", flush=True)
    print(
        f"{asked.runs:,} runs from seed {asked.first}: {told:,} answers that differ, {sets:,} sets "
        f"of reports that they isolate; the smallest: {dict(sorted(smallest.items()))}; "
        f"{finals:,} finals, {withheld:,} of them withheld ({time.monotonic() - began:.0f} s)"
    )
    return 0


def _note(smallest: dict[str, int], name: str, found: list[int]) -> None:
    least = min((one.bit_count() for one in found), default=0)
    if least:
        smallest[name] = min(smallest.get(name, least), least)


if __name__ == "__main__":
    sys.exit(main())
