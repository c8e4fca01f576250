"""The long form of the simulation: `python -m tests.stream.simulate [RUNS] [FIRST_SEED]`.

With `--intake` workers read through the product's own reader, channel and intake; with `--harsh`
they do little else, under elections, pauses and the passing of time.

All invariants must hold in every run; a failing seed prints its shortest schedule.
"""

import argparse
import logging
import sys
import time

from tests.stream.simulation.broken_gathered import Partitions
from tests.stream.simulation.groups import TwoGroups
from tests.stream.simulation.intake import Harsh, IntakeWorld
from tests.stream.simulation.run import explain, run
from tests.stream.simulation.tokens import TokenWorld
from tests.stream.simulation.uneven import CuriousUnevenWorld, UnevenWorld
from tests.stream.simulation.world import World

_UNEVEN = {"plain": UnevenWorld, "minimum": CuriousUnevenWorld}


def simulate(runs: int, first_seed: int, *, make: type[World] = World) -> int:
    started = time.monotonic()
    for seed in range(first_seed, first_seed + runs):
        if run(seed, make=make).violated:
            print(explain(seed, make=make))
            return 1
    seconds = time.monotonic() - started
    print(f"{runs} runs from seed {first_seed}: all invariants hold ({seconds:.0f} s)")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.stream.simulate")
    parser.add_argument("runs", type=int, nargs="?", default=10_000)
    parser.add_argument("first_seed", type=int, nargs="?", default=0)
    parser.add_argument("--one-report", action="store_true", help="devices carry tokens")
    parser.add_argument("--intake", action="store_true", help="read through the intake")
    parser.add_argument("--harsh", action="store_true", help="the same, under elections and pauses")
    parser.add_argument("--groups", action="store_true", help="two groups own everything each")
    parser.add_argument("--several", action="store_true", help="several partitions in every run")
    parser.add_argument("--calendar", choices=tuple(_UNEVEN), help="days of uneven lengths")
    asked = parser.parse_args()
    logging.disable(logging.CRITICAL)
    if asked.intake or asked.harsh:
        if asked.one_report:
            parser.error("--intake and --harsh take no --one-report")
        return simulate(asked.runs, asked.first_seed, make=Harsh if asked.harsh else IntakeWorld)
    if asked.several or asked.groups or asked.calendar:
        if asked.one_report:
            parser.error("--several, --groups and --calendar take no --one-report")
        make = _UNEVEN.get(asked.calendar, TwoGroups if asked.groups else Partitions)
        return simulate(asked.runs, asked.first_seed, make=make)
    if asked.one_report:
        return simulate(asked.runs, asked.first_seed, make=TokenWorld)
    return simulate(asked.runs, asked.first_seed)


if __name__ == "__main__":
    sys.exit(main())
