"""The long form of the simulation: `python -m tests.stream.simulate [RUNS] [FIRST_SEED]`.

`--world` chooses one: in `intake` workers read through the product's own reader, channel and
intake; in `harsh` they do little else, under elections, pauses and the passing of time.

All invariants must hold in every run; a failing seed prints its shortest schedule.
"""

import argparse
import logging
import sys
import time

from tests.stream.simulation.broken_gathered import Partitions
from tests.stream.simulation.curious import CuriousWorld
from tests.stream.simulation.curious_attributes import AttributeWorld
from tests.stream.simulation.curious_blocks import BlockWorld
from tests.stream.simulation.groups import TwoGroups
from tests.stream.simulation.intake import Harsh, IntakeWorld
from tests.stream.simulation.run import explain, run
from tests.stream.simulation.tokens import TokenWorld
from tests.stream.simulation.uneven import CuriousUnevenWorld, UnevenWorld
from tests.stream.simulation.world import World

WORLDS = {
    "plain": World,
    "several": Partitions,
    "groups": TwoGroups,
    "intake": IntakeWorld,
    "harsh": Harsh,
    "tokens": TokenWorld,
    "uneven": UnevenWorld,
    "minimum": CuriousWorld,
    "attributes": AttributeWorld,
    "blocks": BlockWorld,
    "uneven-minimum": CuriousUnevenWorld,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.stream.simulate")
    parser.add_argument("runs", type=int, nargs="?", default=10_000)
    parser.add_argument("first_seed", type=int, nargs="?", default=0)
    parser.add_argument("--world", choices=WORLDS, default="plain")
    asked = parser.parse_args()
    logging.disable(logging.CRITICAL)
    make, started = WORLDS[asked.world], time.monotonic()
    for seed in range(asked.first_seed, asked.first_seed + asked.runs):
        if run(seed, make=make).violated:
            print(explain(seed, make=make))
            return 1
    seconds = time.monotonic() - started
    print(f"{asked.runs} runs from seed {asked.first_seed}: all invariants hold ({seconds:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
