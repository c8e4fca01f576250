"""The long form of the simulation: `python -m tests.stream.simulate [RUNS] [FIRST_SEED]`.

All six invariants must hold in every run; a failing seed prints its shortest schedule.
"""

import sys
import time

from tests.stream.simulation.run import explain, run


def main(runs: int = 10_000, first_seed: int = 0) -> int:
    started = time.monotonic()
    for seed in range(first_seed, first_seed + runs):
        if run(seed).violated:
            print(explain(seed))
            return 1
    seconds = time.monotonic() - started
    print(f"{runs} runs from seed {first_seed}: all invariants hold ({seconds:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
