"""The long form of the simulation: `python -m tests.stream.simulate [RUNS] [FIRST_SEED]`.

All six invariants must hold in every run; a failing seed prints its shortest schedule.
"""

import argparse
import sys
import time

from tests.stream.simulation.run import explain, run


def simulate(runs: int, first_seed: int) -> int:
    started = time.monotonic()
    for seed in range(first_seed, first_seed + runs):
        if run(seed).violated:
            print(explain(seed))
            return 1
    seconds = time.monotonic() - started
    print(f"{runs} runs from seed {first_seed}: all invariants hold ({seconds:.0f} s)")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.stream.simulate")
    parser.add_argument("runs", type=int, nargs="?", default=10_000)
    parser.add_argument("first_seed", type=int, nargs="?", default=0)
    asked = parser.parse_args()
    return simulate(asked.runs, asked.first_seed)


if __name__ == "__main__":
    sys.exit(main())
